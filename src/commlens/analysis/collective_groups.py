"""The groups of a collective that is yet to be written: over axes of a mesh, or over dimensions of a sharding."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from commlens.analysis.explanation import Explanation, explanation_of
from commlens.analysis.limits import FULL_LIMIT
from commlens.analysis.meshes import as_mesh
from commlens.errors import CommlensError
from commlens.topology import (
    MeshAxesReplicaGroupList,
    all_reduce_groups_along_sharding_dims,
    parse_axes,
    parse_sharding,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.analysis.meshes import MeshLike
    from commlens.topology import DeviceList, Mesh


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveGroups(Explanation):
    """Groups, explained; the keys of ``commlens groups --format json``.

    Attributes:
        attributes: what to write on the instruction:
            ``channel_id=N, replica_groups=TEXT, use_global_device_ids=true``.
    """

    attributes: str


def groups_over(
    mesh: MeshLike, over: str, *, channel_id: int = 1, devices: int | None = None, full: bool = False
) -> CollectiveGroups:
    """Return the groups of a collective over axes of a mesh.

    Args:
        mesh: the mesh, as for :func:`commlens.report`.
        over: axes and sub-axes such as ``"a:(1)2,model"``; their order is the order inside a group.
        channel_id: the channel, at least 1.
        devices: how many devices there are; None: those of the mesh.
        full: whether ids are listed up to the high limit.

    Raises:
        GrammarError: the text names no axes of the mesh.
        CommlensError: the mesh is none, the channel is below 1, or the groups have no iota form and are too many to
            write out.

    Example:
        >>> groups = groups_over({"data": 2, "model": 4}, "data")
        >>> groups.attributes
        'channel_id=1, replica_groups=[4,2]<=[2,4]T(1,0), use_global_device_ids=true'
    """
    named_on = as_mesh(mesh)
    groups = MeshAxesReplicaGroupList(named_on, parse_axes(over, named_on))
    return _answer(groups, named_on, channel_id, devices, full=full)


def groups_from_sharding(
    sharding: str,
    dims: Sequence[int],
    *,
    mesh: MeshLike | None = None,
    channel_id: int = 1,
    devices: int | None = None,
    full: bool = False,
) -> CollectiveGroups:
    """Return the groups of a collective over dimensions of a sharding: devices that differ in these coordinates only.

    Args:
        sharding: the text of a tiled sharding such as ``"{devices=[4,2]<=[8]}"``.
        dims: dimensions of the tile, each once, in any order: members always count through the sorted ones.
        mesh: the mesh that names axes, if any.
        channel_id: the channel, at least 1.
        devices: how many devices there are; None: those of the sharding.
        full: whether ids are listed up to the high limit.

    Raises:
        GrammarError: the text breaks the grammar.
        CommlensError: the sharding cuts no dimension, has no such dimension, or the channel is below 1.

    Example:
        >>> groups_from_sharding("{devices=[4,2]<=[8]}", [0]).list
        '{{0,2,4,6},{1,3,5,7}}'
    """
    read = parse_sharding(sharding)
    if read.kind != "tiled" or read.tile is None:
        msg = f"expected a tiled sharding such as {{devices=[4,2]<=[8]}}, found {read}, which cuts no dimension"
        raise CommlensError(msg)
    groups = all_reduce_groups_along_sharding_dims(read.tile, dims)
    return _answer(groups, None if mesh is None else as_mesh(mesh), channel_id, devices, full=full)


def _answer(
    groups: DeviceList, mesh: Mesh | None, channel_id: int, devices: int | None, *, full: bool
) -> CollectiveGroups:
    if channel_id < 1:
        msg = f"expected a channel id of at least 1, found {channel_id}"
        raise CommlensError(msg)
    explained = explanation_of(groups, mesh, devices=devices, full=full)
    text = explained.iota or explained.list or _written_out(groups)
    kept = {field.name: getattr(explained, field.name) for field in fields(Explanation)}
    return CollectiveGroups(
        **kept, attributes=f"channel_id={channel_id}, replica_groups={text}, use_global_device_ids=true"
    )


def _written_out(groups: DeviceList) -> str:
    if groups.num_devices > FULL_LIMIT:
        msg = (
            f"expected groups with an iota form or of at most {FULL_LIMIT} ids, found {groups.num_devices} ids without"
        )
        raise CommlensError(msg)
    return str(groups.to_list())
