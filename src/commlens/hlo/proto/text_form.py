"""Finding the modules in the text form of a proto, at whatever depth they stand.

A module is the message that has ``computations`` which have ``instructions``; a ``config`` beside it is its
configuration. So every message that XLA keeps modules in is read alike, compiled executables included. The text itself
is parsed by protobuf's own reader, which knows its escapes; fields that the schema does not have are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from google.protobuf import text_format

from commlens.errors import GrammarError
from commlens.hlo.edits import EditError
from commlens.hlo.model import UnreadableError
from commlens.hlo.proto import descriptors
from commlens.hlo.proto.locations import FoundModule
from commlens.hlo.proto.schema.commlens_hlo_pb2 import (
    HloInstructionProto,
    HloModuleConfigProto,
    HloModuleOutline,
    HloModuleProto,
)
from commlens.hlo.proto.text_fields import BLANKS, COMMENT, STRING, UNCLOSED, for_parser, parser_fault, unknown_escape
from commlens.hlo.proto.text_lists import separate_fields
from commlens.hlo.proto.text_message import TextMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.protobuf.message import Message

    from commlens.hlo.proto.raw_message import RawMessage

_TOKEN: Final = re.compile(
    rb"(?P<skipped>" + STRING + rb"|" + UNCLOSED + rb"|" + COMMENT + rb")"
    rb"|\b(?P<name>[A-Za-z_]\w*+)" + BLANKS + rb":?+" + BLANKS + rb"(?P<open>[{<\[])"
    rb"|(?P<bare>[{<\[])|(?P<close>[}>\]])"
)
_PARTS: Final = frozenset({b"computations", b"config", b"instructions"})
_SINGLE: Final = frozenset({b"hlo", b"hlo_module"})
_DEEPEST: Final = 100
"""As many levels as protobuf's own readers take."""


@dataclass(slots=True)
class _Block:
    """A message in the text, or a list of messages.

    Attributes:
        name: the field it is the value of, or in the value of.
        around: the block around it; None of the whole.
        start: offset of what stands in it.
        end: offset behind that.
        is_list: whether it is a list.
        parts: the messages in fields of it that make it a module or belong to one, by name.
    """

    name: bytes
    around: _Block | None
    start: int
    end: int
    is_list: bool = False
    parts: dict[bytes, list[_Block]] = field(default_factory=dict[bytes, "list[_Block]"])

    @property
    def message(self) -> _Block | None:
        """The message in a field of which it stands; None of the whole."""
        return self.around.message if self.around is not None and self.around.is_list else self.around

    @property
    def is_module(self) -> bool:
        """Whether it has a computation with an instruction."""
        return any(b"instructions" in each.parts for each in self.parts.get(b"computations", ()))


class TextLocation:
    """Where a module stands in a text.

    Args:
        index: how many modules stand before it.
        start: offset of its first field.
        end: offset behind its last one.
        content: the module as it is written.
        number: how many computations were read.
    """

    def __init__(self, index: int, start: int, end: int, content: TextMessage, number: int) -> None:
        self._index = index
        self._start = start
        self._end = end
        self._content = content
        self._number = number
        self._checked: dict[tuple[int, int], TextMessage] = {}

    def module(self, source: bytes) -> TextMessage:
        """Return the module as it is written."""
        return self._content

    @cached_property
    def _instructions(self) -> list[list[TextMessage]]:
        """The instructions of each computation as they are written."""
        return [each.messages(descriptors.INSTRUCTIONS) for each in self._content.messages(descriptors.COMPUTATIONS)]

    def instruction(self, source: bytes, encoded: Sequence[bytes], number: int, position: int) -> TextMessage:
        """Return an instruction as it is written.

        Raises:
            UnreadableError: instructions are written in a way in which protobuf's reader reads them and this one does
                not find them.
        """
        known = self._checked.get((number, position))
        if known is None:
            known = self._checked[number, position] = self._found(encoded, number, position)
        return known

    def _found(self, encoded: Sequence[bytes], number: int, position: int) -> TextMessage:
        """Cut an instruction out of the text; what was cut must say what was read."""
        try:
            computations = self._instructions
        except GrammarError as error:
            msg = f"the text is read, but not taken apart: {error}"
            raise UnreadableError(msg) from error
        if len(computations) == self._number and len(computations[number]) == len(encoded):
            found = computations[number][position]
            if found.decoded(HloInstructionProto).SerializeToString() == encoded[position]:
                return found
        msg = f"expected instruction {position} of computation {number} of the text where it was read, found another"
        raise UnreadableError(msg)

    def with_module(self, found: FoundModule, module: RawMessage) -> FoundModule:
        """Return what is found when another module stands here.

        Raises:
            EditError: the text would be none that can be read.
        """
        content = b"".join((found.source[: self._start], module.data, found.source[self._end :]))
        try:
            modules = find_modules_in_text(content)
        except GrammarError as error:
            msg = f"the text form of the module cannot be edited: {error}"
            raise EditError(msg) from error
        if self._index < len(modules):
            return modules[self._index]
        msg = "expected the module in its edited text form to have instructions, found none"
        raise EditError(msg)


def find_modules_in_text(data: bytes) -> list[FoundModule]:
    """Find the modules in the text form of a proto.

    Args:
        data: the whole text.

    Returns:
        The modules in file order, none where the text holds none. Element types that nobody knows yet become a number
        without a meaning.

    Raises:
        GrammarError: brackets do not match, a message is nested too deeply, a field of the schema has a value that does
            not fit, or one that may occur once has a module in each of two occurrences.
    """
    found: list[FoundModule] = []
    blocks = _module_blocks(data)
    _check_single(blocks)
    for index, block in enumerate(blocks):
        module = HloModuleProto()
        _parse(data, block, module)
        configs = [] if block.message is None else block.message.parts.get(b"config", [])
        config = HloModuleConfigProto() if configs else None
        if config is not None:
            _parse(data, configs[0], config)
        outline = HloModuleOutline.FromString(module.SerializeToString())
        content = TextMessage(separate_fields(data[block.start : block.end]), descriptors.MODULE)
        location = TextLocation(index, block.start, block.end, content, len(outline.computations))
        found.append(FoundModule(data, outline, config, location))
    return found


def _module_blocks(data: bytes) -> list[_Block]:
    """Return the outermost messages that are modules."""
    whole = current = _Block(b"", None, 0, len(data))
    depth = 0
    modules: list[_Block] = []
    for token in _TOKEN.finditer(data):
        if token["skipped"]:
            _check_escapes(token)
            continue
        if token["close"]:
            if current.around is None:
                raise _unbalanced(token.start())
            current.end = token.start()
            if current.is_module:
                while modules and modules[-1].start > current.start:  # those stand in this one
                    modules.pop()
                modules.append(current)
            current, depth = current.around, depth - (not current.is_list)
            continue
        current = _opened(token, current, len(data))
        depth += not current.is_list
        if depth > _DEEPEST:
            msg = f"expected at most {_DEEPEST} messages inside each other, found more"
            raise GrammarError(msg, position=token.start())
    if current is not whole:
        raise _unbalanced(len(data))
    return [whole] if whole.is_module else modules


def _check_single(modules: Sequence[_Block]) -> None:
    """Refuse two modules in a field that may occur once: protobuf reads no such text.

    Raises:
        GrammarError: a message has two.
    """
    known: dict[tuple[int, bytes], _Block] = {}
    for module in modules:
        block: _Block | None = module
        while block is not None:
            if block.name in _SINGLE and known.setdefault((id(block.message), block.name), block) is not block:
                msg = f"expected {block.name.decode()} once in its message, found it again"
                raise GrammarError(msg, position=block.start)
            block = block.message


def _check_escapes(token: re.Match[bytes]) -> None:
    """Refuse a text with an escape that would be read wrong; a comment may have any."""
    escape = unknown_escape(token[0]) if b"\\" in token[0] and not token[0].startswith(b"#") else None
    if escape is not None:
        msg = f"expected an escape of protobuf's text form that stands for one byte, found {escape}"
        raise GrammarError(msg, position=token.start())


def _opened(token: re.Match[bytes], around: _Block, end: int) -> _Block:
    """Return the block that a bracket opens; one without a name in a list is called as the list is."""
    name = token["name"] or (around.name if around.is_list else b"")
    is_list = (token["open"] or token["bare"]) == b"["
    if is_list and around.is_list:
        msg = "expected no list directly in a list, found one"
        raise GrammarError(msg, position=token.start())
    block = _Block(name, around, token.end(), end, is_list)
    if name in _PARTS and not block.is_list and block.message is not None:
        block.message.parts.setdefault(name, []).append(block)
    return block


def _unbalanced(position: int) -> GrammarError:
    return GrammarError(
        "expected every message to be closed by its own bracket, found one too many or too few", position=position
    )


def _parse(data: bytes, block: _Block, message: Message) -> None:
    text = for_parser(data[block.start : block.end])
    try:
        text_format.Parse(text, message, allow_unknown_field=True)
    except text_format.ParseError as error:
        msg = f"the text form of {message.DESCRIPTOR.name} cannot be read {parser_fault(text, error)}"
        raise GrammarError(msg, position=_position(data, block, error)) from error


def _position(data: bytes, block: _Block, error: text_format.ParseError) -> int:
    """Return the offset of a fault whose line and column count from the start of a block."""
    position = block.start
    for _ in range((error.GetLine() or 1) - 1):
        position = data.find(b"\n", position) + 1
    return position + max((error.GetColumn() or 1) - 1, 0)
