"""The interface that all replica group lists share.

Source: ``CollectiveDeviceListBase``, xla/hlo/ir/replica_group.h.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from commlens.errors import CommlensError
from commlens.topology.recognise import members_of_array, members_of_layout

if TYPE_CHECKING:
    from commlens.topology.digits import Digit
    from commlens.topology.iota import IntArray, IotaTileAssignment
    from commlens.topology.mesh import Mesh


class CollectiveDeviceListBase(ABC):
    """A replica group list in some spelling: groups of device ids, in order.

    ``==`` is strict: lists of different kinds are different, as upstream has it; :meth:`same_groups` compares what they
    mean. ``str()`` is the spelling in HLO text.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def form(self) -> str:
        """The spelling: ``"list"``, ``"iota"``, ``"mesh_axes"``, or ``"empty"`` for a list without groups."""

    @property
    @abstractmethod
    def num_replica_groups(self) -> int:
        """Number of groups."""

    @property
    @abstractmethod
    def num_devices_per_group(self) -> int | None:
        """Devices in each group; None if the groups differ in size, 0 if there are none."""

    @property
    @abstractmethod
    def num_devices(self) -> int:
        """Sum of the sizes of the groups."""

    @property
    @abstractmethod
    def is_written_out(self) -> bool:
        """Whether ids are held one by one, in the groups or in the order of a mesh."""

    @abstractmethod
    def layout(self) -> IotaTileAssignment | None:
        """The iota of shape (groups, members) that the spelling stands for, found in the number of axes.

        None for spellings that write ids out, and for a mesh whose order of devices does not go with its axes; such ids
        may still turn out to be an iota, see ``to_iota``.
        """

    @abstractmethod
    def flattened_replica_groups(self) -> IntArray:
        """All ids, group by group: 1-D, possibly read-only.

        Raises:
            CommlensError: for more ids than are written out, see :data:`~commlens.topology.iota.EXPANSION_LIMIT`.
        """

    @abstractmethod
    def group_of(self, device: int) -> tuple[int, int] | None:
        """The group a device is in and its place there, both counted from 0; None if it is in no group.

        A device that is listed twice is where it stands first. No list of the groups is built.
        """

    @abstractmethod
    def group(self, index: int) -> list[int]:
        """The ids of one group.

        Raises:
            CommlensError: when there is no such group.
        """

    @abstractmethod
    def group_sizes(self) -> IntArray:
        """The size of every group."""

    def groups(self) -> list[list[int]]:
        """The groups as lists, built anew."""
        return self.to_array().tolist()

    def to_array(self) -> IntArray:
        """The ids as an array of shape (groups, members), possibly read-only.

        Raises:
            CommlensError: when the groups differ in size.
        """
        size = self.num_devices_per_group
        if size is None:
            msg = "expected groups of one size, found groups that differ in size"
            raise CommlensError(msg)
        return self.flattened_replica_groups().reshape(self.num_replica_groups, size)

    def members_on(self, mesh: Mesh) -> tuple[Digit, ...] | None:
        """The positions on a mesh inside every group, counted from its first member, as digits.

        Returns:
            The digits in normal form, outermost first; None where the groups do not cover the mesh once, or are not
            all alike.
        """
        if self.num_devices_per_group is None or self.num_devices != mesh.num_devices:
            return None
        layout = self.layout()
        order = mesh.order.ids
        if layout is not None and not isinstance(order, tuple):
            return members_of_layout(layout, order)
        positions = mesh.order.positions_of(self.to_array())
        return None if positions is None else members_of_array(positions)

    def same_groups(self, other: CollectiveDeviceListBase) -> bool:
        """Whether both list the same groups in the same order with the same order of members, however spelt.

        Layouts are compared as layouts, in the number of their axes; ids are looked at only where one of the lists
        holds them one by one, or where both lists are no iota.

        Raises:
            CommlensError: where ids would have to be written out, and are too many; see
                :data:`~commlens.topology.iota.EXPANSION_LIMIT`.
        """
        if self == other:
            return True
        sizes = (self.num_replica_groups, self.num_devices_per_group)
        if sizes != (other.num_replica_groups, other.num_devices_per_group):
            return False
        if None in sizes and not np.array_equal(self.group_sizes(), other.group_sizes()):
            return False
        mine, theirs = self.layout(), other.layout()
        no_iota = mine is None and theirs is None
        if not (self.is_written_out or other.is_written_out or no_iota):
            return mine == theirs
        return np.array_equal(self.flattened_replica_groups(), other.flattened_replica_groups())


def check_group_index(index: int, number: int) -> None:
    """Refuse an index of a group that does not exist.

    Raises:
        CommlensError: when the index is not in ``0..number-1``.
    """
    if not 0 <= index < number:
        msg = f"expected the index of a group, less than {number}, found {index}"
        raise CommlensError(msg)
