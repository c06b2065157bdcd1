"""The rules about stock XLA: what they find, and as much that they must leave alone."""

from __future__ import annotations

import pytest

from checking import FLAG, ids_of, module_of, one_of, problems_in
from commlens.hlo import load
from proto_twin import load_as

FOUR = "num_partitions=4"


def reduced(groups: str, *, channel: int | None = 1, flag: bool = True) -> str:
    """Write an all-reduce over some groups."""
    channel_id = "" if channel is None else f", channel_id={channel}"
    return f"r = f32[8] all-reduce(p){channel_id}, replica_groups={groups}{f', {FLAG}' if flag else ''}, to_apply=add"


def gathered(name: str, operand: str, groups: str, channel: int, *, size: int = 16, more: str = "") -> str:
    """Write an all-gather of an f32[8] in global ids."""
    return (
        f"{name} = f32[{size}] all-gather({operand}), channel_id={channel}, replica_groups={groups}, dimensions={{0}},"
        f" {FLAG}{more}"
    )


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


# --- channels, sends and recvs --------------------------------------------------------------------------------------

TRANSFER = (
    "t = token[] after-all()",
    "s = (f32[8], u32[], token[]) send(p, t), channel_id=3",
    "sd = token[] send-done(s), channel_id=3",
    "v = (f32[8], u32[], token[]) recv(t), channel_id=3",
    "vd = (f32[8], token[]) recv-done(v), channel_id=3",
)


def test_branches_may_share_a_channel() -> None:
    """Several instructions of one opcode may have one channel id."""
    lines = [gathered(f"g{n}", "p", "[2,2]<=[4]", 7, size=16, more=f', metadata={{op_name="{n}"}}') for n in range(2)]
    found = problems_in(module_of(*lines, header=FOUR))
    assert "channel-two-opcodes" not in ids_of(found)


def test_the_two_halves_are_one_opcode() -> None:
    """An all-reduce and the start of another are the same kind."""
    lines = (
        reduced("[1,4]<=[4]", channel=7),
        f"a = f32[8] all-reduce-start(p), channel_id=7, replica_groups=[1,4]<=[4], {FLAG}, to_apply=add",
        "b = f32[8] all-reduce-done(a)",
    )
    assert ids_of(problems_in(module_of(*lines, header=FOUR))) == []


def test_send_and_recv_share_a_channel_by_right() -> None:
    """A pair and its dones are one user of a channel."""
    assert ids_of(problems_in(module_of(*TRANSFER, header=FOUR))) == []


def test_the_mark_of_jax_is_a_note() -> None:
    """One id of 1 on three collectives says nothing; any other id, or a send on it, is an error."""
    lines = [
        gathered("g", "p", "[2,2]<=[4]", 1),
        reduced("[1,4]<=[4]"),
        "c = f32[8] collective-permute(p), channel_id=1, source_target_pairs={{0,1}}",
    ]
    found = one_of(problems_in(module_of(*lines, header=FOUR)), "channel-two-opcodes")
    assert (found.severity, found.instructions) == ("note", ["g", "r", "c"])
    others = [line.replace("channel_id=1", "channel_id=2") for line in lines]
    assert one_of(problems_in(module_of(*others, header=FOUR)), "channel-two-opcodes").severity == "error"
    with_send = [*lines, *(line.replace("channel_id=3", "channel_id=1") for line in TRANSFER)]
    assert one_of(problems_in(module_of(*with_send, header=FOUR)), "channel-two-opcodes").severity == "error"


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        (("send-done(s), channel_id=3", "send-done(s), channel_id=4"), ["start-done-unpaired"]),
        (("recv-done(v), channel_id=3", "recv-done(v)"), []),
        (("f32[8], u32[], token[]) recv", "f32[9], u32[], token[]) recv"), ["send-recv-unpaired"]),
    ],
)
def test_ends_that_differ(change: tuple[str, str], rules: list[str]) -> None:
    """A done with another channel, and a recv of another shape, do not go with the rest."""
    lines = "\n".join(TRANSFER).replace(*change).split("\n")
    assert ids_of(problems_in(module_of(*lines, header=FOUR))) == rules


def test_pairs_of_a_send_and_its_recv() -> None:
    """Both ends state the same source-target pairs, where they state any."""
    with_pairs = [
        line + f", frontend_attributes={{_xla_send_recv_source_target_pairs={pairs}}}"
        if " send(" in line or " recv(" in line
        else line
        for line, pairs in zip(TRANSFER, ["", "{{0,1}}", "", "{{1,2}}", ""], strict=True)
    ]
    [found] = problems_in(module_of(*with_pairs, header=FOUR))
    assert (found.rule.id, found.instructions) == ("send-recv-unpaired", ["s", "v"])
    same = [line.replace("{{1,2}}", "{{0,1}}") for line in with_pairs]
    assert ids_of(problems_in(module_of(*same, header=FOUR))) == []


def test_host_transfers_have_their_other_end_outside() -> None:
    """A send to the host has no recv in the module."""
    lines = [line.replace("channel_id=3", "channel_id=3, is_host_transfer=true") for line in TRANSFER[:3]]
    assert ids_of(problems_in(module_of(*lines, header=FOUR))) == []


def test_several_sends_on_a_channel() -> None:
    """Nobody can tell which of two sends belongs to the recv: all are listed."""
    lines = (*TRANSFER, "s2 = (f32[8], u32[], token[]) send(p, t), channel_id=3", "sd2 = token[] send-done(s2)")
    [found] = problems_in(module_of(*lines, header=FOUR))
    assert (found.rule.id, found.instructions) == ("send-recv-unpaired", ["s", "s2", "v"])


@pytest.mark.parametrize("backend", ["text", "proto"])
@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (["a = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add"], ["a"]),
        (["d = f32[8] all-reduce-done(p)"], ["d"]),
        (["n = f32[8] negate(p)", "d = f32[8] all-reduce-done(n)"], ["d"]),
        (
            [
                "a = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add",
                "d = f32[8] all-reduce-done(a)",
                "e.1 = f32[8] all-reduce-done(a)",
            ],
            ["a", "d", "e.1"],
        ),
        (
            [
                "a = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add",
                "d = f32[16] all-gather-done(a)",
            ],
            ["a", "d"],
        ),
    ],
)
def test_halves_that_do_not_pair(lines: list[str], names: list[str], backend: str) -> None:
    """A start alone, a done alone, two dones, and the done of another operation."""
    text = module_of(*lines, "o = f32[8] negate(p)").to_bytes().decode()
    [found] = problems_in(load_as(text, backend))
    assert (found.rule.id, found.instructions) == ("start-done-unpaired", names)


def test_done_of_nothing_defined() -> None:
    """A done whose operand does not exist has no start."""
    found = problems_in(module_of("d = f32[8] all-reduce-done(gone)", "o = f32[8] negate(p)"))
    assert one_of(found, "start-done-unpaired").instructions == ["d"]


@pytest.mark.parametrize(
    "lines",
    [
        ["a = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add", "o = (f32[8]) tuple(a)"],
        ["a = f32[8] all-reduce-start(p), replica_groups={}, to_apply=add"],
        [
            "a = ((f32[8]), f32[8]) async-start(p), calls=wrapped",
            "u = ((f32[8]), f32[8]) async-update(a)",
            "d = f32[8] async-done(u)",
        ],
    ],
)
def test_halves_that_are_not_followed_or_right(lines: list[str]) -> None:
    """A start that leaves its computation may be awaited elsewhere; an update in between is part of it."""
    wrapped = (
        "wrapped {\n  w = f32[8] parameter(0)\n  ROOT x = f32[8] all-reduce(w), replica_groups={}, to_apply=add\n}"
    )
    *others, last = lines
    assert ids_of(problems_in(module_of(*others, f"ROOT {last}", before=wrapped))) == []


def test_a_done_inside_a_loop_may_belong_to_a_start_before_it() -> None:
    """In a body the start may come with the loop's state."""
    body = "body {\n  a = f32[8] parameter(0)\n  ROOT d = f32[8] all-reduce-done(a)\n}"
    assert ids_of(problems_in(module_of("c = f32[8] call(p), to_apply=body", before=body))) == []


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
        module_of(reduced("{}", channel=None, flag=False), "z = f32[8] add(p, ", header="replica_count=2")
    )
    assert ids_of(found) == ["unread"]
    assert "is not checked" in found[0].message
