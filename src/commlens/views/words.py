"""Words and figures for people: printable text, byte sizes, counts.

Names, paths and attributes in a module come from strangers. Everything that reaches a terminal or a page goes through
:func:`printable` first, so that no control character, direction override or line break of theirs is acted upon.
"""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from typing import Final, Literal

UNKNOWN: Final = "?"
"""What stands where a figure is not known."""

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB")


def printable(text: str) -> str:
    r"""Return a text with everything that is not a printable character written as an escape.

    Example:
        >>> printable("all-gather.1"), printable("a\x1b[31mb\nc\u202e")
        ('all-gather.1', 'a\\x1b[31mb\\nc\\u202e')
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(character) for character in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def width_of(text: str) -> int:
    """Return how many columns a printable text takes on a terminal.

    Example:
        >>> width_of("abc"), width_of("集合")
        (3, 4)
    """
    if text.isascii():
        return len(text)
    return sum(_width_of_character(character) for character in text)


def _width_of_character(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Return a printable text that takes at most some columns; what is left out is marked by an ellipsis.

    Example:
        >>> cut("reduce-scatter", 20), cut("reduce-scatter", 8)
        ('reduce-scatter', 'reduce-…')
    """
    if width_of(text) <= width:
        return text
    taken: list[str] = []
    room = width - 1
    for character in text:
        room -= _width_of_character(character)
        if room < 0:
            break
        taken.append(character)
    return "".join(taken) + "…" if width > 0 else ""


def pad(text: str, width: int, align: Literal["left", "right"]) -> str:
    """Return a printable text filled up with blanks to some columns.

    Example:
        >>> pad("7", 3, "right"), pad("ab", 4, "left")
        ('  7', 'ab  ')
    """
    blanks = " " * (width - width_of(text))
    return blanks + text if align == "right" else text + blanks


def byte_size(number: float) -> str:
    """Return a number of bytes to three digits, in binary units.

    Args:
        number: bytes, 0 or more; ints of any size.

    Example:
        >>> byte_size(96), byte_size(1536), byte_size(4 << 20), byte_size(123_456_789), byte_size(1024**3 - 1)
        ('96 B', '1.5 KiB', '4 MiB', '118 MiB', '1 GiB')
        >>> byte_size(1 << 200)
        '1.61e60 B'
    """
    if number < 1000:
        return f"{_three_digits(number)} B"
    whole = round(number)
    power = (whole.bit_length() - 1) // 10
    if round(whole / 1024**power) >= 1024:  # 1023.9 KiB would read 1024 KiB
        power += 1
    if power >= len(_UNITS):
        return f"{Decimal(whole):.2e} B".replace("e+", "e")
    return f"{_three_digits(whole / 1024**power)} {_UNITS[power]}"


def _three_digits(value: float) -> str:
    decimals = 0 if value >= 100 else 1 if value >= 10 else 2
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def exact(number: float) -> str:
    """Return a figure in full, with thousands separators.

    Example:
        >>> exact(1610612736), exact(2000 / 3)
        ('1,610,612,736', '666.67')
    """
    return f"{number:,}" if isinstance(number, int) else f"{number:,.2f}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    Example:
        >>> counted(1, "group"), counted(1200, "group"), counted(2, "ax", "axes")
        ('1 group', '1,200 groups', '2 axes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
