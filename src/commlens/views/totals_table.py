"""The tables of totals that end a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.views.columns import Column, Table, laid_out
from commlens.views.lines import BLANK, BOLD, WARNING, Line, Span, line, styled
from commlens.views.report_columns import exact_cell, size_cell
from commlens.views.words import UNKNOWN, cut, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlens.analysis import Total, Totals

TITLES: Final = ("along axes", "by opcode")

_SHOWN_KEY: Final = 40
_SIZES: Final = ("in", "out", "received")


def totals_lines(totals: Totals, width: int | None) -> Iterator[Line]:
    """Yield the totals by axes and by opcode, each as a table with its title."""
    for title, entries in zip(TITLES, (totals.by_axes, totals.by_opcode), strict=True):
        if entries:
            yield BLANK
            yield line(styled(f"total {title}, in one run of the entry computation", BOLD))
            yield from laid_out(_best(title, entries, width), width)


def totals_table(title: str, entries: Mapping[str, Total], *, full: bool) -> Table:
    """Return a table of totals.

    Args:
        title: what the entries are keyed by.
        entries: key -> total. Where rows are not fully known the sums are lower bounds and say so by ``>=``.
        full: whether the exact bytes have columns of their own.
    """
    unknown = any(total.unknown for total in entries.values())
    figures = (
        "rows",
        "runs",
        *_SIZES,
        *(f"bytes {name}" for name in _SIZES if full),
        *(("unknown",) if unknown else ()),
    )
    columns = (Column(title.split()[-1], least=12), *(Column(name, "right") for name in figures))
    return Table(columns, [_row(key, total, full=full)[: len(columns)] for key, total in entries.items()])


def _best(title: str, entries: Mapping[str, Total], width: int | None) -> Table:
    table = totals_table(title, entries, full=True)
    return table if width is None or table.least_width() <= width else totals_table(title, entries, full=False)


def _row(key: str, total: Total, *, full: bool) -> list[Span]:
    bound = ">= " if total.unknown else ""
    sizes = (total.operand_bytes, total.result_bytes, total.wire_bytes_per_device)
    return [
        Span(cut(printable(key), _SHOWN_KEY), WARNING if key == UNKNOWN else BOLD),
        Span(f"{total.count:,}"),
        Span(f"{bound}{total.executions:,}"),
        *(size_cell(number, bound=bound) for number in sizes),
        *(exact_cell(number, bound=bound) for number in sizes if full),
        Span(f"{total.unknown:,}", WARNING if bound else ""),
    ]
