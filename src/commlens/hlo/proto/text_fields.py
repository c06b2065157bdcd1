"""The fields in a text form of a message: where each stands, comments, separators and white space told apart from it.

Source: protobuf.dev, "Text Format Language Specification".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.errors import GrammarError, excerpt
from commlens.hlo.proto.schema.commlens_hlo_pb2 import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf import text_format

STRING: Final = rb"\"(?>[^\"\\\n]|\\.)*+\"|'(?>[^'\\\n]|\\.)*+'"
"""A piece of a text value."""

UNCLOSED: Final = rb"[\"'][^\n]*+"
"""A string that its line does not close: no structure stands in it."""
COMMENT: Final = rb"\#[^\n]*+"
BLANKS: Final = rb"(?>\s|" + COMMENT + rb")*+"
"""What may stand between two tokens."""

_TOKEN: Final = re.compile(
    rb"(?P<blank>\s+|" + COMMENT + rb")|(?P<string>" + STRING + rb")|(?P<open>[{<\[])|(?P<separator>[,;])|(?P<colon>:)"
    rb"|(?P<word>[\w.+\-]+)"
)
_BRACKET: Final = re.compile(STRING + rb"|" + UNCLOSED + rb"|" + COMMENT + rb"|(?P<open>[{<\[])|(?P<close>[}>\]])")
_NAMES: Final = ("word", "open")  # a word, or that of an extension in brackets
_SKIPPED: Final = ("blank", "separator")
_LONGEST_FAULT: Final = 120
_ELEMENT_TYPE: Final = re.compile(
    STRING + rb"|" + UNCLOSED + rb"|" + COMMENT
    + rb"|\b(?P<name>element_type" + BLANKS + rb":" + BLANKS + rb")(?P<type>[A-Z]\w*)"
)  # fmt: skip
_UNKNOWN_TYPE: Final = 2**31 - 1
_ESCAPE: Final = re.compile(rb"\\(?:(?P<unknown>[^abfnrtvx\\'\"0-7]|[4-7][0-7]{2})|.)", re.DOTALL)


class Token(NamedTuple):
    """A token; brackets with all that stands between them are one."""

    kind: str
    start: int
    end: int


class Field(NamedTuple):
    """A field in the text of a message.

    Attributes:
        name: its name.
        start: offset of its value, brackets included.
        stop: offset behind its value.
        end: offset behind it and a separator.
    """

    name: bytes
    start: int
    stop: int
    end: int


def read_fields(data: bytes) -> Iterator[Field]:
    r"""Yield the fields of a message.

    Raises:
        GrammarError: the text is no message.

    Example:
        >>> [(field.name, field.start) for field in read_fields(b'name: "x" # a note\n shape { }')]
        [(b'name', 6), (b'shape', 26)]
    """
    tokens = [token for token in _tokens(data) if token.kind != "blank"]
    kinds = [*(token.kind for token in tokens), "", "", ""]
    at = 0
    while at < len(tokens):
        name = tokens[at]
        first = last = at + 1 + (kinds[at + 1] == "colon")
        while kinds[first] == "string" == kinds[last + 1]:  # strings in a row are one
            last += 1
        if last >= len(tokens) or name.kind not in _NAMES:
            msg = "expected the name of a field and a value behind it"
            raise GrammarError(msg, position=name.end)
        at = last + 1
        end = tokens[last].end
        if kinds[at] == "separator":
            end, at = tokens[at].end, at + 1
        yield Field(data[name.start : name.end], tokens[first].start, tokens[last].end, end)


def unknown_escape(text: bytes) -> str | None:
    r"""Return the first escape that protobuf's reader in Python does not know or reads as something else.

    Args:
        text: a piece of a text value, quotes included.

    Example:
        >>> unknown_escape(rb'"a\\n\x41\k"'), unknown_escape(rb'"a\\k"')
        ('\\k', None)
    """
    found = next((match for match in _ESCAPE.finditer(text) if match["unknown"] is not None), None)
    return None if found is None else found[0].decode("utf-8", "replace")


def blanks_before(data: bytes) -> int:
    """Return how many bytes of a text come before its first field: white space, comments, separators.

    Raises:
        GrammarError: what stands there is no token.
    """
    return next((token.start for token in _tokens(data) if token.kind not in _SKIPPED), 0)


def for_parser(data: bytes) -> str:
    """Return a text as protobuf's reader takes it: a number without a meaning for an element type that nobody knows.

    Args:
        data: the text of a message.

    Example:
        >>> for_parser(b'element_type: F32 op_name: "element_type: F99"')
        'element_type: F32 op_name: "element_type: F99"'
        >>> for_parser(b"element_type: F99")
        'element_type: 2147483647'
    """
    return _ELEMENT_TYPE.sub(_known_type, data).decode("utf-8", "replace")


def parser_fault(text: str, error: text_format.ParseError) -> str:
    """Say what protobuf's reader found and near what: of the line that it quotes, which may be the whole text, a part.

    Args:
        text: what it was given.
        error: what it raised.

    Example:
        >>> from google.protobuf import text_format
        >>> parser_fault("id: x", text_format.ParseError("'id: x': Couldn't parse integer: x", 1, 5))
        "near 'id: x': Couldn't parse integer: x"
    """
    line = text.split("\n")[(error.GetLine() or 1) - 1]
    indent = len(line) - len(line.lstrip())
    near = excerpt(line.strip(), (error.GetColumn() or 1) - 1 - indent)
    fault = (str(error).partition(" : ")[2] or str(error)).removeprefix(f"'{line}': ")
    return f"near {near!r}: {excerpt(fault, most=_LONGEST_FAULT)}"


def _known_type(match: re.Match[bytes]) -> bytes:
    if match["type"] is None or match["type"].decode() in PrimitiveType.keys():  # noqa: SIM118 - no mapping
        return match[0]
    return match["name"] + b"%d" % _UNKNOWN_TYPE


def _tokens(data: bytes) -> Iterator[Token]:
    """Yield the tokens of a message.

    Raises:
        GrammarError: what stands there is no token, or a bracket is not closed.
    """
    position = 0
    while position < len(data):
        match = _TOKEN.match(data, position)
        end = None if match is None else _closed(data, match.end()) if match["open"] else match.end()
        if match is None or end is None:
            msg = "expected a field of a message in protobuf's text form"
            raise GrammarError(msg, position=position)
        yield Token(str(match.lastgroup), position, end)
        position = end


def _closed(data: bytes, position: int) -> int | None:
    """Return the offset behind the bracket that closes one opened before a position."""
    depth = 1
    for match in _BRACKET.finditer(data, position):
        depth += bool(match["open"]) - bool(match["close"])
        if depth == 0:
            return match.end()
    return None
