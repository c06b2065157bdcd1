"""Every message that XLA keeps modules in, told apart by content: binary and as text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from commlens.errors import InputError
from commlens.hlo import discover, load, load_all
from commlens.hlo.proto.containers import find_modules
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.proto.wire import BYTES, VARINT, WireError
from proto_modules import all_reduce, containers, entry, module, module_of, reducer, tagged

if TYPE_CHECKING:
    from google.protobuf.message import Message

CONFIGURED = {"HloModuleProtoWithConfig": (2, 4)}
ASSIGNMENT = schema.DeviceAssignmentProto(replica_count=3, computation_count=5)
OTHER_ASSIGNMENT = schema.DeviceAssignmentProto(replica_count=7, computation_count=9)


def as_text(name: str) -> bytes:
    """Return the text form of a container, with the comments that protobuf's tools write above it."""
    kind: type[Message] = getattr(schema, name)
    body = text_format.MessageToString(kind.FromString(containers()[name]))
    return f"# proto-file: xla/service/hlo.proto\n# proto-message: xla.{name}\n\n{body}".encode()


@pytest.mark.parametrize("name", containers())
@pytest.mark.parametrize("form", ["binary", "text"])
def test_every_container_is_read(name: str, form: str) -> None:
    """The module is found, and the counts where the container has them."""
    loaded = load(containers()[name] if form == "binary" else as_text(name))
    assert (loaded.name, loaded.format) == ("hand_made", "proto")
    assert (loaded.replica_count, loaded.num_partitions) == CONFIGURED.get(name, (None, None))
    assert [site.name for site in discover(loaded).sites] == ["x2"]


@pytest.mark.parametrize("name", containers())
def test_the_text_form_comes_back_unchanged(name: str) -> None:
    """A text form is kept as it came, comments and all."""
    assert load(as_text(name)).to_bytes() == as_text(name)


def test_the_dump_of_a_real_program_is_read() -> None:
    """XLA's dumps are HloProto, with a buffer assignment behind the module after optimisation."""
    found = discover(load(Path(__file__).parents[1] / "data" / "protos" / "jit_scatter.before_optimizations.hlo.pb"))
    assert [site.signature.opcode for site in found.sites] == ["reduce-scatter"] * 4


def test_a_group_holds_several_modules() -> None:
    """In their order, binary and as text; load names the function that takes several."""
    members = [module(all_reduce()), module(all_reduce(5))]
    members[1].name = b"second"
    group = schema.HloModuleGroupProto(name=b"group", hlo_modules=members)
    for data in (group.SerializeToString(), text_format.MessageToString(group).encode()):
        assert [each.name for each in load_all(data)] == ["hand_made", "second"]
        with pytest.raises(InputError, match="load_all"):
            load(data)


def test_a_group_without_a_name_is_a_group() -> None:
    """Field 1 may be missing."""
    group = schema.HloModuleGroupProto(hlo_modules=[module(all_reduce())])
    assert load(group.SerializeToString()).name == "hand_made"


def test_a_module_without_a_name_is_a_module() -> None:
    """Nor need a module have one."""
    message = module(all_reduce())
    message.ClearField("name")
    assert load(message.SerializeToString()).name == ""


@pytest.mark.parametrize(
    ("second", "third"),
    [
        (b"", b""),
        (b"", tagged(3, BYTES, tagged(1, BYTES, b"\x08\x01") + tagged(2, BYTES, b"\x08\x05\x12\x02\x20\x07"))),
        (tagged(2, BYTES, tagged(1, BYTES, b"\x0a\x02\x10\x0b")), tagged(3, VARINT, b"\x01")),
        (tagged(2, BYTES, b"") * 2, b""),
    ],
    ids=["bare", "buffer assignment", "inputs and version", "two partitions"],
)
def test_what_stands_beside_a_module_is_no_configuration(second: bytes, third: bytes) -> None:
    """Field 3 of HloProto and field 2 of HloUnoptimizedSnapshot are other things than a configuration."""
    found = load(tagged(1, BYTES, module(all_reduce()).SerializeToString()) + second + third)
    assert (found.name, found.replica_count, found.num_partitions) == ("hand_made", None, None)


def test_a_snapshot_may_hold_literals() -> None:
    """Arguments and results stand behind the module and are not looked at, even where they look like counts."""
    literal = schema.LiteralProto(
        preds=[True, False], s32s=[1, 2], s8s=ASSIGNMENT.SerializeToString()
    ).SerializeToString()
    snapshot = (
        containers()["HloSnapshot"]
        + tagged(2, BYTES, literal) * 2
        + tagged(3, BYTES, literal)
        + tagged(4, BYTES, b"CUDA")
    )
    found = load(snapshot)
    assert (found.name, found.replica_count) == ("hand_made", None)


@pytest.mark.parametrize(
    ("config", "module_assignment", "options", "expected"),
    [
        (None, None, {}, (None, None)),
        (None, ASSIGNMENT, {}, (3, 5)),
        (schema.HloModuleConfigProto(replica_count=2), None, {}, (2, 1)),
        (schema.HloModuleConfigProto(num_partitions=4), None, {}, (1, 4)),
        (schema.HloModuleConfigProto(replica_count=2, num_partitions=4), ASSIGNMENT, {}, (2, 4)),
        (schema.HloModuleConfigProto(static_device_assignment=ASSIGNMENT), None, {}, (3, 5)),
        (schema.HloModuleConfigProto(static_device_assignment=ASSIGNMENT), OTHER_ASSIGNMENT, {}, (3, 5)),
        (schema.HloModuleConfigProto(replica_count=-2), None, {}, (None, None)),
        (None, ASSIGNMENT, {"replicas": 8, "partitions": 2}, (8, 2)),
        (None, ASSIGNMENT, {"partitions": 2}, (3, 2)),
        (None, None, {"partitions": 2}, (1, 2)),
    ],
)
def test_counts_come_from_options_then_configuration_then_device_assignment(
    config: schema.HloModuleConfigProto | None,
    module_assignment: schema.DeviceAssignmentProto | None,
    options: dict[str, int],
    expected: tuple[int | None, int | None],
) -> None:
    """What nobody states is unknown; where one count is stated, the other is 1."""
    message = schema.HloModuleProtoWithConfig(hlo_module=module(all_reduce()), config=config)
    if module_assignment is not None:
        message.hlo_module.device_assignment.CopyFrom(module_assignment)
    data = message.SerializeToString() if config is not None else message.hlo_module.SerializeToString()
    for loaded in (load(data, **options), load(text_format.MessageToString(message).encode(), **options)):
        assert (loaded.replica_count, loaded.num_partitions) == expected


@pytest.mark.parametrize(
    "data",
    [
        tagged(1, BYTES, b"name only"),
        tagged(1, BYTES, tagged(1, BYTES, b"nothing in it")),
        schema.HloModuleProto(name=b"m", computations=[schema.HloComputationProto(name=b"c")]).SerializeToString(),
        module_of(
            schema.HloComputationProto(instructions=[schema.HloInstructionProto(opcode=b"NOT one")])
        ).SerializeToString(),
    ],
)
def test_other_messages_are_no_modules(data: bytes) -> None:
    """A message is a module when its computations have instructions with an opcode."""
    with pytest.raises(WireError, match="none with an HLO module"):
        find_modules(data)


@given(cut=st.integers(1, 10_000))
def test_a_cut_container_is_refused_or_a_shorter_one(cut: int) -> None:
    """Wherever a proto is cut: an error of ours, or what is left is a whole message; never another error."""
    for data in containers().values():
        try:
            found = load_all(data[: cut % len(data)])
        except InputError:
            continue
        assert len(found) == 1


@given(place=st.integers(0, 10_000), value=st.integers(0, 255))
def test_a_damaged_container_is_refused_or_read(place: int, value: int) -> None:
    """One wrong byte makes an error of ours, an unread item, or another module; never another error."""
    for data in containers().values():
        damaged = bytearray(data)
        damaged[place % len(damaged)] = value
        try:
            modules = load_all(bytes(damaged))
        except InputError:
            continue
        for each in modules:
            discover(each)


def test_a_module_is_found_however_deep_it_stands_in_a_text_form() -> None:
    """Compiled executables keep it among fields that the schema does not have; its configuration stands beside it."""
    inner = text_format.MessageToString(module(all_reduce()))
    text = f"""
    # proto-message: xla.Executable
    compile_options {{ name: "a \\"quoted }} brace\\" {{" size: -1.5e3 list: [1, 2] kind: GPU_V2 }}
    gpu_executable < hlo_module_with_config: {{
      hlo_module {{ {inner} }}
      config {{ replica_count: 2 num_partitions: 1 debug_options {{ xla_new: "\\177ELF\\n" }} }}
    }} >
    binary: '\\001 {{ \\''
    """
    loaded = load(text)
    assert (loaded.name, loaded.replica_count, loaded.num_partitions) == ("hand_made", 2, 1)
    assert [site.name for site in discover(loaded).sites] == ["x2"]


def test_a_module_inside_a_module_is_not_read_twice() -> None:
    """A recovery table keeps whole modules; they are not part of the program."""
    inner = text_format.MessageToString(module(all_reduce()))
    text = f"{inner}\noriginal_value_recovery_table {{ entries {{ recovery_module {{ {inner} }} }} }}\n"
    assert len(load_all(text)) == 1
    wrapped = f"hlo_modules {{ {text} }}\nhlo_modules {{ {inner} }}\n"
    assert len(load_all(wrapped)) == 2


def test_strings_of_a_text_form_are_unescaped() -> None:
    """Octal, hexadecimal and C escapes, and texts in several pieces."""
    text = text_format.MessageToString(module(all_reduce()))
    text = text.replace('name: "x2"', 'name: "x\\062" "_\\x41\\n" \'"\'')
    (site,) = discover(load(text)).sites
    assert site.name == 'x2_A\n"'


def test_an_element_type_that_nobody_knows_is_unread() -> None:
    """The name of a type from the future spoils its collective, not the file."""
    text = text_format.MessageToString(module(all_reduce()))
    last = text.rindex("element_type: F32")
    found = discover(load(text[:last] + "element_type: F99" + text[last + 17 :]))
    assert found.sites == ()
    assert "element type" in found.unread[0].why


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("computations {", "computations {{"), "bracket"),
        (("computations {", "computations }"), "bracket"),
        (("root_id: ", "root_id: x"), "HloModuleProto"),
        (("root_id: ", 'root_id: "'), "HloModuleProto"),
        (("computations {", "computations { a {" + "b {" * 120 + "}" * 121), "100"),
    ],
)
def test_faults_of_a_text_form_have_their_place(change: tuple[str, str], why: str, tmp_path: Path) -> None:
    """Line and column of the fault, counted from the start of the file."""
    file = tmp_path / "module.pbtxt"
    text = text_format.MessageToString(module(all_reduce()))
    file.write_text("\n\n" + text.replace(*change, 1))
    with pytest.raises(InputError, match=why) as caught:
        load(file)
    assert caught.value.path == str(file)
    assert (caught.value.line or 0) >= 3


def test_the_place_of_a_fault_inside_a_nested_module_counts_from_the_start_of_the_file() -> None:
    """Protobuf counts from the start of the message it was given."""
    good = text_format.MessageToString(module_of(reducer(), entry()))
    bad = good.replace("root_id: ", "root_id: ?", 1)
    line = f"hlo_module {{\n{bad}".split("root_id: ?")[0].count("\n") + 1
    with pytest.raises(InputError) as caught:
        load(f"hlo_module {{\n{bad}\n}}\n")
    assert caught.value.line == line
