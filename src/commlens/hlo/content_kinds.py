"""Content sniffing: what kind of content a file holds, told from its bytes alone; names of files lie."""

from __future__ import annotations

import re
from typing import Final, Literal

ContentKind = Literal["text", "binary", "text form", "unknown"]

_LOOKED_AT: Final = 4096
_NOT_IN_TEXT: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_HLO: Final = re.compile(rb"\bHloModule\b|=\s{0,80}\({0,8}[a-z][a-z0-9]{0,16}\[")
_EXCERPT: Final = 16


def content_kind(data: bytes) -> ContentKind:
    """Say what a content is, as far as its bytes show.

    Binary protos are full of control characters from their first field on; text has none, unless a string in it does.

    Args:
        data: the whole content, uncompressed.

    Returns:
        ``"text"`` for what has the marks of HLO text, ``"text form"`` for the text form of a proto with instructions,
        ``"binary"`` for what may be a binary proto, ``"unknown"`` for other text.

    Example:
        >>> content_kind(b"HloModule m"), content_kind(b"x = f32[8] negate(y)"), content_kind(b"Dear diary,")
        ('text', 'text', 'unknown')
        >>> content_kind(bytes((10, 1)) + b"m" + bytes((18, 0)))
        'binary'
    """
    if _NOT_IN_TEXT.search(data, 0, _LOOKED_AT) is not None:
        return "binary"
    if _may_be_text_form(data):
        return "text form"
    return "text" if looks_like_hlo(data) else "unknown"


def looks_like_hlo(data: bytes) -> bool:
    """Whether the marks of HLO text occur: the word HloModule, or an equals sign with a shape behind it."""
    return _HLO.search(data) is not None


_BLANKS: Final = rb"(?>\s|#[^\n]*+)*+"
_FIELD: Final = re.compile(_BLANKS + rb"[A-Za-z_]\w*+" + _BLANKS + rb"[:{<\[]")
_INSTRUCTIONS: Final = re.compile(rb"\binstructions\s*+:?+\s*+[{<\[#]")
_OPCODE: Final = re.compile(rb"\bopcode\s*+[:#]")


def _may_be_text_form(data: bytes) -> bool:
    r"""Whether a text starts with a field of a proto's text form and has instructions in it.

    Example:
        >>> _may_be_text_form(b'# a comment\nhlo_module { computations { instructions { opcode: "add" } } }')
        True
        >>> _may_be_text_form(b"e {\n  x = f32[] parameter(0)\n}")
        False
    """
    return bool(_FIELD.match(data) and _INSTRUCTIONS.search(data) and _OPCODE.search(data))


def excerpt(data: bytes) -> str:
    r"""Return the first bytes of a content for a message.

    Example:
        >>> excerpt(b"\x7fELF\x02\x01")
        "'\\x7fELF\\x02\\x01'"
    """
    return repr(data[:_EXCERPT])[1:]
