"""The columns of the table of rows, and which of them a terminal has room for."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.views.alike import SHOWN
from commlens.views.columns import Column, Table
from commlens.views.lines import BOLD, DIM, WARNING, Span, wrapped
from commlens.views.words import UNKNOWN, byte_size, cut, exact, printable, width_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from commlens.views.alike import Alike
    from commlens.views.lines import Line

_INDENT: Final = " " * 8

_OPCODE_STYLES: Final = MappingProxyType(
    {
        "all-gather": "green",
        "all-reduce": "cyan",
        "reduce-scatter": "blue",
        "all-to-all": "magenta",
        "collective-permute": "bright_yellow",
        "collective-broadcast": "bright_green",
        "ragged-all-to-all": "bright_magenta",
        "send": "bright_blue",
        "recv": "bright_blue",
    }
)


@dataclass(frozen=True, slots=True)
class Field:
    """One fact about rows that are alike.

    Attributes:
        column: the column that shows it.
        cell: what the column says of some rows.
    """

    column: Column
    cell: Callable[[Alike], Span]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which facts stand in a row, and which below it.

    Attributes:
        row: the columns.
        below: facts that did not fit, in words; empty for one line to a row.
    """

    row: tuple[Field, ...]
    below: tuple[Field, ...] = ()

    def table(self, groups: Sequence[Alike], width: int | None) -> Table:
        """Return the table of some rows; ``width`` is where lines below rows are wrapped."""
        return Table(
            tuple(field.column for field in self.row),
            [[field.cell(group) for field in self.row] for group in groups],
            [list(self._lines_below(group, width)) for group in groups] if self.below else (),
        )

    def _lines_below(self, group: Alike, width: int | None) -> Iterator[Line]:
        room = None if width is None else width - len(_INDENT)
        words = (word for field in self.below for word in _in_words(field, field.cell(group), room))
        return wrapped(words, width, indent=_INDENT)


def best_table(groups: Sequence[Alike], width: int | None) -> Table:
    """Return the most telling table of rows that fits: exact bytes, rounded ones, or two lines and more to a row."""
    *roomy, narrow = (layout.table(groups, width) for layout in LAYOUTS)
    return next((table for table in roomy if width is None or table.least_width() <= width), narrow)


def size_cell(number: float | None, *, bound: str = "") -> Span:
    """Return the cell of a rounded number of bytes; ``bound`` is ``">= "``, ``"<= "`` or nothing."""
    return Span(UNKNOWN, WARNING) if number is None else Span(bound + byte_size(number))


def exact_cell(number: float | None, *, bound: str = "") -> Span:
    """Return the cell of an exact number of bytes."""
    return Span(UNKNOWN, WARNING) if number is None else Span(bound + exact(number), DIM)


def _in_words(field: Field, cell: Span, room: int | None) -> Iterator[Span]:
    """Yield what a cell says, at a distance to what stands before it: whole where that fits into a line."""
    if not cell.text:
        return
    named = field.column.align == "right"  # a figure says nothing without its heading
    text = f"{field.column.title} {cell.text}" if named else cell.text
    fits = room is None or width_of(text) <= room
    for place, word in enumerate([text] if fits else text.split()):
        yield cell._replace(text=word if place else f" {word}")


def _opcode(group: Alike) -> Span:
    return Span(group.kind.opcode, _OPCODE_STYLES.get(group.kind.opcode, ""))


def _axes(group: Alike) -> Span:
    return Span(group.kind.axes, WARNING if group.kind.axes == UNKNOWN else BOLD)


def _written(group: Alike) -> Span:
    kind = group.kind
    devices = f"devices {kind.devices}" if kind.devices else ""
    return Span(", ".join(part for part in (kind.spelling, devices, *kind.form) if part))


def _bound(group: Alike) -> str:
    return "<= " if group.kind.uneven else ""


def _runs(group: Alike) -> Span:
    return Span(UNKNOWN, WARNING) if group.runs is None else Span(f"{group.runs:,}")


def _where(group: Alike) -> Span:
    """Name the conditions of the rows, the first of them with its line, and the computations they stand in."""
    first = group.rows[0]
    computations = len({row.computation for row in group.rows})
    line = "" if first.line is None else f" line {first.line}"
    name = f"{_short(first.name)}{line}{_others(len(group.rows))}"
    return Span(f"{_condition(group)}{name}, in {_short(first.computation)}{_others(computations)}", DIM)


def _condition(group: Alike) -> str:
    if not group.conditional:
        return ""
    return f"if {_short(group.conditional[0])}{_others(len(group.conditional))}: "


def _short(name: str) -> str:
    return cut(printable(name), SHOWN)


def _others(number: int) -> str:
    return f" and {number - 1:,} more" if number > 1 else ""


_COUNT = Field(Column("rows", "right"), lambda group: Span(f"{len(group.rows):,}"))
_OPCODE = Field(Column("opcode"), _opcode)
_AXES = Field(Column("axes", least=12), _axes)
_GROUPS = Field(Column("groups"), lambda group: Span(group.kind.size))
_SHAPES = Field(Column("operands -> results"), lambda group: Span(group.kind.shapes))
_WRITTEN = Field(Column("as written"), _written)
_WHERE = Field(Column("where"), _where)
_RUNS = Field(Column("runs", "right"), _runs)
_IN = Field(Column("in", "right"), lambda group: size_cell(group.kind.operand_bytes))
_OUT = Field(Column("out", "right"), lambda group: size_cell(group.kind.result_bytes))
_RECEIVED = Field(Column("received", "right"), lambda group: size_cell(group.kind.received, bound=_bound(group)))
_IN_EXACT = Field(Column("bytes in", "right"), lambda group: exact_cell(group.kind.operand_bytes))
_OUT_EXACT = Field(Column("bytes out", "right"), lambda group: exact_cell(group.kind.result_bytes))
_RECEIVED_EXACT = Field(
    Column("bytes received", "right"), lambda group: exact_cell(group.kind.received, bound=_bound(group))
)

_WHO = (_COUNT, _OPCODE, _AXES, _GROUPS)
_ROUNDED = (_IN, _OUT, _RECEIVED)

EVERYTHING: Final = Layout((*_WHO, *_ROUNDED, _RUNS, _SHAPES, _WRITTEN, _IN_EXACT, _OUT_EXACT, _RECEIVED_EXACT, _WHERE))
"""All there is to say in one line."""

LAYOUTS: Final = (
    EVERYTHING,
    Layout((*_WHO, *_ROUNDED, _RUNS, _SHAPES, _WRITTEN, _WHERE)),
    Layout((*_WHO, *_ROUNDED, _RUNS, _SHAPES), (_WRITTEN, _WHERE)),
    Layout((*_WHO, *_ROUNDED, _RUNS), (_SHAPES, _WRITTEN, _WHERE)),
    Layout((*_WHO, _RECEIVED, _RUNS), (_SHAPES, _IN, _OUT, _WRITTEN, _WHERE)),
)
"""What a table shows, for wide terminals first."""
