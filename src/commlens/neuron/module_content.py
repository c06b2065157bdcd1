"""What a module is apart from what each process that writes it chooses anew: its name and its number."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

from commlens.hlo import UnreadableError, serialized_module

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commlens.hlo import Module

_CHOSEN: Final = frozenset({1, 5})
"""Fields of HloModuleProto that say nothing of the program: ``name``, and ``id``, which counts modules of a process."""

_GROUPS: Final = frozenset({49, 87, 92, 93})
"""Fields of HloInstructionProto that hold a replica group list, each in a spelling of its own."""

_COMPUTATIONS: Final = 3
_INSTRUCTIONS: Final = 2

_WRITTEN_GROUPS: Final = re.compile(rb"(?<=replica_groups=)(?:\{[{}\d, ]*\}|\[[\d,]+\]<=\[[\d,]+\](?:T\([\d,]+\))?)")
"""A replica group list in HLO text, as a list or an iota."""

_FIXED: Final = {1: 8, 5: 4}
"""Wire types of a known size, in bytes."""


def content_digest(module: Module) -> str:
    r"""Return a digest that two modules share when they are the same program, field by field and byte by byte.

    Args:
        module: the module. Of a proto its name and number are left out; a text counts as it is written.

    Returns:
        Hexadecimal digits.

    Example:
        >>> from commlens.hlo import load
        >>> text = "HloModule m\nENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n"
        >>> content_digest(load(text)) == content_digest(load(text.encode()))
        True
    """
    try:
        content = serialized_module(module)
    except UnreadableError:  # the text form of a proto
        return hashlib.sha256(module.to_bytes()).hexdigest()
    return _digest(_lasting(content) if module.format == "proto" else (content,))


def digest_without_groups(module: Module) -> str:
    r"""Return a digest that two modules share when they are the same program but for their replica groups.

    Where the groups mean the same in both, the modules differ in nothing but their spelling.

    Args:
        module: the module. Of a text only lists and iotas are left out, no groups over mesh axes.

    Returns:
        Hexadecimal digits.
    """
    try:
        content = serialized_module(module)
    except UnreadableError:  # the text form of a proto
        return content_digest(module)
    return _digest(_without_groups(content) if module.format == "proto" else (_WRITTEN_GROUPS.sub(b"", content),))


def _digest(pieces: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _lasting(message: bytes) -> Iterator[memoryview]:
    """Yield the fields of a module's message, in their order, without those that each process chooses."""
    return (field for number, field, _ in _fields(message) if number not in _CHOSEN)


def _without_groups(message: bytes) -> Iterator[bytes | memoryview]:
    """Yield what :func:`_lasting` does, computations as their fields and instructions as theirs but for the groups.

    A mark before each of the former and a count of fields before each of the latter keep apart what is taken apart.
    """
    for number, field, value in _fields(message):
        if number == _COMPUTATIONS:
            yield b"computation"
            for inner, part, instruction in _fields(value):
                if inner == _INSTRUCTIONS:
                    kept = [each for attribute, each, _ in _fields(instruction) if attribute not in _GROUPS]
                    yield b"%d:" % len(kept)
                    yield from kept
                else:
                    yield part
        elif number not in _CHOSEN:
            yield field


def _fields(message: bytes | memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """Yield the number, the whole and the content of each field, in their order."""
    whole = memoryview(message)
    position = 0
    while position < len(message):
        start = position
        tag, position = _varint(message, position)
        content = position
        match tag & 7:
            case 0:
                _, position = _varint(message, position)
            case 2:
                size, content = _varint(message, position)
                position = content + size
            case kind:
                position += _FIXED.get(kind, len(message))  # what is no field is taken to the end
        yield tag >> 3, whole[start:position], whole[content:position]


def _varint(message: bytes | memoryview, position: int) -> tuple[int, int]:
    """Return a number of 7 bits to a byte and the position behind it; the message has been read before."""
    value = shift = 0
    while position < len(message):
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            break
    return value, position
