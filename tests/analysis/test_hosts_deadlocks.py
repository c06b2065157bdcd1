"""Hosts that wait for each other, held against slow twins."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from commlens.analysis.hosts_deadlocks import together
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList, SourceTargetPairs
from hosting import GATHER, REDUCE, hosts, only, text_of
from strategies import iota_groups

if TYPE_CHECKING:
    from commlens.topology import DeviceList


def slow_together(first: list[list[int]], second: list[list[int]]) -> set[tuple[int, int]]:
    """Try every two devices."""
    devices = sorted({device for group in first for device in group})

    def meet(groups: list[list[int]], a: int, b: int) -> bool:
        return any(a in group and b in group for group in groups)

    return {(a, b) for a, b in combinations(devices, 2) if meet(first, a, b) and meet(second, a, b)}


@given(iota_groups(12), iota_groups(12))
def test_devices_that_meet_in_both(first: DeviceList, second: DeviceList) -> None:
    """Two devices stand in one block if and only if they are in one group of both."""
    found = {pair for block in together(first, second) for pair in combinations(block, 2)}
    assert found == slow_together(first.groups(), second.groups())


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=5), iota_groups(6))
def test_pairs_that_meet_in_groups(pairs: list[tuple[int, int]], groups: DeviceList) -> None:
    """The ends of a pair wait for each other; whether they do in the groups too is looked up, whichever comes first."""
    expected = slow_together([[*pair] for pair in pairs], groups.groups())
    assert set(together(SourceTargetPairs(pairs), groups)) == expected
    assert set(together(groups, SourceTargetPairs(pairs))) == expected


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4),
)
def test_pairs_that_meet_in_pairs(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    """Direction does not matter to those who wait."""
    found = set(together(SourceTargetPairs(first), SourceTargetPairs(second)))
    assert found == slow_together([[*pair] for pair in first], [[*pair] for pair in second])


def test_what_nobody_knows_deadlocks_nobody() -> None:
    """Unknown groups and groups beyond all counting name no devices."""
    assert together(None, CollectiveDeviceList([[0, 1]])) == []
    assert together(IotaReplicaGroupList(100_000, 100_000), IotaReplicaGroupList(100_000, 100_000)) == []


def test_groups_without_common_members_do_not_deadlock() -> None:
    """Another order alone is no deadlock: who is in one group of the one meets nobody of it in the other."""
    first = REDUCE.replace("{{0,1}}", "{{0,1},{2,3}}")
    second = GATHER.replace("{{0,1}}", "{{0,2},{1,3}}")
    answer = hosts({"a": text_of(first, second, partitions=4), "b": text_of(second, first, partitions=4)})
    (difference,) = only(answer).differences
    assert difference.order_only
    assert difference.deadlocks == ()
