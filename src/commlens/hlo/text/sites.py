"""Reading the communicating lines of a text, quickly where they are spelled like others before them.

A printed line is cut at fixed marks (`` = ``, the opcode, ``)``, ``metadata={``); what is left, without the channel number
and the reducer's name, is looked up among the spellings seen so far. Only a new spelling is taken apart in full. A
line that does not have those marks where they should be is taken apart in full as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from commlens.errors import GrammarError
from commlens.hlo.collectives import is_collective, signature_of
from commlens.hlo.custom_calls import custom_call_opcode
from commlens.hlo.model import UnreadableError
from commlens.hlo.opcodes import CALLERS
from commlens.hlo.signature import InstructionSite, Site
from commlens.hlo.text.instruction import TextInstruction, source_of
from commlens.hlo.text.lexis import as_text, closing, depth_of
from commlens.hlo.text.line import shape_end
from commlens.hlo.text.values import read_metadata

if TYPE_CHECKING:
    from commlens.hlo.model import Instruction
    from commlens.hlo.signature import Signature
    from commlens.hlo.text.computation import TextComputation

_METADATA: Final = b", metadata={"
_BACKEND_CONFIG: Final = b", backend_config={"
_TYPED_NAME: Final = re.compile(rb"\s+%?[\w.\-]+(?=,|$)")
_CUSTOM_TARGET: Final = re.compile(rb'custom_call_target="([^"]*)"')

COMMUNICATES: Final = re.compile(
    rb"\b(?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast"
    rb"|cross-replica-sum)(?:-start)?\s*\(|\b(?:send|recv|async-start|custom-call)\s*\("
)
"""Whether a line must be looked at; the opcode decides."""


_GOES_ON: Final = frozenset(b",=({[")
"""Last bytes of a line that has not come to its end."""


class IrregularLineError(Exception):
    """A line in a computation that seemed regular is not one whole instruction."""


class TextSite(Site):
    """A collective on a printed line."""

    __slots__ = ("_computation", "_end", "_number", "_start", "channel_id", "signature")

    def __init__(
        self,
        computation: TextComputation,
        start: int,
        end: int,
        number: int,
        signature: Signature,
        channel_id: int | None,
    ) -> None:
        self._computation = computation
        self._start = start
        self._end = end
        self._number = number
        self.signature = signature
        self.channel_id = channel_id

    @property
    def instruction(self) -> TextInstruction:
        """The instruction."""
        return TextInstruction(self._computation, self._start, self._end)

    @property
    def name(self) -> str:
        """The instruction's name."""
        text = self._computation.text
        name = text[self._start : text.index(b" = ", self._start, self._end)].strip()
        return as_text(name.removeprefix(b"ROOT ").lstrip().removeprefix(b"%"))

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
        if start < 0:
            return {}
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


@dataclass(slots=True)
class LineReader:
    """Reads communicating lines of one module; keeps the spellings it has seen.

    Attributes:
        signatures: signature by spelling.
        shapes: spellings that are known to be whole shapes.
    """

    signatures: dict[tuple[bytes, ...], Signature] = field(default_factory=dict[tuple[bytes, ...], "Signature"])
    shapes: set[bytes] = field(default_factory=set[bytes])

    def read(
        self, computation: TextComputation, paren: int, start: int, end: int, number: int
    ) -> tuple[bytes, Site | TextInstruction]:
        """Read the printed line on which an opcode of interest seems to stand.

        Args:
            computation: where the line stands.
            paren: offset of the parenthesis behind what looks like an opcode.
            start: offset of the line.
            end: offset of its end.
            number: its number, counted from 1.

        Returns:
            The opcode, and a site where the line could be read.

        Raises:
            IrregularLineError: the line is only a part of an instruction.
        """
        text = computation.text
        if text[end - 1] in _GOES_ON:
            raise IrregularLineError
        equals = text.find(b" = ", start, paren)
        blank = text.rfind(b" ", start, paren)
        shape = text[equals + 3 : blank]
        if equals < 0 or blank <= equals or (shape not in self.shapes and not self._is_shape(shape)):
            return self._read_whole(computation, start, end)
        opcode = text[blank + 1 : paren]
        if not is_collective(as_text(opcode)):
            return opcode, TextInstruction(computation, start, end)
        spelling = self._spelling(computation, (shape, opcode), paren, start, end)
        if spelling is None:
            return self._read_whole(computation, start, end)
        key, channel_id = spelling
        signature = self.signatures.get(key)
        if signature is None:
            instruction = TextInstruction(computation, start, end)
            try:
                signature = self.signatures[key] = signature_of(instruction)
            except UnreadableError:
                return opcode, instruction
        return opcode, TextSite(computation, start, end, number, signature, channel_id)

    def _read_whole(self, computation: TextComputation, start: int, end: int) -> tuple[bytes, Site | TextInstruction]:
        """Take a line apart that must be one whole instruction."""
        read = self.read_in_full(computation, start, end)
        if read is None or not read[0] or depth_of(computation.text, start, end):
            raise IrregularLineError
        return read

    def _is_shape(self, shape: bytes) -> bool:
        try:
            whole = shape_end(shape, 0) == len(shape)
        except GrammarError:
            return False
        if whole:
            self.shapes.add(shape)
        return whole

    def _spelling(
        self, computation: TextComputation, head: tuple[bytes, ...], paren: int, start: int, end: int
    ) -> tuple[tuple[bytes, ...], int | None] | None:
        """Return what identifies the signature of a line, and its channel; None where it must be read in full."""
        text = computation.text
        close = text.find(b")", paren, end)
        operands = text[paren + 1 : close]
        if close < 0 or b"(" in operands:
            return None
        tail = _without_metadata(text[close + 1 : end])
        if tail is None or b"all_reduce_id" in tail:
            return None
        cut = _without(tail, b", channel_id=")
        reduced = None if cut is None else _without(cut[0], b", to_apply=")
        if cut is None or reduced is None:
            return None
        channel: int | None = None
        if cut[1] is not None:
            if not cut[1].isdigit() or len(cut[1]) > _SAFE_DIGITS:
                return None
            channel = int(cut[1])
        shapes = self._operand_shapes(computation, operands, start)
        if shapes is None:
            return None
        return (*head, reduced[0], b"" if channel is None else b"#", *shapes), channel

    def _operand_shapes(self, computation: TextComputation, operands: bytes, start: int) -> list[bytes] | None:
        """Return the spellings of the operands' shapes, None where they are not simple arrays."""
        if b"[" in operands:
            return [_TYPED_NAME.sub(b"", operands)]
        if b"/*" in operands:
            operands = _INDEX_COMMENT.sub(b"", operands)
        text, definitions = computation.text, computation.definitions
        shapes: list[bytes] = []
        for operand in operands.split(b", "):
            behind = definitions.value_of(operand.removeprefix(b"%"), start)
            if behind is None or text[behind : behind + 1] == b"(":
                return None
            shapes.append(text[behind : text.find(b" ", behind)])
        return shapes

    def read_in_full(
        self, computation: TextComputation, start: int, end: int
    ) -> tuple[bytes, Site | TextInstruction] | None:
        """Read an instruction by taking it apart, wherever its parts stand."""
        instruction = TextInstruction(computation, start, end)
        try:
            opcode = instruction.opcode
        except UnreadableError:
            looks_so = COMMUNICATES.search(computation.text, start, end) is not None
            return (b"", instruction) if looks_so else None
        if not is_collective(opcode):
            return opcode.encode(), instruction
        try:
            signature = signature_of(instruction)
            return opcode.encode(), InstructionSite(instruction, signature, instruction.channel_id)
        except UnreadableError:
            return opcode.encode(), instruction


_SAFE_DIGITS: Final = 18
_INDEX_COMMENT: Final = re.compile(rb"/\*index=\d+\*/")


def _without_metadata(tail: bytes) -> bytes | None:
    """Cut metadata and backend_config off the end of an attribute list; None where more stands behind them."""
    config = tail.find(_BACKEND_CONFIG)
    if config >= 0:
        if closing(tail, config + len(_BACKEND_CONFIG) - 1) != len(tail) - 1:
            return None
        tail = tail[:config]
    start = tail.find(_METADATA)
    if start < 0:
        return tail
    return None if tail.find(b"}, ", start) >= 0 or not tail.endswith(b"}") else tail[:start]


def _without(tail: bytes, mark: bytes) -> tuple[bytes, bytes | None] | None:
    """Cut one ``, key=word`` out of an attribute list; None where it may stand inside a string."""
    start = tail.find(mark)
    if start < 0:
        return tail, None
    quote = tail.find(b'"', 0, start)
    stop = tail.find(b",", start + len(mark))
    stop = len(tail) if stop < 0 else stop
    return None if quote >= 0 else (tail[:start] + tail[stop:], tail[start + len(mark) : stop])


def is_caller(opcode: bytes) -> bool:
    """Whether an instruction of that opcode runs other computations."""
    return as_text(opcode) in CALLERS


def must_be_looked_into(opcode: bytes, instruction: Instruction | Site) -> bool:
    """Whether something that is no plain collective may communicate all the same."""
    if isinstance(instruction, Site) or not opcode or opcode == b"async-start" or is_collective(as_text(opcode)):
        return True
    if opcode != b"custom-call" or not isinstance(instruction, TextInstruction):
        return False
    text = instruction.computation.text
    target = _CUSTOM_TARGET.search(text, instruction.start, instruction.end)
    return target is not None and custom_call_opcode(as_text(target[1])) is not None
