"""How a combined collective is written, and what its members become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.hlo.edits import EditError
from commlens.hlo.proto import descriptors
from commlens.hlo.proto.decoding import braced
from commlens.hlo.proto.schema.commlens_hlo_pb2 import FrontendAttributes, LayoutProto
from commlens.hlo.transposes import swap_permutation, swapped_layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlens.hlo.edits import Combine
    from commlens.hlo.proto.descriptors import FieldDescriptor
    from commlens.hlo.proto.instruction import ProtoInstruction
    from commlens.hlo.proto.raw_message import RawMessage, Value

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

    new: list[WrittenInstruction]
    members: list[list[WrittenInstruction]]


class WrittenInstruction(NamedTuple):
    """An instruction that is new or changed.

    Attributes:
        number: its id.
        message: the instruction.
    """

    number: int
    message: RawMessage


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
    new: list[WrittenInstruction] = []
    operands: list[int] = []
    for member, swap in zip(members, swaps, strict=True):
        operand = renamed(member.message.operand_ids[0])
        if swap is not None:
            shape, name = _shape(member.operands[0], swap), fresh.name("transpose")
            new.append(_new(name, b"transpose", shape, fresh.number(), operand, (descriptors.DIMENSIONS, swap)))
            operand = new[-1].number
        operands.append(operand)
    new.append(WrittenInstruction(number, _collective(edit, members, swaps, shapes, number, operands, renamed)))
    rows: list[list[WrittenInstruction]] = []
    for index, (member, swap, shape) in enumerate(zip(members, swaps, shapes, strict=True)):
        place = (descriptors.TUPLE_INDEX, _stated(index))
        if swap is None:
            rows.append([_become(member, b"get-tuple-element", renamed, number, place)])
        else:
            name = fresh.name("get-tuple-element")
            part = _new(name, b"get-tuple-element", shape, fresh.number(), number, place)
            rows.append([part, _become(member, b"transpose", renamed, part.number, (descriptors.DIMENSIONS, swap))])
    return Combined(new, rows)


def _swap(member: ProtoInstruction, dimension: int | None) -> tuple[int, ...] | None:
    """Return how the dimensions of a member are to be permuted; None where they stay."""
    own, sizes = member.message.dimensions, member.message.shape.dimensions
    return swap_permutation(
        own[0] if own else None, dimension, len(sizes), member.name, f"an array of sizes {list(sizes)}"
    )


def _shape(instruction: ProtoInstruction, swap: Sequence[int] | None = None) -> RawMessage:
    """Return the shape of an instruction as it is written, its dimensions swapped but in memory as it was."""
    shape = instruction.raw.message(descriptors.SHAPE)
    if shape is None or instruction.message.shape.tuple_shapes:
        msg = f"expected {instruction.name} to be an array, found {'a tuple' if shape else 'no shape'}"
        raise EditError(msg)
    if swap is None:
        return shape
    stated = instruction.message.shape
    if len(stated.dimensions) != len(swap):
        msg = f"expected an array of {len(swap)} dimensions to transpose, found {instruction.name}: {instruction.shape}"
        raise EditError(msg)
    changes: dict[FieldDescriptor, Sequence[Value]] = {descriptors.SIZES: [stated.dimensions[axis] for axis in swap]}
    if len(stated.is_dynamic_dimension) == len(swap):
        changes[descriptors.IS_DYNAMIC] = [stated.is_dynamic_dimension[axis] for axis in swap]
    layout = shape.message(descriptors.LAYOUT)
    if layout is not None:
        _refuse_about_dimensions(instruction, layout, descriptors.LAYOUT)
        stated_order = layout.decoded(LayoutProto).minor_to_major
        order = swapped_layout(stated_order, swap, instruction.name, braced(stated_order))
        changes[descriptors.LAYOUT] = [layout.with_fields({descriptors.MINOR_TO_MAJOR: order})]
    return shape.with_fields(changes)


def _refuse_about_dimensions(instruction: ProtoInstruction, message: RawMessage, field: FieldDescriptor) -> None:
    found = sorted(_ABOUT_DIMENSIONS & message.fields().keys())
    if found:
        msg = f"expected a {field.name} of {instruction.name} without dimensions to swap, found {found[0]}"
        raise EditError(msg)


def _collective(
    edit: Combine,
    members: Sequence[ProtoInstruction],
    swaps: Sequence[Sequence[int] | None],
    shapes: Sequence[RawMessage],
    number: int,
    operands: Sequence[int],
    renamed: Callable[[int], int],
) -> RawMessage:
    """Write the new instruction: the first member with what differs from it."""
    made = _kept(edit, members[0].raw)
    before = dict.fromkeys(renamed(each) for member in members for each in member.message.control_predecessor_ids)
    changes: dict[FieldDescriptor, Sequence[Value]] = {
        descriptors.NAME: [edit.name.encode()],
        descriptors.SHAPE: [
            made.empty(descriptors.SHAPE.kind).with_fields(
                {descriptors.ELEMENT_TYPE: [descriptors.TUPLE_SHAPE], descriptors.TUPLE_SHAPES: shapes}
            ),
        ],
        descriptors.ID: _stated(number),
        descriptors.OPERAND_IDS: operands,
        descriptors.CONTROL_PREDECESSOR_IDS: list(before),
        descriptors.SHARDING: _sharding(members, swaps),
    }
    if edit.dimension is not None:
        changes[descriptors.DIMENSIONS] = [edit.dimension]
    return made.with_fields(changes)


def _kept(edit: Combine, written: RawMessage) -> RawMessage:
    """Return an instruction without what is not to be kept of it."""
    dropped = {
        name
        for name, value in written.fields().items()
        if name not in descriptors.MODELED_FIELDS
        and value.strip()
        and descriptors.attribute_name(name) not in edit.other_attributes
    }
    made = written.without(dropped | {"constrain_layout"})
    metadata, attributes = made.message(descriptors.METADATA), made.message(descriptors.FRONTEND_ATTRIBUTES)
    changes: dict[FieldDescriptor, Sequence[Value]] = {}
    if metadata is not None:
        others = metadata.fields().keys() - edit.metadata
        changes[descriptors.METADATA] = [metadata.without(others)]
    if attributes is not None:
        kept = {key.encode() for key in edit.frontend_attributes}
        entries = enumerate(attributes.messages(descriptors.ATTRIBUTES))
        gone = [index for index, entry in entries if entry.decoded(FrontendAttributes.MapEntry).key not in kept]
        changes[descriptors.FRONTEND_ATTRIBUTES] = [
            attributes.with_replaced(descriptors.ATTRIBUTES, dict.fromkeys(gone, ()))
        ]
    return made.with_fields(changes)


def _sharding(members: Sequence[ProtoInstruction], swaps: Sequence[Sequence[int] | None]) -> list[RawMessage]:
    """Return the tuple of the members' shardings; nothing where none of them has one."""
    shardings = [member.raw.message(descriptors.SHARDING) for member in members]
    for member, sharding, swap in zip(members, shardings, swaps, strict=True):
        if swap is not None and sharding is not None:
            _refuse_about_dimensions(member, sharding, descriptors.SHARDING)
    stated = [sharding for sharding in shardings if sharding is not None]
    if not stated:
        return []
    replicated = stated[0].empty(descriptors.SHARDING.kind)
    parts = [replicated if sharding is None else sharding for sharding in shardings]
    return [
        replicated.with_fields(
            {descriptors.SHARDING_TYPE: [descriptors.TUPLE_SHARDING], descriptors.TUPLE_SHARDINGS: parts}
        )
    ]


def _new(
    name: bytes, opcode: bytes, shape: RawMessage, number: int, operand: int, own: tuple[FieldDescriptor, Sequence[int]]
) -> WrittenInstruction:
    """Write an instruction of its own with one operand and one more field."""
    fields: dict[FieldDescriptor, Sequence[Value]] = {
        descriptors.NAME: [name],
        descriptors.OPCODE: [opcode],
        descriptors.SHAPE: [shape],
        descriptors.ID: _stated(number),
        descriptors.OPERAND_IDS: [operand],
    }
    return WrittenInstruction(number, shape.empty(descriptors.INSTRUCTION).with_fields({**fields, own[0]: own[1]}))


def _become(
    member: ProtoInstruction,
    opcode: bytes,
    renamed: Callable[[int], int],
    operand: int,
    own: tuple[FieldDescriptor, Sequence[int]],
) -> WrittenInstruction:
    """Write what takes a member's name: it keeps shape, metadata and sharding."""
    message = member.message
    number, made = _new(message.name, opcode, _shape(member), renamed(message.id), operand, own)
    kept = {field: member.raw.message(field) for field in (descriptors.METADATA, descriptors.SHARDING)}
    return WrittenInstruction(
        number, made.with_fields({field: [each] for field, each in kept.items() if each is not None})
    )


def _stated(number: int) -> list[int]:
    """Return what is written of a number: nothing for 0, which is what a missing field says."""
    return [number] if number else []
