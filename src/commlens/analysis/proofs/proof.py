"""What commlens says of collectives, held against a runtime: who takes part, and in which order.

Here nothing runs. What is to be run is a list of :class:`~commlens.analysis.proofs.programs.Program`, and whoever has a
runtime gives back what came of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.analysis.limits import LISTED_LIMIT
from commlens.analysis.participation import groups_participation
from commlens.analysis.proofs.programs import EVEN_ONLY, RUNNABLE, UNORDERED, elements
from commlens.analysis.proofs.scaling import scaled_down
from commlens.analysis.proofs.trials import MOST_ELEMENTS, run_trials
from commlens.analysis.records import Record
from commlens.topology import participant_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlens.analysis.proofs.claims import Claim
    from commlens.analysis.proofs.observations import IdLists
    from commlens.analysis.proofs.scaling import Layout
    from commlens.analysis.proofs.trials import Run, Trial

MOST_DEVICES: Final = 64
"""Devices up to which a layout is run as it is, unless another number is asked for."""

_MOST_TEXT: Final = 300


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
        ordered: whether the results show the order inside a group; the sum of an all-reduce does not, and it is all
            that is seen where the operation itself does not run.
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
    """

    layout: Layout
    predicted: IdLists


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
    layouts = [
        (claim.opcode, plan.layout) for claim, plan in zip(claims, plans, strict=True) if isinstance(plan, _Experiment)
    ]
    seen = iter(run_trials(layouts, run))
    return tuple(
        _concluded(claim, plan, next(seen)) if isinstance(plan, _Experiment) else _not_run(claim, plan)
        for claim, plan in zip(claims, plans, strict=True)
    )


def _plan(claim: Claim, most_devices: int) -> _Experiment | str:
    """Return how to run a claim, or why it cannot be run."""
    participation = claim.participation
    unknown = participation.unknown_because or "it is not known who takes part"
    if claim.layout is None or participation.num_ids is None:
        return unknown
    if claim.opcode not in RUNNABLE:
        return f"XLA's CPU client does not run {claim.opcode}"
    why = _cannot_be_compiled(claim.opcode, claim.layout)
    if why is not None:
        return why
    layout = scaled_down(claim.layout, most_devices)
    if layout is None:
        return (
            f"{claim.layout.devices} devices are more than {most_devices} (--max-devices allows more), and there is no "
            "smaller layout with the same digits"
        )
    if elements("all-reduce", layout) > MOST_ELEMENTS:
        return f"{claim.opcode} on {layout.devices} devices would take more than {MOST_ELEMENTS} numbers"
    outside = _outside(layout)
    if outside is not None:
        return f"expected ids in 0..{layout.ids - 1}, found {outside}"
    predicted = _participants(layout)
    return unknown if predicted is None else _Experiment(layout, predicted)


def _cannot_be_compiled(opcode: str, layout: Layout) -> str | None:
    """Return what in groups as they are written lets XLA refuse them; None where there is nothing.

    What is predicted says nothing here: a wrong prediction is to be run and seen.
    """
    groups = layout.groups
    if groups is None or groups.num_replica_groups == 0:
        return None
    if groups.num_devices > layout.ids:
        return f"expected each of the ids 0..{layout.ids - 1} once, found {groups.num_devices} ids in the groups"
    if opcode in EVEN_ONLY and groups.num_devices_per_group is None:
        sizes = [len(group) for group in groups.groups()]
        return f"XLA compiles {opcode} only with groups of one size, found {min(sizes)} to {max(sizes)} ids"
    return None


def _outside(layout: Layout) -> int | None:
    groups = [] if layout.groups is None else layout.groups.groups()
    return next((each for group in groups for each in group if not 0 <= each < layout.ids), None)


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


def _concluded(claim: Claim, plan: _Experiment, seen: Trial) -> Proof:
    if seen.observation is None:
        return _not_run(claim, seen.refused or "XLA does not run it", plan)
    key = _key(seen.opcode)
    observed = seen.observation.groups
    same = sorted(map(key, observed)) == sorted(map(key, plan.predicted))
    faults = seen.observation.faults
    if same and not faults and seen.refused is not None:
        return _not_run(claim, seen.refused, plan)
    shown = _in_order_of(plan.predicted, observed, key)
    why = "; ".join(faults) or seen.refused
    return _proof(
        claim, plan, plan.predicted, shown, same and not faults, None if why is None else _shortened(why), seen
    )


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
    seen: Trial | None,
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
        ordered=(claim.opcode if seen is None else seen.opcode) not in UNORDERED,
        why=why,
        scaled=scaled,
        ran=None if seen is None else seen.ran,
    )


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_TEXT else f"{line[: _MOST_TEXT - 3]}..."
