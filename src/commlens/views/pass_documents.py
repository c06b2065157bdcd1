"""The answer of ``opt --list-passes`` in every form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from commlens.views.columns import Column, Table
from commlens.views.csv_cells import csv_lines
from commlens.views.json_text import to_json
from commlens.views.lines import BLANK, BOLD, DIM, Line, Span, line, styled, wrapped
from commlens.views.markdown import markdown_table, markdown_text
from commlens.views.words import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlens.hlo import Json, Option

_INDENT: Final = "    "


class ListedPass(Protocol):
    """A pass that one can name."""

    @property
    def number(self) -> int:
        """Its number in the registry."""
        ...

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        ...

    @property
    def options(self) -> tuple[Option, ...]:
        """Its options with their defaults."""
        ...


@dataclass(frozen=True, slots=True)
class PassListView:
    """Which passes there are.

    Attributes:
        passes: the passes by number.
        pipelines: names of passes by name of the pipeline.
    """

    passes: Sequence[ListedPass]
    pipelines: Mapping[str, Sequence[str]]

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield a paragraph for each pass, and the pipelines."""
        for each in self.passes:
            yield line(f"{each.number:>3} ", styled(each.name, BOLD))
            yield from _indented(each.summary.split(), "", width)
            yield from _indented([f"{_option(option)}," for option in each.options], DIM, width)
            yield BLANK
        for name, members in self.pipelines.items():
            yield line("--pipeline ", styled(name, BOLD))
            yield from _indented([f"{member}," for member in members], "", width)

    def json(self) -> Iterator[str]:
        """Yield one JSON object, a pass to a line."""
        yield '{"schema": "commlens.opt/1", "passes": ['
        for place, each in enumerate(self.passes):
            yield (",\n" if place else "\n") + to_json(_entry(each))
        pipelines = {name: list(members) for name, members in self.pipelines.items()}
        yield f'\n], "pipelines": {to_json(pipelines)}}}\n'

    def csv(self) -> Iterator[str]:
        """Yield a heading and a line for each pass."""
        return csv_lines(("registry_number", "name", "options", "summary"), map(_cells, self.passes))

    def markdown(self) -> Iterator[str]:
        """Yield a table, and the pipelines."""
        columns = (Column("number", "right"), Column("name"), Column("options"), Column("summary"))
        yield from markdown_table(Table(columns, [[Span(cell) for cell in _cells(each)] for each in self.passes]))
        for name, members in self.pipelines.items():
            yield f"\n{markdown_text(f'--pipeline {name}')}: {', '.join(map(markdown_text, members))}\n"


def _indented(words: Sequence[str], style: str, width: int | None) -> Iterator[Line]:
    """Set words below a name; the comma behind the last one is dropped."""
    if words:
        *first, last = (printable(word) for word in words)
        yield from wrapped([Span(word, style) for word in (*first, last.removesuffix(","))], width, indent=_INDENT)


def _option(option: Option) -> str:
    """Return an option with its default, behind which its other words stand."""
    if option.words:
        return f"{option.name}={'|'.join(option.words)}"
    return f"{option.name}={str(option.default).lower()}"


def _entry(each: ListedPass) -> dict[str, Json]:
    options: list[Json] = [
        {"name": option.name, "kind": option.kind, "default": option.default, "words": option.words}
        for option in each.options
    ]
    return {"registry_number": each.number, "name": each.name, "options": options, "summary": each.summary}


def _cells(each: ListedPass) -> list[str]:
    return [str(each.number), each.name, ", ".join(map(_option, each.options)), each.summary]
