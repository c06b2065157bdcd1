from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neuron_cases
import twins_neuron
from commlens.hlo import load
from commlens.neuron import (
    RankModel,
    core_map,
    cores_per_lnc,
    ring_table,
    simulator_refusal,
    source_table,
)
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList

if TYPE_CHECKING:
    from commlens.neuron import CoreMap

LONG = IotaReplicaGroupList(1 << 20, 1 << 20)
"""2^40 ranks: nobody may write them out."""


# --- cores and ranks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", neuron_cases.cases("rank_of_core"))
def test_rank_of_core_cases(case: dict[str, Any]) -> None:
    """A core's rank is the core divided by the cores per LNC, and the rank names the core in turn."""
    model = RankModel(case["cores_per_lnc"])
    assert model.rank_of_core(case["core"]) == model.global_rank_id(case["core"]) == case["rank"]
    assert case["core"] in model.cores_of_rank(case["rank"])


@given(core=st.integers(0, 300), cores=st.integers(1, 9))
def test_ranks_share_out_the_cores(core: int, cores: int) -> None:
    """Each core belongs to the one rank that lists it."""
    model = RankModel(cores)
    rank = model.rank_of_core(core)
    assert rank == twins_neuron.rank_of_core(core, cores)
    assert model.cores_of_rank(rank) == [each for each in range(400) if twins_neuron.rank_of_core(each, cores) == rank]


@pytest.mark.parametrize(
    ("target", "lnc", "cores"),
    [
        ("trn1", None, 1),
        ("inf2", 1, 1),
        ("trn2", None, 2),
        ("trn2", 1, 1),
        ("trn2", 2, 2),
        ("trn3", None, 2),
        ("trn3", 1, 1),
    ],
)
def test_lnc_of_targets(target: str, lnc: int | None, cores: int) -> None:
    """Every target has its default LNC and takes the others it has."""
    assert cores_per_lnc(target, lnc) == RankModel.for_target(target, lnc).cores_per_lnc == cores


@pytest.mark.parametrize(("target", "lnc"), [("trn1", 2), ("inf2", 2), ("trn2", 4), ("trn2", 0), ("trn3", 3)])
def test_lnc_that_a_target_does_not_have(target: str, lnc: int) -> None:
    """Another LNC is refused with those that there are."""
    with pytest.raises(ValueError, match=f"expected LNC 1.* on {target}, found {lnc}"):
        cores_per_lnc(target, lnc)


def test_unknown_target() -> None:
    """A target nobody knows is refused with those that are known."""
    with pytest.raises(ValueError, match="expected a target out of inf2, trn1, trn2, trn3, found 'gpu'"):
        cores_per_lnc("gpu")


@pytest.mark.parametrize("number", [0, -1, 1.5, "2", None])
def test_cores_per_lnc_must_be_a_count(number: Any) -> None:
    """A model needs at least one core to a rank."""
    with pytest.raises(ValueError, match="expected cores per LNC to be an integer of at least 1"):
        RankModel(number)


def test_numbers_that_no_core_or_rank_has() -> None:
    """Negative cores and ranks, and cores beyond the world, are refused."""
    model = RankModel(2)
    with pytest.raises(ValueError, match="expected core to be an integer of at least 0, found -1"):
        model.rank_of_core(-1)
    with pytest.raises(ValueError, match="expected rank to be an integer of at least 0, found -3"):
        model.cores_of_rank(-3)
    assert model.global_rank_id(15, 8) == 7
    with pytest.raises(ValueError, match="expected a core of the ranks 0..7, found core 16, which is one of rank 8"):
        model.global_rank_id(16, 8)


# --- who takes part --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", neuron_cases.cases("is_in_replica_group"))
def test_is_in_replica_group_cases(case: dict[str, Any]) -> None:
    """The first group decides, an empty list means everybody; the query is a rank, so a core with LNC 1."""
    for groups in (case["all_groups"], CollectiveDeviceList(case["all_groups"]), [case["first_group"]]):
        assert RankModel(1).is_in_replica_group(case["query"], groups) is case["first_group_reading"]


def test_a_core_is_asked_for_its_rank() -> None:
    """The hazard of the document: core 9 is of rank 4, and 9 itself stands in no group."""
    assert RankModel(2).is_in_replica_group(9, [[0, 4], [1, 5]])
    assert not RankModel(1).is_in_replica_group(9, [[0, 4], [1, 5]])
    assert not RankModel(2).is_in_replica_group(3, [[0, 4], [1, 5]])  # rank 1 is in the second group


@given(
    groups=st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=4),
    core=st.integers(0, 30),
    cores=st.integers(1, 3),
)
def test_membership_is_a_search_of_the_first_group(groups: list[list[int]], core: int, cores: int) -> None:
    """However ids repeat, a core takes part when its rank stands in the first group, or that is empty."""
    first = groups[0] if groups else []
    expected = not first or twins_neuron.rank_of_core(core, cores) in first
    assert RankModel(cores).is_in_replica_group(core, groups) is expected


def test_long_lists_are_not_written_out() -> None:
    """An iota of 2^40 ranks is answered from its digits."""
    model = RankModel(1)
    assert model.is_in_replica_group((1 << 20) - 1, LONG)
    assert not model.is_in_replica_group(1 << 20, LONG)
    assert model.num_replicas(LONG) == 1 << 20


def test_number_of_replicas() -> None:
    """It is the length of the first group; an empty list is as long as the world, which somebody must state."""
    model = RankModel(1)
    assert model.num_replicas([[0, 4, 8], [1, 5]]) == 3
    assert model.num_replicas([[]], world_size=8) == model.num_replicas([], 8) == 8
    with pytest.raises(ValueError, match="an empty replica group list joins all ranks; give world_size"):
        model.num_replicas([])


# --- processing ranks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", neuron_cases.cases("current_processing_rank"))
def test_current_processing_rank_cases(case: dict[str, Any]) -> None:
    """Iteration 0 is the own rank, a later one is not known without a table, and with one all are visited once."""
    model, groups = RankModel(1), [case["group"]]
    if "property" in case:
        for rank in case["group"]:
            visited = [
                model.current_processing_rank_id(rank, groups, iteration, table=ring_table([2, 0, 3, 1]))
                for iteration in range(len(case["group"]))
            ]
            assert visited[0] == rank
            assert sorted(visited) == sorted(case["group"])
    elif isinstance(case["expected"], int):
        assert model.current_processing_rank_id(case["my_rank"], groups, case["iteration"]) == case["expected"]
    else:
        with pytest.raises(ValueError, match="table for each architecture and group size whose contents are not pub"):
            model.current_processing_rank_id(case["my_rank"], groups, case["iteration"])


@given(data=st.data(), size=st.integers(1, 8), cores=st.integers(1, 2))
def test_a_ring_is_walked_backwards(data: st.DataObject, size: int, cores: int) -> None:
    """With the table of a ring, each iteration shows the member that stands one place further back on it."""
    ring = data.draw(st.permutations(range(size)))
    group = data.draw(st.permutations(range(20)))[:size]
    position = data.draw(st.integers(0, size - 1))
    iteration = data.draw(st.integers(0, size - 1))
    place = list(ring).index(position)
    for _ in range(iteration):
        place = place - 1 if place else size - 1
    found = RankModel(cores).current_processing_rank_id(
        group[position] * cores, [list(group)], iteration, table=np.array(ring_table(ring))
    )
    assert found == group[ring[place]]


def test_everybody_in_a_ring() -> None:
    """Without groups a rank's position is its number, and the table says how many there are."""
    model = RankModel(2)
    assert model.current_processing_rank_id(5, [], 0) == 2
    assert model.current_processing_rank_id(5, [], 1, table=ring_table(range(4))) == 1
    with pytest.raises(ValueError, match="do not say who is at position 4"):
        model.current_processing_rank_id(9, [], 1, table=ring_table(range(4)))


@pytest.mark.parametrize(
    ("core", "iteration", "table", "reason"),
    [
        (1, 0, None, "expected a core that takes part, found core 1, whose rank 1 is not in the first group"),
        (4, 2, None, "expected an iteration in 0..1 for a group of 2, found 2"),
        (4, -1, None, "expected iteration to be an integer of at least 0, found -1"),
        (4, 1, [[0, 1, 2], [2, 0, 1]], "2 positions in each"),
        (4, 1, [[0, 1], [1, 1]], "every row the numbers 0..1 in some order"),
        (4, 1, [[1, 0], [0, 1]], "iteration 0 is the own rank"),
        (4, 1, [[0, 1]], "found 1 rows, which do not say who is at position 1 in row 1"),
        (4, 1, [], "every row the numbers 0..1 in some order"),
        (4, 1, [[0.0, 1.0], [1.0, 0.0]], "every row the numbers 0..1 in some order"),
    ],
)
def test_processing_ranks_that_nobody_can_tell(core: int, iteration: int, table: Any, reason: str) -> None:
    """Ranks outside the group, iterations outside the ring and tables that fit no group are refused."""
    with pytest.raises(ValueError, match=reason):
        RankModel(1).current_processing_rank_id(core, [[0, 4], [1, 5]], iteration, table=table)


def test_a_ring_holds_each_position_once() -> None:
    """A ring that leaves a position out is none."""
    with pytest.raises(ValueError, match="expected each position 0..2 once"):
        ring_table([0, 2, 2])


# --- what the simulator refuses --------------------------------------------------------------------------------------


@pytest.mark.parametrize("opcode", ["reduce-scatter", "reduce-scatter-start", "send", "recv"])
@pytest.mark.parametrize("groups", [[], [[0, 1], [2, 3]]])
def test_one_group_only(opcode: str, groups: list[list[int]]) -> None:
    """Reduce-scatter, send and recv stop unless there is exactly one group."""
    refusal = simulator_refusal(opcode, groups)
    assert refusal is not None
    assert "Multiple LNCs are not supported yet" in refusal
    assert "replica_groups.size()==1" in refusal
    with pytest.raises(ValueError, match="Multiple LNCs are not supported yet"):
        RankModel(2).check_simulated(opcode, groups)


@pytest.mark.parametrize("opcode", ["collective-permute", "collective-permute-start"])
def test_a_permute_has_pairs_alone(opcode: str) -> None:
    """A permute with groups stops, one without goes on."""
    with pytest.raises(ValueError, match="Permute should not contain replica_groups"):
        RankModel(1).check_simulated(opcode, [[0, 1]])
    assert simulator_refusal(opcode, []) is None


@pytest.mark.parametrize("opcode", ["all-gather", "all-reduce", "all-reduce-start", "all-to-all"])
@pytest.mark.parametrize("groups", [[], [[0, 1]], [[0, 1], [2, 3]]])
def test_other_collectives_go_on(opcode: str, groups: list[list[int]]) -> None:
    """Nothing is said of other collectives, nor of one group."""
    assert simulator_refusal(opcode, groups) is None
    assert simulator_refusal("reduce-scatter", [[0, 1]]) is None
    RankModel(1).check_simulated(opcode, groups)


# --- permutes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", neuron_cases.cases("permute_mapping_array"))
def test_permute_mapping_array_cases(case: dict[str, Any]) -> None:
    """A rank's source stands in the table; who has none has itself."""
    assert source_table(case["pairs"], case["total"]) == case["expected"]


def test_a_table_needs_valid_pairs() -> None:
    """Pairs that no permute may have make no table."""
    with pytest.raises(ValueError, match="expected ids in 0..1"):
        source_table([(0, 2)], 2)
    with pytest.raises(ValueError, match="expected every target in one pair only"):
        source_table([(0, 1), (2, 1)], 3)


# --- a module on cores -----------------------------------------------------------------------------------------------

TEXT = """HloModule step{counts}
add {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}}
ENTRY e {{
  p = f32[8] parameter(0)
  gather = f32[16] all-gather(p), replica_groups={{{{2,0}},{{1,3}}}}, dimensions={{0}}
  scatter = f32[4] reduce-scatter(p), replica_groups={{{{0,1}},{{2,3}}}}, dimensions={{0}}, to_apply=add
  some = f32[8] all-reduce(p), replica_groups={{{{0,1}}}}, to_apply=add
  all = f32[8] all-reduce(p), replica_groups={{}}, to_apply=add
  ring = f32[8] collective-permute(p), source_target_pairs={{{{0,1}},{{1,2}},{{2,0}},{{3,3}}}}
  flat = f32[8] all-reduce(p), channel_id=1, replica_groups={{{{0,2}},{{1,3}}}}, use_global_device_ids=true, to_apply=add
  ROOT clash = f32[8] all-reduce(p), replica_groups={{{{0,2}},{{1,3}}}}, use_global_device_ids=true, to_apply=add
}}
"""


def on_cores(counts: str, lnc: int, world: int | None = None) -> CoreMap:
    """Put the module on cores."""
    return core_map(load(TEXT.format(counts=counts)), RankModel(lnc), world)


def peers(cores: CoreMap, core: int) -> dict[str, list[int] | None]:
    """Give the peers of a core by the name of the collective."""
    found = cores.core(core).peers
    return {
        collective.name: None if each is None else each.peers
        for collective, each in zip(cores.collectives, found, strict=True)
    }


@pytest.mark.parametrize("lnc", [1, 2])
def test_every_core_meets_the_peers_of_its_rank(lnc: int) -> None:
    """Cores of one rank meet the same ranks; the order is the group's."""
    cores = on_cores(", replica_count=4", lnc)
    assert (cores.world, cores.num_cores) == (4, 4 * lnc)
    assert [(each.core, each.rank) for each in cores.cores()] == [(core, core // lnc) for core in range(4 * lnc)]
    for core in range(4 * lnc):
        rank = core // lnc
        assert peers(cores, core) == {
            "gather": [[2], [3], [0], [1]][rank],
            "scatter": [[1], [0], [3], [2]][rank],
            "some": [[1], [0], None, None][rank],
            "all": [other for other in range(4) if other != rank],
            "ring": [[1, 2], [2, 0], [0, 1], []][rank],
            "flat": [[2], [3], [0], [1]][rank],
            "clash": None,
        }


def test_places_ways_and_reasons() -> None:
    """A member knows its place, a permute's ends their ways, and what cannot be told says why."""
    cores = on_cores(", replica_count=4", 1)
    by_name = {collective.name: place for place, collective in enumerate(cores.collectives)}
    gather, ring = (cores.core(0).peers[by_name[name]] for name in ("gather", "ring"))
    assert gather is not None
    assert ring is not None
    assert (gather.position, gather.sends_to, gather.receives_from) == (1, (), ())
    assert (ring.position, ring.sends_to, ring.receives_from) == (None, (1,), (2,))
    unknown = {collective.name for collective in cores.collectives if collective.unknown_because is not None}
    refused = {collective.name for collective in cores.collectives if collective.refusal is not None}
    assert (unknown, refused) == ({"clash"}, {"scatter"})
    with pytest.raises(ValueError, match="found core 4, which is one of rank 4"):
        cores.core(4)


def test_replicas_with_partitions() -> None:
    """Groups of replicas become groups of ranks, one for each partition."""
    cores = on_cores(", replica_count=4, num_partitions=2", 1)
    assert peers(cores, 1)["gather"] == [5]
    assert peers(cores, 4)["gather"] == [0]
    assert peers(cores, 1)["all"] == [3, 5, 7]


def test_counts_that_nobody_states() -> None:
    """Without counts flattened ids are ranks, other ids are not known, and the world must be given."""
    cores = on_cores("", 2, world=4)
    assert peers(cores, 7) == dict.fromkeys(("gather", "scatter", "some", "all", "ring", "clash")) | {"flat": [1]}
    with pytest.raises(ValueError, match="the module states neither replicas nor partitions; give world"):
        on_cores("", 2)
    with pytest.raises(ValueError, match="expected a module for 8 ranks, found one for 4 devices"):
        on_cores(", replica_count=4", 2, world=8)
