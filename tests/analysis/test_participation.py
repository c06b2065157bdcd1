from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
import twins_participants
from commlens.analysis.participation import AS_WRITTEN, Counts, groups_participation, participation_of
from commlens.hlo import Signature
from commlens.topology import CollectiveDeviceList, CollectiveOpGroupMode, IotaReplicaGroupList, SourceTargetPairs

if TYPE_CHECKING:
    from commlens.topology import DeviceList

LIMIT = 4096
MODES = st.sampled_from(CollectiveOpGroupMode)


def all_reduce(groups: DeviceList, *, channel: bool, flag: bool | None) -> Signature:
    """An all-reduce of nothing over these groups."""
    return Signature(
        "all-reduce", is_async=False, operand_shapes=(), result_shapes=(), groups=groups, has_channel=channel,
        use_global_device_ids=flag,
    )  # fmt: skip


def permute(pairs: SourceTargetPairs | None, *, channel: bool, host: bool | None = None) -> Signature:
    """A send over these pairs."""
    return Signature(
        "send", is_async=False, operand_shapes=(), result_shapes=(), pairs=pairs, has_channel=channel,
        is_host_transfer=host,
    )  # fmt: skip


@given(mode=MODES, groups=strategies.iota_groups(), other=st.integers(1, 4), as_list=st.booleans())
def test_participants_are_those_of_the_mode(
    mode: CollectiveOpGroupMode, groups: IotaReplicaGroupList, other: int, *, as_list: bool
) -> None:
    """With counts, groups of every spelling join the global ids that the table of modes says, in its order."""
    ids = groups.num_devices
    counts = Counts(other, ids) if mode is CollectiveOpGroupMode.CROSS_PARTITION else Counts(ids, other)
    found = groups_participation(mode, groups.to_list() if as_list else groups, counts)
    expected = twins_participants.participants(mode.snake, groups.groups(), counts.replicas, counts.partitions)
    assert found.listed(LIMIT) == expected
    assert found.num_ids == sum(map(len, expected))
    assert (found.ids, found.unknown_because) == (None, None)


@given(mode=MODES, replicas=st.integers(1, 4), partitions=st.integers(1, 4))
def test_no_groups_join_everybody(mode: CollectiveOpGroupMode, replicas: int, partitions: int) -> None:
    """The empty list is one group of all replicas or partitions; kFlattenedID needs groups and has no answer."""
    found = groups_participation(mode, CollectiveDeviceList(None), Counts(replicas, partitions))
    if mode is CollectiveOpGroupMode.FLATTENED_ID:
        assert found.listed(LIMIT) is None
        assert "cannot be empty" in str(found.unknown_because)
    else:
        assert found.listed(LIMIT) == twins_participants.participants(mode.snake, [], replicas, partitions)


@pytest.mark.parametrize(
    ("mode", "groups", "listed", "ids"),
    [
        ("flattened_id", [[0, 9]], [[0, 9]], None),
        ("cross_replica", [[0, 9]], [[0, 9]], AS_WRITTEN),
        ("cross_partition", [[0, 9]], [[0, 9]], AS_WRITTEN),
        ("cross_replica_and_partition", [[0, 9]], None, None),
        ("cross_replica", [], None, None),
        ("cross_partition", [], None, None),
        ("cross_replica_and_partition", [], None, None),
        ("flattened_id", [], None, None),
    ],
)
def test_without_counts_ids_are_given_as_written_or_not_at_all(
    mode: str, groups: list[list[int]], listed: list[list[int]] | None, ids: str | None
) -> None:
    """Nobody states the counts: flattened ids are global anyway, one kind of id is passed on, the rest is unknown."""
    found = groups_participation(CollectiveOpGroupMode(mode), CollectiveDeviceList(groups), None)
    assert (found.listed(LIMIT), found.ids) == (listed, ids)
    assert (found.unknown_because is None) == (listed is not None)


@pytest.mark.parametrize("ids", [[0, 4], [-1, 0]])
def test_ids_without_a_device_make_no_participants(ids: list[int]) -> None:
    """A replica that does not exist joins nobody; as flattened ids the same values are shown as they stand."""
    groups = CollectiveDeviceList([ids])
    found = groups_participation(CollectiveOpGroupMode.CROSS_REPLICA, groups, Counts(4, 2))
    assert found.listed(LIMIT) is None
    assert "to which no device answers" in str(found.unknown_because)
    flattened = groups_participation(CollectiveOpGroupMode.FLATTENED_ID, groups, Counts(4, 2))
    assert flattened.listed(LIMIT) == [ids]


def test_a_forbidden_combination_of_flags_has_neither_mode_nor_participants() -> None:
    """use_global_device_ids without a channel is a value that nothing follows from."""
    found = participation_of(all_reduce(IotaReplicaGroupList(1, 2), channel=False, flag=True), Counts(2, 1))
    assert (found.mode, found.listed(LIMIT), found.num_ids) == (None, None, None)
    assert "Invalid combination" in str(found.unknown_because)


@given(
    pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=5),
    other=st.integers(1, 4),
    channel=st.booleans(),
)
def test_pairs_join_devices_of_one_partition_or_one_replica(
    pairs: list[tuple[int, int]], other: int, *, channel: bool
) -> None:
    """Without a channel pairs are replica ids, with one partition ids; both ends stay in their own."""
    counts = Counts(other, 4) if channel else Counts(4, other)
    found = participation_of(permute(SourceTargetPairs(pairs), channel=channel, host=False), counts)
    mode = "cross_partition" if channel else "cross_replica"
    expected = twins_participants.pairs(mode, pairs, counts.replicas, counts.partitions)
    assert found.mode is CollectiveOpGroupMode(mode)
    assert found.listed(LIMIT) == [list(pair) for pair in expected]


def test_pairs_without_counts_are_given_as_written() -> None:
    """Pairs of replica or partition ids are passed on when nobody states the counts."""
    found = participation_of(permute(SourceTargetPairs([(0, 7)]), channel=True), None)
    assert (found.listed(LIMIT), found.ids) == ([[0, 7]], AS_WRITTEN)


def test_pairs_without_a_device_make_no_participants() -> None:
    """A pair that names a partition that does not exist joins nobody."""
    found = participation_of(permute(SourceTargetPairs([(0, 7)]), channel=True), Counts(1, 4))
    assert (str(found.mode), found.listed(LIMIT)) == ("kCrossPartition", None)


def test_a_transfer_to_the_host_and_pairs_that_nobody_states_have_no_participants() -> None:
    """The host is no device; a send whose pairs are not stated goes somewhere, but nobody says where."""
    to_host = participation_of(permute(None, channel=True, host=True), Counts(1, 4))
    assert (to_host.mode, to_host.num_ids) == (None, None)
    unstated = participation_of(permute(None, channel=True, host=False), Counts(1, 4))
    assert (str(unstated.mode), unstated.num_ids) == ("kCrossPartition", None)


def test_lists_beyond_the_limit_are_not_built() -> None:
    """Participants of 2^40 devices are known in compact form and listed by nobody."""
    groups = IotaReplicaGroupList(1 << 20, 1 << 20)
    found = groups_participation(CollectiveOpGroupMode.CROSS_REPLICA, groups, Counts(1 << 40, 8))
    assert found.num_ids == 1 << 43
    assert found.listed(1 << 24) is None
