"""Frontend attributes: a map of strings and brace blocks, by XLA's grammar and no other.

Source: ``HloParserImpl::ParseFrontendAttributes``, xla/hlo/parser/hlo_parser.cc.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.errors import GrammarError
from commlens.hlo.formatting import as_text
from commlens.hlo.text.tokens import NAME, closing, unquoted

if TYPE_CHECKING:
    from collections.abc import Iterator

_BYTE: Final = rb"[0-3][0-7]{0,2}|[4-7][0-7]?(?![0-7])|[xX]0*+[0-9A-Fa-f]{1,2}(?![0-9A-Fa-f])|[xX]0++(?![0-9A-Fa-f])"
_ESCAPED: Final = rb"\\(?:[abfnrtv\\?'\"]|" + _BYTE + rb"|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})"
WHOLE_STRING: Final = rb"\"(?>[^\"\\]++|" + _ESCAPED + rb")*+\"|'(?>[^'\\\n]++|" + _ESCAPED + rb")*+'"
"""A string with escapes that ``absl::CUnescape`` knows: one with others XLA refuses."""
_STRING: Final = re.compile(WHOLE_STRING)
_KEY: Final = re.compile(rb"\s*+(?P<key>" + NAME + rb")=\s*+")
_FOLLOWER: Final = re.compile(rb"\s*+(?P<sign>[,}])")
_MAP, _PAIR, _END = 'a map such as {a="1"}', 'a key and its value such as a="1"', "nothing behind the map"
_EMPTY: Final = re.compile(rb"\{\s*+\}")


class MapEntry(NamedTuple):
    """One entry of a map.

    Attributes:
        key: its key.
        start: offset of the key.
        value: where its value starts and ends.
    """

    key: bytes
    start: int
    value: tuple[int, int]


def read_entries(text: bytes, start: int, end: int) -> list[MapEntry]:
    r"""Return the entries of a map in the order in which they stand.

    Args:
        text: a text without comments.
        start: where the map starts.
        end: where it ends; nothing else may stand there.

    Raises:
        GrammarError: what stands there is no map.

    Example:
        >>> text = b'{a="x,y", p={{0,1},{1,2}}}'
        >>> [(entry.key, text[slice(*entry.value)]) for entry in read_entries(text, 0, len(text))]
        [(b'a', b'"x,y"'), (b'p', b'{{0,1},{1,2}}')]
        >>> read_entries(b'{a="1" b="2"}', 0, 13)
        Traceback (most recent call last):
        commlens.errors.GrammarError: expected a comma or '}' behind the value of a, found 'b="2"}'
    """
    if text[start : start + 1] != b"{":
        raise _unlike(_MAP, text, start, end)
    return [] if _EMPTY.fullmatch(text, start, end) else list(_entries(text, start + 1, end))


def _entries(text: bytes, position: int, end: int) -> Iterator[MapEntry]:
    while True:
        key = _KEY.match(text, position, end)
        if key is None:
            raise _unlike(_PAIR, text, position, end)
        name = as_text(key["key"])
        behind = _value_end(text, key.end(), end)
        if behind is None:
            what = f"a quoted string or a block in braces as the value of {name}"
            raise _unlike(what, text, key.end(), end)
        yield MapEntry(key["key"], key.start("key"), (key.end(), behind))
        follower = _FOLLOWER.match(text, behind, end)
        if follower is None:
            what = f"a comma or '}}' behind the value of {name}"
            raise _unlike(what, text, behind, end)
        position = follower.end()
        if follower["sign"] == b"}":
            if text[position:end].strip():
                raise _unlike(_END, text, position, end)
            return


def _value_end(text: bytes, start: int, end: int) -> int | None:
    """Return where a string or a block in braces ends; None where neither stands there."""
    if text[start : start + 1] != b"{":
        string = _STRING.match(text, start, end)
        return None if string is None else string.end()
    closed = closing(text, start, end)
    return None if closed is None else closed + 1


def _unlike(what: str, text: bytes, position: int, end: int) -> GrammarError:
    while position < end and text[position : position + 1].isspace():
        position += 1
    found = as_text(text[position : min(end, position + 20)].strip())
    return GrammarError(f"expected {what}, found {repr(found) if found else 'nothing'}", position=position)


def map_of(text: bytes, entries: list[MapEntry]) -> dict[str, str]:
    """Return a map: strings unquoted, brace blocks as raw text; of a key that stands there twice, the last counts."""
    found: dict[str, str] = {}
    for key, _, (start, end) in entries:
        raw = text[start:end]
        string = unquoted(raw)
        found[as_text(key)] = as_text(raw) if string is None else string
    return found
