"""The table of ``diff``: what changed, at a glance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.views.alike import SHOWN
from commlens.views.columns import Column, Table, laid_out
from commlens.views.lines import BLANK, BOLD, DIM, WARNING, Line, Span, line, paragraph, styled, wrapped
from commlens.views.sentence_rows import SentenceRow, sentence_table
from commlens.views.words import UNKNOWN, byte_size, counted, cut, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from commlens.analysis import Change, ModuleDiff, Report, Row, Total

_STYLES: Final[Mapping[str, str]] = MappingProxyType(
    {"changed": "yellow", "removed": "red", "added": "green", "order": "magenta", "spelling": "dim"}
)
_NOBODY: Final = "-"
_SHOWN_AXES: Final = 40
_CHANNEL: Final = "channel_id"


@dataclass(frozen=True, slots=True)
class _Alike:
    """Changes that differ in their names and channels alone.

    Attributes:
        changes: the changes, in order.
        what: what differs, in words.
    """

    changes: Sequence[Change]
    what: str

    @property
    def first(self) -> Change:
        """The first of them."""
        return self.changes[0]


def diff_lines(diff: ModuleDiff, width: int | None) -> Iterator[Line]:
    """Yield the table view of a comparison.

    Args:
        diff: the comparison.
        width: columns of the terminal, None for as many as it takes.
    """
    for word, report in (("before", diff.before), ("after", diff.after)):
        yield from wrapped(_heading(word, report), width)
    yield BLANK
    yield from paragraph(summary_of(diff), BOLD, width)
    if diff.changes:
        yield BLANK
        yield from laid_out(change_table(diff.changes, width), width)
    totals = totals_change_table(diff)
    if totals.rows:
        yield BLANK
        yield line(styled("totals that differ, in one run of the entry computation", BOLD))
        yield from laid_out(totals, width)
    for note, style in notes_of(diff):
        yield BLANK
        yield from paragraph(note, style, width)


def summary_of(diff: ModuleDiff) -> str:
    """Say in one sentence how two modules compare."""
    numbers = Counter(change.kind for change in diff.changes)
    spelled = numbers.pop("spelling", 0)
    also = f"{counted(spelled, 'collective')} spelled in another way"
    if numbers:
        parts = [f"{numbers[kind]:,} {kind}" for kind in ("changed", "removed", "added") if numbers[kind]]
        if numbers["order"]:
            parts.append(f"another order in {counted(numbers['order'], 'place')}")
        return f"the communication differs: {', '.join(parts)}" + (f"; {also}" if spelled else "")
    if diff.same_communication is None:
        said = "nothing differs in what could be read; whether the communication is the same cannot be said"
    else:
        said = "the communication is the same"
    return said + (f"; {also}" if spelled else "")


def notes_of(diff: ModuleDiff) -> Iterator[tuple[str, str]]:
    """Yield what a reader has to know of a comparison, each with its style."""
    for word, report in (("first", diff.before), ("second", diff.after)):
        if report.unread:
            what = counted(len(report.unread), "thing that may communicate", "things that may communicate")
            yield f"{what} could not be read in the {word} module; the warnings say why.", WARNING
    yield from ((f"{note}.", DIM) for note in diff.notes)


def change_table(changes: Sequence[Change], width: int | None, *, in_one_line: bool = False) -> Table:
    """Return the table of changes, those that are alike together.

    Args:
        changes: the changes.
        width: where the lines below rows are wrapped.
        in_one_line: whether what differs stands in a column of its own, instead of below.
    """
    rows = [
        SentenceRow(
            _cells(group),
            [*map(Span, _names(group))],
            " -> ".join(name for name in _names(group) if name != _NOBODY),
            group.what,
        )
        for group in _alike(changes)
    ]
    columns = (Column("kind"), Column("rows", "right"), Column("opcode"), Column("axes", least=12))
    return sentence_table(columns, (Column("before"), Column("after")), rows, width, in_one_line=in_one_line)


def totals_change_table(diff: ModuleDiff) -> Table:
    """Return the table of the sums that differ."""
    columns = (
        Column("axes", least=12),
        Column("opcode"),
        *(Column(name, "right") for name in ("rows", "runs", "in", "received")),
    )
    totals = [total for total in diff.totals if total.differs]
    return Table(columns, [_total_cells(total.axes, total.opcode, total.before, total.after) for total in totals])


def _heading(word: str, report: Report) -> Iterator[Span]:
    module = report.module
    yield Span(f"{word:<6}", DIM)
    yield Span(cut(printable(module.name), SHOWN), BOLD)
    yield Span(printable(module.path), DIM)
    yield Span(f"{counted(len(report.collectives), 'collective')}, HLO {module.format}")


def _alike(changes: Iterable[Change]) -> list[_Alike]:
    found: dict[Hashable, list[Change]] = {}
    for change in changes:
        found.setdefault((change.kind, change.opcode, change.along, *_facts(change)), []).append(change)
    return [_Alike(group, _what(group)) for group in found.values()]


def _facts(change: Change) -> Iterator[Hashable]:
    """Yield what of a change has to be the same in others that are shown with it."""
    if not change.details:
        yield change.what
    for detail in change.details:
        yield detail.key if detail.key == _CHANNEL else detail.what


def _what(changes: Sequence[Change]) -> str:
    first = changes[0]
    if not first.details:
        return first.what
    others = len({change.what for change in changes}) > 1
    parts = ["other channels" if others and detail.key == _CHANNEL else detail.what for detail in first.details]
    return "; ".join(parts)


def _cells(group: _Alike) -> list[Span]:
    first, number = group.first, len(group.changes)
    axes = UNKNOWN if first.along is None else cut(printable(first.along), _SHOWN_AXES)
    return [
        Span(first.kind, _STYLES[first.kind]),
        Span(f"{number:,}"),
        Span(first.opcode),
        Span(axes, WARNING if axes == UNKNOWN else BOLD),
    ]


def _names(group: _Alike) -> tuple[str, str]:
    """Name the first of some rows in both modules, and say how many more there are."""
    first, number = group.first, len(group.changes)
    return _name(first.before, number), _name(first.after, number)


def _name(row: Row | None, number: int) -> str:
    if row is None:
        return _NOBODY
    name = cut(printable(row.name), SHOWN)
    if number > 1:
        return f"{name} and {number - 1:,} more"
    return name if row.line is None else f"{name} line {row.line}"


def _total_cells(axes: str, opcode: str, before: Total | None, after: Total | None) -> list[Span]:
    return [
        Span(cut(printable(axes), _SHOWN_AXES), WARNING if axes == UNKNOWN else BOLD),
        Span(opcode),
        Span(_both(before, after, lambda total: f"{total.count:,}", "0")),
        Span(_both(before, after, lambda total: f"{_bound(total)}{total.executions:,}", "0")),
        Span(_both(before, after, lambda total: _bound(total) + byte_size(total.operand_bytes), "0 B")),
        Span(_both(before, after, lambda total: _bound(total) + byte_size(total.wire_bytes_per_device), "0 B")),
    ]


def _bound(total: Total) -> str:
    return ">= " if total.unknown else ""


def _both(before: Total | None, after: Total | None, show: Callable[[Total], str], nothing: str) -> str:
    first, second = (nothing if total is None else show(total) for total in (before, after))
    return first if first == second else f"{first} -> {second}"
