"""The canonical form of replica group lists: those that say the same are equal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.topology import CollectiveDeviceList

if TYPE_CHECKING:
    from commlens.topology import DeviceList


def canonical_groups(groups: DeviceList) -> DeviceList:
    """Return a group list as an iota where one says it, else written out.

    Lists with the same groups in the same order, members in theirs, give equal values, which can be keys.

    Example:
        >>> from commlens.topology import IotaReplicaGroupList
        >>> columns = IotaReplicaGroupList(2, 2, (2, 2), (1, 0))
        >>> canonical_groups(CollectiveDeviceList([[0, 2], [1, 3]])) == canonical_groups(columns)
        True
    """
    iota = groups.to_iota()
    return CollectiveDeviceList(groups.groups()) if iota is None else iota
