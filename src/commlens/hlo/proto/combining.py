"""How a combined collective is written, and what its members become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.hlo.edits import EditError
from commlens.hlo.proto import tags
from commlens.hlo.proto.decoding import braced
from commlens.hlo.proto.schema.commlens_hlo_pb2 import FrontendAttributes, LayoutProto
from commlens.hlo.swaps import swap_of, swapped_layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlens.hlo.edits import Combine
    from commlens.hlo.proto.instruction import ProtoInstruction
    from commlens.hlo.proto.tags import Tag
    from commlens.hlo.proto.written import Value, WrittenMessage

_ABOUT_DIMENSIONS: Final = frozenset(
    {
        *("dim_level_types", "dim_unique", "dim_ordered", "split_configs"),  # of a layout
        *("tile_assignment_dimensions", "iota_reshape_dims", "named_sharding"),  # of a sharding
    }
)
"""Fields that speak of dimensions by number: they are not carried over where two are swapped."""


class Fresh(NamedTuple):
    """Gives new instructions what no other has.

    Attributes:
        name: gives a name for an opcode.
        number: gives an id.
    """

    name: Callable[[str], bytes]
    number: Callable[[], int]


class Combined(NamedTuple):
    """What stands in a computation for a combined collective.

    Attributes:
        new: the new instruction, behind what must stand before it.
        members: what stands in the place of each member now: one instruction or two.
    """

    new: list[Written]
    members: list[list[Written]]


class Written(NamedTuple):
    """An instruction that is new or changed.

    Attributes:
        number: its id.
        message: the instruction.
    """

    number: int
    message: WrittenMessage


def combined(
    edit: Combine, members: Sequence[ProtoInstruction], number: int, renamed: Callable[[int], int], fresh: Fresh
) -> Combined:
    """Write a combined collective.

    Args:
        edit: what to do.
        members: its members, in the same order.
        number: id of the new instruction.
        renamed: gives the id that an instruction has afterwards.
        fresh: gives names and ids to what stands around it.

    Raises:
        EditError: a member cannot be combined.
        UnreadableError: the operand of one is not defined.
    """
    swaps = [_swap(member, edit.dimension) for member in members]
    shapes = [_shape(member, swap) for member, swap in zip(members, swaps, strict=True)]
    new: list[Written] = []
    operands: list[int] = []
    for member, swap in zip(members, swaps, strict=True):
        operand = renamed(member.message.operand_ids[0])
        if swap is not None:
            shape, name = _shape(member.operands[0], swap), fresh.name("transpose")
            new.append(_new(name, b"transpose", shape, fresh.number(), operand, (tags.DIMENSIONS, swap)))
            operand = new[-1].number
        operands.append(operand)
    new.append(Written(number, _collective(edit, members, swaps, shapes, number, operands, renamed)))
    rows: list[list[Written]] = []
    for index, (member, swap, shape) in enumerate(zip(members, swaps, shapes, strict=True)):
        place = (tags.TUPLE_INDEX, _stated(index))
        if swap is None:
            rows.append([_become(member, b"get-tuple-element", renamed, number, place)])
        else:
            name = fresh.name("get-tuple-element")
            part = _new(name, b"get-tuple-element", shape, fresh.number(), number, place)
            rows.append([part, _become(member, b"transpose", renamed, part.number, (tags.DIMENSIONS, swap))])
    return Combined(new, rows)


def _swap(member: ProtoInstruction, dimension: int | None) -> tuple[int, ...] | None:
    """Return how the dimensions of a member are to be permuted; None where they stay."""
    own, sizes = member.message.dimensions, member.message.shape.dimensions
    return swap_of(own[0] if own else None, dimension, len(sizes), member.name, f"an array of sizes {list(sizes)}")


def _shape(instruction: ProtoInstruction, swap: Sequence[int] | None = None) -> WrittenMessage:
    """Return the shape of an instruction as it is written, its dimensions swapped but in memory as it was."""
    shape = instruction.written.message(tags.SHAPE)
    if shape is None or instruction.message.shape.tuple_shapes:
        msg = f"expected {instruction.name} to be an array, found {'a tuple' if shape else 'no shape'}"
        raise EditError(msg)
    if swap is None:
        return shape
    stated = instruction.message.shape
    if len(stated.dimensions) != len(swap):
        msg = f"expected an array of {len(swap)} dimensions to transpose, found {instruction.name}: {instruction.shape}"
        raise EditError(msg)
    changes: dict[Tag, Sequence[Value]] = {tags.SIZES: [stated.dimensions[axis] for axis in swap]}
    if len(stated.is_dynamic_dimension) == len(swap):
        changes[tags.IS_DYNAMIC] = [stated.is_dynamic_dimension[axis] for axis in swap]
    layout = shape.message(tags.LAYOUT)
    if layout is not None:
        _refuse_about_dimensions(instruction, layout, tags.LAYOUT)
        stated_order = layout.decoded(LayoutProto).minor_to_major
        order = swapped_layout(stated_order, swap, instruction.name, braced(stated_order))
        changes[tags.LAYOUT] = [layout.with_fields({tags.MINOR_TO_MAJOR: order})]
    return shape.with_fields(changes)


def _refuse_about_dimensions(instruction: ProtoInstruction, message: WrittenMessage, tag: Tag) -> None:
    found = sorted(_ABOUT_DIMENSIONS & message.fields().keys())
    if found:
        msg = f"expected a {tag.name} of {instruction.name} without dimensions to swap, found {found[0]}"
        raise EditError(msg)


def _collective(
    edit: Combine,
    members: Sequence[ProtoInstruction],
    swaps: Sequence[Sequence[int] | None],
    shapes: Sequence[WrittenMessage],
    number: int,
    operands: Sequence[int],
    renamed: Callable[[int], int],
) -> WrittenMessage:
    """Write the new instruction: the first member with what differs from it."""
    made = _kept(edit, members[0].written)
    before = dict.fromkeys(renamed(each) for member in members for each in member.message.control_predecessor_ids)
    changes: dict[Tag, Sequence[Value]] = {
        tags.NAME: [edit.name.encode()],
        tags.SHAPE: [
            made.empty(tags.SHAPE.kind).with_fields({tags.ELEMENT_TYPE: [tags.TUPLE_SHAPE], tags.TUPLE_SHAPES: shapes}),
        ],
        tags.ID: _stated(number),
        tags.OPERAND_IDS: operands,
        tags.CONTROL_PREDECESSOR_IDS: list(before),
        tags.SHARDING: _sharding(members, swaps),
    }
    if edit.dimension is not None:
        changes[tags.DIMENSIONS] = [edit.dimension]
    return made.with_fields(changes)


def _kept(edit: Combine, written: WrittenMessage) -> WrittenMessage:
    """Return an instruction without what is not to be kept of it."""
    dropped = {
        name
        for name, value in written.fields().items()
        if name not in tags.SPOKEN_OF and value.strip() and tags.attribute_name(name) not in edit.other_attributes
    }
    made = written.without(dropped | {"constrain_layout"})
    metadata, attributes = made.message(tags.METADATA), made.message(tags.FRONTEND_ATTRIBUTES)
    changes: dict[Tag, Sequence[Value]] = {}
    if metadata is not None:
        others = metadata.fields().keys() - edit.metadata
        changes[tags.METADATA] = [metadata.without(others)]
    if attributes is not None:
        kept = {key.encode() for key in edit.frontend_attributes}
        entries = enumerate(attributes.messages(tags.ATTRIBUTES))
        gone = [index for index, entry in entries if entry.decoded(FrontendAttributes.MapEntry).key not in kept]
        changes[tags.FRONTEND_ATTRIBUTES] = [attributes.with_replaced(tags.ATTRIBUTES, dict.fromkeys(gone, ()))]
    return made.with_fields(changes)


def _sharding(members: Sequence[ProtoInstruction], swaps: Sequence[Sequence[int] | None]) -> list[WrittenMessage]:
    """Return the tuple of the members' shardings; nothing where none of them has one."""
    shardings = [member.written.message(tags.SHARDING) for member in members]
    for member, sharding, swap in zip(members, shardings, swaps, strict=True):
        if swap is not None and sharding is not None:
            _refuse_about_dimensions(member, sharding, tags.SHARDING)
    stated = [sharding for sharding in shardings if sharding is not None]
    if not stated:
        return []
    replicated = stated[0].empty(tags.SHARDING.kind)
    parts = [replicated if sharding is None else sharding for sharding in shardings]
    return [replicated.with_fields({tags.SHARDING_TYPE: [tags.TUPLE_SHARDING], tags.TUPLE_SHARDINGS: parts})]


def _new(
    name: bytes, opcode: bytes, shape: WrittenMessage, number: int, operand: int, own: tuple[Tag, Sequence[int]]
) -> Written:
    """Write an instruction of its own with one operand and one more field."""
    fields: dict[Tag, Sequence[Value]] = {
        tags.NAME: [name],
        tags.OPCODE: [opcode],
        tags.SHAPE: [shape],
        tags.ID: _stated(number),
        tags.OPERAND_IDS: [operand],
    }
    return Written(number, shape.empty(tags.INSTRUCTION).with_fields({**fields, own[0]: own[1]}))


def _become(
    member: ProtoInstruction,
    opcode: bytes,
    renamed: Callable[[int], int],
    operand: int,
    own: tuple[Tag, Sequence[int]],
) -> Written:
    """Write what takes a member's name: it keeps shape, metadata and sharding."""
    message = member.message
    number, made = _new(message.name, opcode, _shape(member), renamed(message.id), operand, own)
    kept = {tag: member.written.message(tag) for tag in (tags.METADATA, tags.SHARDING)}
    return Written(number, made.with_fields({tag: [each] for tag, each in kept.items() if each is not None}))


def _stated(number: int) -> list[int]:
    """Return what is written of a number: nothing for 0, which is what a missing field says."""
    return [number] if number else []
