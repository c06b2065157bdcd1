"""The slow path through HLO text: token by token, for text that people wrote, cut, wrapped or quoted.

Strings may run over lines, comments may stand anywhere, an instruction may take several lines, log lines may stand
between modules, and the text may begin or end in the middle of anything. Time is linear in the text.
Source: the module grammar of xla/hlo/parser/hlo_parser.cc, read more leniently.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal

from commlens.errors import GrammarError
from commlens.hlo.text.line import shape_end
from commlens.hlo.text.tokens import (
    BEHIND_A_BODY,
    COMMENT,
    GAP,
    HEADER_GAP,
    NAME,
    SKIPPED,
    STRING,
    TABLES,
    closing,
)

if TYPE_CHECKING:
    from commlens.hlo.text.tokens import Text

ItemKind = Literal["header", "tables", "computation", "loose"]

_COMMENT = rb"/\*[^\n]*?\*/"
_START = (
    rb"(?:\xef\xbb\xbf)?(?>[ \t]|" + _COMMENT + rb")*+(?:"
    rb"(?:[IWEF]\d{4}[^\n\]]*\] *)?(?P<header>HloModule)\b|(?P<tables>" + TABLES + rb")"
    rb"|(?P<loose>(?:ROOT[ \t]+)?%?" + NAME + rb"[ \t]+=[ \t]+(?:\(|[a-z][a-z0-9]*\[))"
    rb"|(?:(?P<entry>ENTRY)\b" + HEADER_GAP + rb")?(?:%?(?P<name>" + NAME + rb")" + HEADER_GAP + rb")?(?P<open>[({]))"
)
_ITEM = re.compile(rb"^" + _START, re.MULTILINE)
_ITEM_HERE = re.compile(_START)
_BEHIND_A_BODY = re.compile(BEHIND_A_BODY)
_UNTIL_A_COMMENT = re.compile(rb"(?>\s|//[^\r\n]*+[\r\n])*+/\*")
_TOKEN = re.compile(
    rb"(?P<skipped>"
    + SKIPPED.pattern
    + rb")|(?P<open>[({\[])|(?P<close>[)}\]])|(?P<line>\n(?=\S))|%[\w.\-]++(?P<marked>"
    + GAP
    + rb"*+=(?!=))|(?P<number>(?<==)-?\d++)|(?P<word>%?[\w.\-]++)(?P<defines>"
    + GAP
    + rb"++=(?!=))?",
    re.DOTALL,
)
"""What a name stands before that is defined; without its mark, one right before ``=`` is that of an attribute."""
_DEEPEST_INDENT = 256
"""Blanks before an instruction; it is looked for that far back only, so that long lines cost no more than others."""
_LONGEST_HEADER = 200
"""Lines over which the parameters of a computation may be spread."""
_FAR = 8 * 1024
"""Bytes that one part of a header or table, or what stands before a first instruction, may take."""
_DEEP = 16
"""Brackets inside each other in which a first instruction is still looked for."""
_HEADER_TOKEN = re.compile(SKIPPED.pattern + rb"|(?P<open>[({\[])|(?P<close>[)}\]])|(?P<line>\n(?=\S))", re.DOTALL)
_RESULT = re.compile(HEADER_GAP + rb"->" + HEADER_GAP)
_SHAPE = re.compile(rb"\s+(?:\(|[a-z][a-z0-9]*\[)")
_BODY = re.compile(HEADER_GAP + rb"\{")
_FIELDS = rb"\{(?>[^{}/]++|" + COMMENT + rb")*+\}"
_ROW = rb"\d++" + GAP + rb"*+(?:" + STRING + rb"|" + _FIELDS + rb")"
_TABLE_PART = re.compile(GAP + rb"*+(?:" + TABLES + rb"|" + _ROW + rb")")
_NAME_BELOW = rb"(?!ENTRY\b)" + NAME + rb"(?!" + GAP + rb"*+[({])"
_HEADER_NAME = re.compile(rb"[ \t]++(?:\"[^\"\n]*+\"|(?>[^\s,\"/]|/(?![/*]))++)|" + GAP + rb"*+" + _NAME_BELOW)
"""The name of a module, behind its word; on a line below, a name that a computation does not bear."""
_HEADER_ATTRIBUTE = re.compile(
    GAP + rb"*+," + GAP + rb"*+" + NAME + rb"=" + GAP + rb"*+(?:(?P<open>\{)|" + STRING + rb"|-?\d++|[^\s,{}\"/]++)"
)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that stands at the top level of a text.

    Attributes:
        kind: a module header, tables of stack frames, a computation, or instructions outside any computation.
        start: where its first line starts.
        body: for a computation, the offset behind its opening brace; else where the item starts.
        end: for a computation, the offset of its closing brace; else the offset behind the item.
        starts: where the instructions start, ``ROOT`` included.
        closed: False where the text ends, or another item begins, before the closing brace.
    """

    kind: ItemKind
    start: int
    body: int
    end: int
    starts: tuple[int, ...] = ()
    closed: bool = True

    @property
    def resume(self) -> int:
        """Where to look for the next item."""
        return self.end + 1 if self.kind == "computation" and self.closed else self.end


def behind_item(text: Text, position: int, last_close: int) -> int:
    r"""Return where to look for the next item: behind what belongs to the last one, and block comments.

    They may run over lines, and what looks like a computation in one is none.

    Args:
        text: the whole file.
        position: an offset outside all items, strings and comments.
        last_close: offset of the last ``*/`` of the text; a comment that starts behind it has no end, and is none.

    Example:
        >>> text = b'}, execution_thread="host" // old:\n/*\na {\n}\n*/ b {'
        >>> text[behind_item(text, 1, text.rfind(b"*/")) :]
        b' b {'
    """
    attributes = _BEHIND_A_BODY.match(text, position, position + _FAR)
    behind = position if attributes is None else attributes.end()
    while (comment := _UNTIL_A_COMMENT.match(text, behind)) is not None and comment.end() <= last_close:
        behind = text.find(b"*/", comment.end()) + 2
    return behind


def next_item(text: Text, position: int) -> Item | None:
    """Return the first item at or behind a position, None if there is no more.

    Args:
        text: the whole file.
        position: an offset outside all items, strings and comments.

    Returns:
        The item. Lines that belong to none (logs, prose) are passed over.
    """
    here = _ITEM_HERE.match(text, position)
    for match in chain([] if here is None else [here], _ITEM.finditer(text, position)):
        if match["header"]:
            return Item("header", match.start(), match.start(), header_end(text, match.end()))
        if match["tables"]:
            return Item("tables", match.start(), match.start(), _tables_end(text, match.start("tables")))
        if match["loose"]:
            start = match.start() + len(match[0]) - len(match[0].lstrip())
            starts, end, _ = find_instructions(text, start)
            return Item("loose", start, start, end, starts)
        if not (match["name"] or match["entry"]):
            continue
        body = _body_of(text, match.end() - 1)
        if body is not None:
            if match["open"] == b"{" and not match["entry"] and not _holds_instruction(text, body):
                continue  # a name and a brace, but nothing of a computation
            starts, end, closed = find_instructions(text, body)
            return Item("computation", match.start(), body, end, starts, closed)
    return None


def _tables_end(text: Text, position: int) -> int:
    """Return where tables of stack frames end: behind the last row."""
    while (part := _TABLE_PART.match(text, position, position + _FAR)) is not None:
        position = part.end()
    return position


def _body_of(text: Text, opened: int) -> int | None:
    """Return the offset behind the ``{`` of a computation's header whose name ends at ``opened``."""
    if text[opened : opened + 1] == b"{":
        return opened + 1
    last = _lines_behind(text, opened)
    closed = closing(text, opened, last)
    arrow = None if closed is None else _RESULT.match(text, closed + 1)
    if arrow is None:
        return None
    try:
        end = shape_end(text, arrow.end(), last)
    except GrammarError:
        return None
    brace = _BODY.match(text, end)
    return None if brace is None else brace.end()


def _lines_behind(text: Text, position: int) -> int:
    """Return where a header that starts here must have ended; what does not end there is prose, not a header."""
    for _ in range(_LONGEST_HEADER):
        position = text.find(b"\n", position) + 1
        if not position:
            return len(text)
    return position


def header_end(text: Text, position: int) -> int:
    """Return where a module header ends: behind its name and attributes, over as many lines as they take.

    Args:
        text: the whole file.
        position: offset behind ``HloModule``.
    """
    name = _HEADER_NAME.match(text, position, position + _FAR)
    if name is None:
        return position
    position = name.end()
    while (attribute := _HEADER_ATTRIBUTE.match(text, position, position + _FAR)) is not None:
        position = _braces_end(text, attribute.start("open")) if attribute["open"] else attribute.end()
    return position


def _braces_end(text: Text, opened: int) -> int:
    """Return where a header's value in braces ends, at the latest before a line that starts a computation."""
    depth = 0
    for token in _HEADER_TOKEN.finditer(text, opened):
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth -= 1
            if depth == 0:
                return token.end()
        elif token["line"] and _starts_item(text, token.end(), on_one_line=True):
            return token.start()
    return len(text)


def _holds_instruction(text: Text, body: int) -> bool:
    """Whether an instruction begins not far behind an opening brace; what does not begin there is prose, or code."""
    return bool(find_instructions(text, body, only_first=True)[0])


def find_instructions(text: Text, position: int, *, only_first: bool = False) -> tuple[tuple[int, ...], int, bool]:
    """Find the instructions of a body.

    Args:
        text: the whole file.
        position: offset behind the body's opening brace.
        only_first: whether to find the first one alone, and not far from there.

    Returns:
        Where they start; where the body ends (its ``}``, the start of another item, or the end of the text); and
        whether a ``}`` closed it.
    """
    starts: list[int] = []
    depth = 0
    root: int | None = None
    for token in _TOKEN.finditer(text, position, position + _FAR if only_first else sys.maxsize):
        if only_first and (starts or depth > _DEEP):
            break
        kind = token.lastgroup
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
            if depth < 0:
                return tuple(starts), token.start(), True
        elif kind == "line" and _starts_item(text, token.end()):
            return tuple(starts), token.end(), False
        elif kind in ("defines", "marked"):
            start = token.start() if root is None else root
            if not _is_attribute(text, start) and (depth == 0 or _recovers(text, start, token.end())):
                starts.append(start)
                depth = 0
            root = None
        elif kind == "word":
            root = token.start() if token["word"] == b"ROOT" else None
    return tuple(starts), len(text), False


def is_one_instruction(text: bytes) -> bool:
    """Whether a text is an instruction from end to end, and not two, or a part of one.

    Example:
        >>> is_one_instruction(b"x = f32[] negate(p)"), is_one_instruction(b"x = f32[] negate(p) y = f32[] negate(x)")
        (True, False)
    """
    starts, end, closed = find_instructions(text + b"\n}", 0)
    return len(starts) == 1 and closed and end == len(text) + 1


def _is_attribute(text: Text, start: int) -> bool:
    """Whether a name stands behind a comma or is a value: then it belongs to what comes before, whatever follows."""
    before = text[max(0, start - _DEEPEST_INDENT) : start]
    return before.rstrip().endswith(b",") or before.rstrip(b" \t").endswith(b"=")


def _recovers(text: Text, start: int, behind: int) -> bool:
    """Whether an instruction must start here although a bracket is open: ``name = shape`` first on its line."""
    before = text[max(0, start - _DEEPEST_INDENT) : start].rstrip(b" \t")
    return before.endswith(b"\n") and _SHAPE.match(text, behind) is not None


def _starts_item(text: Text, position: int, *, on_one_line: bool = False) -> bool:
    """Whether a line in the first column inside open brackets must be the start of another item.

    Args:
        text: the whole file.
        position: where the line starts.
        on_one_line: whether a computation may go on behind its brace: never where instructions stand around it.
    """
    match = _ITEM.match(text, position)
    if match is None or match["loose"] or match["tables"]:
        return False
    if match["header"]:
        return True
    line = text[position : text.find(b"\n", position)].rstrip()
    if not (on_one_line or line.endswith(b"{")):
        return False
    return bool(match["entry"] or (match["name"] and (match["open"] == b"{" or b"->" in line)))
