"""The table of ``report``: what a module communicates, at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.views.alike import SHOWN, Alike, Kind, alike
from commlens.views.columns import laid_out
from commlens.views.lines import BLANK, BOLD, DIM, WARNING, Line, Span, paragraph, wrapped
from commlens.views.report_columns import best_table
from commlens.views.totals_table import totals_lines
from commlens.views.words import UNKNOWN, counted, cut, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis import Report

LEGEND: Final = (
    "in, out: bytes of a device's operands and results; received: bytes that a device receives on a ring; each for one "
    "run of the collective. runs: how often it runs in one run of the entry computation."
)


def report_lines(reports: Sequence[Report], width: int | None) -> Iterator[Line]:
    """Yield the table view of some reports.

    Args:
        reports: one per module.
        width: columns of the terminal, None for as many as it takes.
    """
    for place, report in enumerate(reports):
        if place:
            yield BLANK
        yield from _module_lines(report, width)
    if any(report.collectives for report in reports):
        yield BLANK
        yield from paragraph(LEGEND, DIM, width)


def facts_of(report: Report, groups: Sequence[Alike]) -> list[str]:
    """Return what there is to say of a module as a whole, in a few words each."""
    different = f" ({len(groups):,} different)" if len(groups) < len(report.collectives) else ""
    return [
        counted(len(report.collectives), "collective") + different if groups else _no_collectives(report),
        _counts(report),
        "no mesh named" if report.mesh is None else cut(printable(str(report.mesh)), SHOWN),
        f"HLO {report.module.format}",
    ]


def notes_of(report: Report, groups: Sequence[Alike]) -> Iterator[tuple[str, str]]:
    """Yield what a reader has to know of the gaps of a report, as far as there are any, each with its style."""
    if report.unread:
        what = counted(len(report.unread), "thing that may communicate", "things that may communicate")
        yield f"{what} could not be read, so that every count is a lower bound; the warnings say why.", WARNING
    if any(group.runs is None for group in groups):
        yield "runs ?: a loop on the way has no known trip count, so that totals are lower bounds.", DIM
    yield from ((note, DIM) for note in _axes_notes(report, [group.kind for group in groups]))


def _module_lines(report: Report, width: int | None) -> Iterator[Line]:
    """Yield the table view of one module: what it is, its collectives, totals, and what was left open."""
    groups = alike(report.collectives)
    name, path = (cut(printable(report.module.name), SHOWN), printable(report.module.path))
    yield from wrapped([Span(name, BOLD), Span(f" {path}", DIM)], width)
    *facts, last = facts_of(report, groups)
    yield from wrapped([*(Span(f"{fact},") for fact in facts), Span(last)], width)
    if groups:
        yield BLANK
        yield from laid_out(best_table(groups, width), width)
        yield from totals_lines(report.totals, width)
    for note, style in notes_of(report, groups):
        yield BLANK
        yield from paragraph(note, style, width)


def _no_collectives(report: Report) -> str:
    """Say "none" only where that is known."""
    return "no collective could be read" if report.unread else "no collectives"


def _counts(report: Report) -> str:
    replicas, partitions = report.module.replica_count, report.module.num_partitions
    if replicas is None or partitions is None:
        return "replica and partition counts not stated"
    return f"{counted(replicas, 'replica')} x {counted(partitions, 'partition')}"


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
    if report.notes:
        return f"axes ?: {'; '.join(report.notes)}."
    return "axes ?: the groups do not lie along axes of the mesh, in the order of their members."
