"""Finding the modules in the text form of a proto, at whatever depth they stand.

A module is the message that has ``computations`` which have ``instructions``; a ``config`` beside it is its
configuration. So every message that XLA keeps modules in is read alike, compiled executables included. The text itself
is parsed by protobuf's own reader, which knows its escapes; fields that the schema does not have are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from google.protobuf import text_format

from commlens.errors import GrammarError
from commlens.hlo.model import UnreadableError
from commlens.hlo.proto import tags
from commlens.hlo.proto.places import FoundModule
from commlens.hlo.proto.schema.commlens_hlo_pb2 import (
    HloModuleConfigProto,
    HloModuleOutline,
    HloModuleProto,
    PrimitiveType,
)
from commlens.hlo.proto.text_message import TextMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.protobuf.message import Message

    from commlens.hlo.proto.written import WrittenMessage

_TOKEN: Final = re.compile(
    rb"""  (?P<skipped>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\#[^\n]*)
         | (?P<name>\b[A-Za-z_]\w*)[ \t]{0,8}:?[ \t]{0,8}[{<]
         | (?P<open>[{<]) | (?P<close>[}>])""",
    re.VERBOSE,
)
_ELEMENT_TYPE: Final = re.compile(r"\b(element_type:[ \t]{0,8})([A-Z]\w*)")
_UNKNOWN_TYPE: Final = 2**31 - 1
_PARTS: Final = frozenset({b"computations", b"config", b"instructions"})
_DEEPEST: Final = 100
"""As many levels as protobuf's own readers take."""


@dataclass(slots=True)
class _Block:
    """A message in the text.

    Attributes:
        name: the field it is the value of.
        parent: the message around it; None of the whole.
        start: offset of its first field.
        end: offset behind its last one.
        parts: the messages directly in it that make it a module or belong to one, by name.
    """

    name: bytes
    parent: _Block | None
    start: int
    end: int
    parts: dict[bytes, list[_Block]] = field(default_factory=dict[bytes, "list[_Block]"])

    @property
    def instructions(self) -> list[list[_Block]]:
        """The instructions of each computation directly in it."""
        return [each.parts.get(b"instructions", []) for each in self.parts.get(b"computations", ())]


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Where a module stands in a text.

    Attributes:
        index: how many modules stand before it.
        start: offset of its first field.
        end: offset behind its last one.
        instructions: by computation and position, where the fields of an instruction start and end.
    """

    index: int
    start: int
    end: int
    instructions: Sequence[Sequence[tuple[int, int]]]

    def module(self, source: bytes) -> TextMessage:
        """Return the module as it is written."""
        return TextMessage(source[self.start : self.end], tags.MODULE)

    def instruction(self, source: bytes, encoded: Sequence[bytes], number: int, position: int) -> TextMessage:
        """Return an instruction as it is written.

        Raises:
            UnreadableError: instructions are written in a way in which they are read but not found.
        """
        if len(self.instructions[number]) != len(encoded):
            msg = "expected each instruction of the computation to begin with its name and bracket in one line"
            raise UnreadableError(msg)
        start, end = self.instructions[number][position]
        return TextMessage(source[start:end], tags.INSTRUCTION)

    def with_module(self, found: FoundModule, module: WrittenMessage) -> FoundModule:
        """Return what is found when another module stands here."""
        content = b"".join((found.source[: self.start], module.data, found.source[self.end :]))
        return find_modules_in_text(content)[self.index]


def find_modules_in_text(data: bytes) -> list[FoundModule]:
    """Find the modules in the text form of a proto.

    Args:
        data: the whole text.

    Returns:
        The modules in file order, none where the text holds none. Element types that nobody knows yet become a number
        without a meaning.

    Raises:
        GrammarError: brackets do not match, a message is nested too deeply, a field of the schema has a value that does
            not fit.
    """
    found: list[FoundModule] = []
    for index, block in enumerate(_module_blocks(data)):
        module = HloModuleProto()
        _parse(data, block, module)
        configs = [] if block.parent is None else block.parent.parts.get(b"config", [])
        config = HloModuleConfigProto() if configs else None
        if config is not None:
            _parse(data, configs[0], config)
        outline = HloModuleOutline.FromString(module.SerializeToString())
        instructions = [[(each.start, each.end) for each in computation] for computation in block.instructions]
        found.append(FoundModule(data, outline, config, TextPlace(index, block.start, block.end, instructions)))
    return found


def _module_blocks(data: bytes) -> list[_Block]:
    """Return the outermost messages that are modules."""
    whole = current = _Block(b"", None, 0, len(data))
    depth = 0
    modules: list[_Block] = []
    for token in _TOKEN.finditer(data):
        if token["skipped"]:
            continue
        if token["close"]:
            if current.parent is None:
                raise _unbalanced(token.start())
            current.end = token.start()
            if _is_module(current):
                while modules and modules[-1].start > current.start:  # those stand in this one
                    modules.pop()
                modules.append(current)
            current, depth = current.parent, depth - 1
            continue
        depth += 1
        if depth > _DEEPEST:
            msg = f"expected at most {_DEEPEST} messages inside each other, found more"
            raise GrammarError(msg, position=token.start())
        current = _opened(token["name"] or b"", current, token.end(), len(data))
    if current is not whole:
        raise _unbalanced(len(data))
    return [whole] if _is_module(whole) else modules


def _opened(name: bytes, parent: _Block, start: int, end: int) -> _Block:
    block = _Block(name, parent, start, end)
    if name in _PARTS:
        parent.parts.setdefault(name, []).append(block)
    return block


def _is_module(block: _Block) -> bool:
    return any(block.instructions)


def _unbalanced(position: int) -> GrammarError:
    return GrammarError(
        "expected every message to be closed by its own bracket, found one too many or too few", position=position
    )


def _parse(data: bytes, block: _Block, message: Message) -> None:
    text = _ELEMENT_TYPE.sub(_known_type, data[block.start : block.end].decode("utf-8", "replace"))
    try:
        text_format.Parse(text, message, allow_unknown_field=True)
    except text_format.ParseError as error:
        fault = str(error).partition(" : ")[2] or str(error)
        msg = f"the text form of {message.DESCRIPTOR.name} cannot be read: {fault}"
        raise GrammarError(msg, position=_position(data, block, error)) from error


def _position(data: bytes, block: _Block, error: text_format.ParseError) -> int:
    """Return the offset of a fault whose line and column count from the start of a block."""
    position = block.start
    for _ in range((error.GetLine() or 1) - 1):
        position = data.find(b"\n", position) + 1
    return position + max((error.GetColumn() or 1) - 1, 0)


def _known_type(match: re.Match[str]) -> str:
    """Keep the name of a known element type, put a number that no type has for another one."""
    return match[0] if match[2] in PrimitiveType.keys() else f"{match[1]}{_UNKNOWN_TYPE}"  # noqa: SIM118 - no mapping
