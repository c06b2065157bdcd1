"""Golden texts are read as they were written, and what is none is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.analysis.expectations.golden_texts import Golden, GoldenLine, differences, read_golden
from commlens.analysis.totals import OPCODES
from commlens.errors import InputError
from golden_texts import GATHER

if TYPE_CHECKING:
    from collections.abc import Callable

cells = st.text(st.sampled_from("abz?{}0129,:() ->"), min_size=1, max_size=12).map(
    lambda text: " ".join(text.split()) or "-"
)
golden_lines = st.builds(GoldenLine, st.sampled_from(OPCODES), cells, cells, cells, cells, cells)
goldens = st.builds(
    Golden,
    st.sampled_from(["none", "data=2, model=4", "a\\x20b=1"]),
    st.dictionaries(golden_lines, st.integers(1, 10**6), max_size=6),
)


@given(goldens)
def test_generated_texts_are_read_as_they_were_written(golden: Golden) -> None:
    """Reading is the inverse of writing, and writing again gives the same characters."""
    text = str(golden)
    assert read_golden(text, path="g") == golden
    assert str(read_golden(text, path="g")) == text


@given(goldens, goldens)
def test_generated_texts_differ_where_their_differences_say(before: Golden, after: Golden) -> None:
    """Taking away the lines with - and adding those with + leads from one to the other."""
    lines, grown = differences(before, after)
    assert (lines == []) == (before == after)
    counts = dict(before.lines)
    for line in [each for each in lines if " mesh: " not in each[:8]]:
        sign, cells_of = line[0], line[2:].split("  ")
        key = GoldenLine(*cells_of[1:])
        if sign == "-":
            assert counts.pop(key) == int(cells_of[0])
        else:
            counts[key] = int(cells_of[0])
    assert counts == after.lines
    assert set(grown) == {line for line, count in after.lines.items() if count > before.lines.get(line, 0)}


def test_blanks_comments_and_line_ends_mean_nothing(golden: Callable[..., str]) -> None:
    """A text that somebody laid out anew says the same."""
    text = golden(GATHER.format("g", "[2,4]<=[8]"))
    again = text.replace("  ", "    ").replace("\n", "\r\n").replace("mesh:", "# why\n\nmesh:")
    assert read_golden(again, path="g") == read_golden(text, path="g")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# commlens golden 1", "# commlens golden 2", "g:1:1: expected '# commlens golden 1' in the first line"),
        ("# commlens golden 1\n", "", "g:1:1: .*found '# What the program"),
        ("mesh: data=2, model=4\n", "", "g:4:1: expected the mesh, .*found 'count"),
        ("count ", "number", "g:5:1: expected the heads count, opcode"),
        ("1      all-gather", "one    all-gather", "g:6:1: expected a count, an opcode and 5 more cells"),
        ("all-gather", "all-father", "g:6:1: expected a count, an opcode"),
        ("2 of 4  ", "", "g:6:1: expected a count, an opcode"),
        ("64 -> 256", "64  ->  256", "g:6:1: expected a count, an opcode"),
    ],
)  # fmt: skip
def test_what_is_no_golden_text_is_refused_with_its_place(
    golden: Callable[..., str], old: str, new: str, message: str
) -> None:
    """Other versions, cut and broken texts are named, and nothing is taken for an empty table."""
    text = golden(GATHER.format("g", "[2,4]<=[8]"))
    assert old in text
    with pytest.raises(InputError, match=message):
        read_golden(text.replace(old, new, 1), path="g")


@pytest.mark.parametrize("lines", range(5))
def test_a_cut_text_is_refused(golden: Callable[..., str], lines: int) -> None:
    """A text that ends before its table is no text of a module that communicates nothing."""
    with pytest.raises(InputError, match="golden file"):
        read_golden("\n".join(golden().splitlines()[: lines and lines - 1]), path="g")
