"""The replica group list of an instruction, in whichever of its five fields it stands.

Source: ``CollectiveDeviceListBase::FromProto`` and ``HloInstruction::CreateFromProto``, xla/hlo/ir/replica_group.cc and
xla/hlo/ir/hlo_instruction.cc. The iota list inside field 87, which jaxlib wrote from 0.4.31 to 0.8 and drops today, is
read as what it was written as.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.hlo.model import UnreadableError
from commlens.hlo.replica_group_ids import groups_of_ids
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList, MeshAxesReplicaGroupList

if TYPE_CHECKING:
    from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloInstructionProto
    from commlens.topology import DeviceList


def replica_groups_of(message: HloInstructionProto) -> DeviceList:
    """Return the replica group list of an instruction, the empty list where none is stated.

    An iota list (field 92) or mesh axes (93) come first, then the old list (49), then the newer one (87).

    Raises:
        UnreadableError: an iota list is no bijection, or a mesh or its axes are invalid.
    """
    try:
        return _replica_groups(message)
    except UnreadableError:
        raise
    except ValueError as error:
        msg = f"replica_groups cannot be read: {error}"
        raise UnreadableError(msg) from error


def _replica_groups(message: HloInstructionProto) -> DeviceList:
    stated = message.WhichOneof("replica_group_list")
    if stated == "iota_collective_device_list":
        return IotaReplicaGroupList.from_proto(message.iota_collective_device_list)
    if stated == "mesh_axes_replica_group_list":
        return MeshAxesReplicaGroupList.from_proto(message.mesh_axes_replica_group_list)
    if not message.replica_groups and message.collective_device_list.HasField("iota_replica_group_list"):
        return IotaReplicaGroupList.from_proto(message.collective_device_list.iota_replica_group_list)
    groups = message.replica_groups or message.collective_device_list.replica_groups
    if groups:
        return CollectiveDeviceList(groups)
    if not message.replica_group_ids:
        return CollectiveDeviceList(None)
    numbered = groups_of_ids(message.replica_group_ids)
    if numbered is None:
        msg = f"expected group numbers of at least 0 in replica_group_ids, found {min(message.replica_group_ids)}"
        raise UnreadableError(msg)
    return CollectiveDeviceList(numbered)
