"""A replica group list as rows and answers show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlens.analysis.records import Record

if TYPE_CHECKING:
    from commlens.topology import DeviceList


@dataclass(frozen=True, slots=True, eq=False)
class ReplicaGroups(Record):
    """A replica group list as the module spells it.

    Attributes:
        form: ``"list"``, ``"iota"``, ``"mesh_axes"`` or ``"empty"``.
        text: the canonical spelling.
        num_replica_groups: number of groups.
        num_devices_per_group: devices in each group; None where they differ.
        groups: the ids as written; None where there are more than the answer lists.
    """

    form: str
    text: str
    num_replica_groups: int
    num_devices_per_group: int | None
    groups: list[list[int]] | None

    @classmethod
    def of(cls, groups: DeviceList, limit: int) -> ReplicaGroups:
        """Describe a device list, listing its ids where they are not more than ``limit``.

        Example:
            >>> from commlens.topology import IotaReplicaGroupList
            >>> dict(ReplicaGroups.of(IotaReplicaGroupList(4, 2), limit=4))["groups"] is None
            True
        """
        return cls(
            groups.form,
            str(groups),
            groups.num_replica_groups,
            groups.num_devices_per_group,
            groups.groups() if groups.num_devices <= limit else None,
        )
