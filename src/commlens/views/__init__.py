"""How answers look: terminal, JSON, CSV, Markdown. Plain text first; colours are added where there is a terminal."""

from commlens.views.check_documents import CheckView
from commlens.views.diff_documents import DiffView
from commlens.views.explain_documents import CollectiveGroupsView, ExplanationView
from commlens.views.github import github_commands
from commlens.views.hosts_documents import HostsView
from commlens.views.lines import Line, plain_text
from commlens.views.log_documents import LogView
from commlens.views.neff_documents import CCInfoView, CompileCacheView
from commlens.views.opt_documents import OptView, RunModule, RunPass
from commlens.views.pass_documents import PassListView
from commlens.views.prove_documents import ComparisonView, ProofsView
from commlens.views.ranks_answers import ModuleOnRanks
from commlens.views.ranks_documents import RanksView
from commlens.views.report_documents import ReportView
from commlens.views.rule_documents import RuleListView, RuleView, rule_section
from commlens.views.sarif import sarif_log
from commlens.views.terminal import paint
from commlens.views.view import View
from commlens.views.words import printable

__all__ = [
    "CCInfoView",
    "CheckView",
    "CollectiveGroupsView",
    "ComparisonView",
    "CompileCacheView",
    "DiffView",
    "ExplanationView",
    "HostsView",
    "Line",
    "LogView",
    "ModuleOnRanks",
    "OptView",
    "PassListView",
    "ProofsView",
    "RanksView",
    "ReportView",
    "RuleListView",
    "RuleView",
    "RunModule",
    "RunPass",
    "View",
    "github_commands",
    "paint",
    "plain_text",
    "printable",
    "rule_section",
    "sarif_log",
]
