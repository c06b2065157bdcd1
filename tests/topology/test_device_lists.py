from __future__ import annotations

import copy
import tracemalloc
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
import twins
from commlens.topology import (
    AxisRef,
    CollectiveDeviceList,
    DeviceList,
    IotaReplicaGroupList,
    Mesh,
    MeshAxesReplicaGroupList,
    parse_replica_groups,
    replica_groups_equal,
    replica_groups_orthogonal,
)
from strategies import explicit_groups, iota_groups, mesh_groups, order_of
from xla_cases import cases

Groups = list[list[int]]

any_list = st.one_of(iota_groups(), mesh_groups(), explicit_groups.map(CollectiveDeviceList))


def mesh_of(given: dict[str, Any]) -> Mesh:
    """The mesh of a case."""
    order = given.get("iota")
    ids = (order["reshape_dims"], order["transpose_perm"]) if order else given.get("device_ids")
    return Mesh([(axis["name"], axis["size"]) for axis in given["axes"]], ids)


def refs_of(given: list[dict[str, Any]]) -> list[AxisRef]:
    """The axis references of a case."""
    return [AxisRef(each["axis"], each.get("pre_size"), each.get("size")) for each in given]


# --- upstream's facts


@pytest.mark.parametrize(("given_", "expect"), cases("replica_groups_to_string"))
def test_text(given_: dict[str, Any], expect: Any) -> None:
    """Lists and iotas print as upstream prints them, in their own form and written out."""
    if given_["kind"] == "list":
        assert str(CollectiveDeviceList(given_["groups"])) == expect
        return
    keys = ("num_replica_groups", "num_devices_per_group", "reshape_dims", "transpose_perm")
    groups = IotaReplicaGroupList(*(given_[key] for key in keys))
    assert str(groups) == expect["text"]
    assert str(groups.to_list()) == expect["full_list_text"]


@pytest.mark.parametrize(("given_", "expect"), cases("mesh_groups"))
def test_mesh_groups(given_: dict[str, Any], expect: dict[str, Any]) -> None:
    """Groups, counts, text and iota form over a mesh are upstream's."""
    groups = MeshAxesReplicaGroupList(mesh_of(given_["mesh"]), refs_of(given_["axes"]))
    assert groups.groups() == expect["groups"]
    assert groups.num_replica_groups == expect["num_replica_groups"]
    assert groups.num_devices_per_group == expect["num_devices_per_group"]
    assert str(groups) == expect["text"]
    iota = groups.to_iota()
    assert (iota and str(iota)) == (expect["iota"] and expect["iota"]["text"])


@pytest.mark.parametrize(("given_", "expect"), cases("mesh_group_counts"))
def test_mesh_group_counts(given_: dict[str, Any], expect: dict[str, int]) -> None:
    """Counts are known without the groups."""
    mesh = Mesh([(f"x{axis}", size) for axis, size in enumerate(given_["mesh_sizes"])])
    groups = MeshAxesReplicaGroupList(mesh, refs_of(given_["axes"]))
    assert groups.num_replica_groups == expect["num_replica_groups"]
    assert groups.num_devices_per_group == expect["num_devices_per_group"]


@pytest.mark.parametrize(("given_", "expect"), cases("device_list_equal"))
def test_equality_is_by_kind(given_: dict[str, str], expect: bool) -> None:
    """Different kinds are never equal, whatever they mean; equal ones have equal hashes."""
    a, b = parse_replica_groups(given_["a"]), parse_replica_groups(given_["b"])
    assert (a == b) is expect
    assert not expect or hash(a) == hash(b)


@pytest.mark.parametrize(("given_", "expect"), cases("device_list_to_iota"))
def test_conversion_to_iota(given_: dict[str, str], expect: str | None) -> None:
    """Upstream never converts a list and aborts on a mesh with written-out ids; here ids are recognised, or None."""
    ours = {"{{0,1},{2,3}}": "[2,2]<=[4]"}
    iota = parse_replica_groups(given_["text"]).to_iota()
    assert (iota and str(iota)) == ours.get(given_["text"], None if expect == "error" else expect)


@pytest.mark.parametrize(("given_", "expect"), cases("replica_groups_equal"))
def test_equal_groups(given_: dict[str, Groups], expect: bool) -> None:
    """The order of groups and members counts."""
    assert replica_groups_equal(given_["a"], given_["b"]) is expect
    assert CollectiveDeviceList(given_["a"]).same_groups(CollectiveDeviceList(given_["b"])) is expect


@pytest.mark.parametrize(("given_", "expect"), cases("replica_groups_orthogonal"))
def test_orthogonal_groups(given_: dict[str, Groups], expect: bool) -> None:
    """Groups are orthogonal when one is the exact transpose of the other."""
    assert replica_groups_orthogonal(given_["a"], given_["b"]) is expect


# --- laws


@given(iota_groups())
def test_iota_groups_are_the_twins(groups: IotaReplicaGroupList) -> None:
    """An iota list cuts its ids into rows."""
    expected = twins.iota(groups.reshape_dims, groups.transpose_perm)
    assert groups.groups() == twins.rows(expected, groups.num_devices_per_group)


@given(mesh_groups())
def test_mesh_groups_are_the_twins(groups: MeshAxesReplicaGroupList) -> None:
    """A mesh-axes list sorts devices by their coordinates."""
    sizes = groups.mesh.axis_sizes
    refs: list[twins.Ref] = []
    for ref in groups.axes:
        axis = groups.mesh.axis_index(ref.name_or_index)
        refs.append((axis, ref.pre_size or 1, ref.size or sizes[axis]))
    assert groups.groups() == twins.mesh_groups(sizes, order_of(groups.mesh), refs)


@given(any_list)
def test_all_answers_agree_with_the_groups(groups: DeviceList) -> None:
    """Counts, single groups, flat ids, sizes and text say what the written-out groups say."""
    listed = groups.groups()
    sizes = [len(group) for group in listed]
    assert groups.num_replica_groups == len(listed)
    assert groups.num_devices == sum(sizes)
    assert groups.num_devices_per_group == (None if len(set(sizes)) > 1 else (sizes or [0])[0])
    assert groups.group_sizes().tolist() == sizes
    assert groups.flattened_replica_groups().tolist() == [device for group in listed for device in group]
    assert [groups.group(index) for index in range(len(listed))] == listed
    assert groups.to_list().groups() == listed
    assert str(groups.to_list()) == str(listed).replace(" ", "").replace("[", "{").replace("]", "}")


@given(any_list)
def test_every_device_finds_its_group(groups: DeviceList) -> None:
    """group_of gives the first place of a device, and None for a device that is in no group."""
    places: dict[int, tuple[int, int]] = {}
    for index, group in enumerate(groups.groups()):
        for rank, device in enumerate(group):
            places.setdefault(device, (index, rank))
    assert all(groups.group_of(device) == places.get(device) for device in range(-5, 30))


@given(any_list)
def test_arrays_need_one_size(groups: DeviceList) -> None:
    """Even groups are an array of two dimensions, uneven ones are refused."""
    if groups.num_devices_per_group is None:
        with pytest.raises(ValueError, match="differ in size"):
            groups.to_array()
    else:
        assert groups.to_array().shape == (groups.num_replica_groups, groups.num_devices_per_group)
        assert groups.to_array().tolist() == groups.groups()


@given(any_list, any_list)
def test_comparisons_agree_with_the_groups(one: DeviceList, other: DeviceList) -> None:
    """same_groups and the two functions answer as the written-out groups do."""
    for a, b in ((one, other), (one, one.to_list()), (one.to_list(), one)):
        assert a.same_groups(b) == (a.groups() == b.groups())
        assert replica_groups_equal(a, b) == (a.groups() == b.groups())
        turned = [list(column) for column in zip(*a.groups(), strict=False)]
        even = None not in (a.num_devices_per_group, b.num_devices_per_group)
        assert replica_groups_orthogonal(a, b) == (even and turned == b.groups() and bool(turned))


@given(st.data())
def test_layouts_of_one_size_compare_by_meaning(data: st.DataObject) -> None:
    """Iota and mesh-axes lists of one size, which mean the same often enough, compare as their groups do."""
    number = data.draw(st.sampled_from([4, 6, 8]))
    kinds = iota_groups(number) | strategies.meshes(number).flatmap(mesh_groups)
    a, b = data.draw(kinds), data.draw(kinds)
    assert a.same_groups(b) == (a.groups() == b.groups())


def test_uneven_groups_differ_by_their_cuts() -> None:
    """The same ids cut elsewhere are other groups."""
    one, other = CollectiveDeviceList([[0], [1, 2]]), CollectiveDeviceList([[0, 1], [2]])
    assert not one.same_groups(other)
    assert one != other


@given(any_list)
def test_conversion_to_iota_keeps_the_groups(groups: DeviceList) -> None:
    """An iota that is found has the same groups; every list of an iota's groups is recognised."""
    iota = groups.to_iota()
    if iota is not None:
        assert iota.groups() == groups.groups()
        assert iota.to_list().to_iota() == iota


@given(any_list)
def test_fields_and_copies_lead_back(groups: DeviceList) -> None:
    """Proto fields read back equal, and so do copies."""
    message = _message(groups.to_proto_fields())
    assert type(groups).from_proto(message) == groups
    assert copy.deepcopy(groups) == groups
    assert hash(copy.deepcopy(groups)) == hash(groups)


# --- the dual form


def test_the_dual_form_speaks_as_what_it_holds() -> None:
    """Holding an iota, a device list prints, compares and converts as that iota."""
    iota = IotaReplicaGroupList(2, 2)
    dual, written = CollectiveDeviceList(iota), CollectiveDeviceList([[0, 1], [2, 3]])
    assert (str(dual), dual.form, dual.iota_replica_group_list) == ("[2,2]<=[4]", "iota", iota)
    assert (str(written), written.form, written.iota_replica_group_list) == ("{{0,1},{2,3}}", "list", None)
    assert dual == iota
    assert iota == dual
    assert hash(dual) == hash(iota)
    assert dual == CollectiveDeviceList(IotaReplicaGroupList(2, 2, (2, 2), (0, 1)))
    assert dual != written
    assert dual.same_groups(written)
    assert dual.to_iota() is iota
    assert dual.to_list() == written
    assert dual.group_of(3) == written.group_of(3) == (1, 1)
    assert dual.group(1) == written.group(1) == [2, 3]
    assert dual.group_sizes().tolist() == [2, 2]


def test_groups_are_written_out_once() -> None:
    """The groups of the dual form are the same read-only value at every call."""
    dual = CollectiveDeviceList(IotaReplicaGroupList(2, 2))
    assert dual.replica_groups() == ((0, 1), (2, 3))
    assert dual.replica_groups() is dual.replica_groups()


def test_written_out_ids_cannot_be_changed() -> None:
    """Arrays that a list keeps are read-only, and arrays given to it stay the giver's."""
    mine = np.array([[0, 1], [2, 3]])
    groups = CollectiveDeviceList(mine)
    mine[0, 0] = 7
    assert groups.groups() == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="read-only"):
        groups.flattened_replica_groups()[0] = 7


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param([[0, 1], [2, 3]], id="lists"),
        pytest.param(((0, 1), (2, 3)), id="tuples"),
        pytest.param(np.array([[0, 1], [2, 3]], dtype=np.uint8), id="array"),
        pytest.param([np.array([0, 1]), np.array([2, 3])], id="arrays"),
        pytest.param((range(start, start + 2) for start in (0, 2)), id="ranges"),
        pytest.param([SimpleNamespace(replica_ids=[0, 1]), SimpleNamespace(replica_ids=[2, 3])], id="messages"),
    ],
)
def test_groups_from_anything_nested(groups: Any) -> None:
    """Sequences, arrays and messages of ids are all taken."""
    assert CollectiveDeviceList(groups) == CollectiveDeviceList([[0, 1], [2, 3]])


@pytest.mark.parametrize(
    "groups",
    [
        pytest.param([0, 1], id="flat"),
        pytest.param(np.array([0, 1]), id="flat-array"),
        pytest.param([[[0, 1]]], id="too-deep"),
        pytest.param([[0, [1]]], id="ragged"),
        pytest.param([[0.0, 1.0]], id="floats"),
        pytest.param("{{0,1}}", id="text"),
        pytest.param([[1 << 63]], id="too-large"),
        pytest.param([[-1, 1 << 63]], id="too-large-among-others"),
        pytest.param([[1 << 70]], id="far-too-large"),
    ],
)
def test_no_groups(groups: Any) -> None:
    """What holds no integers of 64 bits in groups is refused."""
    with pytest.raises(ValueError, match="device ids"):
        CollectiveDeviceList(groups)


def test_forms_and_representations() -> None:
    """Every list says how it is spelt, and long ones do not flood a screen."""
    mesh = MeshAxesReplicaGroupList(Mesh({"a": 2}), ["a"])
    assert (CollectiveDeviceList(None).form, CollectiveDeviceList([[0]]).form, mesh.form) == (
        "empty",
        "list",
        "mesh_axes",
    )
    assert CollectiveDeviceList(None) == CollectiveDeviceList([])
    assert repr(CollectiveDeviceList([[0, 1], [2]])) == "CollectiveDeviceList([[0, 1], [2]])"
    assert repr(CollectiveDeviceList([range(100)])) == "<CollectiveDeviceList of 100 ids in 1 groups>"
    iota = IotaReplicaGroupList(1, 2)
    assert repr(CollectiveDeviceList(iota)) == "CollectiveDeviceList(IotaReplicaGroupList(1, 2, (2,), (0,)))"


def test_a_maximal_mesh_is_one_group_of_one_device() -> None:
    """Protos hold such lists; the empty mesh has no devices to group."""
    groups = MeshAxesReplicaGroupList(Mesh.maximal(3), ())
    assert (str(groups), groups.groups(), groups.group_of(3)) == ("maximal_mesh[device_id=3] {}", [[3]], (0, 0))
    assert (groups.group_of(0), groups.group(0), groups.to_iota()) == (None, [3], None)
    with pytest.raises(ValueError, match="mesh with devices"):
        MeshAxesReplicaGroupList(Mesh.empty(), ())


@pytest.mark.parametrize("index", [-1, 2])
def test_no_such_group(index: int) -> None:
    """An index of no group is refused, never counted from the end."""
    for groups in (CollectiveDeviceList([[0, 1], [2, 3]]), IotaReplicaGroupList(2, 2)):
        with pytest.raises(ValueError, match="index of a group"):
            groups.group(index)


def test_only_matrices_are_groups() -> None:
    """An iota of another number of dimensions does not say what its groups are."""
    with pytest.raises(ValueError, match="shape"):
        IotaReplicaGroupList.from_tile(IotaReplicaGroupList(2, 4).tile.reshape((8,)))


# --- size


def test_hostile_counts_allocate_nothing() -> None:
    """A list of 10^10 devices, and a mesh of 2^40, answer everything but the full list without building anything."""
    tracemalloc.start()
    hostile = parse_replica_groups("[100000,100000]<=[10000000000]")
    assert hostile.num_devices == 10_000_000_000
    assert hostile.group_of(1_234_567_890) == (12_345, 67_890)
    assert hostile.same_groups(IotaReplicaGroupList(100_000, 100_000, (100_000, 100_000)))
    assert not replica_groups_orthogonal(hostile, hostile)
    with pytest.raises(ValueError, match="not written out"):
        hostile.groups()
    mesh = MeshAxesReplicaGroupList(Mesh({"a": 1 << 20, "b": 1 << 20}), ["a"])
    assert mesh.group_of(5) == (5, 0)
    assert mesh.to_iota() == IotaReplicaGroupList(1 << 20, 1 << 20, (1 << 20, 1 << 20), (1, 0))
    assert mesh.same_groups(IotaReplicaGroupList(1 << 20, 1 << 20, (1 << 20, 1 << 20), (1, 0)))
    odd = MeshAxesReplicaGroupList(Mesh({"a": 2, "b": 3**20}, ((2, 3**20), (1, 0))), ["a"])
    assert odd.layout() is None
    assert odd.same_groups(odd)
    assert not odd.same_groups(IotaReplicaGroupList(3**20, 2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000


def test_one_group_costs_one_group() -> None:
    """A single group of a large iota is built without the others."""
    tracemalloc.start()
    group = IotaReplicaGroupList(1 << 30, 64, (64, 1 << 30), (1, 0)).group(7)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert group == [7 + (rank << 30) for rank in range(64)]
    assert peak < 50_000


def _message(fields: Any) -> Any:
    """Fields as an object with attributes, absent ones as protobuf gives them."""
    if isinstance(fields, list):
        return [_message(each) for each in cast("list[Any]", fields)]
    if not isinstance(fields, dict):
        return fields
    absent: dict[str, Any] = {"device_ids": [], "iota_transform": None, "sub_axis_info": None}
    present = {name: _message(value) for name, value in cast("dict[str, Any]", fields).items()}
    return SimpleNamespace(**absent | present)
