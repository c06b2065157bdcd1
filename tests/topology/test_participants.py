from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins_participants as twins
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList
from commlens.topology.device_assignment import DeviceAssignment
from commlens.topology.group_modes import CollectiveOpGroupMode as Mode
from commlens.topology.group_modes import get_collective_op_group_mode
from commlens.topology.participant_lists import participant_list
from commlens.topology.participants import (
    exclusively_cross,
    get_participating_devices,
    get_participating_devices_groups,
    get_participating_devices_groups_for_source_target_pairs,
    get_participating_ids,
    group_count_and_size,
    participant_counts,
)
from xla_cases import cases

MODES = [mode.snake for mode in Mode]


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[list[int]], int, int]:
    """Draw a mode, groups that hold each of its ids at most once (or no groups), and the counts."""
    replicas, partitions = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    mode = draw(st.sampled_from(MODES))
    count = {"cross_partition": partitions, "flattened_id": replicas * partitions}.get(mode, replicas)
    ids = draw(st.permutations(range(count)))
    cuts = sorted(draw(st.lists(st.integers(1, count), max_size=4)))
    groups = [ids[start:stop] for start, stop in zip([0, *cuts], [*cuts, count], strict=True) if start < stop]
    if mode != "flattened_id" and draw(st.booleans()):
        groups = []
    return mode, groups, replicas, partitions


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("question", "expect"), cases("participating_ids"))
def test_participating_ids_are_upstreams(mode: str, question: dict[str, Any], expect: list[int] | str) -> None:
    """The group of an id, or everybody; an id in two groups, or nobody to count, is an error."""
    if expect == "error":
        with pytest.raises(ValueError, match=r"appears twice in replica groups|found neither"):
            get_participating_ids(mode, **question)
    else:
        assert get_participating_ids(mode, **question) == expect


def test_an_id_in_no_group_is_an_error() -> None:
    """The words are upstream's."""
    with pytest.raises(ValueError, match="Replica ID 7 doesn't appear in replica groups"):
        get_participating_ids(Mode.CROSS_REPLICA, 7, 8, [[0, 1]])


@pytest.mark.parametrize(("question", "expect"), cases("participating_devices"))
def test_participating_devices_are_upstreams(question: dict[str, Any], expect: dict[str, Any] | str) -> None:
    """Per device, as groups of devices, as groups of global ids and as counts, all forms agree with upstream."""
    assignment, groups = question["device_assignment"], question["replica_groups"]
    mode = get_collective_op_group_mode(question["has_channel_id"], question["use_global_device_ids"])
    if isinstance(expect, str):
        with pytest.raises(ValueError, match="replica groups cannot be empty for kFlattenedID mode"):
            get_participating_devices(33, assignment, groups, mode)
        with pytest.raises(ValueError, match="replica groups cannot be empty for kFlattenedID mode"):
            get_participating_devices_groups(assignment, groups, mode)
        return
    replicas, partitions = len(assignment), len(assignment[0])
    assert mode.snake == expect["mode"]
    for device, devices in expect["per_device"].items():
        assert get_participating_devices(int(device), assignment, groups, mode) == devices
    assert get_participating_devices_groups(assignment, groups, mode) == expect["device_groups"]
    assert participant_list(mode, groups, replicas, partitions).groups() == expect["flattened_id_groups"]
    assert participant_counts(groups, mode, replicas, partitions) == expect["participant_counts"]
    of_all_reduce = get_collective_op_group_mode(question["has_channel_id"], bool(question["use_global_device_ids"]))
    count_and_size = group_count_and_size(groups, of_all_reduce, replicas, partitions)
    assert (list(count_and_size) if count_and_size else None) == expect["all_reduce_count_and_size"]


@pytest.mark.parametrize(("question", "expect"), cases("participant_counts"))
def test_participant_counts_are_upstreams(question: dict[str, Any], expect: list[int] | str) -> None:
    """Counts repeat per partition but not per replica, as upstream; flattened_id needs groups."""
    args = (question["replica_groups"], question["mode"], question["num_replicas"], question["num_partitions"])
    if isinstance(expect, str):
        with pytest.raises(ValueError, match="replica groups cannot be empty for kFlattenedID mode"):
            participant_counts(*args)
    else:
        assert participant_counts(*args) == expect


def test_an_iota_answers_count_and_size_with_its_own_numbers() -> None:
    """Upstream's exception: whatever the mode, and also inside the dual form."""
    iota = IotaReplicaGroupList(2, 2)
    assert group_count_and_size(iota, Mode.CROSS_REPLICA, 4, 8) == (2, 2)
    assert group_count_and_size(CollectiveDeviceList(iota), Mode.CROSS_REPLICA_AND_PARTITION, 4, 8) == (2, 2)
    assert group_count_and_size(iota.to_list(), Mode.CROSS_REPLICA, 4, 8) == (16, 2)


@pytest.mark.parametrize(("question", "expect"), cases("exclusively_cross"))
def test_exclusively_cross_is_upstreams(question: dict[str, Any], expect: dict[str, bool]) -> None:
    """Whether a collective stays inside replicas or inside partitions is what upstream says."""
    answer = exclusively_cross(
        question["replica_groups"],
        question["use_global_ids"],
        question["has_channel_id"],
        question["num_replicas"],
        question["num_partitions"],
    )
    assert (answer.cross_module_only, answer.cross_replica_only) == tuple(expect.values())


@given(programs())
def test_each_device_finds_its_peers(program: tuple[str, list[list[int]], int, int]) -> None:
    """Asked from the side of each device, peers are those of the twin, and those of the list of all groups."""
    mode, groups, replicas, partitions = program
    assignment = DeviceAssignment(replicas, partitions)
    all_groups = get_participating_devices_groups(assignment, groups, mode)
    for device in range(replicas * partitions):
        expected = twins.peers(mode, groups, replicas, partitions, device)
        assert get_participating_devices(device, assignment, groups, mode) == expected
        assert [group for group in all_groups if device in group] == [expected]


@given(programs(), st.randoms(use_true_random=False))
def test_devices_of_a_table_stand_for_global_ids(program: tuple[str, list[list[int]], int, int], random: Any) -> None:
    """Under any table of devices the groups are those of the identity, renamed."""
    mode, groups, replicas, partitions = program
    names = [10 * each + 7 for each in range(replicas * partitions)]
    random.shuffle(names)
    table = [names[row * partitions : (row + 1) * partitions] for row in range(replicas)]
    expected = [[names[each] for each in group] for group in twins.participants(mode, groups, replicas, partitions)]
    assert get_participating_devices_groups(table, groups, mode) == expected
    assert get_participating_devices_groups(DeviceAssignment(table), groups, mode) == expected
    first = get_participating_devices(names[0], np.array(table), groups, mode)
    assert first == [names[each] for each in twins.peers(mode, groups, replicas, partitions, 0)]


@given(programs())
def test_counts_are_the_sizes_of_the_groups(program: tuple[str, list[list[int]], int, int]) -> None:
    """Counts are the sizes of the device groups, but for cross_partition, where one replica is counted."""
    mode, groups, replicas, partitions = program
    sizes = [len(group) for group in twins.participants(mode, groups, replicas, partitions)]
    assert participant_counts(groups, mode, replicas, partitions) == (
        sizes[::replicas] if mode == "cross_partition" else sizes
    )


@given(st.data())
def test_exclusively_cross_global_ids_by_looking(data: st.DataObject) -> None:
    """With global ids the answer is what looking at every group says, for iota lists and explicit ones alike."""
    replicas, partitions = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    perm = data.draw(st.permutations(range(len(sizes))))
    count = int(np.prod(sizes))
    members = data.draw(st.sampled_from([each for each in range(1, count + 1) if count % each == 0]))
    iota = IotaReplicaGroupList(count // members, members, sizes, perm)
    rows = iota.groups()
    by_looking = (
        all(len({each // partitions for each in row}) == 1 for row in rows),
        all(len({each % partitions for each in row}) == 1 for row in rows),
    )
    for groups in (iota, rows):
        answer = exclusively_cross(groups, True, True, replicas, partitions)
        assert (answer.cross_module_only, answer.cross_replica_only) == by_looking


def test_exclusively_cross_of_many_devices_is_immediate() -> None:
    """The strides decide; 2^40 devices are not listed."""
    answer = exclusively_cross(IotaReplicaGroupList(2**20, 2**20), True, True, 2**20, 2**20)
    assert (answer.cross_module_only, answer.cross_replica_only) == (True, False)


@pytest.mark.parametrize(("question", "expect"), cases("source_target_devices"))
def test_pairs_of_devices_are_upstreams(question: dict[str, Any], expect: list[list[int]]) -> None:
    """Without a channel pairs are replica ids in every partition, with one partition ids in every replica."""
    mode = get_collective_op_group_mode(question["has_channel_id"], None)
    pairs = question["source_target_pairs"]
    assert (
        get_participating_devices_groups_for_source_target_pairs(question["device_assignment"], pairs, mode) == expect
    )


@given(st.data())
def test_pairs_of_global_ids_are_the_twins(data: st.DataObject) -> None:
    """Pairs spread over partitions or replicas as the twin spreads them."""
    replicas, partitions = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    mode = data.draw(st.sampled_from(["cross_replica", "cross_partition"]))
    ids = st.integers(0, (partitions if mode == "cross_partition" else replicas) - 1)
    pairs = data.draw(st.lists(st.tuples(ids, ids), max_size=6))
    assignment = DeviceAssignment(replicas, partitions)
    answer = get_participating_devices_groups_for_source_target_pairs(assignment, pairs, mode)
    assert list(map(tuple, answer)) == twins.pairs(mode, pairs, replicas, partitions)


@pytest.mark.parametrize("mode", ["cross_replica_and_partition", "flattened_id"])
def test_pairs_have_two_modes_only(mode: str) -> None:
    """Pairs are replica ids or partition ids, never global ids."""
    with pytest.raises(ValueError, match="kCrossReplica or kCrossPartition"):
        get_participating_devices_groups_for_source_target_pairs(DeviceAssignment(2, 2), [(0, 1)], mode)


@pytest.mark.parametrize(
    ("device_assignment", "what"),
    [
        ([[0, 1], [2]], "rows of different lengths"),
        ([[0, 1], [1, 2]], "found device 1 several times"),
        ([0, 1], "found shape"),
        ([[0.5]], "float64"),
        (np.empty((1, 0), dtype=np.int64), "at least 1 replica and 1 partition"),
    ],
)
def test_bad_tables_are_refused(device_assignment: Any, what: str) -> None:
    """A table must be rectangular and name every device once."""
    with pytest.raises(ValueError, match=what):
        DeviceAssignment(device_assignment)


@pytest.mark.parametrize("counts", [(0, 1), (1, 0), (-1, 2)])
def test_bad_counts_are_refused(counts: tuple[int, int]) -> None:
    """A program has a replica and a partition at least."""
    with pytest.raises(ValueError, match="at least 1 replica and 1 partition"):
        DeviceAssignment(*counts)


def test_a_table_and_a_count_are_refused() -> None:
    """Either a table alone, or two counts."""
    table: Any = [[0]]
    with pytest.raises(ValueError, match="a table and a count"):
        DeviceAssignment(table, 1)


def test_assignment_is_a_value() -> None:
    """Assignments compare and hash by what they say; the identity table is the identity."""
    assert DeviceAssignment([[0, 1], [2, 3]]) == DeviceAssignment(2, 2)
    assert hash(DeviceAssignment([[0, 1], [2, 3]])) == hash(DeviceAssignment(2, 2))
    assert DeviceAssignment([[1, 0]]) != DeviceAssignment(1, 2)
    assert DeviceAssignment([[1, 0]]) == DeviceAssignment([[1, 0]])
    assert repr(DeviceAssignment([[1, 0]])) == "DeviceAssignment([[1, 0]])"


@pytest.mark.parametrize("device", [-1, 4, 6])
def test_strangers_are_refused(device: int) -> None:
    """A device outside the assignment takes part in nothing."""
    for assignment in (DeviceAssignment(2, 2), DeviceAssignment([[3, 2], [1, 0]])):
        with pytest.raises(ValueError, match=f"found {device}"):
            get_participating_devices(device, assignment, [], Mode.CROSS_REPLICA)
    with pytest.raises(ValueError, match=r"global device ids in 0\.\.3, found 4"):
        get_participating_devices_groups(DeviceAssignment(2, 2), [[0, 4]], Mode.FLATTENED_ID)


@pytest.mark.parametrize("device", [1 << 63, (1 << 64) - 1])
def test_devices_of_a_table_fit_in_64_bits(device: int) -> None:
    """An unsigned id that is no int64 is refused, and never becomes a negative one."""
    with pytest.raises(ValueError, match=r"table \[replica\]\[partition\] of device ids"):
        DeviceAssignment(np.array([[device, 1]], dtype=np.uint64))
    assert DeviceAssignment(np.array([[7, 1]], dtype=np.uint64)).device_at(0, 0) == 7


def test_everybody_is_listed_only_where_that_can_be() -> None:
    """A total out of a hostile file is refused before anything is allocated; counts alone may be large."""
    with pytest.raises(ValueError, match="not written out"):
        get_participating_ids(Mode.CROSS_REPLICA, 0, 1 << 62, [])
    with pytest.raises(ValueError, match="not written out"):
        participant_counts([], Mode.CROSS_REPLICA, 1, 1 << 40)
    assert participant_counts([], Mode.CROSS_REPLICA_AND_PARTITION, 1 << 31, 1 << 31) == [1 << 62]
    assert participant_counts([[0, 0, 0]], Mode.CROSS_REPLICA_AND_PARTITION, 1, 1 << 62) == [3 << 62]


@given(st.lists(st.lists(st.integers(-3, 9), max_size=4), max_size=5), st.integers(1, 3), st.integers(1, 4))
def test_any_written_groups_cross_like_the_loops(groups: list[list[int]], replicas: int, partitions: int) -> None:
    """Empty, uneven and repeated ones too: one replica, or one partition, in every group that has members."""
    crossed = exclusively_cross(groups, True, True, replicas, partitions)
    assert crossed.cross_module_only == all(len({each // partitions for each in row}) <= 1 for row in groups)
    assert crossed.cross_replica_only == all(len({each % partitions for each in row}) <= 1 for row in groups)
