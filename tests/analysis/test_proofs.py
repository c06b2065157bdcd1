from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies
import twins_runtime
from commlens import CommlensError, load, report
from commlens.analysis import Claim, Outcome, Proof, Proofs, claim_of, claims_of, prove
from commlens.errors import GrammarError, InputError
from commlens.topology import IotaReplicaGroupList

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlens.analysis import Program, Report

GROUPS = "{{0,1,2,3},{4,5,6,7}}"


def proof_of(spec: str, mode: str, replicas: int, partitions: int, opcode: str | None = None, **options: int) -> Proof:
    """Prove one list on the twin."""
    claim = claim_of(spec, mode, replicas=replicas, partitions=partitions, opcode=opcode)
    (proof,) = prove([claim], twins_runtime.run, **options)
    return proof


# --- what is claimed ------------------------------------------------------------------------------------------------


def test_alike_collectives_are_one_claim(report_of: Callable[..., Report]) -> None:
    """Opcode, mode and spelling make a claim; names, shapes and channels do not."""
    lines = (
        f"a = f32[16] all-reduce(p), channel_id=1, replica_groups={GROUPS}, use_global_device_ids=true, to_apply=add",
        f"b = f32[64] all-reduce(q), channel_id=2, replica_groups={GROUPS}, use_global_device_ids=true, to_apply=add",
        "c = f32[16] all-reduce(p), channel_id=3, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=add",
        "d = f32[16] all-reduce(p), replica_groups={{0,1}}, to_apply=add",
        "e = f32[16] all-reduce(p), channel_id=4, replica_groups={{0,1}}, to_apply=add",
        "f = f32[16] collective-permute(p), source_target_pairs={{0,1}}",
    )
    claims = claims_of(report_of(*lines, header="replica_count=2, num_partitions=4"))
    assert [claim.names for claim in claims] == [("a", "b"), ("c",), ("d",), ("e",), ("f",)]
    assert [str(claim.participation.mode) for claim in claims] == [
        *("kFlattenedID", "kFlattenedID", "kCrossReplica", "kCrossReplicaAndPartition", "kCrossReplica")
    ]
    assert {claim.module for claim in claims} == {"m"}


def test_counts_are_needed() -> None:
    """Without counts nothing can be run, and the message says how to give them."""
    text = "HloModule m\nENTRY e {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] all-gather(p), dimensions={0}\n}\n"
    with pytest.raises(InputError, match="--replicas and --partitions"):
        claims_of(report(load(text)))
    assert len(claims_of(report(load(text, replicas=2)))) == 1
    assert claims_of(report(load(text.replace("all-gather", "copy").replace(", dimensions={0}", "")))) == []


@pytest.mark.parametrize(
    ("mode", "spec", "opcode"),
    [
        ("kFlattenedID", "{{0,1},{2,3}}", "all-gather"),
        ("cross_replica", "{{0},{1}}", "all-gather"),
        ("cross_replica_and_partition", "{}", "all-gather"),
        ("cross_partition", "{{0,1}}", "all-to-all"),
        ("kFlattenedID", "{{0,1},{2},{3}}", "all-reduce"),
    ],
)
def test_the_opcode_that_tells_most(mode: str, spec: str, opcode: str) -> None:
    """Without an opcode one is taken that can have the mode, and shows the order if any does."""
    assert claim_of(spec, mode, replicas=2, partitions=2).opcode == opcode


@pytest.mark.parametrize(
    ("spec", "mode", "opcode", "fact"),
    [
        ("{{0,1}}", "cross_partition", "all-reduce", "kCrossReplicaAndPartition"),
        ("{{0,1}}", "flattened_id", "all-to-all", "kCrossReplica or kCrossPartition"),
        ("{{0,1}}", "cross_replica_and_partition", "collective-permute", "kCrossReplica or kCrossPartition"),
        ("{{0,1}}", "flattened_id", "recv", "kCrossReplica or kCrossPartition"),
        ("{{0,1}}", "cross_replica", "all-reduces", "'all-reduces'"),
        ("{{0,1}}", "crossing", None, "'crossing'"),
    ],
)
def test_impossible_claims_are_refused(spec: str, mode: str, opcode: str | None, fact: str) -> None:
    """An operation that is never in a mode cannot be asked about in it."""
    with pytest.raises(CommlensError, match=fact):
        claim_of(spec, mode, replicas=2, partitions=2, opcode=opcode)


def test_long_names_are_quoted_in_part() -> None:
    """A sentence does not grow with what it complains of."""
    with pytest.raises(CommlensError) as caught:
        claim_of("{{0,1}}", "cross_replica", replicas=2, partitions=2, opcode="x" * 8000)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("spec", "opcode"), [("{{0,1}", None), ("[2,1]<=[2]", "collective-permute"), ("{{0}}", "send")]
)
def test_broken_specs_are_refused(spec: str, opcode: str | None) -> None:
    """A spec is read as groups or as pairs."""
    with pytest.raises(GrammarError):
        claim_of(spec, "cross_replica", replicas=2, partitions=2, opcode=opcode)


# --- what is proved -------------------------------------------------------------------------------------------------


@given(
    strategies.iota_groups() | strategies.mesh_groups(), st.sampled_from(["all-gather", "all-reduce", "reduce-scatter"])
)
def test_what_is_said_is_what_the_twin_does(groups: IotaReplicaGroupList, opcode: str) -> None:
    """On the twin every claim about groups of all ids holds, scaled down or not."""
    proof = proof_of(str(groups), "flattened_id", 1, groups.num_devices, opcode, most_devices=12)
    assert (proof.agree, proof.why is None) in ((True, True), (None, False))
    assert proof.observed == (proof.predicted if proof.agree else None)
    if groups.num_devices <= 12:
        assert proof.agree
        assert proof.scaled is None


def test_all_four_modes_agree() -> None:
    """The table of modes, on two ways to share eight devices."""
    for replicas, partitions in ((2, 4), (4, 2)):
        everybody = ",".join(map(str, reversed(range(replicas))))
        parts = ",".join(map(str, reversed(range(partitions))))
        for mode, ids in (
            ("cross_replica", everybody),
            ("cross_replica_and_partition", everybody),
            ("cross_partition", parts),
            ("flattened_id", "7,6,5,4,3,2,1,0"),
        ):
            proof = proof_of(f"{{{{{ids}}}}}", mode, replicas, partitions)
            assert (proof.agree, proof.ordered) == (True, True)
            assert proof.observed == proof.predicted


WRONG = {
    "another-group": ("all-reduce", lambda groups: [[0, 1], *groups[1:], [2, 3]]),
    "another-order": ("all-gather", lambda groups: [group[::-1] for group in groups]),
    "other-parts": ("reduce-scatter", lambda groups: [group[::-1] for group in groups]),
    "exchanged": ("all-to-all", lambda groups: [group[1:] + group[:1] for group in groups]),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_runtime_is_noticed(name: str) -> None:
    """Where a runtime joins others than predicted, the claim fails and both sides are there."""
    opcode, change = WRONG[name]
    mode = "cross_partition" if opcode == "all-to-all" else "flattened_id"
    spec = "{{0,1,2,3}}" if opcode == "all-to-all" else GROUPS
    claim = claim_of(spec, mode, replicas=2, partitions=4, opcode=opcode)
    (proof,) = prove([claim], twins_runtime.run_otherwise(change))
    assert proof.agree is False
    assert proof.predicted == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert proof.observed not in (None, proof.predicted)


def test_the_order_of_a_sum_does_not_count() -> None:
    """An all-reduce shows who took part, and says that it shows no more."""
    claim = claim_of("{{2,0},{1,3}}", "flattened_id", replicas=1, partitions=4, opcode="all-reduce")
    (proof,) = prove([claim], twins_runtime.run_otherwise(lambda groups: [group[::-1] for group in groups]))
    assert (proof.agree, proof.ordered, proof.observed) == (True, False, [[2, 0], [1, 3]])


def test_results_that_fit_no_groups_agree_with_none() -> None:
    """The groups alone could look right."""
    claim = claim_of("{{0,1},{2,3}}", "cross_replica", replicas=4, partitions=1, opcode="all-to-all")

    def run(programs: Sequence[Program]) -> Sequence[Outcome]:
        (outcome,) = twins_runtime.run(programs)
        assert outcome.results is not None
        return [Outcome(tuple(tuple(number ^ 2 for number in vector) for vector in outcome.results))]

    (proof,) = prove([claim], run)
    assert proof.observed == proof.predicted
    assert proof.agree is False
    assert "device 0 got element 2 of device 0" in str(proof.why)


def test_pairs_count_as_a_set() -> None:
    """A permute agrees when the same devices send to the same ones."""
    proof = proof_of("{{1,0},{0,1}}", "cross_partition", 2, 3, "collective-permute")
    assert (proof.agree, proof.observed) == (True, [[1, 0], [0, 1], [4, 3], [3, 4]])
    claim = claim_of("{{1,0}}", "cross_replica", replicas=2, partitions=1, opcode="collective-permute")
    (proof,) = prove([claim], twins_runtime.run_otherwise(lambda pairs: [pair[::-1] for pair in pairs]))
    assert (proof.agree, proof.predicted, proof.observed) == (False, [[1, 0]], [[0, 1]])


def test_a_larger_layout_says_what_was_run() -> None:
    """What is predicted and observed is then of the smaller layout."""
    proof = proof_of("[16,32]<=[32,16]T(1,0)", "flattened_id", 1, 512)
    assert proof.agree
    assert proof.scaled == {"replicas": 1, "partitions": 6, "groups": "[2,3]<=[3,2]T(1,0)"}
    assert proof.predicted == proof.observed == [[0, 2, 4], [1, 3, 5]]
    assert (proof.partitions, proof.groups) == (512, "[16,32]<=[32,16]T(1,0)")


NOT_PROVABLE = {
    "no-such-program": ("{{0,1}}", "cross_replica", "ragged-all-to-all", "does not run ragged-all-to-all"),
    "transfers": ("{{0,1}}", "cross_replica", "send", "does not run send"),
    "nobody-answers": ("{{0,9}}", "cross_replica", None, "found 9"),
    "outside": ("{{0,9},{1,2}}", "flattened_id", None, "found 9"),
    "negative": ("{{-1,0}}", "flattened_id", None, "found -1"),
    "uneven": ("{{0,1},{2}}", "flattened_id", "all-gather", "1 to 2 ids"),
    "no-groups": ("{}", "flattened_id", None, "cannot be empty"),
    "more-ids-than-devices": ("[1000000,1000000]<=[1000000000000]", "flattened_id", None, "1000000000000 ids"),
}


@pytest.mark.parametrize("name", NOT_PROVABLE)
def test_what_cannot_be_run_agrees_with_nothing(name: str) -> None:
    """It says why, and the runtime is not asked."""
    spec, mode, opcode, fact = NOT_PROVABLE[name]

    def run(programs: Sequence[Program]) -> Sequence[Outcome]:
        pytest.fail(f"asked to run {programs}")

    claim = claim_of(spec, mode, replicas=2, partitions=2, opcode=opcode)
    (proof,) = prove([claim], run)
    assert (proof.observed, proof.agree, proof.ran) == (None, None, None)
    assert fact in str(proof.why)


def test_what_is_too_large_says_so() -> None:
    """Pairs and irregular groups have no smaller layout; too many numbers are not sent to a runtime."""
    pairs = "{" + ",".join(f"{{{i},{i ^ 5}}}" for i in range(128)) + "}"
    assert "128 devices are more than 64" in str(proof_of(pairs, "cross_replica", 128, 1, "collective-permute").why)
    assert proof_of(pairs, "cross_replica", 128, 1, "collective-permute", most_devices=128).agree
    many = proof_of("[1,1024]<=[1024]", "flattened_id", 1, 1024, "reduce-scatter", most_devices=1024)
    assert "would take more than 4194304 numbers" in str(many.why)


def test_a_refusal_is_quoted_and_cut() -> None:
    """What a runtime says of a program it does not take is the reason, on one line."""
    claim = claim_of("{{0,1}}", "cross_replica", replicas=2, partitions=1)
    (proof,) = prove([claim], lambda _: [Outcome(None, refused="no\n  such " + "x" * 400)])
    assert (proof.agree, proof.predicted) == (None, [[0, 1]])
    assert str(proof.why).startswith("XLA does not run it: no such xxx")
    assert len(str(proof.why)) == 300


def test_only_what_can_be_run_is_asked_for(report_of: Callable[..., Report]) -> None:
    """All programs of a module are asked for at once, and their outcomes stay with their collectives."""
    lines = (
        "a = f32[16] all-reduce(p), replica_groups={{0,9}}, to_apply=add",
        "b = f32[16] all-reduce(p), replica_groups={{1,0}}, to_apply=add",
        "c = f32[16] collective-broadcast(p), replica_groups={{1,0}}",
        "d = f32[16] all-reduce(p), replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add",
        "f = f32[16] collective-permute(p), source_target_pairs={{1,0}}",
    )
    asked: list[int] = []

    def run(programs: Sequence[Program]) -> Sequence[Outcome]:
        asked.append(len(programs))
        return twins_runtime.run(programs)

    proofs = prove(claims_of(report_of(*lines, header="replica_count=2, num_partitions=2")), run)
    assert asked == [3]
    assert [(proof.name, proof.agree) for proof in proofs] == [
        *(("a", None), ("b", True), ("c", True), ("d", None), ("f", True))
    ]
    assert proofs[3].group_mode is None
    assert "use_global_device_ids" in str(proofs[3].why)


def claim_that_fails() -> Claim:
    """Return a claim about two devices."""
    return claim_of("{{0,1}}", "cross_replica", replicas=2, partitions=1)


def test_the_verdict_on_all() -> None:
    """One disagreement is enough; nothing run is no agreement."""
    (good,) = prove([claim_that_fails()], twins_runtime.run)
    (bad,) = prove([claim_that_fails()], twins_runtime.run_otherwise(lambda _: [[1, 0]]))
    (none,) = prove([claim_that_fails()], lambda _: [Outcome(None, refused="not today")])
    for proofs, verdict in (((good, none), True), ((good, bad, none), False), ((none,), None), ((), None)):
        assert Proofs(proofs, "twin").agree is verdict
    answer = Proofs((good, bad, none), "twin").as_dict()
    assert json.loads(json.dumps(answer)) == answer
    assert {"name", "predicted", "observed", "agree", "why", "scaled"} <= dict(good).keys()
