"""The replica group list of a proto, in each of its fields, held against what upstream reads."""

from __future__ import annotations

from typing import Any

import pytest

from commlens.hlo import discover, load
from commlens.hlo.model import UnreadableError
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from proto_modules import all_reduce, device_list, instruction, module
from xla_cases import cases


def iota(groups: int, size: int, reshape: list[int], perm: list[int]) -> schema.IotaReplicaGroupListProto:
    """Return an iota list."""
    return schema.IotaReplicaGroupListProto(
        num_replica_groups=groups, num_devices_per_group=size, iota_reshape_dims=reshape, iota_transpose_perm=perm
    )


def mesh_axes(given: dict[str, Any]) -> schema.MeshAxesReplicaGroupListProto:
    """Return mesh axes as a case describes them."""
    mesh = schema.MeshProto(
        axes=[schema.MeshProto.MeshAxis(name=name, size=size) for name, size in given["axes"]],
        device_ids=given["device_ids"],
    )
    if given["iota_transform"] is not None:
        reshape, perm = given["iota_transform"]
        mesh.iota_transform.CopyFrom(schema.MeshProto.IotaTransform(reshape_dims=reshape, transpose_perm=perm))
    refs: list[schema.AxisRefProto] = []
    for selected in given["selected"]:
        index, *sub_axis = [selected] if isinstance(selected, int) else selected
        ref = schema.AxisRefProto(mesh_axis_index=index)
        if sub_axis:
            ref.sub_axis_info.CopyFrom(schema.AxisRefProto.SubAxis(pre_size=sub_axis[0], size=sub_axis[1]))
        refs.append(ref)
    return schema.MeshAxesReplicaGroupListProto(mesh=mesh, axes=refs)


def filled(fields: dict[str, Any]) -> schema.HloInstructionProto:
    """Return an all-reduce with the fields of a case."""
    made = all_reduce()
    if "replica_groups(49)" in fields:
        made.ClearField("collective_device_list")
        made.replica_groups.extend(device_list(*fields["replica_groups(49)"]).replica_groups)
    if "collective_device_list(87)" in fields:
        made.collective_device_list.CopyFrom(device_list(*fields["collective_device_list(87)"]))
    if "iota_collective_device_list(92)" in fields:
        given = fields["iota_collective_device_list(92)"]
        made.iota_collective_device_list.CopyFrom(iota(2, 2, given["reshape_dims"], given["transpose_perm"]))
    if "mesh_axes_replica_group_list(93)" in fields:
        made.mesh_axes_replica_group_list.CopyFrom(mesh_axes(fields["mesh_axes_replica_group_list(93)"]))
    made.channel_id = fields.get("channel_id(26)", 0)
    made.all_reduce_id = fields.get("all_reduce_id(45)", 0)
    made.use_global_device_ids = fields.get("use_global_device_ids(71)", False)
    return made


def printed(message: schema.HloInstructionProto) -> str:
    """Return the attributes of a message as we read them, in upstream's order."""
    read = load(module(message).SerializeToString()).instruction("x2")
    channel = "" if read.channel_id is None else f"channel_id={read.channel_id}, "
    flag = ", use_global_device_ids=true" if read.use_global_device_ids else ""
    return f"{channel}replica_groups={read.replica_groups}{flag}, to_apply=%{read.called[0][1]}"


@pytest.mark.parametrize(("given", "expect"), cases("proto_read"))
def test_each_case_is_read_as_upstream_reads_it(given: dict[str, Any], expect: dict[str, str]) -> None:
    """What upstream prints is what we read; where it stops with an error or dies, we say that it cannot be read."""
    message = filled(given["fields"])
    if "printed" in expect:
        assert printed(message) == expect["printed"]
    else:
        with pytest.raises(UnreadableError):
            printed(message)


def test_a_bad_list_is_an_unread_item_and_no_row() -> None:
    """An iota list that is no bijection has no row; the rest of the module is read."""
    bad, good = all_reduce(2), all_reduce(3)
    bad.iota_collective_device_list.CopyFrom(iota(2, 4, [4, 3], [1, 0]))
    found = discover(load(module(bad, good).SerializeToString()))
    assert [site.name for site in found.sites] == ["x3"]
    assert [(item.name, item.opcode) for item in found.unread] == [("x2", "all-reduce")]
    assert "replica_groups" in found.unread[0].why


def test_an_iota_list_inside_field_87_is_read_though_upstream_drops_it() -> None:
    """JAX wrote iota lists there for a year; one group of all devices would be a wrong answer."""
    message = all_reduce()
    message.collective_device_list.ClearField("replica_groups")
    message.collective_device_list.iota_replica_group_list.CopyFrom(iota(2, 4, [4, 2], [1, 0]))
    (site,) = discover(load(module(message).SerializeToString())).sites
    assert str(site.signature.groups) == "[2,4]<=[4,2]T(1,0)"


def test_the_old_list_wins_over_the_iota_list_inside_field_87() -> None:
    """Field 49 comes before all of field 87."""
    message = all_reduce()
    message.collective_device_list.iota_replica_group_list.CopyFrom(iota(1, 4, [4], [0]))
    message.replica_groups.extend(device_list([1, 0]).replica_groups)
    assert printed(message) == "replica_groups={{1,0}}, to_apply=%add"


def test_mesh_axes_win_over_the_old_list() -> None:
    """Fields 92 and 93 come before field 49."""
    message = all_reduce()
    message.replica_groups.extend(device_list([1, 0]).replica_groups)
    given = {"axes": [["a", 2]], "selected": [0], "device_ids": [], "iota_transform": None}
    message.mesh_axes_replica_group_list.CopyFrom(mesh_axes(given))
    assert printed(message) == "replica_groups=mesh['a'=2] {'a'}, to_apply=%add"


def test_identity_device_ids_are_tolerated() -> None:
    """Upstream dies of device ids 0..n-1; they mean the same as none."""
    message = all_reduce()
    given = {"axes": [["a", 2], ["b", 2]], "selected": [1], "device_ids": [0, 1, 2, 3], "iota_transform": None}
    message.mesh_axes_replica_group_list.CopyFrom(mesh_axes(given))
    assert printed(message) == "replica_groups=mesh['a'=2,'b'=2] {'b'}, to_apply=%add"


def test_device_ids_beside_an_iota_transform_cannot_be_read() -> None:
    """A mesh has one order."""
    message = all_reduce()
    given = {
        "axes": [["a", 2], ["b", 2]],
        "selected": [1],
        "device_ids": [3, 2, 1, 0],
        "iota_transform": [[2, 2], [1, 0]],
    }
    message.mesh_axes_replica_group_list.CopyFrom(mesh_axes(given))
    with pytest.raises(UnreadableError, match="not both"):
        printed(message)


def test_no_list_at_all_is_the_empty_list() -> None:
    """Absent groups mean all in one group."""
    message = all_reduce()
    message.ClearField("replica_group_list")
    assert printed(message) == "replica_groups={}, to_apply=%add"


def test_group_numbers_of_2018_become_groups() -> None:
    """Field 44 gives the group of every replica."""
    message = instruction("cross-replica-sum", 2, [1])
    message.replica_group_ids.extend([0, 1, 0, 1])
    read = load(module(message).SerializeToString()).instruction("x2")
    assert str(read.replica_groups) == "{{0,2},{1,3}}"
    assert read.raw_attribute("replica_group_ids") == "{0,1,0,1}"
    (site,) = discover(read.computation.module).sites
    assert site.signature.opcode == "all-reduce"


def test_negative_group_numbers_cannot_be_read() -> None:
    """There is no group -1."""
    message = instruction("cross-replica-sum", 2, [1])
    message.replica_group_ids.extend([0, -1])
    found = discover(load(module(message).SerializeToString()))
    assert found.sites == ()
    assert "-1" in found.unread[0].why


@pytest.mark.parametrize(("channel", "old", "expected"), [(0, 6, 6), (4, 0, 4), (4, -4, 4), (-3, 6, 6), (-3, -4, None)])
def test_the_old_field_of_a_channel_counts_where_the_new_one_is_not_positive(
    channel: int, old: int, expected: int | None
) -> None:
    """Field 45 is field 26 of an all-reduce under its old name; numbers below 1 are none."""
    message = all_reduce()
    message.channel_id, message.all_reduce_id = channel, old
    (site,) = discover(load(module(message).SerializeToString())).sites
    assert (site.channel_id, site.signature.has_channel) == (expected, expected is not None)


def test_the_old_field_of_a_channel_means_nothing_elsewhere() -> None:
    """Only all-reduce and reduce-scatter ever had it."""
    message = instruction("all-gather", 2, [1])
    message.dimensions.append(0)
    message.all_reduce_id = 6
    (site,) = discover(load(module(message).SerializeToString())).sites
    assert site.channel_id is None
