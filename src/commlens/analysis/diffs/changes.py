"""What differs between two schedules: added, removed, changed, moved."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from commlens.analysis.diffs.details import (
    Detail,
    loop_detail,
    lost_targets,
    meaning_details,
    place_detail,
    recall_detail,
    run_details,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis.diffs.matching import Matching, Move
    from commlens.analysis.meanings import Meanings
    from commlens.analysis.schedules import Schedule

ChangeKind: TypeAlias = Literal["added", "removed", "changed", "order", "spelling"]
"""What became of a collective; the last one says the same in other words."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A collective, or a loop or branch of some, that runs at another place among the others.

    Attributes:
        before: names of the collectives in the first module.
        after: names in the second one.
        what: where it runs now, in words.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    what: str

    def as_dict(self) -> dict[str, object]:
        """Return the move in its JSON form."""
        return {"before": list(self.before), "after": list(self.after), "what": self.what}


@dataclass(frozen=True, slots=True)
class StepChange:
    """One difference between two schedules.

    Attributes:
        kind: what became of a step.
        before: number of the step in the first schedule; None where it has none such. Of an order the first that moved.
        after: number in the second one likewise.
        what: what exactly differs, in words.
        details: the same fact by fact.
        moved: of an order, everything that moved.
    """

    kind: ChangeKind
    before: int | None
    after: int | None
    what: str
    details: tuple[Detail, ...] = ()
    moved: tuple[Moved, ...] = ()

    @classmethod
    def of(cls, kind: ChangeKind, before: int, after: int, details: tuple[Detail, ...]) -> StepChange:
        """Make a change that says its details in words."""
        return cls(kind, before, after, "; ".join(detail.what for detail in details), details)


def step_changes(before: Schedule, after: Schedule, matching: Matching, meanings: Meanings) -> list[StepChange]:
    """List how two schedules differ.

    Args:
        before: the first schedule.
        after: the second one.
        matching: which of their steps belong together.
        meanings: what the numbers of meanings mean.

    Returns:
        What is removed, changed and added, in the order of the steps; then one entry for each part of the program in
        which things moved.
    """
    changed = (((i, 1), change) for i, change in _changed(before, after, matching, meanings))
    removed = (((i, 1), StepChange("removed", i, None, _alone(before, i, meanings))) for i in matching.removed)
    partners = sorted((j, i) for i, j in matching.pairs)
    end = len(before.steps)
    added = (
        ((_behind(partners, j, end), 0), StepChange("added", None, j, _alone(after, j, meanings)))
        for j in matching.added
    )
    found = sorted([*changed, *removed, *added], key=lambda entry: entry[0])
    return [*(change for _, change in found), *_orders(before, after, matching.reorders)]


def _behind(partners: Sequence[tuple[int, int]], number: int, end: int) -> int:
    """Return the step of the first schedule before which a step of the second one belongs."""
    place = bisect_left(partners, (number, -1))
    return partners[place][1] if place < len(partners) else end


def _changed(
    before: Schedule, after: Schedule, matching: Matching, meanings: Meanings
) -> Iterator[tuple[int, StepChange]]:
    new = [(after.steps[j].name, meanings[after.steps[j].meaning]) for j in matching.added]
    for i, j in matching.pairs:
        first, second = before.steps[i], after.steps[j]
        details: list[Detail] = []
        if first.meaning != second.meaning:
            meant = meanings[first.meaning], meanings[second.meaning]
            details += [*meaning_details(*meant), *lost_targets(*meant, new)]
        runs = [*run_details(first, second)]
        details += runs
        if (i, j) in matching.displaced:
            details.append(place_detail(first, second))
        elif i in matching.looped and not runs:
            details.append(loop_detail(*matching.looped[i]))
        elif (i, j) in matching.recalled and not runs:
            details.append(recall_detail(first, second))
        if details:
            yield i, StepChange.of("changed", i, j, tuple(details))


def _alone(schedule: Schedule, number: int, meanings: Meanings) -> str:
    """Describe a collective that the other side has not."""
    step = schedule.steps[number]
    return f"{described(meanings, step.meaning)}, in {step.computation}"


def described(meanings: Meanings, number: int) -> str:
    """Describe what a collective does in a few words: devices, axes, shapes.

    Args:
        meanings: what numbers of meanings mean.
        number: the meaning.
    """
    meaning = meanings[number]
    along = "" if meaning.axes is None else f" along {','.join(meaning.axes) or 'none'}"
    size = "" if meaning.operand_bytes is None else f", {meaning.operand_bytes:,} B"
    what = "pairs" if meaning.is_paired else "devices"
    return f"{what} {meaning.devices}{along}{size}"


def _orders(before: Schedule, after: Schedule, reorders: Sequence[Sequence[Move]]) -> Iterator[StepChange]:
    for first, *others in reorders:
        moved = _moved(before, after, first)
        more = f", and {len(others):,} more moved" if others else ""
        place = f"in {before.steps[first.before[0]].computation}: "
        rest = (_moved(before, after, other) for other in others)
        yield StepChange("order", first.before[0], first.after[0], f"{place}{moved.what}{more}", (), (moved, *rest))


def _moved(before: Schedule, after: Schedule, move: Move) -> Moved:
    names = tuple(before.steps[i].name for i in move.before)
    what = before.steps[move.before[0]].name + (" and what runs with it" if len(names) > 1 else "")
    if move.crossed:
        sides = ("before", "after") if move.earlier else ("after", "before")
        what += f" runs {sides[0]} {before.steps[move.crossed[0]].name} instead of {sides[1]} it"
    return Moved(names, tuple(after.steps[j].name for j in move.after), what)
