"""Reading the communicating lines of a text, quickly where they are spelled like others before them.

A printed line is cut at fixed marks (`` = ``, the opcode, ``)``, ``metadata={``); what is left, without the channel
number and the reducer's name, is looked up among the spellings seen so far. Only a new spelling is taken apart in full.
A line that does not have those marks where they should be is taken apart in full as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.errors import GrammarError
from commlens.hlo.collectives import is_collective, signature_of
from commlens.hlo.custom_calls import custom_call_opcode
from commlens.hlo.formatting import as_text
from commlens.hlo.model import UnreadableError
from commlens.hlo.opcodes import CALLERS
from commlens.hlo.signature import InstructionSite, Site
from commlens.hlo.text.frames import source_of
from commlens.hlo.text.instruction import TextInstruction
from commlens.hlo.text.line import nested_spans, shape_end
from commlens.hlo.text.tokens import closing
from commlens.hlo.text.values import COMMUNICATES, read_metadata

if TYPE_CHECKING:
    from commlens.hlo.signature import Signature
    from commlens.hlo.text.computation import TextComputation

_METADATA: Final = b", metadata={"
_BACKEND_CONFIG: Final = b", backend_config={"
_CLOSING_BRACE: Final = ord("}")
_SHAPE_ENDS: Final = (b"]", b"}")
"""How the shape of an array ends; one that was cut at a blank of its own ends otherwise."""
_OPCODE: Final = re.compile(rb"[a-z][a-z0-9\-]*")
_WORD: Final = re.compile(rb"%?[\w.\-]+")
_TYPED: Final = re.compile(rb"(?:[a-z][a-z0-9]*\[[\d,<=]*\](?:\{[^{}]*\})? %?[\w.\-]+(?:, |$))+")
_REDUCER: Final = b", to_apply="
_METADATA_MARK: Final = len(b", metadata=")
_NEAR: Final = 1024
_SAFE_DIGITS: Final = 18
_MOST_TAILS: Final = 4096
_INDEX_COMMENT: Final = re.compile(rb"/\*index=\d+\*/")
_TYPED_NAME: Final = re.compile(rb"\s+%?[\w.\-]+(?=,|$)")
_CUSTOM_TARGET: Final = re.compile(rb'custom_call_target="([^"]*)"')

_GOES_ON: Final = frozenset(b",=({[ \t")
"""Last bytes of a line that has not come to its end."""


class IrregularLineError(Exception):
    """A line in a computation that seemed regular is not one whole instruction."""


class TextSite(Site):
    """A collective on a printed line."""

    __slots__ = ("_computation", "_end", "_number", "_start")

    def __init__(  # pyright: ignore[reportMissingSuperCall] - made by the ten thousand: a call less is felt
        self,
        computation: TextComputation,
        start: int,
        end: int,
        number: int,
        signature: Signature,
        channel_id: int | None,
    ) -> None:
        self.signature = signature
        self.channel_id = channel_id
        self._computation = computation
        self._start = start
        self._end = end
        self._number = number

    @property
    def instruction(self) -> TextInstruction:
        """The instruction."""
        return TextInstruction(self._computation, self._start, self._end)

    @property
    def name(self) -> str:
        """The instruction's name."""
        text = self._computation.text
        written = text[self._start : text.find(b"=", self._start, self._end)]
        return as_text(written.rstrip().rpartition(b"%")[2].split()[-1])

    @property
    def computation_name(self) -> str:
        """Name of the computation it stands in."""
        return self._computation.name

    @property
    def line(self) -> int:
        """Line in the text, counted from 1."""
        return self._number

    def _metadata(self) -> dict[str, str]:
        text = self._computation.text
        start = text.find(_METADATA, self._start, self._end)
        if start < 0 and text.find(b"metadata", self._start, self._end) < 0:
            return {}
        if start >= 0 and text.find(b'"', self._start, start) < 0:
            opened = start + len(_METADATA) - 1
            end = closing(text, opened, self._end)
            return read_metadata(text[opened : self._end if end is None else end + 1])
        value = self.instruction.parts.value("metadata")
        return {} if value is None else read_metadata(value)

    @property
    def op_name(self) -> str | None:
        """``op_name`` of the metadata."""
        return self._metadata().get("op_name")

    @property
    def source(self) -> str | None:
        """``"file:line"`` of the metadata."""
        return source_of(self._metadata(), self._computation)


class Other(NamedTuple):
    """An instruction of interest that is no plain collective, or one that could not be read.

    Attributes:
        opcode: the opcode; empty where none can be made out.
        instruction: the instruction.
    """

    opcode: bytes
    instruction: TextInstruction


@dataclass(slots=True)
class LineReader:
    """Reads communicating lines of one module; keeps the spellings it has seen.

    Attributes:
        signatures: signature by spelling.
        tails: what is left of an attribute list, and its channel, by how the list is written; bounded.
        heads: every ``shape opcode`` of a collective seen so far.
    """

    signatures: dict[tuple[bytes, ...], Signature] = field(default_factory=dict[tuple[bytes, ...], "Signature"])
    tails: dict[bytes | None, tuple[bytes, int | None]] = field(
        default_factory=dict[bytes | None, "tuple[bytes, int | None]"]
    )
    heads: set[bytes] = field(default_factory=set[bytes])

    def read(self, computation: TextComputation, paren: int, start: int, end: int, number: int) -> Site | Other:
        """Read the printed line on which an opcode of interest seems to stand.

        This is the inner loop of reading a large text, so what is common is done here without further calls.

        Args:
            computation: where the line stands.
            paren: offset of the parenthesis behind what looks like an opcode.
            start: offset of the instruction: where its name or ``ROOT`` stands.
            end: offset of the line's end.
            number: its number, counted from 1.

        Returns:
            A site where the line is a collective and could be read.

        Raises:
            IrregularLineError: the line is only a part of an instruction.
        """
        text = computation.text
        head = text[text.find(b"=", start, paren) + 2 : paren]
        if head not in self.heads or text[end - 1] in _GOES_ON or end == len(text):
            return self._read_unseen(computation, paren, start, end, number)
        close = text.find(b")", paren, end)
        needle = b"\n  " + text[paren + 1 : close] + b" = "  # one operand, defined a few lines above
        above = text.rfind(needle, max(start - _NEAR, computation.body - 1), start)
        value = above + len(needle)
        if above < 0:
            shapes = self._operand_shapes(computation, text[paren + 1 : close], start)
        else:
            shapes = text[value : text.find(b" ", value)]
            if shapes[-1:] not in _SHAPE_ENDS:
                shapes = None
        behind = text.rfind(b"{", close, end) - _METADATA_MARK  # where the attributes end and the metadata begin
        if text[behind : behind + _METADATA_MARK + 1] != _METADATA or text[end - 1] != _CLOSING_BRACE:
            written = _without_config(text[close + 1 : end])
        else:
            reducer = text.find(_REDUCER, close, behind)
            if reducer < 0:
                written = text[close + 1 : behind]
            else:
                comma = text.find(b",", reducer + 1, behind)
                stop = behind if comma < 0 else comma
                odd = text.find(b" ", reducer + 2, stop) >= 0 or text.find(b'"', close, reducer) >= 0
                written = None if odd else text[close + 1 : reducer] + text[stop:behind]
        tail = self.tails.get(written) or self._tail(written)
        if close < 0 or tail is None or shapes is None:
            return self._read_whole(computation, start, end)
        reduced, channel_id = tail
        signature = self.signatures.get((head, reduced, shapes))
        if signature is None:
            instruction = TextInstruction(computation, start, end)
            if not instruction.is_whole_line:
                raise IrregularLineError
            try:
                signature = self.signatures[head, reduced, shapes] = signature_of(instruction)
            except UnreadableError:
                return Other(head[head.rfind(b" ") + 1 :], instruction)
        return TextSite(computation, start, end, number, signature, channel_id)

    def _read_unseen(self, computation: TextComputation, paren: int, start: int, end: int, number: int) -> Site | Other:
        """Read a line whose shape and opcode are not known yet as those of a collective."""
        text = computation.text
        if text[end - 1] in _GOES_ON:
            raise IrregularLineError
        equals = text.find(b"=", start, paren)
        head = text[equals + 2 : paren]
        opcode = _opcode_of(head) if text[equals - 1 : equals + 2] == b" = " else None
        if opcode is None or end == len(text):
            return self._read_whole(computation, start, end)
        if not is_collective(as_text(opcode)):
            return Other(opcode, TextInstruction(computation, start, end))
        self.heads.add(head)
        return self.read(computation, paren, start, end, number)

    def _read_whole(self, computation: TextComputation, start: int, end: int) -> Site | Other:
        """Take a line apart that must be one whole instruction."""
        instruction = TextInstruction(computation, start, end)
        try:
            parts = instruction.parts
        except UnreadableError:
            raise IrregularLineError from None
        is_last = end == len(computation.text)  # a text that is cut ends in mid-line
        if nested_spans(parts) if is_last else not instruction.is_whole_line:
            raise IrregularLineError  # something else stands on the line, or it goes on below
        return read_instruction(instruction)

    def _tail(self, written: bytes | None) -> tuple[bytes, int | None] | None:
        """Return an attribute list without reducer and channel number, and that number.

        Args:
            written: the list without metadata, None where that could not be cut off.

        Returns:
            The list, a mark in the number's place; None where the line must be read in full.
        """
        reduced = None if written is None else _reduced(written)
        if written is not None and reduced is not None and len(self.tails) < _MOST_TAILS:
            self.tails[written] = reduced
        return reduced

    def _operand_shapes(self, computation: TextComputation, operands: bytes, start: int) -> bytes | None:
        """Return the spellings of the operands' shapes, None where they are not simple arrays."""
        text = computation.text
        if b"(" in operands:
            return None
        if b"[" in operands:
            return _TYPED_NAME.sub(b"", operands) if _TYPED.fullmatch(operands) else None
        if b"/*" in operands:
            operands = _INDEX_COMMENT.sub(b"", operands)
        shapes: list[bytes] = []
        for operand in operands.split(b", "):
            value = computation.definitions.value_of(operand.removeprefix(b"%"), start)
            shape = b"" if value is None else text[value : text.find(b" ", value)]
            if shape[-1:] not in _SHAPE_ENDS:
                return None
            shapes.append(shape)
        return b", ".join(shapes)

    def read_written(self, instruction: TextInstruction, paren: int) -> Site | Other:
        """Read an instruction of a computation that people laid out: as a printed line where it is one after all.

        Args:
            instruction: the instruction.
            paren: offset of the parenthesis behind what looks like an opcode.

        Returns:
            A site where it is a collective and could be read.
        """
        computation, start = instruction.computation, instruction.start
        written = computation.text[start : instruction.end].rstrip()
        if not (instruction.nested or b"\n" in written or b"//" in written or b"/*" in written):
            try:
                return self.read(computation, paren, start, start + len(written), computation.module.line_of(start))
            except IrregularLineError:
                pass
        return read_instruction(instruction)


def read_instruction(instruction: TextInstruction) -> Site | Other:
    """Read an instruction by taking it apart, wherever its parts stand."""
    try:
        opcode = instruction.opcode
    except UnreadableError:
        return Other(b"", instruction)
    if not is_collective(opcode):
        return Other(opcode.encode(), instruction)
    try:
        return InstructionSite(instruction, signature_of(instruction), instruction.channel_id)
    except UnreadableError:
        return Other(opcode.encode(), instruction)


def _opcode_of(head: bytes) -> bytes | None:
    """Return the opcode of ``shape opcode``, None where that is not what stands there."""
    blank = head.rfind(b" ")
    opcode = head[blank + 1 :]
    try:
        return opcode if blank > 0 and shape_end(head, 0) == blank and _OPCODE.fullmatch(opcode) else None
    except GrammarError:
        return None


def _without_config(tail: bytes) -> bytes | None:
    """Cut a backend_config, and metadata before it, off an attribute list; None where more stands behind them."""
    config = tail.find(_BACKEND_CONFIG)
    if config >= 0:
        if closing(tail, config + len(_BACKEND_CONFIG) - 1) != len(tail) - 1:
            return None
        tail = tail[:config]
    metadata = tail.find(_METADATA)
    if metadata < 0:
        return tail
    return tail[:metadata] if closing(tail, metadata + _METADATA_MARK) == len(tail) - 1 else None


def _reduced(tail: bytes) -> tuple[bytes, int | None] | None:
    """Cut the reducer's name and the channel number out of an attribute list; None where that is not safe."""
    if b"all_reduce_id" in tail:
        return None
    reducer = _without(tail, _REDUCER)
    channel = None if reducer is None else _without(reducer[0], b", channel_id=")
    if reducer is None or channel is None:
        return None
    reduced, number = channel
    if b"channel_id" in reduced or (reducer[1] is not None and not _WORD.fullmatch(reducer[1])):
        return None
    if number is None:
        return reduced, None
    return (reduced + b"#", int(number)) if number.isdigit() and len(number) <= _SAFE_DIGITS else None


def _without(tail: bytes, mark: bytes) -> tuple[bytes, bytes | None] | None:
    """Cut one ``, key=word`` out of an attribute list; None where it may stand inside a string."""
    start = tail.find(mark)
    if start < 0:
        return tail, None
    if tail.find(b'"', 0, start) >= 0:
        return None
    stop = tail.find(b",", start + len(mark))
    stop = len(tail) if stop < 0 else stop
    return tail[:start] + tail[stop:], tail[start + len(mark) : stop]


def is_caller(read: Other) -> bool:
    """Whether an instruction runs other computations, by itself or as what its start runs."""
    return as_text(read.opcode).removesuffix("-start") in CALLERS or read.opcode == b"async-start"


def may_communicate(read: Other) -> bool:
    """Whether an instruction that is no plain collective may communicate all the same."""
    opcode, instruction = read
    text = instruction.computation.text
    if not opcode:
        return COMMUNICATES.search(text, instruction.start, instruction.end) is not None
    if opcode == b"async-start" or is_collective(as_text(opcode)):
        return True
    if opcode not in (b"custom-call", b"custom-call-start"):
        return False
    target = _CUSTOM_TARGET.search(text, instruction.start, instruction.end)
    return target is not None and custom_call_opcode(as_text(target[1])) is not None
