"""The order in which the combiners' grouping engine goes, while instructions of it become one."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from commlens.errors import CommlensError

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from commlens.hlo import Graph

Place: TypeAlias = tuple[int, ...]
"""A place in an order; places are compared number by number."""


class CycleError(CommlensError):
    """An instruction needs itself, which no valid computation has.

    Attributes:
        position: its position in the instruction list.
    """

    def __init__(self, position: int) -> None:
        super().__init__("expected an instruction to need only others, found one that needs itself")
        self.position = position


class Order:
    """The post-order of a computation while sets of it become one.

    The new instruction needs no place of its own: it comes right before the first member, so that member stands for it.
    It needs what all members need, and the other members need it.

    Args:
        graph: the edges of the computation.

    Attributes:
        places: by position what orders the instructions: in the beginning each has one number; what is put before
            another gets that one's place with its last number made less by one, and a number more.

    Raises:
        CycleError: an instruction needs itself.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._combined: dict[int, tuple[int, ...]] = {}
        starts = graph.starts()
        self._starts = dict.fromkeys(starts)
        self._end = 0
        self.places: list[Place] = [()] * len(graph.operands)
        self._append(graph.post_order(starts))
        self._check_acyclic()

    def _append(self, positions: Sequence[int]) -> None:
        """Put instructions behind all others, in this order."""
        for position, place in zip(positions, zip(range(self._end, self._end + len(positions))), strict=True):
            self.places[position] = place
        self._end += len(positions)

    def _needs(self, position: int) -> Sequence[int]:
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
                stack.extend(self._needs(position))
        return finished

    def _check_acyclic(self) -> None:
        if self._graph.is_in_order():
            return
        for position in sorted(range(len(self.places)), key=self.places.__getitem__):
            if any(self.places[each] >= self.places[position] for each in self._needs(position)):
                raise CycleError(position)

    def leads(self, position: int, targets: Container[int], floor: Place, passed: set[int]) -> bool:
        """Whether an instruction needs one of several others.

        Args:
            position: its position.
            targets: the others, none of which comes before ``floor``.
            floor: a place; what comes before it is not looked at.
            passed: what needs none of them; takes what is looked at.
        """
        pending = [position]
        while pending:
            for each in self._needs(pending.pop()):
                if each in targets:
                    return True
                if each not in passed and self.places[each] > floor:
                    passed.add(each)
                    pending.append(each)
        return False

    def combine(self, members: Sequence[int], passed: set[int], left: Container[int]) -> list[int]:
        """Make one of several instructions, none of which needs another.

        Nothing before the first member changes. What the other members need and was not listed yet now comes before the
        first; all else keeps its order, because the walk finds everything as before but what is listed already. It is
        different where no instruction uses the first: such a member is a start of the walk, and goes to the end of the
        instruction list. Where candidates would come before it, all from the first on is listed anew; where none would,
        it does not matter when the walk meets it.

        Args:
            members: their positions.
            passed: what the others need behind the first, and maybe more that is behind it.
            left: the candidates that are left.

        Returns:
            Those of them whose places are others now.
        """
        first, *others = members
        control = dict.fromkeys(c for each in members for c in self._graph.control_predecessors.get(each, ()))
        operands = [operand for each in members for operand in self._graph.operands[each]]
        self._combined[first] = (*reversed(operands), *control)
        self._combined.update(dict.fromkeys(others, (first,)))
        was_start = first in self._starts
        for each in members:
            if each in self._starts:
                del self._starts[each]
                self._starts[each] = None
        *before, _ = self._walk([first], passed | {first})
        moved = [each for each in before if each in left]
        if moved and was_start:
            floor = self.places[first]
            pending = {position for position, place in enumerate(self.places) if place >= floor}
            listed = self._walk([*reversed(self._starts)], pending)
            self._append(listed)
            return [each for each in listed if each in left]
        *head, last = self.places[first]
        for number, each in enumerate(before):
            self.places[each] = (*head, last - 1, number)
        return moved
