"""The answer of ``report`` in every form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from commlens.views.alike import alike
from commlens.views.csv_cells import csv_lines
from commlens.views.json_text import to_json
from commlens.views.markdown import markdown_prose, markdown_table, markdown_text
from commlens.views.report_columns import EVERYTHING
from commlens.views.report_table import facts_of, notes_of, report_lines
from commlens.views.totals_table import TITLES, totals_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis import Report, Row
    from commlens.views.lines import Line

CSV_COLUMNS: Final = (
    "path",
    "module",
    "name",
    "opcode",
    "async",
    "computation",
    "line",
    "axes",
    "form",
    "replica_groups",
    "num_replica_groups",
    "num_devices_per_group",
    "group_mode",
    "participants",
    "source_target_pairs",
    "operand_shapes",
    "result_shapes",
    "operand_bytes",
    "result_bytes",
    "wire_bytes_per_device",
    "trip_count",
    "conditional",
    "channel_id",
    "use_global_device_ids",
    "constrain_layout",
    "dimensions",
    "ids",
    "via",
    "token_operands",
    "host_transfer",
    "collective_type",
    "stream_id",
    "frontend_attributes",
    "op_name",
    "source",
)
"""Columns of the CSV form: the keys of a row, with its groups in columns of their own and its module before them."""


@dataclass(frozen=True, slots=True)
class ReportView:
    """The answer of ``report``.

    Attributes:
        reports: one per module.
    """

    reports: Sequence[Report]

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield the lines of the table."""
        return report_lines(self.reports, width)

    def json(self) -> Iterator[str]:
        """Yield one JSON object, a row to a line; it never stands in memory as a whole."""
        yield '{"schema": "commlens.report/1", "modules": ['
        for place, report in enumerate(self.reports):
            yield ",\n" if place else "\n"
            yield from _module_json(report)
        yield "\n]}\n"

    def csv(self) -> Iterator[str]:
        """Yield a heading and one line per collective."""
        rows = (_csv_row(report, row) for report in self.reports for row in report.collectives)
        return csv_lines(CSV_COLUMNS, rows)

    def markdown(self) -> Iterator[str]:
        """Yield the tables as Markdown."""
        for place, report in enumerate(self.reports):
            if place:
                yield "\n"
            yield from _module_markdown(report)


def _module_json(report: Report) -> Iterator[str]:
    without_rows = replace(report, collectives=()).as_dict()
    for place, (key, value) in enumerate(without_rows.items()):
        yield f"{', ' if place else '{'}{to_json(key)}: "
        if key == "collectives":
            yield from _rows_json(report.collectives)
        else:
            yield to_json(value)
    yield "}"


def _rows_json(rows: Sequence[Row]) -> Iterator[str]:
    yield "["
    for place, row in enumerate(rows):
        yield ",\n" if place else "\n"
        yield to_json(row.as_dict())
    yield "\n]" if rows else "]"


def _csv_row(report: Report, row: Row) -> list[object]:
    values = {**row.as_dict(), "path": report.module.path, "module": report.module.name}
    groups = row.replica_groups
    values["form"] = None if groups is None else groups.form
    values["replica_groups"] = None if groups is None else groups.text
    values["num_replica_groups"] = None if groups is None else groups.num_replica_groups
    values["num_devices_per_group"] = None if groups is None else groups.num_devices_per_group
    values["axes"] = "none" if row.axes == [] else row.axes  # an empty cell means "not known"
    return [values[column] for column in CSV_COLUMNS]


def _module_markdown(report: Report) -> Iterator[str]:
    groups = alike(report.collectives)
    yield f"### {markdown_text(report.module.name)} ({markdown_text(report.module.path)})\n\n"
    yield ", ".join(markdown_text(fact) for fact in facts_of(report, groups)) + "\n"
    if groups:
        yield "\n"
        yield from markdown_table(EVERYTHING.table(groups, None))
    for title, entries in zip(TITLES, (report.totals.by_axes, report.totals.by_opcode), strict=True):
        if entries:
            yield f"\nTotal {title}, in one run of the entry computation:\n\n"
            yield from markdown_table(totals_table(title, entries, full=True))
    for note, _ in notes_of(report, groups):
        yield f"\n{markdown_prose(note)}\n"
