"""The proto of a module that was loaded from text: the same module for the other backend.

Made through the interface of instructions, so it holds what that speaks of: enough for modules that tests write.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from commlens import load
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.shapes import ELEMENT_TYPE_NUMBERS
from proto_modules import FAR, attributes, device_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens import Instruction, Module
    from commlens.hlo import Shape

_NUMBERS = {name: number for number, name in ELEMENT_TYPE_NUMBERS.items()}


def load_as(text: str, backend: str) -> Module:
    """Load a text as it is, or its proto."""
    module = load(text)
    return module if backend == "text" else load(proto_twin(module).SerializeToString())


def proto_twin(module: Module) -> schema.HloModuleProto:
    """Return a module as proto; ids follow the list order, groups are written out."""
    entry = module.entry
    assert entry is not None
    made = schema.HloModuleProto(name=module.name.encode(), entry_computation_name=entry.name.encode())
    numbers = {computation.name: 10 + place for place, computation in enumerate(module.computations)}
    made.entry_computation_id = numbers[entry.name]
    next_id = FAR
    for computation in module.computations:
        ids = {each.name: next_id + place for place, each in enumerate(computation.instructions)}
        next_id += len(ids)
        made.computations.add(
            name=computation.name.encode(),
            id=numbers[computation.name],
            root_id=ids[computation.root.name],
            instructions=[_instruction(each, ids, numbers) for each in computation.instructions],
        )
    return made


def _instruction(
    each: Instruction, ids: Mapping[str, int], computations: Mapping[str, int]
) -> schema.HloInstructionProto:
    made = schema.HloInstructionProto(
        name=each.name.encode(),
        opcode=each.opcode.encode(),
        shape=_shape(each.shape),
        id=ids[each.name],
        operand_ids=[ids[name] for name in each.operand_names],
        control_predecessor_ids=[ids[name] for name in each.control_predecessors],
        called_computation_ids=[computations[name] for _, name in sorted(each.called, key=_is_no_body)],
        dimensions=each.dimensions or (),
        channel_id=each.channel_id or 0,
        use_global_device_ids=bool(each.use_global_device_ids),
        constrain_layout=each.constrain_layout,
        parameter_number=int(each.raw_attribute("parameter_number") or 0),
        slice_dimensions=_bounds(each.raw_attribute("slice") or ""),
        tuple_index=int(each.raw_attribute("index") or 0),
        custom_call_target=(each.raw_attribute("custom_call_target") or "").encode(),
        backend_config=(each.raw_attribute("backend_config") or "").encode(),
    )
    groups = each.replica_groups.groups() if "all-" in each.opcode or "reduce-scatter" in each.opcode else []
    if groups:
        made.collective_device_list.CopyFrom(device_list(*groups))
    if each.source_target_pairs is not None:
        pairs = each.source_target_pairs.pairs
        made.source_target_pairs.extend(schema.SourceTarget(source=a, target=b) for a, b in pairs)
    if each.frontend_attributes:
        made.frontend_attributes.CopyFrom(attributes(each.frontend_attributes))
    if each.op_name is not None:
        made.metadata.op_name = each.op_name.encode()
    return made


def _bounds(text: str) -> list[schema.HloInstructionProto.SliceDimensions]:
    """Return the bounds of a slice, as they are written in a text."""
    found = re.findall(r"\[(\d+):(\d+)(?::(\d+))?\]", text)
    return [
        schema.HloInstructionProto.SliceDimensions(start=int(a), limit=int(b), stride=int(c or 1)) for a, b, c in found
    ]


def _is_no_body(call: tuple[str, str]) -> bool:
    """Whether a called computation comes behind the body of a loop, which is the first in a proto."""
    return call[0] != "body"


def _shape(shape: Shape) -> schema.ShapeProto:
    return schema.ShapeProto(
        element_type=cast("schema.PrimitiveType", _NUMBERS[shape.element_type]),
        dimensions=shape.dimensions,
        is_dynamic_dimension=[False] * len(shape.dimensions),
        tuple_shapes=[_shape(part) for part in shape.elements],
    )
