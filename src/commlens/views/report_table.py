"""The table of ``report``: what a module communicates, at a glance."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.views.alike import SHOWN, Alike, Kind, alike
from commlens.views.columns import Column, Table, laid_out
from commlens.views.lines import BLANK, BOLD, DIM, WARNING, Line, Span, line, styled, wrapped
from commlens.views.totals_table import size_cell, totals_lines
from commlens.views.words import UNKNOWN, counted, cut, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis import Report

_OPCODE_STYLES: Final = MappingProxyType(
    {
        "all-gather": "green",
        "all-reduce": "cyan",
        "reduce-scatter": "blue",
        "all-to-all": "magenta",
        "collective-permute": "bright_yellow",
        "collective-broadcast": "bright_green",
        "ragged-all-to-all": "bright_magenta",
        "send": "bright_blue",
        "recv": "bright_blue",
    }
)

_ROW: Final = (Column("rows", "right"), Column("opcode"), Column("axes", least=12), Column("groups"))
_SAYS: Final = (Column("as written"), Column("operands -> results"))
_BYTES: Final = (Column("in", "right"), Column("out", "right"), Column("received", "right"))
_RUNS: Final = (Column("runs", "right"),)
_WIDE: Final = (*_ROW, *_SAYS, *_BYTES, *_RUNS, Column("where"))
_NARROW: Final = (*_ROW, *_BYTES, *_RUNS)


def report_lines(reports: Sequence[Report], width: int | None) -> Iterator[Line]:
    """Yield the table view of some reports.

    Args:
        reports: one per module.
        width: columns of the terminal, None for as many as it takes.
    """
    for place, report in enumerate(reports):
        if place:
            yield BLANK
        yield from module_lines(report, width)


def module_lines(report: Report, width: int | None) -> Iterator[Line]:
    """Yield the table view of one module: what it is, its collectives, totals and what was left open."""
    groups = alike(report.collectives)
    yield from _heading(report, groups, width)
    if groups:
        yield BLANK
        yield from laid_out(best_table(groups, width), width)
        yield from totals_lines(report.totals, width)
    yield from _notes(report, groups, width)


def _heading(report: Report, groups: Sequence[Alike], width: int | None) -> Iterator[Line]:
    yield line(styled(cut(report.module.name, SHOWN), BOLD), "  ", styled(report.module.path, DIM))
    *facts, last = facts_of(report, groups)
    yield from wrapped([*(Span(fact + ",") for fact in facts), Span(last)], width)


def facts_of(report: Report, groups: Sequence[Alike]) -> list[str]:
    """Return what there is to say of a module as a whole, in a few words each."""
    different = f" ({len(groups):,} different)" if len(groups) < len(report.collectives) else ""
    return [
        counted(len(report.collectives), "collective") + different if groups else _no_collectives(report),
        _counts(report),
        "no mesh named" if report.mesh is None else cut(printable(str(report.mesh)), SHOWN),
        report.module.format,
    ]


def _no_collectives(report: Report) -> str:
    """Say "none" only when it is known."""
    return "no collective could be read" if report.unread else "no collectives"


def _counts(report: Report) -> str:
    replicas, partitions = report.module.replica_count, report.module.num_partitions
    if replicas is None or partitions is None:
        return "replica and partition counts not stated"
    return f"{counted(replicas, 'replica')} x {counted(partitions, 'partition')}"


def best_table(groups: Sequence[Alike], width: int | None) -> Table:
    """Return the most telling table of rows that fits: exact bytes, rounded ones, or two lines to a row."""
    for full in (True, False):
        table = wide_table(groups, full=full)
        if width is None or table.least_width() <= width:
            return table
    details = [list(_detail_lines(group, width)) for group in groups]
    return Table(_NARROW, [_narrow_row(group) for group in groups], details)


def wide_table(groups: Sequence[Alike], *, full: bool) -> Table:
    """Return the table with one line to a row.

    Args:
        groups: the rows.
        full: whether exact bytes stand beside the rounded ones.
    """
    return Table(_WIDE, [_wide_row(group, full=full) for group in groups])


def _wide_row(group: Alike, *, full: bool) -> list[Span]:
    kind = group.kind
    says = (kind.spelling, kind.devices and f"= {kind.devices}", *kind.form)
    return [
        *_beginning(group),
        Span(", ".join(part for part in says if part)),
        Span(kind.shapes),
        *_sizes(group, full=full),
        _runs(group),
        Span(", ".join([*_conditions(group), *_places(group)]), DIM),
    ]


def _narrow_row(group: Alike) -> list[Span]:
    return [*_beginning(group), *_sizes(group, full=False), _runs(group)]


def _beginning(group: Alike) -> list[Span]:
    kind = group.kind
    return [
        Span(f"{len(group.rows):,}"),
        Span(kind.opcode, _OPCODE_STYLES.get(kind.opcode, "")),
        Span(kind.axes, WARNING if kind.axes == UNKNOWN else BOLD),
        Span(kind.size),
    ]


def _sizes(group: Alike, *, full: bool) -> list[Span]:
    kind = group.kind
    received = size_cell(kind.received, full=full)
    return [
        size_cell(kind.operand_bytes, full=full),
        size_cell(kind.result_bytes, full=full),
        received._replace(text="<= " + received.text) if kind.uneven else received,
    ]


def _runs(group: Alike) -> Span:
    return Span(UNKNOWN, WARNING) if group.runs is None else Span(f"{group.runs:,}")


def _detail_lines(group: Alike, width: int | None) -> Iterator[Line]:
    """Yield what does not fit into the row, below it."""
    kind = group.kind
    parts = (kind.spelling, kind.devices and f"= {kind.devices}", kind.shapes, *kind.form)
    words = [Span(part) for part in parts if part]
    places = [Span(part, DIM) for part in (*_conditions(group), *_places(group))]
    yield from wrapped([*words, *places], width, indent="      ", gap="  ")


def _conditions(group: Alike) -> list[str]:
    if not group.conditional:
        return []
    more = f" and {len(group.conditional) - 1} more" if len(group.conditional) > 1 else ""
    return [f"if {cut(printable(group.conditional[0]), SHOWN)}{more}"]


def _places(group: Alike) -> list[str]:
    """Name the first of the rows, its line, and the computations they stand in."""
    first = group.rows[0]
    name = cut(printable(first.name), SHOWN)
    others = len(group.rows) - 1
    line_number = "" if first.line is None else f" line {first.line}"
    computations = {row.computation for row in group.rows}
    where = cut(printable(first.computation), SHOWN)
    elsewhere = f" and {len(computations) - 1} more" if len(computations) > 1 else ""
    return [f"{name}{line_number}" + (f" +{others:,}" if others else ""), f"in {where}{elsewhere}"]


def _notes(report: Report, groups: Sequence[Alike], width: int | None) -> Iterator[Line]:
    """Yield what a reader has to know of the words and the gaps, as far as they occur."""
    notes = [styled(text, style) for text, style in notes_of(report, groups)]
    if notes:
        yield BLANK
    for note in notes:
        yield from wrapped([Span(word, note.style) for word in note.text.split()], width)


def notes_of(report: Report, groups: Sequence[Alike]) -> Iterator[tuple[str, str]]:
    """Yield the notes below a report, each with its style."""
    if report.unread:
        what = counted(len(report.unread), "thing that may communicate", "things that may communicate")
        yield f"{what} could not be read, so that every count is a lower bound; the warnings say why.", WARNING
    if groups:
        kinds = [group.kind for group in groups]
        yield (
            "in, out: bytes of a device's operands and results; received: what it receives on a ring; each per run.",
            DIM,
        )
        if any(group.runs is None for group in groups):
            yield "runs ?: a loop on the way has no known trip count, so that totals are lower bounds.", DIM
        yield from ((note, DIM) for note in _axes_notes(report, kinds))


def _axes_notes(report: Report, kinds: Sequence[Kind]) -> Iterator[str]:
    if any(kind.axes == UNKNOWN for kind in kinds):
        yield _why_no_axes(report)
    if any(kind.axes.startswith("(") for kind in kinds):
        yield "axes in parentheses are those of the row's own mesh; they count under ? in the totals."
    if any("ids as written" in kind.form for kind in kinds):
        yield "ids as written: nobody states the counts; give --replicas and --partitions to know the devices."


def _why_no_axes(report: Report) -> str:
    if report.mesh is None:
        return "axes ?: the module names no mesh; give one, such as --mesh data=2,model=4."
    return "axes ?: the groups do not lie along axes of the mesh."
