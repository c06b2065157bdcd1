"""What a module communicates: rows, totals, explanations, expectations."""

from __future__ import annotations

from commlens.analysis.claims import Claim, claim_of, claims_of
from commlens.analysis.collective_groups import CollectiveGroups, groups_from_sharding, groups_over
from commlens.analysis.equivalence import MOST_ROUNDS, Comparison, ResultDifference, counts_of_both
from commlens.analysis.expectations import Expectation, ExpectationError, expect
from commlens.analysis.experiments import Outcome, Program
from commlens.analysis.explanation import Explanation, explain
from commlens.analysis.figures import Figures
from commlens.analysis.group_record import ReplicaGroups
from commlens.analysis.inventory import Report, report
from commlens.analysis.layout_matches import LayoutMatch, match_layouts
from commlens.analysis.limits import FULL_LIMIT, LISTED_LIMIT
from commlens.analysis.meshes import MeshLike, as_mesh, mesh_as_json, mesh_from_json, read_mesh
from commlens.analysis.participation import Counts
from commlens.analysis.proofs import MOST_DEVICES, Proof, Proofs, Scaled, prove
from commlens.analysis.row import ROW_KEYS, Row
from commlens.analysis.totals import OPCODES, Total, Totals
from commlens.analysis.unfolding import Step, Unfolding

__all__ = [
    "FULL_LIMIT",
    "LISTED_LIMIT",
    "MOST_DEVICES",
    "MOST_ROUNDS",
    "OPCODES",
    "ROW_KEYS",
    "Claim",
    "CollectiveGroups",
    "Comparison",
    "Counts",
    "Expectation",
    "ExpectationError",
    "Explanation",
    "Figures",
    "LayoutMatch",
    "MeshLike",
    "Outcome",
    "Program",
    "Proof",
    "Proofs",
    "ReplicaGroups",
    "Report",
    "ResultDifference",
    "Row",
    "Scaled",
    "Step",
    "Total",
    "Totals",
    "Unfolding",
    "as_mesh",
    "claim_of",
    "claims_of",
    "counts_of_both",
    "expect",
    "explain",
    "groups_from_sharding",
    "groups_over",
    "match_layouts",
    "mesh_as_json",
    "mesh_from_json",
    "prove",
    "read_mesh",
    "report",
]
