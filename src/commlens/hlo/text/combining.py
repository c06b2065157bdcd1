"""How a combined collective is spelled, and what becomes of the lines of its members."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.hlo.edits import EditError
from commlens.hlo.formatting import as_text
from commlens.hlo.text.attribute_edits import LAST_ATTRIBUTES, map_entries
from commlens.hlo.text.rewriting import rewritten
from commlens.hlo.text.splices import spliced
from commlens.hlo.text.tokens import NAME, split_list
from commlens.hlo.text.values import MODELED_ATTRIBUTES, callees, metadata_spans, read_integers
from commlens.hlo.transposes import swap_permutation, swapped_layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from commlens.hlo.edits import Combine
    from commlens.hlo.text.line import Line

_MARKED: Final = re.compile(rb"\s*(?:ROOT\s+)?%")
_AROUND_OPERAND: Final = b", \t\r\n\f\v"
"""What may stand around the only operand: commas before nothing are read over."""
_MARKED_OPERAND: Final = re.compile(rb"%(?:" + NAME + rb")\Z")
_ARRAY: Final = re.compile(
    rb"(?P<type>[a-z][a-z0-9]*)\s*\[(?P<dims>[^\]\[]*)\](?:\s*\{(?P<order>[\d,\s]*+)(?P<rest>[^{}]*)\})?"
)
_KEPT_BY_MEMBERS: Final = frozenset({"sharding", "metadata"})
_TILED: Final = re.compile(rb"\bdevices=|\bmesh\b|\[")
_BEHIND_SHARDING: Final = ("frontend_attributes", *LAST_ATTRIBUTES)
_PER_COMMENT: Final = 5
"""XLA writes ``/*index=5*/`` before every fifth part of a list."""


@dataclass(frozen=True, slots=True)
class Member:
    """One of the collectives that are combined.

    Attributes:
        line: the instruction, taken apart without fault.
        source: the bytes it was taken apart from, from its first to its last.
        operand_shape: how the shape of its operand is spelled, where the text says it; only asked for transposes.
    """

    line: Line
    source: bytes
    operand_shape: Callable[[], bytes]

    @property
    def operand(self) -> bytes:
        """Its operand as written."""
        return self.line.text[slice(*self.line.operand_span)].strip(_AROUND_OPERAND)

    @property
    def states_type(self) -> bool:
        """Whether the type of its operand is written beside it."""
        return b"[" in self.operand.partition(b"(")[0] or self.operand.startswith(b"(")

    @property
    def mark(self) -> bytes:
        """What its operand has before its name: ``%`` or nothing."""
        if self.operand.endswith(b")"):  # an operand that is an instruction itself
            return mark_of(self.line)
        return b"%" if _MARKED_OPERAND.search(self.operand) else b""

    @property
    def shape(self) -> bytes:
        """The shape of its result as written."""
        return self.line.text[slice(*self.line.shape_span)]


def mark_of(line: Line) -> bytes:
    """Return what an instruction has before its name: ``%`` or nothing."""
    return b"%" if _MARKED.match(line.text) else b""


@dataclass(frozen=True, slots=True)
class Combined:
    """The lines of a combined collective.

    Attributes:
        lines: the new instruction, and what must stand before it.
        members: what stands in the place of each member now: one line or two.
    """

    lines: list[bytes]
    members: list[list[bytes]]


def combined(edit: Combine, members: Sequence[Member], names: Callable[[str], bytes], *, indexed: bool) -> Combined:
    """Spell a combined collective.

    Args:
        edit: what to do.
        members: its members, taken apart, in the same order.
        names: gives a new name for an instruction of an opcode.
        indexed: whether long lists have ``/*index=5*/`` comments.

    Raises:
        EditError: a member cannot be combined.
    """
    first = members[0].line
    mark = mark_of(first)
    swaps = [_swap(member.line, edit.dimension) for member in members]
    lines: list[bytes] = []
    operands: list[bytes] = []
    shapes: list[bytes] = []
    for member, swap in zip(members, swaps, strict=True):
        operands.append(member.operand if swap is None else _swapped_operand(member, swap, mark, names, lines))
        shapes.append(member.shape if swap is None else _swapped(member, member.shape, swap))
    shape = b"(%s)" % _listed(shapes, indexed=indexed)
    attributes = b"".join(b", %s=%s" % (key.encode(), value) for key, value in _attributes(edit, members, swaps))
    operand_list = _listed(operands, indexed=indexed)
    lines.append(
        b"%s%s = %s %s(%s)%s" % (mark, edit.name.encode(), shape, first.opcode.encode(), operand_list, attributes)
    )
    parts: list[list[bytes]] = []
    for number, (member, swap) in enumerate(zip(members, swaps, strict=True)):
        name = member.mark + edit.name.encode()
        whole = shape + b" " + name if member.states_type else name
        index = b", index=%d" % number
        if swap is None:
            parts.append([_become(member, b"get-tuple-element", index, whole)])
            continue
        part = mark + names("get-tuple-element")
        line = b"%s = %s get-tuple-element(%s)%s" % (part, shapes[number], whole, index)
        operand = shapes[number] + b" " + part if member.states_type else part
        parts.append([line, _become(member, b"transpose", b", dimensions={%s}" % _joined(swap), operand)])
    return Combined(lines, parts)


def _become(member: Member, opcode: bytes, attributes: bytes, operand: bytes) -> bytes:
    return spliced(member.source, rewritten(member.line, opcode, attributes, keep=_KEPT_BY_MEMBERS, operands=operand))


def _listed(parts: Sequence[bytes], *, indexed: bool) -> bytes:
    return b", ".join(
        b"/*index=%d*/%s" % (number, part) if indexed and number and number % _PER_COMMENT == 0 else part
        for number, part in enumerate(parts)
    )


def _joined(numbers: Sequence[int]) -> bytes:
    return b",".join(b"%d" % number for number in numbers)


def _attributes(
    edit: Combine, members: Sequence[Member], swaps: Sequence[Sequence[int] | None]
) -> Iterator[tuple[str, bytes]]:
    """Yield the attributes of the new instruction: those of the first member in their order, as far as they stay."""
    first = members[0].line
    own = {key: first.text[slice(*span)] for key, span in first.attributes.items()}
    united = {"sharding": _sharding(members, swaps), "control-predecessors": _control_predecessors(members)}
    order = list(own)
    for key, followers in (("sharding", _BEHIND_SHARDING), ("control-predecessors", LAST_ATTRIBUTES)):
        if key not in own:
            order.insert(min([order.index(each) for each in followers if each in own], default=len(order)), key)
    for key in order:
        match key:
            case "sharding" | "control-predecessors":
                value = united[key]
            case "constrain_layout":
                value = None
            case "dimensions" if edit.dimension is not None:
                value = b"{%d}" % edit.dimension
            case "frontend_attributes":
                value = _kept_map(first, edit.frontend_attributes)
            case "metadata":
                value = _kept_metadata(own[key], edit.metadata)
            case _:
                value = own[key] if key in MODELED_ATTRIBUTES or key in edit.other_attributes else None
        if value is not None:
            yield key, value


def _kept_map(line: Line, keys: frozenset[str]) -> bytes | None:
    """Return the frontend attributes with these keys; None where there are none."""
    span = line.attributes["frontend_attributes"]
    entries = map_entries(line, span)
    kept = [entry for entry in entries if as_text(entry.key) in keys]
    if len(kept) == len(entries):
        return line.text[slice(*span)] if entries else None
    pairs = [line.text[entry.start : entry.value[1]] for entry in kept]
    return b"{%s}" % b",".join(pairs) if pairs else None


def _kept_metadata(value: bytes, keys: frozenset[str]) -> bytes | None:
    """Return the metadata with these fields; None where there are none."""
    fields = metadata_spans(value)
    kept = [value[start:end] for key, (start, end) in fields.items() if key in keys]
    return value if kept and len(kept) == len(fields) else b"{%s}" % b" ".join(kept) if kept else None


def _sharding(members: Sequence[Member], swaps: Sequence[Sequence[int] | None]) -> bytes | None:
    """Return the tuple of the members' shardings; None where none of them has one."""
    values = [member.line.value("sharding") for member in members]
    for member, value, swap in zip(members, values, swaps, strict=True):
        if swap is not None and value is not None and _TILED.search(value):
            msg = f"expected a sharding of {member.line.name} without dimensions to swap, found {as_text(value)}"
            raise EditError(msg)
    if all(value is None for value in values):
        return None
    return b"{%s}" % b", ".join(b"{replicated}" if value is None else value for value in values)


def _control_predecessors(members: Sequence[Member]) -> bytes | None:
    """Return all control predecessors of the members, each once; None where there are none."""
    values = [member.line.value("control-predecessors") for member in members]
    stated = [value for value in values if value is not None]
    if not stated:
        return None
    names: dict[str, bytes] = {}
    for value in stated:
        for start, end in split_list(value, 1, len(value) - 1):
            for _, name in callees("", "control-predecessors", value[start:end]):
                names.setdefault(name, value[start:end].strip())
    return b"{%s}" % b", ".join(names.values())


def _swap(line: Line, dimension: int | None) -> tuple[int, ...] | None:
    """Return how the dimensions of a member are to be permuted; None where they stay.

    Raises:
        EditError: the member has no such dimensions.
    """
    own = read_integers(line.value("dimensions") or b"")
    shape = _ARRAY.fullmatch(line.text, *line.shape_span)
    rank = 0 if shape is None else len(shape["dims"].split(b","))
    found = as_text(line.text[slice(*line.shape_span)])
    return swap_permutation(own[0] if own else None, dimension, rank, line.name, found)


def _swapped_operand(
    member: Member, swap: Sequence[int], mark: bytes, names: Callable[[str], bytes], lines: list[bytes]
) -> bytes:
    """Add the transpose of a member's operand to the lines; return the operand that takes its place."""
    name = mark + names("transpose")
    shape = _swapped(member, member.operand_shape(), swap)
    lines.append(b"%s = %s transpose(%s), dimensions={%s}" % (name, shape, member.operand, _joined(swap)))
    return shape + b" " + name if member.states_type else name


def _swapped(member: Member, shape: bytes, swap: Sequence[int]) -> bytes:
    """Spell an array shape with two dimensions swapped, in memory as it was: the transpose is a bitcast.

    Raises:
        EditError: the shape is no array of that rank.
    """
    array = _ARRAY.fullmatch(shape)
    dims = [] if array is None else array["dims"].split(b",")
    if array is None or len(dims) != len(swap):
        msg = f"expected an array of {len(swap)} dimensions to transpose for {member.line.name}, found {as_text(shape)}"
        raise EditError(msg)
    swapped = b"%s[%s]" % (array["type"], b",".join(dims[axis].strip() for axis in swap))
    if array["rest"] is None:
        return swapped
    order = swapped_layout(read_integers(b"{%s}" % array["order"]) or (), swap, member.line.name, as_text(shape))
    return b"%s{%s%s}" % (swapped, _joined(order), array["rest"])
