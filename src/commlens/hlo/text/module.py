"""A module of a text, and finding the modules of a file."""

from __future__ import annotations

import re
from functools import cached_property
from itertools import chain, count
from typing import TYPE_CHECKING, Final

import numpy as np

from commlens.hlo.formatting import as_text
from commlens.hlo.model import Call, Module, Unread, UnreadableError
from commlens.hlo.text.communication import Communication, printed_fusions, read_communication
from commlens.hlo.text.computation_table import ComputationTable, ModuleSpan, module_spans
from commlens.hlo.text.editing import splices_of
from commlens.hlo.text.frames import StackFrames, read_frames
from commlens.hlo.text.header import Header, read_header
from commlens.hlo.text.opcode_search import instructions_with
from commlens.hlo.text.orphans import inline_computations
from commlens.hlo.text.overriding import overriding
from commlens.hlo.text.splices import spliced
from commlens.hlo.text.stray_text import cut_header, gaps, stray_word
from commlens.hlo.text.tokens import GAP, NAME, blank_comments
from commlens.hlo.text.values import read_map

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from commlens.hlo.edits import Edit
    from commlens.hlo.model import Computation, Instruction
    from commlens.hlo.signature import Site
    from commlens.hlo.text.computation import TextComputation
    from commlens.hlo.text.index import Index
    from commlens.hlo.text.instruction import TextInstruction
    from commlens.hlo.text.tokens import Text

_CALL_VALUES: Final = re.compile(
    rb"\b(?:to_apply|calls|body|condition|true_computation|false_computation|branch_computations|called_computations)"
    rb"\s*=\s*(\{[^{}]*\}|%?[\w.\-]+)"
)
_NAMES: Final = re.compile(rb"%?(" + NAME + rb")")
_MORE_ATTRIBUTES: Final = re.compile(GAP + rb"*+(?=,)|(?=\.)|[ \t]*+(?=\}|" + NAME + rb"=)")
"""What goes on behind the part of a header that can be read."""
_EXCERPT: Final = 80
"""Bytes of what cannot be read that are shown."""


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
    found: list[TextModule] = []
    for span in module_spans(text):
        header = Header() if span.header is None else read_header(text[slice(*span.header)])
        found.append(TextModule(text, header, path, replicas, partitions, span))
    return found


class TextModule(Module):
    """One module of a text.

    Args:
        text: the whole file.
        header: the module's header.
        path: what to call the file in messages.
        replicas: replica count stated by the user.
        partitions: partition count stated by the user.
        span: where in the file the module stands; None where it is the only one there and nobody has looked yet.
        name: its name, where neither the header nor the entry is to be asked.
    """

    format = "text"

    def __init__(
        self,
        text: Text,
        header: Header,
        path: str,
        replicas: int | None,
        partitions: int | None,
        span: ModuleSpan | None,
        name: str | None = None,
    ) -> None:
        self.text = text
        self.path = path
        self._header = header
        self._stated = (replicas, partitions)
        self._known_span = span
        self.replica_count, self.num_partitions = header.counts(replicas, partitions)
        known = header.name if name is None else name
        self.name = self._name_of_entry() if known is None else known

    @cached_property
    def _span(self) -> ModuleSpan:
        return self._known_span or module_spans(self.text)[0]

    @property
    def _index(self) -> Index:
        return self._span.index

    @cached_property
    def _table(self) -> ComputationTable:
        return ComputationTable(self, self._span)

    def _name_of_entry(self) -> str:
        """Return what XLA calls a module without a header."""
        entry = self._entry
        return f"module_{entry.name}" if entry is not None and entry.name else "module"

    @property
    def is_scheduled(self) -> bool:
        """Whether the header says that instructions stand in the order in which they run."""
        return self._header.attributes.get("is_scheduled") == b"true"

    @property
    def frontend_attributes(self) -> Mapping[str, str]:
        """The module's own frontend attributes."""
        return self._frontend_attributes

    @cached_property
    def _frontend_attributes(self) -> Mapping[str, str]:
        return read_map(self._header.attributes.get("frontend_attributes", b""))

    @cached_property
    def frames(self) -> StackFrames:
        """The stack frame tables."""
        start = 0 if self._span.header is None else self._span.header[1]
        return read_frames(self.text[start : int(self._index.opened[self._span.first])])

    @cached_property
    def _newlines(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.flatnonzero(np.frombuffer(self.text, dtype=np.uint8) == ord("\n"))

    def line_of(self, offset: int) -> int:
        """Return the number of the line in which an offset lies, counted from 1."""
        return int(np.searchsorted(self._newlines, offset)) + 1

    def column_of(self, offset: int) -> int:
        """Return the number of the byte of its line that stands at an offset, counted from 1."""
        return offset - self.text.rfind(b"\n", 0, offset)

    @property
    def computations(self) -> tuple[TextComputation, ...]:
        """All computations in file order."""
        return self._communication.table.computations

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
        return None if self._entry is None else self._communication.table.computation(self._entry.number)

    @cached_property
    def _entry(self) -> TextComputation | None:
        bytes_ = np.frombuffer(self.text, dtype=np.uint8)
        opened = self._index.opened[self._span.first : self._span.last]
        likely = np.flatnonzero(np.isin(bytes_[opened], np.frombuffer(b"E \t\n\r}/", dtype=np.uint8)))
        for position in likely.tolist():
            computation = self._table.computation(self._span.first + position)
            if computation.is_marked_entry:
                return computation
        last = self._table.computation(self._span.last - 1)
        cut = last.number in self._index.unclosed or last.is_loose or self._is_printed(last) or any(self._cut_header())
        return None if cut else last

    def _is_printed(self, last: TextComputation) -> bool:
        """Whether a compiler printed this module: then it had an entry, and a text without one was cut."""
        signature = b"->" in self.text[last.start : last.body]
        return signature or "entry_computation_layout" in self._header.attributes

    @property
    def is_cut(self) -> bool:
        """Whether the text ends inside the entry computation."""
        entry = self.entry
        return entry is not None and entry.number in self._index.unclosed

    @property
    def structure_faults(self) -> tuple[Unread, ...]:
        """A damaged header, computations that are not closed, and calls that belong to no instruction."""
        return self._structure_faults

    @cached_property
    def _structure_faults(self) -> tuple[Unread, ...]:
        unclosed = sorted(self._index.unclosed & set(self._span.numbers))
        unread = [self._unclosed(self._table.computation(each)) for each in unclosed]
        in_place = inline_computations(self._communication.table)
        strays = (*self._damaged_header(), *self._strays())
        return (*unread, *strays, *self._communication.orphans, *in_place, *self._cut_header())

    def _damaged_header(self) -> Iterator[Unread]:
        """Find what cannot be read of the module's header: counts or a mesh may stand behind it."""
        if self._span.header is None:
            return
        start, end = self._span.header
        if self._header.fault is not None:
            position, why = self._header.fault
            yield self._unread_header(start + position, why)
        elif (rest := _MORE_ATTRIBUTES.match(self.text, end)) is not None:
            yield self._unread_header(rest.end(), "expected ', attribute=value'")

    def _unread_header(self, at: int, why: str) -> Unread:
        text = as_text(self.text[at : at + _EXCERPT].partition(b"\n")[0])
        return Unread(f"{self.line_of(at)}:{self.column_of(at)}", text, f"the module's header: {why}")

    def _strays(self) -> Iterator[Unread]:
        """Find words between the computations: what is left of one that is damaged."""
        inner = self._span.numbers[1:]
        for start, end in gaps(self._index, inner):
            word = stray_word(self.text, start, end)
            if word is not None:
                yield Unread(str(self.line_of(word[0])), as_text(word[1]), "expected a computation, found other words")

    def _cut_header(self) -> Iterator[Unread]:
        """Find the beginning of a computation behind the last one: the text was cut before its brace."""
        word = cut_header(self.text, int(self._index.ends[self._span.last - 1]), self.part[1])
        if word is not None:
            where = str(self.line_of(word[0]))
            yield Unread(where, as_text(word[1]), "expected '{' and instructions, found the end")

    def _unclosed(self, computation: TextComputation) -> Unread:
        text = as_text(self.text[computation.start : computation.start + _EXCERPT].strip().split(b"\n")[0])
        why = (
            f"expected '}}' at the end of the computation {computation.name}, found the end of the text or another item"
        )
        return Unread(str(self.line_of(computation.start)), text, why)

    def instructions_of(self, opcodes: Collection[str]) -> Iterator[TextInstruction]:
        """Yield the instructions that have one of these opcodes."""
        return instructions_with(self._communication.table, opcodes)

    def fresh_names(self, base: str) -> Iterator[str]:
        """Yield names that no instruction of the module has: behind the largest number that stands in the text."""
        if base not in self._largest_numbers:
            numbers = re.compile(re.escape(base.encode()) + rb"\.(\d{1,18})(?!\d)", re.ASCII)
            matches = numbers.finditer(self.text, *self.part)
            self._largest_numbers[base] = max((int(match[1]) for match in matches), default=0)
        for number in count(self._largest_numbers[base] + 1):
            yield f"{base}.{number}"

    @cached_property
    def _largest_numbers(self) -> dict[str, int]:
        """By the base of names, the largest number that stands behind it."""
        return {}

    def is_fresh(self, name: str) -> bool:
        """Whether a name is one that :meth:`fresh_names` gave or will give; False says nothing."""
        base, _, number = name.rpartition(".")
        largest = self._largest_numbers.get(base)
        return largest is not None and number.isdecimal() and name == f"{base}.{int(number)}" and int(number) > largest

    def edited(self, edits: Iterable[Edit]) -> TextModule:
        """Return the module with edits made; the text is read again only when somebody asks."""
        splices = splices_of(self, edits)
        if not splices:
            return self
        text = spliced(self.text, splices, *self.part)
        return TextModule(text, self._header, self.path, *self._stated, None, self.name)

    @property
    def overridden_attributes(self) -> Mapping[Instruction, Mapping[str, str]]:
        """Frontend attributes, by instruction, that XLA puts in the place of its own when it reads the text."""
        return {instruction: each.frontend_attributes for instruction, each in self.overriding.items()}

    @cached_property
    def overriding(self) -> Mapping[TextInstruction, TextInstruction]:
        """Whose frontend attributes XLA gives an operation that does not keep its own."""
        return overriding(self)

    def holds(self, instruction: TextInstruction) -> bool:
        """Whether an instruction is one of this module."""
        computation = instruction.computation
        return computation.text is self.text and computation.number in self._span.numbers

    def to_bytes(self) -> bytes:
        """Return the module's text: the whole file where it holds no other module."""
        return self.text[slice(*self.part)]

    @property
    def part(self) -> tuple[int, int]:
        """Where the module's text stands in the file."""
        return (0, len(self.text)) if self._known_span is None else self._known_span.part(len(self.text))

    @cached_property
    def _communication(self) -> Communication:
        return read_communication(self._table)

    def communication(self) -> Iterator[tuple[Computation, Iterable[Site | Instruction]]]:
        """Yield the computations in which something may communicate, in file order, with what that is."""
        yield from self._communication.found

    def communication_in(self, number: int) -> Sequence[Site | Instruction]:
        """Return what may communicate in the computation of a number, as written."""
        return self._communication_by_number.get(number, ())

    @cached_property
    def _communication_by_number(self) -> dict[int, list[Site | Instruction]]:
        return {computation.number: found for computation, found in self._communication.found}

    def callers(self, names: Collection[str]) -> list[Call]:
        """Return every call of the named computations, in file order."""
        by_callee = self._callers_by_callee if names else {}
        seeming: dict[TextInstruction, dict[str, None]] = {}
        for name in names:
            for caller in by_callee.get(name.encode(), ()):
                seeming.setdefault(caller, {})[name] = None
        calls: list[Call] = []
        for caller in sorted(seeming, key=lambda each: each.start):
            try:
                calls += [Call(caller, role, callee) for role, callee in caller.called if callee in names]
            except UnreadableError:
                calls += [Call(caller, "unreadable", name) for name in seeming[caller]]
        return calls

    @cached_property
    def _callers_by_callee(self) -> dict[bytes, list[TextInstruction]]:
        """The instructions that seem to call a computation, by its name; whoever asks looks at them closely."""
        found: dict[bytes, list[TextInstruction]] = {}
        for caller in chain(self._communication.callers, printed_fusions(self._table)):
            written = self.text[caller.start : caller.end]
            if b"/*" in written or b"//" in written:
                written = blank_comments(written)
            for names in _CALL_VALUES.findall(written):
                for name in set(_NAMES.findall(names)):
                    found.setdefault(name, []).append(caller)
        return found
