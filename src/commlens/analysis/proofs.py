"""What commlens says of collectives, held against a runtime: who takes part, and in which order.

Here nothing runs. What is to be run is a list of :class:`~commlens.analysis.experiments.Program`, and whoever has a
runtime gives back what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from commlens.analysis.experiments import (
    EVEN_ONLY,
    RUNNABLE,
    UNORDERED,
    IdLists,
    Outcome,
    Program,
    elements,
    program_for,
    reading_of,
    spellings,
)
from commlens.analysis.limits import LISTED_LIMIT
from commlens.analysis.participation import groups_participation
from commlens.analysis.records import Record
from commlens.analysis.scaling import scaled_down
from commlens.topology import participant_pairs

if TYPE_CHECKING:
    from commlens.analysis.claims import Claim
    from commlens.analysis.scaling import Layout

Run: TypeAlias = Callable[[Sequence[Program]], Sequence[Outcome]]
"""Runs programs and returns what came of each, in their order."""

MOST_DEVICES: Final = 64
"""Devices up to which a layout is run as it is, unless another number is asked for."""

_MOST_TEXT: Final = 300
_MOST_ELEMENTS: Final = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Scaled(Record):
    """The smaller layout that was run in place of one with too many devices.

    Attributes:
        replicas: replicas it was run with.
        partitions: partitions it was run with.
        groups: its groups or pairs.
    """

    replicas: int
    partitions: int
    groups: str


@dataclass(frozen=True, slots=True, eq=False)
class Proof(Record):
    """A claim and what the runtime did; the keys of a collective in ``commlens prove --format json``.

    Attributes:
        name: the instruction, the first of several.
        names: all instructions that are alike.
        module: the name of their module; None for a list on the command line.
        opcode: the operation.
        group_mode: name of the group mode; None where the flags contradict each other.
        groups: the groups or pairs as they are spelled; None where they are not known.
        replicas: replicas of the module.
        partitions: its partitions.
        predicted: the groups or pairs of global ids that commlens says; of the smaller layout where that was run.
        observed: those that the runtime showed, in the order of ``predicted`` as far as they are alike; None where
            the collective was not run.
        agree: whether they are the same; None where the collective was not run.
        ordered: whether the results show the order inside a group; the sum of an all-reduce does not.
        why: why it was not run, or what in the results fits no groups; None otherwise.
        scaled: the smaller layout that was run; None where it was run as it is.
        ran: the spelling of the groups or pairs in the program that ran; None where none did.
    """

    name: str
    names: list[str]
    module: str | None
    opcode: str
    group_mode: str | None
    groups: str | None
    replicas: int
    partitions: int
    predicted: IdLists | None
    observed: IdLists | None
    agree: bool | None
    ordered: bool
    why: str | None
    scaled: Scaled | None
    ran: str | None


@dataclass(frozen=True, slots=True)
class Proofs:
    """The answer of ``prove`` about groups.

    Attributes:
        collectives: one proof for each claim.
        runtime: what they were run on, e.g. ``"jax 0.10.2"``.
    """

    collectives: tuple[Proof, ...]
    runtime: str

    @property
    def agree(self) -> bool | None:
        """Whether all that was run agrees; None where nothing was run."""
        verdicts = {proof.agree for proof in self.collectives} - {None}
        return None if not verdicts else False not in verdicts

    def as_dict(self) -> dict[str, object]:
        """Return the answer in its JSON form."""
        collectives = [
            {**proof, "scaled": None if proof.scaled is None else dict(proof.scaled)} for proof in self.collectives
        ]
        return {"collectives": collectives, "agree": self.agree, "runtime": self.runtime}


@dataclass(frozen=True, slots=True)
class _Experiment:
    """A claim that can be run.

    Attributes:
        layout: what is run, scaled down where need be.
        predicted: who takes part in it.
        size: members of a group, of the first one where they differ.
        program: what is run.
    """

    layout: Layout
    predicted: IdLists
    size: int
    program: Program


def prove(claims: Sequence[Claim], run: Run, *, most_devices: int = MOST_DEVICES) -> tuple[Proof, ...]:
    """Run claims and say of each whether it holds.

    Args:
        claims: the claims.
        run: the runtime.
        most_devices: devices up to which a layout is run as it is; a larger one is scaled down.

    Returns:
        One proof for each claim, in their order. What cannot be run says why and agrees with nothing.
    """
    plans = [_plan(claim, most_devices) for claim in claims]
    programs = [plan.program for plan in plans if isinstance(plan, _Experiment)]
    outcomes = iter(run(programs) if programs else ())
    return tuple(
        _concluded(claim, plan, next(outcomes)) if isinstance(plan, _Experiment) else _not_run(claim, plan)
        for claim, plan in zip(claims, plans, strict=True)
    )


def _plan(claim: Claim, most_devices: int) -> _Experiment | str:
    """Return how to run a claim, or why it cannot be run."""
    participation = claim.participation
    if claim.layout is None or participation.num_ids is None:
        return participation.unknown_because or "it is not known who takes part"
    if claim.opcode not in RUNNABLE:
        return f"XLA's CPU client does not run {claim.opcode}"
    groups = participation.groups
    if groups is not None and groups.num_devices > claim.layout.devices:
        return f"expected each of the {claim.layout.devices} devices once, found {groups.num_devices} ids in the groups"
    layout = scaled_down(claim.layout, most_devices)
    if layout is None:
        return (
            f"{claim.layout.devices} devices are more than {most_devices} (--max-devices allows more), and there is no "
            "smaller layout with the same digits"
        )
    predicted = _participants(layout)
    if predicted is None:
        return participation.unknown_because or "it is not known who takes part"
    outside = [each for group in predicted for each in group if not 0 <= each < layout.devices]
    if outside:
        return f"expected device ids in 0..{layout.devices - 1}, found {outside[0]}"
    sizes = {len(group) for group in predicted}
    if claim.opcode in EVEN_ONLY and len(sizes) != 1:
        return f"XLA compiles {claim.opcode} only with groups of one size, found {min(sizes)} to {max(sizes)} devices"
    size = max(sizes, default=1)
    if elements(claim.opcode, layout, size) > _MOST_ELEMENTS:
        return f"{claim.opcode} on {layout.devices} devices would take more than {_MOST_ELEMENTS} numbers"
    return _Experiment(layout, predicted, size, program_for(claim.opcode, layout, size))


def _participants(layout: Layout) -> IdLists | None:
    counts = layout.counts
    if layout.pairs is not None:
        return participant_pairs(layout.mode, layout.pairs, counts.replicas, counts.partitions).groups()
    return (
        None if layout.groups is None else groups_participation(layout.mode, layout.groups, counts).listed(LISTED_LIMIT)
    )


def _not_run(claim: Claim, why: str, plan: _Experiment | None = None) -> Proof:
    predicted = claim.participation.listed(LISTED_LIMIT) if plan is None else plan.predicted
    return _proof(claim, plan, predicted, None, None, _shortened(why), None)


def _concluded(claim: Claim, plan: _Experiment, outcome: Outcome) -> Proof:
    if outcome.results is None:
        return _not_run(claim, f"XLA does not run it: {outcome.refused}", plan)
    reading = reading_of(claim.opcode, outcome.results, plan.size)
    key = _key(claim.opcode)
    joined = {device for group in plan.predicted for device in group}
    observed = [group for group in reading.groups if len(group) > 1 or joined.issuperset(group)]
    same = sorted(map(key, observed)) == sorted(map(key, plan.predicted))
    shown = _in_order_of(plan.predicted, observed, key)
    why = _shortened("; ".join(reading.faults)) if reading.faults else None
    ran = spellings(plan.layout)[outcome.text]
    return _proof(claim, plan, plan.predicted, shown, same and why is None, why, ran)


def _key(opcode: str) -> Callable[[Sequence[int]], tuple[int, ...]]:
    """Return what makes two groups the same, as far as the results of an operation show."""
    if opcode == "all-reduce":
        return lambda group: tuple(sorted(group))
    if opcode == "collective-broadcast":
        return lambda group: (*group[:1], *sorted(group[1:]))
    return tuple


def _in_order_of(predicted: IdLists, observed: IdLists, key: Callable[[Sequence[int]], tuple[int, ...]]) -> IdLists:
    """Put observed groups in the order of the predicted ones that they are the same as, and the others behind."""
    left = {key(group): group for group in observed}
    found = [group for group in predicted if left.pop(key(group), None) is not None]
    return [list(group) for group in (*found, *left.values())]


def _proof(
    claim: Claim,
    plan: _Experiment | None,
    predicted: IdLists | None,
    observed: IdLists | None,
    agree: bool | None,
    why: str | None,
    ran: str | None,
) -> Proof:
    mode = claim.participation.mode
    scaled = None
    if plan is not None and plan.layout is not claim.layout:
        scaled = Scaled(plan.layout.counts.replicas, plan.layout.counts.partitions, plan.layout.text)
    return Proof(
        name=claim.names[0],
        names=list(claim.names),
        module=claim.module,
        opcode=claim.opcode,
        group_mode=None if mode is None else str(mode),
        groups=claim.text,
        replicas=claim.counts.replicas,
        partitions=claim.counts.partitions,
        predicted=predicted,
        observed=observed,
        agree=agree,
        ordered=claim.opcode not in UNORDERED,
        why=why,
        scaled=scaled,
        ran=ran,
    )


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_TEXT else f"{line[: _MOST_TEXT - 3]}..."
