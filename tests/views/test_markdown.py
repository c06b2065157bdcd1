"""Markdown of texts from strangers."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.views.columns import Column, Table
from commlens.views.lines import Span
from commlens.views.markdown import markdown_table, markdown_text
from commlens.views.words import printable


def rendered(markdown: str) -> str:
    """Return what a reader of a cell sees: a small renderer of code spans, escapes and entities, nothing else."""
    if re.fullmatch(r"`[^`]*`", markdown):
        return markdown[1:-1]
    return html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown))


ODD = st.text(st.sampled_from("ab1 |`\\<>&*_[](){}#!~$.-:/@\n\x1b"))


@given(ODD)
def test_a_reader_sees_the_text_itself(text: str) -> None:
    """Nothing of a text is taken for markup: rendered, it is the printable text."""
    assert rendered(markdown_text(text)) == printable(text).strip()


@given(ODD | st.text())
def test_nothing_breaks_out_of_a_cell(text: str) -> None:
    """A cell holds no bar, no line break and nothing that a renderer could take for a tag."""
    markdown = markdown_text(text)
    assert re.search(r"(?<!\\)(?:\\\\)*\|", markdown) is None
    assert markdown.isprintable()
    assert re.search(r"<[A-Za-z/!?]", markdown) is None


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "![x](http://x)",
        "**bold**",
        "http://x.y",
        "www.x.y",
        "a|b",
        "`|`",
        "<!--",
        "&lt;",
        "~~x~~",
    ],
)
def test_markup_is_disarmed(text: str) -> None:
    """Tags, links, pictures and emphasis come out as escapes or in a code span, never as they are."""
    assert markdown_text(text) != text
    assert rendered(markdown_text(text)) == text


def test_a_table() -> None:
    """A table has a heading, a line of alignments and a line per row."""
    table = Table((Column("n", "right"), Column("groups")), [[Span("2"), Span("[2,4]<=[8]")], [Span("1"), Span("")]])
    assert "".join(markdown_table(table)) == "| n | groups |\n| ---: | --- |\n| 2 | `[2,4]<=[8]` |\n| 1 |  |\n"
