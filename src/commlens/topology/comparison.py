"""Comparing replica group lists by the groups they hold.

Source of the semantics: xla/service/collective_ops_utils.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlens.topology.device_lists import CollectiveDeviceList, IotaReplicaGroupList, MeshAxesReplicaGroupList

if TYPE_CHECKING:
    from commlens.topology.device_lists import DeviceList
    from commlens.topology.explicit_groups import GroupsLike


def replica_groups_equal(a: DeviceList | GroupsLike, b: DeviceList | GroupsLike) -> bool:
    """Whether two lists hold the same groups; the order of groups and members counts, the spelling does not.

    Raises:
        CommlensError: for groups whose ids are no integers of 64 bits, and for lists that no iota says and that are too
            large to write out, see :data:`~commlens.topology.iota.EXPANSION_LIMIT`.

    Source: ``ReplicaGroupsEqual``.

    Example:
        >>> replica_groups_equal(IotaReplicaGroupList(2, 2), [[0, 1], [2, 3]])
        True
        >>> replica_groups_equal([[0, 1], [2, 3]], [[2, 3], [0, 1]])
        False
    """
    return as_device_list(a).same_groups(as_device_list(b))


def replica_groups_orthogonal(a: DeviceList | GroupsLike, b: DeviceList | GroupsLike) -> bool:
    """Whether the groups of one list are the columns of the other, in order.

    Uneven groups are not, and lists without groups are not.

    Raises:
        CommlensError: for groups whose ids are no integers of 64 bits, and for lists that no iota says and that are too
            large to write out, see :data:`~commlens.topology.iota.EXPANSION_LIMIT`.

    Source: ``ReplicaGroupsOrthogonal``.

    Example:
        >>> replica_groups_orthogonal([[0, 1], [2, 3]], [[0, 2], [1, 3]])
        True
    """
    first, second = as_device_list(a), as_device_list(b)
    rows = (first.num_replica_groups, first.num_devices_per_group)
    if not all(rows) or rows != (second.num_devices_per_group, second.num_replica_groups):
        return False
    mine, theirs = first.layout(), second.layout()
    if mine is not None and theirs is not None:
        return mine.transpose((1, 0)) == theirs
    return np.array_equal(first.to_array().T, second.to_array())


def as_device_list(groups: DeviceList | GroupsLike) -> DeviceList:
    """Take a device list, or groups as a nested sequence of ids."""
    if isinstance(groups, CollectiveDeviceList | IotaReplicaGroupList | MeshAxesReplicaGroupList):
        return groups
    return CollectiveDeviceList(groups)
