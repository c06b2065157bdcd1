"""Shardings and meshes: named to tile and back, and which tile a device holds."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from commlens.topology import AxisRef, IotaTileAssignment, Mesh
from commlens.topology.named_sharding import NamedSharding
from commlens.topology.sharding import Sharding
from commlens.topology.sharding_text import parse_sharding
from commlens.topology.tiles import mesh_to_tile, tile_array, tile_dims, tile_to_mesh
from sharding_strategies import iota_tiles, named_shardings, tilings
from xla_cases import cases

# --- meshes


@pytest.mark.parametrize(("question", "expect"), cases("named_to_tile_sharding"))
def test_named_to_tile_is_xlas(question: dict[str, str], expect: str) -> None:
    """A sharding by mesh axes stands for the tile assignment that XLA gives it."""
    named = parse_sharding(question["text"])
    assert str(named.to_tile()) == expect
    assert named.named is not None
    tile = mesh_to_tile(named.named.mesh, named.named.dim_axes)
    assert str(Sharding("tiled", tile, named.last_tile_dims)) == expect


@pytest.mark.parametrize(("question", "expect"), cases("tile_to_named_sharding"))
def test_tile_to_named_is_xlas(question: dict[str, Any], expect: str) -> None:
    """A mesh is made up for a tile assignment as XLA does it."""
    dims = question["tile_dims"]
    if "device_ids" in question:
        sharding = Sharding("tiled", np.array(question["device_ids"]).reshape(dims))
    else:
        sharding = Sharding("tiled", IotaTileAssignment(dims, question["reshape_dims"], question["transpose_perm"]))
    assert str(sharding.to_named()) == expect


@given(iota_tiles(), st.randoms(use_true_random=False))
def test_a_tile_and_its_mesh_mean_the_same(tile: IotaTileAssignment, random: Any) -> None:
    """mesh_to_tile undoes tile_to_mesh, for every iota and for devices in any order."""
    mesh, dim_axes = tile_to_mesh(tile)
    assert mesh_to_tile(mesh, dim_axes) == tile
    ids = list(range(tile.num_elements))
    random.shuffle(ids)
    written = np.array(ids).reshape(tile.dims)
    mesh, dim_axes = tile_to_mesh(written)
    np.testing.assert_array_equal(tile_array(mesh_to_tile(mesh, dim_axes)), written)


@given(named_shardings())
def test_mesh_to_tile_by_looking(named: NamedSharding) -> None:
    """A device holds the tile that its coordinates along the axes say, and copies stand in mesh order."""
    mesh = named.mesh
    tile = tile_array(mesh_to_tile(mesh, named.dim_axes))
    used = [ref for refs in named.dim_axes for ref in refs]
    devices = mesh.device_array().reshape(-1).tolist()
    expected: dict[tuple[int, ...], list[int]] = {}
    for coordinates, device in zip(product(*map(range, mesh.axis_sizes)), devices, strict=True):
        index: list[int] = []
        for refs in named.dim_axes:
            place = 0
            for ref in refs:
                size = mesh.axis_sizes[mesh.axis_index(ref.name_or_index)]
                pre, own = ref.pre_size or 1, ref.size or size
                place = place * own + coordinates[mesh.axis_index(ref.name_or_index)] * pre * own // size % own
            index.append(place)
        expected.setdefault(tuple(index), []).append(device)
    copies = len(devices) // prod(mesh.digit_of(ref).size for ref in used)
    assert {len(group) for group in expected.values()} == {copies}
    assert {index: tile[index].reshape(-1).tolist() for index in expected} == expected


@given(tilings())
def test_to_named_and_back(text: str) -> None:
    """A tiled sharding over a mesh made up for it still cuts the array the same way."""
    sharding = parse_sharding(text)
    assume(sharding.kind == "tiled")
    there = sharding.to_named()
    assert there.named is not None
    back = there.to_tile()
    assert there.to_named() is there
    if back.kind == "tiled":
        assert sharding.tile is not None
        assert back.tile is not None
        assert (back.tile_counts, back.last_tile_dims) == (sharding.tile_counts, sharding.last_tile_dims)
        np.testing.assert_array_equal(tile_array(back.tile), tile_array(sharding.tile))


@pytest.mark.parametrize(
    ("mesh", "dim_axes", "words"),
    [
        (Mesh.empty(), [], "expected a mesh with axes"),
        (Mesh.maximal(0), [], "expected a mesh with axes"),
        (Mesh({"a": 4}), [["a"], ["a"]], "Axes cannot coexist"),
        (Mesh({"a": 4}), [["a"], [AxisRef("a", 1, 2)]], "Axes cannot coexist"),
        (Mesh({"a": 4}), [[AxisRef("a", 1, 2), AxisRef("a", 2, 2)]], "can be merged"),
        (Mesh({"a": 4}), [["b"]], "not a valid axis"),
    ],
)
def test_bad_axes_are_refused(mesh: Mesh, dim_axes: list[list[AxisRef | str | int]], words: str) -> None:
    """References must exist, cut one dimension only, and be as long as they can."""
    with pytest.raises(ValueError, match=words):
        mesh_to_tile(mesh, dim_axes)


def test_many_devices_cost_what_few_do() -> None:
    """Meshes and tiles of 2^40 devices go back and forth, and are asked about, without a list."""
    sharding = parse_sharding("{devices=[1048576,1,1048576]<=[1048576,1048576]T(1,0) last_tile_dim_replicate}")
    assert (sharding.num_devices, sharding.num_copies, sharding.tile_of(2**20 + 5)) == (2**40, 2**20, (5, 0))
    named = sharding.to_named()
    assert str(named) == "{mesh['axis_0'=1048576,'axis_1'=1048576], [{'axis_1'}, {}]}"
    assert named.to_tile() == sharding
    mixed = parse_sharding("{devices=[2,1048576,1048576]<=[2199023255552] last_tile_dims={replicated,manual}}")
    assert (
        str(mixed) == "{devices=[2,1048576,1048576]<=[2,1048576,1048576]T(0,2,1) last_tile_dims={manual, replicated}}"
    )


# --- tiles of devices


@given(tilings())
def test_every_device_holds_the_tile_it_stands_at(text: str) -> None:
    """tile_of and devices_of agree with a walk over the written-out tile assignment."""
    sharding = parse_sharding(text)
    assume(sharding.kind == "tiled")
    assert sharding.tile is not None
    rank = len(sharding.tile_counts)
    holders: dict[tuple[int, ...], list[int]] = {}
    ids = iter(tile_array(sharding.tile).reshape(-1).tolist())
    for index in product(*map(range, tile_dims(sharding.tile))):
        device = next(ids)
        assert sharding.tile_of(device) == index[:rank]
        holders.setdefault(index[:rank], []).append(device)
    assert Counter(holders) == Counter({index: sharding.devices_of(index) for index in holders})
    assert sharding.num_devices == sum(map(len, holders.values()))
    if set(sharding.last_tile_dims) <= {"replicated"}:
        assert {len(devices) for devices in holders.values()} == {sharding.num_copies}


def test_reported_shardings() -> None:
    """Shardings of public reports hold the tiles that the reports work out by hand."""
    before = parse_sharding("{devices=[256,1]<=[256]}")
    after = parse_sharding("{devices=[1,64,4]<=[256] last_tile_dim_replicate}")
    assert (before.tile_counts, before.num_copies) == ((256, 1), 1)
    assert (after.tile_counts, after.num_copies) == ((1, 64), 4)
    assert [after.tile_of(device) for device in range(256)] == [(0, device // 4) for device in range(256)]
    older = parse_sharding("{devices=[2,1,1,2]0,1,2,3}")
    assert [older.tile_of(2 * i + j) for i in range(2) for j in range(2)] == [
        (i, 0, 0, j) for i in range(2) for j in range(2)
    ]
    batch = parse_sharding("{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}")
    assert batch.devices_of((3, 0)) == [3, 7]


@pytest.mark.parametrize("text", ["{replicated}", "{manual}", "{maximal device=0}", "{{replicated}}", "{unknown}"])
def test_shardings_without_tiles_say_so(text: str) -> None:
    """Questions about tiles have no answer where nothing is cut."""
    sharding = parse_sharding(text)
    for ask in (
        lambda: sharding.tile_counts,
        lambda: sharding.num_copies,
        lambda: sharding.tile_of(0),
        lambda: sharding.devices_of((0,)),
        sharding.to_named,
    ):
        with pytest.raises(ValueError, match="expected a sharding that cuts an array into tiles"):
            ask()


@pytest.mark.parametrize("text", ["{devices=[2,2]<=[4]}", "{devices=[2,2]3,5,7,9}"])
def test_devices_and_tiles_outside_are_refused(text: str) -> None:
    """A device or tile that the sharding does not have is an error."""
    sharding = parse_sharding(text)
    with pytest.raises(ValueError, match="found 11"):
        sharding.tile_of(11)
    for index in ((2, 0), (-1, 0), (0,), (0, 0, 0)):
        with pytest.raises(ValueError, match=r"inside \[2, 2\]"):
            sharding.devices_of(index)


def test_maximal_shardings_name_their_device() -> None:
    """In every spelling."""
    for text in ("{maximal device=5}", "{maximal devices=[1]5}", "{maximal_mesh[device_id=5]}"):
        assert (parse_sharding(text).device, parse_sharding(text).num_devices) == (5, 1)
    assert parse_sharding("{replicated}").device is None
    assert parse_sharding("{replicated}").num_devices is None
