"""How many collectives a text seems to hold, counted by the simplest means: one character after the other."""

from __future__ import annotations

import re
from typing import Final

_OPCODE: Final = rb"(?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast|ragged-all-to-all)(?:-start)?"
_CALL: Final = re.compile(rb"(?<=[\s\]})])" + _OPCODE + rb"\(|(?<=[\]})])[ \t]*" + _OPCODE + rb"[ \t]+\(")


def visible(text: bytes) -> bytes:
    """Return the text without what stands in quotes and comments; what opens one and is never closed hides the rest."""
    kept = bytearray()
    position = 0
    while position < len(text):
        two = text[position : position + 2]
        if two == b"/*":
            end = text.find(b"*/", position + 2)
            position = len(text) if end < 0 else end + 2
        elif two == b"//":
            end = text.find(b"\n", position)
            position = len(text) if end < 0 else end
        elif two[:1] in (b'"', b"'"):
            position = _behind_string(text, position)
        else:
            kept += two[:1]
            position += 1
    return bytes(kept)


def _behind_string(text: bytes, position: int) -> int:
    quote = text[position]
    position += 1
    while position < len(text) and text[position] != quote:
        if quote == ord("'") and text[position] == ord("\n"):
            return position
        position += 2 if text[position] == ord("\\") else 1
    return position + 1


def calls_of_collectives(text: bytes) -> int:
    """Count places where a collective, or the start of one, seems to be called."""
    return len(_CALL.findall(visible(text)))
