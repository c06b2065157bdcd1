"""Hosts that wait for each other, held against slow twins."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commlens.analysis.hosts.inversions import devices_in_both, groups_in, inversion_of
from commlens.analysis.hosts.wait_rings import ring_of_many
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList, SourceTargetPairs
from hosting import GATHER, REDUCE, hosts, only, text_of
from strategies import iota_groups

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlens.topology import DeviceList

Groups = list[list[int]]


# --- two devices ----------------------------------------------------------------------------------------------------


def slow_together(first: Groups, second: Groups) -> set[tuple[int, int]]:
    """Try every two devices."""
    devices = sorted({device for group in first for device in group})

    def meet(groups: Groups, a: int, b: int) -> bool:
        return any(a in group and b in group for group in groups)

    return {(a, b) for a, b in combinations(devices, 2) if meet(first, a, b) and meet(second, a, b)}


@given(iota_groups(12), iota_groups(12))
def test_devices_that_meet_in_both(first: DeviceList, second: DeviceList) -> None:
    """Two devices stand in one block if and only if they are in one group of both."""
    found = {pair for block in devices_in_both(first, second) for pair in combinations(block, 2)}
    assert found == slow_together(first.groups(), second.groups())


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=5), iota_groups(6))
def test_pairs_that_meet_in_groups(pairs: list[tuple[int, int]], groups: DeviceList) -> None:
    """The ends of a pair wait for each other; whether they do in the groups too is looked up, whichever comes first."""
    expected = slow_together([[*pair] for pair in pairs], groups.groups())
    assert set(devices_in_both(SourceTargetPairs(pairs), groups)) == expected
    assert set(devices_in_both(groups, SourceTargetPairs(pairs))) == expected


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4),
)
def test_pairs_that_meet_in_pairs(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    """Direction does not matter to those who wait."""
    found = set(devices_in_both(SourceTargetPairs(first), SourceTargetPairs(second)))
    assert found == slow_together([[*pair] for pair in first], [[*pair] for pair in second])


def test_what_nobody_knows_is_not_claimed() -> None:
    """Unknown groups, groups of nobody knows how many devices, and groups beyond all counting: nothing is claimed."""
    huge = IotaReplicaGroupList(100_000, 100_000)
    for first, second in ((None, CollectiveDeviceList([[0, 1]])), (CollectiveDeviceList([]), huge), (huge, huge)):
        inversion = inversion_of(first, second)
        assert (inversion.blocks, inversion.ring, inversion.complete) == ([], None, False)


# --- rings ----------------------------------------------------------------------------------------------------------


def gets_stuck(
    collectives: Sequence[Groups], orders: tuple[Sequence[int], Sequence[int]], kinds: Mapping[int, int]
) -> bool:
    """Let devices run: each comes to its next collective once its groups in the last one are complete."""
    devices = sorted({device for groups in collectives for group in groups for device in group})
    programs = {
        device: [number for number in orders[kinds[device]] if any(device in group for group in collectives[number])]
        for device in devices
    }
    steps = dict.fromkeys(devices, 0)

    def has_come(device: int, number: int) -> bool:
        return programs[device].index(number) <= steps[device]

    moved = True
    while moved:
        moved = False
        for device in devices:
            if steps[device] == len(programs[device]):
                continue
            number = programs[device][steps[device]]
            mates = [mate for group in collectives[number] if device in group for mate in group]
            if all(has_come(mate, number) for mate in mates):
                steps[device] += 1
                moved = True
    return any(steps[device] < len(programs[device]) for device in devices)


def can_get_stuck(collectives: Sequence[Groups], orders: tuple[Sequence[int], Sequence[int]]) -> bool:
    """Try every placement of devices to two kinds of hosts."""
    devices = sorted({device for groups in collectives for group in groups for device in group})
    placements = (dict(zip(devices, kinds, strict=True)) for kinds in product(range(2), repeat=len(devices)))
    return any(gets_stuck(collectives, orders, kinds) for kinds in placements)


@st.composite
def some_groups(draw: st.DrawFn, number: int = 6) -> Groups:
    """Return groups of some devices, each in one of them or in none."""
    homes = draw(st.lists(st.integers(0, 3), min_size=number, max_size=number))
    groups: dict[int, list[int]] = {}
    for device, home in enumerate(homes):
        groups.setdefault(home, []).append(device)
    groups.pop(3, None)
    return list(groups.values()) or [[0]]


some_pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(some_groups() | some_pairs, some_groups() | some_pairs)
def test_two_collectives_deadlock_where_some_placement_does(first: Groups, second: Groups) -> None:
    """A ring is found if and only if devices on some hosts get stuck, and those of the ring on its hosts do."""
    joined = [
        SourceTargetPairs(each) if isinstance(each[0], tuple) else CollectiveDeviceList(each)
        for each in (first, second)
    ]
    waiting = [[[*group] for group in groups_in(each)] for each in joined]
    inversion = inversion_of(*joined)
    assert inversion.complete
    assert (inversion.ring is not None) is can_get_stuck(waiting, ([0, 1], [1, 0]))
    if inversion.ring is not None:
        devices = [wait.device for wait in inversion.ring]
        assert len(set(devices)) == len(devices)
        others = {device: kind for kind in (0, 1) for group in waiting for each in group for device in each}
        assert gets_stuck(waiting, ([0, 1], [1, 0]), others | {wait.device: wait.kind for wait in inversion.ring})
        for wait, awaited in zip(inversion.ring, (*inversion.ring[1:], inversion.ring[0]), strict=True):
            assert any({wait.device, awaited.device} <= {*group} for group in waiting[wait.collective])


@settings(max_examples=150, deadline=None)
@given(st.lists(some_groups(5), min_size=3, max_size=4), st.data())
def test_several_collectives_deadlock_where_some_placement_does(collectives: list[Groups], data: st.DataObject) -> None:
    """Rings through three collectives and more are those that the twin gets stuck in."""
    order = data.draw(st.permutations(range(len(collectives))))
    ranks = [order.index(number) for number in range(len(collectives))]
    ring, complete = ring_of_many(collectives, ranks)
    orders = (list(range(len(collectives))), order)
    assert complete
    assert (ring is not None) is can_get_stuck(collectives, orders)
    if ring is not None:
        kinds = dict.fromkeys(range(5), 0) | {wait.device: wait.kind for wait in ring}
        assert gets_stuck(collectives, orders, kinds)


@pytest.mark.parametrize(
    ("collectives", "complete"),
    [
        pytest.param([[(2 * each, 2 * each + 1)] for each in range(3000)], True, id="apart: no device turns back"),
        pytest.param([[(0, each + 1)] for each in range(400)], True, id="one device in all, few enough to look at"),
        pytest.param([[(0, each + 1)] for each in range(1500)], False, id="one device in all, too many to look at"),
    ],
)
def test_the_search_for_rings_ends(collectives: list[Groups], complete: bool) -> None:
    """Thousands of collectives in the opposite order are looked through by the devices that they share, up to a limit."""
    ranks = list(range(len(collectives)))[::-1]
    assert ring_of_many(collectives, ranks) == (None, complete)


# --- hosts ----------------------------------------------------------------------------------------------------------

ROWS = REDUCE.replace("{{0,1}}", "{{0,1},{2,3}}")
COLUMNS = GATHER.replace("{{0,1}}", "{{0,2},{1,3}}")


def test_axes_of_a_mesh_deadlock_in_a_ring() -> None:
    """Collectives that no two devices share: 0 waits for 1, which waits for 3, which waits for 2, which waits for 0."""
    one, other = (text_of(*lines, partitions=4) for lines in ((ROWS, COLUMNS), (COLUMNS, ROWS)))
    (difference,) = only(hosts({"0": one, "1": other, "2": other, "3": one})).differences
    assert difference.order_only
    (deadlock,) = difference.deadlocks
    assert (deadlock.paths, deadlock.collectives, deadlock.num_blocks) == (("0", "1"), ("ar", "ag"), 0)
    assert [(wait.device, wait.path, wait.waits_in) for wait in deadlock.ring] == [
        (0, "0", "ar"),
        (1, "1", "ag"),
        (3, "0", "ar"),
        (2, "1", "ag"),
    ]


def test_groups_that_form_no_ring_do_not_deadlock() -> None:
    """Another order alone is no deadlock: groups that hang devices_in_both like a tree come to an end on all placements."""
    second = GATHER.replace("{{0,1}}", "{{1,2},{0,3}}")
    first = REDUCE.replace("{{0,1}}", "{{0,1},{2},{3}}")
    answer = hosts({"a": text_of(first, second, partitions=4), "b": text_of(second, first, partitions=4)})
    (difference,) = only(answer).differences
    assert (difference.order_only, difference.deadlocks, difference.deadlocks_complete) == (True, (), True)


LINES = [
    f"c.{number} = f32[4] all-reduce(p), channel_id={number + 1}, replica_groups={{}}, use_global_device_ids=true, "
    f"to_apply=add"
    for number in range(3)
]


def test_a_ring_through_three_collectives() -> None:
    """No two of them are enough, the three are: the last one runs first on some hosts."""
    lines = [line.replace("{}", groups) for line, groups in zip(LINES, ("{{0,1}}", "{{1,2}}", "{{2,0}}"), strict=True)]
    one, other = (text_of(*each, partitions=3) for each in (lines, [lines[2], *lines[:2]]))
    (difference,) = only(hosts({"a": one, "b": other})).differences
    (deadlock,) = difference.deadlocks
    assert deadlock.collectives == ("c.0", "c.1", "c.2")
    assert [(wait.device, wait.waits_in) for wait in deadlock.ring] == [(2, "c.1"), (1, "c.0"), (0, "c.2")]


@settings(max_examples=60, deadline=None)
@given(st.lists(some_groups(4), min_size=2, max_size=3), st.data())
def test_hosts_deadlock_where_some_placement_does(collectives: list[Groups], data: st.DataObject) -> None:
    """Two modules are said to deadlock if and only if some placement of devices to their hosts does."""
    order = data.draw(st.permutations(range(len(collectives))))
    spelled = ["{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in each) + "}" for each in collectives]
    lines = [
        f"q.{number} = f32[{number + 1}] parameter({number + 1})\n"
        + line.replace("{}", groups).replace("f32[4]", f"f32[{number + 1}]").replace("(p)", f"(q.{number})")
        for number, (line, groups) in enumerate(zip(LINES[: len(spelled)], spelled, strict=True))
    ]
    one, other = (text_of(*each, partitions=4) for each in (lines, [lines[number] for number in order]))
    found = [each for difference in only(hosts({"a": one, "b": other})).differences for each in difference.deadlocks]
    assert bool(found) is can_get_stuck(collectives, (list(range(len(collectives))), order))


@pytest.mark.parametrize(
    ("first", "second", "stuck"),
    [
        ("yxyx", "xyxy", False),
        ("yxyxyx", "xyxyxy", False),
        ("xyxyx", "xxyxy", False),
        ("zszsz", "zzszs", False),
        ("sxsx", "xsxs", False),
        ("zwzz", "wzzz", True),
    ],
)
def test_of_equal_collectives_the_first_meets_the_first(first: str, second: str, stuck: bool) -> None:
    """Devices cannot tell equal collectives apart, so what seems to have changed places has not."""
    groups = {"x": "{{0,1}}", "y": "{{2,3}}", "s": "{{0},{1},{2},{3}}", "z": "{{0,1},{2,3}}", "w": "{{0,2},{1,3}}"}

    def text(order: str) -> str:
        parameters = [f"q.{what} = f32[{size}] parameter({size})" for size, what in enumerate(groups, 1)]
        lines = [
            f"{what}.{place} = f32[{size}] all-reduce(q.{what}), channel_id={place + 1}, "
            f"replica_groups={groups[what]}, use_global_device_ids=true, to_apply=add"
            for place, what in enumerate(order)
            for size in [[*groups].index(what) + 1]
        ]
        return text_of(*parameters, *lines, partitions=4)

    answer = only(hosts({"a": text(first), "b": text(second)}))
    assert bool([each for difference in answer.differences for each in difference.deadlocks]) is stuck


def test_what_is_not_known_is_said() -> None:
    """Where nobody knows who takes part, that there is no deadlock is not claimed."""
    lines = [line.replace("{}", groups) for line, groups in zip(LINES, ("{}", "{{0,1}}"), strict=False)]
    texts = [text_of(*each).replace(", num_partitions=2", "") for each in (lines, lines[::-1])]
    answer = only(hosts({"a": texts[0], "b": texts[1]}))
    (difference,) = answer.differences
    assert (difference.deadlocks, difference.deadlocks_complete) == ((), False)
    assert answer.notes == (
        "whether devices of a and b can wait for each other is not known: who takes part is not, or more orders would "
        "have to be tried than are",
    )
