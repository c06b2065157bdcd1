"""Small modules as protos, made by hand, and the same modules in every container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.proto.wire import BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ENTRY_ID = 7
REDUCER_ID = 3
FAR = 1 << 32
"""Ids as XLA writes them need more than 32 bits."""


def shape(*dimensions: int, element_type: schema.PrimitiveType = schema.F32) -> schema.ShapeProto:
    """Return an array shape."""
    return schema.ShapeProto(
        element_type=element_type,
        dimensions=dimensions,
        is_dynamic_dimension=[False] * len(dimensions),
    )


def tuple_shape(*parts: schema.ShapeProto) -> schema.ShapeProto:
    """Return a tuple shape."""
    return schema.ShapeProto(element_type=schema.TUPLE, tuple_shapes=parts)


def attributes(values: Mapping[str, str]) -> schema.FrontendAttributes:
    """Return frontend attributes."""
    entry = schema.FrontendAttributes.MapEntry
    return schema.FrontendAttributes(
        map=[entry(key=key.encode(), value=value.encode()) for key, value in values.items()]
    )


def device_list(*groups: Sequence[int]) -> schema.CollectiveDeviceListProto:
    """Return groups as field 87 holds them."""
    return schema.CollectiveDeviceListProto(replica_groups=[schema.ReplicaGroup(replica_ids=group) for group in groups])


def instruction(
    opcode: str, number: int, operands: Iterable[int] = (), result: schema.ShapeProto | None = None
) -> schema.HloInstructionProto:
    """Return an instruction with the name ``x<number>``."""
    return schema.HloInstructionProto(
        name=f"x{number}".encode(),
        opcode=opcode.encode(),
        shape=shape(8) if result is None else result,
        id=FAR + number,
        operand_ids=[FAR + operand for operand in operands],
    )


def all_reduce(number: int = 2) -> schema.HloInstructionProto:
    """Return an all-reduce of the parameter."""
    made = instruction("all-reduce", number, [1])
    made.collective_device_list.CopyFrom(device_list([0, 1], [2, 3]))
    made.called_computation_ids.append(REDUCER_ID)
    return made


def reducer() -> schema.HloComputationProto:
    """Return a computation that adds two scalars."""
    scalar = shape()
    instructions = [
        instruction("parameter", 11, result=scalar),
        instruction("parameter", 12, result=scalar),
        instruction("add", 13, [11, 12], scalar),
    ]
    return schema.HloComputationProto(name=b"add", id=REDUCER_ID, root_id=FAR + 13, instructions=instructions)


def entry(*instructions: schema.HloInstructionProto) -> schema.HloComputationProto:
    """Return an entry computation of a parameter and the given instructions; the last is the root."""
    parameter = instruction("parameter", 1)
    root = instructions[-1].id if instructions else parameter.id
    return schema.HloComputationProto(name=b"main", id=ENTRY_ID, root_id=root, instructions=[parameter, *instructions])


def module_of(*computations: schema.HloComputationProto) -> schema.HloModuleProto:
    """Return a module of computations, of which the one with the entry's id is the entry."""
    return schema.HloModuleProto(
        name=b"hand_made", entry_computation_name=b"main", entry_computation_id=ENTRY_ID, computations=computations
    )


def module(*instructions: schema.HloInstructionProto) -> schema.HloModuleProto:
    """Return a module with a reducer and an entry of the given instructions."""
    return module_of(reducer(), entry(*instructions))


def containers() -> dict[str, bytes]:
    """Return one module in every message that XLA keeps modules in, serialised."""
    inner = module(all_reduce())
    found = {
        "HloModuleProto": inner,
        "HloProto": schema.HloProto(hlo_module=inner),
        "HloSnapshot": schema.HloSnapshot(hlo=schema.HloProto(hlo_module=inner)),
        "HloUnoptimizedSnapshot": schema.HloUnoptimizedSnapshot(hlo_module=inner),
        "HloModuleProtoWithConfig": schema.HloModuleProtoWithConfig(
            hlo_module=inner, config=schema.HloModuleConfigProto(replica_count=2, num_partitions=4)
        ),
        "HloModuleGroupProto": schema.HloModuleGroupProto(name=b"group", hlo_modules=[inner]),
    }
    return {name: message.SerializeToString() for name, message in found.items()}


def varint(number: int) -> bytes:
    """Encode a number as protobuf does."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes((*out, number))


def tagged(number: int, wire_type: int, value: bytes) -> bytes:
    """Encode a field."""
    return varint(number << 3 | wire_type) + (varint(len(value)) if wire_type == BYTES else b"") + value
