"""The answer of ``opt`` in every form: what passes did to a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from commlens.views.columns import Column, Table, laid_out
from commlens.views.csv_cells import csv_lines
from commlens.views.json_text import to_json
from commlens.views.lines import BLANK, BOLD, DIM, Line, Span, line, paragraph, styled, wrapped
from commlens.views.markdown import markdown_prose, markdown_table, markdown_text
from commlens.views.words import counted, cut, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlens.hlo import Json, LeftAlone, PassResult

CSV_COLUMNS: Final = ("hlo_module", "name", "pass", "changed", "modified", "found", "stats", "warnings")

_COLUMNS: Final = (Column("pass"), Column("changed"), Column("modified"))
_INDENT: Final = "    "
_SHOWN: Final = 64
_LEGEND: Final = (
    "changed: what the documented pass reports; modified: whether the module really differs. --format json tells in "
    "full what happened."
)


@dataclass(frozen=True, slots=True)
class RunPass:
    """What a pass did to a module, without the modules before and after, which may be large.

    Attributes:
        spec: the pass as text.
        name: its name.
        changed: what the documented pass reports.
        modified: whether the module really differs.
        found: what a pass that only looks for something found, else None.
        stats: what happened in detail.
        facts: the same in a few words each.
        warnings: sentences about what the documented behaviour may break.
        left_alone: what it could not understand and left as it was.
    """

    spec: str
    name: str
    changed: bool
    modified: bool
    found: bool | None
    stats: Mapping[str, Json]
    facts: tuple[str, ...]
    warnings: tuple[str, ...]
    left_alone: tuple[LeftAlone, ...]

    @classmethod
    def of(cls, spec: str, result: PassResult) -> Self:
        """Take what there is to show from a run."""
        return cls(
            spec=spec,
            name=result.name,
            changed=result.changed,
            modified=result.modified,
            found=result.found,
            stats=result.stats,
            facts=result.facts,
            warnings=result.warnings,
            left_alone=result.left_alone,
        )


@dataclass(frozen=True, slots=True)
class RunModule:
    """A module and the passes that ran on it.

    Attributes:
        name: the module's name.
        runs: the passes, in order.
    """

    name: str
    runs: Sequence[RunPass]


@dataclass(frozen=True, slots=True)
class OptView:
    """What passes did to a file.

    Attributes:
        source: the file that was read.
        target: the file that was written.
        modules: its modules, in order.
    """

    source: str
    target: str
    modules: Sequence[RunModule]

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield the lines of the table, a line for each pass."""
        yield from wrapped([styled(self.target, BOLD), *(Span(word) for word in self._summary().split())], width)
        for module in self.modules:
            yield BLANK
            if len(self.modules) > 1:
                yield line("module ", styled(cut(printable(module.name), _SHOWN), BOLD))
            yield from laid_out(_table(module.runs, width), width)
        yield BLANK
        yield from paragraph(_LEGEND, DIM, width)

    def json(self) -> Iterator[str]:
        """Yield one JSON object, a pass to a line."""
        head = to_json({"schema": "commlens.opt/1", "module": self.target, "modified": self._modified() > 0})
        yield head.removesuffix("}") + ', "passes": ['
        entries = ((module, run) for module in self.modules for run in module.runs)
        for place, (module, run) in enumerate(entries):
            yield (",\n" if place else "\n") + to_json(_entry(module, run))
        yield "\n]}\n"

    def csv(self) -> Iterator[str]:
        """Yield a heading and a line for each pass."""
        entries = (_entry(module, run) for module in self.modules for run in module.runs)
        rows = ({**entry, "stats": to_json(entry["stats"])} for entry in entries)
        return csv_lines(CSV_COLUMNS, ([row.get(column) for column in CSV_COLUMNS] for row in rows))

    def markdown(self) -> Iterator[str]:
        """Yield a table for each module."""
        yield f"### {markdown_text(self.target)}\n\n{markdown_prose(self._summary())}\n"
        for module in self.modules:
            yield f"\nmodule {markdown_text(module.name)}\n\n" if len(self.modules) > 1 else "\n"
            yield from markdown_table(_full_table(module.runs))

    def _modified(self) -> int:
        return sum(run.modified for module in self.modules for run in module.runs)

    def _summary(self) -> str:
        """Say what the product is."""
        ran = sum(len(module.runs) for module in self.modules)
        modified = (
            f"modified by {self._modified()} of {counted(ran, 'pass', 'passes')}" if self._modified() else "unmodified"
        )
        return f"is {printable(self.source)}, {modified}"


def _entry(module: RunModule, run: RunPass) -> dict[str, Json]:
    """Return a pass's entry in the JSON form; ``found`` is there only where a pass looks for something."""
    found: dict[str, Json] = {} if run.found is None else {"found": run.found}
    return {
        "name": run.name,
        "changed": run.changed,
        "modified": run.modified,
        **found,
        "stats": run.stats,
        "warnings": run.warnings,
        "pass": run.spec,
        "hlo_module": module.name,
    }


def _table(runs: Sequence[RunPass], width: int | None) -> Table:
    """Return a table with what happened below each pass, wrapped, for it has no usual length."""
    details = [
        list(wrapped([Span(printable(fact)) for fact in _joined(_facts(run))], width, indent=_INDENT)) for run in runs
    ]
    return Table(_COLUMNS, [_cells(run) for run in runs], details)


def _full_table(runs: Sequence[RunPass]) -> Table:
    """Return a table with what happened in a column."""
    columns = (*_COLUMNS, Column("what happened"))
    return Table(columns, [[*_cells(run), Span(printable(" ".join(_joined(_facts(run)))))] for run in runs])


def _cells(run: RunPass) -> list[Span]:
    changed, modified = ("yes" if value else "no" for value in (run.changed, run.modified))
    return [Span(printable(run.spec), BOLD), Span(changed), Span(modified)]


def _facts(run: RunPass) -> list[str]:
    found = [] if run.found is None else ["found" if run.found else "not found"]
    return [*found, *run.facts, *([f"left alone {len(run.left_alone)}"] if run.left_alone else [])]


def _joined(facts: Sequence[str]) -> list[str]:
    """Put a comma behind every fact but the last."""
    return [*(f"{fact}," for fact in facts[:-1]), *facts[-1:]]
