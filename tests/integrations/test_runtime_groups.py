"""Groups on XLA itself: every operation in every mode, and predictions that are wrong."""

from __future__ import annotations

from itertools import product

import pytest

from commlens.analysis import Proof, claim_of, prove
from commlens.analysis.proofs import proof as proof_module
from commlens.integrations.runtime import Runtime

pytestmark = pytest.mark.xla

FLAGGED = ("all-gather", "all-reduce", "reduce-scatter")
PLAIN = ("all-to-all",)
EIGHT = {
    "cross_replica": ((*FLAGGED, *PLAIN), {2: ["{{1,0}}", "{}"], 4: ["{{0,2},{3,1}}", "[2,2]<=[2,2]T(1,0)", "{}"]}),
    "cross_replica_and_partition": (FLAGGED, {2: ["{{0},{1}}", "{{1,0}}", "{}"], 4: ["[2,2]<=[2,2]T(1,0)", "{{3,0},{1,2}}"]}),
    "cross_partition": (PLAIN, {2: ["[2,2]<=[2,2]T(1,0)", "{{3,1},{0,2}}", "{}"], 4: ["{{1,0}}", "{}"]}),
    "flattened_id": (
        FLAGGED,
        {
            2: ["[2,4]<=[4,2]T(1,0)", "{{7,0},{1,6},{5,2},{3,4}}", "mesh['a'=2,'b'=4] {'b':(1)2,'a'}"],
            4: ["[4,2]<=[2,2,2]T(1,0,2)", "mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'a':(2)2}"],
        },
    ),
}  # fmt: skip
"""Mode -> operations, and by number of replicas the groups to run on eight devices."""

CLAIMS = [
    *(
        (spec, mode, replicas, 8 // replicas, opcode)
        for mode, (opcodes, by_replicas) in EIGHT.items()
        for opcode in opcodes
        for replicas, specs in by_replicas.items()
        for spec in specs
    ),
    *(
        ("{{1,0},{0,1}}", mode, replicas, 8 // replicas, "collective-permute")
        for mode, replicas in product(("cross_replica", "cross_partition"), (2, 4))
    ),
    ("{{7,0,3},{1,2},{4,5,6}}", "flattened_id", 8, 1, "all-reduce"),
    ("{{0},{1}}", "cross_replica", 2, 1, "all-reduce"),
    ("[8,8]<=[8,8]T(1,0)", "flattened_id", 8, 8, "reduce-scatter"),
    ("[512,32]<=[8,16,128]T(2,0,1)", "flattened_id", 128, 128, "all-gather"),
]


@pytest.fixture(scope="module")
def proofs() -> tuple[Proof, ...]:
    """Prove all claims in one child process."""
    claims = [
        claim_of(spec, mode, replicas=replicas, partitions=partitions, opcode=opcode)
        for spec, mode, replicas, partitions, opcode in CLAIMS
    ]
    return prove(claims, Runtime().run)


@pytest.mark.parametrize("number", range(len(CLAIMS)), ids=[f"{c[4]} {c[1]} {c[2]}x{c[3]} {c[0]}" for c in CLAIMS])
def test_xla_does_what_is_predicted(number: int, proofs: tuple[Proof, ...]) -> None:
    """Every operation in every mode joins the predicted devices in the predicted order."""
    proof = proofs[number]
    assert (proof.agree, proof.why) == (True, None)
    assert proof.observed == proof.predicted


def test_what_was_run_is_told(proofs: tuple[Proof, ...]) -> None:
    """The spelling in the program, and the smaller layout where one was run."""
    assert [proof.ran for proof in proofs if str(proof.groups).startswith("mesh")] == [
        *(3 * ["mesh['a'=2,'b'=4] {'b':(1)2,'a'}", "{{0,1},{4,5},{2,3},{6,7}}"])
    ]
    assert proofs[-1].scaled == {"replicas": 6, "partitions": 4, "groups": "[8,3]<=[6,4]T(1,0)"}


@pytest.mark.parametrize(("replicas", "partitions"), [(2, 4), (4, 2)])
def test_a_wrong_prediction_is_caught(replicas: int, partitions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two devices exchanged in what is predicted XLA shows the groups as they are, and nothing agrees."""
    counts = {"replicas": replicas, "partitions": partitions}
    halves, single = "[{},2]<=[{}]", "[{1},1]<=[{1}]"
    specs = {
        "cross_replica": halves.format(replicas // 2, replicas),
        "cross_partition": halves.format(partitions // 2, partitions),
        "cross_replica_and_partition": single.format(None, replicas),
        "flattened_id": halves.format(4, 8),
    }
    claims = [
        *(claim_of(specs[mode], mode, **counts, opcode=opcode) for mode, (opcodes, _) in EIGHT.items() for opcode in opcodes),
        claim_of("{{0,1}}", "cross_replica", **counts, opcode="collective-permute"),
    ]  # fmt: skip
    right = prove(claims, Runtime().run)
    truth = proof_module._participants
    monkeypatch.setattr(proof_module, "_participants", lambda layout: _exchanged(truth(layout) or []))
    wrong = prove(claims, Runtime().run)
    assert [proof.agree for proof in right] == [True] * len(claims)
    assert [proof.agree for proof in wrong] == [False] * len(claims)
    assert [sorted(proof.predicted or []) for proof in wrong] != [sorted(proof.observed or []) for proof in wrong]


MERGED = [
    ("{{1,0}}", "cross_replica", "all-gather"),
    ("{{1},{0}}", "cross_replica_and_partition", "all-gather"),
    ("{{0,4},{1,5},{2,6},{3,7}}", "flattened_id", "reduce-scatter"),
    ("{{1,0}}", "cross_replica", "all-to-all"),
    ("{}", "cross_partition", "all-to-all"),
]


def test_a_wrong_size_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups predicted as one: XLA would refuse shapes of that size, so none are taken from a prediction."""
    claims = [claim_of(spec, mode, replicas=2, partitions=4, opcode=opcode) for spec, mode, opcode in MERGED]
    truth = [claim.participation.listed(100) or [] for claim in claims]
    listed = proof_module._participants
    monkeypatch.setattr(proof_module, "_participants", lambda layout: _merged(listed(layout) or []))
    proofs = prove(claims, Runtime().run)
    assert [proof.agree for proof in proofs] == [False] * len(claims)
    assert [proof.predicted for proof in proofs] == [_merged(groups) for groups in truth]
    assert [sorted(proof.observed or []) for proof in proofs] == [sorted(groups) for groups in truth]


def _merged(groups: list[list[int]]) -> list[list[int]]:
    first, second, *others = groups
    return [[*first, *second], *others]


def _exchanged(groups: list[list[int]]) -> list[list[int]]:
    """Put the first device in the place of the last one, and the last one in its place."""
    places = {groups[0][0]: groups[-1][-1], groups[-1][-1]: groups[0][0]}
    return [[places.get(each, each) for each in group] for group in groups]


def test_xla_refuses_and_is_quoted() -> None:
    """What its verifier or its CPU client refuses is no agreement."""
    claims = [
        claim_of("{{0,1}}", "flattened_id", replicas=2, partitions=4, opcode="all-reduce"),
        claim_of("{{0,1}}", "cross_replica", replicas=2, partitions=4, opcode="collective-broadcast"),
        claim_of("{{0,1}}", "cross_replica", replicas=2, partitions=4),
    ]
    partial, broadcast, good = prove(claims, Runtime().run)
    assert (partial.agree, broadcast.agree, good.agree) == (None, None, True)
    assert "should contain 8" in str(partial.why)
    assert "collective-broadcast" in str(broadcast.why)
