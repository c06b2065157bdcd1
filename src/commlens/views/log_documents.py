"""The answer of ``explain-log`` in every form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.views.csv_cells import csv_lines
from commlens.views.json_text import to_json
from commlens.views.log_table import by_message, candidate_table, log_lines, notes_of, said_of, summary_of
from commlens.views.markdown import markdown_prose, markdown_table, markdown_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commlens.analysis import Candidate, LogExplanation
    from commlens.views.lines import Line

CSV_COLUMNS: Final = (
    *("message", "message_line", "count", "kind", "match"),
    *("path", "module", "name", "opcode", "computation", "line", "axes", "peers", "channel_id", "why"),
)
"""Columns of the CSV form: a message, and a collective that it can be about; one that has none has one line too."""


@dataclass(frozen=True, slots=True)
class LogView:
    """The answer of ``explain-log``.

    Attributes:
        answer: what the log refers to.
    """

    answer: LogExplanation

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield the lines of the table."""
        return log_lines(self.answer, width)

    def json(self) -> Iterator[str]:
        """Yield one JSON object, a candidate or message to a line; it never stands in memory as a whole."""
        answer = self.answer
        yield f'{{"schema": "commlens.explain-log/1", "found": {to_json(answer.found)}, "candidates": ['
        yield from _lines(candidate.as_dict() for candidate in answer.candidates)
        yield '], "messages": ['
        yield from _lines(message.as_dict() for message in answer.messages)
        modules = [
            {"path": report.module.path, "name": report.module.name, "collectives": len(report.collectives)}
            for report in answer.reports
        ]
        yield f'], "modules": {to_json(modules)}, "notes": {to_json(list(answer.notes))}}}\n'

    def csv(self) -> Iterator[str]:
        """Yield a heading and a line for each message and candidate."""
        return csv_lines(CSV_COLUMNS, self._rows())

    def _rows(self) -> Iterator[list[object]]:
        for position, (message, candidates) in enumerate(
            zip(self.answer.messages, by_message(self.answer), strict=True)
        ):
            facts: list[object] = [position, message.line, message.count, message.kind]
            for candidate in candidates:
                yield [*facts, *_candidate_cells(candidate)]
            if not candidates:
                yield [*facts, *[None] * (len(CSV_COLUMNS) - len(facts))]

    def markdown(self) -> Iterator[str]:
        """Yield the tables as Markdown."""
        answer = self.answer
        yield f"{markdown_prose(summary_of(answer))}\n"
        for message, candidates in zip(answer.messages, by_message(answer), strict=True):
            times = "" if message.count == 1 else f", {message.count:,} times"
            yield f"\n### Line {message.line:,}: {markdown_text(message.kind)}{times}\n"
            yield f"\n{markdown_prose(said_of(message))}\n"
            if candidates:
                yield "\n"
                yield from markdown_table(candidate_table(candidates, answer, None, in_one_line=True))
            for note, _ in notes_of(message, answer):
                yield f"\n{markdown_prose(note)}\n"
        for note in answer.notes:
            yield f"\n{markdown_prose(note)}\n"


def _lines(values: Iterable[object]) -> Iterator[str]:
    place = 0
    for place, value in enumerate(values, start=1):
        yield ("\n" if place == 1 else ",\n") + to_json(value)
    if place:
        yield "\n"


def _candidate_cells(candidate: Candidate) -> list[object]:
    axes = "none" if candidate.axes == [] else candidate.axes  # an empty cell means "not known"
    return [
        *(candidate.match, candidate.path, candidate.module, candidate.name, candidate.opcode),
        *(candidate.row.computation, candidate.line, axes, candidate.peers, candidate.row.channel_id, candidate.why),
    ]
