"""What people ask of modules: rows, totals, explanations, checks, differences, hosts, logs, proofs, expectations."""

from __future__ import annotations

from commlens.analysis.checks import RULES
from commlens.analysis.checks.baseline import Baseline, Judged, read_baseline
from commlens.analysis.checks.problems import Problem, check
from commlens.analysis.checks.rule_selection import chosen_rules, matches, rules_of
from commlens.analysis.collective_groups import CollectiveGroups, groups_from_sharding, groups_over
from commlens.analysis.diffs.changes import Moved
from commlens.analysis.diffs.details import Detail
from commlens.analysis.diffs.module_diff import Change, ModuleDiff, TotalChange, diff
from commlens.analysis.expectations.claims import ExpectationError
from commlens.analysis.expectations.expectation import Expectation, expect
from commlens.analysis.expectations.golden_files import renewing_goldens
from commlens.analysis.expectations.programs import AnyMesh
from commlens.analysis.explanation import Explanation, explain
from commlens.analysis.figures import Figures
from commlens.analysis.hosts.answers import FirstDifference, HostChange, HostDifference, HostPlace, ModuleOnHosts
from commlens.analysis.hosts.comparison import Hosts, compare_hosts
from commlens.analysis.hosts.deadlocks import Deadlock
from commlens.analysis.hosts.survey import HostModule, HostSurvey
from commlens.analysis.layout_matches import LayoutMatch, match_layouts
from commlens.analysis.limits import FULL_LIMIT, LISTED_LIMIT
from commlens.analysis.logs.answers import Candidate, LogExplanation, LogMessage
from commlens.analysis.logs.explaining import explain_log
from commlens.analysis.logs.recognising import MessageKind
from commlens.analysis.logs.records import LogStream
from commlens.analysis.logs.said import Said
from commlens.analysis.meshes import MeshLike, as_mesh, mesh_as_json, mesh_from_json, read_mesh
from commlens.analysis.participation import Counts
from commlens.analysis.proofs.claims import Claim, claim_of, claims_of
from commlens.analysis.proofs.equivalence import (
    MOST_ROUNDS,
    Comparison,
    ResultDifference,
    counts_of_both,
    uncounted_loops,
)
from commlens.analysis.proofs.programs import Outcome, Program
from commlens.analysis.proofs.proof import MOST_DEVICES, Proof, Proofs, Scaled, prove
from commlens.analysis.replica_groups import ReplicaGroups
from commlens.analysis.reports import Report, report
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
