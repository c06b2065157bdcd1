"""The answers of ``explain`` and ``groups`` in every form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlens.views.csv_cells import csv_lines, plain_value
from commlens.views.explain_table import collective_groups_lines, explanation_lines
from commlens.views.json_text import to_json
from commlens.views.markdown import markdown_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis import CollectiveGroups, Explanation
    from commlens.views.lines import Line


@dataclass(frozen=True, slots=True)
class ExplanationView:
    """The answer of ``explain``.

    Attributes:
        explanation: the answer.
        counts: replicas and partitions, where they are known.
    """

    explanation: Explanation
    counts: tuple[int, int] | None = None

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield the lines of the table view."""
        return explanation_lines(self.explanation, width, self.counts)

    def json(self) -> Iterator[str]:
        """Yield one JSON object on one line."""
        return _json("explain", self.explanation)

    def csv(self) -> Iterator[str]:
        """Yield a heading and one line."""
        return _csv(self.explanation)

    def markdown(self) -> Iterator[str]:
        """Yield a table of keys and values."""
        return _markdown(self.explanation)


@dataclass(frozen=True, slots=True)
class CollectiveGroupsView:
    """The answer of ``groups``.

    Attributes:
        groups: the answer.
    """

    groups: CollectiveGroups

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield the attributes to paste, then the lines of the table view."""
        return collective_groups_lines(self.groups, width)

    def json(self) -> Iterator[str]:
        """Yield one JSON object on one line."""
        return _json("groups", self.groups)

    def csv(self) -> Iterator[str]:
        """Yield a heading and one line."""
        return _csv(self.groups)

    def markdown(self) -> Iterator[str]:
        """Yield a table of keys and values."""
        return _markdown(self.groups)


def _json(command: str, explanation: Explanation) -> Iterator[str]:
    yield to_json({"schema": f"commlens.{command}/1", **explanation.as_dict()}) + "\n"


def _csv(explanation: Explanation) -> Iterator[str]:
    values = explanation.as_dict()
    return csv_lines(list(values), [list(values.values())])


def _markdown(explanation: Explanation) -> Iterator[str]:
    yield "| key | value |\n| --- | --- |\n"
    for key, value in explanation.as_dict().items():
        yield f"| {markdown_text(key)} | {markdown_text(plain_value(value))} |\n"
