from __future__ import annotations

import pytest
from hypothesis import given

import strategies
import twins
from commlens.analysis.unfolding import Unfolding
from commlens.errors import CommlensError
from commlens.topology import IotaReplicaGroupList


def unfolding_of(groups: IotaReplicaGroupList) -> Unfolding:
    """Take the recipe of an iota list."""
    return Unfolding(
        groups.num_replica_groups, groups.num_devices_per_group, groups.reshape_dims, groups.transpose_perm
    )


@given(strategies.iota_groups())
def test_every_place_unfolds_to_its_device(groups: IotaReplicaGroupList) -> None:
    """Following the digits of all places gives the list, and following a device back gives its place."""
    unfolding = unfolding_of(groups)
    steps = list(unfolding.steps(limit=groups.num_devices))
    devices = twins.iota(groups.reshape_dims, groups.transpose_perm)
    assert [step.device for step in steps] == devices
    assert twins.rows([step.device for step in steps], groups.num_devices_per_group) == groups.groups()
    for step in steps:
        assert unfolding.step(step.group, step.rank) == step
        assert unfolding.step_of(step.device) == step


@given(strategies.iota_groups())
def test_digits_stay_below_their_sizes_and_only_move(groups: IotaReplicaGroupList) -> None:
    """The digits of a position and those of its device are the same digits in other places."""
    unfolding = unfolding_of(groups)
    for step in unfolding.steps(limit=8):
        assert all(digit < size for digit, size in zip(step.digits, unfolding.position_dims, strict=True))
        assert all(digit < size for digit, size in zip(step.moved, unfolding.reshape_dims, strict=True))
        assert step.digits == tuple(step.moved[dim] for dim in unfolding.transpose_perm)


def test_a_huge_list_is_unfolded_one_place_at_a_time() -> None:
    """2^40 devices: any one of them is followed at once."""
    side = 1 << 20
    unfolding = Unfolding(side, side, (side, side), (1, 0))
    assert unfolding.step(3, 5).device == 5 * side + 3
    assert unfolding.step_of(5 * side + 3).position == 3 * side + 5
    assert [step.device for step in unfolding.steps(limit=3)] == [0, side, 2 * side]


@pytest.mark.parametrize(("group", "rank"), [(4, 0), (-1, 0), (0, 2), (0, -1)])
def test_a_place_that_does_not_exist_is_refused(group: int, rank: int) -> None:
    """Places are groups and ranks of the list."""
    with pytest.raises(CommlensError, match=r"a group in 0..3 and a rank in 0..1"):
        Unfolding(4, 2, (2, 4), (1, 0)).step(group, rank)


@pytest.mark.parametrize("device", [-1, 8])
def test_a_device_that_does_not_exist_is_refused(device: int) -> None:
    """Devices are those of the list."""
    with pytest.raises(CommlensError, match=r"a device in 0..7"):
        Unfolding(4, 2, (2, 4), (1, 0)).step_of(device)
