"""The tables of totals that end a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.views.columns import Column, Table, laid_out
from commlens.views.lines import BLANK, BOLD, WARNING, Line, Span, line, styled
from commlens.views.words import UNKNOWN, byte_size, cut, exact, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlens.analysis import Total, Totals

TITLES: Final = ("along axes", "by opcode")

_SHOWN_KEY: Final = 40


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
        full: whether exact bytes stand beside the rounded ones.
    """
    unknown = any(total.unknown for total in entries.values())
    columns = (
        Column(title.split()[-1], least=12),
        *(Column(name, "right") for name in ("rows", "runs", "in", "out", "received")),
        *([Column("unknown", "right")] if unknown else []),
    )
    rows = [_row(key, total, full=full)[: len(columns)] for key, total in entries.items()]
    return Table(columns, rows)


def _best(title: str, entries: Mapping[str, Total], width: int | None) -> Table:
    table = totals_table(title, entries, full=True)
    return table if width is None or table.least_width() <= width else totals_table(title, entries, full=False)


def _row(key: str, total: Total, *, full: bool) -> list[Span]:
    bound = bool(total.unknown)
    return [
        Span(cut(printable(key), _SHOWN_KEY), WARNING if key == UNKNOWN else BOLD),
        Span(f"{total.count:,}"),
        Span(f"{'>= ' if bound else ''}{total.executions:,}"),
        *(
            size_cell(number, full=full, lower_bound=bound)
            for number in (total.operand_bytes, total.result_bytes, total.wire_bytes_per_device)
        ),
        Span(f"{total.unknown:,}", WARNING if bound else ""),
    ]


def size_cell(number: float | None, *, full: bool, lower_bound: bool = False) -> Span:
    """Return the cell of a number of bytes, with the exact figure beside the rounded one when ``full``."""
    if number is None:
        return Span(UNKNOWN, WARNING)
    rounded = byte_size(number)
    text = f"{rounded} = {exact(number)} B" if full and number >= 1000 else rounded
    return Span((">= " if lower_bound else "") + text)
