"""Texts and figures for people."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.views.words import byte_size, counted, cut, exact, pad, printable, width_of

UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB")


@given(st.text())
def test_printable_leaves_nothing_to_act_upon(text: str) -> None:
    """Whatever a name holds, what is shown of it is printable, and shown again it stays the same."""
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("fusion.12", "fusion.12", id="plain"),
        pytest.param("Größe 集合", "Größe 集合", id="other-scripts-are-left-alone"),
        pytest.param("\x1b[2J", "\\x1b[2J", id="terminal-command"),
        pytest.param("a\nb\rc\td", "a\\nb\\rc\\td", id="line-breaks"),
        pytest.param("\x9b31m", "\\x9b31m", id="eight-bit-terminal-command"),
        pytest.param("\u202egnp.exe", "\\u202egnp.exe", id="right-to-left-override"),
        pytest.param("a\u2028b\u00a0c", "a\\u2028b\\xa0c", id="odd-blanks"),
        pytest.param("\udcff", "\\udcff", id="byte-that-was-no-utf-8"),
        pytest.param("\U000e0041", "\\U000e0041", id="invisible-tag"),
    ],
)
def test_printable_names_what_it_replaces(text: str, shown: str) -> None:
    """Characters that are no plain print are written as escapes."""
    assert printable(text) == shown


@given(st.text(), st.integers(0, 20))
def test_cut_fits(text: str, width: int) -> None:
    """A cut text fits, keeps the beginning, and is left alone when it fits anyway."""
    text = printable(text)
    short = cut(text, width)
    assert width_of(short) <= width
    assert short == text if width_of(text) <= width else text.startswith(short[:-1])


@given(st.text(), st.integers(0, 20), st.sampled_from(["left", "right"]))
def test_pad_fills_up(text: str, more: int, align: str) -> None:
    """Padding adds blanks on the one side or the other and nothing else."""
    text = printable(text)
    width = width_of(text) + more
    padded = pad(text, width, "left" if align == "left" else "right")
    assert padded == (text + " " * more if align == "left" else " " * more + text)


def size_by_fractions(number: int) -> tuple[Fraction, int]:
    """Return a number in the largest unit in which it is at least 1, by exact fractions: a slow twin."""
    value, unit = Fraction(number), 0
    while value >= 1024 and unit < len(UNITS) - 1:
        value /= 1024
        unit += 1
    return value, unit


@given(st.integers(0, 1023 * 1024**8))
def test_byte_size_is_right_to_three_digits(number: int) -> None:
    """The rounded figure is within half a unit of its third digit, in the right unit, and never reads 1024."""
    value, unit = size_by_fractions(number)
    digits, name = byte_size(number).split()
    shown = Fraction(digits)
    assert shown < 1024
    if UNITS.index(name) == unit + 1:  # 1023.9 KiB reads 1 MiB
        shown *= 1024
    else:
        assert UNITS.index(name) == unit
    assert abs(shown - value) <= max(value, 1) / 200


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (999, "999 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1047552, "1023 KiB"),
        (1048575, "1 MiB"),
        (2000 / 3, "667 B"),
        (1024**9, "1.24e27 B"),
        (10**400, "1.00e400 B"),
    ],
)
def test_byte_size_at_the_borders(number: float, text: str) -> None:
    """Whole figures show no digits after the point; figures beyond all units and beyond floats are still shown."""
    assert byte_size(number) == text


def test_exact_is_exact() -> None:
    """Large ints are shown digit by digit."""
    assert exact(2**70) == "1,180,591,620,717,411,303,424"


def test_counted_agrees_with_its_number() -> None:
    """Nouns take their plural for every number but 1."""
    assert [counted(number, "pair") for number in (0, 1, 2)] == ["0 pairs", "1 pair", "2 pairs"]
