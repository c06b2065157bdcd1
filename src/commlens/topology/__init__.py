"""Device lists, meshes and shardings as pure maths: no files, no HLO, numpy only."""

from __future__ import annotations

from commlens.topology.axes import AxisRef
from commlens.topology.comparison import replica_groups_equal, replica_groups_orthogonal
from commlens.topology.device_assignment import DeviceAssignment
from commlens.topology.device_list_text import parse_axes, parse_mesh, parse_replica_groups
from commlens.topology.device_lists import (
    CollectiveDeviceList,
    DeviceList,
    IotaReplicaGroupList,
    MeshAxesReplicaGroupList,
)
from commlens.topology.faults import Fault
from commlens.topology.group_modes import (
    CollectiveOpGroupMode,
    get_collective_op_group_mode,
    group_mode_for_opcode,
    use_global_device_ids_for,
)
from commlens.topology.iota import IotaTileAssignment
from commlens.topology.mesh import Mesh
from commlens.topology.named_sharding import NamedSharding
from commlens.topology.pairs import SourceTargetPairs, parse_source_target_pairs
from commlens.topology.participant_lists import expand_across_replicas, participant_list, participant_pairs
from commlens.topology.participants import (
    ExclusivelyCross,
    exclusively_cross,
    get_participating_devices,
    get_participating_devices_groups,
    get_participating_devices_groups_for_source_target_pairs,
    get_participating_ids,
    group_count_and_size,
    participant_counts,
)
from commlens.topology.recognise import axes_of
from commlens.topology.sharding import ShardGroup, Sharding
from commlens.topology.sharding_groups import (
    across_dims_groups,
    all_gather_groups,
    all_reduce_groups_along_sharding_dims,
    named_across_dims_groups,
    named_replication_groups,
    replication_groups,
    sharding_axes,
)
from commlens.topology.sharding_text import parse_sharding
from commlens.topology.tiles import mesh_to_tile, tile_to_mesh
from commlens.topology.verify import verify_groups, verify_pairs

__all__ = [
    "AxisRef",
    "CollectiveDeviceList",
    "CollectiveOpGroupMode",
    "DeviceAssignment",
    "DeviceList",
    "ExclusivelyCross",
    "Fault",
    "IotaReplicaGroupList",
    "IotaTileAssignment",
    "Mesh",
    "MeshAxesReplicaGroupList",
    "NamedSharding",
    "ShardGroup",
    "Sharding",
    "SourceTargetPairs",
    "across_dims_groups",
    "all_gather_groups",
    "all_reduce_groups_along_sharding_dims",
    "axes_of",
    "exclusively_cross",
    "expand_across_replicas",
    "get_collective_op_group_mode",
    "get_participating_devices",
    "get_participating_devices_groups",
    "get_participating_devices_groups_for_source_target_pairs",
    "get_participating_ids",
    "group_count_and_size",
    "group_mode_for_opcode",
    "mesh_to_tile",
    "named_across_dims_groups",
    "named_replication_groups",
    "parse_axes",
    "parse_mesh",
    "parse_replica_groups",
    "parse_sharding",
    "parse_source_target_pairs",
    "participant_counts",
    "participant_list",
    "participant_pairs",
    "replica_groups_equal",
    "replica_groups_orthogonal",
    "replication_groups",
    "sharding_axes",
    "tile_to_mesh",
    "use_global_device_ids_for",
    "verify_groups",
    "verify_pairs",
]
