"""What a module communicates: rows, totals, explanations, expectations."""

from __future__ import annotations

from commlens.analysis.change_details import Detail
from commlens.analysis.changes import Moved
from commlens.analysis.checks import RULES
from commlens.analysis.checks.baseline import Baseline, Judged, read_baseline
from commlens.analysis.checks.choosing import chosen_rules, matches, rules_of
from commlens.analysis.checks.running import Problem, check
from commlens.analysis.claims import Claim, claim_of, claims_of
from commlens.analysis.collective_groups import CollectiveGroups, groups_from_sharding, groups_over
from commlens.analysis.differences import Change, ModuleDiff, TotalChange, diff
from commlens.analysis.equivalence import MOST_ROUNDS, Comparison, ResultDifference, counts_of_both, uncounted_loops
from commlens.analysis.expectation_claims import ExpectationError
from commlens.analysis.expectation_files import renewing_goldens
from commlens.analysis.expectation_programs import AnyMesh
from commlens.analysis.expectations import Expectation, expect
from commlens.analysis.experiments import Outcome, Program
from commlens.analysis.explanation import Explanation, explain
from commlens.analysis.figures import Figures
from commlens.analysis.group_record import ReplicaGroups
from commlens.analysis.hosts import Hosts, compare_hosts
from commlens.analysis.hosts_answers import FirstDifference, HostChange, HostDifference, HostPlace, ModuleOnHosts
from commlens.analysis.hosts_deadlocks import Deadlock
from commlens.analysis.hosts_survey import HostModule, HostSurvey
from commlens.analysis.inventory import Report, report
from commlens.analysis.layout_matches import LayoutMatch, match_layouts
from commlens.analysis.limits import FULL_LIMIT, LISTED_LIMIT
from commlens.analysis.logs.answers import Candidate, LogExplanation, LogMessage
from commlens.analysis.logs.explaining import explain_log
from commlens.analysis.logs.recognising import MessageKind
from commlens.analysis.logs.records import LogStream
from commlens.analysis.logs.said import Said
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
    "RULES",
    "AnyMesh",
    "Baseline",
    "Candidate",
    "Change",
    "Claim",
    "CollectiveGroups",
    "Comparison",
    "Counts",
    "Deadlock",
    "Detail",
    "Expectation",
    "ExpectationError",
    "Explanation",
    "Figures",
    "FirstDifference",
    "HostChange",
    "HostDifference",
    "HostModule",
    "HostPlace",
    "HostSurvey",
    "Hosts",
    "Judged",
    "LayoutMatch",
    "LogExplanation",
    "LogMessage",
    "LogStream",
    "MeshLike",
    "MessageKind",
    "ModuleDiff",
    "ModuleOnHosts",
    "Moved",
    "Outcome",
    "Problem",
    "Program",
    "Proof",
    "Proofs",
    "ReplicaGroups",
    "Report",
    "ResultDifference",
    "Row",
    "Said",
    "Scaled",
    "Step",
    "Total",
    "TotalChange",
    "Totals",
    "Unfolding",
    "as_mesh",
    "check",
    "chosen_rules",
    "claim_of",
    "claims_of",
    "compare_hosts",
    "counts_of_both",
    "diff",
    "expect",
    "explain",
    "explain_log",
    "groups_from_sharding",
    "groups_over",
    "match_layouts",
    "matches",
    "mesh_as_json",
    "mesh_from_json",
    "prove",
    "read_baseline",
    "read_mesh",
    "renewing_goldens",
    "report",
    "rules_of",
    "uncounted_loops",
]
