"""The index of a text: where its modules, computations and communicating instructions stand.

Made in one pass. The fast path (:mod:`~commlens.hlo.text.scanner`) takes block after block; where a block is not as
printed, the slow path (:mod:`~commlens.hlo.text.lenient_scanner`) reads whole items until behind it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from commlens.hlo.text.lenient_scanner import behind_item, header_end, next_item
from commlens.hlo.text.scanner import BLOCK, Scanner
from commlens.hlo.text.tokens import NAME, blank_comments, unbalanced

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from commlens.hlo.text.lenient_scanner import Item
    from commlens.hlo.text.scanner import Block, Positions
    from commlens.hlo.text.tokens import Text

_HEADER = re.compile(rb"^(?:[^\n\w]*|[IWEF]\d{4}[^\n\]]*\] *)HloModule\b", re.MULTILINE)
_STRAY = re.compile(rb"^[ \t]*(?:ENTRY\b[^\n]*|%?" + NAME + rb"[ \t]*(?:\([^\n]*)?)\{", re.MULTILINE)
"""A line between computations that may be one itself: a computation on a single line."""
_MARK = b"ENTRY"
_SHORTEST_ITEM = len(b"}\ne{}\n")


@dataclass(frozen=True, slots=True)
class Index:
    """Positions of everything of interest in one text, in file order.

    Attributes:
        opened: where the line of each computation's header starts.
        bodies: offset behind each computation's opening brace.
        ends: offset of each computation's closing brace, or where it was cut.
        irregular: for computations that the slow path read, where their instructions start.
        loose: computations that are no computations: instructions that stand in none.
        unclosed: computations without a closing brace.
        headers: spans of module headers.
        hits: opening parentheses behind opcodes that may communicate or call, in regular computations.
        hit_lines: where their lines start.
        hit_ends: where their lines end.
        hit_numbers: their line numbers, counted from 1.
        fusions: opening parentheses behind ``fusion``, in regular computations.
    """

    opened: NDArray[np.int64]
    bodies: NDArray[np.int64]
    ends: NDArray[np.int64]
    irregular: dict[int, tuple[int, ...]]
    loose: frozenset[int]
    unclosed: frozenset[int]
    headers: list[tuple[int, int]]
    hits: NDArray[np.int64]
    hit_lines: NDArray[np.int64]
    hit_ends: NDArray[np.int64]
    hit_numbers: NDArray[np.int64]
    fusions: NDArray[np.int64]


def make_index(text: Text) -> Index:
    """Index a text.

    Args:
        text: the whole file.

    Returns:
        Its index. Nothing is refused: what cannot be made out is simply not there, and the caller says so.
    """
    builder = _Builder(text)
    scanner = Scanner(text)
    position = 0
    while position < len(text):
        end = _block_end(text, position)
        block = scanner.scan(position, end, inside=builder.is_open)
        regular = block is not None and builder.takes(block, end)
        position = end if regular else builder.read_leniently(position, end)
    if builder.is_open and _closes_on_last_line(text):
        builder.read_leniently(len(text), len(text))
    return builder.finish()


def _closes_on_last_line(text: Text) -> bool:
    """Whether the last line ends in a brace that none on it opens: that of its computation, perhaps."""
    end = len(text)
    while end and text[end - 1 : end].isspace():
        end -= 1
    line = blank_comments(text[text.rfind(b"\n", 0, end) + 1 : end]).rstrip()
    return line.endswith(b"}") and unbalanced(line, 0, len(line)) == len(line) - 1


def _block_end(text: Text, position: int) -> int:
    """Return where the block that starts at ``position`` ends: behind a line end, or at the end of the text."""
    if position + BLOCK >= len(text):
        return len(text)
    end = text.rfind(b"\n", position, position + BLOCK) + 1
    if end > position:
        return end
    end = text.find(b"\n", position) + 1
    return end or len(text)


@dataclass(slots=True)
class _Builder:
    """Collects blocks and items."""

    text: Text
    lines: int = 1
    is_open: bool = False
    opened: list[int] = field(default_factory=list[int])
    bodies: list[int] = field(default_factory=list[int])
    ends: list[int] = field(default_factory=list[int])
    irregular: dict[int, tuple[int, ...]] = field(default_factory=dict[int, "tuple[int, ...]"])
    loose: set[int] = field(default_factory=set[int])
    unclosed: set[int] = field(default_factory=set[int])
    headers: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    blocks: list[Block] = field(default_factory=list["Block"])
    numbers: list[Positions] = field(default_factory=list["Positions"])
    last_close: int | None = None

    def takes(self, block: Block, end: int) -> bool:
        """Add a regular block, unless something of interest stands outside its computations."""
        opened, closed = block.opened.tolist(), block.closed.tolist()
        if block.hits.size and not self._all_inside(block):
            return False
        before = [] if self.is_open else [self.ends[-1] + 1 if self.ends else 0]
        gaps = [
            gap for gap in zip([*before, *closed], [*opened, end], strict=False) if gap[1] - gap[0] >= _SHORTEST_ITEM
        ]
        if any(_STRAY.search(self.text, *gap) or self._ends_in_mark(*gap) for gap in gaps):
            return False
        self._find_headers(gaps)
        self.opened += opened
        self.bodies += block.bodies.tolist()
        self.ends += closed
        self.is_open = len(self.ends) < len(self.opened)
        self.blocks.append(block)
        self.numbers.append(block.hit_numbers + self.lines)
        self.lines += block.lines
        return True

    def _all_inside(self, block: Block) -> bool:
        begun = np.searchsorted(block.opened, block.hits) + int(self.is_open)
        finished = np.searchsorted(block.closed, block.hits)
        return bool(np.all(begun == finished + 1))

    def _ends_in_mark(self, start: int, stop: int) -> bool:
        """Whether ``ENTRY`` stands at the end of a gap: before the name of a computation that is on a line below."""
        found = self.text.find(_MARK, start, stop) >= 0
        return found and blank_comments(self.text[start:stop]).rstrip().endswith(_MARK)

    def _find_headers(self, gaps: list[tuple[int, int]]) -> None:
        """Look for module headers in the gaps between computations."""
        known = self.headers[-1][1] if self.headers else -1
        for start, stop in gaps:
            self.headers += [
                (match.start(), header_end(self.text, match.end()))
                for match in _HEADER.finditer(self.text, start, stop)
                if match.start() >= known
            ]

    def read_leniently(self, start: int, end: int) -> int:
        """Read items from before ``start`` until behind ``end``; return where to go on."""
        if self.is_open:
            position = self.opened[-1]
            self._forget_from(position)
        else:
            position = start
        while position < end:
            position = behind_item(self.text, position, self._last_close())
            if position > end:  # in the midst of a line, perhaps
                end = self._line_start_behind(position)
            item = next_item(self.text, position)
            if item is None or item.start >= end:
                position = end
                break
            self._add(item)
            position = item.resume
        position = self._line_start_behind(position)
        between = np.frombuffer(self.text, dtype=np.uint8)[start:position]
        self.lines += int(np.count_nonzero(between == ord("\n")))
        return position

    def _last_close(self) -> int:
        """Return where the last comment of the text closes; it is looked for once."""
        if self.last_close is None:
            self.last_close = self.text.rfind(b"*/")
        return self.last_close

    def _forget_from(self, position: int) -> None:
        """Drop the open computation and what was found in it: it will be read again."""
        del self.opened[-1], self.bodies[-1]
        self.is_open = False
        for number in reversed(range(len(self.blocks))):
            block = self.blocks[number]
            if block.end <= position:
                break
            keep = block.hits < position
            self.numbers[number] = self.numbers[number][keep]
            self.blocks[number] = block.before(position)

    def _line_start_behind(self, position: int) -> int:
        """Return the start of the first line that begins at or behind a position."""
        if position == 0 or self.text[position - 1 : position] == b"\n":
            return position
        newline = self.text.find(b"\n", position)
        return len(self.text) if newline < 0 else newline + 1

    def _add(self, item: Item) -> None:
        if item.kind == "header":
            self.headers.append((item.start, item.end))
        if item.kind in ("header", "tables"):
            return
        number = len(self.opened)
        self.opened.append(item.start)
        self.bodies.append(item.body)
        self.ends.append(item.end)
        self.irregular[number] = item.starts
        if item.kind == "loose":
            self.loose.add(number)
        elif not item.closed:
            self.unclosed.add(number)

    def finish(self) -> Index:
        """Return the index."""
        if self.is_open:
            self.ends.append(len(self.text))
            self.unclosed.add(len(self.opened) - 1)
        blocks = self.blocks
        return Index(
            opened=np.array(self.opened, dtype=np.int64),
            bodies=np.array(self.bodies, dtype=np.int64),
            ends=np.array(self.ends, dtype=np.int64),
            irregular=self.irregular,
            loose=frozenset(self.loose),
            unclosed=frozenset(self.unclosed),
            headers=self.headers,
            hits=_joined([block.hits for block in blocks]),
            hit_lines=_joined([block.hit_lines for block in blocks]),
            hit_ends=_joined([block.hit_ends for block in blocks]),
            hit_numbers=_joined(self.numbers),
            fusions=_joined([block.fusions for block in blocks]),
        )


def _joined(parts: list[Positions]) -> Positions:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
