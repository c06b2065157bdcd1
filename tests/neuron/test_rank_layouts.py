from __future__ import annotations

import re
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import neuron_cases
import twins_neuron as twins
from commlens.neuron import (
    Degrees,
    RankLayout,
    compressed_groups,
    cp_groups,
    kv_groups,
    partition_op_groups,
    pp_send_recv_groups,
    rank_layout,
    token_shuffle_groups,
)
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList

ALWAYS = ["tp", "dp", "pp", "ep_model", "ep_data"]
SMALL = st.sampled_from([1, 2, 3, 4])


def groups_of(layout: RankLayout) -> dict[str, list[list[int]]]:
    """Write all groups out."""
    return {name: groups.groups() for name, groups in layout.groups.items()}


# --- cases -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", neuron_cases.cases("parallel_state_logic1"))
def test_logic1_cases(case: dict[str, Any]) -> None:
    """The groups of the documented cases, with TP 4 the strided ones."""
    arguments = {name: case[name] for name in ("world", "tp", "pp", "ep", "local_world_size") if name in case}
    if "expected_error" in case:
        with pytest.raises(ValueError, match=r"divisible by tp x pp, found 8 ranks and 3 x 1 = 3"):
            rank_layout(**arguments)
        return
    layout = rank_layout(**arguments)
    groups = groups_of(layout)
    for name, expected in case.get("expected", {}).items():
        assert groups[name] == expected
    if "expected_tp_first" in case:
        assert (layout.logic, groups["tp"][0], groups["tp"][-1]) == (
            "TP4",
            case["expected_tp_first"],
            case["expected_tp_last"],
        )


@pytest.mark.parametrize("case", neuron_cases.cases("parallel_state_logic2"))
def test_logic2_cases(case: dict[str, Any]) -> None:
    """Which layout is chosen, and the groups of rows in pairs: both halves ascend."""
    layout = rank_layout(case["world"], case["tp"], hardware=case["hardware"], lnc=case["lnc"])
    assert layout.logic == case.get("expected_logic", "LOGIC2")
    if "tp_groups" in case:
        groups = groups_of(layout)
        assert layout.local_world_size == case["local_world_size"]
        assert groups["tp"] == [case["tp_group_0"], case["tp_group_1"]]
        places = (groups["dp"][0], groups["dp"][16], groups["dp"][-1])
        assert places == (case["dp_first"], case["dp_index16"], case["dp_last"])


@pytest.mark.parametrize("case", neuron_cases.cases("kv_groups"))
def test_kv_groups_cases(case: dict[str, Any]) -> None:
    """Neighbours on trn2 and where asked for, else members at equal distances."""
    tp_groups = np.arange(case["tp"]).reshape(1, -1)
    found = kv_groups(tp_groups, case["kv"], adjacent=case["sequential"] or case["hardware"] == "trn2").tolist()
    assert found[0] == case["expected_first"] if "expected_first" in case else found == case["expected"]
    layout = rank_layout(
        case["tp"],
        case["tp"],
        hardware=case["hardware"],
        lnc=1,
        local_world_size=case["tp"],
        kv=case["kv"],
        kv_sequential=case["sequential"],
    )
    assert layout.groups["kv"].groups() == found


@pytest.mark.parametrize("case", neuron_cases.cases("cp_groups"))
def test_cp_groups_cases(case: dict[str, Any]) -> None:
    """Blocks of ranks for attention, one rank of each block for the context."""
    attention, context = (groups.tolist() for groups in cp_groups(case["tp"], case["cp"]))
    assert (attention[0], context[0]) == (
        case.get("attention_tp_first") or case["attention_tp"][0],
        case.get("attention_cp_first") or case["attention_cp"][0],
    )
    if "attention_tp" in case:
        assert (attention, context) == (case["attention_tp"], case["attention_cp"])
    layout = rank_layout(case["tp"], case["tp"], cp=case["cp"])
    assert (layout.groups["cp_tp"].groups(), layout.groups["cp"].groups()) == (attention, context)


@pytest.mark.parametrize("case", neuron_cases.cases("pp_send_recv_groups"))
def test_pp_send_recv_groups_cases(case: dict[str, Any]) -> None:
    """Pairs of neighbouring stages, from even or odd ones on."""
    assert pp_send_recv_groups(np.array(case["pp_groups"]), case["parity"]).tolist() == case["expected"]


@pytest.mark.parametrize("case", neuron_cases.cases("token_shuffle_groups"))
def test_token_shuffle_groups_cases(case: dict[str, Any]) -> None:
    """Runs of neighbours along the data dimension."""
    ranks = np.arange(case["world"]).reshape(case["pp"], case["dp"], case["tp"])
    assert token_shuffle_groups(ranks, case["shuffle"]).tolist() == case["expected"]
    layout = rank_layout(case["world"], case["tp"], pp=case["pp"], token_shuffle=case["shuffle"])
    assert layout.groups["token_shuffle"].groups() == case["expected"]


@pytest.mark.parametrize("case", neuron_cases.cases("nki_partition_op"))
def test_nki_partition_op_cases(case: dict[str, Any]) -> None:
    """Ranks that an operation takes to the same number."""
    assert partition_op_groups(case["world"], case["op"], case["operand"]).groups() == case["expected"]


@pytest.mark.parametrize("case", neuron_cases.cases("compress_rg"))
def test_compress_rg_cases(case: dict[str, Any]) -> None:
    """What is written of compressed groups is the first."""
    assert compressed_groups(CollectiveDeviceList(case["groups"])).groups() == case["emitted_mesh"]
    assert compressed_groups(CollectiveDeviceList(None)).groups() == []
    assert compressed_groups(IotaReplicaGroupList(1 << 40, 2)).groups() == [[0, 1]]


# --- twins -----------------------------------------------------------------------------------------------------------


def check_families(layout: RankLayout, ranks: list[int], experts: list[int], *, by_place: bool) -> None:
    """Hold every family against loops over a list of ranks."""
    degrees = layout.degrees
    tp, pp, ep = degrees.tp, degrees.pp, degrees.ep
    pipelines = twins.pp_groups(ranks, tp, pp, by_place=by_place)
    expected = {
        "tp": twins.tp_groups(ranks, tp),
        "dp": twins.dp_groups(ranks, tp, pp),
        "pp": pipelines,
        "ep_model": twins.ep_model_groups(experts, tp, pp, ep),
        "ep_data": twins.ep_data_groups(experts, tp, pp, ep),
    }
    if pp > 1:
        expected["pp_send_recv"] = twins.pp_send_recv_groups(pipelines, 0)
        expected["pp_send_recv_odd"] = twins.pp_send_recv_groups(pipelines, 1)
    found = groups_of(layout)
    assert {name: found[name] for name in expected} == expected
    for name in ALWAYS:
        assert sorted(rank for group in found[name] for rank in group) == list(range(degrees.world))
    for name, iota in layout.iota.items():
        if iota is not None:
            assert str(layout.groups[name]) == iota


@given(data=st.data(), tp=st.sampled_from([1, 2, 3, 5, 6, 8, 32]), pp=SMALL, experts=SMALL, ep=SMALL)
def test_logic1_against_loops(data: st.DataObject, tp: int, pp: int, experts: int, ep: int) -> None:
    """Every family of the plain layout is what loops over the coordinates give."""
    dp = experts * ep
    world = tp * pp * dp
    shuffle = data.draw(st.sampled_from([size for size in range(1, dp + 1) if dp % size == 0]))
    kv = data.draw(st.sampled_from([size for size in range(1, tp + 1) if tp % size == 0]))
    sequential = data.draw(st.booleans())
    layout = rank_layout(world, tp, pp=pp, ep=ep, token_shuffle=shuffle, kv=kv, kv_sequential=sequential)
    ranks = twins.plain_ranks(world)
    assert (layout.logic, layout.degrees.dp, layout.notes) == ("LOGIC1", dp, ())
    check_families(layout, ranks, ranks, by_place=False)
    assert layout.groups["token_shuffle"].groups() == twins.token_shuffle_groups(ranks, tp, pp, shuffle)
    tensor = twins.tp_groups(ranks, tp)
    assert layout.groups["kv"].groups() == twins.kv_groups(tensor, kv, adjacent=sequential)
    assert None not in [iota for name, iota in layout.iota.items() if not name.startswith("pp_send_recv")]


@given(
    nodes=st.integers(1, 3),
    pp=st.integers(1, 3),
    local=st.sampled_from([4, 8, 16, 32]),
    hardware=st.sampled_from(["trn1", "trn2"]),
)
def test_tp4_against_loops(nodes: int, pp: int, local: int, hardware: str) -> None:
    """With TP 4 a group takes a rank from each row of a node, on either hardware."""
    world = nodes * pp * local
    layout = rank_layout(world, 4, pp=pp, hardware=hardware, lnc=1, local_world_size=local, kv=2, token_shuffle=1)
    ranks = twins.tp4_ranks(world, local)
    assert layout.logic == "TP4"
    check_families(layout, ranks, ranks, by_place=False)
    tensor = twins.tp_groups(ranks, 4)
    assert layout.groups["kv"].groups() == twins.kv_groups(tensor, 2, adjacent=hardware == "trn2")
    assert layout.groups["token_shuffle"].groups() == twins.token_shuffle_groups(ranks, 4, pp, 1)


@given(nodes=st.integers(1, 4), pp=st.integers(1, 4), ep=SMALL, lnc=st.sampled_from([1, 2]))
def test_logic2_against_loops(nodes: int, pp: int, ep: int, lnc: int) -> None:
    """In pairs of rows; expert parallel and token shuffle groups keep to the plain order of ranks."""
    tp, local = (64, 128) if lnc == 1 else (32, 64)
    world = nodes * local
    assume(2 * nodes % pp == 0 and 2 * nodes // pp % ep == 0)
    layout = rank_layout(world, tp, pp=pp, ep=ep, hardware="trn2", lnc=lnc, token_shuffle=ep)
    assert (layout.logic, layout.local_world_size) == ("LOGIC2", local)
    ranks, experts = twins.logic2_ranks(world, local), twins.plain_ranks(world)
    check_families(layout, ranks, experts, by_place=True)
    assert layout.groups["token_shuffle"].groups() == twins.token_shuffle_groups(experts, tp, pp, ep)


@given(pipelines=st.integers(1, 4), stages=st.integers(1, 7), parity=st.sampled_from([0, 1]))
def test_send_recv_against_loops(pipelines: int, stages: int, parity: int) -> None:
    """Pairs of any number of stages, odd ones included, are those of a walk in steps of two."""
    groups = [[10 * pipeline + stage for stage in range(stages)] for pipeline in range(pipelines)]
    assert pp_send_recv_groups(np.array(groups), parity).tolist() == twins.pp_send_recv_groups(groups, parity)


@given(world=st.integers(1, 40), op=st.sampled_from(["div", "mod", "bitwise_and"]), operand=st.integers(1, 50))
def test_partition_ops_against_loops(world: int, op: Any, operand: int) -> None:
    """Operands that do not divide the world give uneven groups, in ascending order of the result."""
    assert partition_op_groups(world, op, operand).groups() == twins.partition_op_groups(world, op, operand)


# --- choices ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("world", "tp", "hardware", "lnc", "logic"),
    [
        (64, 32, "trn2", None, "LOGIC2"),
        (64, 32, "trn2", 1, "LOGIC1"),
        (32, 32, "trn2", 2, "LOGIC1"),  # less than a node
        (128, 64, "trn2", 2, "LOGIC1"),
        (128, 32, "trn1", None, "LOGIC1"),
        (64, 4, "trn2", 2, "TP4"),
        (64, 8, "trn2", 2, "LOGIC1"),
    ],
)
def test_which_layout_is_chosen(world: int, tp: int, hardware: str, lnc: int | None, logic: str) -> None:
    """Row pairs need trn2 and the tensor parallel degree of half a node; TP 4 is always strided."""
    assert rank_layout(world, tp, hardware=hardware, lnc=lnc).logic == logic


@pytest.mark.parametrize(
    ("hardware", "lnc", "cores", "local"),
    [("trn1", None, 1, 32), ("trn1", 1, 1, 32), ("trn2", None, 2, 64), ("trn2", 2, 2, 64), ("trn2", 1, 1, 128)],
)
def test_ranks_on_a_node(hardware: str, lnc: int | None, cores: int, local: int) -> None:
    """The local world size is that of a full node, unless it is given."""
    layout = rank_layout(8, 2, hardware=hardware, lnc=lnc)
    assert (layout.cores_per_lnc, layout.local_world_size) == (cores, local)
    assert rank_layout(8, 2, hardware=hardware, lnc=lnc, local_world_size=8).local_world_size == 8


def test_groups_that_nobody_asked_for() -> None:
    """Without stages and further degrees there are five families."""
    assert list(rank_layout(8, 2).groups) == ALWAYS
    assert list(rank_layout(8, 2, pp=2).groups) == [*ALWAYS, "pp_send_recv", "pp_send_recv_odd"]


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        ({"world": 64, "tp": 4, "hardware": "trn2", "kv": 2}, "kv groups do not lie inside tp groups .* 0 and 1;"),
        ({"world": 64, "tp": 32, "hardware": "trn2"}, "ep_data groups do not lie inside dp groups .* 0 and 32;"),
        ({"world": 64, "tp": 8, "hardware": "trn2"}, "eight groups of tp 8 on a node do not work at LNC 2"),
        ({"world": 128, "tp": 16, "hardware": "trn2", "lnc": 1}, "eight groups of tp 16 on a node do not work at LNC"),
    ],
)
def test_notes_of_what_is_odd(arguments: dict[str, Any], note: str) -> None:
    """Families that cross others, and degrees that the source warns of, are named."""
    assert [text for text in rank_layout(**arguments).notes if re.search(note, text)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"world": 64, "tp": 4, "kv": 2, "local_world_size": 32},
        {"world": 64, "tp": 8, "hardware": "trn2", "lnc": 1},
        {"world": 32, "tp": 8, "hardware": "trn2"},
        {"world": 64, "tp": 8, "hardware": "trn2", "local_world_size": 16},
        {"world": 64, "tp": 16, "hardware": "trn2"},
        {"world": 64, "tp": 2, "pp": 2, "ep": 4, "token_shuffle": 8},
    ],
)
def test_no_notes_where_nothing_is_odd(arguments: dict[str, Any]) -> None:
    """A layout as one expects it has no notes."""
    assert rank_layout(**arguments).notes == ()


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"world": 0, "tp": 1}, "expected world to be an integer of at least 1, found 0"),
        ({"world": 8, "tp": 0}, "expected tp to be an integer of at least 1, found 0"),
        ({"world": 8, "tp": 2, "pp": -1}, "expected pp to be an integer of at least 1, found -1"),
        ({"world": 8, "tp": 2, "ep": 0}, "expected ep to be an integer of at least 1, found 0"),
        ({"world": 8, "tp": 3, "pp": 2}, "found 8 ranks and 3 x 2 = 6; the next such world has 6 or 12 ranks"),
        ({"world": 2, "tp": 8}, "found 2 ranks and 8 x 1 = 8; the next such world has 8 ranks"),
        ({"world": 1 << 25, "tp": 2}, "expected a world of at most 16,777,216 ranks, found 33,554,432"),
        ({"world": 8, "tp": 2, "ep": 3}, "expected ep to divide dp = 4, found 3; 1, 2, 4 do"),
        ({"world": 8, "tp": 8, "kv": 3}, "expected kv to divide tp = 8, found 3; 1, 2, 4, 8 do"),
        ({"world": 8, "tp": 8, "cp": 3}, "expected cp to divide tp = 8, found 3"),
        ({"world": 8, "tp": 2, "cp": 2}, "expected a world of one tensor parallel group .* found 8 ranks and tp 2"),
        ({"world": 8, "tp": 2, "token_shuffle": 3}, "expected the token shuffle size to divide dp = 4, found 3"),
        ({"world": 32, "tp": 4, "ep": 2}, "expected ep 1 where tp is 4.* found ep 2"),
        ({"world": 8, "tp": 4}, "expected a world of whole nodes of 32 ranks, found 8 ranks; state a local world"),
        ({"world": 32, "tp": 4, "pp": 2}, "dp divisible by 8, a quarter of the local world size 32; found dp 4"),
        ({"world": 32, "tp": 4, "local_world_size": 6}, "a local world size of 4 equal rows, found 6"),
        ({"world": 32, "tp": 4, "local_world_size": 0}, "expected the local world size to be an integer of at least 1"),
        ({"world": 64, "tp": 64, "hardware": "trn2", "lnc": 1}, "whole nodes of 128 ranks, found 64 ranks"),
        ({"world": 64, "tp": 32, "hardware": "trn2", "local_world_size": 32}, "nodes of two tensor parallel groups"),
        ({"world": 8, "tp": 2, "lnc": 2}, "expected LNC 1 on trn1, found 2"),
        ({"world": 8, "tp": 2, "hardware": "trn2", "lnc": 3}, "expected LNC 1 or 2 on trn2, found 3"),
        ({"world": 8, "tp": 2, "hardware": "gpu"}, "expected the hardware trn1 or trn2, found 'gpu'"),
    ],
)
def test_degrees_that_do_not_fit(arguments: dict[str, Any], reason: str) -> None:
    """What divides nothing, and layouts that a job does not fill, are refused in a sentence."""
    with pytest.raises(ValueError, match=reason):
        rank_layout(**arguments)


def test_families_refuse_what_they_cannot_do() -> None:
    """A parity is 0 or 1, an operation one of three, an operand in range."""
    with pytest.raises(ValueError, match="expected parity 0 .* found 2"):
        pp_send_recv_groups(np.array([[0, 1]]), 2)
    with pytest.raises(ValueError, match="expected the operation div, mod or bitwise_and, found 'xor'"):
        partition_op_groups(8, "xor", 1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="expected an operand of at least 1 for 'mod', found 0"):
        partition_op_groups(8, "mod", 0)
    with pytest.raises(ValueError, match="expected an operand of at least 0 for 'bitwise_and', found -1"):
        partition_op_groups(8, "bitwise_and", -1)
    with pytest.raises(ValueError, match="expected world to be an integer of at least 1, found 0"):
        partition_op_groups(0, "div", 1)


# --- size ------------------------------------------------------------------------------------------------------------


def test_a_million_ranks() -> None:
    """A large world is laid out in arrays, and kept as iotas."""
    tracemalloc.start()
    layout = rank_layout(1 << 20, 32, pp=8, ep=16, kv=4, token_shuffle=8)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert layout.iota["dp"] == "[256,4096]<=[8,4096,32]T(0,2,1)"
    assert peak < 200 << 20
    assert kept < 20 << 20  # the odd pairs alone are no iota
    assert Degrees(1 << 20, tp=32, pp=8).dp == 4096
