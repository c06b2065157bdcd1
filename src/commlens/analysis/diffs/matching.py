"""Which collectives of two schedules are the same, part by part: what matched, what moved, what only one side has."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from commlens.analysis.diffs.alignment import Item, align

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from commlens.analysis.diffs.alignment import Alignment
    from commlens.analysis.meanings import Meanings
    from commlens.analysis.schedules import Schedule, Step

_MOST_CROSSED: Final = 64
"""Most steps that are named for one move."""

_LOOKED_AT: Final = 512
"""How many neighbours on either side of a move are searched before all are."""

_Places: TypeAlias = npt.NDArray[np.int64]

Trips: TypeAlias = tuple[int | None, int | None]
"""How often something runs in the first module and in the second one; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Move:
    """Something that runs at another place among the things around it.

    Attributes:
        before: the numbers of the steps that have moved, in the first schedule: one, or all of a loop or branch.
        after: the same in the second one.
        crossed: steps of the first schedule that ran before it and run behind it in the second or the other way round,
            the nearest first, a few dozen at most.
        earlier: whether it runs before the nearest of them in the second schedule.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    crossed: tuple[int, ...]
    earlier: bool


@dataclass(frozen=True, slots=True)
class Matching:
    """How the steps of two schedules belong together.

    Attributes:
        pairs: numbers of steps that are the same or have become each other, rising in the first schedule.
        displaced: those of the pairs that stand in parts which do not belong together.
        recalled: those of the pairs whose computation is called again at places which do not belong together.
        looped: numbers of steps of the first schedule in parts that run another number of times, each with how often
            the outermost of those does.
        reorders: for each two parts that belong together and have another order, what has moved.
        removed: numbers of the steps that only the first schedule has.
        added: numbers of the steps that only the second one has.
    """

    pairs: tuple[tuple[int, int], ...]
    displaced: frozenset[tuple[int, int]]
    recalled: frozenset[tuple[int, int]]
    looped: Mapping[int, Trips]
    reorders: tuple[tuple[Move, ...], ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]


def match(before: Schedule, after: Schedule, meanings: Meanings) -> Matching:
    """Find out which steps of two schedules belong together.

    Parts are paired from the outside in, their items as :func:`~commlens.analysis.diffs.alignment.align` has it; equal
    steps that are left over in different parts come last.

    Args:
        before: the first schedule.
        after: the second one.
        meanings: what the numbers of meanings in both mean.
    """
    contents: dict[Hashable, int] = {}
    first, second = _Side(before, meanings, contents), _Side(after, meanings, contents)
    found = _Found(first, second)
    while found.pending:
        found.go_on()
    displaced = _displaced(before, after, found.removed, found.added, meanings)
    pairs = tuple(sorted([*found.pairs, *displaced]))
    return Matching(
        pairs=pairs,
        displaced=frozenset(displaced),
        recalled=frozenset(found.recalled(pairs)),
        looped=found.looped,
        reorders=tuple(found.reorders),
        removed=tuple(sorted(set(found.removed).difference(i for i, _ in displaced))),
        added=tuple(sorted(set(found.added).difference(j for _, j in displaced))),
    )


class _Found:
    """What two schedules have in common, as far as it is known.

    ``_partners`` are the items of all parts that belong together. ``_again`` are the parts of what is called again on
    one side and of its counterpart on the other, where those do not hold the same; None where there is none.
    """

    def __init__(self, first: _Side, second: _Side) -> None:
        self._first = first
        self._second = second
        self.pending: list[tuple[int, int, Trips]] = [(0, 0, (1, 1))]
        self.pairs: list[tuple[int, int]] = []
        self.reorders: list[tuple[Move, ...]] = []
        self.removed: list[int] = []
        self.added: list[int] = []
        self.looped: dict[int, Trips] = {}
        self._partners: dict[int, int] = {}
        self._again: list[tuple[int | None, int | None]] = []

    def go_on(self) -> None:
        """Compare two parts that belong together, and put off those inside them."""
        part, other, outer = self.pending.pop()
        first, second = self._first, self._second
        inner = self._compare_trips(part, other, outer)
        alignment = align(first.listed(part), second.listed(other))
        for i, j in alignment.pairs:
            item, its = first.item(part, i), second.item(other, j)
            self._partners[item] = its
            if item >= 0:
                self.pairs.append((item, its))
            elif first.schedule.parts[~item].again:
                self._compare_again(~item, ~its, inner)
            else:
                self.pending.append((~item, ~its, inner))
        moves = tuple(_moves(first, second, part, other, alignment))
        self.reorders += [moves] if moves else []
        gone, new = first.left_at(part, alignment.removed), second.left_at(other, alignment.added)
        self.removed += gone.steps
        self.added += new.steps
        self._again += [*((each, None) for each in gone.again), *((None, each) for each in new.again)]

    def _compare_again(self, part: int, other: int, outer: Trips) -> None:
        """Compare two parts whose computations stand somewhere before: what they hold is compared there."""
        first, second = self._first, self._second
        self._note_trips(part, _times(outer, (first.schedule.rounds(part), second.schedule.rounds(other))))
        if first.counted[part] != second.counted[other]:
            self._again.append((part, other))

    def _compare_trips(self, part: int, other: int, outer: Trips) -> Trips:
        """Compare how often two parts run, and return what is left to be multiplied with that of the parts inside."""
        before, after = self._first.schedule, self._second.schedule
        trips = _times(outer, (before.parts[part].trips, after.parts[other].trips))
        if before.lone(part) is not None and after.lone(other) is not None:
            return trips
        self._note_trips(part, trips)
        return 1, 1

    def _note_trips(self, part: int, trips: Trips) -> None:
        if trips[0] != trips[1]:
            for step in self._first.schedule.steps_in(~part):
                self.looped.setdefault(step, trips)

    def recalled(self, pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Yield the pairs whose computation is called again at places which do not belong together."""
        self._partners.update(pairs)
        partners = dict(pairs)
        origins = {j: i for i, j in partners.items()}
        known = set(self._partners.values())
        for part, other in self._again:
            if part is not None and other is not None and self._belong_together(part, other, known):
                continue
            before = () if part is None else self._first.schedule.steps_in(~part)
            after = () if other is None else self._second.schedule.steps_in(~other)
            yield from ((i, partners[i]) for i in before if i in partners)
            yield from ((origins[j], j) for j in after if j in origins)

    def _belong_together(self, part: int, other: int, known: set[int]) -> bool:
        """Whether what two parts hold belongs together where it stands first, but for what only one side has."""
        before, after = self._first.schedule.parts[part].items, self._second.schedule.parts[other].items
        return {self._partners[i] for i in before if i in self._partners} == {j for j in after if j in known}


class _Side:
    """One of the schedules, ready to be compared.

    Args:
        schedule: the schedule.
        meanings: what the numbers of meanings mean.
        contents: numbers of what parts hold; shared by both schedules.
    """

    def __init__(self, schedule: Schedule, meanings: Meanings, contents: dict[Hashable, int]) -> None:
        self.schedule = schedule
        self._meanings = meanings
        self._traits: dict[int, tuple[Hashable, ...]] = {}
        self._contents = contents
        self._content = schedule.contents(lambda step: step.meaning, contents, with_trips=False)

    @cached_property
    def counted(self) -> list[int]:
        """The numbers of what the parts hold and how often that runs."""
        return self.schedule.contents(lambda step: step.meaning, self._contents, with_trips=True)

    def item(self, part: int, place: int) -> int:
        """Return an item of a part."""
        return self.schedule.parts[part].items[place]

    def listed(self, part: int) -> list[Item]:
        """Return the items of a part, ready to be aligned."""
        return [self._item(item) for item in self.schedule.parts[part].items]

    def _item(self, item: int) -> Item:
        if item < 0:
            part = self.schedule.parts[~item]
            return Item(("part", part.role, part.again), ("part", self._content[~item]), part.name, ("",))
        step = self.schedule.steps[item]
        return Item(self._meanings[step.meaning].opcode, step.meaning, step.name, self._traits_of(step.meaning))

    def _traits_of(self, number: int) -> tuple[Hashable, ...]:
        """Return what a collective may keep where the rest of it changes."""
        if number not in self._traits:
            meaning = self._meanings[number]
            shapes = (meaning.operand_shapes, meaning.result_shapes)
            self._traits[number] = (shapes, meaning.members, meaning.operand_shapes, meaning.sets, shapes[1])
        return self._traits[number]

    def left_at(self, part: int, places: Iterable[int]) -> _Left:
        """Return what stands at some places of a part."""
        items = [self.item(part, place) for place in places]
        steps = [step for item in items for step in self.schedule.steps_in(item, again=False)]
        return _Left(steps, [again for item in items for again in self.schedule.again_in(item)])


class _Left(NamedTuple):
    """What has no counterpart: the steps that stand there, and the parts that are called again there."""

    steps: list[int]
    again: list[int]


def _times(outer: Trips, inner: Trips) -> Trips:
    first, second = (None if a is None or b is None else a * b for a, b in zip(outer, inner, strict=True))
    return first, second


def _moves(first: _Side, second: _Side, part: int, other: int, alignment: Alignment) -> Iterator[Move]:
    """Yield what stands at another place in two parts that belong together."""
    if not alignment.moved:
        return
    places = np.array(sorted(alignment.pairs, key=lambda pair: pair[1]), dtype=np.int64)
    ranks = {j: rank for rank, j in enumerate(places[:, 1].tolist())}
    for i, j in sorted(alignment.moved):
        before, after = first.schedule.steps_in(first.item(part, i)), second.schedule.steps_in(second.item(other, j))
        if before and after:
            around = places[max(0, ranks[j] - _LOOKED_AT) : ranks[j] + _LOOKED_AT]
            nearest = _inverted(around, i, j)
            if not len(nearest):
                nearest = _inverted(places, i, j)
            steps = (
                step for place in nearest[:, 0].tolist() for step in first.schedule.steps_in(first.item(part, place))
            )
            crossed = tuple(islice(steps, _MOST_CROSSED))
            yield Move(tuple(before), tuple(after), crossed, earlier=j < int(nearest[0, 1]))


def _inverted(places: _Places, i: int, j: int) -> _Places:
    """Return the pairs that stand on the other side of one than they did, the nearest in the second list first."""
    inverted = places[(places[:, 0] - i) * (places[:, 1] - j) < 0]
    return inverted[np.argsort(np.abs(inverted[:, 1] - j), kind="stable")][:_MOST_CROSSED]


def _displaced(
    before: Schedule, after: Schedule, removed: Iterable[int], added: Iterable[int], meanings: Meanings
) -> list[tuple[int, int]]:
    """Pair what is left over in parts that do not belong together."""
    values: tuple[Callable[[Step], Hashable], ...] = (
        lambda step: (step.meaning, step.runs, step.conditional),
        lambda step: step.meaning,
        lambda step: (meanings[step.meaning].opcode, step.name),
    )
    left, right = sorted(set(removed)), sorted(set(added))
    pairs: list[tuple[int, int]] = []
    for value in values:
        waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for j in right:
            waiting[value(after.steps[j])].append(j)
        found = [(i, queue.popleft()) for i in left if (queue := waiting.get(value(before.steps[i])))]
        taken, used = {i for i, _ in found}, {j for _, j in found}
        left, right = [i for i in left if i not in taken], [j for j in right if j not in used]
        pairs += found
    return pairs
