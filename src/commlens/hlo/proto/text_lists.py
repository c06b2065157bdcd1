"""Lists of messages in a text form, written as the separate fields that they stand for.

``map: [{...}, {...}]`` is short for ``map {...} map {...}``. No writer makes such lists, and to edit one takes to know
of its commas and brackets, which are no matter of fields. So they are spelled out before a module is edited; one that
is not keeps its bytes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.hlo.proto.text_fields import BLANKS, COMMENT, STRING, UNCLOSED

if TYPE_CHECKING:
    from collections.abc import Iterator

_SEEN: Final = re.compile(rb"\[\s*+[{<#]")
_FIRST: Final = re.compile(BLANKS + rb"[{<]")
_TOKEN: Final = re.compile(
    rb"(?P<skipped>" + STRING + rb"|" + UNCLOSED + rb"|" + COMMENT + rb")"
    rb"|\b(?P<name>[A-Za-z_]\w*+)(?P<before>" + BLANKS + rb"):?+(?P<behind>" + BLANKS + rb")(?P<open>[{<\[])"
    rb"|(?P<bare>[{<\[])|(?P<close>[}>\]])|(?P<separator>[,;])"
)


class _Change(NamedTuple):
    """A part of the text and what stands there instead."""

    start: int
    end: int
    replacement: bytes


def separate_fields(data: bytes) -> bytes:
    r"""Return the text of a message in which every list of messages is written as fields of their own.

    Args:
        data: the text of a message, its brackets balanced.

    Example:
        >>> separate_fields(b'map: [{ key: "a" }, < key: "b" >] ids: [1, 2]').split()
        [b'map', b'{', b'key:', b'"a"', b'}', b'map', b'<', b'key:', b'"b"', b'>', b'ids:', b'[1,', b'2]']
    """
    if _SEEN.search(data) is None:
        return data
    pieces: list[bytes] = []
    done = 0
    for start, end, replacement in _changes(data):
        pieces += (data[done:start], replacement)
        done = end
    return b"".join((*pieces, data[done:]))


def _changes(data: bytes) -> Iterator[_Change]:
    around: list[bytes | None] = []  # of every open bracket: the name of the list of messages that it is, if it is one
    for token in _TOKEN.finditer(data):
        listed = around[-1] if around else None
        if token["separator"]:
            if listed is not None:
                yield _Change(*token.span(), b" ")
        elif token["close"]:
            if around and around.pop() is not None:
                yield _Change(*token.span(), b" ")
        elif token["open"] == b"[" and _FIRST.match(data, token.end()):
            around.append(token["name"])
            yield _Change(*token.span(), token["before"] + token["behind"])
        elif token["open"] or token["bare"]:
            around.append(None)
            if listed is not None:
                yield _Change(token.start(), token.start(), b" " + listed + b" ")
