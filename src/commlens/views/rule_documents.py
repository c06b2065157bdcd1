"""The answer of ``check --explain`` and ``--list-rules`` in every form."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.views.columns import Column, Table, laid_out
from commlens.views.csv_cells import csv_lines
from commlens.views.json_text import to_json
from commlens.views.lines import BLANK, BOLD, DIM, Line, Span, line, paragraph, styled
from commlens.views.markdown import markdown_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.hlo import Example, Rule

CSV_COLUMNS: Final = ("rule", "severity", "title", "targets", "documentation", "source")

_INDENT: Final = "    "
_WIDTH: Final = 120


@dataclass(frozen=True, slots=True)
class RuleView:
    """Rules told in full.

    Attributes:
        rules: the rules.
    """

    rules: Sequence[Rule]

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield what each rule says, and its examples."""
        for place, rule in enumerate(self.rules):
            if place:
                yield BLANK
            yield from self._told(rule, width)

    @staticmethod
    def _told(rule: Rule, width: int | None) -> Iterator[Line]:
        yield line(styled(rule.id, BOLD), f" ({rule.severity}): {rule.title}")
        yield BLANK
        yield from paragraph(rule.documentation, "", width)
        yield BLANK
        if rule.targets is not None:
            yield from paragraph(f"Only with --target {_targets(rule)}.", "", width)
        yield from paragraph(f"Source: {rule.source}.", DIM, width)
        for title, example in _examples(rule):
            yield BLANK
            yield line(title)
            yield from (line(f"{_INDENT}{text}") for text in example.text.splitlines())

    def json(self) -> Iterator[str]:
        """Yield one JSON object."""
        yield to_json({"schema": "commlens.check/1", "rules": [_as_dict(rule) for rule in self.rules]}) + "\n"

    def csv(self) -> Iterator[str]:
        """Yield a heading and a line for each rule."""
        return csv_lines(CSV_COLUMNS, map(_row, self.rules))

    def markdown(self) -> Iterator[str]:
        """Yield a section for each rule."""
        for place, rule in enumerate(self.rules):
            yield from ["\n"] if place else []
            yield from rule_section(rule)


@dataclass(frozen=True, slots=True)
class RuleListView:
    """The rules there are.

    Attributes:
        rules: the rules.
    """

    rules: Sequence[Rule]

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield a line for each rule."""
        yield from laid_out(self._table(), width)

    def json(self) -> Iterator[str]:
        """Yield one JSON object, a rule to a line."""
        yield '{"schema": "commlens.check/1", "rules": ['
        for place, rule in enumerate(self.rules):
            yield (",\n" if place else "\n") + to_json(_as_dict(rule))
        yield "\n]}\n"

    def csv(self) -> Iterator[str]:
        """Yield a heading and a line for each rule."""
        return csv_lines(CSV_COLUMNS, map(_row, self.rules))

    def markdown(self) -> Iterator[str]:
        """Yield a table."""
        return markdown_table(self._table())

    def _table(self) -> Table:
        columns = (Column("rule"), Column("severity"), Column("targets"), Column("what is wrong", least=20))
        rows = [
            [Span(rule.id, BOLD), Span(rule.severity), Span(_targets(rule) or "all"), Span(rule.title)]
            for rule in self.rules
        ]
        return Table(columns, rows)


def rule_section(rule: Rule) -> Iterator[str]:
    """Yield the section on a rule, in Markdown, line by line; what a rule says of itself is text without markup."""
    yield f"### {rule.id}\n\n"
    only = "" if rule.targets is None else f", only with `--target` {_targets(rule)}"
    yield f"**{rule.title}** ({rule.severity}{only})\n\n"
    yield from (f"{text}\n" for text in textwrap.wrap(rule.documentation, _WIDTH, break_on_hyphens=False))
    yield f"\nSource: {rule.source}.\n"
    for title, example in _examples(rule):
        yield f"\n{title}\n\n```text\n{example.text.rstrip()}\n```\n"


def _examples(rule: Rule) -> Iterator[tuple[str, Example]]:
    for title, example in (("Found in", rule.bad), ("Not found in", rule.good)):
        options = _options(example)
        yield f"{title}{f' (with {options})' if options else ''}:", example


def _options(example: Example) -> str:
    """Return the options that an example is to be checked with."""
    deployment = example.deployment
    stated = (
        ("--target", deployment.target),
        ("--lnc", deployment.lnc),
        ("--local-world-size", deployment.ranks_per_node),
    )
    return " ".join(f"{option} {value}" for option, value in stated if value is not None)


def _targets(rule: Rule) -> str:
    return ", ".join(sorted(rule.targets or ()))


def _as_dict(rule: Rule) -> dict[str, object]:
    return {
        "rule": rule.id,
        "severity": rule.severity,
        "title": rule.title,
        "targets": None if rule.targets is None else sorted(rule.targets),
        "documentation": rule.documentation,
        "source": rule.source,
        "bad": rule.bad.text,
        "good": rule.good.text,
    }


def _row(rule: Rule) -> list[object]:
    row = _as_dict(rule)
    return [row[column] for column in CSV_COLUMNS]
