"""What a module communicates: rows, totals, explanations, expectations."""

from __future__ import annotations

from commlens.analysis.collective_groups import CollectiveGroups, groups_from_sharding, groups_over
from commlens.analysis.expectations import Expectation, ExpectationError, expect
from commlens.analysis.explanation import Explanation, explain
from commlens.analysis.figures import Figures
from commlens.analysis.group_record import ReplicaGroups
from commlens.analysis.inventory import Report, report
from commlens.analysis.limits import FULL_LIMIT, LISTED_LIMIT
from commlens.analysis.meshes import MeshLike, as_mesh, mesh_as_json, mesh_from_json, read_mesh
from commlens.analysis.row import ROW_KEYS, Row
from commlens.analysis.totals import OPCODES, Total, Totals
from commlens.analysis.unfolding import Step, Unfolding

__all__ = [
    "FULL_LIMIT",
    "LISTED_LIMIT",
    "OPCODES",
    "ROW_KEYS",
    "CollectiveGroups",
    "Expectation",
    "ExpectationError",
    "Explanation",
    "Figures",
    "MeshLike",
    "ReplicaGroups",
    "Report",
    "Row",
    "Step",
    "Total",
    "Totals",
    "Unfolding",
    "as_mesh",
    "expect",
    "explain",
    "groups_from_sharding",
    "groups_over",
    "mesh_as_json",
    "mesh_from_json",
    "read_mesh",
    "report",
]
