"""The answers of ``prove`` in every form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.views.columns import Column, Table, laid_out
from commlens.views.csv_cells import csv_lines, plain_value
from commlens.views.json_text import to_json
from commlens.views.lines import BLANK, BOLD, DIM, WARNING, Line, Span, paragraph, wrapped
from commlens.views.markdown import markdown_prose, markdown_table, markdown_text
from commlens.views.words import counted, cut, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis import Comparison, Proof, Proofs, ResultDifference

_MOST_GROUPS: Final = 60
_INDENT: Final = "     "

CSV_COLUMNS: Final = (
    *("name", "module", "opcode", "group_mode", "groups", "replicas", "partitions"),
    *("predicted", "observed", "agree", "ordered", "why", "scaled", "ran"),
)
"""Columns of the CSV form: the keys of a collective but ``names``."""


@dataclass(frozen=True, slots=True)
class ProofsView:
    """The answer about groups.

    Attributes:
        proofs: the answer.
    """

    proofs: Proofs

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield a table of collectives, below each what does not agree or was not run as it is."""
        proofs = self.proofs.collectives
        if proofs:
            table = _table(proofs)
            details = [list(_details(proof, width, sides=len(proofs) == 1)) for proof in proofs]
            yield from laid_out(Table(table.columns, table.rows, details), width)
            yield BLANK
        yield from paragraph(_summary(self.proofs), BOLD, width)

    def json(self) -> Iterator[str]:
        """Yield one JSON object on one line."""
        yield to_json({"schema": "commlens.prove/1", **self.proofs.as_dict()}) + "\n"

    def csv(self) -> Iterator[str]:
        """Yield a heading and one line per collective."""
        return csv_lines(CSV_COLUMNS, ([proof[column] for column in CSV_COLUMNS] for proof in self.proofs.collectives))

    def markdown(self) -> Iterator[str]:
        """Yield a table of collectives and a list of what does not agree or was not run."""
        yield from markdown_table(_table(self.proofs.collectives))
        yield f"\n{markdown_prose(_summary(self.proofs))}\n"
        for proof in self.proofs.collectives:
            for label, text in _facts(proof, sides=False):
                yield f"\n- {markdown_text(proof.name)}: {label} {markdown_text(text)}\n"


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """The answer about two modules.

    Attributes:
        comparison: the answer.
    """

    comparison: Comparison

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield a table of results."""
        comparison = self.comparison
        if comparison.outputs:
            yield from laid_out(_results_table(comparison), width)
            yield BLANK
        yield from paragraph(_verdict(comparison), BOLD, width)
        for note in comparison.notes:
            yield from paragraph(f"note: {printable(note)}", DIM, width)

    def json(self) -> Iterator[str]:
        """Yield one JSON object on one line."""
        yield to_json({"schema": "commlens.prove/1", **self.comparison.as_dict()}) + "\n"

    def csv(self) -> Iterator[str]:
        """Yield a heading and one line per result."""
        rows = ([output.index, output.max_ulp, output.differs, output.finite] for output in self.comparison.outputs)
        return csv_lines(("index", "max_ulp", "differs", "finite"), rows)

    def markdown(self) -> Iterator[str]:
        """Yield a table of results."""
        yield from markdown_table(_results_table(self.comparison))
        yield f"\n{markdown_prose(_verdict(self.comparison))}\n"
        for note in self.comparison.notes:
            yield f"\n- note: {markdown_text(note)}\n"


def _table(proofs: tuple[Proof, ...]) -> Table:
    columns = (
        Column("result"),
        Column("collective", least=12),
        Column("opcode"),
        Column("mode"),
        Column("groups", least=12),
    )
    rows = [
        (
            _result(proof),
            Span(_name(proof)),
            Span(proof.opcode),
            Span(proof.group_mode or ""),
            Span(cut(printable(proof.groups or ""), _MOST_GROUPS)),
        )
        for proof in proofs
    ]
    return Table(columns, rows)


def _result(proof: Proof) -> Span:
    match proof.agree:
        case True:
            return Span("agrees")
        case False:
            return Span("differs", WARNING)
        case None:
            return Span("not provable", DIM)


def _name(proof: Proof) -> str:
    others = len(proof.names) - 1
    return printable(proof.name) + (f" and {others:,} more" if others else "")


def _details(proof: Proof, width: int | None, *, sides: bool) -> Iterator[Line]:
    for label, text in _facts(proof, sides=sides):
        words = [Span(f"{label}:", DIM), *(Span(printable(word)) for word in text.split())]
        yield from wrapped(words, width, indent=_INDENT)


def _facts(proof: Proof, *, sides: bool) -> Iterator[tuple[str, str]]:
    """Yield what has to be said of a proof beside its result, each with a label.

    Args:
        proof: the proof.
        sides: whether to show both sides even where they agree.
    """
    if proof.scaled is not None:
        scaled, devices = proof.scaled, proof.replicas * proof.partitions
        fewer = scaled.replicas * scaled.partitions
        layout = f"{scaled.replicas} x {scaled.partitions} (replicas x partitions)"
        yield "scaled", f"{scaled.groups} on {layout}, {fewer} devices in place of {devices:,}"
    if proof.agree is False or (sides and proof.agree):
        yield "predicted", plain_value(proof.predicted)
        yield "observed", plain_value(proof.observed)
    if proof.why is not None:
        yield "why", proof.why


def _summary(proofs: Proofs) -> str:
    verdicts = [proof.agree for proof in proofs.collectives]
    if not verdicts:
        return "no collectives: nothing was proved"
    parts = [f"{verdicts.count(True):,} agree"]
    if False in verdicts:
        parts.append(f"{verdicts.count(False):,} {'differs' if verdicts.count(False) == 1 else 'differ'}")
    if None in verdicts:
        parts.append(f"{verdicts.count(None):,} not provable")
    different = counted(len(verdicts), "different collective")
    return f"{different}: {', '.join(parts)}"


def _results_table(comparison: Comparison) -> Table:
    columns = (Column("result", "right"), Column("max ulp", "right"), Column(""))
    rows = [
        (Span(str(output.index)), Span("" if output.max_ulp is None else f"{output.max_ulp:,}"), _remark(output))
        for output in comparison.outputs
    ]
    return Table(columns, rows)


def _remark(output: ResultDifference) -> Span:
    if output.differs is not None:
        return Span(f"differs: {printable(output.differs)}", WARNING)
    return Span("" if output.finite else "no finite number in it: this shows nothing", WARNING)


def _verdict(comparison: Comparison) -> str:
    counts = comparison.counts
    where = f"on {counted(counts.replicas * counts.partitions, 'device')}"
    differing = sum(output.differs is not None for output in comparison.outputs)
    if differing:
        return f"the modules differ {where}: {differing:,} of {counted(len(comparison.outputs), 'result')}"
    if comparison.agree is None:
        return f"the modules show nothing {where}: there is no finite number in any result"
    void = sum(not output.finite for output in comparison.outputs)
    told = f", {void:,} of which {'shows' if void == 1 else 'show'} nothing" if void else ""
    return f"the modules agree {where}: {counted(len(comparison.outputs), 'result')}{told}"
