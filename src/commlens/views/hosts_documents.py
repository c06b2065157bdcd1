"""The answer of ``hosts`` in every form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.views.csv_cells import csv_lines
from commlens.views.hosts_table import change_table, hosts_lines, notes_of, position_table, summary_of, verdict_of
from commlens.views.json_text import to_json
from commlens.views.markdown import markdown_prose, markdown_table, markdown_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis import Hosts
    from commlens.views.lines import Line

CSV_COLUMNS: Final = (
    *("module", "path", "kind", "opcode", "what"),
    *("here", "here_computation", "here_line"),
    *("usual", "usual_computation", "usual_line", "usual_path"),
)
"""Columns of the CSV form: a host, what it does in another way, and where."""


@dataclass(frozen=True, slots=True)
class HostsView:
    """The answer of ``hosts``.

    Attributes:
        hosts: how the hosts compare.
    """

    hosts: Hosts

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield the lines of the table."""
        return hosts_lines(self.hosts, width)

    def json(self) -> Iterator[str]:
        """Yield one JSON object, a module to a line."""
        answer = self.hosts.as_dict()
        modules = answer.pop("modules")
        yield f'{{"schema": "commlens.hosts/1", {to_json(answer)[1:-1]}, "modules": ['
        for place, module in enumerate(self.hosts.modules if modules else ()):
            yield (",\n" if place else "\n") + to_json(module.as_dict())
        yield "\n]}\n"

    def csv(self) -> Iterator[str]:
        """Yield a heading and a line for each thing that a host does in another way than most others."""
        return csv_lines(CSV_COLUMNS, self._rows())

    def _rows(self) -> Iterator[list[object]]:
        for module in self.hosts.modules:
            for difference in module.differences:
                for path in difference.paths:
                    for change in difference.changes:
                        here, usual = (
                            [None] * 3 if each is None else [each.name, each.computation, each.line]
                            for each in (change.here, change.usual)
                        )
                        facts = (module.module, path, change.kind, change.opcode, change.what)
                        yield [*facts, *here, *usual, difference.usual]

    def markdown(self) -> Iterator[str]:
        """Yield the tables as Markdown."""
        yield f"{markdown_prose(summary_of(self.hosts))}\n"
        for module in self.hosts.modules:
            yield f"\n### {markdown_text(module.module)}\n\n{markdown_prose(verdict_of(module))}\n"
            if module.first_difference is not None:
                yield "\n"
                yield from markdown_table(position_table(module.first_difference))
            for difference in module.differences:
                yield "\n"
                yield from markdown_table(change_table(difference, None, in_one_line=True))
            for note, _ in notes_of(module):
                yield f"\n{markdown_prose(note)}\n"
        for note in self.hosts.notes:
            yield f"\n{markdown_prose(note)}\n"
