"""A module of a text, and finding the modules of a file."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from commlens.hlo.model import Call, Module, Unread
from commlens.hlo.signature import Site
from commlens.hlo.text.careful import find_instructions
from commlens.hlo.text.computation import TextComputation
from commlens.hlo.text.frames import StackFrames, read_frames
from commlens.hlo.text.index import Index, make_index
from commlens.hlo.text.instruction import TextInstruction
from commlens.hlo.text.lexis import NAME, as_text, blank_comments
from commlens.hlo.text.line import parse_attributes
from commlens.hlo.text.sites import IrregularLineError, LineReader, Other, is_caller, must_be_looked_into
from commlens.hlo.text.values import LOOKED_AT, read_integer, read_map

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from commlens.hlo.model import Computation, Instruction
    from commlens.hlo.text.lexis import Text

_HEADER: Final = re.compile(rb"\bHloModule\s+(?P<name>\"[^\"]*\"|[^\s,]+)")
_CALL_VALUES: Final = re.compile(
    rb"\b(?:to_apply|calls|body|condition|true_computation|false_computation|branch_computations|called_computations)"
    rb"\s*=\s*(\{[^{}]*\}|%?[\w.\-]+)"
)
_NAMES: Final = re.compile(rb"%?(" + NAME + rb")")


def read_modules(
    text: Text, path: str = "<text>", *, replicas: int | None = None, partitions: int | None = None
) -> list[TextModule]:
    r"""Find the modules of a text.

    Args:
        text: the whole file.
        path: what to call it in messages.
        replicas: replica count, where the user states it.
        partitions: partition count likewise.

    Returns:
        The modules in file order; empty where the text holds neither a computation nor instructions.

    Example:
        >>> [module.name for module in read_modules(b"HloModule a\nENTRY e { ROOT p = f32[] parameter(0) }\n")]
        ['a']
    """
    index = make_index(text)
    opened = index.opened.tolist()
    borders = [bisect_left(opened, start) for start, _ in index.headers]
    spans: list[tuple[int, int, tuple[int, int] | None]] = []
    if not borders or borders[0] > 0:
        spans.append((0, borders[0] if borders else len(opened), None))
    spans += [
        (first, last, header)
        for header, first, last in zip(index.headers, borders, [*borders[1:], len(opened)], strict=False)
    ]
    return [
        TextModule(text, index, first, last, header, path, replicas, partitions)
        for first, last, header in spans
        if last > first
    ]


class TextModule(Module):
    """One module of a text.

    Args:
        text: the whole file.
        index: the file's index.
        first: number of the module's first computation.
        last: number behind its last one.
        header: span of its ``HloModule`` header; None where there is none.
        path: what to call the file in messages.
        replicas: replica count stated by the user.
        partitions: partition count stated by the user.
    """

    format = "text"

    def __init__(
        self,
        text: Text,
        index: Index,
        first: int,
        last: int,
        header: tuple[int, int] | None,
        path: str,
        replicas: int | None,
        partitions: int | None,
    ) -> None:
        self.text = text
        self.path = path
        self._index = index
        self._first = first
        self._last = last
        self._header = header
        self._made: dict[int, TextComputation] = {}
        self._irregular = dict(index.irregular)
        self.replica_count, self.num_partitions = self._counts(replicas, partitions)
        self.name = self._name()

    def _counts(self, replicas: int | None, partitions: int | None) -> tuple[int | None, int | None]:
        """Return the counts: as the user states them, else as the header does, where one missing there is 1."""
        stated = {
            key: read_integer(self._header_attributes.get(key, b"")) for key in ("replica_count", "num_partitions")
        }
        known = any(count is not None for count in (replicas, partitions, *stated.values()))
        counts = (replicas or stated["replica_count"], partitions or stated["num_partitions"])
        return (counts[0] or 1, counts[1] or 1) if known else (None, None)

    @cached_property
    def _header_text(self) -> bytes:
        return b"" if self._header is None else blank_comments(self.text[self._header[0] : self._header[1]])

    @cached_property
    def _header_attributes(self) -> dict[str, bytes]:
        match = _HEADER.search(self._header_text)
        if match is None:
            return {}
        spans, _ = parse_attributes(self._header_text, match.end())
        return {key: self._header_text[start:end] for key, (start, end) in spans.items()}

    def _name(self) -> str:
        """Return the name in the header; without one ``module_`` and the entry's name, as XLA calls it."""
        match = _HEADER.search(self._header_text)
        if match is not None:
            return as_text(match["name"].strip(b'"'))
        entry = self.entry
        return f"module_{entry.name}" if entry is not None and entry.name else "module"

    @property
    def frontend_attributes(self) -> Mapping[str, str]:
        """The module's own frontend attributes."""
        return self._frontend_attributes

    @cached_property
    def _frontend_attributes(self) -> Mapping[str, str]:
        return read_map(self._header_attributes.get("frontend_attributes", b""))

    @cached_property
    def frames(self) -> StackFrames:
        """The stack frame tables."""
        start = 0 if self._header is None else self._header[1]
        return read_frames(self.text[start : int(self._index.opened[self._first])])

    @cached_property
    def _newlines(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.flatnonzero(np.frombuffer(self.text, dtype=np.uint8) == ord("\n"))

    def line_of(self, offset: int) -> int:
        """Return the number of the line in which an offset lies, counted from 1."""
        return int(np.searchsorted(self._newlines, offset)) + 1

    def _computation(self, number: int) -> TextComputation:
        made = self._made.get(number)
        if made is None:
            index = self._index
            made = self._made[number] = TextComputation(
                self,
                number,
                int(index.opened[number]),
                int(index.bodies[number]),
                int(index.ends[number]),
                self._irregular.get(number),
                loose=number in index.loose,
                closed=number not in index.unclosed,
            )
        return made

    @property
    def computations(self) -> tuple[TextComputation, ...]:
        """All computations in file order."""
        return self._computations

    @cached_property
    def _computations(self) -> tuple[TextComputation, ...]:
        return tuple(self._computation(number) for number in range(self._first, self._last))

    @cached_property
    def _by_name(self) -> dict[str, TextComputation]:
        found: dict[str, TextComputation] = {}
        for computation in self.computations:
            found.setdefault(computation.name, computation)
        return found

    def computation(self, name: str) -> TextComputation | None:
        """Return the computation of that name, None if there is none."""
        return self._by_name.get(name)

    @property
    def entry(self) -> TextComputation | None:
        """The computation marked ENTRY; without one the last, as XLA has it, unless the text was cut."""
        return self._entry

    @cached_property
    def _entry(self) -> TextComputation | None:
        bytes_ = np.frombuffer(self.text, dtype=np.uint8)
        opened = self._index.opened[self._first : self._last]
        likely = np.flatnonzero(np.isin(bytes_[opened], np.frombuffer(b"E \t\n\r}", dtype=np.uint8)))
        for position in likely.tolist():
            computation = self._computation(self._first + position)
            if computation.is_marked_entry:
                return computation
        last = self._computation(self._last - 1)
        cut = last.number in self._index.unclosed or last.is_loose or self._is_printed(last)
        return None if cut else last

    def _is_printed(self, last: TextComputation) -> bool:
        """Whether a compiler printed this module: then it had an entry, and a text without one was cut."""
        signature = b"->" in self.text[last.start : last.body]
        return signature or "entry_computation_layout" in self._header_attributes

    @property
    def is_cut(self) -> bool:
        """Whether the text ends inside the entry computation."""
        entry = self.entry
        return entry is not None and entry.number in self._index.unclosed

    @property
    def structure_faults(self) -> tuple[Unread, ...]:
        """Computations that are not closed, because the text was cut or a brace is missing."""
        return self._structure_faults

    @cached_property
    def _structure_faults(self) -> tuple[Unread, ...]:
        return tuple(
            self._unclosed(self._computation(number))
            for number in sorted(self._index.unclosed)
            if self._first <= number < self._last
        )

    def _unclosed(self, computation: TextComputation) -> Unread:
        text = as_text(self.text[computation.start : computation.start + 80].strip().split(b"\n")[0])
        why = (
            f"expected '}}' at the end of the computation {computation.name}, found the end of the text or another item"
        )
        return Unread(str(self.line_of(computation.start)), text, why)

    def to_bytes(self) -> bytes:
        """Return the module's text: the whole file where it holds no other module."""
        index = self._index
        headers = [start for start, _ in index.headers]
        start = 0 if self._first == 0 or self._header is None else self._header[0]
        later = [each for each in headers if self._header is None or each > self._header[0]]
        last = self._last == len(index.opened)
        return self.text[start:] if last else self.text[start : min(later, default=len(self.text))]

    @cached_property
    def _lines(self) -> tuple[list[tuple[TextComputation, list[Site | Instruction]]], list[TextInstruction]]:
        """What may communicate, by computation; and the instructions that run others, fusions left out."""
        reader = LineReader()
        found: dict[int, list[Site | Instruction]] = {}
        callers: list[TextInstruction] = []
        for number, reads in self._read_lines(reader):
            kept: list[Site | Instruction] = []
            for read in reads:
                if isinstance(read, Site):
                    kept.append(read)
                    continue
                if is_caller(read):
                    callers.append(read.instruction)
                if must_be_looked_into(read):
                    kept.append(read.instruction)
            if kept:
                found[number] = kept
        return [(self._computation(number), found[number]) for number in sorted(found)], callers

    def _read_lines(self, reader: LineReader) -> Iterator[tuple[int, list[Site | Other]]]:
        """Yield what stands on the lines of interest, computation by computation."""
        index = self._index
        low, high = np.searchsorted(index.hits, (index.opened[self._first], index.ends[self._last - 1])).tolist()
        numbers = np.searchsorted(index.opened, index.hits[low:high]) - 1
        borders = [low, *(np.flatnonzero(np.diff(numbers)) + (low + 1)).tolist(), high]
        for start, stop in pairwise(borders):
            if start < stop:
                number = int(numbers[start - low])
                try:
                    yield number, self._read_printed(reader, number, start, stop)
                except IrregularLineError:
                    self._irregular[number] = find_instructions(self.text, int(index.bodies[number]))[0]
                    self._made.pop(number, None)
        for number in sorted(self._irregular):
            if self._first <= number < self._last:
                yield number, self._read_irregular(reader, number)

    def _read_printed(self, reader: LineReader, number: int, start: int, stop: int) -> list[Site | Other]:
        """Read the printed lines of one computation, given which hits are its."""
        index, computation = self._index, self._computation(number)
        columns = (index.hits, index.hit_lines, index.hit_ends, index.hit_numbers)
        found: list[Site | Other] = []
        last_line = -1
        for paren, line_start, end, line in zip(*(column[start:stop].tolist() for column in columns), strict=True):
            if line_start != last_line:
                last_line = line_start
                found.append(reader.read(computation, paren, line_start, end, line))
        return found

    def _read_irregular(self, reader: LineReader, number: int) -> list[Site | Other]:
        computation = self._computation(number)
        found: list[Site | Other] = []
        for instruction in computation.instructions:
            seen = LOOKED_AT.search(self.text, instruction.start, instruction.end)
            if seen is not None:
                found.append(reader.read_written(instruction, seen.end() - 1))
        return found

    def communication(self) -> Iterator[tuple[Computation, Iterable[Site | Instruction]]]:
        """Yield the computations in which something may communicate, in file order, with what that is."""
        yield from self._lines[0]

    def callers(self, names: Collection[str]) -> list[Call]:
        """Return every call of the named computations, in file order."""
        by_callee = self._callers_by_callee if names else {}
        found = {caller.start: caller for name in names for caller in by_callee.get(name.encode(), ())}
        return [
            Call(found[start], role, callee)
            for start in sorted(found)
            for role, callee in found[start].called
            if callee in names
        ]

    @cached_property
    def _callers_by_callee(self) -> dict[bytes, list[TextInstruction]]:
        """The instructions that seem to call a computation, by its name; whoever asks looks at them closely."""
        found: dict[bytes, list[TextInstruction]] = {}
        for caller in chain(self._lines[1], self._fusions()):
            written = self.text[caller.start : caller.end]
            for names in _CALL_VALUES.findall(blank_comments(written) if b"/*" in written else written):
                for name in set(_NAMES.findall(names)):
                    found.setdefault(name, []).append(caller)
        return found

    def _fusions(self) -> Iterator[TextInstruction]:
        """Yield the fusions of printed computations, without taking them apart."""
        index = self._index
        low, high = np.searchsorted(index.fusions, (index.opened[self._first], index.ends[self._last - 1])).tolist()
        numbers = np.searchsorted(index.opened, index.fusions[low:high]) - 1
        borders = [low, *(np.flatnonzero(np.diff(numbers)) + (low + 1)).tolist(), high]
        for start, stop in pairwise(borders):
            if start < stop and int(numbers[start - low]) not in self._irregular:
                yield from self._printed_fusions(int(numbers[start - low]), index.fusions[start:stop].tolist())

    def _printed_fusions(self, number: int, positions: list[int]) -> list[TextInstruction]:
        """Return the fusions of one computation, given where their opcodes stand; some may go on below their line."""
        text, computation = self.text, self._computation(number)
        found: list[TextInstruction] = []
        for position in positions:
            start, end = text.rfind(b"\n", 0, position) + 1, text.find(b"\n", position)
            end = len(text) if end < 0 else end
            line = text[start:end]
            if b" = " not in line or b"calls=" not in line or line.endswith(b","):
                starts, stop, _ = find_instructions(text, computation.body)
                spans = pairwise([*starts, stop])
                return [TextInstruction(computation, *span) for span in spans if b"fusion" in text[slice(*span)]]
            found.append(TextInstruction(computation, start, end))
        return found
