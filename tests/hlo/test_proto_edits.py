"""Setting attributes in a proto: the fields that change, and all that stays; binary and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from google.protobuf import text_format

from commlens.hlo import BecomeCustomCall, SetChannelId, SetFrontendAttribute, discover, load, load_all
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.proto.wire import BYTES, read_fields
from proto_forms import FORMS, by_number, edited, encoded, in_form, parsed
from proto_modules import FAR, all_reduce, attributes, containers, instruction, module, tagged

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from commlens import Instruction
    from commlens.hlo import Edit

CONTAINERS = sorted(containers())
TARGET = "AwsNeuronAllReduceAdd_f32"
CONFIG = '{"replica_groups":[[0,1]],"note":"a \\"b\\""}'


def everything(found: Instruction) -> list[Edit]:
    """Return one edit of each kind that goes together."""
    return [SetChannelId(found, 7), SetFrontendAttribute(found, "stream_id", '1 "x" {y} \n é')]


def expect_everything(message: schema.HloInstructionProto) -> None:
    """Do to a message what these edits do."""
    message.channel_id = 7
    added = attributes({"stream_id": '1 "x" {y} \n é'}).map
    before = [each for each in message.frontend_attributes.map if each.key < b"stream_id"]
    behind = [each for each in message.frontend_attributes.map if each.key >= b"stream_id"]
    message.frontend_attributes.CopyFrom(schema.FrontendAttributes(map=[*before, *added, *behind]))


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("form", FORMS)
def test_every_container_is_edited(name: str, form: str) -> None:
    """What comes out is the same message but for the edited fields, and is read again with their new values."""
    kind = getattr(schema, name)
    whole = kind.FromString(containers()[name])
    loaded = load(in_form(whole, form), replicas=3, partitions=5)
    made = edited(loaded, *everything(loaded.instruction("x2")))
    expect_everything(module_in(whole).computations[1].instructions[1])
    assert parsed(made.to_bytes(), kind, form) == whole
    again = load(made.to_bytes())
    for each in (made, again):
        found = each.instruction("x2")
        assert (found.channel_id, dict(found.frontend_attributes)) == (7, {"stream_id": '1 "x" {y} \n é'})
        assert [site.channel_id for site in discover(each).sites] == [7]
    assert (made.replica_count, made.num_partitions) == (3, 5)


def module_in(message: Message) -> schema.HloModuleProto:
    """Return the module of a container, the container itself where it is one."""
    for field in ("hlo", "hlo_module"):
        if field in message.DESCRIPTOR.fields_by_name:
            return module_in(getattr(message, field))
    if isinstance(message, schema.HloModuleGroupProto):
        return message.hlo_modules[0]
    assert isinstance(message, schema.HloModuleProto)
    return message


@pytest.mark.parametrize("form", FORMS)
def test_the_other_modules_of_a_group_stay(form: str) -> None:
    """One after the other is edited; lengths, offsets and the rest of the file follow."""
    members = [module(all_reduce()) for _ in range(3)]
    for number, each in enumerate(members):
        each.name = b"m%d" % number
    group = schema.HloModuleGroupProto(name=b"group", hlo_modules=members)
    data = in_form(group, form)
    for number, each in enumerate(group.hlo_modules):
        loaded = load_all(data)[number]
        long = SetFrontendAttribute(loaded.instruction("x2"), "k", "v" * 200)
        made = edited(loaded, long)
        assert made.name == f"m{number}"
        again = edited(made, SetChannelId(made.instruction("x2"), 1000 + number))
        data = again.to_bytes()
        each.computations[1].instructions[1].frontend_attributes.CopyFrom(attributes({"k": "v" * 200}))
        each.computations[1].instructions[1].channel_id = 1000 + number
        assert parsed(data, schema.HloModuleGroupProto, form) == group


def test_a_snapshot_grows_at_every_level() -> None:
    """Lengths around the module take more bytes than before; a second edit finds the module where it is then."""
    small = schema.HloSnapshot(hlo=schema.HloProto(hlo_module=module(all_reduce())))
    data = tagged(9, BYTES, b"before") + small.SerializeToString() + tagged(4, BYTES, b"behind")
    loaded = load(data)
    for size in (1, 90, 20_000, 2_200_000):
        loaded = edited(loaded, SetFrontendAttribute(loaded.instruction("x2"), "k", "v" * size))
        small.hlo.hlo_module.computations[1].instructions[1].frontend_attributes.CopyFrom(attributes({"k": "v" * size}))
        whole = tagged(9, BYTES, b"before") + small.SerializeToString() + tagged(4, BYTES, b"behind")
        assert loaded.to_bytes() == whole


@pytest.mark.parametrize("form", FORMS)
def test_edits_that_change_nothing_give_the_module_itself(form: str) -> None:
    """Equal values are no change; nor are no edits."""
    message = all_reduce()
    message.channel_id = 7
    message.frontend_attributes.CopyFrom(attributes({"b": "1", "a": "2"}))
    loaded = load(in_form(module(message), form))
    found = loaded.instruction("x2")
    same = [SetChannelId(found, 7), SetFrontendAttribute(found, "a", "2"), SetFrontendAttribute(found, "b", "1")]
    assert loaded.edited([]) is loaded
    assert loaded.edited(same) is loaded
    assert loaded.edited([*same[1:], SetChannelId(found, 8)]) is not loaded


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        pytest.param({}, "k", ["k"], id="none before"),
        pytest.param({"a": "1", "m": "1"}, "k", ["a", "k", "m"], id="between"),
        pytest.param({"m": "1"}, "k", ["k", "m"], id="first"),
        pytest.param({"a": "1"}, "k", ["a", "k"], id="last"),
        pytest.param({"z": "1", "a": "1"}, "k", ["k", "z", "a"], id="before the first greater one"),
        pytest.param({"a": "1", "k": "0", "b": "1"}, "k", ["a", "k", "b"], id="replaced in its place"),
    ],
)
def test_the_place_of_a_frontend_attribute(form: str, before: dict[str, str], key: str, after: list[str]) -> None:
    """A new one stands before the first greater key, a known one keeps its place."""
    message = all_reduce()
    message.frontend_attributes.CopyFrom(attributes(before))
    loaded = load(in_form(module(message), form))
    made = edited(loaded, SetFrontendAttribute(loaded.instruction("x2"), key, "new"))
    found = made.instruction("x2").frontend_attributes
    assert list(found) == after
    assert dict(found) == {**before, key: "new"}


def test_of_a_key_that_stands_twice_the_last_counts() -> None:
    """As when a map is read; the other one stays as it is."""
    message = all_reduce()
    message.frontend_attributes.CopyFrom(attributes({"k": "1", "m": "2"}))
    message.frontend_attributes.map.extend(attributes({"k": "3"}).map)
    loaded = load(module(message).SerializeToString())
    made = edited(loaded, SetFrontendAttribute(loaded.instruction("x2"), "k", "4"))
    again = schema.HloModuleProto.FromString(made.to_bytes()).computations[1].instructions[1]
    assert [each.value for each in again.frontend_attributes.map] == [b"1", b"2", b"4"]


def test_frontend_attributes_in_two_pieces_are_one_map() -> None:
    """A message that occurs twice is merged by protobuf's readers; the edit sees all of it."""
    pieces = [attributes(each).SerializeToString() for each in ({"a": "1"}, {"k": "2", "c": "3"})]
    encoded = all_reduce().SerializeToString() + b"".join(tagged(68, BYTES, piece) for piece in pieces)
    outline = schema.HloModuleOutline.FromString(module(all_reduce()).SerializeToString())
    outline.computations[1].instructions[1] = encoded
    loaded = load(outline.SerializeToString())
    made = edited(loaded, SetFrontendAttribute(loaded.instruction("x2"), "k", "4"))
    assert dict(made.instruction("x2").frontend_attributes) == {"a": "1", "k": "4", "c": "3"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("opcode", ["all-reduce", "reduce-scatter", "cross-replica-sum", "all-reduce-start"])
def test_a_channel_of_2019_stays_in_its_field(form: str, opcode: str) -> None:
    """Where the old field has the channel, it gets the new one."""
    for fields in ({"all_reduce_id": 3}, {"channel_id": 3}, {}):
        message = all_reduce()
        message.opcode = opcode.encode()
        for field, value in fields.items():
            setattr(message, field, value)
        loaded = load(in_form(module(message), form))
        made = edited(loaded, SetChannelId(loaded.instruction("x2"), 9))
        assert made.instruction("x2").channel_id == 9
        for field in fields or {"channel_id": 0}:
            setattr(message, field, 9)
        assert parsed(made.to_bytes(), schema.HloModuleProto, form) == module(message)


def test_an_old_field_of_another_opcode_is_no_channel() -> None:
    """An all-gather never had its channel there."""
    message = instruction("all-gather", 2, [1])
    message.all_reduce_id = 3
    loaded = load(module(message).SerializeToString())
    made = edited(loaded, SetChannelId(loaded.instruction("x2"), 9))
    assert made.instruction("x2").channel_id == 9


@pytest.mark.parametrize("form", FORMS)
def test_a_collective_becomes_a_custom_call(form: str) -> None:
    """What makes it a collective goes, in every spelling of the groups; the rest stays."""
    message = all_reduce()
    message.all_reduce_id = 3
    message.use_global_device_ids = message.constrain_layout = message.is_host_transfer = True
    message.dimensions.append(0)
    message.replica_group_ids.append(1)
    message.replica_groups.add(replica_ids=[0])
    message.backend_config_payload.value = b"other"
    message.backend_config = b"old"
    message.metadata.op_name = b"jit(f)"
    message.control_predecessor_ids.append(FAR + 1)
    message.frontend_attributes.CopyFrom(attributes({"a": "1"}))
    loaded = load(in_form(module(message), form))
    made = edited(loaded, BecomeCustomCall(loaded.instruction("x2"), TARGET, CONFIG))
    found = made.instruction("x2")
    assert found.opcode == "custom-call"
    assert (found.raw_attribute("custom_call_target"), found.raw_attribute("backend_config")) == (TARGET, CONFIG)
    assert (found.channel_id, found.dimensions, found.called) == (None, None, ())
    expected = schema.HloInstructionProto(
        name=b"x2",
        opcode=b"custom-call",
        shape=message.shape,
        metadata=message.metadata,
        custom_call_target=TARGET.encode(),
        id=message.id,
        operand_ids=message.operand_ids,
        control_predecessor_ids=message.control_predecessor_ids,
        backend_config=CONFIG.encode(),
        frontend_attributes=message.frontend_attributes,
    )
    if form == "binary":
        (written,) = by_number(encoded(made, 1))[77]
        assert written == b"\x01"  # API_VERSION_ORIGINAL
        assert schema.HloInstructionProto.FromString(without(encoded(made, 1), 77)) == expected
    else:
        text = made.to_bytes().decode()
        assert text.count("custom_call_api_version: API_VERSION_ORIGINAL") == 1
        again = text_format.Parse(text, schema.HloModuleProto(), allow_unknown_field=True)
        assert again.computations[1].instructions[1] == expected


@pytest.mark.parametrize("field", ["iota_collective_device_list", "mesh_axes_replica_group_list"])
def test_compact_groups_go_as_well(field: str) -> None:
    """Groups of a custom call stand in its configuration alone."""
    message = all_reduce()
    getattr(message, field).SetInParent()
    loaded = load(module(message).SerializeToString())
    made = edited(loaded, BecomeCustomCall(loaded.instruction("x2"), TARGET, CONFIG))
    again = schema.HloInstructionProto.FromString(encoded(made, 1))
    assert again.WhichOneof("replica_group_list") is None


def without(data: bytes, number: int) -> bytes:
    """Return a message without a field."""
    return b"".join(data[each.outset : each.end] for each in read_fields(data, 0, len(data)) if each.number != number)
