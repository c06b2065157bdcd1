from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.analysis.participant_keys import groups_key, order_of, pairs_key, participant_keys_of
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList, SourceTargetPairs
from strategies import iota_groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens.analysis import Report
    from commlens.analysis.participant_keys import Order
    from commlens.topology import DeviceList


def slow_key(groups: list[list[int]], order: Order) -> object:
    """Sort the groups, and in them what means nothing."""
    if order == "any":
        groups = [sorted(group) for group in groups]
    elif order == "first":
        groups = [[*group[:1], *sorted(group[1:])] for group in groups]
    return sorted(groups)


@st.composite
def shuffled(draw: st.DrawFn, groups: DeviceList) -> CollectiveDeviceList:
    """The same groups written out in another order, their members too."""
    listed = draw(st.permutations(groups.groups()))
    return CollectiveDeviceList([draw(st.permutations(group)) for group in listed])


small_ids = st.integers(0, 4)
lists = st.one_of(
    iota_groups(),
    iota_groups().flatmap(shuffled),
    st.lists(st.lists(small_ids, max_size=3), max_size=3).map(CollectiveDeviceList),
)


@given(lists, st.data())
def test_keys_are_equal_where_the_meaning_is(first: DeviceList, data: st.DataObject) -> None:
    """Two lists have one key if and only if the slow twin sorts them into the same groups."""
    second = data.draw(st.one_of(lists, shuffled(first)))
    for order in ("any", "first", "all"):
        same = slow_key(first.groups(), order) == slow_key(second.groups(), order)
        assert (groups_key(first, order) == groups_key(second, order)) is same


@given(st.lists(st.tuples(small_ids, small_ids), max_size=4), st.lists(st.tuples(small_ids, small_ids), max_size=4))
def test_pairs_are_equal_in_any_order(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    """Pairs are compared as they are, only their order means nothing."""
    same = pairs_key(SourceTargetPairs(first)) == pairs_key(SourceTargetPairs(second))
    assert same is (sorted(first) == sorted(second))


def test_members_of_uneven_groups() -> None:
    """Groups of different sizes follow the same rules."""
    first, second, third = (CollectiveDeviceList([[0], group]) for group in ([1, 2, 3], [1, 3, 2], [2, 3, 1]))
    assert groups_key(first, "any") == groups_key(second, "any") == groups_key(third, "any")
    assert groups_key(first, "first") == groups_key(second, "first") != groups_key(third, "first")
    assert len({groups_key(each, "all") for each in (first, second, third)}) == 3


def test_a_million_devices_are_not_written_out() -> None:
    """Laid-out lists are compared by their axes; beyond what anybody writes out the text decides."""
    huge = IotaReplicaGroupList(100_000, 100_000)
    assert groups_key(huge, "all") == ("even", 10**10, 10**5, "device:(100000)100000")
    assert groups_key(huge, "first")[0] == "text"


@pytest.mark.parametrize(
    ("opcode", "order"),
    [
        *product(("all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all"), ["all"]),
        ("collective-broadcast", "first"),
        ("all-reduce", "any"),
    ],
)
def test_order_counts_where_it_changes_the_result(opcode: str, order: str) -> None:
    """Gathered data stand in the order of the members, a broadcast comes from the first, a sum has no order."""
    assert order_of(opcode) == order


def test_unknown_members_are_as_they_are_written(report_of: Callable[..., Report]) -> None:
    """Where nobody can tell who takes part, spelling and mode decide, and it never equals what is known."""
    lines = [
        "a = f32[16] all-reduce(p), channel_id=1, replica_groups={{0}}, to_apply=add",
        "b = f32[16] all-reduce(p), channel_id=2, replica_groups={{0}}, to_apply=add",
        "c = f32[16] all-reduce(p), replica_groups={{0}}, to_apply=add",
        "d = f32[16] all-reduce(p), channel_id=3, replica_groups={{0}}, use_global_device_ids=true, to_apply=add",
    ]
    a, b, c, d = (participant_keys_of(row.figures) for row in report_of(*lines).collectives)
    assert a == b
    assert len({a.key, c.key, d.key}) == 3
