"""The order in which the collectives of a module run: its schedule, as a tree of loops and branches.

A collective stands in a computation, and a computation runs where it is called. So the order in which collectives run
is that of the entry computation, with each loop and each conditional as a part of its own at the place where it stands;
a plain call or fusion is no part of its own, what it runs stands among the things around it. Whether a compiler has
inlined a function makes no difference then, whether it has moved a collective in front of a loop does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class Step(NamedTuple):
    """One collective of a schedule.

    Attributes:
        name: the instruction's name.
        meaning: the number of what it does.
        runs: how often it runs in one run of the entry; None where that is not known.
        conditional: whether it stands in a branch of a conditional.
        computation: the computation it stands in.
        channel: its channel, None where it has none.
        line: its line in a text.
    """

    name: str
    meaning: int
    runs: int | None
    conditional: bool
    computation: str
    channel: int | None
    line: int | None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a schedule.

    Attributes:
        role: ``"entry"``; ``"loop"``, which holds its ``"condition"`` and its ``"body"``; ``"conditional"``, which
            holds a ``"branch 1"`` for each number that picks one, for true 1; ``"loose"`` for what nothing leads to;
            ``"call"`` for what is called again outside loops and conditionals.
        name: name of the computation; of a loop or a conditional that of the first in it.
        items: what it consists of in order: the number of a step, or ``~n`` for part n.
        trips: how often it runs each time that what holds it does, a branch as if it were always taken; None where that
            is not known.
        again: whether its computation stands somewhere before. Its items are those that stand there.
    """

    role: str
    name: str
    items: tuple[int, ...]
    trips: int | None = 1
    again: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of one module.

    Attributes:
        steps: the collectives, in the order of the report's rows.
        parts: the parts; the first holds all others.
    """

    steps: tuple[Step, ...]
    parts: tuple[Part, ...]

    def in_order(self) -> list[int]:
        """Return the numbers of the steps in the order in which they run, each where it runs first."""
        found: list[int] = []
        pending = [~0]
        while pending:
            item = pending.pop()
            if item >= 0:
                found.append(item)
            elif not self.parts[~item].again:
                pending.extend(reversed(self.parts[~item].items))
        return found

    def steps_in(self, item: int, *, again: bool = True) -> list[int]:
        """Return the numbers of the steps of an item, those of the parts inside it too, each once and in order.

        Args:
            item: the number of a step, or ``~n`` for part n.
            again: whether parts count whose computation stands somewhere before.
        """
        found: dict[int, None] = {}
        entered: set[int] = set()
        pending = [item]
        while pending:
            current = pending.pop()
            if current >= 0:
                found[current] = None
            elif current not in entered and (again or not self.parts[~current].again):
                entered.add(current)
                pending.extend(reversed(self.parts[~current].items))
        return list(found)

    def again_in(self, item: int) -> list[int]:
        """Return the numbers of the parts of an item whose computations stand somewhere before, the outermost alone."""
        found: list[int] = []
        pending = [item]
        while pending:
            current = pending.pop()
            if current < 0 and self.parts[~current].again:
                found.append(~current)
            elif current < 0:
                pending.extend(reversed(self.parts[~current].items))
        return found

    def lone(self, number: int) -> int | None:
        """Return the number of the part that is all there is in a part, and whose trips can be counted with its own.

        A loop of 2 around a loop of 3 alone runs the same as 3 around 2. None where there is anything else, or where it
        is not known how often one of them runs.
        """
        part = self.parts[number]
        if len(part.items) != 1 or part.items[0] >= 0 or part.trips is None:
            return None
        return None if self.parts[~part.items[0]].trips is None else ~part.items[0]

    def rounds(self, number: int) -> int | None:
        """Return how often a part runs what it holds each time that it is reached, counted with :meth:`lone` parts."""
        rounds = 1
        inner: int | None = number
        while inner is not None:
            trips = self.parts[inner].trips
            if trips is None:
                return None
            rounds *= trips
            inner = self.lone(inner)
        return rounds

    def contents(
        self, value_of: Callable[[Step], Hashable], known: dict[Hashable, int], *, with_trips: bool
    ) -> list[int]:
        """Number what the parts hold.

        Args:
            value_of: what has to be equal of two steps.
            known: what was numbered so far.
            with_trips: whether parts with other :meth:`rounds` hold something else.

        Returns:
            One number for each part, equal where they hold the same.
        """
        inside = [0] * len(self.parts)
        found = [0] * len(self.parts)
        rounds: list[int | None] = [1] * len(self.parts)
        for number in self._inner_first():
            part, lone = self.parts[number], self.lone(number)
            values = (("part", found[~item]) if item < 0 else value_of(self.steps[item]) for item in part.items)
            items = tuple(values) if lone is None else ("lone", inside[lone])
            inside[number] = known.setdefault((part.role, part.again, *items), len(known))
            if with_trips:
                rounds[number] = part.trips if lone is None else (part.trips or 0) * (rounds[lone] or 0)
            found[number] = known.setdefault((inside[number], rounds[number]), len(known))
        return found

    def _inner_first(self) -> list[int]:
        """Return the numbers of the parts, each behind those inside it."""
        order: dict[int, None] = {}
        pending = [(0, False)]
        while pending:
            number, finished = pending.pop()
            if finished:
                order[number] = None
            elif number not in order:
                pending.append((number, True))
                pending += [(~item, False) for item in self.parts[number].items if item < 0 and ~item not in order]
        return list(order)
