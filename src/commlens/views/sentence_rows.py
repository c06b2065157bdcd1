"""Tables whose rows end in a sentence: below the row for people, in a column of its own for other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.views.columns import Column, Table
from commlens.views.lines import Line, Span, wrapped
from commlens.views.words import cut, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_SHOWN: Final = 400
"""Columns that a sentence may take; JSON has all of it."""

_INDENT: Final = " " * 8


class SentenceRow(NamedTuple):
    """A row and what it says.

    Attributes:
        cells: the cells that always stand in columns.
        names: the cells that stand in columns where there is room.
        named: the names again, as they begin the sentence where there is none.
        what: the sentence.
    """

    cells: list[Span]
    names: list[Span]
    named: str
    what: str


def sentence_table(
    columns: Sequence[Column],
    names: Sequence[Column],
    rows: Sequence[SentenceRow],
    width: int | None,
    *,
    in_one_line: bool,
) -> Table:
    """Return the table of some rows.

    Args:
        columns: the columns of the cells.
        names: the columns of the names.
        rows: the rows.
        width: where the sentences below rows are wrapped; where the names do not fit into it, they go there too.
        in_one_line: whether the sentence stands in a column of its own, instead of below.
    """
    full = [[*row.cells, *row.names] for row in rows]
    if in_one_line:
        whole = [[*cells, Span(shortened_sentence(row.what))] for cells, row in zip(full, rows, strict=True)]
        return Table((*columns, *names, Column("what")), whole)
    wide = Table((*columns, *names), full, [list(below(row.what, width)) for row in rows])
    if width is None or wide.least_width() <= width:
        return wide
    return Table(
        tuple(columns), [row.cells for row in rows], [list(below(f"{row.named}: {row.what}", width)) for row in rows]
    )


def shortened_sentence(what: str) -> str:
    """Return a sentence that a terminal can show, cut where it is very long."""
    return cut(printable(what), MOST_SHOWN)


def below(what: str, width: int | None) -> Iterator[Line]:
    """Yield a sentence as lines below a row."""
    return wrapped([Span(word) for word in shortened_sentence(what).split(" ")], width, indent=_INDENT)
