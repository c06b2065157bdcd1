"""Layouts tried on a runtime: first who takes part, then, where shapes have to fit the groups, in which order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from commlens.analysis.proofs.observations import observation_of
from commlens.analysis.proofs.programs import (
    SIZED,
    Outcome,
    Program,
    elements,
    program_for,
    spelling_of,
)

if TYPE_CHECKING:
    from commlens.analysis.proofs.observations import Observation
    from commlens.analysis.proofs.scaling import Layout

Run: TypeAlias = Callable[[Sequence[Program]], Sequence[Outcome]]
"""Runs programs and returns what came of each, in their order."""

MOST_ELEMENTS: Final = 1 << 22
"""Numbers that the arguments of one program may hold."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What was seen of one layout.

    Attributes:
        opcode: the operation that was run for it.
        observation: who took part; None where nothing ran.
        ran: the spelling that ran; None where nothing did.
        refused: why the operation that was asked for did not run; None where it did. A sum over the same groups may
            have run in its place.
    """

    opcode: str
    observation: Observation | None
    ran: str | None = None
    refused: str | None = None


def run_trials(layouts: Sequence[tuple[str, Layout]], run: Run) -> list[Trial]:
    """Run one collective for each layout.

    The shapes of an all-gather and a reduce-scatter tell how large a group is. Taken from what is predicted they would
    let a runtime refuse the program where the prediction is wrong, and nobody would see why. So an all-reduce over the
    same groups with the same flags, whose shapes tell nothing, shows first who takes part.

    Args:
        layouts: operations and their layouts.
        run: the runtime.

    Returns:
        What was seen of each, in their order.
    """
    programs = [program_for("all-reduce" if opcode in SIZED else opcode, layout) for opcode, layout in layouts]
    seen = [
        _trial("all-reduce" if opcode in SIZED else opcode, layout, outcome)
        for (opcode, layout), outcome in zip(layouts, _outcomes(run, programs), strict=True)
    ]
    sized: list[tuple[int, Program]] = []
    for number, (opcode, layout) in enumerate(layouts):
        if opcode in SIZED and seen[number].observation is not None:
            program = _with_size(opcode, layout, seen[number])
            if isinstance(program, str):
                seen[number] = replace(seen[number], refused=program)
            else:
                sized.append((number, program))
    for (number, _), outcome in zip(sized, _outcomes(run, [program for _, program in sized]), strict=True):
        again = _trial(*layouts[number], outcome)
        seen[number] = replace(seen[number], refused=again.refused) if again.observation is None else again
    return seen


def _outcomes(run: Run, programs: Sequence[Program]) -> Sequence[Outcome]:
    return run(programs) if programs else ()


def _trial(opcode: str, layout: Layout, outcome: Outcome) -> Trial:
    if outcome.results is None:
        return Trial(opcode, None, refused=f"XLA does not run it: {outcome.refused}")
    observation = observation_of(opcode, outcome.results)
    return Trial(opcode, observation, spelling_of(layout, outcome.text))


def _with_size(opcode: str, layout: Layout, seen: Trial) -> Program | str:
    """Return the program with groups of the size that was seen, or why there is none."""
    groups = [] if seen.observation is None else seen.observation.groups
    sizes = {len(group) for group in groups}
    if len(sizes) != 1:
        return f"an all-reduce over the same groups joins groups of {min(sizes, default=0)} to {max(sizes, default=0)}"
    (size,) = sizes
    if elements(opcode, layout, size) > MOST_ELEMENTS:
        return f"{opcode} on {layout.devices} devices would take more than {MOST_ELEMENTS} numbers"
    return program_for(opcode, layout, size)
