"""Longest common and longest rising subsequences: what two lists have in the same order.

Both are exact and give the same answer every time. The common subsequence is found with whole rows of the table of
lengths held as the bits of one integer, so that lists of ten thousand things take a fraction of a second however much
they differ. Sources: "Bit-parallel LCS-length computation revisited" (Hyyrö, 2004); for lists that are too long for
the whole table "A linear space algorithm for computing maximal common subsequences" (Hirschberg, 1975).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

_MOST_BITS: Final = 1 << 28
"""Largest table of lengths that is held at once: 32 MiB."""


def longest_common_subsequence(
    a: Sequence[Hashable], b: Sequence[Hashable], *, most_bits: int = _MOST_BITS
) -> list[tuple[int, int]]:
    """Find a longest list of things that stand in both lists in the same order.

    Args:
        a: one list.
        b: the other.
        most_bits: largest table that is held at once; longer lists are cut.

    Returns:
        Positions in ``a`` and in ``b`` of equal things, both rising.

    Example:
        >>> longest_common_subsequence("gather", "gthaer")
        [(0, 0), (2, 1), (3, 2), (4, 4), (5, 5)]
    """
    start, stop_a, stop_b = _trimmed(a, b)
    shared = set(a[start:stop_a]) & set(b[start:stop_b])
    places_a = [place for place in range(start, stop_a) if a[place] in shared]
    places_b = [place for place in range(start, stop_b) if b[place] in shared]
    numbers: dict[Hashable, int] = {}
    inner_a = [numbers.setdefault(a[place], len(numbers)) for place in places_a]
    inner_b = [numbers.setdefault(b[place], len(numbers)) for place in places_b]
    pairs = [(place, place) for place in range(start)]
    pairs += [(places_a[i], places_b[j]) for i, j in _common(inner_a, inner_b, most_bits)]
    pairs += zip(range(stop_a, len(a)), range(stop_b, len(b)), strict=True)
    return pairs


def longest_increasing_subsequence(values: Sequence[int]) -> list[int]:
    """Find a longest list of positions at which values rise strictly.

    Example:
        >>> longest_increasing_subsequence([2, 0, 1, 4, 3])
        [1, 2, 4]
    """
    ends: list[int] = []  # the smallest value that a rising list of each length can end with
    last: list[int] = []  # where that value stands
    before: list[int] = []
    for position, value in enumerate(values):
        length = bisect_left(ends, value)
        before.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(value)
            last.append(position)
        else:
            ends[length], last[length] = value, position
    found: list[int] = []
    position = last[-1] if last else -1
    while position >= 0:
        found.append(position)
        position = before[position]
    return found[::-1]


def _trimmed(a: Sequence[Hashable], b: Sequence[Hashable]) -> tuple[int, int, int]:
    """Return where the lists begin to differ and where in each they have ceased to."""
    start, most = 0, min(len(a), len(b))
    while start < most and a[start] == b[start]:
        start += 1
    stop_a, stop_b = len(a), len(b)
    while stop_a > start and stop_b > start and a[stop_a - 1] == b[stop_b - 1]:
        stop_a, stop_b = stop_a - 1, stop_b - 1
    return start, stop_a, stop_b


def _common(a: list[int], b: list[int], most_bits: int) -> list[tuple[int, int]]:
    """Find the pairs of two lists of small numbers, cutting them until their tables fit."""
    found: list[tuple[int, int]] = []
    pending = [(0, len(a), 0, len(b))]
    while pending:
        first_a, end_a, first_b, end_b = pending.pop()
        width, height = end_a - first_a, end_b - first_b
        if not width or not height:
            continue
        part_a, part_b = a[first_a:end_a], b[first_b:end_b]
        if width * height <= most_bits or height == 1:
            found += [(i + first_a, j + first_b) for i, j in _traced(part_a, part_b)]
        else:
            middle = height // 2
            cut = _best_cut(part_a, part_b, middle)
            pending.append((first_a + cut, end_a, first_b + middle, end_b))
            pending.append((first_a, first_a + cut, first_b, first_b + middle))
    return found


def _best_cut(a: list[int], b: list[int], middle: int) -> int:
    """Return where to cut ``a`` so that the halves have as much in common as the wholes."""
    ahead = _lengths(a, b[:middle])
    behind = _lengths(a[::-1], b[middle:][::-1])[::-1]
    return int(np.argmax(ahead + behind))


def _lengths(a: list[int], b: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return, for every beginning of ``a``, the length of what it has in common with ``b``."""
    [row] = deque(_rows(a, b), maxlen=1)
    size = len(a) // 8 + 1
    bits = np.unpackbits(np.frombuffer(row.to_bytes(size, "little"), dtype=np.uint8), bitorder="little")[: len(a)]
    return np.concatenate([[0], np.cumsum(1 - bits.astype(np.int64))])


def _rows(a: list[int], b: list[int]) -> Iterator[int]:
    """Yield, for every beginning of ``b``, a row of the table: bit i is 0 where the length grows with ``a[i]``."""
    masks: dict[int, int] = {}
    for position, value in enumerate(a):
        masks[value] = masks.get(value, 0) | 1 << position
    everything = (1 << len(a)) - 1
    row = everything
    for value in b:
        taken = row & masks.get(value, 0)
        row = (row + taken | row - taken) & everything
        yield row


def _traced(a: list[int], b: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of two lists from a whole table."""
    rows = list(_rows(a, b))
    i, j = len(a) - 1, len(b) - 1
    pairs: list[tuple[int, int]] = []
    while i >= 0 and j >= 0:
        if rows[j] >> i & 1:
            i -= 1
        elif j and not rows[j - 1] >> i & 1:
            j -= 1
        else:
            pairs.append((i, j))
            i, j = i - 1, j - 1
    return reversed(pairs)
