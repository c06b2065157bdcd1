"""The records of a log: its lines without colours and prefixes, those that belong together put together.

A log may be large, so it is read in blocks, and a line that holds none of the words that somebody listens for costs one
search over its block. What a terminal or a logger broke over several lines is joined again: a record goes on while a
bracket that it opened is open, along the lines of its own host where those of many hosts are mixed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK: Final = 1 << 20
_MOST_LINES: Final = 400
_MOST_CHARACTERS: Final = 1 << 24

_COLOURS: Final = re.compile(rb"\x1b(?:\[[0-9;?]{0,32}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)?)")
_HOST: Final = re.compile(
    r"\s{0,16}(?:\[([A-Za-z][\w.:/-]{0,80})\][ \t]?[:|>]?|\(([^()]{1,120} pid=[^()]{1,80})\)|([\w.-]{1,80}) ?\|)\s?"
)
_NEW: Final = re.compile(
    r"\s{0,8}(?:[IWEF]\d{4} \d|\d{4}-\d\d-\d\d[ T]\d\d:|\d\d:\d\d:\d\d|(?:INFO|WARN|WARNING|ERROR|FATAL|DEBUG)\b)"
)
_OPENING: Final = re.compile(r"(?:RendezvousKey|CliqueKey)\s{0,4}\{|(?:devices|groups)\s{0,2}=\s{0,2}[\[{]")
_CUT_SHORT: Final = ("RendezvousKey", "CliqueKey", "devices", "devices=", "groups=")


class LogStream(Protocol):
    """What a log is read from: a binary file, or anything that gives its bytes piece by piece."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most so many; none at the end."""
        ...


@dataclass(frozen=True, slots=True)
class Record:
    """One message of a log.

    Attributes:
        line: the line on which it begins, counted from 1.
        text: what it says, without colours and the name of the host; a line break stands where one was.
        is_whole: whether it ends where it should; False where a bracket is left open.
    """

    line: int
    text: str
    is_whole: bool = True


@dataclass(slots=True)
class _Open:
    """A record that goes on."""

    line: int
    parts: list[str] = field(default_factory=list[str])
    depth: int = 0
    characters: int = 0

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.characters += len(text)
        whole = "\n".join(self.parts) if len(self.parts) < 3 else text
        self.depth = _depth(whole) if len(self.parts) < 3 else self.depth + _balance(text)

    def ends(self) -> bool:
        return self.depth <= 0 and not self.parts[-1].rstrip().endswith(_CUT_SHORT)

    def record(self, *, is_whole: bool) -> Record:
        return Record(self.line, "\n".join(self.parts), is_whole)


@dataclass(frozen=True, slots=True)
class Needles:
    """What makes a line worth looking at.

    Attributes:
        words: pieces of text; each costs one pass over the log at the speed of memory.
        patterns: patterns that begin with one character that is not a letter, for the same reason.
    """

    words: tuple[bytes, ...]
    patterns: tuple[re.Pattern[bytes], ...] = ()

    def places(self, block: bytes) -> list[int]:
        """Return where in a block some needle is, in order; not more than once per line for each word."""
        found: list[int] = []
        for word in self.words:
            place = block.find(word)
            while place >= 0:
                found.append(place)
                end = block.find(b"\n", place)
                place = -1 if end < 0 else block.find(word, end)
        for pattern in self.patterns:
            match = pattern.search(block)
            while match is not None:
                found.append(match.start())
                end = block.find(b"\n", match.end())
                match = None if end < 0 else pattern.search(block, end)
        return sorted(found)


def records_of(log: LogStream, needles: Needles) -> Iterator[Record]:
    r"""Yield the records of a log that hold something, in the order in which they are complete.

    Args:
        log: the log; read in blocks, whatever bytes it holds.
        needles: what makes a line worth looking at. Colours are taken out first.

    Example:
        >>> import io
        >>> log = io.BytesIO(b"step 1\n[host3]: \x1b[31mdevices=[0,\n[host7]: step 2\n[host3]: 1]\x1b[0m; stream=0\n")
        >>> list(records_of(log, Needles((b"devices=",))))
        [Record(line=2, text='devices=[0,\n1]; stream=0', is_whole=True)]
    """
    pending: dict[str, _Open] = {}
    line = 1
    for block in _blocks(log):
        clean = _COLOURS.sub(b"", block) if b"\x1b" in block else block
        places = needles.places(clean)
        next_place = 0
        position = 0
        while position < len(clean) and (pending or next_place < len(places)):
            if not pending:
                start = clean.rfind(b"\n", position, places[next_place]) + 1 or position
                line += clean.count(b"\n", position, start)
                position = start
            end = clean.find(b"\n", position)
            end = len(clean) if end < 0 else end
            is_hit = next_place < len(places) and places[next_place] <= end
            while next_place < len(places) and places[next_place] <= end:
                next_place += 1
            yield from _taken(clean[position:end].decode("utf-8", "replace"), line, pending, is_hit=is_hit)
            line += 1
            position = end + 1
        line += clean.count(b"\n", position)
    yield from (each.record(is_whole=False) for each in pending.values())


def _blocks(log: LogStream) -> Iterator[bytes]:
    """Yield the log in pieces of whole lines."""
    kept: list[bytes] = []
    while block := log.read(_BLOCK):
        cut = block.rfind(b"\n") + 1
        if not cut:
            kept.append(block)
            continue
        yield b"".join([*kept, block[:cut]])
        kept = [block[cut:]] if cut < len(block) else []
    if kept:
        yield b"".join(kept)


def _taken(text: str, line: int, pending: dict[str, _Open], *, is_hit: bool) -> Iterator[Record]:
    """Take a line: add it to what is open on its host, or begin a record with it."""
    text = text.rstrip("\r")
    match = _HOST.match(text)
    host = "" if match is None else match[1] or match[2] or match[3]
    rest = text if match is None else text[match.end() :]
    opened = pending.get(host)
    if opened is not None:
        if _NEW.match(rest) is None and _fits(opened):
            opened.add(rest)
            if opened.ends():
                yield pending.pop(host).record(is_whole=True)
            return
        yield pending.pop(host).record(is_whole=False)
    if is_hit:
        begun = _Open(line)
        begun.add(rest)
        if begun.ends():
            yield begun.record(is_whole=True)
        else:
            pending[host] = begun


def _fits(opened: _Open) -> bool:
    return len(opened.parts) < _MOST_LINES and opened.characters < _MOST_CHARACTERS


def _depth(text: str) -> int:
    """Return how many brackets are open at the end, counted from the first key of a rendezvous or clique."""
    opening = _OPENING.search(text)
    return 0 if opening is None else _balance(text[opening.start() :])


def _balance(text: str) -> int:
    return sum(text.count(each) for each in "[{") - sum(text.count(each) for each in "]}")
