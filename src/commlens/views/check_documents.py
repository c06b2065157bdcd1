"""The answer of ``check`` in every form that is no other tool's; for those see ``sarif`` and ``github``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.views.columns import Column, Table
from commlens.views.csv_cells import csv_lines
from commlens.views.json_text import to_json
from commlens.views.lines import BLANK, BOLD, DIM, Line, Span, line, paragraph, styled, wrapped
from commlens.views.markdown import markdown_prose, markdown_table
from commlens.views.words import counted, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlens.analysis import Problem
    from commlens.hlo import Place, Severity

CSV_COLUMNS: Final = ("path", "line", "rule", "severity", "instructions", "message", "module", "computation")

STYLES: Final[Mapping[Severity, str]] = MappingProxyType({"error": "bold red", "warning": "yellow", "note": "cyan"})
"""How severities are painted, the worst first."""

_INDENT: Final = "    "
_SHOWN: Final = 6


@dataclass(frozen=True, slots=True)
class CheckView:
    """What rules found in modules.

    Attributes:
        problems: the findings, module by module.
        modules: how many modules were checked.
        rules: ids of the rules that were run.
        accepted: how many findings a baseline accepts; None without one.
        gone: how many of the baseline's are no longer there.
        settings: the file that settings were taken from.
        unread: how many things could not be read.
        unread_told: whether those are among the findings, or were accepted.
    """

    problems: Sequence[Problem]
    modules: int
    rules: Sequence[str]
    accepted: int | None = None
    gone: int = 0
    settings: str | None = None
    unread: int = 0
    unread_told: bool = True

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield the findings, those that differ in their instructions alone together, and how many there are."""
        for alike in _alike(self.problems):
            yield from _entry(alike, width)
            yield BLANK
        yield line(styled(self._summary(), BOLD if self.problems else ""))
        for note in self._notes():
            yield from paragraph(note, DIM, width)

    def json(self) -> Iterator[str]:
        """Yield one JSON object, a finding to a line."""
        yield '{"schema": "commlens.check/1", "findings": ['
        for place, problem in enumerate(self.problems):
            yield (",\n" if place else "\n") + to_json(problem.as_dict())
        facts = {
            "modules": self.modules,
            "rules": list(self.rules),
            "accepted": self.accepted,
            "gone": self.gone,
            "settings": self.settings,
            "unread": self.unread,
        }
        yield ("\n" if self.problems else "") + "]" + "".join(f", {to_json(k)}: {to_json(v)}" for k, v in facts.items())
        yield "}\n"

    def csv(self) -> Iterator[str]:
        """Yield a heading and a line for each finding."""
        rows = (problem.as_dict() for problem in self.problems)
        return csv_lines(CSV_COLUMNS, ([row[column] for column in CSV_COLUMNS] for row in rows))

    def markdown(self) -> Iterator[str]:
        """Yield a table, a row for each finding, and how many there are."""
        if self.problems:
            columns = tuple(map(Column, ("where", "severity", "rule", "instructions", "message")))
            yield from markdown_table(Table(columns, [_cells(problem) for problem in self.problems]))
            yield "\n"
        yield markdown_prose(self._summary()) + "\n"
        for note in self._notes():
            yield f"\n{markdown_prose(note)}\n"

    def _summary(self) -> str:
        by_severity = Counter(problem.severity for problem in self.problems)
        found = [counted(by_severity[each], each) for each in STYLES if by_severity[each]]
        number = ", ".join(found) if found else "no findings"
        return f"{number} in {counted(self.modules, 'module')}, {counted(len(self.rules), 'rule')} tried"

    def _notes(self) -> Iterator[str]:
        if self.unread and not self.unread_told:
            yield f"{counted(self.unread, 'thing')} could not be read, of which the rules say nothing."
        if self.accepted is not None:
            gone = f"; {counted(self.gone, 'finding')} of it no longer there, make it anew" if self.gone else ""
            yield f"{counted(self.accepted, 'more finding')} accepted by the baseline{gone}."
        if self.settings is not None:
            yield f"Settings of {self.settings}."
        if self.problems:
            yield f"commlens check --explain {self.problems[0].rule.id} tells more of a rule."


def where(problem: Problem) -> str:
    """Return where to look: the file, with its line where there is one."""
    return problem.path if problem.line is None else f"{problem.path}:{problem.line}"


def _alike(problems: Sequence[Problem]) -> list[list[Problem]]:
    """Put together what one rule says in the same words of one module, in the order in which it first appears."""
    found: dict[tuple[object, ...], list[Problem]] = {}
    for problem in problems:
        key = (problem.path, problem.module, problem.rule.id, problem.severity, problem.message)
        found.setdefault(key, []).append(problem)
    return list(found.values())


def _entry(alike: Sequence[Problem], width: int | None) -> Iterator[Line]:
    """Yield the lines of findings that differ in their instructions alone."""
    first = alike[0]
    head = [styled(where(first), BOLD), styled(first.severity, STYLES[first.severity]), Span(f"[{first.rule.id}]")]
    yield tuple(part for place, span in enumerate(head) for part in ((Span(" "), span) if place else (span,)))
    yield from wrapped([Span(printable(word)) for word in first.message.split()], width, indent=_INDENT)
    places = [place for problem in alike for place in (problem.places if len(alike) == 1 else problem.places[:1])]
    yield from wrapped([styled(word, DIM) for word in _in_words(places)], width, indent=_INDENT)


def _in_words(places: Sequence[Place]) -> list[str]:
    """Name some places with their lines, and say how many more there are."""
    named = [place for place in places if place.name]
    words = [place.name if place.line is None else f"{place.name} (line {place.line})" for place in named[:_SHOWN]]
    rest = [f"and {len(named) - _SHOWN:,} more"] if len(named) > _SHOWN else []
    return [*(f"{word}," for word in words[:-1]), *words[-1:], *rest]


def _cells(problem: Problem) -> list[Span]:
    names = ", ".join(problem.instructions[:_SHOWN])
    more = f" and {len(problem.instructions) - _SHOWN:,} more" if len(problem.instructions) > _SHOWN else ""
    texts = (where(problem), problem.severity, problem.rule.id, names + more, problem.message)
    return [Span(printable(text)) for text in texts]
