"""Rules on groups, pairs, meshes, shapes, repetition and what cannot be read."""

from __future__ import annotations

import pytest

from checked_lines import FOUR, gathered, reduced
from checking import FLAG, ids_of, module_of, one_of, problems_in
from commlens.hlo import load

# --- groups and pairs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "rules"),
    [
        ("{{0,1},{2,3}}", []),
        ("{{3,1},{0,2}}", []),
        ("[2,2]<=[2,2]T(1,0)", []),
        ("{{0,1},{2,3,3}}", ["id-repeated"]),
        ("{{0,1},{1,2,3}}", ["id-repeated"]),
        ("{{0,1},{2,4}}", ["groups-incomplete", "id-out-of-range"]),
        ("{{0,1},{2,-1}}", ["groups-incomplete", "id-out-of-range"]),
        ("{{0,1}}", ["groups-incomplete"]),
        ("{{0,1},{},{2,3}}", ["group-empty"]),
        ("[2,4]<=[8]", ["id-out-of-range"]),
        ("[1,2]<=[2]", ["groups-incomplete"]),
        ("{}", ["flattened-without-groups"]),
        ("{{0,0},{},{9}}", ["group-empty", "groups-incomplete", "id-out-of-range", "id-repeated"]),
    ],
)
def test_all_faults_of_a_group_list_are_found(groups: str, rules: list[str]) -> None:
    """Each fault is found under its own rule, and one does not hide another."""
    assert ids_of(problems_in(module_of(reduced(groups), header=FOUR))) == rules


@pytest.mark.parametrize("groups", ["{{0,1},{2,9}}", "{{0,1}}", "[2,4]<=[8]"])
@pytest.mark.parametrize("channel", [None, 1])
def test_range_and_coverage_need_known_counts(groups: str, channel: int | None) -> None:
    """Where nobody states the counts, ids beyond any and devices without a group are no findings."""
    module = module_of(reduced(groups, channel=channel, flag=channel is not None))
    assert ids_of(problems_in(module)) == []


def test_negative_ids_are_wrong_whatever_the_counts() -> None:
    """No device has a negative id, known counts or not, and each is named."""
    found = problems_in(module_of(reduced("{{0,-1},{2,-3}}")))
    assert ids_of(found) == ["id-out-of-range"]
    assert "-3, -1" in found[0].message


def test_counts_of_the_options_count() -> None:
    """Counts that the user states are known counts."""
    text = module_of(reduced("{{0,1}}")).to_bytes().decode()
    assert ids_of(problems_in(load(text))) == []
    assert ids_of(problems_in(load(text, replicas=1, partitions=4))) == ["groups-incomplete"]
    assert ids_of(problems_in(load(text, replicas=1, partitions=2))) == []


@pytest.mark.parametrize(
    ("opcode", "operand", "result", "rules"),
    [
        ("all-reduce", "f32[8]", "f32[8]", []),
        ("collective-broadcast", "f32[8]", "f32[8]", []),
        ("all-gather", "f32[8]", "f32[16]", ["groups-uneven"]),
        ("reduce-scatter", "f32[8]", "f32[4]", ["groups-uneven"]),
        ("all-to-all", "f32[8]", "f32[8]", ["groups-uneven"]),
    ],
)
def test_only_some_collectives_may_have_uneven_groups(opcode: str, operand: str, result: str, rules: list[str]) -> None:
    """All-reduce and collective-broadcast may, those with shapes that depend on the size may not."""
    more = {
        "all-gather": f", dimensions={{0}}, {FLAG}",
        "reduce-scatter": f", dimensions={{0}}, {FLAG}, to_apply=add",
        "all-to-all": ", dimensions={0}",
        "all-reduce": f", {FLAG}, to_apply=add",
    }.get(opcode, "")
    line = f"r = {result} {opcode}(p), channel_id=1, replica_groups={{{{0}},{{1,2,3}}}}{more}"
    assert ids_of(problems_in(module_of(line, header=FOUR))) == rules


def test_a_broadcast_may_leave_devices_out_but_not_name_wrong_ones() -> None:
    """XLA does not look at the groups of a collective-broadcast; ids that nothing has are wrong there too."""
    fine = module_of("b = f32[8] collective-broadcast(p), channel_id=1, replica_groups={{2,0}}", header=FOUR)
    wrong = module_of("b = f32[8] collective-broadcast(p), replica_groups={{1,0},{2,3}}", header=FOUR)
    assert ids_of(problems_in(fine)) == []
    [found] = problems_in(wrong)
    assert found.rule.id == "id-out-of-range"
    assert found.message.endswith(
        "add a channel_id, for the ids are those of the 4 partitions, or run the program on 4 replicas"
    )


def test_cures_of_a_wrong_id_space_are_those_that_fit() -> None:
    """Ids of all devices under a channel without the flag are told apart from ids of replicas."""
    header = "replica_count=2, num_partitions=2"
    [found] = problems_in(module_of(reduced("{{0,1,2,3}}", flag=False), header=header))
    assert "add use_global_device_ids=true, for the ids are those of the 4 devices" in found.message
    [found] = problems_in(module_of(reduced("{{0,1,2,3}}", channel=None, flag=False), header=header))
    assert "add a channel_id and use_global_device_ids=true, for the ids are those of the 4 devices" in found.message
    [found] = problems_in(module_of(reduced("{{0,1,2,3,4}}"), header=header))
    assert found.message.endswith("found 4; run the program on 5 devices")


@pytest.mark.parametrize(
    ("pairs", "rules"),
    [
        ("{{0,1},{1,0}}", []),
        ("{{0,1}}", []),
        ("{}", []),
        ("{{0,1},{0,2}}", ["pair-repeated"]),
        ("{{0,1},{2,1}}", ["pair-repeated"]),
        ("{{0,1},{0,1}}", ["pair-repeated", "pair-repeated"]),
        ("{{0,4}}", ["id-out-of-range"]),
        ("{{-1,4},{-1,2}}", ["id-out-of-range", "pair-repeated"]),
    ],
)
def test_pairs(pairs: str, rules: list[str]) -> None:
    """Sources and targets stand once each, and are ids of partitions."""
    line = f"c = f32[8] collective-permute(p), channel_id=1, source_target_pairs={pairs}"
    assert ids_of(problems_in(module_of(line, header=FOUR))) == rules


def test_the_in_place_permute_may_send_to_several() -> None:
    """A permute that writes slices into its second operand may have a device in several pairs."""
    lines = (
        "i = s32[] constant(0)",
        "at = (s32[]) tuple(i)",
        "c = f32[8] collective-permute(p, p, at, at), channel_id=1, source_target_pairs={{0,1},{0,2}}, slice_sizes={{4}}",
    )
    assert ids_of(problems_in(module_of(*lines, header=FOUR))) == []


def test_faults_of_flags_do_not_hide_those_of_groups() -> None:
    """Where the flags contradict each other nobody knows what the ids are, but that one stands twice is wrong."""
    module = module_of(reduced("{{0,1},{1,9}}", channel=None), header=FOUR)
    assert ids_of(problems_in(module)) == ["flag-without-channel", "id-repeated"]


def test_a_thousand_faults_are_a_thousand_findings() -> None:
    """Nothing stops after the first."""
    lines = [f"r{n} = f32[8] all-reduce(p), replica_groups={{{{0,0}}}}, to_apply=add" for n in range(1000)]
    found = [each for each in problems_in(module_of(*lines)) if each.rule.id == "id-repeated"]
    assert [each.instructions for each in found] == [[f"r{n}"] for n in range(1000)]


# --- the mesh -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "off"),
    [
        ("{{0,1,2,3},{4,5,6,7}}", False),
        ("{{4,0},{5,1},{6,2},{7,3}}", False),
        ("{{0,2},{1,3},{4,6},{5,7}}", False),
        ("{{0,4},{1,5},{2,7},{3,6}}", True),
        ("{{0,1,2},{3,4,5,6,7}}", True),
    ],
)
def test_groups_off_the_mesh(groups: str, off: bool) -> None:
    """Groups along axes or even parts of them fit, in any order of groups and members; others do not."""
    found = problems_in(module_of(reduced(groups), header="num_partitions=8"), mesh="data=2,model=4")
    assert ids_of(found) == ["groups-off-mesh"] * off


def test_a_mesh_of_another_size_is_said_once() -> None:
    """Not every collective is blamed when the mesh is for another number of devices."""
    module = module_of(reduced("[1,4]<=[4]"), gathered("g", "p", "[2,2]<=[4]", 2), header=FOUR)
    [found] = problems_in(module, mesh="data=2,model=4")
    assert (found.rule.id, found.instructions, found.line) == ("groups-off-mesh", [], None)
    assert found.message == "expected a mesh of the program's 4 devices, found mesh['data'=2,'model'=4] of 8"


def test_generated_meshes_are_no_yardstick() -> None:
    """Axes that the partitioner numbered say what one collective needed, not what the program means."""
    odd = reduced("{{0,3},{1,2}}")
    named = gathered("g", "p", "mesh['axis_0'=2,'axis_1'=2] {'axis_0'}", 2)
    assert ids_of(problems_in(module_of(named, odd, header=FOUR))) == []
    assert ids_of(problems_in(module_of(named.replace("axis_", "dim"), odd, header=FOUR))) == ["groups-off-mesh"]


def test_ids_with_other_faults_are_not_blamed_on_the_mesh() -> None:
    """A repeated id explains why groups fit no axes."""
    found = problems_in(module_of(reduced("{{0,1},{1,2,3}}"), header=FOUR), mesh="x=2,y=2")
    assert ids_of(found) == ["id-repeated"]


def test_pairs_outside_the_mesh() -> None:
    """Without known counts, ids that the mesh does not have are the only thing to go by."""
    line = "c = f32[8] collective-permute(p), channel_id=1, source_target_pairs={{0,9}}"
    [found] = problems_in(module_of(line), mesh="x=2,y=2")
    assert (found.rule.id, found.instructions) == ("groups-off-mesh", ["c"])


# --- shapes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("x = f32[32] all-gather(p), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, " + FLAG, True),
        ("x = f32[16] all-gather(p), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, " + FLAG, False),
        ("x = bf16[32] all-gather(p), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, " + FLAG, False),
        ("x = f32[32] all-gather(p), channel_id=1, replica_groups=[1,4]<=[4], dimensions={1}, " + FLAG, False),
        ("x = f32[32] all-gather(p), channel_id=1, replica_groups={{0}}, dimensions={0}", True),
        ("x = f32[8] all-gather(p), channel_id=1, replica_groups={{0}}, dimensions={0}", False),
        (
            "x = f32[2] reduce-scatter(p), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, to_apply=add, "
            + FLAG,
            True,
        ),
        (
            "x = f32[4] reduce-scatter(p), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, to_apply=add, "
            + FLAG,
            False,
        ),
        ("x = f32[8] all-to-all(p), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}", True),
        ("x = f32[4] all-to-all(p), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}", False),
        ("x = (f32[8], f32[8]) all-to-all(p, p), channel_id=1, replica_groups=[2,2]<=[4]", True),
        ("x = (f32[8], f32[8]) all-to-all(p, p), channel_id=1, replica_groups=[1,4]<=[4]", False),
        ("x = (f32[8], f32[4]) all-to-all(p, p), channel_id=1, replica_groups=[2,2]<=[4]", False),
        ("x = f32[4] all-reduce(p), channel_id=1, replica_groups=[1,4]<=[4], to_apply=add, " + FLAG, False),
        ("x = f32[8] collective-permute(p), channel_id=1, source_target_pairs={{0,1}}", True),
        ("x = f32[4] collective-permute(p), channel_id=1, source_target_pairs={{0,1}}", False),
        ("x = f32[8] collective-broadcast(p), channel_id=1, replica_groups={{0,1,2,3}}", True),
        ("x = f32[9] collective-broadcast(p), channel_id=1, replica_groups={{0,1,2,3}}", False),
    ],
)
def test_shapes(line: str, right: bool) -> None:
    """Results are as large as the groups make them, and of the operands' type."""
    found = problems_in(module_of(line, header=FOUR))
    assert ids_of(found) == [] if right else ids_of(found) == ["shape-mismatch"]


@pytest.mark.parametrize(
    "line",
    [
        "x = (f32[32], f32[]) all-gather(p, k), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, " + FLAG,
        "x = (f32[2], f32[]) reduce-scatter(p, k), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, to_apply=add, "
        + FLAG,
        "x = f32[<=99] all-gather(p), channel_id=1, replica_groups=[1,4]<=[4], dimensions={0}, " + FLAG,
        "x = f32[64] all-gather(p), replica_groups={}, dimensions={0}",
        "x = f32[64] all-gather(p), replica_groups={{0,1},{2,3,4}}, dimensions={0}",
    ],
)
def test_shapes_that_say_nothing(line: str) -> None:
    """Token operands, bounds, unknown counts and uneven groups have no figure to be held against."""
    header = FOUR if "channel_id" in line else ""
    found = problems_in(module_of("k = f32[] constant(0)", line, header=header))
    assert "shape-mismatch" not in ids_of(found)


# --- a single device, twice the same --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "alone"),
    [
        (reduced("{{0},{1},{2},{3}}"), True),
        (reduced("[4,1]<=[4]"), True),
        (reduced("{{0}}", flag=False), False),
        (reduced("{}", channel=None, flag=False), True),
        (reduced("{{0},{1,2,3}}"), False),
        ("c = f32[8] collective-permute(p), channel_id=1, source_target_pairs={{0,0},{1,1}}", True),
        ("c = f32[8] collective-permute(p), channel_id=1, source_target_pairs={{0,0},{1,2}}", False),
        ("c = f32[8] collective-permute(p), channel_id=1, source_target_pairs={}", False),
    ],
)
def test_nobody_has_a_partner(line: str, alone: bool) -> None:
    """Said of the devices that really take part; it is a note."""
    found = problems_in(module_of(line, header=FOUR))
    assert [(each.rule.id, each.severity) for each in found] == [("size-one-axis", "note")] * alone


@pytest.mark.parametrize(
    ("lines", "twice"),
    [
        ([gathered("g", "p", "[2,2]<=[4]", 1), gathered("h", "p", "{{0,1},{2,3}}", 2)], True),
        ([gathered("g", "p", "[2,2]<=[4]", 1), "k = f32[8] copy(p)", gathered("h", "k", "[2,2]<=[4]", 2)], True),
        ([gathered("g", "p", "[2,2]<=[4]", 1), gathered("h", "p", "[2,2]<=[2,2]T(1,0)", 2)], False),
        ([gathered("g", "p", "[2,2]<=[4]", 1), "k = f32[8] negate(p)", gathered("h", "k", "[2,2]<=[4]", 2)], False),
        (
            [gathered("g", "p", "[2,2]<=[4]", 1), "b = f32[8] opt-barrier(p)", gathered("h", "b", "[2,2]<=[4]", 2)],
            False,
        ),
    ],
)
def test_the_same_data_gathered(lines: list[str], twice: bool) -> None:
    """Same operands, dimension and groups, however spelled; behind a barrier it is meant."""
    found = problems_in(module_of(*lines, header=FOUR))
    assert [(each.rule.id, each.instructions) for each in found] == [("gathered-twice", ["g", "h"])] * twice


def test_elements_of_one_tuple_are_different_data() -> None:
    """Two elements of one parameter are not the same operand."""
    lines = [
        "t = (f32[8], f32[8]) parameter(2)",
        "a = f32[8] get-tuple-element(t), index=0",
        "b = f32[8] get-tuple-element(t), index=1",
        gathered("g", "a", "[2,2]<=[4]", 1),
        gathered("h", "b", "[2,2]<=[4]", 2),
    ]
    assert ids_of(problems_in(module_of(*lines, header=FOUR))) == []
    again = [*lines, "c = f32[8] get-tuple-element(t), index=0", gathered("i", "c", "[2,2]<=[4]", 3)]
    assert one_of(problems_in(module_of(*again, header=FOUR)), "gathered-twice").instructions == ["g", "i"]


# --- what cannot be read --------------------------------------------------------------------------------------------


def test_unread_items_are_findings_with_their_lines() -> None:
    """What report warns of is a finding here, and the rest of the module is checked all the same."""
    lines = (
        "g = f32[32] all-gather(p), replica_groups={}, dimensions={}",
        reduced("{{0,0}}", channel=None, flag=False),
    )
    found = problems_in(module_of(*lines))
    unread = one_of(found, "unread")
    assert (unread.instructions, unread.severity, unread.line) == (
        ["g"],
        "warning",
        found[1].line - 1 if found[1].line else None,
    )
    assert ids_of(found) == ["id-repeated", "unread"]


def test_cut_text_is_a_finding_without_a_name() -> None:
    """A module that ends in the middle may lack anything: that is said, with the line of what is not closed."""
    found = problems_in(load("HloModule m\nENTRY e {\n  p = f32[8] parameter(0)\n"))
    assert [(each.rule.id, each.instructions, each.line) for each in found] == [("unread", [], 2)]


def test_a_computation_without_readable_operands_is_said() -> None:
    """Where nobody can tell who uses an all-reduce, the rules about that say so instead of nothing."""
    found = problems_in(
        module_of(reduced("{}", channel=None, flag=False), "z = f32[8] add(p, [)", header="replica_count=2")
    )
    assert ids_of(found) == ["unread"]
    assert "is not checked" in found[0].message
