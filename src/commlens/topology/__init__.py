"""Device lists, meshes and shardings as pure maths: no files, no HLO, numpy only."""

from __future__ import annotations

from commlens.topology.axes import AxisRef
from commlens.topology.comparison import replica_groups_equal, replica_groups_orthogonal
from commlens.topology.device_lists import (
    CollectiveDeviceList,
    DeviceList,
    IotaReplicaGroupList,
    MeshAxesReplicaGroupList,
)
from commlens.topology.grammar import parse_axes, parse_mesh, parse_replica_groups
from commlens.topology.iota import IotaTileAssignment
from commlens.topology.mesh import Mesh
from commlens.topology.recognise import axes_of

__all__ = [
    "AxisRef",
    "CollectiveDeviceList",
    "DeviceList",
    "IotaReplicaGroupList",
    "IotaTileAssignment",
    "Mesh",
    "MeshAxesReplicaGroupList",
    "axes_of",
    "parse_axes",
    "parse_mesh",
    "parse_replica_groups",
    "replica_groups_equal",
    "replica_groups_orthogonal",
]
