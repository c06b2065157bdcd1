from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins_participants as twins
from commlens.topology import (
    CollectiveDeviceList,
    IotaReplicaGroupList,
    Mesh,
    MeshAxesReplicaGroupList,
    participant_counts,
)
from commlens.topology.group_modes import CollectiveOpGroupMode as Mode
from commlens.topology.pairs import SourceTargetPairs
from commlens.topology.participant_lists import expand_across_replicas, participant_list, participant_pairs
from xla_cases import cases

if TYPE_CHECKING:
    from collections.abc import Callable

SPREADING = [Mode.CROSS_REPLICA, Mode.CROSS_PARTITION, Mode.CROSS_REPLICA_AND_PARTITION]


@st.composite
def iotas(draw: st.DrawFn) -> IotaReplicaGroupList:
    """Draw an iota list of up to a few hundred ids, its cut between groups and members anywhere."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    perm = draw(st.permutations(range(len(sizes))))
    count = prod(sizes)
    members = draw(st.sampled_from([each for each in range(1, count + 1) if count % each == 0]))
    return IotaReplicaGroupList(count // members, members, sizes, perm)


@given(iotas(), st.sampled_from(SPREADING), st.integers(1, 4))
def test_an_iota_spreads_like_its_groups(iota: IotaReplicaGroupList, mode: Mode, other: int) -> None:
    """In the documented order, and as an iota wherever that order is one."""
    count = iota.num_devices
    replicas, partitions = (other, count) if mode is Mode.CROSS_PARTITION else (count, other)
    spread = participant_list(mode, iota, replicas, partitions)
    assert spread.groups() == twins.participants(mode.snake, iota.groups(), replicas, partitions)
    assert isinstance(spread, IotaReplicaGroupList) == (spread.to_iota() is not None)


@given(iotas(), st.sampled_from(SPREADING), st.integers(1, 4))
def test_in_any_group_order_an_iota_stays_one(iota: IotaReplicaGroupList, mode: Mode, other: int) -> None:
    """Given leave to reorder groups the answer is always an iota of the same groups, members in their order."""
    count = iota.num_devices
    replicas, partitions = (other, count) if mode is Mode.CROSS_PARTITION else (count, other)
    spread = participant_list(mode, iota, replicas, partitions, any_group_order=True)
    assert isinstance(spread, IotaReplicaGroupList)
    expected = twins.participants(mode.snake, iota.groups(), replicas, partitions)
    assert sorted(spread.groups()) == sorted(expected)


@given(st.data())
def test_written_groups_spread_like_the_twin(data: st.DataObject) -> None:
    """Uneven, partial, empty and repeated groups spread as the twin spreads them."""
    mode = data.draw(st.sampled_from(list(Mode)))
    replicas, partitions = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    count = partitions if mode is Mode.CROSS_PARTITION else replicas
    group = st.lists(st.integers(0, count - 1), max_size=4)
    groups = data.draw(st.lists(group, min_size=mode is Mode.FLATTENED_ID, max_size=4))
    for any_group_order in (False, True):
        spread = participant_list(mode, groups, replicas, partitions, any_group_order=any_group_order)
        expected = twins.participants(mode.snake, groups, replicas, partitions)
        assert sorted(spread.groups()) == sorted(expected)
        assert any_group_order or spread.groups() == expected


def test_flattened_ids_are_the_list_itself() -> None:
    """In flattened_id mode nothing is spread, nothing judged, and the spelling stays."""
    for groups in (
        CollectiveDeviceList([[-1, 99], [0, 0]]),
        IotaReplicaGroupList(2, 4),
        MeshAxesReplicaGroupList(Mesh({"a": 2, "b": 2}), ["a"]),
    ):
        assert participant_list(Mode.FLATTENED_ID, groups, 1, 2) is groups


def test_flattened_ids_need_groups() -> None:
    """Upstream's words."""
    with pytest.raises(ValueError, match="replica groups cannot be empty for kFlattenedID mode"):
        participant_list(Mode.FLATTENED_ID, [], 1, 2)


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        (Mode.CROSS_REPLICA, "[1048576,1048576]<=[1048576,1048576]T(1,0)"),
        (Mode.CROSS_PARTITION, "[1048576,1048576]<=[1099511627776]"),
        (Mode.CROSS_REPLICA_AND_PARTITION, "[1,1099511627776]<=[1099511627776]"),
    ],
)
def test_no_groups_are_one_group_of_everybody(mode: Mode, text: str) -> None:
    """Also of 2^40 devices, of which no list is built."""
    assert str(participant_list(mode, [], 2**20, 2**20)) == text


@pytest.mark.parametrize("mode", SPREADING)
def test_many_devices_stay_compact(mode: Mode) -> None:
    """Groups of 2^20 ids spread to 2^40 devices without a list, from every spelling that is compact."""
    mesh = Mesh({"a": 2**10, "b": 2**10}, ((2**10, 2**10), (1, 0)))
    spellings = [
        MeshAxesReplicaGroupList(mesh, ["b"]),
        IotaReplicaGroupList(2**10, 2**10, (2**10, 2**10), (1, 0)),
        CollectiveDeviceList(IotaReplicaGroupList(2**10, 2**10)),
    ]
    for groups in spellings:
        spread = participant_list(mode, groups, 2**20, 2**20)
        assert isinstance(spread, IotaReplicaGroupList)
        assert spread.num_devices == 2**40
        at = spread.group_of(3 * 2**20 + 5)
        assert at is not None
        assert spread.tile.value_at(at) == (3 * 2**20 + 5)


def test_too_many_ids_without_an_iota_form_are_refused() -> None:
    """An explicit answer of 2^41 ids is an error, not an allocation."""
    with pytest.raises(ValueError, match="2199023255552 device ids are not written out"):
        participant_list(Mode.CROSS_REPLICA, [[1, 0]], 2, 2**40)
    with pytest.raises(ValueError, match="not written out"):
        participant_pairs(Mode.CROSS_REPLICA, [(0, 1)], 2, 2**40)
    with pytest.raises(ValueError, match="not written out"):
        expand_across_replicas([[1, 0]], 2**40, 2)


@pytest.mark.parametrize(
    "ask",
    [
        lambda replicas, partitions: participant_list(Mode.CROSS_REPLICA, [[0, 1]], replicas, partitions),
        lambda replicas, partitions: participant_list(Mode.CROSS_REPLICA, [], replicas, partitions),
        lambda replicas, partitions: participant_pairs(Mode.CROSS_REPLICA, [(0, 1 << 40)], replicas, partitions),
        lambda replicas, partitions: participant_pairs(Mode.CROSS_PARTITION, [(0, 1)], replicas, partitions),
        lambda replicas, partitions: expand_across_replicas([[0, 1]], replicas, partitions),
        lambda replicas, partitions: participant_counts([], Mode.CROSS_REPLICA, replicas, partitions),
    ],
)
def test_global_ids_fit_in_64_bits(ask: Callable[[int, int], object]) -> None:
    """Counts of 2^63 devices and more are an error: ids would wrap around."""
    for counts in ((1 << 41, 1 << 22), (1 << 62, 2), (1 << 70, 1)):
        with pytest.raises(ValueError, match="global device ids must fit in 64 bits"):
            ask(*counts)


def test_only_what_is_answered_is_allocated() -> None:
    """Counts of which few ids are used cost nothing; many copies of groups without ids are refused."""
    assert participant_list(Mode.CROSS_REPLICA, [[5, 1 << 40]], 1 << 41, 1).groups() == [[5, 1 << 40]]
    assert str(participant_pairs(Mode.CROSS_REPLICA, [(0, 1 << 40)], 1 << 41, 2)) == (
        "{{0,2199023255552},{1,2199023255553}}"
    )
    for groups in ([[]], [[0], *[[]] * 1000]):
        with pytest.raises(ValueError, match="not written out"):
            participant_list(Mode.CROSS_REPLICA, groups, 2, 1 << 40)
    with pytest.raises(ValueError, match="not written out"):
        participant_list(Mode.CROSS_REPLICA, [[0], *[[]] * 1000], 2, 1 << 20)


@pytest.mark.parametrize(
    ("mode", "groups", "what"),
    [
        (Mode.CROSS_REPLICA, [[0, 2]], "replica ids in 0..1 in mode kCrossReplica, found 2"),
        (Mode.CROSS_REPLICA_AND_PARTITION, [[-1]], "replica ids in 0..1 .*, found -1"),
        (Mode.CROSS_PARTITION, [[0, 1], [2, 3, 4]], "partition ids in 0..3 in mode kCrossPartition, found 4"),
        (Mode.CROSS_REPLICA, IotaReplicaGroupList(2, 4), "replica ids in 0..1 .*, found 7"),
        (Mode.CROSS_PARTITION, IotaReplicaGroupList(2, 4), "partition ids in 0..3 .*, found 7"),
    ],
)
def test_ids_that_nobody_has_are_refused(mode: Mode, groups: Any, what: str) -> None:
    """An id that is no replica or partition of the program stands for no device."""
    with pytest.raises(ValueError, match=what):
        participant_list(mode, groups, 2, 4)


def test_groups_of_some_partitions_only() -> None:
    """An iota that leaves partitions out has gaps in its answer, which is then explicit."""
    spread = participant_list(Mode.CROSS_PARTITION, IotaReplicaGroupList(1, 2), 2, 4)
    assert str(spread) == "{{0,1},{4,5}}"


@pytest.mark.parametrize("mode", SPREADING)
def test_participants_on_the_running_library(mode: Mode) -> None:
    """What devices were seen to join on XLA's CPU client with 2 replicas and 4 partitions."""
    seen = {
        Mode.CROSS_REPLICA: ([[0, 1]], [[0, 4], [1, 5], [2, 6], [3, 7]]),
        Mode.CROSS_PARTITION: ([[0, 1], [2, 3]], [[0, 1], [4, 5], [2, 3], [6, 7]]),
        Mode.CROSS_REPLICA_AND_PARTITION: ([[0], [1]], [[0, 1, 2, 3], [4, 5, 6, 7]]),
    }
    groups, expected = seen[mode]
    assert participant_list(mode, groups, 2, 4).groups() == expected


@pytest.mark.parametrize(("question", "expect"), cases("expand_across_replicas"))
def test_expansion_across_replicas_is_upstreams(question: dict[str, Any], expect: dict[str, Any] | str) -> None:
    """Iota groups of all partitions gain a replica digit in front; other groups are refused."""
    args = (IotaReplicaGroupList(**question["partition_groups"]), question["num_replicas"], question["num_partitions"])
    if isinstance(expect, str):
        with pytest.raises(ValueError, match="hold each of the 60 partitions once"):
            expand_across_replicas(*args)
    else:
        assert expand_across_replicas(*args) == IotaReplicaGroupList(**expect)


@given(st.data())
def test_expansion_is_one_copy_per_replica(data: st.DataObject) -> None:
    """Written groups and iotas alike are repeated with the offset of each replica."""
    replicas = data.draw(st.integers(1, 4))
    ids = data.draw(st.permutations(range(data.draw(st.integers(1, 12)))))
    cut = data.draw(st.integers(0, len(ids) - 1))
    iota = data.draw(iotas())
    for groups in ([group for group in (ids[:cut], ids[cut:]) if group], iota.groups(), iota):
        rows = groups.groups() if isinstance(groups, IotaReplicaGroupList) else groups
        partitions = sum(map(len, rows))
        expected = [[each + copy * partitions for each in row] for copy in range(replicas) for row in rows]
        expanded = expand_across_replicas(groups, replicas, partitions)
        assert expanded.groups() == expected
        assert not isinstance(groups, IotaReplicaGroupList) or isinstance(expanded, IotaReplicaGroupList)


@pytest.mark.parametrize("groups", [[[0, 1]], [[0, 1], [1, 2]], [[0, 1, 2, 4]], [[-1, 0, 1, 2]], []])
def test_expansion_needs_every_partition_once(groups: list[list[int]]) -> None:
    """Missing, repeated and foreign partitions are refused."""
    with pytest.raises(ValueError, match="hold each of the 4 partitions once"):
        expand_across_replicas(groups, 2, 4)


def test_pairs_keep_their_type_and_order() -> None:
    """Spread pairs are pairs, in blocks of the written order."""
    pairs = SourceTargetPairs([(1, 0), (0, 1)])
    assert str(participant_pairs("cross_partition", pairs, 2, 2)) == "{{1,0},{0,1},{3,2},{2,3}}"
    assert str(participant_pairs("cross_replica", pairs, 2, 2)) == "{{2,0},{0,2},{3,1},{1,3}}"
    with pytest.raises(ValueError, match=r"partition ids in 0\.\.1"):
        participant_pairs("cross_partition", [(0, 2)], 4, 2)
