from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
from commlens.analysis.participation import Counts
from commlens.analysis.proofs.scaling import Layout, scaled_down
from commlens.topology import CollectiveOpGroupMode as Mode
from commlens.topology import IotaReplicaGroupList, parse_replica_groups, parse_source_target_pairs

SMALLER = {
    "transposed": ("flattened_id", 1, 512, "[16,32]<=[32,16]T(1,0)", "[2,3]<=[3,2]T(1,0)", (1, 6)),
    "straight": ("flattened_id", 1, 512, "[16,32]<=[512]", "[2,3]<=[6]", (1, 6)),
    "three-digits": ("flattened_id", 1, 512, "[64,8]<=[8,8,8]T(2,1,0)", "[12,2]<=[2,3,4]T(2,1,0)", (1, 24)),
    "replicas-and-partitions": ("flattened_id", 16, 32, "[32,16]<=[16,32]T(1,0)", "[3,2]<=[2,3]T(1,0)", (2, 3)),
    "border-inside-a-digit": ("flattened_id", 4, 128, "[8,64]<=[64,8]T(1,0)", "[3,8]<=[8,3]T(1,0)", (2, 12)),
    "border-inside-a-group-digit": ("flattened_id", 4, 128, "[64,8]<=[512]", "[8,3]<=[24]", (2, 12)),
    "copies": ("cross_replica", 1024, 512, "[32,32]<=[32,32]T(1,0)", "[3,2]<=[2,3]T(1,0)", (6, 4)),
    "only-the-copies": ("cross_replica", 8, 512, "{{0,7},{1,6},{2,5},{3,4}}", "{{0,7},{1,6},{2,5},{3,4}}", (8, 3)),
    "partitions": ("cross_partition", 512, 1024, "[32,32]<=[1024]", "[2,3]<=[6]", (4, 6)),
    "both": ("cross_replica_and_partition", 128, 512, "[128,1]<=[128]", "[2,1]<=[2]", (2, 3)),
    "everybody": ("cross_replica", 512, 128, "{}", "{}", (3, 2)),
    "mesh": ("flattened_id", 1, 512, "mesh['a'=64,'b'=8] {'a'}", "[2,3]<=[3,2]T(1,0)", (1, 6)),
}


@pytest.mark.parametrize("name", SMALLER)
def test_the_same_digits_with_smaller_sizes(name: str) -> None:
    """The digits keep their order, and equal sizes become different ones as far as there is room."""
    mode, replicas, partitions, text, smaller, counts = SMALLER[name]
    layout = Layout(Mode.parse(mode), Counts(replicas, partitions), parse_replica_groups(text))
    scaled = scaled_down(layout, 64)
    assert scaled is not None
    assert (scaled.text, scaled.counts) == (smaller, Counts(*counts))
    assert scaled.mode is layout.mode


NONE = {
    "irregular": ("flattened_id", 1, 128, "{" + ",".join(f"{{{i},{i ^ 3}}}" for i in range(128) if i < i ^ 3) + "}"),
    "many-digits": ("flattened_id", 1, 2**9, "[2,256]<=[2,2,2,2,2,2,2,2,2]T(8,7,6,5,4,3,2,1,0)"),
    "not-all-ids": ("flattened_id", 1, 512, "[4,4]<=[16]"),
    "border-cannot-be": ("flattened_id", 1, 12 * 12, "[9,16]<=[12,12]T(1,0)"),
    "counts-cannot-be": ("flattened_id", 9, 16, "[12,12]<=[12,12]T(1,0)"),
}


@pytest.mark.parametrize("name", NONE)
def test_no_smaller_layout(name: str) -> None:
    """What has no digits, or too many, or borders inside a digit that cannot be cut there, is not scaled."""
    mode, replicas, partitions, text = NONE[name]
    layout = Layout(Mode.parse(mode), Counts(replicas, partitions), parse_replica_groups(text))
    assert scaled_down(layout, 64) is None


def test_pairs_are_scaled_by_their_copies_alone() -> None:
    """Pairs have no digits."""
    pairs = parse_source_target_pairs("{{0,1},{1,0}}")
    scaled = scaled_down(Layout(Mode.CROSS_PARTITION, Counts(512, 2), None, pairs), 64)
    assert scaled is not None
    assert (scaled.pairs, scaled.counts) == (pairs, Counts(3, 2))
    assert scaled_down(Layout(Mode.CROSS_PARTITION, Counts(1, 512), None, pairs), 64) is None


@given(strategies.iota_groups(), st.integers(2, 30), st.sampled_from([1, 2, 3, 4, 6]))
def test_what_is_scaled_has_the_shape_it_had(groups: IotaReplicaGroupList, most: int, replicas: int) -> None:
    """Fewer devices than allowed, all ids once, no digit added, and small layouts as they are."""
    devices = groups.num_devices
    if devices % replicas:
        replicas = 1
    layout = Layout(Mode.FLATTENED_ID, Counts(replicas, devices // replicas), groups)
    scaled = scaled_down(layout, most)
    if devices <= most:
        assert scaled is layout
    elif scaled is not None:
        assert isinstance(scaled.groups, IotaReplicaGroupList)
        assert scaled.devices == scaled.groups.num_devices <= most
        assert (scaled.groups.num_replica_groups > 1) == (groups.num_replica_groups > 1)
        assert (scaled.groups.num_devices_per_group > 1) == (groups.num_devices_per_group > 1)
        assert (scaled.counts.replicas > 1) == (replicas > 1)
        assert scaled.groups.transpose_perm == groups.transpose_perm
        assert all(new <= old for new, old in zip(scaled.groups.reshape_dims, groups.reshape_dims, strict=True))
        assert prod(scaled.groups.reshape_dims) == scaled.devices
