from __future__ import annotations

import tracemalloc
from itertools import permutations, product
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import twins
from commlens.topology import (
    AxisRef,
    CollectiveDeviceList,
    DeviceList,
    IotaReplicaGroupList,
    IotaTileAssignment,
    Mesh,
    MeshAxesReplicaGroupList,
    axes_of,
)
from commlens.topology.recognise import digits_of, iota_of
from strategies import iota_groups, mesh_groups, meshes, order_of, tiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def axes_by_trying(groups: DeviceList, mesh: Mesh) -> tuple[AxisRef, ...] | None:
    """The twin's answer as references."""
    found = twins.axes(groups.groups(), mesh.axis_sizes, order_of(mesh))
    if found is None:
        return None
    sizes = mesh.axis_sizes
    names = mesh.axis_names
    return tuple(
        AxisRef(names[axis]) if size == sizes[axis] else AxisRef(names[axis], pre_size, size)
        for axis, pre_size, size in found
    )


# --- ids as iotas


@given(tiles())
def test_every_iota_is_recognised(tile: IotaTileAssignment) -> None:
    """The written-out ids of an iota are that iota."""
    assert iota_of(tile.to_array()) == tile


@given(st.sampled_from([2, 4, 6, 8]).flatmap(lambda number: st.permutations(range(number))))
def test_only_iotas_are_recognised(ids: list[int]) -> None:
    """Whatever is recognised has the very ids it was recognised from."""
    tile = iota_of(np.array(ids))
    assert tile is None or tile.to_array().tolist() == ids


def test_all_orders_of_six_devices() -> None:
    """Of the 720 orders of six devices the three iotas are recognised, and nothing else."""
    found = [iota_of(np.array(ids)) for ids in permutations(range(6))]
    assert {tile.order_text for tile in found if tile is not None} == {"[6]", "[2,3]T(1,0)", "[3,2]T(1,0)"}
    assert len([tile for tile in found if tile is not None]) == 3


@pytest.mark.parametrize("ids", [[], [1], [0, 0], [0, -1], [0, 2], [1, 0], [0, 1, 3, 2], [0, 2, 4, 6]])
def test_no_iota(ids: list[int]) -> None:
    """Ids that do not count through 0..n-1 in the way of an iota are none."""
    assert iota_of(np.array(ids, dtype=np.int64)) is None


@given(st.lists(st.integers(-2, 6), min_size=1, max_size=8))
def test_digits_count_like_the_sequence(sequence: list[int]) -> None:
    """Numbers that are read as digits are counted by those digits."""
    digits = digits_of(np.array(sequence))
    assert digits is None or twins.digits(digits) == sequence


# --- groups as axes


@given(meshes(), st.data())
def test_axes_of_iotas_are_those_found_by_trying(mesh: Mesh, data: st.DataObject) -> None:
    """An iota list on a mesh of any order: the answer is that of trying all axes, also where there is none."""
    groups = data.draw(iota_groups(mesh.num_devices))
    assert axes_of(groups, mesh) == axes_by_trying(groups, mesh)


@pytest.mark.parametrize("number", [8, 12])
def test_axes_of_all_iotas_on_all_meshes(number: int) -> None:
    """Every iota list on every mesh in every iota order: the answers are those of trying all axes."""
    sizes = list(_factorings(number))
    orders = {IotaTileAssignment((number,), each, perm) for each in sizes for perm in permutations(range(len(each)))}
    for shape, order, tile in product(sizes, orders, orders):
        mesh = Mesh([(f"x{axis}", size) for axis, size in enumerate(shape)], order)
        for members in (each for each in range(1, number + 1) if number % each == 0):
            groups = IotaReplicaGroupList.from_tile(tile.reshape((number // members, members)))
            assert axes_of(groups, mesh) == axes_by_trying(groups, mesh)


@given(meshes(), st.data())
def test_axes_of_mesh_lists_are_those_found_by_trying(mesh: Mesh, data: st.DataObject) -> None:
    """A mesh-axes list on another mesh with as many devices, likewise."""
    groups = data.draw(meshes(mesh.num_devices).flatmap(mesh_groups))
    assert axes_of(groups, mesh) == axes_by_trying(groups, mesh)


@given(meshes(), st.data())
def test_axes_of_lists_are_those_found_by_trying(mesh: Mesh, data: st.DataObject) -> None:
    """The same groups written out in any order of the groups have the same axes."""
    groups = data.draw(iota_groups(mesh.num_devices) | mesh_groups(mesh))
    shuffled = CollectiveDeviceList(data.draw(st.permutations(groups.groups())))
    assert axes_of(shuffled, mesh) == axes_by_trying(groups, mesh)


@given(mesh_groups())
def test_a_mesh_names_its_own_axes(groups: MeshAxesReplicaGroupList) -> None:
    """On its own mesh a list has the axes it is written with, apart from those of size 1."""
    written = tuple(ref for ref in groups.axes if dict(groups.mesh.axes)[str(ref.name_or_index)] > 1)
    assert axes_of(groups, groups.mesh) == written
    assert axes_of(groups.to_list(), groups.mesh) == written


@given(mesh_groups(), st.data())
def test_a_moved_member_fits_no_axes(groups: MeshAxesReplicaGroupList, data: st.DataObject) -> None:
    """The order of the members must be the same in all groups."""
    assume(groups.num_replica_groups > 1)
    assume((groups.num_devices_per_group or 0) > 1)
    listed = groups.groups()
    index = data.draw(st.integers(0, len(listed) - 1))
    listed[index] = listed[index][1:] + listed[index][:1]
    assert axes_of(CollectiveDeviceList(listed), groups.mesh) is None


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param([[0, 1], [2, 3], [4, 5]], id="partial"),
        pytest.param([[0, 1, 2], [3, 4, 5, 6, 7]], id="uneven"),
        pytest.param([[0, 1], [2, 3], [4, 5], [6, 8]], id="outside"),
        pytest.param([[0, 1], [2, 3], [4, 5], [6, -1]], id="negative"),
        pytest.param([[0, 1], [0, 1], [2, 3], [2, 3]], id="repeated"),
        pytest.param([[0, 1], [2, 3], [4, 6], [5, 7]], id="irregular"),
        pytest.param([[1, 0], [3, 2], [5, 4], [7, 6]], id="descending"),
        pytest.param([[0, 3], [1, 2], [4, 7], [5, 6]], id="mirrored"),
        pytest.param([[0, 1, 2, 3, 4, 5, 6, 7] * 2], id="twice"),
        pytest.param([], id="empty"),
        pytest.param([(), ()], id="groups-of-none"),
    ],
)
def test_no_axes(groups: Sequence[Sequence[int]]) -> None:
    """Groups that are no cut of the mesh have no axes."""
    assert axes_of(CollectiveDeviceList(groups), Mesh({"a": 2, "b": 4})) is None


def test_sizes_of_1_and_groups_of_one_device() -> None:
    """Axes of size 1 never appear, and groups of one device have no axes at all."""
    mesh = Mesh({"a": 2, "one": 1, "b": 4})
    assert axes_of(MeshAxesReplicaGroupList(mesh, ["one", "b"]), mesh) == (AxisRef("b"),)
    assert axes_of(IotaReplicaGroupList(8, 1), mesh) == ()
    assert axes_of(CollectiveDeviceList([[each] for each in (3, 1, 0, 2, 4, 5, 7, 6)]), mesh) == ()


def test_a_group_across_axes_is_cut_and_one_along_parts_is_merged() -> None:
    """A run across two axes is two references; two runs along one axis that belong together are one."""
    mesh = Mesh({"a": 4, "b": 4})
    assert axes_of(IotaReplicaGroupList(2, 8), mesh) == (AxisRef("a", 2, 2), AxisRef("b"))
    assert axes_of(CollectiveDeviceList([range(16)]), Mesh({"a": 16})) == (AxisRef("a"),)


def test_meshes_without_axes_name_none() -> None:
    """On the maximal and the empty mesh nothing has axes."""
    assert axes_of(IotaReplicaGroupList(1, 1), Mesh.maximal(0)) is None
    assert axes_of(CollectiveDeviceList(None), Mesh.empty()) is None


def test_an_order_that_straddles_may_still_fit() -> None:
    """Iota and order of devices agree although neither can be cut where the groups begin."""
    mesh = Mesh({"a": 2, "b": 3}, ((2, 3), (1, 0)))
    assert axes_of(IotaReplicaGroupList(2, 3, (2, 3), (1, 0)), mesh) == (AxisRef("b"),)


# --- groups as mesh-axes lists


@given(st.data())
def test_to_mesh_axes_keeps_the_order_of_the_groups(data: st.DataObject) -> None:
    """A list converts exactly where its axes exist and number its groups in the mesh's own order."""
    mesh = data.draw(meshes())
    groups: DeviceList = data.draw(iota_groups(mesh.num_devices) | mesh_groups(mesh))
    if data.draw(st.booleans()):
        groups = CollectiveDeviceList(data.draw(st.permutations(groups.groups())))
    found = groups.to_mesh_axes(mesh)
    refs = axes_of(groups, mesh)
    canonical = None if refs is None else MeshAxesReplicaGroupList(mesh, refs)
    if found is None:
        assert canonical is None or canonical.groups() != groups.groups()
    else:
        assert found.groups() == groups.groups()
        assert found.mesh == mesh


# --- size


def test_2_to_the_40_devices_cost_their_axes() -> None:
    """On meshes in order and transposed, axes of a compact list are found without building anything."""
    tracemalloc.start()
    sizes = {"a": 1 << 10, "b": 1 << 10, "c": 1 << 20}
    groups = IotaReplicaGroupList(1 << 20, 1 << 20, (1 << 10, 1 << 10, 1 << 20), (1, 2, 0))
    assert axes_of(groups, Mesh(sizes)) == (AxisRef("c", 1 << 10, 1 << 10), AxisRef("a"))
    turned = Mesh(sizes, ((1 << 20, 1 << 20), (1, 0)))
    assert axes_of(groups, turned) == (AxisRef("b"), AxisRef("c", 1, 1 << 10))
    found = MeshAxesReplicaGroupList(Mesh(sizes), [AxisRef("c", 1 << 10, 1 << 10), "a"])
    assert groups.to_mesh_axes(Mesh(sizes)) == found
    assert groups.to_mesh_axes(turned) is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000


def test_a_mesh_names_its_own_axes_at_any_size() -> None:
    """Also where its order of devices does not go with its axes, and the groups are no iota."""
    mesh = Mesh({"a": 2, "b": 3**20}, ((2, 3**20), (1, 0)))
    groups = MeshAxesReplicaGroupList(mesh, ["a"])
    assert groups.layout() is None
    assert axes_of(groups, mesh) == (AxisRef("a"),)
    assert groups.to_mesh_axes(mesh) is groups


def test_a_million_ids_cost_arrays() -> None:
    """Recognising written-out ids takes numpy arrays of them, no objects."""
    ids = IotaReplicaGroupList(1 << 17, 8, (8, 1 << 17), (1, 0)).to_array()
    groups = CollectiveDeviceList(ids)
    tracemalloc.start()
    assert groups.to_iota() == IotaReplicaGroupList(1 << 17, 8, (8, 1 << 17), (1, 0))
    assert axes_of(groups, Mesh({"a": 8, "b": 1 << 17})) == (AxisRef("a"),)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * ids.nbytes


def _factorings(number: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a product, in order."""
    if number == 1:
        yield ()
    for size in range(2, number + 1):
        if number % size == 0:
            for rest in _factorings(number // size):
                yield (size, *rest)
