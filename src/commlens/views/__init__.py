"""How answers look: terminal, JSON, CSV, Markdown. Plain text first; colours are added where there is a terminal."""

from commlens.views.explain_documents import CollectiveGroupsView, ExplanationView
from commlens.views.lines import Line, plain_text
from commlens.views.report_documents import ReportView
from commlens.views.terminal import paint
from commlens.views.view import View
from commlens.views.words import printable

__all__ = [
    "CollectiveGroupsView",
    "ExplanationView",
    "Line",
    "ReportView",
    "View",
    "paint",
    "plain_text",
    "printable",
]
