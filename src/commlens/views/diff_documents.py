"""The answer of ``diff`` in every form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from commlens.views.csv_cells import csv_lines
from commlens.views.diff_table import change_table, diff_lines, notes_of, summary_of, totals_change_table
from commlens.views.json_text import to_json
from commlens.views.markdown import markdown_prose, markdown_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis import Change, ModuleDiff, Report, Row
    from commlens.views.lines import Line

CSV_COLUMNS: Final = (
    *("kind", "opcode", "axes", "what"),
    *("before", "before_computation", "before_line", "before_trip_count"),
    *("after", "after_computation", "after_line", "after_trip_count"),
)
"""Columns of the CSV form: what changed, and the collective in both modules."""


@dataclass(frozen=True, slots=True)
class DiffView:
    """The answer of ``diff``.

    Attributes:
        diff: what differs.
    """

    diff: ModuleDiff

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield the lines of the table."""
        return diff_lines(self.diff, width)

    def json(self) -> Iterator[str]:
        """Yield one JSON object, a change to a line; it never stands in memory as a whole."""
        diff = self.diff
        yield f'{{"schema": "commlens.diff/1", "same_communication": {to_json(diff.same_communication)}, "changes": ['
        for place, change in enumerate(diff.changes):
            yield (",\n" if place else "\n") + to_json(change.as_dict())
        rest: dict[str, object] = {
            "before": _side(diff.before),
            "after": _side(diff.after),
            "totals": [total.as_dict() for total in diff.totals],
            "notes": list(diff.notes),
        }
        yield ("\n" if diff.changes else "") + f"], {to_json(rest)[1:]}\n"

    def csv(self) -> Iterator[str]:
        """Yield a heading and a line for each change."""
        return csv_lines(CSV_COLUMNS, map(_csv_row, self.diff.changes))

    def markdown(self) -> Iterator[str]:
        """Yield the tables as Markdown."""
        diff = self.diff
        yield f"{markdown_prose(summary_of(diff))}\n"
        if diff.changes:
            yield "\n"
            yield from markdown_table(change_table(diff.changes, None, in_one_line=True))
        table = totals_change_table(diff)
        if table.rows:
            yield "\n"
            yield from markdown_table(table)
        for note, _ in notes_of(diff):
            yield f"\n{markdown_prose(note)}\n"


def _side(report: Report) -> dict[str, object]:
    """Return what there is to say of one module apart from its rows."""
    return {**replace(report, collectives=()).as_dict(), "collectives": len(report.collectives)}


def _csv_row(change: Change) -> list[object]:
    axes = "none" if change.axes == [] else change.axes  # an empty cell means "not known"
    return [change.kind, change.opcode, axes, change.what, *_place(change.before), *_place(change.after)]


def _place(row: Row | None) -> list[object]:
    return [None] * 4 if row is None else [row.name, row.computation, row.line, row.trip_count]
