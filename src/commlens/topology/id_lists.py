"""Lists of lists of ids in HLO text: ``{{0,1},{2,3}}``.

A list of a million ids takes about as long as turning its digits into integers: the brackets are checked as bytes, and
only a text that does not pass is looked at token by token, to find the exact place of the fault.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from commlens.topology.tokens import WHITE_SPACE, Cursor

if TYPE_CHECKING:
    from commlens.topology.iota import IntArray

_SPACES = WHITE_SPACE.encode()
_DIGITS = b"0123456789-"
_ALLOWED = _DIGITS + b",{}" + _SPACES
_PARTED_NUMBER = re.compile(rb"[0-9-][ \t\r\n\v\f]+[0-9-]")


def parse_id_lists(text: str) -> tuple[IntArray, IntArray]:
    """Read a list of lists of integers.

    Args:
        text: the list and nothing else; white space and comments may stand between tokens.

    Returns:
        All integers in one array, and where each list starts in it, at last the number of integers.

    Raises:
        GrammarError: where the brackets or commas are wrong, or an integer does not fit in 64 bits.

    Example:
        >>> parse_id_lists("{{0,1}, {2}}")
        (array([0, 1, 2]), array([0, 2, 3]))
    """
    plain = _parse_plain(text)
    return _parse_carefully(text) if plain is None else plain


def _parse_plain(text: str) -> tuple[IntArray, IntArray] | None:
    """Read a list without comments or empty lists; None for any other and for any fault."""
    if not text.isascii():
        return None
    raw = text.encode()
    if raw.translate(None, _ALLOWED):
        return None
    compact = raw.translate(None, _SPACES)
    if len(compact) != len(raw) and _PARTED_NUMBER.search(raw):
        return None
    if not (compact.startswith(b"{{") and compact.endswith(b"}}")):
        return None
    inside = compact[2:-2]
    flat = inside.replace(b"},{", b",")
    if b"{" in flat or b"}" in flat:
        return None
    try:
        ids = np.fromiter(map(int, flat.split(b",")), dtype=np.int64, count=flat.count(b",") + 1)
    except (ValueError, OverflowError):
        return None
    return ids, _offsets(inside, ids.size)


def _offsets(inside: bytes, number: int) -> IntArray:
    """Where each list starts, from the marks between the first and the last integer."""
    marks = np.frombuffer(inside.translate(None, _DIGITS + b"{"), dtype=np.uint8)
    ends = np.flatnonzero(marks == ord("}"))
    offsets = np.empty(ends.size + 2, dtype=np.int64)
    offsets[0] = 0
    offsets[1:-1] = ends - np.arange(ends.size) + 1  # one integer more than there are commas before the mark
    offsets[-1] = number
    return offsets


def _parse_carefully(text: str) -> tuple[IntArray, IntArray]:
    cursor = Cursor(text)
    lists = cursor.items("{", "}", lambda: cursor.integers("{", "}", "an integer"))
    cursor.expect_end()
    offsets = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(each) for each in lists], out=offsets[1:])
    return np.array([number for each in lists for number in each], dtype=np.int64), offsets
