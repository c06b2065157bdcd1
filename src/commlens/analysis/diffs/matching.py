"""Which collectives of two schedules are the same, part by part: what matched, what moved, what only one side has."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from commlens.analysis.diffs.alignment import Item, align
from commlens.analysis.schedules import AGAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from commlens.analysis.diffs.alignment import Alignment
    from commlens.analysis.meanings import Meanings
    from commlens.analysis.schedules import Schedule, Step

_MOST_CROSSED: Final = 64
"""Most steps that are named for one move."""

_LOOKED_AT: Final = 512
"""How many neighbours on either side of a move are searched before all are."""

_Places: TypeAlias = npt.NDArray[np.int64]


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
        reorders: for each two parts that belong together and have another order, what has moved.
        removed: numbers of the steps that only the first schedule has.
        added: numbers of the steps that only the second one has.
    """

    pairs: tuple[tuple[int, int], ...]
    displaced: frozenset[tuple[int, int]]
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
    pairs: list[tuple[int, int]] = []
    reorders: list[tuple[Move, ...]] = []
    removed: list[int] = []
    added: list[int] = []
    pending = [(0, 0)]
    while pending:
        part, other = pending.pop()
        alignment = align(first.listed(part), second.listed(other))
        matched = [(first.item(part, i), second.item(other, j)) for i, j in alignment.pairs]
        pairs += [pair for pair in matched if pair[0] >= 0]
        pending += [(~i, ~j) for i, j in matched if i < 0 and before.parts[~i].role != AGAIN]
        moves = tuple(_moves(first, second, part, other, alignment))
        reorders += [moves] if moves else []
        removed += first.steps_at(part, alignment.removed)
        added += second.steps_at(other, alignment.added)
    displaced = _displaced(before, after, removed, added, meanings)
    return Matching(
        pairs=tuple(sorted([*pairs, *displaced])),
        displaced=frozenset(displaced),
        reorders=tuple(reorders),
        removed=tuple(sorted(set(removed).difference(i for i, _ in displaced))),
        added=tuple(sorted(set(added).difference(j for _, j in displaced))),
    )


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
        self._content: dict[int, int] = {}
        for number in range(len(schedule.parts) - 1, -1, -1):  # what stands inside a part comes behind it
            part = schedule.parts[number]
            content = (part.role, *(self._key(item) for item in part.items))
            self._content[number] = contents.setdefault(content, len(contents))

    def _key(self, item: int) -> Hashable:
        return self.schedule.steps[item].meaning if item >= 0 else ("part", self._content[~item])

    def item(self, part: int, place: int) -> int:
        """Return an item of a part."""
        return self.schedule.parts[part].items[place]

    def listed(self, part: int) -> list[Item]:
        """Return the items of a part, ready to be aligned."""
        return [self._item(item) for item in self.schedule.parts[part].items]

    def _item(self, item: int) -> Item:
        if item < 0:
            part = self.schedule.parts[~item]
            return Item(("part", part.role), self._key(item), part.name, ("",))
        step = self.schedule.steps[item]
        return Item(self._meanings[step.meaning].opcode, step.meaning, step.name, self._traits_of(step.meaning))

    def _traits_of(self, number: int) -> tuple[Hashable, ...]:
        """Return what a collective may keep where the rest of it changes."""
        if number not in self._traits:
            meaning = self._meanings[number]
            shapes = (meaning.operand_shapes, meaning.result_shapes)
            self._traits[number] = (shapes, meaning.members, meaning.operand_shapes, meaning.sets, shapes[1])
        return self._traits[number]

    def steps_in(self, item: int) -> list[int]:
        """Return the numbers of the steps of an item, those of the parts inside it too, each once and in order."""
        found: dict[int, None] = {}
        pending = [item]
        while pending:
            current = pending.pop()
            if current >= 0:
                found[current] = None
            else:
                pending.extend(reversed(self.schedule.parts[~current].items))
        return list(found)

    def steps_at(self, part: int, places: Iterable[int]) -> Iterator[int]:
        """Yield the numbers of the steps at some places of a part; what stands elsewhere as well is left out."""
        for place in places:
            item = self.item(part, place)
            if item >= 0:
                if self.schedule.parts[part].role != AGAIN:
                    yield item
            elif self.schedule.parts[~item].role != AGAIN:
                yield from self.steps_in(item)


def _moves(first: _Side, second: _Side, part: int, other: int, alignment: Alignment) -> Iterator[Move]:
    """Yield what stands at another place in two parts that belong together."""
    if not alignment.moved:
        return
    places = np.array(sorted(alignment.pairs, key=lambda pair: pair[1]), dtype=np.int64)
    ranks = {j: rank for rank, j in enumerate(places[:, 1].tolist())}
    for i, j in sorted(alignment.moved):
        before, after = first.steps_in(first.item(part, i)), second.steps_in(second.item(other, j))
        if before and after:
            around = places[max(0, ranks[j] - _LOOKED_AT) : ranks[j] + _LOOKED_AT]
            nearest = _inverted(around, i, j)
            if not len(nearest):
                nearest = _inverted(places, i, j)
            steps = (step for place in nearest[:, 0].tolist() for step in first.steps_in(first.item(part, place)))
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
