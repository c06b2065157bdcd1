"""The fast path through HLO text as compilers print it: one pass of numpy over blocks of lines.

Printed text is regular. A computation opens with a line that ends in ``{`` and closes with a line that starts with
``}``; every line between them is indented by two blanks and holds one instruction; strings do not run over line ends.
For each block this is checked, not assumed, and a block that is different is left to
:mod:`~commlens.hlo.text.lenient_scanner`. That a line holds one instruction shows by its calls: outside strings there
is one opcode with a parenthesis behind it, so neither a second instruction nor one that stands as an operand, and the
line does not end in what goes on below.

What is found are positions only: opening and closing lines of computations, and the opening parenthesis behind every
opcode that may communicate or call. Whoever reads such a line decides whether it really is what it looks like.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commlens.hlo.text.tokens import Text

    Positions = NDArray[np.int64]
    Bytes = NDArray[np.uint8]

BLOCK: Final = 512 * 1024
"""Bytes per block: small enough to stay in the cache, large enough to hide the cost of numpy's calls."""

_NEWLINE, _QUOTE, _BACKSLASH, _PAREN, _STAR, _SLASH, _BLANK, _OPEN, _CLOSE, _H, _RETURN = b'\n"\\(*/ {}H\r'


def _ending(text: bytes) -> int:
    """Return up to eight bytes as the number that they are in front of a position, read as little-endian."""
    return int.from_bytes(text, "little")


def _suffix(text: bytes) -> tuple[np.uint64, int]:
    """Return how far to shift the eight bytes before a position to compare their end with a text, and its number."""
    return np.uint64(8 * (8 - len(text))), _ending(text)


_EIGHT: Final = np.array(
    [
        _ending(name[-8:])
        for name in (
            b"all-reduce",
            b"all-gather",
            b"reduce-scatter",
            b"all-to-all",
            b"collective-permute",
            b"cross-replica-sum",
            b"conditional",
            b"custom-call",
        )
    ],
    dtype=np.uint64,
)
_BROADCAST: Final = (_ending(b"roadcast"), _ending(b"lective-b"[-8:]))
_SHORTER: Final = tuple(_suffix(name) for name in (b"-start", b" while", b" call", b" send", b" recv"))
_COPY_START: Final = _suffix(b"py-start")
_FUSION: Final = _suffix(b" fusion")
_BEHIND_A_SHAPE: Final = (*_SHORTER[1:], _FUSION)
_LAST_FOURS: Final = (
    *(b"duce", b"ther", b"tter", b"-all", b"mute", b"-sum", b"onal", b"call"),
    *(b"cast", b"tart", b"hile", b"send", b"recv", b"sion"),
)


def _slot(fours: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the slot of four bytes in a table of 1024: a multiplicative hash."""
    return fours * np.uint64(2654435761) >> np.uint64(22) & np.uint64(1023)


_LIKELY: Final = np.zeros(1024, dtype=bool)
"""Whether four bytes may end an opcode of interest: most parentheses are told from those by one look-up."""
_LIKELY[_slot(np.array([_ending(four) for four in _LAST_FOURS], dtype=np.uint64))] = True
_LIKELY.setflags(write=False)

_SHAPE_END: Final = np.zeros(256, dtype=bool)
_SHAPE_END[list(b")]}\t")] = True
"""Whether a byte before an opcode is the end of a shape, or a blank that no compiler prints there."""
_SHAPE_END.setflags(write=False)

_WORD_START: Final = np.zeros(256, dtype=bool)
_WORD_START[list(b"%_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")] = True
_WORD_START.setflags(write=False)

_OPCODE_END: Final = np.zeros(256, dtype=bool)
_OPCODE_END[list(b"abcdefghijklmnopqrstuvwxyz0123456789")] = True
_OPCODE_END.setflags(write=False)

_GOES_ON: Final = np.zeros(256, dtype=bool)
_GOES_ON[list(b",=([< \t\r")] = True
"""Whether a byte at the end of a line says that the instruction goes on below, or that lines end in two bytes."""
_GOES_ON.setflags(write=False)


@dataclass(frozen=True, slots=True)
class Block:
    """What one regular block holds; all positions are offsets in the file.

    Attributes:
        opened: for every computation that opens here, where its line starts.
        bodies: for each of those, where the line behind it starts.
        closed: for every computation that closes here, where its ``}`` stands.
        hits: opening parentheses behind opcodes that may communicate or call, fusions left out.
        hit_lines: where the lines of the hits start.
        hit_ends: where those lines end.
        hit_numbers: the numbers of those lines, counted from 0 at the start of the block.
        fusions: opening parentheses behind ``fusion``.
        end: where the block ends.
        lines: how many lines the block holds.
    """

    opened: Positions
    bodies: Positions
    closed: Positions
    hits: Positions
    hit_lines: Positions
    hit_ends: Positions
    hit_numbers: Positions
    fusions: Positions
    end: int
    lines: int

    def before(self, position: int) -> Block:
        """Return the block without the hits and fusions at or behind a position."""
        keep = self.hits < position
        return replace(
            self,
            hits=self.hits[keep],
            hit_lines=self.hit_lines[keep],
            hit_ends=self.hit_ends[keep],
            hit_numbers=self.hit_numbers[keep],
            fusions=self.fusions[self.fusions < position],
        )


class Scanner:
    """Scans blocks of one text.

    Args:
        text: the whole file.
    """

    def __init__(self, text: Text) -> None:
        self._size = len(text)
        self._bytes: Bytes = np.frombuffer(text, dtype=np.uint8)
        eights = max(self._size - 7, 0)
        self._eights: NDArray[np.uint64] = np.ndarray(eights, dtype="<u8", buffer=text if eights else b"", strides=(1,))

    def scan(self, start: int, end: int, *, inside: bool) -> Block | None:
        """Scan the lines from ``start`` to ``end``.

        Args:
            start: where a line starts.
            end: where a line starts, or the end of the text.
            inside: whether a computation is open at ``start``.

        Returns:
            What stands there, or None if the block is not regular.
        """
        text = self._bytes[start:end]
        newlines = np.flatnonzero(text == _NEWLINE)
        if not newlines.size or newlines[-1] != text.size - 1:
            newlines = np.append(newlines, text.size)  # the end of the text ends its last line
        line_starts = np.concatenate((np.zeros(1, dtype=np.int64), newlines[:-1] + 1))
        structure = self._computations(text, line_starts, newlines, inside=inside)
        if structure is None or self._has_comments(text, start):
            return None
        opening, closing, within = structure
        parens = np.flatnonzero(text == _PAREN)
        opcodes = self._opcodes(parens, start)
        if opcodes is None:
            return None
        hits, fusions = opcodes
        rows = np.searchsorted(newlines, hits)
        heads = np.zeros(newlines.size, dtype=bool)
        heads[opening] = True
        on_head = heads[rows]
        if np.any(text[hits[on_head] - 1] != _BLANK):
            return None  # "%main (x: f32[]) {" is no opcode, but this stands right before its parenthesis
        hits, rows = hits[~on_head], rows[~on_head]
        quotes = self._unescaped(text, np.flatnonzero(text == _QUOTE))
        if quotes is None:
            return None
        if np.any(np.searchsorted(quotes, newlines) & 1):
            return None  # a string runs over a line end
        calls = parens[_OPCODE_END[text[parens - 1]]]  # before one at the very start stands the end: no matter
        if not self._has_a_call_each(calls, line_starts[within], newlines[within], quotes):
            return None
        return Block(
            opened=line_starts[opening] + start,
            bodies=newlines[opening] + (start + 1),
            closed=line_starts[closing] + start,
            hits=hits + start,
            hit_lines=line_starts[rows] + start,
            hit_ends=newlines[rows] + start,
            hit_numbers=rows,
            fusions=fusions + start,
            end=end,
            lines=newlines.size,
        )

    def _computations(
        self, text: Bytes, line_starts: Positions, newlines: Positions, *, inside: bool
    ) -> tuple[Positions, Positions, NDArray[np.bool_]] | None:
        """Return the rows of the lines that open and close computations, and which rows stand between those.

        None if the block is not regular.
        """
        first = text[line_starts]
        indented = first == _BLANK
        last = text[np.maximum(newlines - 1, 0)]
        brace = last == _OPEN
        opening = np.flatnonzero(brace)
        heads = first[opening]
        if np.any(~_WORD_START[heads] | (heads == _H)):
            return None  # a module header, a brace whose name stands on a line before, or a name behind something else
        if np.any(_GOES_ON[last] & (indented | (last == _RETURN))):
            return None
        closing = np.flatnonzero(first == _CLOSE)
        starts = opening if not inside else np.concatenate((np.full(1, -1), opening))
        ends = closing
        if starts.size == ends.size + 1:
            ends = np.concatenate((closing, np.full(1, newlines.size)))
        if starts.size != ends.size or np.any(starts >= ends) or np.any(ends[:-1] >= starts[1:]):
            return None
        before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(indented)))
        if not np.array_equal(before[ends] - before[starts + 1], ends - starts - 1):
            return None  # a line inside a computation that is not indented
        rows = np.flatnonzero(indented)
        starts_of_indented = line_starts[rows]
        limit = text.size - 1
        regular = (text[np.minimum(starts_of_indented + 1, limit)] == _BLANK) & _WORD_START[
            text[np.minimum(starts_of_indented + 2, limit)]
        ]
        if not regular.all():
            return None
        steps = np.zeros(newlines.size + 1, dtype=np.int8)
        steps[starts + 1] += 1
        steps[ends] -= 1
        return opening, closing, np.cumsum(steps[:-1], dtype=np.int8).astype(bool)

    def _has_a_call_each(self, calls: Positions, starts: Positions, ends: Positions, quotes: Positions) -> bool:
        """Whether there is one opcode with a parenthesis behind it between each start and end, strings left out."""
        real = calls[np.searchsorted(quotes, calls) & 1 == 0]
        if real.size != starts.size:  # some may stand outside: in prose, in tables of stack frames
            line = np.searchsorted(starts, real) - 1
            real = real[(line >= 0) & (real < ends[line])] if starts.size else real[:0]
        return real.size == starts.size and bool(np.all((real > starts) & (real < ends)))

    def _has_comments(self, text: Bytes, start: int) -> bool:
        """Whether a block comment other than ``/*index=5*/`` starts in the block."""
        stars = np.flatnonzero(text == _STAR)
        stars = stars[(stars > 0) & (text[np.maximum(stars - 1, 0)] == _SLASH)]
        if not stars.size:
            return False
        behind = stars + (start + 1)
        if behind[-1] >= self._eights.size:
            return True
        index = self._eights[behind] << np.uint64(16) >> np.uint64(16)
        return bool(np.any(index != _ending(b"index=")))

    def _opcodes(self, parens: Positions, start: int) -> tuple[Positions, Positions] | None:
        """Return which parentheses stand behind opcodes of interest, and which behind ``fusion``.

        None where a parenthesis stands behind more than one blank, or a shape before an opcode without one: what is
        before it may be an opcode all the same.
        """
        if start < 8:
            parens = parens[parens >= 8 - start]
        if not parens.size:
            return parens, parens
        words = self._eights[parens + (start - 8)]
        likely = np.flatnonzero(_LIKELY[_slot(words >> np.uint64(32))] | (words >> np.uint64(56) <= _BLANK))
        parens, words = parens[likely], words[likely]
        wanted = np.isin(words, _EIGHT)
        for shift, value in _SHORTER:
            wanted |= words >> shift == value
        wanted &= words >> _COPY_START[0] != _COPY_START[1]
        broadcasts = np.flatnonzero(words == _BROADCAST[0])
        before = parens[broadcasts] + (start - 16)
        real = (before >= 0) & (self._eights[np.maximum(before, 0)] == _BROADCAST[1])
        wanted[broadcasts[real]] = True
        fusions = words >> _FUSION[0] == _FUSION[1]
        letters = words >> np.uint64(48) & np.uint64(0xFF)
        last = words >> np.uint64(56)
        spaced = last == _BLANK  # "opcode (": allowed, never printed; a tuple shape follows "= "
        if np.any(last < _BLANK):
            return None
        if np.any(spaced & (letters <= _BLANK)) or self._touch_shapes(words[~(wanted | fusions | spaced)]):
            return None
        wanted |= spaced & (letters >= ord("a")) & (letters <= ord("z"))
        return parens[wanted], parens[fusions]

    def _touch_shapes(self, words: NDArray[np.uint64]) -> bool:
        """Whether one of the shorter opcodes stands right behind a shape, given the bytes before parentheses."""
        for shift, value in _BEHIND_A_SHAPE if words.size else ():
            before = (words >> shift) - np.uint64(value - _BLANK)
            if np.any(_SHAPE_END[before[before < _SHAPE_END.size]]):
                return True
        return False

    def _unescaped(self, text: Bytes, quotes: Positions) -> Positions | None:
        """Drop escaped quotes; None where more than one backslash stands before a quote."""
        escaped = text[np.maximum(quotes - 1, 0)] == _BACKSLASH  # empty where there are no quotes
        if not escaped.any():
            return quotes
        if np.any(text[np.maximum(quotes[escaped] - 2, 0)] == _BACKSLASH):
            return None
        return quotes[~escaped]
