"""An instruction of a text: a span, taken apart when somebody asks."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from commlens.errors import GrammarError
from commlens.hlo.collectives import is_collective
from commlens.hlo.formatting import as_text
from commlens.hlo.model import Instruction, UnreadableError
from commlens.hlo.opcodes import WITHOUT_OPERANDS, base_opcode
from commlens.hlo.replica_group_ids import groups_of_ids
from commlens.hlo.shapes import Shape, parse_shape, read_shape
from commlens.hlo.text.attribute_maps import map_of, read_entries
from commlens.hlo.text.damage import hides_collective, unclosed
from commlens.hlo.text.frames import source_of
from commlens.hlo.text.lenient_scanner import is_one_instruction
from commlens.hlo.text.line import ANONYMOUS, Line, Operand, nested_spans, parse_line, parse_nested, shape_text
from commlens.hlo.text.tokens import DEFINITION, unquoted
from commlens.hlo.text.values import (
    CALL_ATTRIBUTES,
    MODELED_ATTRIBUTES,
    callees,
    metadata_spans,
    read_integer,
    read_integers,
    read_metadata,
)
from commlens.topology import CollectiveDeviceList, parse_replica_groups, parse_source_target_pairs

if TYPE_CHECKING:
    from commlens.hlo.model import Role
    from commlens.hlo.text.computation import TextComputation
    from commlens.topology import DeviceList, SourceTargetPairs

_NAME: Final = re.compile(DEFINITION)
_BOOLEANS: Final = (b"true", b"false")
_CUT: Final = GrammarError("the text ends inside this instruction", position=0)
_EXCERPT: Final = 200


class TextInstruction(Instruction):
    """One instruction of a text.

    Args:
        computation: where it stands.
        start: offset of its first byte, ``ROOT`` included; blanks may come before it.
        end: offset behind its last byte.
        nested: whether it stands as an operand of another instruction and has no name of its own.
    """

    __slots__ = ("_computation", "_line", "end", "nested", "start")

    def __init__(self, computation: TextComputation, start: int, end: int, *, nested: bool = False) -> None:
        self._computation = computation
        self._line: Line | None = None
        self.nested = nested
        self.start = start
        self.end = end

    @property
    def parts(self) -> Line:
        """The instruction taken apart.

        Raises:
            UnreadableError: it has no name, opcode or operand list.
        """
        if self._line is None:
            try:
                text = self._computation.text[self.start : self.end]
                line = parse_nested(text) if self.nested else parse_line(text)
            except GrammarError as error:
                raise self._unreadable(str(error), self.start + (0 if self.nested else error.position)) from error
            if line.fault is not None and not is_collective(line.opcode) and hides_collective(line):
                raise self._unreadable(str(line.fault), self._offset(line, line.fault.position))
            self._line = line if line.fault is not None or not self._is_cut(line) else replace(line, fault=_CUT)
        return self._line

    def _offset(self, line: Line, position: int) -> int:
        """Return where in the file a position in the parts of this instruction is; that of a nested one has a name."""
        return max(self.start, self.end - len(line.text) + position)

    def _unreadable(self, why: str, offset: int | None = None) -> UnreadableError:
        """Say why something cannot be read, and where: at an offset in the file, or where the name stands."""
        line, column = self.place_of(offset)
        return UnreadableError(why, line=line, column=column)

    def place_of(self, offset: int | None = None) -> tuple[int, int]:
        """Return line and column, counted from 1, of an offset in the file; without one, of the name."""
        module = self._computation.module
        if offset is None:
            match = None if self.nested else _NAME.match(module.text, self.start, self.end)
            offset = self._first if match is None else match.start("mark")
        return module.line_of(offset), module.column_of(offset)

    @property
    def _first(self) -> int:
        """The offset of the first byte that is no blank."""
        text, start = self._computation.text, self.start
        while start < self.end and text[start : start + 1].isspace():
            start += 1
        return start

    @property
    def is_whole_line(self) -> bool:
        """Whether a line that seems printed is one instruction from end to end, with none as its operand."""
        try:
            parts = self.parts
        except UnreadableError:
            return False
        return parts.fault is None and not nested_spans(parts) and is_one_instruction(parts.text)

    def _is_cut(self, line: Line) -> bool:
        """Whether the text may end before this instruction does."""
        text = self._computation.text
        ends_here = self.end == len(text) and text[-1:] != b"\n"
        return ends_here and "metadata" not in line.attributes and not self._computation.is_closed

    @property
    def name(self) -> str:
        """The name without ``%``; of one that stands as an operand, the one that XLA gives it."""
        return (self._computation.nested_name(self.start) if self.nested else None) or self.written_name

    @property
    def written_name(self) -> str:
        """The name as it is written; of one that stands as an operand, its opcode and a mark, whatever others bear."""
        match = None if self.nested else _NAME.match(self._computation.text, self.start, self.end)
        return self.parts.name if match is None else as_text(match["name"])

    @property
    def opcode(self) -> str:
        """The opcode as the module spells it."""
        return self.parts.opcode

    @property
    def computation(self) -> TextComputation:
        """The computation it stands in."""
        return self._computation

    @property
    def line(self) -> int:
        """Line in the text, counted from 1."""
        return self._computation.module.line_of(self._first)

    @property
    def shape(self) -> Shape:
        """The result's shape."""
        start, end = self.parts.shape_span
        if start == end:
            msg = f"expected a result shape before {self.opcode}, found none"
            raise self._unreadable(msg, self._offset(self.parts, start))
        try:
            return parse_shape(self.parts.text[start:end].decode("latin-1"))
        except GrammarError as error:
            raise self._unreadable(str(error), self._offset(self.parts, start + error.position)) from error

    def _operands(self) -> list[Operand]:
        if self.opcode in WITHOUT_OPERANDS:
            return []
        try:
            return self.parts.operands()
        except GrammarError as error:
            raise self._unreadable(str(error), self._offset(self.parts, error.position)) from error

    @property
    def operand_names(self) -> tuple[str, ...]:
        """The names of the operands in order, defined or not."""
        if self.opcode in WITHOUT_OPERANDS:
            return ()
        parts, computation = self.parts, self._computation
        try:
            names = parts.operand_names()
        except GrammarError as error:
            raise self._unreadable(str(error), self._offset(parts, error.position)) from error
        if not any(name.endswith(ANONYMOUS) for name in names):
            return tuple(names)
        places = [self.end - len(parts.text) + start for start, _ in parts.operand_spans()]
        return tuple(computation.nested_name(place) or name for place, name in zip(places, names, strict=True))

    @property
    def operands(self) -> tuple[TextInstruction, ...]:
        """The operands in order."""
        return tuple(self._defined(name) for name in self.operand_names)

    def _defined(self, name: str) -> TextInstruction:
        found = self._computation.defined(name, self.start)
        if found is None:
            raise self._undefined(name)
        return found

    def _undefined(self, name: str) -> UnreadableError:
        place = f"the computation {self._computation.name}" if self._computation.name else "the text"
        return self._unreadable(f"the operand {name} of {self.name} is not defined in {place}")

    def operand_shapes(self) -> tuple[Shape, ...]:
        """Return the shapes of the operands, as stated beside them or as defined."""
        operands = self._operands()
        if all(operand.shape is not None for operand in operands):
            return tuple(operand.shape for operand in operands if operand.shape is not None)
        pairs = zip(operands, self.operand_names, strict=True)
        return tuple(self._shape_of(name) if operand.shape is None else operand.shape for operand, name in pairs)

    def _shape_of(self, name: str) -> Shape:
        """Return the shape with which an operand is defined."""
        computation = self._computation
        behind = computation.definitions.value_of(name.encode(), self.start)
        if behind is None:
            return self._defined(name).shape  # of one that is an operand itself
        try:
            return read_shape(shape_text(computation.text, behind), 0)[0]
        except GrammarError as error:
            msg = f"the shape of the operand {name} cannot be read: {error}"
            raise self._unreadable(msg, behind) from error

    @property
    def is_root(self) -> bool:
        """Whether this is its computation's root."""
        return self.parts.is_root or self._computation.root.start == self.start

    def _value(self, key: str) -> bytes | None:
        """Return an attribute as written; refuse to answer where the attributes could not be taken apart."""
        value = self.parts.value(key)
        fault = self.parts.fault
        if value is None and fault is not None:
            raise self._unreadable(str(fault), self._offset(self.parts, fault.position))
        return value

    def _unlike(self, why: str, key: str) -> UnreadableError:
        """Say why the value of an attribute cannot be read."""
        return self._unreadable(why, self._offset(self.parts, self.parts.attributes[key].start))

    @property
    def control_predecessors(self) -> tuple[str, ...]:
        """Names of the instructions that must run before this one for other reasons than data."""
        value = self._value("control-predecessors")
        return () if value is None else tuple(name for _, name in callees("", "control-predecessors", value))

    @property
    def channel_id(self) -> int | None:
        """The channel id, in its old spelling too."""
        key = "channel_id"
        value = self._value(key)
        if value is None and base_opcode(self.opcode)[0] == "all-reduce":
            key = "all_reduce_id"
            value = self._value(key)
        if value is None:
            return None
        number = read_integer(value)
        if number is None:
            why = f"expected channel_id to be an integer of 64 bits, found {as_text(value[:30])!r}"
            raise self._unlike(why, key)
        return number

    @property
    def replica_groups(self) -> DeviceList:
        """The replica group list, the empty list where none is stated."""
        value = self._value("replica_groups")
        try:
            if value is not None:
                return parse_replica_groups(as_text(value))
        except ValueError as error:
            why = f"replica_groups cannot be read: {error}"
            raise self._unlike(why, "replica_groups") from error
        written = self._value("replica_group_ids")
        if written is None:
            return CollectiveDeviceList(None)
        numbers = read_integers(written)
        groups = None if numbers is None else groups_of_ids(numbers)
        if groups is None:
            why = f"expected replica_group_ids such as {{0,0,1,1}}, found {as_text(written[:30])!r}"
            raise self._unlike(why, "replica_group_ids")
        return CollectiveDeviceList(groups)

    @property
    def source_target_pairs(self) -> SourceTargetPairs | None:
        """The pairs of a collective-permute, None where none are stated."""
        value = self._value("source_target_pairs")
        if value is None:
            return None
        try:
            return parse_source_target_pairs(as_text(value))
        except ValueError as error:
            why = f"source_target_pairs cannot be read: {error}"
            raise self._unlike(why, "source_target_pairs") from error

    @property
    def dimensions(self) -> tuple[int, ...] | None:
        """The attribute ``dimensions``; None where it is absent."""
        value = self._value("dimensions")
        if value is None:
            return None
        numbers = read_integers(value)
        if numbers is None:
            why = f"expected dimensions such as {{0}}, found {as_text(value[:30])!r}"
            raise self._unlike(why, "dimensions")
        return numbers

    @property
    def frontend_attributes(self) -> dict[str, str]:
        """The frontend attributes, by key; brace blocks are kept as raw text."""
        value = self.parts.value("frontend_attributes")
        if value is None:
            return {}
        try:
            return map_of(value, read_entries(value, 0, len(value)))
        except GrammarError as error:
            why = f"frontend_attributes cannot be read: {error}"
            offset = self._offset(self.parts, self.parts.attributes["frontend_attributes"].start + error.position)
            raise self._unreadable(why, offset) from error

    def flag(self, name: str) -> bool | None:
        """Return a boolean attribute, None where it is absent."""
        value = self._value(name)
        if value is None:
            self._require_closed()
            return None
        if value not in _BOOLEANS:
            why = f"expected {name} to be true or false, found {as_text(value[:30])!r}"
            raise self._unlike(why, name)
        return value == b"true"

    def _require_closed(self) -> None:
        """Refuse where a value may have swallowed what stands behind it; metadata are only missed by who asks for them.

        Raises:
            UnreadableError: a bracket or string of a value has no other half.
        """
        fault, metadata = unclosed(self), self.parts.attributes.get("metadata")
        if fault is not None and (metadata is None or fault.position < metadata.start):
            raise self._unreadable(str(fault), self._offset(self.parts, fault.position))

    def raw_attribute(self, name: str) -> str | None:
        """Return another attribute as the text spells it, strings unquoted, None where it is absent."""
        if name in ("literal", "parameter_number"):
            start, end = self.parts.operand_span
            wanted = "constant" if name == "literal" else "parameter"
            return as_text(self.parts.text[start:end].strip()) if self.opcode == wanted else None
        value = self.parts.value(name)
        if value is None:
            return None
        text = unquoted(value)
        return as_text(value) if text is None else text

    @property
    def called(self) -> tuple[tuple[Role, str], ...]:
        """Roles and names of the computations this instruction calls."""
        found: list[tuple[Role, str]] = []
        for key in CALL_ATTRIBUTES:
            value = self.parts.value(key)
            if value is not None:
                found += callees(self.opcode, key, value)
        return tuple(found)

    def _metadata(self) -> dict[str, str]:
        value = self.parts.value("metadata")
        return {} if value is None else read_metadata(value)

    @property
    def op_name(self) -> str | None:
        """``op_name`` of the metadata."""
        return self._metadata().get("op_name")

    @property
    def source(self) -> str | None:
        """``"file:line"`` of the metadata, through the stack frame tables where the module has those."""
        return source_of(self._metadata(), self._computation)

    @property
    def list_key(self) -> int:
        """The offset."""
        return self.start

    def metadata_fields(self) -> dict[str, bytes]:
        """Return the fields of the metadata as they are written, by name."""
        value = self._value("metadata") or b""
        return {key: value[start:end] for key, (start, end) in metadata_spans(value).items()}

    def other_attributes(self) -> dict[str, bytes]:
        """Return, as they are written, the attributes that no other member speaks of."""
        self._value("backend_config")  # refuses where the attributes cannot be taken apart
        text, spans = self.parts.text, self.parts.attributes
        return {key: text[start:end] for key, (start, end) in spans.items() if key not in MODELED_ATTRIBUTES}

    @property
    def excerpt(self) -> str:
        """The beginning of the instruction as it is written."""
        return as_text(self._computation.text[self.start : self.end].strip()[:_EXCERPT])

    def __eq__(self, other: object) -> bool:
        """Two views of one place are the same instruction."""
        if not isinstance(other, TextInstruction):
            return NotImplemented
        return self._computation.text is other._computation.text and self.start == other.start

    def __hash__(self) -> int:
        """Hash by place."""
        return hash(self.start)
