"""Patterns of the tokens of HLO text, and finding the ends of things without being misled by strings and comments.

All of it works on ``bytes``, so that offsets are offsets in the file. Every pattern is linear: a token is consumed
whole, and no two neighbouring repeats can match the same characters.
Source: xla/hlo/parser/hlo_lexer.cc.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, TypeAlias

from commlens.hlo.formatting import as_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap

    Text: TypeAlias = bytes | mmap
    """A whole file: in memory, or mapped."""

STRING = rb'"[^"\\]*+(?>\\.[^"\\]*+)*+"'
SINGLE_QUOTED = rb"'[^'\\\n]*+(?>\\.[^'\\\n]*+)*+'"
BLOCK_COMMENT = rb"/\*[^*]*+(?>\*(?!/)[^*]*+)*+\*/"
LINE_COMMENT = rb"//[^\r\n]*"
UNCLOSED = rb"\".*|/\*.*|'[^\n]*"
NAME = rb"[A-Za-z_][\w.\-]*"
COMMENT = BLOCK_COMMENT + rb"|//[^\r\n]*[\r\n]"
"""A comment with its end, as a pattern."""
GAP = rb"(?>\s|" + COMMENT + rb")"
"""One blank, line end or comment: what may stand between two tokens, as a pattern."""
_ROOT = rb"(?P<root>ROOT(?:" + GAP + rb"++|(?=%)))?"
DEFINITION = GAP + rb"*+" + _ROOT + rb"(?P<mark>%?)(?P<name>" + NAME + b")" + GAP + rb"*+=" + GAP + b"*+"
"""What stands before the shape or opcode of an instruction, as a pattern."""

HEADER_GAP = rb"(?>\s|/\*(?>[^*]|\*(?!/)){0,1000}+\*/|//[^\r\n]*+[\r\n])*+"
"""What may stand between the words of a computation's header, as a pattern; a comment there is no longer than this."""

BEHIND_A_BODY = rb"(?>" + GAP + rb"*+," + GAP + rb"*+(?>" + NAME + rb")\s*+=" + GAP + rb"*+(?:\"[^\"\n]*+\"|[\w.]++))*+"
"""What may stand behind the closing brace of a computation, such as the thread that it runs on, as a pattern."""

TABLES = rb"(?:FileNames|FunctionNames|FileLocations|StackFrames)(?![\w.\-])"
"""The word before a table of stack frames, as a pattern."""

SKIPPED = re.compile(b"|".join((STRING, SINGLE_QUOTED, BLOCK_COMMENT, LINE_COMMENT, UNCLOSED)), re.DOTALL)
"""Strings and comments: what structure must not be looked for in."""

_BRACKET = re.compile(SKIPPED.pattern + rb"|(?P<open>[({\[])|(?P<close>[)}\]])", re.DOTALL)
_HALVES = re.compile(
    b"|".join((STRING, SINGLE_QUOTED, BLOCK_COMMENT, LINE_COMMENT, rb"(?P<unclosed>" + UNCLOSED + b")"))
    + rb"|(?P<open>[({\[])|(?P<close>[)}\]])",
    re.DOTALL,
)
_OTHER_HALF = {b"(": b")", b"{": b"}", b"[": b"]"}
_BLANK = re.compile(_BRACKET.pattern + rb"|(?P<blank>\s)", re.DOTALL)
_SEPARATOR = re.compile(_BRACKET.pattern + rb"|(?P<comma>,)", re.DOTALL)
_COMMENT = re.compile(
    b"|".join((STRING, SINGLE_QUOTED, b"(?P<comment>" + BLOCK_COMMENT + b"|" + LINE_COMMENT + b")", UNCLOSED)),
    re.DOTALL,
)
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|[xX]([0-9A-Fa-f]++)|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
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


def unbalanced(text: Text, start: int, end: int) -> int | None:
    """Return where the first bracket, string or comment stands that lacks its other half; None where there is none.

    Example:
        >>> texts = b"dimensions={0}, flag={, x=(1)", b'a={")"}', b"a={(}", b"a=}"
        >>> [unbalanced(text, 0, len(text)) for text in texts]
        [21, None, 3, 2]
    """
    opened: list[int] = []
    for token in _HALVES.finditer(text, start, end):
        if token["unclosed"]:
            return token.start()
        if token["open"]:
            opened.append(token.start())
        elif token["close"]:
            if not opened:
                return token.start()
            if _OTHER_HALF[text[opened[-1] : opened[-1] + 1]] != token["close"]:
                return opened[-1]
            opened.pop()
    return opened[0] if opened else None


def blank_outside(text: bytes, start: int, end: int) -> int | None:
    """Return where the first blank stands that is outside brackets and strings, None where there is none.

    Example:
        >>> blank_outside(b'{"a b", c d} e', 0, 14), blank_outside(b"{a b}", 0, 5)
        (12, None)
    """
    depth = 0
    for token in _BLANK.finditer(text, start, end):
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth -= 1
        elif token["blank"] and depth == 0:
            return token.start()
    return None


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
        >>> unquoted(rb'"a\"b\n\101\x0042\u0043"')
        'a"b\nABC'
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
    octal, hexadecimal, short, long, other = escape.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal is not None:
        return bytes([int(hexadecimal[-2:], 16)])  # more digits are zeros, or XLA refuses the string
    if other is not None:
        return _ESCAPED.get(other, other)
    number = int(short or long, 16)
    return chr(number).encode("utf-8", "replace") if number <= sys.maxunicode else escape[0]
