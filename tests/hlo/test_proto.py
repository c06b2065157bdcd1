"""A module that comes from a proto: names, orders, shapes, attributes, and what cannot be read."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from commlens.analysis import report
from commlens.errors import InputError
from commlens.hlo import InstructionSite, Module, Site, UnreadableError, discover, load
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from proto_modules import (
    ENTRY_ID,
    FAR,
    REDUCER_ID,
    all_reduce,
    containers,
    entry,
    instruction,
    module,
    module_of,
    reducer,
    shape,
)

PROTOS = Path(__file__).parents[1] / "data" / "protos"


def read(message: schema.HloModuleProto) -> Module:
    """Load a message."""
    return load(message.SerializeToString())


def in_row_order(loaded: Module) -> list[str]:
    """Return the names of the sites."""
    return [site.name for site in discover(loaded).sites]


def test_the_modules_own_words() -> None:
    """Name, format, computations, entry and root are there under the names of every module."""
    loaded = read(module(all_reduce()))
    assert (loaded.name, loaded.format, loaded.path) == ("hand_made", "proto", "<bytes>")
    assert [computation.name for computation in loaded.computations] == ["add", "main"]
    main = loaded.computation("main")
    assert main is not None
    assert main is loaded.entry
    assert main.is_entry
    assert main.root.name == "x2"
    assert main.root.is_root
    assert not main.instructions[0].is_root
    assert loaded.computation("other") is None
    assert main.instruction("x9") is None
    assert loaded.structure_faults == ()
    with pytest.raises(KeyError):
        loaded.instruction("x9")


def test_the_entry_is_found_by_name_where_its_id_leads_nowhere() -> None:
    """The id decides; a module without a valid one still has the name."""
    message = module(all_reduce())
    message.entry_computation_id = 99
    entered = read(message).entry
    assert entered is not None
    assert entered.name == "main"
    message.entry_computation_name = b"gone"
    assert read(message).entry is None


@pytest.mark.parametrize(("number", "name"), [(99, b"gone"), (0, b"gone"), (99, b""), (0, b"")])
def test_an_entry_that_is_not_there_is_unread(number: int, name: bytes) -> None:
    """A file that was cut between two computations is whole in its own way: that the entry lacks is all that tells."""
    message = module(all_reduce())
    message.entry_computation_id, message.entry_computation_name = number, name
    loaded = read(message)
    [item] = loaded.unread
    assert "is not there; the file may be cut" in item.why
    assert (name.decode() or str(number or "no name")) in item.why
    assert [row.trip_count for row in report(loaded).collectives] == [None]


def test_an_id_of_zero_may_be_none() -> None:
    """Where the field is missing, a computation with the id 0 is the entry only if it has the name of the entry."""
    message = module(all_reduce())
    message.computations[0].id = message.entry_computation_id = 0
    for name, entered in ((b"main", "main"), (b"gone", None), (b"", "add"), (b"add", "add")):
        message.entry_computation_name = name
        found = read(message).entry
        assert (None if found is None else found.name) == entered


def test_a_prefix_without_its_entry_is_never_whole() -> None:
    """Wherever a file is cut, something is unread, or every collective is there."""
    data = module(all_reduce()).SerializeToString()
    whole = report(load(data))
    for end in range(1, len(data)):
        try:
            answer = report(load(data[:end]))
        except InputError:
            continue
        assert answer.unread or len(answer.collectives) == len(whole.collectives), end


def test_instructions_stand_by_id_and_not_as_in_the_file() -> None:
    """XLA sorts them so on reading."""
    message = module(all_reduce(3), all_reduce(2))
    main = read(message).entry
    assert main is not None
    assert [each.name for each in main.instructions] == ["x1", "x2", "x3"]
    assert [each.name for each in main.post_order()] == ["x1", "x2", "x3"]
    assert in_row_order(read(message)) == ["x2", "x3"]


def test_rows_stand_as_scheduled_where_there_is_a_schedule() -> None:
    """The schedule is kept beside the computations; what it leaves out comes last, by id."""
    message = module(all_reduce(2), all_reduce(3), all_reduce(4), all_reduce(5))
    message.schedule.sequences[ENTRY_ID].instruction_ids.extend([FAR + 1, FAR + 4, FAR + 2])
    assert in_row_order(read(message)) == ["x4", "x2", "x3", "x5"]
    main = read(message).entry
    assert main is not None
    assert [each.name for each in main.instructions] == ["x1", "x2", "x3", "x4", "x5"]
    assert [item.name for item in main.communication()] == ["x4", "x2", "x3", "x5"]


def test_a_root_that_does_not_exist_gives_way_to_the_last_instruction() -> None:
    """As in a text without ROOT."""
    message = module(all_reduce(3), all_reduce(2))
    message.computations[1].root_id = 0
    main = read(message).entry
    assert main is not None
    assert main.root.name == "x3"


def test_an_empty_computation_has_no_root() -> None:
    """Nothing is made up."""
    message = module(all_reduce())
    message.computations.append(schema.HloComputationProto(name=b"empty", id=9))
    empty = read(message).computation("empty")
    assert empty is not None
    assert empty.instructions == ()
    with pytest.raises(LookupError, match="empty"):
        _ = empty.root


def test_an_operand_that_does_not_exist_is_named_by_its_id() -> None:
    """The collective is unread; its neighbours are rows."""
    bad = all_reduce(2)
    bad.operand_ids[0] = FAR + 77
    loaded = read(module(bad, all_reduce(3)))
    found = discover(loaded)
    assert [site.name for site in found.sites] == ["x3"]
    assert str(FAR + 77) in found.unread[0].why
    assert found.unread[0].where == "computation main"
    assert loaded.instruction("x2").operand_names == (f"id {FAR + 77}",)
    with pytest.raises(UnreadableError, match="not defined"):
        _ = loaded.instruction("x2").operands


def test_an_id_that_two_instructions_bear_leads_nowhere() -> None:
    """Which of them is meant cannot be told."""
    first, second = instruction("negate", 5, [1]), instruction("negate", 6, [1])
    second.id = first.id
    message = module(first, second, all_reduce(9))
    message.computations[1].instructions[-1].operand_ids[0] = first.id
    found = discover(read(message))
    assert found.sites == ()
    assert "several" in found.unread[0].why


def test_names_may_repeat() -> None:
    """The first by id answers to the name; both are rows. Computations are told apart, as XLA does on reading."""
    first, second = all_reduce(2), all_reduce(3)
    second.name = first.name
    other = reducer()
    other.id = 4
    other.instructions[0].name = b"x2"
    message = module_of(reducer(), other, entry(first, second))
    loaded = read(message)
    assert [computation.name for computation in loaded.computations] == ["add", "add.1", "main"]
    assert in_row_order(loaded) == ["x2", "x2"]
    found = loaded.instruction("x2")
    assert found.computation is loaded.entry
    assert found == found.computation.instructions[1]


def test_computations_with_one_id_are_a_fault_of_the_structure() -> None:
    """Calls go to the first; that there is a second one is said."""
    other = reducer()
    other.name = b"other"
    loaded = read(module_of(reducer(), other, entry(all_reduce())))
    (fault,) = loaded.structure_faults
    assert (fault.where, fault.text) == ("computation other", "other")
    assert str(REDUCER_ID) in fault.why
    assert loaded.instruction("x2").called == (("apply", "add"),)


def test_bytes_that_are_no_instruction_are_unread() -> None:
    """A damaged instruction does not hide the others, and is not passed over."""
    outline = schema.HloModuleOutline.FromString(module(all_reduce(2), all_reduce(3)).SerializeToString())
    for damaged in (b"\x0a", b"", b"\x0a\x05ab", b"\x12\x0aall-reduce\x1a\xff", b"\xff" * 40):
        outline.computations[1].instructions[1] = damaged
        found = discover(load(outline.SerializeToString()))
        assert [site.name for site in found.sites] == ["x3"], damaged
        assert len(found.unread) == (1 if damaged else 0), damaged


@pytest.mark.parametrize("opcode", ["all-reduce", "custom-call", "async-start", "fusion", "while", "of-tomorrow"])
@pytest.mark.parametrize("place", [0, 1])
def test_an_instruction_damaged_behind_its_opcode_is_unread(opcode: str, place: int) -> None:
    """It may communicate or call something that does, and be it the first of the file; the rest is read."""
    outline = schema.HloModuleOutline.FromString(module_of(entry(all_reduce(2), all_reduce(3))).SerializeToString())
    damaged = instruction(opcode, 2)
    damaged.fusion_kind = b"kCustom"
    outline.computations[0].instructions[place] = damaged.SerializeToString() + b"\x1a\xff"
    loaded = load(outline.SerializeToString())
    found = discover(loaded)
    because_of_place = ["x2", "x3"] if place == 0 else []  # they use the parameter that stood there
    assert sorted(site.name for site in found.sites) == ([] if place == 0 else ["x3"])
    assert sorted(item.name for item in found.unread if item.name is not None) == because_of_place
    (unread,) = (item for item in found.unread if item.name is None)
    assert (unread.where, unread.text) == ("computation main", f"instruction {place} of the computation main")
    assert loaded.callers({"main"}) == []


def test_texts_that_are_no_utf_8_are_shown_with_marks() -> None:
    """A bad name, op_name or file hides nothing."""
    message = all_reduce()
    message.name = b"\xff\xfe"
    message.metadata.op_name = b"a\x80b"
    message.metadata.source_file = b"\x80.py"
    message.metadata.source_line = 3
    (site,) = discover(read(module(message))).sites
    assert (site.name, site.op_name, site.source) == ("\ufffd\ufffd", "a\ufffdb", "\ufffd.py:3")


@pytest.mark.parametrize("name", ["", "n" * 127, "n" * 128, "n" * 300])
def test_an_instruction_is_found_whatever_the_length_of_its_name(name: str) -> None:
    """The quick look at opcodes stands behind the name; a name of 128 bytes has a longer length in front."""
    quiet, loud = instruction("negate", 3, [1]), all_reduce()
    quiet.name = loud.name = name.encode()
    assert len(discover(read(module(loud, quiet))).sites) == 1


def test_an_instruction_is_found_whatever_the_order_of_its_fields() -> None:
    """No reader may count on an order; here the opcode stands last."""
    whole = all_reduce()
    opcode = bytes((0x12, len(whole.opcode))) + whole.opcode
    whole.ClearField("opcode")
    outline = schema.HloModuleOutline.FromString(module(all_reduce()).SerializeToString())
    outline.computations[1].instructions[1] = whole.SerializeToString() + opcode
    (site,) = discover(load(outline.SerializeToString())).sites
    assert site.signature.opcode == "all-reduce"


def test_an_opcode_of_the_future_is_looked_at() -> None:
    """What we do not know may call a computation in which something communicates."""
    outer = instruction("repeat-thrice", 5, [1])
    outer.called_computation_ids.append(8)
    inner = schema.HloComputationProto(
        name=b"inner", id=8, root_id=FAR + 2, instructions=[*entry(all_reduce()).instructions]
    )
    loaded = read(module_of(reducer(), inner, entry(outer)))
    (call,) = loaded.callers({"inner"})
    assert (call.caller.name, call.role, call.callee) == ("x5", "apply", "inner")


def test_damaged_side_tables_are_as_good_as_none() -> None:
    """A schedule or stack frames that cannot be decoded change no row but its order and source."""
    outline = schema.HloModuleOutline.FromString(module(all_reduce(3), all_reduce(2)).SerializeToString())
    outline.schedule = outline.stack_frame_index = b"\xff"
    assert in_row_order(load(outline.SerializeToString())) == ["x2", "x3"]


def test_views_of_one_place_are_equal() -> None:
    """However they were come by."""
    loaded = read(module(all_reduce()))
    first, again = loaded.instruction("x2"), loaded.instruction("%x2")
    assert first == again
    assert hash(first) == hash(again)
    assert first.operands[0] != first
    assert first != "x2"
    assert first != read(module(all_reduce())).instruction("x2")
    assert repr(first) == "<all-reduce x2>"


def test_equal_collectives_share_a_signature() -> None:
    """Names, ids, channels and metadata differ from place to place; groups, shapes and flags do not."""
    made = [all_reduce(number) for number in range(2, 8)]
    made[1].channel_id = made[2].channel_id = 4
    made[2].channel_id = 5
    made[3].metadata.op_name, made[3].backend_config = b"elsewhere", b"{}"
    made[4].use_global_device_ids = True
    made[5].operand_ids[0] = FAR + 9
    wide = instruction("parameter", 9, result=shape(8, 8))
    items = [item for _, items in read(module(*made, wide)).communication() for item in items]
    signatures = [item.signature for item in items if isinstance(item, Site)]
    assert len(signatures) == 6
    assert [signatures.index(each) for each in signatures] == [0, 1, 1, 0, 4, 5]
    assert [item.channel_id for item in items if isinstance(item, Site)] == [None, 4, 5, None, None, None]


def test_what_communicates_in_disguise_comes_as_an_instruction() -> None:
    """Asynchronous wrappers, custom fusions and custom calls that are collectives; all others are left out."""
    loop, custom = instruction("fusion", 2, [1]), instruction("fusion", 3, [1])
    loop.fusion_kind, custom.fusion_kind = b"kLoop", b"kCustom"
    matmul, gather = instruction("custom-call", 4, [1]), instruction("custom-call", 5, [1])
    matmul.custom_call_target, gather.custom_call_target = b"cublas$gemm", b"all-gather-start"
    others = [instruction(opcode, number, [1]) for number, opcode in enumerate(("async-start", "async-done"), start=6)]
    done = [instruction(opcode, number, [1]) for number, opcode in enumerate(("all-gather-done", "send-done"), start=8)]
    loaded = read(module(loop, custom, matmul, gather, *others, *done))
    found = [item for _, items in loaded.communication() for item in items]
    assert [(type(item) is InstructionSite, item.name) for item in found] == [
        (False, "x3"),
        (False, "x5"),
        (False, "x6"),
    ]


def test_the_garbage_collector_is_left_as_it_was() -> None:
    """It is paused while rows are built, and only where it ran before."""
    assert gc.isenabled()
    assert in_row_order(read(module(all_reduce()))) == ["x2"]
    assert gc.isenabled()
    gc.disable()
    try:
        assert in_row_order(read(module(all_reduce()))) == ["x2"]
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("name", containers())
def test_the_source_comes_back_unchanged(name: str, tmp_path: Path) -> None:
    """Reading and writing gives the container's bytes."""
    data = containers()[name]
    loaded = load(data)
    assert discover(loaded).sites
    assert loaded.to_bytes() == data
    loaded.write(tmp_path / "copy.pb")
    assert (tmp_path / "copy.pb").read_bytes() == data


def test_one_computation_may_be_asked_alone() -> None:
    """A computation gives what its module gives for it."""
    loaded = load(PROTOS / "jax-0.10.2.nested_loops_2x4.before.pb")
    by_module = {computation.name: list(items) for computation, items in loaded.communication()}
    for computation in loaded.computations:
        assert list(computation.communication()) == by_module.get(computation.name, [])
    assert sum(len(items) for items in by_module.values()) == 4
