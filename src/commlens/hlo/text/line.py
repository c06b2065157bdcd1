"""One instruction of a text, taken apart: where its name, shape, opcode, operands and attributes stand.

Nothing is interpreted here beyond structure. Spans are kept, so that an edit can replace exactly one value.
Source: ``HloParserImpl::ParseInstruction``, xla/hlo/parser/hlo_parser.cc.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from commlens.errors import GrammarError
from commlens.hlo.formatting import as_text
from commlens.hlo.shapes import ELEMENT_BITS, read_shape
from commlens.hlo.text.tokens import DEFINITION, GAP, NAME, blank_comments, closing, split_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.hlo.shapes import Shape
    from commlens.hlo.text.tokens import Text

_DEFINITION = re.compile(DEFINITION)
_OPCODE = re.compile(rb"\s*(?P<opcode>[a-z][a-z0-9\-]*)\s*\(")
_ATTRIBUTE = re.compile(rb"\s*(?P<key>[A-Za-z_][\w.\-]*)=")
_OPERAND_NAME = re.compile(rb"\s*%?(?P<name>" + NAME + rb")\s*")
_MESH = re.compile(rb"@?(?:maximal_)?mesh\b")
_SHAPE_WINDOW = 512
_BUFFER = b"b"
"""What stands before the parenthesis of a buffer's shape, where an opcode might stand."""
_OPEN_ANGLE = re.compile(rb"@mesh\s*<[^>]*")
_ARRAY_SHAPE = re.compile(rb"[A-Za-z]\w*+(?:" + GAP + rb"*+(?=\[)|(?=\())|b" + GAP + rb"*+(?=\()")
_LAYOUT = re.compile(
    rb"\{(?!" + GAP + rb"*+(?:%|ROOT\b|" + NAME + GAP + rb"*+=))|" + GAP + rb"++\{(?=" + GAP + rb"*+(?:-?\d|:))"
)
"""A layout right behind a shape; one behind a blank shows by its first dimension that it is not a body's brace."""
_NESTED = re.compile(rb"\s*(?P<opcode>[a-z][a-z0-9\-]*)\s*\(")


ANONYMOUS = ".anon"
"""How the name of an instruction ends that stands as an operand of another, as XLA names it."""


class Span(NamedTuple):
    """A half-open range of offsets."""

    start: int
    end: int


class Operand(NamedTuple):
    """One operand as written: its name, and its shape where the text states it."""

    name: str
    shape: Shape | None


@dataclass(frozen=True, slots=True)
class Line:
    """The parts of one instruction.

    Attributes:
        text: the instruction's bytes, comments blanked; offsets below are offsets in it.
        name: the name without ``%``.
        is_root: whether ``ROOT`` stands before it.
        shape_span: where the result's shape stands; empty where it is left out.
        opcode: the opcode.
        operand_span: what stands between the parentheses behind the opcode.
        attributes: value spans by attribute name.
        fault: why the rest of the instruction could not be taken apart, None where it could.
    """

    text: bytes
    name: str
    is_root: bool
    shape_span: Span
    opcode: str
    operand_span: Span
    attributes: Mapping[str, Span]
    fault: GrammarError | None

    def value(self, key: str) -> bytes | None:
        """Return an attribute's value as written, None where the attribute is absent."""
        span = self.attributes.get(key)
        return None if span is None else self.text[span.start : span.end]

    def operand_spans(self) -> list[Span]:
        """Return where the operands stand, without the blanks around them; commas before none XLA reads over."""
        spans = (_trimmed(self.text, *span) for span in split_list(self.text, *self.operand_span))
        return [span for span in spans if span.start < span.end]

    def operand_names(self) -> list[str]:
        """Return the names in the operand list, whatever the types beside them are.

        Of one that is an instruction itself it is the opcode and :data:`ANONYMOUS`, whether or not there are others.
        """
        return [_operand_name(self.text, *span) for span in self.operand_spans()]

    def operands(self) -> list[Operand]:
        """Take the operand list apart.

        Raises:
            GrammarError: an operand is neither a name nor a shape and a name.
        """
        return [_operand(self.text, *span) for span in self.operand_spans()]


def parse_nested(text: bytes) -> Line:
    """Take an instruction apart that stands as an operand: it has no name, and may leave out its shape.

    Example:
        >>> parse_nested(b"f32[4] negate(p)").name
        'negate.anon'
    """
    opcode = _OPCODE.match(text)
    if opcode is None:
        opcode = _OPCODE.match(text, shape_end(text, 0))
    name = b"anon" if opcode is None else opcode["opcode"] + ANONYMOUS.encode()
    return parse_line(name + b" = " + text)


def parse_line(text: bytes) -> Line:
    """Take one instruction apart.

    Args:
        text: the whole instruction, over as many lines as it has; a comma or blanks may follow.

    Returns:
        Its parts. Where only the attributes are broken (a text cut in mid-line, an attribute given twice), the rest is
        returned with :attr:`Line.fault` set.

    Raises:
        GrammarError: no name, opcode or operand list can be made out.

    Example:
        >>> line = parse_line(b"ROOT %r = f32[8]{0} all-reduce(%a), channel_id=7, to_apply=%add")
        >>> line.name, line.opcode, line.value("channel_id")
        ('r', 'all-reduce', b'7')
    """
    text = blank_comments(text)
    definition = _DEFINITION.match(text)
    if definition is None:
        msg = "expected an instruction such as 'x = f32[8] opcode(...)'"
        raise GrammarError(msg, position=0)
    shape_span, opcode = _shape_and_opcode(text, definition.end())
    opened = opcode.end() - 1
    closed = closing(text, opened)
    fault: GrammarError | None = None
    attributes: dict[str, Span] = {}
    if closed is None:
        closed = len(text)
        fault = GrammarError("expected ')' after the operands, found the end of the text", position=opened)
    else:
        fault = _read_attributes(text, closed + 1, attributes)
    return Line(
        text,
        as_text(definition["name"]),
        definition["root"] is not None,
        shape_span,
        as_text(opcode["opcode"]),
        Span(opened + 1, closed),
        attributes,
        fault,
    )


def nested_spans(line: Line) -> list[Span]:
    """Return where the operands stand that are instructions themselves, as in ``add(negate(p), p)``."""
    return [span for span in line.operand_spans() if is_nested(line.text, *span)]


def is_nested(text: bytes, start: int, end: int) -> bool:
    """Whether an operand is an instruction itself."""
    if _NESTED.match(text, start, end) is not None:
        return True
    try:
        behind = shape_end(text, _trimmed(text, start, end).start)
    except GrammarError:
        return False
    return _NESTED.match(text, behind, end) is not None


def _shape_and_opcode(text: bytes, start: int) -> tuple[Span, re.Match[bytes]]:
    """Find the shape (it may be left out) and the opcode behind the ``=`` of an instruction."""
    opcode = _OPCODE.match(text, start)
    if opcode is not None and opcode["opcode"] != _BUFFER and as_text(opcode["opcode"]) not in ELEMENT_BITS:
        return Span(start, start), opcode
    end = shape_end(text, start)
    opcode = _OPCODE.match(text, end)
    if opcode is None:
        msg = f"expected an opcode and '(' after the shape, found {as_text(text[end : end + 20].strip())!r}"
        raise GrammarError(msg, position=end)
    return Span(start, end), opcode


def shape_end(text: Text, start: int, end: int = sys.maxsize) -> int:
    """Return where the shape that starts at ``start`` ends, whether or not its types are known ones.

    What does not end before ``end`` is no shape.

    Raises:
        GrammarError: no shape stands there.
    """
    if text[start : start + 1] == b"(":
        closed = closing(text, start, end)
        if closed is not None:
            return closed + 1
    else:
        bracket = _ARRAY_SHAPE.match(text, start, end)
        closed = None if bracket is None else closing(text, bracket.end(), end)
        if closed is not None:
            layout = _LAYOUT.match(text, closed + 1, end)
            if layout is not None:
                closed = closing(text, layout.end() - 1, end) or closed
            return closed + 1
    msg = f"expected a shape such as f32[8]{{0}}, found {as_text(text[start : start + 20].strip())!r}"
    raise GrammarError(msg, position=start)


def shape_text(text: Text, start: int) -> str:
    """Return as much as holds the shape that starts here, without comments: a tuple may be of any length."""
    end: int | None = start + _SHAPE_WINDOW
    if text[start : start + 1] == b"(":
        closed = closing(text, start)
        end = None if closed is None else closed + 1
    return blank_comments(text[start:end]).decode("latin-1")


def parse_attributes(text: bytes, start: int) -> tuple[Mapping[str, Span], GrammarError | None]:
    """Take a list of attributes apart.

    Args:
        text: a text without comments.
        start: where the list starts: at the comma before its first attribute.

    Returns:
        The spans of the values by attribute name, as far as they can be read, and the first fault.
    """
    attributes: dict[str, Span] = {}
    fault = _read_attributes(text, start, attributes)
    return attributes, fault


def _read_attributes(text: bytes, start: int, attributes: dict[str, Span]) -> GrammarError | None:
    """Fill ``attributes`` with the list that starts at ``start``; return the first fault."""
    rest = text[start:].strip()
    if not rest:
        return None
    if not rest.startswith(b","):
        return GrammarError(f"expected ', attribute=value', found {as_text(rest[:20])!r}", position=start)
    pieces = list(split_list(text, text.index(b",", start) + 1, len(text)))
    last: str | None = None
    for piece_start, piece_end in pieces:
        if last is not None and _OPEN_ANGLE.fullmatch(text, *attributes[last]):
            attributes[last] = Span(attributes[last].start, _trimmed(text, piece_start, piece_end).end)
            continue
        key = _ATTRIBUTE.match(text, piece_start, piece_end)
        if key is not None:
            name = as_text(key["key"])
            if name == "device_ids" and last is not None and _is_mesh(text, attributes[last]):
                attributes[last] = Span(attributes[last].start, _trimmed(text, piece_start, piece_end).end)
                continue
            if name in attributes:
                return GrammarError(f"the attribute {name} is given twice", position=key.start("key"))
            last = name
            attributes[name] = _trimmed(text, key.end(), piece_end)
        elif last is not None and _is_mesh(text, attributes[last]) and text[piece_start:piece_end].lstrip()[:1] == b"{":
            attributes[last] = Span(attributes[last].start, _trimmed(text, piece_start, piece_end).end)
        else:
            found = as_text(text[piece_start:piece_end].strip()[:20])
            what = repr(found) if found else "nothing"
            return GrammarError(
                f"expected attribute=value behind the comma, found {what}",
                position=_trimmed(text, piece_start, piece_end).start,
            )
    return None


def _is_mesh(text: bytes, value: Span) -> bool:
    """Whether a value is a mesh, which goes on behind commas: ``mesh['a'=2], device_ids=(1,0) {'a'}``."""
    return _MESH.match(text, value.start, value.end) is not None


def _trimmed(text: bytes, start: int, end: int) -> Span:
    piece = text[start:end]
    inner = piece.strip()
    if inner:
        start += len(piece) - len(piece.lstrip())
    return Span(start, start + len(inner))


def _operand_name(text: bytes, start: int, end: int) -> str:
    """Return the name of an operand; where none can be made out, what stands there."""
    name = _OPERAND_NAME.fullmatch(text, start, end)
    if name is None:
        try:
            name = _OPERAND_NAME.fullmatch(text, shape_end(text, _trimmed(text, start, end).start), end)
        except GrammarError:
            name = None
    if name is not None:
        return as_text(name["name"])
    return _operand(text, start, end).name if is_nested(text, start, end) else as_text(text[start:end].strip())


def _operand(text: bytes, start: int, end: int) -> Operand:
    name = _OPERAND_NAME.fullmatch(text, start, end)
    if name is not None:
        return Operand(as_text(name["name"]), None)
    nested = _NESTED.match(text, start, end)
    if nested is not None:
        return Operand(as_text(nested["opcode"]) + ANONYMOUS, None)
    try:
        shape, shape_stop = read_shape(text[start:end].decode("latin-1"), 0)
    except GrammarError as error:
        raise GrammarError(str(error), position=start + error.position) from None
    name = _OPERAND_NAME.fullmatch(text, start + shape_stop, end)
    if name is not None:
        return Operand(as_text(name["name"]), shape)
    nested = _NESTED.match(text, start + shape_stop, end)
    if nested is not None:
        return Operand(as_text(nested["opcode"]) + ANONYMOUS, shape)
    msg = f"expected an operand's name, found {as_text(text[start:end].strip()[:20])!r}"
    raise GrammarError(msg, position=start)
