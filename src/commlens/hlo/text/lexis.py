"""The tokens of HLO text, and finding the ends of things without being misled by strings and comments.

All of it works on ``bytes``, so that offsets are offsets in the file. Every pattern is linear: a token is consumed
whole, and no two neighbouring repeats can match the same characters.
Source: xla/hlo/parser/hlo_lexer.cc.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap

    Text: TypeAlias = bytes | mmap
    """A whole file: in memory, or mapped."""

STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
SINGLE_QUOTED = rb"'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
BLOCK_COMMENT = rb"/\*[^*]*(?:\*(?!/)[^*]*)*\*/"
LINE_COMMENT = rb"//[^\n]*"
UNCLOSED = rb"\".*|/\*.*|'[^\n]*"
NAME = rb"[A-Za-z_][\w.\-]*"

SKIPPED = re.compile(b"|".join((STRING, SINGLE_QUOTED, BLOCK_COMMENT, LINE_COMMENT, UNCLOSED)), re.DOTALL)
"""Strings and comments: what structure must not be looked for in."""

_BRACKET = re.compile(SKIPPED.pattern + rb"|(?P<open>[({\[])|(?P<close>[)}\]])", re.DOTALL)
_SEPARATOR = re.compile(_BRACKET.pattern + rb"|(?P<comma>,)", re.DOTALL)
_COMMENT = re.compile(
    b"|".join((STRING, SINGLE_QUOTED, b"(?P<comment>" + BLOCK_COMMENT + b"|" + LINE_COMMENT + b")", UNCLOSED)),
    re.DOTALL,
)
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))", re.DOTALL)
_SPECIAL = re.compile(rb"[^\x20-\x7e]|[\\\"']")
_ESCAPES = {b"\n": rb"\n", b"\t": rb"\t", b"\r": rb"\r", b"\\": rb"\\", b'"': rb"\"", b"'": rb"\'"}
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def closing(text: Text, opened: int, end: int = sys.maxsize) -> int | None:
    """Return the position of the bracket that closes the one at ``opened``; None if there is none before ``end``.

    Kinds of brackets are not told apart: in a sane text they nest, in another nothing can be said.

    Example:
        >>> closing(b'f({"}"}) x', 1)
        7
    """
    depth = 0
    for token in _BRACKET.finditer(text, opened, end):
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth -= 1
            if depth == 0:
                return token.start()
    return None


def depth_of(text: Text, start: int, end: int) -> int:
    """Return how many brackets that open in a range are not closed in it.

    Example:
        >>> depth_of(b"metadata={op_name=1", 0, 19)
        1
    """
    return sum(bool(token["open"]) - bool(token["close"]) for token in _BRACKET.finditer(text, start, end))


def split_list(text: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans between the commas of a list that stand outside brackets, strings and comments.

    Example:
        >>> text = b'a, f32[2,3] b, {"x,y"}'
        >>> [text[a:b] for a, b in split_list(text, 0, len(text))]
        [b'a', b' f32[2,3] b', b' {"x,y"}']
    """
    depth = 0
    for token in _SEPARATOR.finditer(text, start, end):
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth -= 1
        elif token["comma"] and depth == 0:
            yield start, token.start()
            start = token.end()
    yield start, end


def blank_comments(text: bytes) -> bytes:
    """Return the text with every comment replaced by blanks, so that all offsets stay."""
    return _COMMENT.sub(lambda token: b" " * len(token[0]) if token["comment"] else token[0], text)


def unquoted(text: bytes) -> str | None:
    r"""Return what a quoted string says, its C escapes resolved; None where the text is no whole string.

    Example:
        >>> unquoted(rb'"a\"b\n\101"')
        'a"b\nA'
    """
    if len(text) < 2 or text[:1] not in (b'"', b"'") or text[:1] != text[-1:]:
        return None
    return as_text(_ESCAPE.sub(_unescaped, text[1:-1]))


def quoted(text: str) -> bytes:
    r"""Return a string as XLA prints it: in quotes, with C escapes.

    Source: ``absl::CEscape``.

    Example:
        >>> quoted('a"b\n\u00e9')
        b'"a\\"b\\n\\303\\251"'
    """
    return b'"' + _SPECIAL.sub(_with_escape, text.encode("utf-8", "surrogateescape")) + b'"'


def _with_escape(byte: re.Match[bytes]) -> bytes:
    return _ESCAPES.get(byte[0]) or b"\\%03o" % byte[0][0]


def _unescaped(escape: re.Match[bytes]) -> bytes:
    octal, hexadecimal, other = escape.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)])
    return _ESCAPED.get(other, other)


def as_text(data: bytes) -> str:
    """Decode bytes of a module for people; bytes that are no UTF-8 become replacement characters."""
    return data.decode("utf-8", "replace")
