"""Groups that are not written out: an iota of positions, and an order of devices to look positions up in."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from commlens.topology.device_list_base import CollectiveDeviceListBase, check_group_index
from commlens.topology.digits import split_inner
from commlens.topology.iota import check_expandable

if TYPE_CHECKING:
    from commlens.topology.device_order import DeviceOrder
    from commlens.topology.digits import Digit
    from commlens.topology.iota import IntArray, IotaTileAssignment
    from commlens.topology.mesh import Mesh


class CompactGroups(CollectiveDeviceListBase):
    """Groups that hold each device once, and answer from their axes without a list of ids being built."""

    __slots__ = ()

    @property
    @abstractmethod
    def positions(self) -> IotaTileAssignment:
        """The positions in the groups, an iota of shape (groups, members)."""

    @property
    @abstractmethod
    def order(self) -> DeviceOrder:
        """The devices by position."""

    @property
    def num_replica_groups(self) -> int:
        """Number of groups."""
        return self.positions.dims[0]

    @property
    def num_devices_per_group(self) -> int:
        """Devices in each group."""
        return self.positions.dims[1]

    @property
    def num_devices(self) -> int:
        """How many devices there are; each is in one group."""
        return self.positions.num_elements

    @property
    def is_written_out(self) -> bool:
        """Whether the order of devices holds ids one by one."""
        return isinstance(self.order.ids, tuple)

    def layout(self) -> IotaTileAssignment | None:
        """The iota of the ids, found in the number of axes; None where the order of devices does not go with them."""
        order = self.order.ids
        if order is None:
            return self.positions
        return None if isinstance(order, tuple) else order.compose(self.positions)

    def flattened_replica_groups(self) -> IntArray:
        """All ids, group by group: 1-D, built anew."""
        layout = self.layout()
        if layout is not None:
            return layout.to_array().reshape(-1)
        return self.order.devices_at(self.positions.to_array().reshape(-1))

    def group_of(self, device: int) -> tuple[int, int] | None:
        """The group a device is in and its place there, both counted from 0; None for no device of these."""
        position = self.order.position_of(device)
        return None if position is None else divmod(self.positions.flat_index(position), self.num_devices_per_group)

    def group(self, index: int) -> list[int]:
        """The ids of one group; no other group is built."""
        check_group_index(index, self.num_replica_groups)
        size = self.num_devices_per_group
        check_expandable(size)
        places = np.arange(index * size, (index + 1) * size, dtype=np.int64)
        return self.order.devices_at(self.positions.flat_values(places)).tolist()

    def group_sizes(self) -> IntArray:
        """The size of every group."""
        check_expandable(self.num_replica_groups)
        return np.full(self.num_replica_groups, self.num_devices_per_group, dtype=np.int64)

    def members_on(self, mesh: Mesh) -> tuple[Digit, ...] | None:
        """The positions on a mesh inside every group, counted from its first member, as digits."""
        if mesh.order != self.order:
            return super().members_on(mesh)
        parts = split_inner(self.positions.digits, self.num_devices_per_group)
        return None if parts is None else parts[1]
