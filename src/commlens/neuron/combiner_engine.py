"""Which collectives become one: the grouping engine that the three combiners share, on plain data.

Source: ``CombineInstructionsByKey``, xla/service/collective_combiner_utils.h, as it was up to jaxlib 0.10.2: an
instruction that depends on a member of the set ends the set. Newer XLA passes over it and goes on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from commlens.neuron.combiner_order import Order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commlens.hlo import Graph
    from commlens.neuron.combiner_order import Place


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

    A round looks at the candidates of its key and at what those depend on behind the first member, at nothing else.

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
    fit = [] if limits.forbid_all else _fit(graph, candidates, limits)
    return list(_sets(Order(graph), fit, limits)) if fit else []


def _fit(graph: Graph, candidates: Iterable[Candidate], limits: Limits) -> list[Candidate]:
    """Return the candidates that can find others; the rest never has an effect on those."""
    fit = [
        each
        for each in candidates
        if each.key is not None and len(graph.operands[each.position]) == 1 and each.num_bytes <= limits.num_bytes
    ]
    sharing = Counter(each.key for each in fit)
    return [each for each in fit if sharing[each.key] > 1]


def _sets(order: Order, candidates: Iterable[Candidate], limits: Limits) -> Iterator[list[int]]:
    """Yield the sets of two and more, round by round."""
    left = _Left(candidates, order)
    while (first := left.first()) is not None:
        members, passed = _set_from(first, left, order, limits)
        if len(members) > 1:
            left.move(order.combine(members, passed, left))
            yield members


def _set_from(first: Candidate, left: _Left, order: Order, limits: Limits) -> tuple[list[int], set[int]]:
    """Take the set of a first member out of those left; return it, and what else its members need behind the first."""
    left.take(first)
    members, total = [first.position], first.num_bytes
    dependents, passed, floor = {first.position}, set[int](), order.places[first.position]
    while len(members) < limits.count:
        candidate = left.first(first.key)
        if candidate is None or total + candidate.num_bytes > limits.num_bytes:
            break
        if order.leads(candidate.position, dependents, floor, passed):
            break
        left.take(candidate)
        members.append(candidate.position)
        dependents.add(candidate.position)
        total += candidate.num_bytes
    return members, passed


class _Left:
    """The candidates left, in the order in which they come.

    Args:
        candidates: all that may be combined.
        order: the order, by whose places they are found.
    """

    def __init__(self, candidates: Iterable[Candidate], order: Order) -> None:
        self._order = order
        self._by_position = {each.position: each for each in candidates}
        self._queues: defaultdict[Hashable, list[tuple[Place, int]]] = defaultdict(list)
        self.move(self._by_position)

    def __contains__(self, position: int) -> bool:
        return position in self._by_position

    def first(self, key: Hashable = None) -> Candidate | None:
        """Return the first one with a key, the first of all without one; None where nothing is left."""
        queue, places = self._queues[key], self._order.places
        while queue:
            place, position = queue[0]
            if position in self._by_position and places[position] == place:
                return self._by_position[position]
            heappop(queue)
        return None

    def take(self, candidate: Candidate) -> None:
        """Take a candidate out."""
        del self._by_position[candidate.position]

    def move(self, positions: Iterable[int]) -> None:
        """Put candidates where the order now has them."""
        for position in positions:
            entry = (self._order.places[position], position)
            heappush(self._queues[self._by_position[position].key], entry)
            heappush(self._queues[None], entry)
