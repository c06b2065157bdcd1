"""Sums over rows: by opcode, and by the mesh axes that a collective runs along."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.analysis.records import Record
from commlens.analysis.wire import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from commlens.analysis.axis_names import AxesKey
    from commlens.analysis.figures import Figures
    from commlens.analysis.row import Row
    from commlens.analysis.wire import Number

OPCODES: Final = (
    "all-gather",
    "all-reduce",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "ragged-all-to-all",
    "send",
    "recv",
)
"""Every opcode that a row can have, in the order of tables."""


@dataclass(frozen=True, slots=True, eq=False)
class Total(Record):
    """The sum of some rows.

    Attributes:
        count: rows.
        executions: how often they run in one execution of the entry computation.
        operand_bytes: bytes of their operands times executions.
        result_bytes: bytes of their results times executions.
        wire_bytes_per_device: bytes a device receives times executions; the largest group where sizes differ.
        unknown: rows whose executions or bytes are not known. They add what is known of them, so that with any of
            them the sums are lower bounds.
    """

    count: int
    executions: int
    operand_bytes: int
    result_bytes: int
    wire_bytes_per_device: Number
    unknown: int


@dataclass(frozen=True, slots=True, eq=False)
class Totals(Record):
    """All sums of a module.

    Attributes:
        by_opcode: opcode -> sum.
        by_axes: axes in mesh order, joined by commas -> sum; ``"none"`` for groups of one device, ``"?"`` where no
            axes fit or no mesh is known. Transfers to and from the host are left out.
    """

    by_opcode: Mapping[str, Total]
    by_axes: Mapping[str, Total]

    def as_dict(self) -> dict[str, object]:
        """Return the sums as plain dicts."""
        return {
            "by_opcode": {key: dict(total) for key, total in self.by_opcode.items()},
            "by_axes": {key: dict(total) for key, total in self.by_axes.items()},
        }


@dataclass(slots=True)
class _Sum:
    """A total while it grows."""

    count: int = 0
    executions: int = 0
    operand_bytes: int = 0
    result_bytes: int = 0
    wire: Fraction = field(default_factory=Fraction)
    unknown: int = 0

    def add(self, figures: Figures, executions: int | None, count: int) -> None:
        """Add rows that have the same figures and run equally often."""
        parts = (figures.operand_bytes, figures.result_bytes, figures.largest_wire)
        self.count += count
        self.unknown += count * (executions is None or None in parts)
        times = count * (executions or 0)
        operand_bytes, result_bytes, wire = parts
        self.executions += times
        self.operand_bytes += times * (operand_bytes or 0)
        self.result_bytes += times * (result_bytes or 0)
        if wire is not None:
            self.wire += times * wire

    def total(self) -> Total:
        """Return the sum as a value."""
        return Total(self.count, self.executions, self.operand_bytes, self.result_bytes, shown(self.wire), self.unknown)


def totals_of(rows: Iterable[Row]) -> Totals:
    """Sum rows by opcode and by axes.

    Args:
        rows: the rows of one module; alike ones are counted before anything is added.

    Returns:
        The sums; opcodes in the order of :data:`OPCODES`, axes in mesh order, then ``"none"``, then ``"?"``.
    """
    by_opcode: dict[str, _Sum] = {}
    by_axes: dict[str, _Sum] = {}
    keys: dict[str, AxesKey] = {}  # an axis may be called "none" or hold a comma: what reads alike is summed, not lost
    alike = Counter([(row.figures, row.trip_count) for row in rows])
    for (figures, executions), count in alike.items():
        by_opcode.setdefault(figures.signature.opcode, _Sum()).add(figures, executions, count)
        if not figures.signature.is_host_transfer:
            key = figures.axes_key
            keys[key.text] = min(key, keys.get(key.text, key))
            by_axes.setdefault(key.text, _Sum()).add(figures, executions, count)
    return Totals(
        MappingProxyType({opcode: by_opcode[opcode].total() for opcode in OPCODES if opcode in by_opcode}),
        MappingProxyType({key.text: by_axes[key.text].total() for key in sorted(keys.values())}),
    )
