"""Wrong predictions: each is run as the instruction is written, and none is taken for what a runtime cannot do."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pytest

import twins_runtime
from commlens.analysis import Outcome, Proof, claim_of, claims_of, participation, prove
from commlens.analysis.proofs import proof as proof_module
from commlens.topology import CollectiveOpGroupMode as Mode
from commlens.topology import get_collective_op_group_mode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlens.analysis import Program, Report

Groups = list[list[int]]

WRONG: dict[str, Callable[[Groups], Groups]] = {
    "split": lambda groups: [half for group in groups for half in (group[::2], group[1::2])],
    "merge": lambda groups: [list(chain(*groups[:2])), *groups[2:]],
    "shrink": lambda groups: [group[:-1] for group in groups],
    "all": lambda groups: [list(chain(*groups))],
    "single": lambda groups: [[each] for group in groups for each in group],
    "drop": lambda groups: groups[:-1],
    "twice": lambda groups: [*groups, groups[0]],
    "outside": lambda groups: [[each + 1 for each in group] for group in groups],
    "order": lambda groups: [groups[0][::-1], *groups[1:]],
}
"""What may be wrong with a prediction: the size of its groups, their number, their members, their order."""

FLAGGED = ("all-gather", "reduce-scatter", "all-reduce")
CASES = [
    *((opcode, "cross_replica", spec) for opcode in (*FLAGGED, "all-to-all") for spec in ("{{1,0}}", "{}")),
    *((opcode, "cross_replica_and_partition", spec) for opcode in FLAGGED for spec in ("{{1},{0}}", "{}")),
    *((opcode, "flattened_id", "{{0,4},{1,5},{2,6},{3,7}}") for opcode in FLAGGED),
    *(("all-to-all", "cross_partition", spec) for spec in ("{{3,0},{1,2}}", "{}")),
]


def with_prediction(change: Callable[[Groups], Groups], monkeypatch: pytest.MonkeyPatch) -> None:
    """Put something else in the place of what is predicted."""
    truth = proof_module._participants
    monkeypatch.setattr(proof_module, "_participants", lambda layout: change(truth(layout) or []))


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(("opcode", "mode", "spec"), CASES)
def test_a_wrong_prediction_differs(
    opcode: str, mode: str, spec: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is wrong with it, sizes above all, both sides are shown: the twin refuses shapes as XLA does."""
    claim = claim_of(spec, mode, replicas=2, partitions=4, opcode=opcode)
    (right,) = prove([claim], twins_runtime.run)
    assert (right.agree, right.observed) == (True, right.predicted)
    truth = right.predicted
    assert truth is not None
    with_prediction(WRONG[wrong], monkeypatch)
    (proof,) = prove([claim], twins_runtime.run)
    assert proof.agree is (_seen(opcode, WRONG[wrong](truth)) == _seen(opcode, truth))
    assert proof.predicted == WRONG[wrong](truth)
    assert sorted(map(sorted, proof.observed or [])) == sorted(map(sorted, truth))


def _seen(opcode: str, groups: Groups) -> Groups:
    """Return what an operation shows of groups: a sum has no order."""
    return sorted(map(sorted, groups)) if opcode == "all-reduce" else sorted(groups)


def test_a_group_of_one_device_may_not_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that keeps to itself is a group; XLA runs no lists that leave devices out."""
    claim = claim_of("{{0,1},{2}}", "cross_replica", replicas=3, partitions=1)
    with_prediction(lambda groups: groups[:-1], monkeypatch)
    (proof,) = prove([claim], twins_runtime.run)
    assert (proof.agree, proof.predicted, proof.observed) == (False, [[0, 1]], [[0, 1], [2]])


FLAGS = {
    "reduced": ("a = f32[8] all-reduce(p), channel_id=1, replica_groups={{0,1}}, to_apply=add", [[0, 1, 2, 3, 4, 5, 6, 7]]),
    "permuted": ("a = f32[8] collective-permute(p), channel_id=1, source_target_pairs={{0,1}}", [[0, 1], [4, 5]]),
    "exchanged": ("a = f32[8] all-to-all(p), channel_id=1, replica_groups={}, dimensions={0}", [[0, 1, 2, 3], [4, 5, 6, 7]]),
}  # fmt: skip


@pytest.mark.parametrize("name", FLAGS)
def test_a_wrong_mode_differs(name: str, report_of: Callable[..., Report], monkeypatch: pytest.MonkeyPatch) -> None:
    """The program states the channel and the flag of the instruction, not those of the mode that was worked out."""

    def without_partitions(has_channel: bool, use_global_device_ids: bool | None) -> Mode:
        mode = get_collective_op_group_mode(has_channel, use_global_device_ids)
        return mode if mode is Mode.FLATTENED_ID else Mode.CROSS_REPLICA

    monkeypatch.setattr(participation, "get_collective_op_group_mode", without_partitions)
    line, truth = FLAGS[name]
    (proof,) = prove(claims_of(report_of(line, header="replica_count=2, num_partitions=4")), twins_runtime.run)
    assert (proof.agree, proof.group_mode, proof.observed) == (False, "kCrossReplica", truth)


# --- an operation that does not run beside a sum that does -----------------------------------------------------------


def refusing(opcode: str) -> Callable[[Sequence[Program]], list[Outcome]]:
    """Return the twin without one operation."""

    def run(programs: Sequence[Program]) -> list[Outcome]:
        return [
            Outcome(None, refused="not today") if f" {opcode}(" in program.texts[0] else twins_runtime.run_one(program)
            for program in programs
        ]

    return run


def proof_without(opcode: str, spec: str = "{{1,0},{3,2}}") -> Proof:
    """Prove an all-gather where an operation does not run."""
    claim = claim_of(spec, "cross_replica", replicas=4, partitions=1, opcode="all-gather")
    (proof,) = prove([claim], refusing(opcode))
    return proof


@pytest.mark.parametrize("opcode", ["all-gather", "all-reduce"])
def test_a_sum_alone_is_no_agreement(opcode: str) -> None:
    """The members are right, and the order has not been seen."""
    proof = proof_without(opcode)
    assert (proof.agree, proof.observed, proof.why) == (None, None, "XLA does not run it: not today")


def test_a_sum_alone_is_enough_to_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other members than predicted are wrong in any order."""
    with_prediction(lambda groups: groups[:1], monkeypatch)
    proof = proof_without("all-gather")
    assert (proof.agree, proof.ordered, proof.observed) == (False, False, [[1, 0], [2, 3]])
    assert proof.why == "XLA does not run it: not today"


def test_sums_over_groups_of_several_sizes() -> None:
    """A runtime that makes them of a list with one size is noticed, though the operation cannot be built then."""
    claim = claim_of("{{0,1},{2,3}}", "cross_replica", replicas=4, partitions=1, opcode="all-gather")
    (proof,) = prove([claim], twins_runtime.run_otherwise(lambda _: [[0, 1, 2], [3]]))
    assert (proof.agree, proof.observed) == (False, [[0, 1, 2], [3]])
    assert proof.why == "an all-reduce over the same groups joins groups of 1 to 3"
