"""Which collectives become one: the grouping engine that the three combiners share, on plain data.

Source: ``CombineInstructionsByKey``, xla/service/collective_combiner_utils.h, as it was up to jaxlib 0.10.2: an
instruction that depends on a member of the set ends the set. Newer XLA passes over it and goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from commlens.errors import CommlensError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commlens.hlo import Graph


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a set may become; both limits are inclusive.

    Attributes:
        num_bytes: most bytes of all results together.
        count: most members.
    """

    num_bytes: int
    count: int

    @property
    def forbid_all(self) -> bool:
        """Whether nothing is combined at all, as with a limit of 0 or less."""
        return self.num_bytes <= 0 or self.count <= 0


class CycleError(CommlensError):
    """An instruction needs itself, which no valid computation has.

    Attributes:
        position: its position in the instruction list.
    """

    def __init__(self, position: int) -> None:
        super().__init__("expected an instruction to need only others, found one that needs itself")
        self.position = position


class Candidate(NamedTuple):
    """An instruction that may be combined with others.

    Attributes:
        position: its position in the instruction list.
        key: what it must share with those others; None for what is not combined.
        num_bytes: bytes of its result.
    """

    position: int
    key: Hashable
    num_bytes: int


def find_sets(graph: Graph, candidates: Iterable[Candidate], limits: Limits) -> list[list[int]]:
    """Find the sets of instructions that become one instruction each.

    In every round the first candidate left, in post-order, fixes the key; those behind it with the same key join its
    set until one would make it too large, or depends on a member, or the set has all it may. What was in a set is done,
    also when it stayed alone. The next round goes by the post-order in which the members are already one. What has
    another number of operands than one, or is too large alone, is left out.

    Args:
        graph: the edges of the computation.
        candidates: what may be combined.
        limits: how large a set may become.

    Returns:
        The sets of two and more, in the order in which they are made; in each the positions in operand order.

    Raises:
        CycleError: an instruction needs itself.

    Example:
        >>> from commlens.hlo import Graph
        >>> graph = Graph([[], [0], [1], [0], [2, 3]])  # p, x(p), y(x), z(p), t(y, z)
        >>> find_sets(graph, [Candidate(position, "key", 4) for position in (1, 2, 3)], Limits(100, 256))
        [[2, 3]]
    """
    pool = {} if limits.forbid_all else _pool(graph, candidates, limits)
    return list(_Grouping(graph, pool, limits).sets()) if pool else []


def _pool(graph: Graph, candidates: Iterable[Candidate], limits: Limits) -> dict[int, Candidate]:
    """Return, by position, the candidates that can find others; the rest never has an effect on those."""
    fit = [
        each
        for each in candidates
        if each.key is not None and len(graph.operands[each.position]) == 1 and each.num_bytes <= limits.num_bytes
    ]
    sharing = Counter(each.key for each in fit)
    return {each.position: each for each in fit if sharing[each.key] > 1}


class _Grouping:
    """The rounds over one computation."""

    def __init__(self, graph: Graph, pool: dict[int, Candidate], limits: Limits) -> None:
        self._order = _Order(graph)
        self._pool = pool
        self._left = Counter(each.key for each in pool.values())
        self._limits = limits

    def sets(self) -> Iterator[list[int]]:
        """Yield the sets of two and more."""
        order = self._order
        at = 0
        while self._pool:
            while order.positions[at] not in self._pool:
                at += 1
            members, end = self._set_from(at)
            if len(members) > 1:
                order.combine(members, at, end)
                yield members

    def _set_from(self, at: int) -> tuple[list[int], int]:
        """Take the set that starts at a place of the order out of the pool; return it and where its last member is."""
        order, pool, limits = self._order, self._pool, self._limits
        first = self._take(order.positions[at])
        members, end, total = [first.position], at, first.num_bytes
        dependent = {first.position}
        for place in range(at + 1, len(order.positions)):
            position = order.positions[place]
            if len(members) >= limits.count or not self._left[first.key]:
                break
            depends = not dependent.isdisjoint(order.needs(position))
            if depends:
                dependent.add(position)
            candidate = pool.get(position)
            if candidate is None or candidate.key != first.key:
                continue
            if depends or total + candidate.num_bytes > limits.num_bytes:
                break
            self._take(position)
            members.append(position)
            dependent.add(position)
            end, total = place, total + candidate.num_bytes
        return members, end

    def _take(self, position: int) -> Candidate:
        candidate = self._pool.pop(position)
        self._left[candidate.key] -= 1
        return candidate


class _Order:
    """The post-order of a computation while sets of it become one.

    The new instruction needs no place of its own: it comes right before the first member, so that member stands for it.
    It needs what all members need, and the other members need it.

    Attributes:
        positions: the order.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._combined: dict[int, tuple[int, ...]] = {}
        everything = set(range(len(graph.operands)))
        used = {operand for operands in graph.operands for operand in operands}
        self._starts = dict.fromkeys(sorted(everything - used))
        self.positions = self._walk([*reversed(self._starts)], everything)
        self.positions += self._walk(sorted(everything), everything)  # what only a cycle leads to
        self._check_acyclic()

    def needs(self, position: int) -> Sequence[int]:
        """Return what must come before an instruction now, in the order in which a stack takes it."""
        combined = self._combined.get(position)
        if combined is not None:
            return combined
        control = self._graph.control_predecessors.get(position)
        operands = self._graph.operands[position]
        if control is None:
            return operands if len(operands) < 2 else operands[::-1]
        return (*operands[::-1], *control)

    def _walk(self, stack: list[int], pending: set[int]) -> list[int]:
        """Go depth first from what is on a stack, its end first; list what is pending, each behind what it needs."""
        finished: list[int] = []
        while stack:
            position = stack.pop()
            if position < 0:  # all that ~position needs was listed
                finished.append(~position)
            elif position in pending:
                pending.remove(position)
                stack.append(~position)
                stack.extend(self.needs(position))
        return finished

    def _check_acyclic(self) -> None:
        operands, control = self._graph.operands, self._graph.control_predecessors
        if all(max(needed, default=-1) < at for at, needed in chain(enumerate(operands), control.items())):
            return
        places = {position: place for place, position in enumerate(self.positions)}
        for position, place in places.items():
            if any(places[each] >= place for each in self.needs(position)):
                raise CycleError(position)

    def combine(self, members: Sequence[int], at: int, end: int) -> None:
        """Make one of several instructions, none of which needs another.

        Nothing before the first member changes. What the other members need and was not listed yet now comes before the
        first; all else keeps its order, because the walk finds everything as before but what is listed already. So only
        the part from the first member to the last is listed anew. It is different where no instruction uses the first:
        such a member is a start of the walk, goes to the end of the instruction list, and all behind it is listed anew.

        Args:
            members: their positions.
            at: where the first member is in the order.
            end: where the last one is.
        """
        first, *others = members
        control = dict.fromkeys(c for each in members for c in self._graph.control_predecessors.get(each, ()))
        operands = [operand for each in members for operand in self._graph.operands[each]]
        needed = (*reversed(operands), *control)
        self._combined[first] = needed
        self._combined.update(dict.fromkeys(others, (first,)))
        was_start = first in self._starts
        for each in members:
            if each in self._starts:
                del self._starts[each]
                self._starts[each] = None
        if was_start:
            self.positions[at:] = self._walk([*reversed(self._starts)], set(self.positions[at:]))
            return
        part = self.positions[at : end + 1]
        pending = set(part)
        if not pending.isdisjoint(needed):
            listed = self._walk([first], pending)
            self.positions[at : end + 1] = [*listed, *(each for each in part if each in pending)]
