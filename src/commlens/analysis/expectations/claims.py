"""One claim about the rows of a report: it holds for everything that may be so, or fails with the rows against it.

What is not known makes a claim an interval: a row of which nobody can tell how often it runs adds anything from zero
up, a row that fits no axes, or that no mesh names, may lie along the axes asked for or not. A claim holds only if it
holds at both ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from commlens.analysis.axis_names import NO_AXES, UNKNOWN_AXES
from commlens.analysis.effective_axes import axes_in_words, effective_axes_key
from commlens.analysis.totals import OPCODES
from commlens.errors import CommlensError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.analysis.reports import Report
    from commlens.analysis.row import Row
    from commlens.hlo import Unread
    from commlens.topology import Mesh

Number: TypeAlias = int | float
"""A bound."""

ByteKey: TypeAlias = Literal["operand_bytes", "result_bytes", "wire_bytes_per_device"]
"""Which bytes of a row count; the words are its keys."""

BYTE_KEYS: Final[tuple[ByteKey, ...]] = ("operand_bytes", "result_bytes", "wire_bytes_per_device")

_MAX_LISTED: Final = 20

_FLOW: Final = {
    "operand_bytes": "bytes of operands",
    "result_bytes": "bytes of results",
    "wire_bytes_per_device": "bytes received per device",
}


class ExpectationError(CommlensError, AssertionError):
    """A module does not communicate as expected; an ``AssertionError``, so that test runners report it as a failure."""


class UnknownQuestionError(CommlensError):
    """An expectation asks what cannot be answered."""


def is_failed_claim(failure: object) -> bool:
    """Whether a claim has failed, so that a test runner need not show what found that out.

    Args:
        failure: the failure of a test, as pytest hands it to what hides a frame from its tracebacks.
    """
    return isinstance(getattr(failure, "value", None), ExpectationError)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a figure must keep to.

    Attributes:
        exactly: its value.
        at_least: the smallest value allowed.
        at_most: the largest value allowed.
    """

    exactly: Number | None = None
    at_least: Number | None = None
    at_most: Number | None = None

    def require_one(self, what: str) -> None:
        """Refuse to claim nothing.

        Raises:
            UnknownQuestionError: no bound is given.
        """
        if self.exactly is None and self.at_least is None and self.at_most is None:
            msg = f"expected exactly=, at_most= or at_least= for the {what}, found none of them"
            raise UnknownQuestionError(msg)

    def hold(self, low: Fraction, high: Fraction | None) -> bool:
        """Whether every value from ``low`` to ``high`` (None: without end) is allowed.

        Example:
            >>> Bounds(at_most=3).hold(Fraction(1), Fraction(3)), Bounds(at_most=3).hold(Fraction(1), None)
            (True, False)
        """
        most = [bound for bound in (self.exactly, self.at_most) if bound is not None]
        least = [bound for bound in (self.exactly, self.at_least) if bound is not None]
        return all(high is not None and high <= bound for bound in most) and all(low >= bound for bound in least)

    def __str__(self) -> str:
        """Return the bounds in words."""
        bounds = (("exactly", self.exactly), ("at least", self.at_least), ("at most", self.at_most))
        return " and ".join(f"{word} {bound:,}" for word, bound in bounds if bound is not None) or "any number of"


@dataclass(frozen=True, slots=True)
class Figure:
    """What is summed over rows.

    Attributes:
        words: what the sum is called, before the name of the rows; empty for the number of rows.
        key: the key of a row whose value counts, times how often it runs; None: each row counts as one.
    """

    words: str = ""
    key: ByteKey | Literal["trip_count"] | None = None

    def of(self, row: Row) -> Fraction | None:
        """Return what a row adds; None where that is not known."""
        if self.key is None:
            return Fraction(1)
        runs = row.trip_count
        if self.key == "trip_count":
            return None if runs is None else Fraction(runs)
        size = row.figures.largest_wire if self.key == "wire_bytes_per_device" else getattr(row.figures, self.key)
        if 0 in (runs, size):
            return Fraction(0)
        return None if runs is None or size is None else Fraction(size) * runs


ROWS: Final = Figure()
"""The number of rows."""

RUNS: Final = Figure("executions of", "trip_count")
"""How often they run in one execution of the entry computation."""


def bytes_figure(key: str) -> Figure:
    """Return the sum of bytes in one execution of the entry computation.

    Raises:
        UnknownQuestionError: rows have no such bytes.
    """
    for known in BYTE_KEYS:
        if key == known:
            return Figure(f"{_FLOW[known]} in", known)
    msg = f"expected of= to be one of {', '.join(BYTE_KEYS)}, found {key!r}"
    raise UnknownQuestionError(msg)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which rows a claim is about.

    Attributes:
        what: their name in messages.
        opcodes: their opcodes.
        axes: the key that they stand under, see :func:`~commlens.analysis.effective_axes.effective_axes_key`; None:
            any.
        other_than: keys that they do not stand under; None: any. Transfers to the host stand under no key, and are
            left out where one is asked for in either way.
    """

    what: str
    opcodes: frozenset[str]
    axes: str | None = None
    other_than: frozenset[str] | None = None

    def rows(self, report: Report) -> tuple[list[Row], list[Row]]:
        """Return the rows that are meant, and those that may be: nobody can tell along which axes they run."""
        rows = [row for row in report.collectives if row.opcode in self.opcodes]
        if self.axes is None and self.other_than is None:
            return rows, []
        keys = {figures: effective_axes_key(figures, report.mesh).text for figures in {row.figures for row in rows}}
        rows = [row for row in rows if not row.host_transfer]
        sure = [row for row in rows if self._covers(keys[row.figures])]
        if self.axes in (None, UNKNOWN_AXES):
            return sure, []
        return sure, [row for row in rows if keys[row.figures] == UNKNOWN_AXES and self._may_be_along(row)]

    def _covers(self, key: str) -> bool:
        return key == self.axes if self.other_than is None else key not in self.other_than

    def _may_be_along(self, row: Row) -> bool:
        """Whether a row that fits no axes may count under those asked for; groups of several are never alone."""
        groups = row.figures.participation.groups
        return self.axes != NO_AXES or groups is None or groups.num_devices_per_group is None

    def may_be(self, item: Unread) -> bool:
        """Whether something that could not be read may be one of these rows."""
        return item.opcode is None or item.opcode.removesuffix("-start") in self.opcodes

    def __str__(self) -> str:
        """Return the name in messages."""
        return self.what if self.axes is None else f"{self.what} along {self.axes}"


def selection(opcodes: Sequence[str], axes: str | None = None) -> Selection:
    """Return the rows of some opcodes; of none given, those of all.

    Raises:
        UnknownQuestionError: there is no such opcode.

    Example:
        >>> str(selection(["all-gather", "all-to-all"], "model"))
        'all-gather or all-to-all along model'
    """
    _check_opcodes(opcodes)
    return Selection(" or ".join(opcodes) or "collectives", frozenset(opcodes or OPCODES), axes)


def all_but(opcodes: Sequence[str], axes: str | None = None) -> Selection:
    """Return the rows of all other opcodes.

    Raises:
        UnknownQuestionError: there is no such opcode.
    """
    _check_opcodes(opcodes)
    return Selection(f"collectives other than {' and '.join(opcodes)}", frozenset(OPCODES) - set(opcodes), axes)


@dataclass(frozen=True, slots=True)
class Claim:
    """That a sum over some rows keeps to some bounds.

    Attributes:
        bounds: the bounds.
        figure: what is summed.
        selection: over which rows.
    """

    bounds: Bounds
    figure: Figure
    selection: Selection

    def failure(self, report: Report, *, allow_unread: bool = False) -> str | None:
        """Return why the claim does not hold, with the rows; None where it holds.

        Args:
            report: what the claim is about.
            allow_unread: whether things that could not be read and cannot be among these rows are passed over, and
                others count as rows that may be there. Else anything unread makes the claim fail.
        """
        sure, possible = self.selection.rows(report)
        unread = [item for item in report.unread if not allow_unread or self.selection.may_be(item)]
        low = sum((self.figure.of(row) or Fraction(0) for row in sure), Fraction(0))
        undecided = bool(unread) and not allow_unread
        if not undecided and self.bounds.hold(low, self._high(sure, possible, unread)):
            return None
        return "\n".join(self._lines(report, low, sure, possible, unread))

    def _high(self, sure: Sequence[Row], possible: Sequence[Row], unread: Sequence[Unread]) -> Fraction | None:
        """Return the largest sum that may be; None where it has no end."""
        parts = [self.figure.of(row) for row in (*sure, *possible)]
        if self.figure.key is None:
            parts.append(Fraction(len(unread)))
        elif unread:
            return None
        known = [part for part in parts if part is not None]
        return sum(known, Fraction(0)) if len(known) == len(parts) else None

    def _lines(
        self, report: Report, low: Fraction, sure: Sequence[Row], possible: Sequence[Row], unread: Sequence[Unread]
    ) -> Iterator[str]:
        subject = f"{self.figure.words} {self.selection}".strip()
        unknown = any(self.figure.of(row) is None for row in sure)
        found = f"{'at least ' if unknown else ''}{_written(low)}"
        yield f"expected {self.bounds} {subject}, found {found}"
        yield from listed([self._described(row, report.mesh) for row in sure])
        if possible:
            yield f"and {len(possible)} that may be along them: {self._why_possible(report)}"
            yield from listed([self._described(row, report.mesh) for row in possible])
        if unread:
            yield from unread_lines(unread)
            yield "expect(..., allow_unread=True) lets claims hold that this cannot concern"

    @staticmethod
    def _why_possible(report: Report) -> str:
        if report.mesh is None:
            return "their axes are not known, because no mesh names them (give mesh=...)"
        if report.notes:
            return f"their axes are not known: {'; '.join(report.notes)}"
        return "their groups fit no axes of the mesh in the order of their members, or nobody can tell who takes part"

    def _described(self, row: Row, mesh: Mesh | None) -> str:
        text = described(row, mesh)
        if self.figure.key in (None, "trip_count"):
            return text
        value = self.figure.of(row)
        return f"{text}, {'an unknown number of bytes' if value is None else f'{_written(value)} B'}"


def unread_lines(unread: Sequence[Unread]) -> Iterator[str]:
    """Yield what could not be read, so that nobody takes it for absent."""
    yield f"and {len(unread)} that could not be read"
    yield from listed([f"{item.where}: {item.name or item.text}: {item.why}" for item in unread])


def described(row: Row, mesh: Mesh | None) -> str:
    """Return a row in one line, with its place in the module and in the program that it was compiled from.

    Args:
        row: the row.
        mesh: the mesh of its report.
    """
    place = "" if row.line is None else f" (line {row.line})"
    axes = f"axes {axes_in_words(row.figures, mesh) or 'unknown'}"
    times = "an unknown number of times" if row.trip_count is None else f"{row.trip_count:,} x"
    shapes = ", ".join(row.result_shapes)
    source = "" if row.source is None else f", from {row.source}"
    return f"{row.name}{place} in {row.computation}: {shapes}, {axes}, runs {times}{source}"


def listed(lines: Sequence[str]) -> Iterable[str]:
    """Yield indented lines, and how many more there are than anybody wants to read."""
    yield from (f"  {line}" for line in lines[:_MAX_LISTED])
    if len(lines) > _MAX_LISTED:
        yield f"  ... and {len(lines) - _MAX_LISTED} more"


def _check_opcodes(opcodes: Sequence[str]) -> None:
    for opcode in opcodes:
        if opcode not in OPCODES:
            msg = f"expected an opcode out of {', '.join(OPCODES)}, found {opcode!r}"
            raise UnknownQuestionError(msg)


def _written(value: Fraction) -> str:
    """Write an exact figure: whole numbers as they are, others rounded up to a hundredth."""
    if value.denominator == 1:
        return f"{value.numerator:,}"
    return f"{math.ceil(value * 100) / 100:,.2f}"
