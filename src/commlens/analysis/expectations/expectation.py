"""Claims about what a module communicates, for tests: they hold, or fail with the rows that speak against them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from commlens.analysis.axis_names import NO_AXES, UNKNOWN_AXES, axes_key
from commlens.analysis.diffs.module_diff import diff
from commlens.analysis.expectations.claims import (
    ROWS,
    RUNS,
    Bounds,
    Claim,
    ExpectationError,
    Selection,
    UnknownQuestionError,
    all_but,
    bytes_figure,
    is_failed_claim,
    listed,
    selection,
)
from commlens.analysis.expectations.golden_files import hold_against
from commlens.analysis.expectations.programs import compiled_of, mesh_for, module_of
from commlens.analysis.reports import Report, report
from commlens.analysis.totals import OPCODES
from commlens.topology import AxisRef, parse_axes

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from commlens.analysis.expectations.claims import ByteKey, Figure, Number
    from commlens.analysis.expectations.programs import AnyMesh

__tracebackhide__: Final = is_failed_claim

Axes: TypeAlias = "str | Sequence[str] | None"
"""Axes of a claim: ``"model"``, ``"data,model"`` (in any order), ``"none"`` for groups of one device, or a sequence of
names; None: all rows, along whatever axes."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """Claims about one report; each method checks one claim and returns the same object, so that claims chain.

    Axes are those of what a collective does: where the order of the members changes no result, as in an all-reduce, it
    does not matter. What fits no axes, what could not be named because no mesh is known, or of which nobody can tell
    how often it runs, counts as "may be": a claim holds only if it holds either way. Anything that could not be read
    makes every claim fail, unless ``allow_unread``: then it counts as "may be" in the claims that it may concern.

    Attributes:
        report: what the claims are about.
        allow_unread: whether claims may hold beside things that could not be read.
    """

    report: Report
    allow_unread: bool = field(default=False, repr=False)

    def count(
        self,
        opcode: str | None,
        exactly: int | None = None,
        *,
        axes: Axes = None,
        at_most: int | None = None,
        at_least: int | None = None,
    ) -> Expectation:
        """Claim how many rows an opcode has.

        Args:
            opcode: an opcode such as ``"all-gather"``; asynchronous ones are counted under the same name. None: all.
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
        bounds = Bounds(exactly, at_least, at_most)
        bounds.require_one(f"count of {opcode or 'collectives'}")
        return self._claim(bounds, ROWS, self._selection(opcode, axes))

    def runs(
        self,
        opcode: str | None = None,
        exactly: int | None = None,
        *,
        axes: Axes = None,
        at_most: int | None = None,
        at_least: int | None = None,
    ) -> Expectation:
        """Claim how often rows run in one execution of the program, loops counted; otherwise as :meth:`count`.

        A branch of a conditional counts as if it were always taken.
        """
        bounds = Bounds(exactly, at_least, at_most)
        bounds.require_one(f"executions of {opcode or 'collectives'}")
        return self._claim(bounds, RUNS, self._selection(opcode, axes))

    def bytes(
        self,
        opcode: str | None = None,
        exactly: Number | None = None,
        *,
        axes: Axes = None,
        at_most: Number | None = None,
        at_least: Number | None = None,
        of: ByteKey = "wire_bytes_per_device",
    ) -> Expectation:
        """Claim how many bytes rows move in one execution of the program, loops counted; otherwise as :meth:`count`.

        Args:
            opcode: an opcode; None: all.
            exactly: the sum.
            axes: along which axes, as for :meth:`count`.
            at_most: the largest sum allowed.
            at_least: the smallest sum allowed.
            of: which bytes of a row: ``"wire_bytes_per_device"`` (received per device on a ring; of the largest group
                where sizes differ), ``"operand_bytes"`` or ``"result_bytes"``.
        """
        bounds = Bounds(exactly, at_least, at_most)
        bounds.require_one(f"bytes of {opcode or 'collectives'}")
        return self._claim(bounds, bytes_figure(of), self._selection(opcode, axes))

    def none(self, *opcodes: str, axes: Axes = None) -> Expectation:
        """Claim that opcodes do not occur; of none given, that nothing communicates (along these axes) at all.

        Result and errors as for :meth:`count`.
        """
        return self._claim(Bounds(exactly=0), ROWS, selection(opcodes, _axes_key(self.report, axes)))

    def only(self, *opcodes: str, axes: Axes = None) -> Expectation:
        """Claim that no other opcodes occur (along these axes); result and errors as for :meth:`count`."""
        if not opcodes:
            msg = "expected the opcodes that are allowed, found none; none() claims that nothing communicates"
            raise UnknownQuestionError(msg)
        return self._claim(Bounds(exactly=0), ROWS, all_but(opcodes, _axes_key(self.report, axes)))

    def budget(
        self,
        limits: Mapping[str, Number],
        *,
        rest: Number | None = 0,
        of: ByteKey = "wire_bytes_per_device",
    ) -> Expectation:
        """Claim that no axes move more bytes in one execution of the program than they may, loops counted.

        Args:
            limits: axes -> bytes. What runs along two axes at once has a budget of its own, ``"data,model"``, as in the
                totals of a report.
            rest: the budget of all axes that are not named, groups of one device and groups that fit no axes among
                them; None: without limit. Transfers to the host have none. Groups that fit no axes may be along those
                that are named as well, and count there too.
            of: which bytes, as for :meth:`bytes`.

        Returns:
            The same expectation.

        Raises:
            ExpectationError: a budget is exceeded; the message names every one that is, with its rows.
            UnknownQuestionError: two limits are for the same axes.
            GrammarError: the mesh has no such axes.
        """
        figure = bytes_figure(of)
        every = frozenset(OPCODES)
        claims: dict[str, Claim] = {}
        for axes, limit in limits.items():
            key = _axes_key(self.report, axes) or ""
            if key in claims:
                msg = f"expected one budget for {key}, found two: {axes!r} means the same axes as one before it"
                raise UnknownQuestionError(msg)
            claims[key] = Claim(Bounds(at_most=limit), figure, Selection("collectives", every, key))
        if rest is not None:
            what = f"collectives along axes other than {' and '.join(claims)}" if claims else "collectives"
            others = Selection(what, every, other_than=frozenset(claims))
            claims[""] = Claim(Bounds(at_most=rest), figure, others)
        if not claims:  # nothing is limited, but what could not be read fails this claim like any other
            claims[""] = Claim(Bounds(), figure, Selection("collectives", every))
        found = [claim.failure(self.report, allow_unread=self.allow_unread) for claim in claims.values()]
        failures = [failure for failure in found if failure is not None]
        if failures:
            raise ExpectationError("\n".join(failures))
        return self

    def same_as(self, other: object) -> Expectation:
        """Claim that another module communicates the same, whatever the spelling of both.

        Args:
            other: whatever :func:`expect` takes without arguments. Both are named on the mesh of this one.

        Returns:
            The same expectation.

        Raises:
            ExpectationError: something differs, as ``commlens diff`` has it; or something could not be read.
        """
        its = other.report if isinstance(other, Expectation) else other
        module = its.module if isinstance(its, Report) else module_of(compiled_of(its, (), {}))
        answer = diff(self.report.module, module, self.report.mesh)
        changes = [change for change in answer.changes if change.kind != "spelling"]
        if answer.same_communication or (self.allow_unread and not changes and not answer.undecided):
            return self
        unread = [*answer.before.unread, *answer.after.unread]
        lines = [f"expected the same communication, found {len(changes)} changes and {len(unread)} things unread"]
        lines += listed([f"{change.kind} {change.opcode}: {change.what}" for change in changes])
        lines += listed([f"unread {item.where}: {item.name or item.text}: {item.why}" for item in unread])
        lines += listed(list(answer.notes) if answer.undecided else [])
        raise ExpectationError("\n".join(lines))

    def golden(self, path: str | os.PathLike[str], *, update: bool | None = None) -> Expectation:
        """Claim that the module communicates what a golden file says, blind to the spelling.

        The file is a small text with one line for all collectives that are alike: opcode, axes, groups, bytes, how
        often it runs, and how many there are. Under ``pytest --commlens-update`` it is written instead.

        Args:
            path: the file; ``golden/<test>.comm.txt`` beside the test is a good name.
            update: whether to write it instead of comparing; None: as pytest was asked.

        Returns:
            The same expectation.

        Raises:
            ExpectationError: the file is missing, or says something else; or something could not be read, whatever
                ``allow_unread``: the message shows the differing lines and the rows behind them.
            InputError: the file cannot be read or written, or is no golden file.
        """
        hold_against(self.report, path, update=update)
        return self

    def _selection(self, opcode: str | None, axes: Axes) -> Selection:
        return selection([] if opcode is None else [opcode], _axes_key(self.report, axes))

    def _claim(self, bounds: Bounds, figure: Figure, rows: Selection) -> Expectation:
        failure = Claim(bounds, figure, rows).failure(self.report, allow_unread=self.allow_unread)
        if failure is not None:
            raise ExpectationError(failure)
        return self


def expect(
    module: object,
    mesh: AnyMesh | None = None,
    *,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    allow_unread: bool = False,
) -> Expectation:
    """Start claims about what a program communicates.

    Args:
        module: a module; a path, HLO text or content, as for :func:`commlens.load`; a compiled program; a lowered or
            traced one, which is compiled first, since partitioning makes collectives; a jitted function with ``args``;
            or a report made before.
        mesh: the mesh that names axes, as for :func:`commlens.report`, or a ``jax.sharding.Mesh``: then ids are
            brought into the order of its devices. Must be None with a report.
        args: arguments for which a jitted function is compiled: arrays, or ``jax.ShapeDtypeStruct`` with shardings.
        kwargs: keyword arguments likewise.
        allow_unread: whether claims may hold beside things that could not be read and do not concern them.

    Returns:
        The expectation, whose methods check and chain.

    Raises:
        UnknownQuestionError: this is no module, a mesh is given although the report already has its own, or the mesh
            and the program are not of the same devices.

    Example:
        >>> text = '''HloModule m, replica_count=8
        ... ENTRY e {
        ...   p = f32[16] parameter(0)
        ...   ROOT g = f32[64] all-gather(p), replica_groups=[2,4]<=[8], dimensions={0}
        ... }'''
        >>> expectation = expect(text, mesh="data=2,model=4")
        >>> _ = expectation.count("all-gather", axes="model", at_most=2).none("all-to-all").budget({"model": 192})
        >>> expectation.bytes(at_most=99)
        Traceback (most recent call last):
            ...
        commlens...ExpectationError: expected at most 99 bytes received per device in collectives, found 192
          g (line 4) in e: f32[64], axes model, runs 1 x, 192 B
    """
    if isinstance(module, Expectation | Report):
        if mesh is not None:
            msg = "expected no mesh beside a report, which already has its own; give the module and the mesh instead"
            raise UnknownQuestionError(msg)
        about = module.report if isinstance(module, Expectation) else module
        return Expectation(about, allow_unread)
    program = compiled_of(module, args, kwargs or {})
    read = module_of(program)
    return Expectation(report(read, mesh_for(mesh, program, read)), allow_unread)


def _axes_key(about: Report, axes: Axes) -> str | None:
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
