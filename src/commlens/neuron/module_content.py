"""What a module is apart from what each process that writes it chooses anew: its name and its number."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from commlens.hlo import UnreadableError, bare_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Module

_CHOSEN: Final = frozenset({1, 5})
"""Fields of HloModuleProto that say nothing of the program: ``name``, and ``id``, which counts modules of a process."""

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
        content = bare_bytes(module)
    except UnreadableError:  # the text form of a proto
        return hashlib.sha256(module.to_bytes()).hexdigest()
    digest = hashlib.sha256()
    for piece in _lasting(content) if module.format == "proto" else (content,):
        digest.update(piece)
    return digest.hexdigest()


def _lasting(message: bytes) -> Iterator[memoryview]:
    """Yield the fields of a module's message, in their order, without those that each process chooses."""
    whole = memoryview(message)
    position = 0
    while position < len(message):
        start = position
        tag, position = _varint(message, position)
        match tag & 7:
            case 0:
                _, position = _varint(message, position)
            case 2:
                size, position = _varint(message, position)
                position += size
            case kind:
                position += _FIXED.get(kind, len(message))  # what is no field is taken to the end
        if tag >> 3 not in _CHOSEN:
            yield whole[start:position]


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Return a number of 7 bits to a byte and the position behind it; the message has been read before."""
    value = shift = 0
    while position < len(message):
        byte = message[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            break
    return value, position
