"""Replica group lists: explicit, iota and mesh axes.

Source of the semantics: xla/hlo/ir/replica_group.cc (older: collective_device_list.cc).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from commlens.errors import CommlensError
from commlens.topology.axes import AxisRef
from commlens.topology.compact_groups import CompactGroups
from commlens.topology.device_list_base import CollectiveDeviceListBase
from commlens.topology.device_order import DeviceOrder
from commlens.topology.digits import count
from commlens.topology.explicit_groups import ExplicitGroups, GroupsLike
from commlens.topology.iota import IntArray, IotaTileAssignment
from commlens.topology.mesh import Mesh
from commlens.topology.recognise import axes_of, iota_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.topology.proto_messages import CollectiveDeviceListMessage, IotaMessage, MeshAxesMessage

_SHOWN_IDS = 64
"""Most ids that a repr shows."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class IotaReplicaGroupList(CompactGroups):
    """A replica group list kept as an iota: ``[2,4]<=[8]``, ``[4,2]<=[2,4]T(1,0)``.

    Args:
        num_replica_groups: number of groups.
        num_devices_per_group: devices in each group.
        reshape_dims: shape given to ``0..n-1`` first; None for ``(n,)``.
        transpose_perm: order of the reshaped axes; None for the order they have.

    Attributes:
        tile: the iota of shape (groups, members), canonical.

    Raises:
        CommlensError: when the numbers make no iota, see :class:`~commlens.topology.iota.IotaTileAssignment`.

    Example:
        >>> groups = IotaReplicaGroupList(4, 2, (2, 4), (1, 0))
        >>> str(groups), groups.groups(), groups.group_of(6)
        ('[4,2]<=[2,4]T(1,0)', [[0, 4], [1, 5], [2, 6], [3, 7]], (2, 1))
    """

    tile: IotaTileAssignment

    def __init__(
        self,
        num_replica_groups: int,
        num_devices_per_group: int,
        reshape_dims: Iterable[int] | None = None,
        transpose_perm: Iterable[int] | None = None,
    ) -> None:
        tile = IotaTileAssignment((num_replica_groups, num_devices_per_group), reshape_dims, transpose_perm)
        object.__setattr__(self, "tile", tile)

    @classmethod
    def from_tile(cls, tile: IotaTileAssignment) -> IotaReplicaGroupList:
        """Take the rows of a two-dimensional iota as the groups.

        Raises:
            CommlensError: for any other number of dimensions.
        """
        if tile.ndim != 2:
            msg = f"expected an iota of shape (groups, members), found {tile.ndim} dimensions in {tile.text}"
            raise CommlensError(msg)
        groups, members = tile.dims
        return cls(groups, members, tile.reshape_dims, tile.transpose_perm)

    @classmethod
    def from_proto(cls, message: IotaMessage) -> IotaReplicaGroupList:
        """Read an IotaReplicaGroupListProto, or anything with its attributes.

        Raises:
            CommlensError: where the constructor would.
        """
        return cls(
            message.num_replica_groups,
            message.num_devices_per_group,
            message.iota_reshape_dims,
            message.iota_transpose_perm,
        )

    def to_proto_fields(self) -> dict[str, object]:
        """The fields of an IotaReplicaGroupListProto, by their names."""
        return {
            "num_replica_groups": self.num_replica_groups,
            "num_devices_per_group": self.num_devices_per_group,
            "iota_reshape_dims": list(self.reshape_dims),
            "iota_transpose_perm": list(self.transpose_perm),
        }

    def __str__(self) -> str:
        return self.tile.text

    def __repr__(self) -> str:
        return f"IotaReplicaGroupList{(*self.tile.dims, self.reshape_dims, self.transpose_perm)}"

    @property
    def form(self) -> str:
        """``"iota"``."""
        return "iota"

    @property
    def positions(self) -> IotaTileAssignment:
        """The ids themselves: position and device are the same."""
        return self.tile

    @property
    def order(self) -> DeviceOrder:
        """The devices ``0..n-1``."""
        return DeviceOrder(self.num_devices)

    @property
    def reshape_dims(self) -> tuple[int, ...]:
        """Shape given to ``0..n-1`` first, canonical."""
        return self.tile.reshape_dims

    @property
    def transpose_perm(self) -> tuple[int, ...]:
        """Order of the reshaped axes, canonical."""
        return self.tile.transpose_perm

    def to_list(self) -> CollectiveDeviceList:
        """The same groups written out."""
        return CollectiveDeviceList(self.to_array())

    def to_iota(self) -> IotaReplicaGroupList:
        """Itself."""
        return self

    def to_mesh_axes(self, mesh: Mesh) -> MeshAxesReplicaGroupList | None:
        """The same groups in the same order as axes of a mesh; None where they are none."""
        return _to_mesh_axes(self, mesh)


@dataclass(frozen=True, slots=True, init=False)
class MeshAxesReplicaGroupList(CompactGroups):
    """A replica group list kept as axes of a mesh: ``mesh['data'=2,'model'=4] {'data'}``.

    The listed axes vary inside a group, in the listed order, the last one fastest; the other axes number the groups in
    mesh order. Without axes every device is a group of its own.

    Args:
        mesh: a mesh with axes, or a maximal mesh.
        axes: references by name or index.

    Attributes:
        mesh: the mesh.
        axes: the references, each by the name of its axis.

    Raises:
        CommlensError: for the empty mesh, and for references that the mesh does not have or that do not go together.

    Example:
        >>> groups = MeshAxesReplicaGroupList(Mesh({"data": 2, "model": 4}), ["data"])
        >>> str(groups), groups.groups()
        ("mesh['data'=2,'model'=4] {'data'}", [[0, 4], [1, 5], [2, 6], [3, 7]])
    """

    mesh: Mesh
    axes: tuple[AxisRef, ...]
    _positions: IotaTileAssignment = field(compare=False, repr=False)

    def __init__(self, mesh: Mesh, axes: Iterable[AxisRef | str | int]) -> None:
        if not mesh.num_devices:
            msg = "a replica group list needs a mesh with devices, found the empty mesh"
            raise CommlensError(msg)
        refs = mesh.resolve_all(axes)
        inner = [mesh.digit_of(ref) for ref in refs]
        members = count(inner)
        dims = (mesh.num_devices // members, members)
        positions = IotaTileAssignment.from_digits(dims, [*mesh.unused_digits(refs), *inner])
        object.__setattr__(self, "mesh", mesh)
        object.__setattr__(self, "axes", refs)
        object.__setattr__(self, "_positions", positions)

    @classmethod
    def from_proto(cls, message: MeshAxesMessage) -> MeshAxesReplicaGroupList:
        """Read a MeshAxesReplicaGroupListProto, or anything with its attributes.

        Raises:
            CommlensError: where the constructor or :meth:`Mesh.from_proto` would.
        """
        return cls(Mesh.from_proto(message.mesh), [AxisRef.from_proto(axis) for axis in message.axes])

    def to_proto_fields(self) -> dict[str, object]:
        """The fields of a MeshAxesReplicaGroupListProto, by their names, as plain lists and dicts."""
        return {
            "mesh": self.mesh.to_proto_fields(),
            "axes": [ref.to_proto_fields(self.mesh.axis_index(ref.name_or_index)) for ref in self.axes],
        }

    def __str__(self) -> str:
        return f"{self.mesh} {{{','.join(map(str, self.axes))}}}"

    @property
    def form(self) -> str:
        """``"mesh_axes"``."""
        return "mesh_axes"

    @property
    def positions(self) -> IotaTileAssignment:
        """The row-major positions on the mesh."""
        return self._positions

    @property
    def order(self) -> DeviceOrder:
        """The devices of the mesh."""
        return self.mesh.order

    def to_list(self) -> CollectiveDeviceList:
        """The same groups written out."""
        return CollectiveDeviceList(self.to_array())

    def to_iota(self) -> IotaReplicaGroupList | None:
        """The same groups as an iota; None where no iota has them."""
        return _to_iota(self)

    def to_mesh_axes(self, mesh: Mesh) -> MeshAxesReplicaGroupList | None:
        """The same groups in the same order as axes of a mesh; None where they are none."""
        return self if mesh == self.mesh else _to_mesh_axes(self, mesh)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class CollectiveDeviceList(CollectiveDeviceListBase):
    """A replica group list in the documented dual form: groups written out, or an iota inside.

    It prints, compares and converts by the form it holds: holding an iota it equals that iota and no list.

    Args:
        groups: any nested sequence or array of ids, ReplicaGroup messages, an iota, or None for the empty list, which
            prints ``{}``. Ids are taken as they are: repeated, negative and missing ones, empty and uneven groups pass.

    Raises:
        CommlensError: for ids that are no integers or do not fit in 64 bits.

    Example:
        >>> groups = CollectiveDeviceList([[0, 1, 2], [3]])
        >>> str(groups), groups.num_devices_per_group, groups.group_of(2)
        ('{{0,1,2},{3}}', None, (0, 2))
        >>> str(CollectiveDeviceList(None)), str(CollectiveDeviceList(IotaReplicaGroupList(2, 4)))
        ('{}', '[2,4]<=[8]')
    """

    _held: ExplicitGroups | IotaReplicaGroupList
    _expanded: tuple[tuple[int, ...], ...] | None

    def __init__(self, groups: GroupsLike | IotaReplicaGroupList | None) -> None:
        iota = isinstance(groups, IotaReplicaGroupList)
        self._set(groups if iota else ExplicitGroups.of(() if groups is None else groups))

    @classmethod
    def from_flat(cls, ids: IntArray, offsets: IntArray) -> CollectiveDeviceList:
        """Take over groups in one array; it becomes read-only.

        Args:
            ids: the ids, group by group.
            offsets: where each group starts in ``ids``, and at last the number of ids.

        Example:
            >>> import numpy as np
            >>> str(CollectiveDeviceList.from_flat(np.array([0, 1, 2]), np.array([0, 2, 3])))
            '{{0,1},{2}}'
        """
        made = cls.__new__(cls)
        made._set(ExplicitGroups(ids, offsets))
        return made

    def _set(self, held: ExplicitGroups | IotaReplicaGroupList) -> None:
        object.__setattr__(self, "_held", held)
        object.__setattr__(self, "_expanded", None)

    @classmethod
    def from_proto(cls, message: CollectiveDeviceListMessage) -> CollectiveDeviceList:
        """Read the groups of a CollectiveDeviceListProto, or of anything with its attribute."""
        return cls(message.replica_groups)

    def to_proto_fields(self) -> dict[str, object]:
        """The fields of a CollectiveDeviceListProto, by their names; an iota inside is written out."""
        return {"replica_groups": [{"replica_ids": group} for group in self.groups()]}

    def __eq__(self, other: object) -> bool:
        if isinstance(other, CollectiveDeviceList):
            return self._held == other._held
        return self._held == other if isinstance(other, IotaReplicaGroupList) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._held)

    def __str__(self) -> str:
        return str(self._held)

    def __repr__(self) -> str:
        if self.iota_replica_group_list is not None:
            return f"CollectiveDeviceList({self.iota_replica_group_list!r})"
        if self.num_devices > _SHOWN_IDS:
            return f"<CollectiveDeviceList of {self.num_devices} ids in {self.num_replica_groups} groups>"
        return f"CollectiveDeviceList({self.groups()})"

    @property
    def iota_replica_group_list(self) -> IotaReplicaGroupList | None:
        """The iota inside; None when the groups are written out."""
        return self._held if isinstance(self._held, IotaReplicaGroupList) else None

    def replica_groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups written out, made once and kept: every call gives the same tuple."""
        if self._expanded is None:
            expanded = tuple(map(tuple, self.groups()))
            object.__setattr__(self, "_expanded", expanded)
            return expanded
        return self._expanded

    @property
    def form(self) -> str:
        """The spelling of the form it holds."""
        return self._held.form

    @property
    def num_replica_groups(self) -> int:
        """Number of groups."""
        return self._held.num_replica_groups

    @property
    def num_devices_per_group(self) -> int | None:
        """Devices in each group; None if the groups differ in size, 0 if there are none."""
        return self._held.num_devices_per_group

    @property
    def num_devices(self) -> int:
        """Sum of the sizes of the groups."""
        return self._held.num_devices

    def group_sizes(self) -> IntArray:
        """The size of every group."""
        return self._held.group_sizes()

    @property
    def is_written_out(self) -> bool:
        """Whether there is no iota inside."""
        return self._held.is_written_out

    def layout(self) -> IotaTileAssignment | None:
        """The iota inside; None when the groups are written out."""
        return self._held.layout()

    def flattened_replica_groups(self) -> IntArray:
        """All ids, group by group: 1-D, read-only when the groups are written out."""
        return self._held.flattened_replica_groups()

    def groups(self) -> list[list[int]]:
        """The groups as lists, built anew."""
        return self._held.groups()

    def group_of(self, device: int) -> tuple[int, int] | None:
        """The group a device is in and its place there, both counted from 0; None if it is in no group."""
        return self._held.group_of(device)

    def group(self, index: int) -> list[int]:
        """The ids of one group."""
        return self._held.group(index)

    def to_list(self) -> CollectiveDeviceList:
        """The same groups written out."""
        return self._held.to_list() if isinstance(self._held, IotaReplicaGroupList) else self

    def to_iota(self) -> IotaReplicaGroupList | None:
        """The same groups as an iota, recognised in O(n) from ids; None where no iota has them."""
        return self.iota_replica_group_list or _to_iota(self)

    def to_mesh_axes(self, mesh: Mesh) -> MeshAxesReplicaGroupList | None:
        """The same groups in the same order as axes of a mesh; None where they are none."""
        return _to_mesh_axes(self, mesh)


DeviceList: TypeAlias = CollectiveDeviceList | IotaReplicaGroupList | MeshAxesReplicaGroupList
"""Any of the three kinds."""


def _to_iota(groups: CollectiveDeviceListBase) -> IotaReplicaGroupList | None:
    tile = groups.layout()
    if tile is None and groups.num_devices_per_group is not None:
        tile = iota_of(groups.to_array())
    return None if tile is None else IotaReplicaGroupList.from_tile(tile)


def _to_mesh_axes(groups: DeviceList, mesh: Mesh) -> MeshAxesReplicaGroupList | None:
    refs = axes_of(groups, mesh)
    if refs is None:
        return None
    found = MeshAxesReplicaGroupList(mesh, refs)
    return found if found.same_groups(groups) else None
