"""What changed in the communication of a program from one module to another, whatever the spelling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from commlens.analysis.diffs.changes import StepChange, step_changes
from commlens.analysis.diffs.details import spelling_details
from commlens.analysis.diffs.matching import match
from commlens.analysis.diffs.report_pair import ReportPair, report_pair
from commlens.analysis.effective_axes import axes_in_words, effective_axes_key
from commlens.analysis.meanings import Meanings
from commlens.analysis.records import Record
from commlens.analysis.reports import gc_paused
from commlens.analysis.schedule_walks import schedule_of
from commlens.analysis.totals import OPCODES, Total, totals_of
from commlens.hlo import is_scheduled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis.diffs.changes import ChangeKind, Moved
    from commlens.analysis.diffs.details import Detail
    from commlens.analysis.diffs.matching import Matching
    from commlens.analysis.meshes import MeshLike
    from commlens.analysis.reports import Report
    from commlens.analysis.row import Row
    from commlens.analysis.schedules import Schedule
    from commlens.hlo import Module

_TotalKey: TypeAlias = tuple[tuple[tuple[int, int, int], ...], str, str]

HOST_AXES: Final = "host"
"""How totals spell the axes of a transfer to or from the host."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One thing that differs between two modules.

    Attributes:
        kind: what became of it.
        opcode: the operation; of an order that of the first thing that moved.
        axes: the mesh axes that it runs along, in the first module where it is there; None where they are not known.
        before: its row in the first module; None where it is not there.
        after: its row in the second one.
        what: what exactly differs, in words.
        details: the same fact by fact.
        moved: of an order, everything that moved.
        along: the axes in words, ``"none"`` for groups of one device; unlike ``axes`` also where members are shuffled
            in a way that changes no result: ``"model (shuffled)"``. None where they are not known.
    """

    kind: ChangeKind
    opcode: str
    axes: list[str] | None
    before: Row | None
    after: Row | None
    what: str
    details: tuple[Detail, ...]
    moved: tuple[Moved, ...]
    along: str | None

    def as_dict(self) -> dict[str, object]:
        """Return the change in its JSON form."""
        return {
            "kind": self.kind,
            "opcode": self.opcode,
            "axes": self.axes,
            "before": None if self.before is None else self.before.as_dict(),
            "after": None if self.after is None else self.after.as_dict(),
            "what": self.what,
            "details": [detail.as_dict() for detail in self.details],
            "moved": [move.as_dict() for move in self.moved],
        }


@dataclass(frozen=True, slots=True, eq=False)
class TotalChange(Record):
    """The sums of one operation along some axes, in both modules.

    Attributes:
        axes: the axes in mesh order, joined by commas; ``"none"``, ``"?"``, or ``"host"`` for transfers to the host.
            An order of members that changes no result does not hide them.
        opcode: the operation.
        before: the sum in the first module; None where it has none such.
        after: the sum in the second one.
    """

    axes: str
    opcode: str
    before: Total | None
    after: Total | None

    @property
    def differs(self) -> bool:
        """Whether the sums differ."""
        return self.before != self.after

    def as_dict(self) -> dict[str, object]:
        """Return the sums in their JSON form."""
        totals = {"before": self.before, "after": self.after}
        sums = {key: None if total is None else dict(total) for key, total in totals.items()}
        return {"axes": self.axes, "opcode": self.opcode, **sums}


@dataclass(frozen=True, slots=True, eq=False)
class ModuleDiff:
    """How the communication of two modules differs.

    Attributes:
        before: the report of the first module.
        after: the report of the second one.
        changes: removed, changed and added collectives in the order in which they stand, then reorders, then what is
            merely spelled in another way.
        totals: the sums by axes and operation.
        notes: what to know of the comparison, in sentences.
        undecided: how many collectives are written alike in modules that run on different counts, so that nobody can
            tell whether the same devices take part.
    """

    before: Report
    after: Report
    changes: tuple[Change, ...]
    totals: tuple[TotalChange, ...]
    notes: tuple[str, ...]
    undecided: int = 0

    @property
    def same_communication(self) -> bool | None:
        """Whether nothing differs but the spelling; None where that cannot be claimed.

        That is where something is unread, or where nobody can tell who takes part on the counts of either module.
        """
        if any(change.kind != "spelling" for change in self.changes):
            return False
        return None if self.before.unread or self.after.unread or self.undecided else True


def diff(before: Module, after: Module, mesh: MeshLike | None = None, *, full: bool = False) -> ModuleDiff:
    """Compare what two modules communicate.

    Collectives are the same where operation, devices, shapes, reduction and stream are, and where they run equally
    often at the same place among the others. How they are written means nothing: synchronous, asynchronous or wrapped,
    groups as list, iota or mesh axes, channel numbers, names, text or proto.

    Args:
        before: the first module.
        after: the second module.
        mesh: the mesh that names axes in both, as for :func:`commlens.report`; None: their own, see
            :func:`~commlens.analysis.diffs.report_pair.report_pair`.
        full: whether rows list ids up to the high limit.

    Returns:
        What differs, totals, notes.

    Raises:
        CommlensError: ``mesh`` is no mesh.

    Example:
        >>> from commlens.hlo import load
        >>> text = '''HloModule m, num_partitions=4
        ... ENTRY e {{
        ...   p = f32[8] parameter(0)
        ...   ROOT r = f32[8] all-reduce(p), channel_id=1, replica_groups={}, use_global_device_ids=true, to_apply=add
        ... }}'''
        >>> before, after = (load(text.format(groups)) for groups in ("{{0,1},{2,3}}", "[2,2]<=[2,2]T(1,0)"))
        >>> answer = diff(before, after, "dp=2,tp=2")
        >>> [(change.kind, change.what) for change in answer.changes], answer.same_communication
        ([('changed', 'devices {{0,1},{2,3}} along tp -> {{0,2},{1,3}} along dp')], False)
    """
    with gc_paused():
        pair = report_pair(before, after, mesh, full=full)
        meanings = Meanings()
        schedules, matching = _matched(pair, meanings, by_data=False)
        notes = list(pair.notes)
        if matching.reorders and _is_order_of_lists_alone(before, after):
            by_data = _matched(pair, meanings, by_data=True)
            if not by_data[1].reorders:
                schedules, matching = by_data
                notes.append(
                    "neither module has a schedule, and a text lists instructions in another order than a proto; "
                    "in the order that data prescribe nothing has moved"
                )
        changes = tuple(_changes(pair, schedules, matching, meanings))
        undecided = _undecided(pair, matching)
        notes += [*_undecided_notes(undecided), *_run_notes(schedules, matching)]
        return ModuleDiff(*pair.reports, changes, tuple(_totals(pair)), tuple(notes), undecided)


def _matched(pair: ReportPair, meanings: Meanings, *, by_data: bool) -> tuple[tuple[Schedule, Schedule], Matching]:
    first, second = (
        schedule_of(report, found, meanings, by_data=by_data)
        for report, found in zip(pair.reports, pair.found, strict=True)
    )
    return (first, second), match(first, second, meanings)


def _is_order_of_lists_alone(before: Module, after: Module) -> bool:
    return before.format != after.format and not is_scheduled(before) and not is_scheduled(after)


def _changes(
    pair: ReportPair, schedules: tuple[Schedule, Schedule], matching: Matching, meanings: Meanings
) -> Iterator[Change]:
    first, second = pair.reports
    changes = step_changes(*schedules, matching, meanings)
    changed = {change.before for change in changes if change.kind == "changed"}
    for change in changes:
        yield _change(change, pair)
    for i, j in matching.pairs:
        if i not in changed:
            details = tuple(spelling_details(first.collectives[i], second.collectives[j]))
            if details:
                yield _change(StepChange.of("spelling", i, j, details), pair)


def _change(change: StepChange, pair: ReportPair) -> Change:
    first, second = pair.reports
    before = None if change.before is None else first.collectives[change.before]
    after = None if change.after is None else second.collectives[change.after]
    known, mesh = (after, second.mesh) if before is None else (before, first.mesh)
    opcode, axes = ("", None) if known is None else (known.opcode, known.axes)
    along = None if known is None else axes_in_words(known.figures, mesh)
    return Change(change.kind, opcode, axes, before, after, change.what, change.details, change.moved, along)


def _totals(pair: ReportPair) -> Iterator[TotalChange]:
    """Yield the sums by axes in mesh order, then by operation."""
    places = {opcode: place for place, opcode in enumerate(OPCODES)}
    sums = [_sums(report) for report in pair.reports]
    keys = [*sums[0], *sums[1]]
    met = {axes: place for place, (_, axes, _) in reversed([*enumerate(keys)])}  # axes of two meshes may rank alike
    for key in sorted(set(keys), key=lambda key: (key[0], met[key[1]], places[key[2]])):
        _, axes, opcode = key
        yield TotalChange(axes, opcode, *(each.get(key) for each in sums))


def _sums(report: Report) -> dict[_TotalKey, Total]:
    alike: dict[_TotalKey, list[Row]] = {}
    keys = {
        figures: effective_axes_key(figures, report.mesh) for figures in {row.figures for row in report.collectives}
    }
    for row in report.collectives:
        key = keys[row.figures]
        axes = HOST_AXES if row.host_transfer else key.text
        alike.setdefault((key.order, axes, row.opcode), []).append(row)
    return {key: totals_of(rows).by_opcode[key[2]] for key, rows in alike.items()}


def _undecided(pair: ReportPair, matching: Matching) -> int:
    """Count the collectives of which nobody can tell who takes part, on either of two different counts."""
    if pair.counts[0] == pair.counts[1]:
        return 0
    first, second = (report.collectives for report in pair.reports)
    return sum(_is_unknown(first[i]) and _is_unknown(second[j]) for i, j in matching.pairs)


def _is_unknown(row: Row) -> bool:
    participation = row.figures.participation
    return not row.host_transfer and participation.groups is None and participation.pairs is None


def _undecided_notes(undecided: int) -> Iterator[str]:
    if undecided:
        yield (
            f"who takes part in {undecided:,} of the collectives cannot be told in either module, and their counts "
            "differ; whether they do the same is not known"
        )


def _run_notes(schedules: tuple[Schedule, Schedule], matching: Matching) -> Iterator[str]:
    both = sum(schedules[0].steps[i].runs is None and schedules[1].steps[j].runs is None for i, j in matching.pairs)
    if both:
        yield f"how often {both:,} of the collectives run is known in neither module; it is taken to be the same"
