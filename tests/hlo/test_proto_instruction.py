"""What an instruction of a proto says of itself: shapes, attributes, calls, metadata."""

from __future__ import annotations

from typing import cast

import pytest

from commlens.hlo import Instruction, Module, discover, load
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from proto_modules import (
    FAR,
    all_reduce,
    attributes,
    entry,
    instruction,
    module,
    module_of,
    reducer,
    shape,
    tuple_shape,
)


def read(message: schema.HloModuleProto) -> Module:
    """Load a message."""
    return load(message.SerializeToString())


def read_one(message: schema.HloInstructionProto) -> Instruction:
    """Load a module with one more instruction, and return that."""
    return read(module(message)).instruction(message.name.decode())


def test_shapes_of_every_kind() -> None:
    """Arrays, tuples, tokens, dynamic and unbounded sizes; layouts are left out."""
    part = shape(8, 2, element_type=schema.BF16)
    part.is_dynamic_dimension[:] = [True, False]
    unbounded = schema.ShapeProto(element_type=schema.S4, dimensions=[-(2**63)], is_dynamic_dimension=[True])
    whole = tuple_shape(part, tuple_shape(), schema.ShapeProto(element_type=schema.TOKEN), unbounded)
    found = read_one(instruction("tuple", 2, [1], whole)).shape
    assert str(found) == "(bf16[<=8,2], (), token[], s4[?])"
    assert found.elements[0].num_bytes == 32
    assert found.num_bytes is None


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (schema.ShapeProto(dimensions=[4]), "without"),
        (schema.ShapeProto(element_type=cast("schema.PrimitiveType", 99)), "99"),
        (schema.ShapeProto(element_type=schema.F32, dimensions=[-4]), "-4"),
        (schema.ShapeProto(element_type=schema.F32, dimensions=[-1]), "-1"),
    ],
)
def test_shapes_that_mean_nothing_are_unread(result: schema.ShapeProto, why: str) -> None:
    """A missing or unknown element type and a negative size are named, not guessed."""
    message = all_reduce()
    message.shape.CopyFrom(result)
    found = discover(read(module(message)))
    assert found.sites == ()
    assert why in found.unread[0].why


def test_an_absent_shape_is_unread_on_either_side() -> None:
    """A result and an operand without a shape both spoil a collective, and nothing else."""
    message = all_reduce()
    message.ClearField("shape")
    assert "shape" in discover(read(module(message))).unread[0].why
    loaded = module(all_reduce())
    loaded.computations[1].instructions[0].ClearField("shape")
    assert "shape" in discover(read(loaded)).unread[0].why


def test_calls_and_their_roles() -> None:
    """A while calls its body first and its condition second; branches keep their order; reducers are not callers."""
    bodies = [
        schema.HloComputationProto(name=name, id=number, root_id=FAR + 1, instructions=[instruction("parameter", 1)])
        for name, number in ((b"b", 20), (b"c", 21), (b"d", 22))
    ]
    calls = {"while": [20, 21], "conditional": [20, 22, 20], "fusion": [22], "call": [21], "async-start": [20]}
    calls["custom-call"] = [22, 21]
    calls["reduce"] = [22]
    made: list[schema.HloInstructionProto] = []
    for number, (opcode, callees) in enumerate(calls.items(), start=2):
        made.append(instruction(opcode, number, [1]))
        made[-1].called_computation_ids.extend(callees)
    loaded = read(module_of(reducer(), *bodies, entry(*made)))
    assert [loaded.instruction(each.name.decode()).called for each in made] == [
        (("condition", "c"), ("body", "b")),
        (("branch", "b"), ("branch", "d"), ("branch", "b")),
        (("fusion", "d"),),
        (("call", "c"),),
        (("async", "b"),),
        (("custom-call", "d"), ("custom-call", "c")),
        (("apply", "d"),),
    ]
    found = [(call.caller.name, call.role, call.callee) for call in loaded.callers({"b", "d", "unheard"})]
    assert found == [
        ("x2", "body", "b"),
        ("x3", "branch", "b"),
        ("x3", "branch", "d"),
        ("x3", "branch", "b"),
        ("x4", "fusion", "d"),
        ("x6", "async", "b"),
        ("x7", "custom-call", "d"),
    ]
    assert loaded.callers(()) == []


def test_a_called_computation_that_does_not_exist_is_called_by_its_id() -> None:
    """So that whoever looks for it can say what was missing."""
    start = instruction("async-start", 2, [1])
    start.called_computation_ids.append(55)
    loaded = read(module(start))
    assert loaded.instruction("x2").called == (("async", "id 55"),)
    assert "id 55" in discover(loaded).unread[0].why


def test_attributes_by_name() -> None:
    """Each attribute is there as the text spells it, and absent where the opcode has none."""
    call = instruction("custom-call", 2, [1])
    call.custom_call_target, call.backend_config = b"target", b'{"n":1}'
    fusion = instruction("fusion", 2, [1])
    fusion.fusion_kind = b"kLoop"
    compare = instruction("compare", 2, [1, 1])
    compare.comparison_direction = b"LT"
    element = instruction("get-tuple-element", 2, [1])
    cut = instruction("dynamic-slice", 2, [1])
    cut.dynamic_slice_sizes.extend([4, 1])
    parameter = instruction("parameter", 2)
    parameter.parameter_number = 3
    assert read_one(call).raw_attribute("custom_call_target") == "target"
    assert read_one(call).raw_attribute("backend_config") == '{"n":1}'
    assert read_one(fusion).raw_attribute("kind") == "kLoop"
    assert read_one(compare).raw_attribute("direction") == "LT"
    assert read_one(element).raw_attribute("index") == "0"
    assert read_one(cut).raw_attribute("dynamic_slice_sizes") == "{4,1}"
    assert read_one(parameter).raw_attribute("parameter_number") == "3"
    names = ("custom_call_target", "backend_config", "kind", "direction", "index", "dynamic_slice_sizes", "literal")
    assert [read_one(parameter).raw_attribute(name) for name in (*names, "unheard")] == [None] * 8


def test_a_backend_config_may_be_a_payload() -> None:
    """Its own, or one of the module's by number; a number that leads nowhere is none."""
    own, shared, lost = (instruction("negate", number, [1]) for number in (2, 3, 4))
    own.backend_config_payload.value = b"own"
    shared.backend_config_payload.id = 0
    lost.backend_config_payload.id = 7
    message = module(own, shared, lost)
    message.payloads.append(b"shared")
    loaded = read(message)
    found = [loaded.instruction(name).raw_attribute("backend_config") for name in ("x2", "x3", "x4")]
    assert found == ["own", "shared", None]


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (schema.LiteralProto(shape=shape(element_type=schema.PRED), preds=[True]), "true"),
        (schema.LiteralProto(shape=shape(element_type=schema.PRED), preds=[False]), "false"),
        (schema.LiteralProto(shape=shape(element_type=schema.S32), s32s=[0]), "0"),
        (schema.LiteralProto(shape=shape(element_type=schema.S64), s64s=[-(2**63)]), "-9223372036854775808"),
        (schema.LiteralProto(shape=shape(element_type=schema.U32), u32s=[2**32 - 1]), "4294967295"),
        (schema.LiteralProto(shape=shape(element_type=schema.U64), u64s=[2**64 - 1]), "18446744073709551615"),
        (schema.LiteralProto(shape=shape(element_type=schema.S8), s8s=b"\xfd"), "-3"),
        (schema.LiteralProto(shape=shape(element_type=schema.U8), u8s=b"\xc8"), "200"),
        (schema.LiteralProto(shape=shape(element_type=schema.S16), s16s=b"\xfe\xff"), "-2"),
        (schema.LiteralProto(shape=shape(element_type=schema.U16), u16s=b"\xff\xff"), "65535"),
        (schema.LiteralProto(), None),
        (schema.LiteralProto(shape=shape(element_type=schema.S32), s32s=[4, 5]), None),
    ],
)
def test_literals_of_scalar_integers(literal: schema.LiteralProto, expected: str | None) -> None:
    """Enough to count loops."""
    constant = instruction("constant", 2)
    constant.literal.CopyFrom(literal)
    assert read_one(constant).raw_attribute("literal") == expected


def test_flags_pairs_dimensions_and_frontend_attributes() -> None:
    """A false flag is an absent one; the last of a repeated key counts."""
    permute = instruction("collective-permute", 2, [1])
    permute.source_target_pairs.extend([schema.SourceTarget(source=0, target=1), schema.SourceTarget(source=1)])
    permute.frontend_attributes.CopyFrom(attributes({"k": "{{0,1}}"}))
    permute.frontend_attributes.map.append(schema.FrontendAttributes.MapEntry(key=b"k", value=b"v"))
    found = read_one(permute)
    assert str(found.source_target_pairs) == "{{0,1},{1,0}}"
    assert found.frontend_attributes == {"k": "v"}
    assert (found.dimensions, found.flag("constrain_layout"), found.flag("unheard")) == (None, None, None)
    assert found.use_global_device_ids is None
    send = instruction("send", 2, [1])
    send.is_host_transfer = send.constrain_layout = True
    send.control_predecessor_ids.append(FAR + 1)
    assert read_one(send).flag("is_host_transfer") is True
    assert read_one(send).constrain_layout
    assert read_one(send).source_target_pairs is None
    assert read_one(send).control_predecessors == ("x1",)
    assert read_one(all_reduce()).use_global_device_ids is False


def test_a_permute_without_pairs_has_an_empty_list() -> None:
    """A proto cannot tell an empty list from none, and XLA writes the empty one so."""
    (site,) = discover(read(module(instruction("collective-permute", 2, [1])))).sites
    assert str(site.signature.pairs) == "{}"


def test_sources_go_through_the_stack_frame_tables() -> None:
    """Ids count from 1; a file in the metadata itself comes first; what leads nowhere is None."""
    found: list[schema.HloInstructionProto] = []
    for number, frame in enumerate((1, 2, 3, 9, 0, -1), start=2):
        found.append(all_reduce(number))
        found[-1].metadata.stack_frame_id = frame
    direct = all_reduce(8)
    direct.metadata.source_file, direct.metadata.source_line, direct.metadata.stack_frame_id = b"own.py", 4, 1
    message = module(*found, direct)
    location, frame_of = schema.StackFrameIndexProto.FileLocation, schema.StackFrameIndexProto.StackFrame
    message.stack_frame_index.file_names.append(b"t.py")
    message.stack_frame_index.file_locations.extend(
        [location(file_name_id=1, line=9), location(file_name_id=5, line=9)]
    )
    message.stack_frame_index.stack_frames.extend(
        [frame_of(file_location_id=1), frame_of(file_location_id=2), frame_of(file_location_id=7)]
    )
    sources = [site.source for site in discover(read(message)).sites]
    assert sources == ["t.py:9", None, None, None, None, None, "own.py:4"]
