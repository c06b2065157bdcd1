"""Combining collectives in a proto: the new instruction, its members, ids, the file's order and the schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.hlo import Combine, load
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.proto.wire import BYTES
from kept_attributes import keeping_all
from proto_forms import FORMS, by_number, edited, encoded, in_form, parsed
from proto_modules import (
    ENTRY_ID,
    FAR,
    REDUCER_ID,
    all_reduce,
    attributes,
    device_list,
    instruction,
    module,
    shape,
    tagged,
    tuple_shape,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlens import Module


def gather(number: int, operand: int, dimension: int, *sizes: int) -> schema.HloInstructionProto:
    """Return an all-gather of two devices along a dimension."""
    made = instruction("all-gather", number, [operand], shape(*sizes))
    made.dimensions.append(dimension)
    made.collective_device_list.CopyFrom(device_list([0, 1]))
    return made


def combine(loaded: Module, members: Sequence[str], name: str = "c.1", dimension: int | None = None) -> Combine:
    """Return an edit that combines instructions and keeps of the first all that can be kept."""
    return keeping_all([*map(loaded.instruction, members)], name, dimension)


def combined(message: schema.HloModuleProto, members: Sequence[str], form: str = "binary") -> schema.HloModuleProto:
    """Combine instructions of a module and return what protobuf's own reader makes of it."""
    loaded = load(in_form(message, form))
    return parsed(edited(loaded, combine(loaded, members)).to_bytes(), schema.HloModuleProto, form)


def part(message: schema.HloInstructionProto, index: int, number: int, whole: int) -> schema.HloInstructionProto:
    """Return what a member becomes."""
    return schema.HloInstructionProto(
        name=message.name,
        opcode=b"get-tuple-element",
        shape=message.shape,
        metadata=message.metadata if message.HasField("metadata") else None,
        tuple_index=index,
        id=number,
        operand_ids=[whole],
    )


@pytest.mark.parametrize("form", FORMS)
def test_every_field_of_a_combination(form: str) -> None:
    """The new instruction has the first member's id; that member's users name it by its fresh one."""
    x, y = all_reduce(2), all_reduce(4)
    x.channel_id, y.channel_id = 3, 4
    x.use_global_device_ids = y.use_global_device_ids = x.constrain_layout = True
    x.metadata.op_name, y.metadata.op_name = b"jit(f)", b"jit(g)"
    x.frontend_attributes.CopyFrom(attributes({"a": "1"}))
    y.control_predecessor_ids.append(FAR + 1)
    y.shape.CopyFrom(shape(4, 2))
    use, after, last = instruction("negate", 3, [2]), instruction("negate", 5, [4]), instruction("tuple", 6, [2, 4, 2])
    after.control_predecessor_ids.append(FAR + 2)
    message = module(x, use, y, after, last)
    new = all_reduce(2)
    new.name, new.channel_id, new.use_global_device_ids = b"c.1", 3, True
    new.shape.CopyFrom(tuple_shape(x.shape, y.shape))
    new.operand_ids[:] = [FAR + 1, FAR + 1]
    new.control_predecessor_ids.append(FAR + 1)
    new.metadata.CopyFrom(x.metadata)
    new.frontend_attributes.CopyFrom(x.frontend_attributes)
    use.operand_ids[:] = [FAR + 14]
    after.control_predecessor_ids[:] = [FAR + 14]
    last.operand_ids[:] = [FAR + 14, FAR + 4, FAR + 14]
    parts = [part(x, 0, FAR + 14, FAR + 2), part(y, 1, FAR + 4, FAR + 2)]
    assert combined(message, ["x2", "x4"], form) == module(new, parts[0], use, parts[1], after, last)


def test_the_first_member_need_not_be_the_first_of_the_list() -> None:
    """Operands, groups and flags go by the order of the members, the id by that of the list."""
    x, y = all_reduce(2), all_reduce(3)
    x.channel_id, y.channel_id = 5, 6
    message = module(x, y, instruction("tuple", 4, [2, 3]))
    new = all_reduce(2)
    new.name, new.channel_id = b"c.1", 6
    new.shape.CopyFrom(tuple_shape(y.shape, x.shape))
    new.operand_ids.append(FAR + 1)
    parts = [part(x, 1, FAR + 14, FAR + 2), part(y, 0, FAR + 3, FAR + 2)]
    last = instruction("tuple", 4, [14, 3])
    assert combined(message, ["x3", "x2"]) == module(new, *parts, last)


def test_layouts_and_other_unknown_parts_of_a_shape_stay() -> None:
    """Shapes are copied as they are written, into the tuple and into the members."""
    made = [all_reduce(2), all_reduce(3)]
    for number, each in enumerate(made):
        each.shape.MergeFromString(tagged(5, BYTES, b"\x0a\x01\x00\x30\x05") + tagged(77, BYTES, b"%d" % number))
    message = module(*made, instruction("tuple", 4, [2, 3]))
    again = combined(message, ["x2", "x3"]).computations[1].instructions
    assert again[1].shape == tuple_shape(*(each.shape for each in made))
    assert [each.shape for each in again[2:4]] == [each.shape for each in made]


@pytest.mark.parametrize("form", ["binary", "text"])
def test_what_of_the_first_member_is_kept(form: str) -> None:
    """Keys, fields and attributes that are named; the meaning of the collective in any case."""
    made = [all_reduce(2), all_reduce(3)]
    made[0].frontend_attributes.CopyFrom(attributes({"a": "1", "b": "2", "c": "3"}))
    made[0].metadata.op_name, made[0].metadata.source_file, made[0].metadata.source_line = b"f", b"f.py", 3
    made[0].backend_config, made[0].async_execution_thread = b"{}", b"sparse"
    loaded = load(in_form(module(*made), form))
    members = (loaded.instruction("x2"), loaded.instruction("x3"))
    assert members[0].metadata_fields().keys() == {"op_name", "source_file", "source_line"}
    assert members[0].other_attributes().keys() == {"backend_config", "async_execution_thread"}
    edit = Combine(members, "c", frozenset("ac"), frozenset({"source_file"}), frozenset({"backend_config"}))
    again = parsed(edited(loaded, edit).to_bytes(), schema.HloModuleProto, form).computations[1].instructions[1]
    assert again.frontend_attributes == attributes({"a": "1", "c": "3"})
    assert again.metadata == schema.OpMetadata(source_file=b"f.py")
    assert (again.backend_config, again.async_execution_thread) == (b"{}", b"")
    assert again.collective_device_list == made[0].collective_device_list
    assert list(again.called_computation_ids) == [REDUCER_ID]
    bare = parsed(edited(loaded, Combine(members, "c")).to_bytes(), schema.HloModuleProto, form)
    assert bare.computations[1].instructions[1].frontend_attributes == attributes({})
    assert bare.computations[1].instructions[1].metadata == schema.OpMetadata()
    assert bare.computations[1].instructions[1].backend_config == b""


def test_attributes_that_nobody_knows() -> None:
    """They are called by their number, kept where they are named, and dropped where they are not."""
    outline = schema.HloModuleOutline.FromString(module(all_reduce(2), all_reduce(3)).SerializeToString())
    outline.computations[1].instructions[1] += tagged(1000, BYTES, b"new") + tagged(82, BYTES, b"")
    loaded = load(outline.SerializeToString())
    assert loaded.instruction("x2").other_attributes() == {"field 1000": b"new"}
    kept = by_number(encoded(edited(loaded, combine(loaded, ["x2", "x3"])), 1))
    assert (kept[1000], kept[82]) == ([b"new"], [b""])
    found = (loaded.instruction("x2"), loaded.instruction("x3"))
    assert by_number(encoded(edited(loaded, Combine(found, "c.1")), 1)).keys() == kept.keys() - {1000}


def test_unknown_fields_of_a_text_form() -> None:
    """Their text is carried over as it stands, whatever the schema knows."""
    text = in_form(module(all_reduce(2), all_reduce(3)), "text").replace(
        b'    name: "x2"\n', b'    name: "x2"\n    news { # of tomorrow\n      kind: BIG\n    }\n'
    )
    loaded = load(text)
    assert loaded.instruction("x2").other_attributes().keys() == {"news"}
    after = edited(loaded, combine(loaded, ["x2", "x3"])).to_bytes()
    assert b'    name: "c.1"\n    news { # of tomorrow\n      kind: BIG\n    }\n' in after
    assert after.count(b"news") == 1
    found = (loaded.instruction("x2"), loaded.instruction("x3"))
    assert b"news" not in edited(loaded, Combine(found, "c.1")).to_bytes()


@pytest.mark.parametrize(
    ("shardings", "expected"),
    [
        pytest.param([None, None], None, id="none"),
        pytest.param([b"\x08\x04", None], [b"\x08\x04", b""], id="replicated where there is none"),
        pytest.param([None, b""], [b"", b""], id="an empty one is replicated"),
        pytest.param([b"\x1a\x01\x02\x08\x03", b"\x08\x01"], [b"\x1a\x01\x02\x08\x03", b"\x08\x01"], id="as written"),
    ],
)
def test_shardings_become_a_tuple(shardings: list[bytes | None], expected: list[bytes] | None) -> None:
    """Of which the members keep theirs."""
    outline = schema.HloModuleOutline.FromString(module(all_reduce(2), all_reduce(3)).SerializeToString())
    for position, sharding in enumerate(shardings, start=1):
        if sharding is not None:
            outline.computations[1].instructions[position] += tagged(40, BYTES, sharding)
    loaded = load(outline.SerializeToString())
    made = edited(loaded, combine(loaded, ["x2", "x3"]))
    found = by_number(encoded(made, 1)).get(40)
    assert found == (
        None if expected is None else [b"\x08\x02" + b"".join(tagged(5, BYTES, each) for each in expected)]
    )
    assert [by_number(encoded(made, position)).get(40) for position in (2, 3)] == [
        None if sharding is None else [sharding] for sharding in shardings
    ]


@pytest.mark.parametrize("form", ["binary", "text"])
@pytest.mark.parametrize("dimension", [0, 1])
def test_members_with_another_dimension_are_transposed(form: str, dimension: int) -> None:
    """In and out, as bitcasts: the layout of the transposed shape is the same order in memory."""
    layout = b"\x0a\x03\x00\x02\x01\x30\x05"  # minor_to_major 0, 2, 1 and a memory space
    swapped = b"\x0a\x03\x01\x02\x00\x30\x05"
    x, y = gather(4, 2, 0, 4, 5, 6), gather(5, 3, 1, 7, 8, 9)
    operands = [instruction("parameter", 2, result=shape(2, 5, 6)), instruction("parameter", 3, result=shape(7, 4, 9))]
    for each in (x, y, *operands):
        each.shape.is_dynamic_dimension[:] = [False, True, False]
        if form == "binary":
            each.shape.MergeFromString(tagged(5, BYTES, layout))
    loaded = load(in_form(module(*operands, x, y, instruction("tuple", 6, [4, 5])), form))
    again = edited(loaded, combine(loaded, ["x4", "x5"], dimension=dimension))
    message = parsed(again.to_bytes(), schema.HloModuleProto, form)
    names = [each.name.decode() for each in message.computations[1].instructions]
    of = {each.name.decode(): each for each in message.computations[1].instructions}
    member, other, operand = ("x5", "x4", "x3") if dimension == 0 else ("x4", "x5", "x2")
    first = ["get-tuple-element.1", "x4", "x5"] if dimension else ["x4", "get-tuple-element.1", "x5"]
    assert names == ["x1", "x2", "x3", "transpose.1", "c.1", *first, "x6"]
    for name, source in (("transpose.1", operand), ("get-tuple-element.1", member)):
        size = of[source].shape.dimensions
        expected = schema.ShapeProto(
            element_type=schema.F32,
            dimensions=[size[1], size[0], size[2]],
            is_dynamic_dimension=[True, False, False],
        )
        if form == "binary":
            expected.MergeFromString(tagged(5, BYTES, swapped))
        assert of[name].shape == expected
    assert list(of["c.1"].dimensions) == [dimension]
    assert list(of["transpose.1"].dimensions) == list(of[member].dimensions) == [1, 0, 2]
    assert list(of["transpose.1"].operand_ids) == [of[operand].id]
    assert list(of[member].operand_ids) == [of["get-tuple-element.1"].id]
    assert of[member].opcode == b"transpose"
    assert of[other].opcode == b"get-tuple-element"
    assert {each: of[each].tuple_index for each in (other, "get-tuple-element.1")} == {
        other: int(dimension == 1),
        "get-tuple-element.1": int(dimension == 0),
    }
    left = [of["x2"].id if dimension == 0 else of["transpose.1"].id, of["x3"].id if dimension else of["transpose.1"].id]
    assert list(of["c.1"].operand_ids) == left
    assert of["c.1"].shape.tuple_shapes[1 - dimension] == of["get-tuple-element.1"].shape


@pytest.mark.parametrize(
    ("order", "needs", "expected"),
    [
        pytest.param("axbyu", {"u": "xy"}, "aNxbyu", id="where the first stood"),
        pytest.param("axubyv", {"x": "a", "y": "b", "u": "x", "v": "y"}, "abNxuyv", id="users follow a late operand"),
        pytest.param("axkuby", {"x": "a", "y": "b", "u": "x", "k": "a"}, "akbNxuy", id="others stay"),
    ],
)
@pytest.mark.parametrize("scheduled", [False, True])
def test_order_of_the_file_and_of_the_schedule(
    order: str, needs: dict[str, str], expected: str, *, scheduled: bool
) -> None:
    """Both keep their own order as far as operands allow; list order goes by id and knows nothing of it."""
    numbers = {name: 20 + place for place, name in enumerate(sorted(order, reverse=True))}
    made = {
        name: all_reduce(numbers[name]) if name in "xy" else instruction("negate", numbers[name], []) for name in order
    }
    for name, message in made.items():
        message.name = name.encode()
        message.operand_ids[:] = [FAR + numbers[each] for each in needs.get(name, "")] or [FAR + 1]
    file_order = "".join(sorted(order, key=_depth_of(needs))) if scheduled else order
    message = module(*(made[name] for name in file_order))
    if scheduled:
        sequence = message.schedule.sequences[ENTRY_ID].instruction_ids
        sequence.extend([FAR + 1, *(FAR + numbers[name] for name in order)])
        message.schedule.sequences[REDUCER_ID].instruction_ids.extend([FAR + 11, FAR + 12, FAR + 13])
    loaded = load(message.SerializeToString())
    again = schema.HloModuleProto.FromString(edited(loaded, combine(loaded, "xy", "N")).to_bytes())
    names = {each.id: each.name.decode() for each in again.computations[1].instructions}
    if scheduled:
        ids = list(again.schedule.sequences[ENTRY_ID].instruction_ids)[1:]
        assert again.schedule.sequences[REDUCER_ID] == message.schedule.sequences[REDUCER_ID]
        assert len(again.schedule.sequences) == 2
    else:
        ids = [each.id for each in again.computations[1].instructions][1:]
    assert "".join(names[each] for each in ids) == expected
    assert names[FAR + min(numbers["x"], numbers["y"])] == "N"


def test_names_of_transposes_are_taken_by_nobody() -> None:
    """Not by an instruction of the module, nor by another new one."""
    x, y = gather(2, 1, 0, 8, 8), gather(3, 1, 1, 8, 8)
    message = module(x, y)
    message.computations[1].instructions[0].shape.CopyFrom(shape(4, 8))
    message.computations[0].instructions[0].name = b"transpose.2"
    loaded = load(message.SerializeToString())
    made = edited(loaded, combine(loaded, ["x2", "x3"], "transpose.3", dimension=0))
    assert made.instruction("transpose.3").operand_names == ("x1", "transpose.4")


def test_configurations_are_compared_by_what_they_say() -> None:
    """A payload of the module says what stands there, not its number; the field itself is kept."""
    x, y, z = all_reduce(2), all_reduce(3), all_reduce(4)
    x.backend_config_payload.id, y.backend_config_payload.id, z.backend_config = 0, 1, b"{}"
    message = module(x, y, z)
    message.payloads.extend([b"{}", b"{}"])
    loaded = load(message.SerializeToString())
    assert [loaded.instruction(name).other_attributes() for name in ("x2", "x3", "x4")] == [
        {"backend_config": b"{}"}
    ] * 3
    again = combined(message, ["x2", "x3"]).computations[1].instructions[1]
    assert again.backend_config_payload == x.backend_config_payload


def test_control_predecessors_hold_the_order() -> None:
    """The new instruction waits for all that a member waits for; what waits for a member still does."""
    x, y = all_reduce(2), all_reduce(5)
    waits, late = instruction("negate", 3, [1]), instruction("negate", 4, [1])
    waits.control_predecessor_ids.append(FAR + 2)
    y.control_predecessor_ids.append(FAR + 4)
    message = module(x, waits, late, y)
    again = combined(message, ["x2", "x5"]).computations[1].instructions
    assert [each.name for each in again] == [b"x1", b"x4", b"c.1", b"x2", b"x3", b"x5"]
    assert [list(each.control_predecessor_ids) for each in again] == [[], [], [FAR + 4], [], [FAR + 14], []]


def _depth_of(needs: dict[str, str]) -> Callable[[str], int]:
    """Return how many instructions must come before one, along the longest path."""

    def depth(name: str) -> int:
        return max((1 + depth(each) for each in needs.get(name, "")), default=0)

    return depth
