"""Two versions of a module held against each other: whether they can be run side by side, and what came of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.analysis.participation import Counts
from commlens.errors import InputError
from commlens.hlo import CallGraph, shortened, some_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Instruction, Module

MOST_ROUNDS: Final = 10_000
"""Rounds that each loop of a module may make in one run, unless another number is asked for."""

_LEFT_OUT: Final = re.compile(rb"\bconstant\(\{\.\.\.\}\)")


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """One result of two modules.

    Attributes:
        index: which result.
        max_ulp: how far they are apart on the device where that is most, in units in the last place; 0 for integers
            that are equal; None where there is no such distance.
        differs: where and how they differ by more than they may; None where they do not.
        finite: whether there is any finite number in it; a result without one shows nothing.
    """

    index: int
    max_ulp: int | None
    differs: str | None
    finite: bool = True

    def as_dict(self) -> dict[str, object]:
        """Return the keys that say something."""
        said: dict[str, object] = {
            "max_ulp": self.max_ulp,
            "differs": self.differs,
            "finite": None if self.finite else False,
        }
        return {"index": self.index, **{key: value for key, value in said.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answer of ``prove`` about two modules.

    Attributes:
        paths: where the modules came from.
        counts: replicas and partitions that they were run with.
        outputs: their results.
        max_ulp: units in the last place by which floats were allowed to differ.
        runtime: what they were run on, e.g. ``"jax 0.10.2"``.
        notes: what the answer does not say, in sentences.
    """

    paths: tuple[str, str]
    counts: Counts
    outputs: tuple[ResultDifference, ...]
    max_ulp: int
    runtime: str
    notes: tuple[str, ...] = ()

    @property
    def agree(self) -> bool | None:
        """Whether no result differs; None where no result shows anything."""
        if any(output.differs is not None for output in self.outputs):
            return False
        return True if any(output.finite for output in self.outputs) else None

    def as_dict(self) -> dict[str, object]:
        """Return the answer in its JSON form."""
        return {
            "modules": list(self.paths),
            "replicas": self.counts.replicas,
            "partitions": self.counts.partitions,
            "outputs": [output.as_dict() for output in self.outputs],
            "agree": self.agree,
            "runtime": self.runtime,
            "notes": list(self.notes),
        }


def counts_of_both(first: Module, second: Module, *, most_devices: int, most_rounds: int = MOST_ROUNDS) -> Counts:
    """Return the counts with which two modules can be run side by side.

    Args:
        first: one module.
        second: the other.
        most_devices: devices that may run.
        most_rounds: rounds that each loop of a module may make in one run, as far as they can be counted.

    Raises:
        InputError: nobody states the counts, they differ, or a module is too large to be run.
    """
    counts = _counts(first)
    others = _counts(second)
    if counts != others:
        reason = f"expected {counts.in_words} as in {first.path}, found {others.in_words}"
        raise InputError(reason, path=second.path)
    if counts.replicas * counts.partitions > most_devices:
        reason = (
            f"expected at most {most_devices} devices to run on, found {counts.in_words} (--max-devices allows more)"
        )
        raise InputError(reason, path=first.path)
    for module in (first, second):
        _check_constants(module)
        _check_rounds(module, most_rounds)
    return counts


def _counts(module: Module) -> Counts:
    counts = Counts.of(module.replica_count, module.num_partitions)
    if counts is None:
        reason = "nobody states how many replicas and partitions to run; give them with --replicas and --partitions"
        raise InputError(reason, path=module.path)
    return counts


def _check_constants(module: Module) -> None:
    """Refuse constants that a dump has left out: XLA reads them as zeros."""
    left_out = _LEFT_OUT.search(module.to_bytes()) if module.format == "text" else None
    if left_out is not None:
        reason = "expected all constants to be written out, found one that the dump left out; the proto has them all"
        line = module.to_bytes().count(b"\n", 0, left_out.start()) + 1
        raise InputError(reason, path=module.path, line=line, column=1)


def _check_rounds(module: Module, most: int) -> None:
    """Refuse loops that would run for too long; those that cannot be counted have the time limit."""
    for loop, rounds in _rounds(module):
        if rounds is not None and rounds > most:
            name = shortened(loop.name)
            reason = f"expected loops of at most {most} rounds in one run, found {rounds} of {name} (--max-rounds)"
            raise InputError(reason, path=module.path, line=loop.line)


def uncounted_loops(module: Module) -> str | None:
    """Return a sentence about the loops whose rounds nobody can count before they run; None without such a loop."""
    names = [shortened(loop.name) for loop, rounds in _rounds(module) if rounds is None]
    if not names:
        return None
    which = f"loop {names[0]}" if len(names) == 1 else f"loops {some_of(names)}"
    return f"{module.path}: the rounds of {which} cannot be counted, so that only the time-out bounds the run"


def _rounds(module: Module) -> Iterator[tuple[Instruction, int | None]]:
    """Yield each loop and how many rounds it makes in one run; None where that cannot be counted."""
    bodies = {
        callee: loop for loop in module.instructions_of({"while"}) for role, callee in loop.called if role == "body"
    }
    graph = CallGraph(module, bodies, lambda _: False)
    yield from ((loop, graph.executions(body)) for body, loop in bodies.items())
