"""Tables of aligned columns, fitted to a width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from commlens.views.lines import BOLD, Line, Span
from commlens.views.words import cut, pad, width_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GAP: Final = "  "
"""What stands between two columns."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        title: its heading.
        align: to which side its cells are set.
        least: the width it may be cut to where the table is too wide; None: it is never cut.
    """

    title: str
    align: Literal["left", "right"] = "left"
    least: int | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows of printable cells.

    Attributes:
        columns: the columns.
        rows: one cell per column each.
        details: lines that stand below a row, one entry per row; empty where no row has any.
    """

    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Span]]
    details: Sequence[Sequence[Line]] = ()

    def widths(self) -> list[int]:
        """Return the width that each column would like to have."""
        widths = [width_of(column.title) for column in self.columns]
        for row in self.rows:
            for place, cell in enumerate(row):
                widths[place] = max(widths[place], width_of(cell.text))
        return widths

    def least_width(self) -> int:
        """Return the width below which the table cannot be cut."""
        wanted = zip(self.columns, self.widths(), strict=True)
        return _total([width if column.least is None else min(width, column.least) for column, width in wanted])


def laid_out(table: Table, width: int | None) -> Iterator[Line]:
    """Yield the lines of a table: headings, then rows.

    Args:
        table: the table.
        width: columns of the terminal; None: every cell in full. Where even the narrowest form is wider, lines are
            longer than this: what a table exists to say is never dropped.

    Example:
        >>> from commlens.views.lines import text_of
        >>> table = Table((Column("n", "right"), Column("shape", least=6)), [(Span("12"), Span("f32[128,256]"))])
        >>> [text_of(one) for one in laid_out(table, None)], [text_of(one) for one in laid_out(table, 12)]
        ([' n  shape', '12  f32[128,256]'], [' n  shape', '12  f32[128…'])
    """
    widths = _fitted(table, width)
    yield _set(table.columns, [Span(column.title, BOLD) for column in table.columns], widths)
    for place, row in enumerate(table.rows):
        yield _set(table.columns, row, widths)
        if table.details:
            yield from table.details[place]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _fitted(table: Table, width: int | None) -> list[int]:
    """Take columns away from the widest cuttable column first, until the table fits or nothing more can be cut."""
    widths = table.widths()
    if width is None:
        return widths
    least = [column.least for column in table.columns]
    excess = _total(widths) - width
    while excess > 0:
        slack = [0 if floor is None else wide - floor for wide, floor in zip(widths, least, strict=True)]
        candidates = [place for place in range(len(widths)) if slack[place] > 0]
        if not candidates:
            break
        widest = max(candidates, key=lambda place: widths[place])
        widths[widest] -= 1
        excess -= 1
    return widths


def _set(columns: Sequence[Column], cells: Sequence[Span], widths: Sequence[int]) -> Line:
    spans: list[Span] = []
    for column, cell, width in zip(columns, cells, widths, strict=True):
        if spans:
            spans.append(Span(GAP))
        spans.append(Span(pad(cut(cell.text, width), width, column.align), cell.style))
    return tuple(spans)
