"""Aligned tables."""

from __future__ import annotations

from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from commlens.views.columns import Column, Table, laid_out
from commlens.views.lines import BOLD, Span, line, paragraph, plain_text, text_of, wrapped
from commlens.views.words import printable, width_of

aligns = st.sampled_from(["left", "right"])
words = st.text(max_size=12).map(printable)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Tables of up to four columns."""
    number = draw(st.integers(1, 4))
    columns: list[Column] = []
    for _ in range(number):
        align: Literal["left", "right"] = "right" if draw(aligns) == "right" else "left"
        columns.append(Column(draw(words), align, draw(st.none() | st.integers(1, 6))))
    rows = draw(st.lists(st.lists(words.map(Span), min_size=number, max_size=number), max_size=4))
    return Table(tuple(columns), rows)


@given(tables(), st.none() | st.integers(1, 40))
def test_a_table_fits_where_it_can(table: Table, width: int | None) -> None:
    """Lines are as wide as asked for, or as wide as the table at its narrowest; without a width nothing is cut."""
    lines = list(laid_out(table, width))
    widest = max(sum(width_of(span.text) for span in one) for one in lines)
    if width is None:
        for row, one in zip(table.rows, lines[1:], strict=True):
            assert [cell.text.strip() for cell in row] == [cell.text.strip() for cell in one[::2]]
    else:
        assert widest <= max(width, table.least_width())


@given(tables())
def test_columns_are_aligned(table: Table) -> None:
    """Every line has its columns at the same places."""
    places = {tuple(width_of(span.text) for span in one) for one in laid_out(table, None)}
    assert len(places) == 1


def test_the_widest_column_gives_way_first() -> None:
    """A table that is too wide loses columns where most are, and never below what a column needs."""
    table = Table(
        (Column("a", least=2), Column("b", least=2), Column("c")), [[Span("x" * 9), Span("y" * 4), Span("z" * 5)]]
    )
    assert [text_of(one) for one in laid_out(table, 16)][1] == "xx…  yyyy  zzzzz"
    assert [text_of(one) for one in laid_out(table, 3)][1] == "x…  y…  zzzzz"


def test_details_stand_below_their_row() -> None:
    """Lines of a row that did not fit follow it at once."""
    table = Table((Column("a"),), [[Span("1")], [Span("2")]], [[line("more of 1")], []])
    assert [text_of(one) for one in laid_out(table, None)] == ["a", "1", "more of 1", "2"]


@given(st.lists(st.text("ab", min_size=1, max_size=9), max_size=9), st.integers(1, 20))
def test_wrapping_keeps_every_word_whole(texts: list[str], width: int) -> None:
    """Words stay whole and in order; a line is longer than the width only when it is one word."""
    lines = [text_of(one) for one in wrapped([Span(text) for text in texts], width, indent=" ")]
    assert " ".join(lines).split() == texts
    assert all(len(one) <= width or len(one.split()) == 1 for one in lines)


def test_running_text_stays_readable() -> None:
    """Even on a very wide terminal a paragraph has lines of at most 100 columns."""
    assert max(map(len, plain_text(paragraph("word " * 200, BOLD, 400)))) <= 100 + len("\n")


def test_lines_hold_printable_text_alone() -> None:
    """A line made of strings from anywhere has no control characters."""
    assert text_of(line("a\x1b[0m", Span("b"))) == "a\\x1b[0mb"
