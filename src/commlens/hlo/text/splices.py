"""Replacing parts of a text: every byte outside them stays as it is."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from commlens.hlo.edits import EditError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.hlo.text.tokens import Text


class Splice(NamedTuple):
    """A part of a text and what stands there instead.

    Attributes:
        start: offset of the first byte that goes.
        end: offset behind the last one; the start itself where something is only put in.
        replacement: the new bytes.
    """

    start: int
    end: int
    replacement: bytes


def spliced(text: Text, splices: Iterable[Splice], start: int = 0, end: int | None = None) -> bytes:
    """Return a part of a text with splices made.

    Args:
        text: the whole file.
        splices: what to replace, in any order.
        start: offset where the part begins.
        end: offset behind it, None for the end of the text.

    Raises:
        EditError: two splices change the same bytes or put something in at the same place, or one lies outside.

    Example:
        >>> spliced(b"channel_id=7, x", [Splice(11, 12, b"12"), Splice(12, 12, b", y=1")])
        b'channel_id=12, y=1, x'
    """
    ordered = sorted(splices)
    stop = len(text) if end is None else end
    pieces: list[bytes | memoryview] = []
    done = start
    with memoryview(text) as view:
        if ordered and not (start <= ordered[0].start and ordered[-1].end <= stop):
            msg = f"expected changes between the offsets {start} and {stop}, found some outside"
            raise EditError(msg)
        for one, other in pairwise(ordered):
            if one.end > other.start or one[:2] == other[:2]:
                msg = f"expected each change at a place of its own, found two at offset {other.start}"
                raise EditError(msg)
        for splice in ordered:
            pieces += (view[done : splice.start], splice.replacement)
            done = splice.end
        pieces.append(view[done:stop])
        return b"".join(pieces)
