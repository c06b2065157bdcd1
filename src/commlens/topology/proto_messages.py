"""What the readers of protobuf messages ask of a message: the attributes, not the library.

Generated classes fit, and so does anything else with these attributes. Names and meanings are those of
xla/service/hlo.proto and xla/xla_data.proto.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ReplicaGroupMessage(Protocol):
    """ReplicaGroup: the ids of one group."""

    @property
    def replica_ids(self) -> Sequence[int]:
        """The ids, in order."""
        ...


class IotaMessage(Protocol):
    """IotaReplicaGroupListProto."""

    @property
    def num_replica_groups(self) -> int:
        """Number of groups."""
        ...

    @property
    def num_devices_per_group(self) -> int:
        """Devices in each group."""
        ...

    @property
    def iota_reshape_dims(self) -> Sequence[int]:
        """Shape given to 0..n-1 first."""
        ...

    @property
    def iota_transpose_perm(self) -> Sequence[int]:
        """Order of the reshaped axes."""
        ...


class CollectiveDeviceListMessage(Protocol):
    """CollectiveDeviceListProto."""

    @property
    def replica_groups(self) -> Sequence[ReplicaGroupMessage]:
        """The groups, in order."""
        ...


class MeshAxisMessage(Protocol):
    """MeshProto.MeshAxis."""

    @property
    def name(self) -> str:
        """Name of the axis."""
        ...

    @property
    def size(self) -> int:
        """Size of the axis."""
        ...


class IotaTransformMessage(Protocol):
    """MeshProto.IotaTransform."""

    @property
    def reshape_dims(self) -> Sequence[int]:
        """Shape given to 0..n-1 first."""
        ...

    @property
    def transpose_perm(self) -> Sequence[int]:
        """Order of the reshaped axes."""
        ...


class MeshMessage(Protocol):
    """MeshProto; an absent ``iota_transform`` is None or has no ``reshape_dims``."""

    @property
    def axes(self) -> Sequence[MeshAxisMessage]:
        """The axes, outermost first."""
        ...

    @property
    def device_ids(self) -> Sequence[int]:
        """The devices row-major over the axes, or none."""
        ...

    @property
    def iota_transform(self) -> IotaTransformMessage | None:
        """The order of the devices as an iota."""
        ...


class SubAxisMessage(Protocol):
    """AxisRefProto.SubAxis."""

    @property
    def pre_size(self) -> int:
        """Product of what lies outside."""
        ...

    @property
    def size(self) -> int:
        """Size of the sub-axis."""
        ...


class AxisRefMessage(Protocol):
    """AxisRefProto; an absent ``sub_axis_info`` is None or has both numbers 0."""

    @property
    def mesh_axis_index(self) -> int:
        """Position of the axis in the mesh."""
        ...

    @property
    def sub_axis_info(self) -> SubAxisMessage | None:
        """The part of the axis."""
        ...


class MeshAxesMessage(Protocol):
    """MeshAxesReplicaGroupListProto."""

    @property
    def mesh(self) -> MeshMessage:
        """The mesh."""
        ...

    @property
    def axes(self) -> Sequence[AxisRefMessage]:
        """The axes inside a group, in order."""
        ...
