"""One replica group list explained: its groups, its other spellings, its axes, who takes part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from commlens.analysis.limits import id_limit
from commlens.analysis.meshes import as_mesh
from commlens.analysis.participation import Counts, groups_participation
from commlens.analysis.records import Record
from commlens.analysis.unfolding import Unfolding
from commlens.errors import CommlensError
from commlens.topology import (
    CollectiveOpGroupMode,
    IotaReplicaGroupList,
    MeshAxesReplicaGroupList,
    axes_of,
    parse_replica_groups,
)

if TYPE_CHECKING:
    from commlens.analysis.meshes import MeshLike
    from commlens.analysis.participation import Participation
    from commlens.topology import DeviceList, Mesh

IdLists: TypeAlias = list[list[int]]
Labels: TypeAlias = list[str]


@dataclass(frozen=True, slots=True, eq=False)
class Explanation(Record):
    """What a replica group list means; the keys of ``commlens explain --format json``.

    Attributes:
        form: ``"list"``, ``"iota"``, ``"mesh_axes"`` or ``"empty"``: how it was spelled.
        text: the canonical spelling.
        num_replica_groups: number of groups.
        num_devices_per_group: devices in each group; None where they differ.
        groups: the ids; None where there are more than the answer lists.
        list: the spelling with all ids; None where there are more than the answer lists.
        iota: the iota spelling; None where there is none.
        mesh_axes: the spelling by axes of ``mesh``; None without a mesh, and where the groups are no axes of it in
            this order.
        axes: the axes that vary inside a group, outermost first, of the participants where a mode is given; None
            without a mesh, and where none fit.
        is_partition: whether every device of 0..n-1 stands in exactly one group, and no group is empty. n is what
            ``devices`` said, else the largest id and one. The empty list means one group of everybody, so it is one.
        meaning: the list in one sentence.
        mode: the group mode that was asked for, as ``"kFlattenedID"``; None when none was.
        participants: the groups of global ids in that mode; None without a mode, and where they cannot be told.
        ids: ``"as written"`` where participants are the listed ids for want of counts.
        why_no_participants: why they cannot be told although a mode is given; None otherwise.
    """

    form: str
    text: str
    num_replica_groups: int
    num_devices_per_group: int | None
    groups: IdLists | None
    list: str | None
    iota: str | None
    mesh_axes: str | None
    axes: Labels | None
    is_partition: bool
    meaning: str
    mode: str | None
    participants: IdLists | None
    ids: str | None
    why_no_participants: str | None
    _device_list: DeviceList
    _mesh: Mesh | None
    _participation: Participation | None

    @property
    def device_list(self) -> DeviceList:
        """The list itself, as compact as it was spelled."""
        return self._device_list

    @property
    def mesh(self) -> Mesh | None:
        """The mesh on which axes are named: the one that was given, else the one in the spelling."""
        return self._mesh

    @property
    def participation(self) -> Participation | None:
        """Who takes part in the mode that was asked for, in compact form."""
        return self._participation

    @property
    def unfolding(self) -> Unfolding | None:
        """How the iota spelling unfolds, digit by digit; None where there is no iota spelling."""
        iota = self._device_list.to_iota()
        if iota is None:
            return None
        return Unfolding(iota.num_replica_groups, iota.num_devices_per_group, iota.reshape_dims, iota.transpose_perm)

    def as_dict(self) -> dict[str, object]:
        """Return the keys as a plain dict of JSON values."""
        return dict(self)


def explain(
    spec: str,
    mesh: MeshLike | None = None,
    *,
    devices: int | None = None,
    replicas: int | None = None,
    partitions: int | None = None,
    mode: CollectiveOpGroupMode | str | None = None,
    full: bool = False,
) -> Explanation:
    """Explain a replica group list in any spelling.

    Args:
        spec: the list.
        mesh: the mesh that names axes, as for :func:`commlens.report`; None: the one in the spelling, if any.
        devices: how many devices there are.
        replicas: how many replicas; given without ``partitions``, those are 1.
        partitions: how many partitions; given without ``replicas``, those are 1.
        mode: what the ids are, to tell who takes part; in any spelling XLA has used.
        full: whether ids are listed up to the high limit.

    Returns:
        The explanation. Wrong values, such as ids that occur twice, are explained and not refused.

    Raises:
        GrammarError: the spec breaks the grammar.
        CommlensError: the mesh is none, a count is below 1, or there is no such mode.

    Example:
        >>> explained = explain("[4,2]<=[2,4]T(1,0)", {"data": 2, "model": 4})
        >>> explained.list, explained.mesh_axes, explained.axes, explained.is_partition
        ('{{0,4},{1,5},{2,6},{3,7}}', "mesh['data'=2,'model'=4] {'data'}", ['data'], True)
        >>> print(explained.meaning)
        4 groups of 2 devices: the ids 0..7 laid out as 2 x 4, read with dimension 1 outermost,
        then 0, cut into rows of 2.
    """
    for what, number in (("devices", devices), ("replicas", replicas), ("partitions", partitions)):
        _check_count(what, number)
    groups = parse_replica_groups(spec)
    own = groups.mesh if isinstance(groups, MeshAxesReplicaGroupList) and groups.mesh.axes else None
    named_on = own if mesh is None else as_mesh(mesh)
    asked = None if mode is None else CollectiveOpGroupMode(mode)
    counts = None if replicas is None and partitions is None else Counts(replicas or 1, partitions or 1)
    participation = None if asked is None else groups_participation(asked, groups, counts)
    return explanation_of(groups, named_on, devices=devices, participation=participation, full=full)


def explanation_of(
    groups: DeviceList,
    mesh: Mesh | None,
    *,
    devices: int | None = None,
    participation: Participation | None = None,
    full: bool = False,
) -> Explanation:
    """Explain a device list that has been read; arguments and result as for :func:`explain`."""
    limit = id_limit(full=full)
    iota = groups.to_iota()
    as_axes = None if mesh is None else groups.to_mesh_axes(mesh)
    listed = groups.num_devices <= limit
    return Explanation(
        form=groups.form,
        text=str(groups),
        num_replica_groups=groups.num_replica_groups,
        num_devices_per_group=groups.num_devices_per_group,
        groups=groups.groups() if listed else None,
        list=str(groups.to_list()) if listed else None,
        iota=None if iota is None else str(iota),
        mesh_axes=None if as_axes is None else str(as_axes),
        axes=_axis_labels(groups if participation is None else participation.groups, mesh),
        is_partition=is_partition(groups, devices),
        meaning=meaning_of(groups),
        mode=None if participation is None or participation.mode is None else str(participation.mode),
        participants=None if participation is None else participation.listed(limit),
        ids=None if participation is None else participation.ids,
        why_no_participants=None if participation is None else participation.unknown_because,
        _device_list=groups,
        _mesh=mesh,
        _participation=participation,
    )


def is_partition(groups: DeviceList, devices: int | None = None) -> bool:
    """Whether every device stands in exactly one group, and no group is empty.

    Args:
        groups: the list.
        devices: how many devices there are; None: the largest id and one.

    Returns:
        The answer. A list without groups means one group of everybody, so it is a partition.

    Example:
        >>> from commlens.topology import CollectiveDeviceList
        >>> groups = CollectiveDeviceList([[0, 1], [2, 3]])
        >>> is_partition(groups), is_partition(groups, 8), is_partition(CollectiveDeviceList([[0, 1], [1]]))
        (True, False, False)
    """
    if groups.num_replica_groups == 0:
        return True
    if isinstance(groups, IotaReplicaGroupList | MeshAxesReplicaGroupList):
        # Both count through 0..n-1 by construction; a mesh of one device with another id does not.
        return devices in (None, groups.num_devices) and groups.group_of(0) is not None
    ids = groups.flattened_replica_groups()
    number = ids.size if devices is None else devices
    return (
        ids.size == number
        and bool(groups.group_sizes().all())
        and bool(np.array_equal(np.sort(ids), np.arange(number)))
    )


def meaning_of(groups: DeviceList) -> str:
    """Say in one sentence what a replica group list means.

    Example:
        >>> from commlens.topology import CollectiveDeviceList
        >>> meaning_of(CollectiveDeviceList([[0, 1], [2]]))
        '2 groups of 1 to 2 devices, written out.'
    """
    if groups.num_replica_groups == 0:
        return "No groups are written: all replicas or partitions, as the mode has it, form one group."
    size = groups.num_devices_per_group
    sizes = groups.group_sizes() if size is None else None
    per_group = f"{size} device{'s' * (size != 1)}" if sizes is None else f"{sizes.min()} to {sizes.max()} devices"
    number = groups.num_replica_groups
    what = f"{number} group{'s' * (number != 1)} of {per_group}"
    if isinstance(groups, MeshAxesReplicaGroupList):
        return f"{what}: {_mesh_sentence(groups)}."
    iota = groups if isinstance(groups, IotaReplicaGroupList) else None
    return f"{what}, written out." if iota is None else f"{what}: {_iota_sentence(iota)}."


def _iota_sentence(iota: IotaReplicaGroupList) -> str:
    ids = f"the ids 0..{iota.num_devices - 1}"
    cut = f"cut into rows of {iota.num_devices_per_group}"
    if len(iota.reshape_dims) == 1:
        return f"{ids} in their order, {cut}"
    first, *others = iota.transpose_perm
    laid_out = " x ".join(map(str, iota.reshape_dims))
    order = f"dimension {first} outermost, then {', '.join(map(str, others))}"
    return f"{ids} laid out as {laid_out}, read with {order}, {cut}"


def _mesh_sentence(groups: MeshAxesReplicaGroupList) -> str:
    mesh = groups.mesh
    shape = " x ".join(f"{name} {size}" for name, size in mesh.axes) or "one device"
    order = "" if mesh.device_ids is None or mesh.is_maximal else ", its devices in an order of their own"
    if not groups.axes:
        return f"on the mesh {shape}{order}, every device is a group of its own"
    axes = ", then ".join(ref.label for ref in groups.axes)
    return f"on the mesh {shape}{order}, the members of a group differ along {axes}"


def _axis_labels(groups: DeviceList | None, mesh: Mesh | None) -> list[str] | None:
    refs = None if mesh is None or groups is None else axes_of(groups, mesh)
    return None if refs is None else [ref.label for ref in refs]


def _check_count(what: str, number: int | None) -> None:
    if number is not None and number < 1:
        msg = f"expected at least 1 of the {what}, found {number}"
        raise CommlensError(msg)
