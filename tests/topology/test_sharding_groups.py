from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins_participants as twins
from commlens.topology import (
    AxisRef,
    CollectiveDeviceList,
    DeviceList,
    IotaReplicaGroupList,
    IotaTileAssignment,
    Mesh,
    MeshAxesReplicaGroupList,
)
from commlens.topology.sharding import Sharding
from commlens.topology.sharding_groups import (
    across_dims_groups,
    all_gather_groups,
    all_reduce_groups_along_sharding_dims,
    named_across_dims_groups,
    named_replication_groups,
    replication_groups,
    sharding_axes,
)
from commlens.topology.sharding_text import parse_sharding
from commlens.topology.tiles import Tile, mesh_to_tile
from xla_cases import cases


def _tile(question: dict[str, Any]) -> Tile:
    dims: list[int] = question["tile_dims"]
    if "device_ids" in question:
        return np.array(question["device_ids"], dtype=np.int64).reshape(dims)
    return IotaTileAssignment(dims, question["reshape_dims"], question["transpose_perm"])


def _mesh(question: dict[str, Any]) -> Mesh:
    return Mesh({axis["name"]: axis["size"] for axis in question["mesh"]["axes"]})


def _dim_axes(question: dict[str, Any]) -> list[list[AxisRef]]:
    return [
        [AxisRef(ref["axis"], ref.get("pre_size"), ref.get("size")) for ref in refs]
        for refs in question["dim_shardings"]
    ]


def _check(groups: DeviceList, expect: dict[str, Any]) -> None:
    """Hold groups against what a case states of them."""
    assert groups.num_replica_groups == expect.get("num_replica_groups", groups.num_replica_groups)
    assert groups.num_devices_per_group == expect.get("num_devices_per_group", groups.num_devices_per_group)
    assert groups.group(0) == expect.get("first_group", groups.group(0))
    last = groups.group(groups.num_replica_groups - 1)
    assert last == expect.get("last_group", last)
    assert groups.groups() == expect.get("groups", groups.groups())
    if "iota" in expect:
        assert isinstance(groups, IotaReplicaGroupList) == (expect["iota"] is not None)
        assert expect["iota"] is None or str(groups) == expect["iota"]["text"]
    assert str(groups) == expect.get("text", str(groups))


@st.composite
def tiles(draw: st.DrawFn) -> tuple[Tile, list[int], tuple[int, ...]]:
    """Draw a tile assignment, iota or written out, with its devices in order and its shape."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    perm = draw(st.permutations(range(len(sizes))))
    dims: list[int] = []
    left = prod(sizes)
    for _ in range(draw(st.integers(0, 2))):
        dims.append(draw(st.sampled_from([each for each in range(1, left + 1) if left % each == 0])))
        left //= dims[-1]
    shape = (*dims, left)
    if draw(st.booleans()):
        return IotaTileAssignment(shape, sizes, perm), twins.iota_ids(sizes, perm), shape
    ids = draw(st.permutations(range(prod(shape))))
    return np.array(ids).reshape(shape), ids, shape


@pytest.mark.parametrize(("question", "expect"), cases("sharding_replication_groups"))
def test_replication_groups_are_xlas(question: dict[str, Any], expect: dict[str, Any]) -> None:
    """The groups along tile dimensions, their order and their iota form are XLA's, under all three names."""
    tile = _tile(question)
    for function in (replication_groups, all_reduce_groups_along_sharding_dims, all_gather_groups):
        _check(function(tile, question["replication_dims"]), expect)


@pytest.mark.parametrize(("question", "expect"), cases("sharding_across_dims_groups"))
def test_across_dims_groups_are_xlas(question: dict[str, Any], expect: dict[str, Any]) -> None:
    """The groups of runs of tiles, their order and their iota form are XLA's."""
    _check(across_dims_groups(_tile(question), question["target_dims"], question["group_sizes"]), expect)


@pytest.mark.parametrize(("question", "expect"), cases("named_sharding_replication_groups"))
def test_named_replication_groups_are_xlas(question: dict[str, Any], expect: dict[str, Any]) -> None:
    """By mesh axes the order of the dimensions is kept and sub-axes that meet are joined, as in XLA."""
    groups = named_replication_groups(_mesh(question), _dim_axes(question), question["replication_dims"])
    assert groups is not None
    _check(groups, expect)


@pytest.mark.parametrize(("question", "expect"), cases("named_sharding_across_dims_groups"))
def test_named_across_dims_groups_are_xlas(question: dict[str, Any], expect: dict[str, Any]) -> None:
    """By mesh axes the minor parts of dimensions are taken, as in XLA."""
    groups = named_across_dims_groups(
        _mesh(question), _dim_axes(question), question["target_dims"], question["group_sizes"]
    )
    assert groups is not None
    _check(groups, expect)


@given(tiles(), st.data())
def test_replication_groups_by_walking(drawn: tuple[Tile, list[int], tuple[int, ...]], data: st.DataObject) -> None:
    """Groups along any dimensions, in any order named, are those of a walk over the tiles."""
    tile, ids, shape = drawn
    dims = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True))
    groups = replication_groups(tile, dims)
    assert groups.groups() == twins.rows(ids, shape, {dim: shape[dim] for dim in dims})
    if isinstance(groups, CollectiveDeviceList) and isinstance(tile, IotaTileAssignment):
        assert groups.to_iota() is None


@given(tiles(), st.data())
def test_across_dims_groups_by_walking(drawn: tuple[Tile, list[int], tuple[int, ...]], data: st.DataObject) -> None:
    """Groups of runs along any dimensions are those of a walk over the tiles."""
    tile, ids, shape = drawn
    dims = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True))
    sizes = {
        dim: data.draw(st.sampled_from([n for n in range(1, shape[dim] + 1) if shape[dim] % n == 0])) for dim in dims
    }
    groups = across_dims_groups(tile, dims, list(sizes.values()))
    assert groups.groups() == twins.rows(ids, shape, sizes)
    if isinstance(groups, CollectiveDeviceList) and isinstance(tile, IotaTileAssignment):
        assert groups.to_iota() is None


@st.composite
def cut_meshes(draw: st.DrawFn) -> tuple[Mesh, list[list[AxisRef]]]:
    """Draw a mesh, in plain or permuted order, and an array cut along its axes and sub-axes."""
    sizes = draw(st.lists(st.sampled_from([2, 3, 4, 6, 8]), min_size=1, max_size=3))
    order = draw(st.none() | st.permutations(range(prod(sizes))))
    mesh = Mesh({f"m{index}": size for index, size in enumerate(sizes)}, order)
    refs: list[AxisRef] = []
    for name, size in mesh.axes:
        cut = draw(st.sampled_from([each for each in range(1, size) if size % each == 0]))
        refs += [AxisRef(name)] if cut == 1 else [AxisRef(name, cut, size // cut), AxisRef(name, 1, cut)]
    dims: list[list[AxisRef]] = [[] for _ in range(draw(st.integers(1, 3)))]
    for ref in draw(st.permutations(refs)):
        dim = draw(st.sampled_from([None, *dims]))
        if dim is not None and not (dim and dim[-1].can_merge(ref)):
            dim.append(ref)
    return mesh, dims


@given(cut_meshes(), st.data())
def test_named_groups_are_the_groups_of_the_tile(drawn: tuple[Mesh, list[list[AxisRef]]], data: st.DataObject) -> None:
    """By mesh axes there are the same groups as by tiles; members are in the same order if dimensions ascend."""
    mesh, dim_axes = drawn
    dims = data.draw(st.lists(st.sampled_from(range(len(dim_axes))), unique=True))
    named = named_replication_groups(mesh, dim_axes, dims)
    tiled = replication_groups(mesh_to_tile(mesh, dim_axes), dims)
    if named is None:
        assert tiled.num_devices_per_group == 1
        return
    assert sorted(map(sorted, named.groups())) == sorted(map(sorted, tiled.groups()))
    if dims == sorted(dims):
        assert sorted(named.groups()) == sorted(tiled.groups())


@given(cut_meshes(), st.data())
def test_named_runs_are_the_runs_of_the_tile(drawn: tuple[Mesh, list[list[AxisRef]]], data: st.DataObject) -> None:
    """By mesh axes runs of tiles are the same as by tiles, wherever axes can be cut so."""
    mesh, dim_axes = drawn
    dims = sorted(data.draw(st.lists(st.sampled_from(range(len(dim_axes))), unique=True)))
    counts = [prod(mesh.digit_of(ref).size for ref in refs) for refs in dim_axes]
    sizes = [data.draw(st.sampled_from([n for n in range(1, counts[dim] + 1) if counts[dim] % n == 0])) for dim in dims]
    named = named_across_dims_groups(mesh, dim_axes, dims, sizes)
    if named is not None:
        tiled = across_dims_groups(mesh_to_tile(mesh, dim_axes), dims, sizes)
        assert sorted(named.groups()) == sorted(tiled.groups())


def test_named_groups_that_cannot_be_said() -> None:
    """Dimensions without axes have no groups by axes, and axes are cut only where the size divides."""
    mesh = Mesh({"a": 4, "b": 6})
    assert named_replication_groups(mesh, [[], ["a"]], [0]) is None
    assert named_replication_groups(mesh, [["a"]], []) is None
    assert named_across_dims_groups(mesh, [["b", "a"]], [0], [6]) is None
    assert str(named_across_dims_groups(mesh, [["a", "b"]], [0], [12])) == "mesh['a'=4,'b'=6] {'a':(2)2,'b'}"


@pytest.mark.parametrize(
    ("dims", "sizes", "words"),
    [
        ([2], [1], r"distinct dimensions in 0\.\.1, found \[2\]"),
        ([-1], [1], r"distinct dimensions in 0\.\.1, found \[-1\]"),
        ([0, 0], [1, 1], "distinct dimensions"),
        ([0], [3], "divides the 4 tiles along dimension 0, found 3"),
        ([0], [0], "divides the 4 tiles along dimension 0, found 0"),
        ([0, 1], [2], "one size per dimension, found 1 sizes for 2 dimensions"),
    ],
)
def test_bad_dimensions_and_sizes_are_refused(dims: list[int], sizes: list[int], words: str) -> None:
    """Dimensions exist and are named once, and sizes divide them; in tile form and by mesh axes."""
    with pytest.raises(ValueError, match=words):
        across_dims_groups(IotaTileAssignment((4, 2)), dims, sizes)
    with pytest.raises(ValueError, match=words):
        named_across_dims_groups(Mesh({"a": 4, "b": 2}), [["a"], ["b"]], dims, sizes)
    if "distinct" in words:
        with pytest.raises(ValueError, match=words):
            replication_groups(IotaTileAssignment((4, 2)), dims)


def test_many_devices_stay_compact() -> None:
    """Groups along dimensions of 2^40 devices are iotas; where no iota says them they are refused, not written out."""
    tile = IotaTileAssignment((2**20, 2**20))
    assert str(replication_groups(tile, [0])) == "[1048576,1048576]<=[1048576,1048576]T(1,0)"
    assert str(across_dims_groups(tile, [0, 1], [2, 2])) == "[274877906944,4]<=[524288,2,524288,2]T(0,2,1,3)"
    with pytest.raises(ValueError, match="not written out"):
        replication_groups(IotaTileAssignment((2**20, 3**10), (2**20, 3**10), (1, 0)), [0])


def test_shardings_are_grouped_by_their_tiles() -> None:
    """A sharding stands for its tile; the copies of a partial replication are grouped by their dimension."""
    partial = parse_sharding("{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}")
    assert replication_groups(partial, [0]).groups() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert replication_groups(partial, [2]).groups() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    named = parse_sharding("{mesh['model'=2,'batch'=4], [{'batch'}, {}]}")
    assert replication_groups(named, [0]) == replication_groups(partial, [0])
    assert across_dims_groups(partial, [0], [2]).groups() == [[0, 1], [4, 5], [2, 3], [6, 7]]
    for text in ("{replicated}", "{maximal device=0}", "{{replicated}}"):
        with pytest.raises(ValueError, match="cuts an array into tiles"):
            replication_groups(parse_sharding(text), [0])


def test_reported_shardings_by_axes() -> None:
    """Shardings of public reports run along the axes that the reports name."""
    sharding = parse_sharding("{devices=[2,1,4]<=[4,2]T(1,0)}")
    mesh = Mesh({"x": 4, "y": 2})
    assert sharding_axes(sharding, mesh) == ((AxisRef("y"),), (), (AxisRef("x"),))
    after = parse_sharding("{devices=[1,8,1]<=[8]}")
    assert sharding_axes(after, mesh) == ((), (AxisRef("x"), AxisRef("y")), ())
    assert str(all_gather_groups(sharding, [0, 2])) == "[1,8]<=[4,2]T(1,0)"
    partial = parse_sharding("{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}")
    assert sharding_axes(partial, Mesh({"model": 2, "batch": 4})) == ((AxisRef("batch"),), (), (AxisRef("model"),))
    assert sharding_axes(partial, Mesh({"a": 8})) == ((AxisRef("a", 2, 4),), (), (AxisRef("a", 1, 2),))
    odd = Sharding("tiled", np.array([[0, 1], [3, 2]]))
    assert sharding_axes(odd, Mesh({"a": 2, "b": 2})) == (None, None)
    uncut = Sharding("tiled", IotaTileAssignment((*[1] * 3000, 2, 2, 1)))
    assert sharding_axes(uncut, Mesh({"a": 4})) == (*[()] * 3000, (AxisRef("a", 1, 2),), (AxisRef("a", 2, 2),), ())
    assert sharding_axes(uncut, Mesh({"a": 8})) == (None,) * 3003


def test_answers_are_replica_group_lists() -> None:
    """By mesh axes the answer prints as HLO text has it."""
    groups = named_replication_groups(Mesh({"a": 2, "b": 4}), [["b"], ["a"]], [1])
    assert isinstance(groups, MeshAxesReplicaGroupList)
    assert str(groups) == "mesh['a'=2,'b'=4] {'a'}"
