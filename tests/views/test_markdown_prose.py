"""Sentences in Markdown are running text that obeys nothing of what it holds."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.views.markdown import markdown_prose
from commlens.views.words import printable


def rendered(markdown: str) -> str:
    """Return running text as a reader sees it."""
    return html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", markdown))


@given(st.text("ab 1.)-+=:/w\\`*_[]<>{}|#@&!~$\n", max_size=30))
def test_what_is_read_is_what_was_written(text: str) -> None:
    """Whatever marks it holds, the sentence reads as it is."""
    assert rendered(markdown_prose(text)) == printable(text).strip()


@pytest.mark.parametrize(
    "text",
    [
        "the readings differ: 4 is the size of the largest group, as documented; all have 8 (--reading total)",
        "x: expected 'a' or \"b\", found nothing; it's 50% of 3/4 = 0.75 + 1?",
        "read-a-neff.md line 7",
    ],
)
def test_sentences_stay_as_they_are(text: str) -> None:
    """Punctuation of sentences needs no escapes, and makes no code of them."""
    assert markdown_prose(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<b>", "&lt;b&gt;"),
        ("- x", r"\- x"),
        ("1. x", r"1\. x"),
        ("12) x", r"12\) x"),
        ("== x", r"\== x"),
        ("see http://x.y", r"see http:\//x.y"),
        ("see WWW.x.y", r"see WWW\.x.y"),
        ("a@b.c", r"a\@b.c"),
        ("{{0,1}}", r"\{\{0,1\}\}"),
        ("a|b", r"a\|b"),
        ("[x](y)", r"\[x\](y)"),
    ],
)
def test_marks_are_escaped(text: str, expected: str) -> None:
    """What Markdown would obey is written so that it does not."""
    assert markdown_prose(text) == expected
