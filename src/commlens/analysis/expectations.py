"""Claims about what a module communicates, for tests: they hold, or fail with the rows that speak against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from commlens.analysis.axis_names import NO_AXES, UNKNOWN_AXES, axes_key
from commlens.analysis.inventory import Report, report
from commlens.analysis.totals import OPCODES
from commlens.errors import CommlensError
from commlens.hlo import Module, load
from commlens.topology import AxisRef, parse_axes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commlens.analysis.meshes import MeshLike
    from commlens.analysis.row import Row
    from commlens.hlo import Unread

_MAX_LISTED = 20


class ExpectationError(CommlensError, AssertionError):
    """A module does not communicate as expected; an ``AssertionError``, so that test runners report it as a failure."""


class UnknownQuestionError(CommlensError):
    """An expectation asks what cannot be answered."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """Claims about one report; each method checks one claim and returns the same object, so that claims chain.

    What could not be read, or could not be named because no mesh is known, counts as "may be": a claim holds only if
    it holds either way.

    Attributes:
        report: what the claims are about.
    """

    report: Report

    def count(
        self,
        opcode: str,
        exactly: int | None = None,
        *,
        axes: str | Sequence[str] | None = None,
        at_most: int | None = None,
        at_least: int | None = None,
    ) -> Expectation:
        """Claim how many rows an opcode has.

        Args:
            opcode: an opcode such as ``"all-gather"``; asynchronous ones are counted under the same name.
            exactly: the number of rows.
            axes: only rows along these axes count: ``"model"``, ``"data,model"`` (in any order), ``"none"`` for groups
                of one device, or a sequence of names; None: all rows.
            at_most: the largest number allowed.
            at_least: the smallest number allowed.

        Returns:
            The same expectation.

        Raises:
            ExpectationError: the claim does not hold, or cannot be decided; the message lists the rows.
            UnknownQuestionError: no bound is given, or the opcode does not exist.
            GrammarError: the mesh has no such axes.
        """
        if exactly is None and at_most is None and at_least is None:
            msg = f"expected exactly=, at_most= or at_least= for the count of {opcode}, found none of them"
            raise UnknownQuestionError(msg)
        claim = _Claim(opcode, _axes_key(self.report, axes), exactly, at_most, at_least)
        claim.check(self.report)
        return self

    def none(self, opcode: str, *, axes: str | Sequence[str] | None = None) -> Expectation:
        """Claim that an opcode does not occur; arguments, result and errors as for :meth:`count`."""
        return self.count(opcode, 0, axes=axes)


@runtime_checkable
class Program(Protocol):
    """A compiled program that can print its HLO, such as what ``jax.jit(f).lower(...).compile()`` returns."""

    def as_text(self) -> str:
        """Return the HLO text."""
        ...


def expect(module: object, mesh: MeshLike | None = None) -> Expectation:
    """Start claims about a module.

    Args:
        module: a module, a compiled program, or a report made before.
        mesh: the mesh that names axes, as for :func:`commlens.report`; must be None with a report.

    Returns:
        The expectation, whose methods check and chain.

    Raises:
        UnknownQuestionError: this is no module, or a mesh is given although the report already has its own.

    Example:
        ``expect(module, mesh="data=2,model=4").count("all-gather", axes="model", at_most=2).none("all-to-all")``
    """
    if isinstance(module, Report):
        if mesh is not None:
            msg = "expected no mesh beside a report, which already has its own; give the module and the mesh instead"
            raise UnknownQuestionError(msg)
        return Expectation(module)
    if isinstance(module, Module):
        return Expectation(report(module, mesh))
    if isinstance(module, Program):
        return Expectation(report(load(module.as_text()), mesh))
    msg = f"expected a module, a compiled program or a report, found {type(module).__name__}"
    raise UnknownQuestionError(msg)


@dataclass(frozen=True, slots=True)
class _Claim:
    opcode: str
    axes: str | None
    exactly: int | None
    at_most: int | None
    at_least: int | None

    def __post_init__(self) -> None:
        if self.opcode not in OPCODES:
            msg = f"expected an opcode out of {', '.join(OPCODES)}, found {self.opcode!r}"
            raise UnknownQuestionError(msg)

    def check(self, about: Report) -> None:
        """Raise unless the claim holds for every number of rows that is possible."""
        rows = [row for row in about.collectives if row.opcode == self.opcode]
        sure = [row for row in rows if self.axes is None or row.figures.axes_key.text == self.axes]
        possible = [row for row in rows if self.axes not in (None, UNKNOWN_AXES) and _may_lie_along_any(row, about)]
        unread = [item for item in about.unread if item.opcode is None or _names(item, self.opcode)]
        low, high = len(sure), len(sure) + len(possible) + len(unread)
        if self._holds(low, high):
            return
        raise ExpectationError("\n".join(self._failure(sure, possible, unread)))

    def _holds(self, low: int, high: int) -> bool:
        most = [bound for bound in (self.exactly, self.at_most) if bound is not None]
        least = [bound for bound in (self.exactly, self.at_least) if bound is not None]
        return all(high <= bound for bound in most) and all(low >= bound for bound in least)

    def _failure(self, sure: Sequence[Row], possible: Sequence[Row], unread: Sequence[Unread]) -> Iterable[str]:
        along = "" if self.axes is None else f" along {self.axes}"
        yield f"expected {self._bounds()} {self.opcode}{along}, found {len(sure)}"
        yield from _listed([_described(row) for row in sure])
        if possible:
            yield f"and {len(possible)} whose axes are not known, because no mesh names them (give mesh=...)"
            yield from _listed([_described(row) for row in possible])
        if unread:
            yield f"and {len(unread)} that could not be read"
            yield from _listed([f"{item.where}: {item.name or item.text}: {item.why}" for item in unread])

    def _bounds(self) -> str:
        bounds = (("exactly", self.exactly), ("at least", self.at_least), ("at most", self.at_most))
        return " and ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)


def _axes_key(about: Report, axes: str | Sequence[str] | None) -> str | None:
    """Return the key of ``by_axes`` that the axes of a claim mean."""
    if axes is None:
        return None
    names = [axes] if isinstance(axes, str) else list(axes)
    text = ",".join(names) or NO_AXES
    if about.mesh is None or text in (NO_AXES, UNKNOWN_AXES):
        return text
    known = about.mesh.axis_names
    refs = [ref for name in names for ref in ([AxisRef(name)] if name in known else parse_axes(name, about.mesh))]
    return axes_key(refs, about.mesh).text


def _may_lie_along_any(row: Row, about: Report) -> bool:
    """Whether a row may run along any axes, because no mesh is known or nobody can tell who takes part."""
    figures = row.figures
    if figures.axes_key.text != UNKNOWN_AXES or figures.signature.is_host_transfer:
        return False
    return about.mesh is None or figures.participation.num_ids is None


def _names(item: Unread, opcode: str) -> bool:
    return item.opcode is not None and item.opcode.removesuffix("-start") == opcode


def _described(row: Row) -> str:
    place = "" if row.line is None else f" (line {row.line})"
    axes = "axes unknown" if row.axes is None else f"axes {','.join(row.axes) or 'none'}"
    times = "an unknown number of times" if row.trip_count is None else f"{row.trip_count} x"
    shapes = ", ".join(row.result_shapes)
    return f"{row.name}{place} in {row.computation}: {shapes}, {axes}, runs {times}"


def _listed(lines: Sequence[str]) -> Iterable[str]:
    yield from (f"  {line}" for line in lines[:_MAX_LISTED])
    if len(lines) > _MAX_LISTED:
        yield f"  ... and {len(lines) - _MAX_LISTED} more"
