"""XLA itself, in child processes: what it shows of groups, what modules compute, and what becomes of it when it breaks."""

from __future__ import annotations

import dataclasses
import re
import sys
from importlib import import_module
from itertools import product
from typing import TYPE_CHECKING

import pytest

from commlens import CommlensError, load
from commlens.analysis import Comparison, Counts, Program, Proof, claim_of, prove
from commlens.analysis import proofs as proofs_module
from commlens.errors import InputError
from commlens.integrations.runtime import Runtime
from commlens.integrations.runtime.children import joined

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from commlens.hlo import Module

pytestmark = pytest.mark.xla

# --- groups ---------------------------------------------------------------------------------------------------------

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
    truth = proofs_module._participants
    monkeypatch.setattr(proofs_module, "_participants", lambda layout: _exchanged(truth(layout) or []))
    wrong = prove(claims, Runtime().run)
    assert [proof.agree for proof in right] == [True] * len(claims)
    assert [proof.agree for proof in wrong] == [False] * len(claims)
    assert [sorted(proof.predicted or []) for proof in wrong] != [sorted(proof.observed or []) for proof in wrong]


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


# --- modules --------------------------------------------------------------------------------------------------------

MODULE = """HloModule step, replica_count=2, num_partitions=4

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  p = f32[4,8]{1,0} parameter(0)
  q = f32[8]{0} parameter(1)
  n = s32[2]{0} parameter(2)
  a = f32[4,8]{1,0} all-reduce(p), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true, to_apply=add
  b = f32[8]{0} all-reduce(q), channel_id=2, replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true, to_apply=add
  c = s32[4]{0} all-gather(n), replica_groups={{0,1}}, dimensions={0}
  ROOT t = (f32[4,8], f32[8], s32[4]) tuple(a, b, c)
}
"""

GROUPS = "{{0,1,2,3},{4,5,6,7}}"
REWRITTEN = MODULE.replace(
    MODULE[MODULE.index("  a = ") : MODULE.index("  ROOT t")],
    f"""  ar = (f32[4,8], f32[8]) all-reduce(p, q), channel_id=1, replica_groups={GROUPS}, use_global_device_ids=true, to_apply=add
  a = f32[4,8] get-tuple-element(ar), index=0
  b.1 = f32[8] get-tuple-element(ar), index=1
  b.2 = f32[1,8]{{0,1}} bitcast(b.1)
  b = f32[8] fusion(b.2), kind=kLoop, calls=flat
  cs = (s32[2], s32[4]) all-gather-start(n), replica_groups=mesh['r'=2] {{'r'}}, dimensions={{0}}
  c = s32[4] all-gather-done(cs)
""",
).replace(
    "ENTRY", "flat {\n  f = f32[1,8] parameter(0)\n  ROOT g = f32[8] reshape(f)\n}\n\nENTRY"
).replace("HloModule step,", "HloModule step, is_scheduled=true,")  # fmt: skip
"""The same computation after passes: combined, asynchronous, fused, scheduled, other spellings and layouts."""


def compared(first: str | Module, second: str | Module, *, processes: int = 1) -> Comparison:
    """Compare two modules."""
    one, other = (load(each) if isinstance(each, str) else each for each in (first, second))
    counts = Counts(one.replica_count or 1, one.num_partitions or 1)
    return Runtime(processes=processes).compare(one, other, counts, max_ulp=16)


def differing(comparison: Comparison) -> list[int]:
    """Return the results that differ."""
    return [output.index for output in comparison.outputs if output.differs is not None]


def test_a_good_rewrite_agrees() -> None:
    """Forms that only a compiler's end has are run in their plain form, and give the same."""
    comparison = compared(MODULE, REWRITTEN)
    assert comparison.agree
    assert [(output.index, output.max_ulp) for output in comparison.outputs] == [(0, 0), (1, 0), (2, 0)]


def test_a_broken_rewrite_does_not() -> None:
    """Other groups change floats, another order changes what is gathered; the place is told."""
    broken = REWRITTEN.replace("{{0,1,2,3},{4,5,6,7}}", "{{0,1,2,7},{4,5,6,3}}").replace("mesh['r'=2] {'r'}", "{{1,0}}")
    comparison = compared(MODULE, broken)
    assert (comparison.agree, differing(comparison)) == (False, [0, 1, 2])
    assert (comparison.outputs[0].max_ulp or 0) > 16
    assert str(comparison.outputs[2].differs).startswith("device 0, element ")


def test_two_processes_agree_with_one() -> None:
    """Half of the devices in each of two processes, which talk over the loopback."""
    (permute, gather) = prove(
        [
            claim_of("{{1,0}}", "cross_replica", replicas=2, partitions=4, opcode="collective-permute"),
            claim_of("[2,4]<=[4,2]T(1,0)", "flattened_id", replicas=2, partitions=4),
        ],
        Runtime(processes=2).run,
    )
    assert (permute.agree, gather.agree) == (True, True)
    broken = compared(MODULE, MODULE.replace("groups={{0,1}}", "groups={{1,0}}"), processes=2)
    assert differing(broken) == [2]


def test_modules_run_in_as_many_processes_as_asked_for() -> None:
    """Two of them find the same, and three cannot share eight devices."""
    assert compared(MODULE, REWRITTEN, processes=2).agree
    with pytest.raises(InputError, match="3 processes share equally"):
        compared(MODULE, MODULE, processes=3)


def test_random_numbers_cannot_be_compared() -> None:
    """What changes from run to run says nothing about another module; a rewrite that makes results random differs."""
    random = MODULE.replace(
        "all-gather(n)", "all-gather(m)"
    ).replace(
        "  c = s32", "  z = s32[] constant(0)\n  o = s32[] constant(1000000)\n  m = s32[2] rng(z, o), distribution=rng_uniform\n  c = s32"
    )  # fmt: skip
    with pytest.raises(InputError, match="that result 2 changes from run to run: device 0"):
        compared(random, random)
    assert differing(compared(MODULE, random)) == [2]


def test_a_module_without_results_agrees_with_nothing() -> None:
    """There is nothing to compare."""
    with pytest.raises(InputError, match="expected results to compare, found none"):
        compared(*["HloModule m, replica_count=2\nENTRY e {\n  ROOT t = () tuple()\n}\n"] * 2)


def test_another_order_of_adding_differs_where_terms_cancel() -> None:
    """By many units of what is left over, by fewer of the largest number: both are told, and it is no agreement."""
    text = """HloModule m, replica_count=2
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[1,4] parameter(0)
  s = f32[] constant(1000)
  t = f32[1,4] broadcast(s), dimensions={}
  q = f32[1,4] multiply(p, p)
  a = f32[1,4] multiply(q, p)
  b = f32[1,4] multiply(p, t)
  n = f32[1,4] negate(b)
  c = f32[3,4] concatenate(a, b, n), dimensions={0}
  z = f32[] constant(0)
  y = f32[4] reduce(c, z), dimensions={0}, to_apply=add
  ROOT r = (f32[4], f32[1,4]) tuple(y, b)
}
"""
    other = text.replace("concatenate(a, b, n)", "concatenate(b, n, a)")
    found, same = compared(text, other).outputs
    beside = re.search(r" \((\d+) ulp of the largest number, 0\.\d+\)$", str(found.differs))
    assert beside is not None
    assert 16 < 2 * int(beside[1]) < (found.max_ulp or 0)
    assert (same.differs, same.max_ulp) == (None, 0)


def test_a_program_before_and_after_the_partitioner_agrees() -> None:
    """A module written for all partitions together is partitioned by XLA, and the other gets the same pieces."""
    whole = """HloModule whole, num_partitions=4
ENTRY e {
  x = f32[8,4] parameter(0), sharding={devices=[4,1]<=[4]}
  y = f32[8,4] multiply(x, x)
  ROOT s = f32[8,4] custom-call(y), custom_call_target="Sharding", sharding={devices=[1,4]<=[4]}
}
"""
    parts = """HloModule parts, num_partitions=4, is_scheduled=true
ENTRY e {
  x = f32[2,4] parameter(0), sharding={devices=[4,1]<=[4]}
  y = f32[2,4] multiply(x, x)
  z = f32[2,4,1] reshape(y)
  a = f32[2,4,1] all-to-all(z), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={1}
  t = f32[4,2,1] transpose(a), dimensions={1,0,2}
  ROOT s = f32[8,1] reshape(t)
}
"""
    assert compared(whole, parts).agree
    assert differing(compared(whole, parts.replace("{{0,1,2,3}}", "{{0,1,3,2}}"))) == [0]
    assert differing(compared(parts, whole.replace("multiply(x, x)", "add(x, x)"))) == [0]


def test_a_partitioned_module_is_not_partitioned_again() -> None:
    """It may ask for its partition, which the partitioner does not take; leftover shardings say nothing."""
    text = """HloModule parts, num_partitions=4
ENTRY e {
  x = u32[4] parameter(0), sharding={devices=[4]<=[4]}
  i = u32[] partition-id()
  b = u32[4] broadcast(i), dimensions={}
  y = u32[4] add(x, b)
  ROOT g = u32[16] all-gather(y), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
}
"""
    assert compared(text, text).agree
    assert differing(compared(text, text.replace("add(x, b)", "add(x, x)"))) == [0]


def test_protos_are_run_without_what_is_around_them(tmp_path: Path) -> None:
    """A binary proto is taken as it is; the text form of one says too little."""
    proto = import_module("jaxlib._hlo").hlo_module_from_text(MODULE).as_serialized_hlo_module_proto()
    wrapped = b"\x0a" + _varint(len(proto)) + proto  # an HloProto has its module in field 1
    module = load(wrapped, replicas=2, partitions=4)
    assert compared(load(MODULE), module).agree
    text_form = load(b'name: "m"\ncomputations { instructions { name: "p" opcode: "parameter" } }\n', replicas=2)
    with pytest.raises(InputError, match="text form"):
        compared(module, text_form)


def _varint(number: int) -> bytes:
    low = number & 127
    return bytes([low | 128]) + _varint(number >> 7) if number > 127 else bytes([low])


REFUSED = {
    "parameters": (MODULE.replace("q = f32[8]{0} parameter(1)", "q = f32[8]{0} broadcast(z), dimensions={}").replace(
        "p = f32[4,8]{1,0} parameter(0)", "z = f32[] constant(1)\n  p = f32[4,8]{1,0} parameter(0)").replace("parameter(2)", "parameter(1)"), "expected 3 parameters"),
    "shapes": (MODULE.replace("s32[2]", "s32[3]").replace("s32[4]", "s32[6]"), "parameter 2 to be int32.2. .*found int32.3."),
    "unknown-operation": (MODULE.replace("all-gather(n)", "all-gathers(n)"), "XLA does not run it"),
    "not-supported": (MODULE.replace("s32[4]{0} all-gather(n), replica_groups={{0,1}}, dimensions={0}", "s32[2]{0} collective-broadcast(n), replica_groups={{0,1}}").replace("f32[8], s32[4])", "f32[8], s32[2])"), "collective-broadcast"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_compared_is_refused(name: str) -> None:
    """The sentence names the module at fault."""
    text, fact = REFUSED[name]
    with pytest.raises(InputError, match=fact):
        compared(MODULE, text)


# --- processes that break -------------------------------------------------------------------------------------------

SUM = "HloModule m\nENTRY e {\n  p = s32[2] parameter(0)\n  ROOT r = s32[2] add(p, p)\n}\n"
ABORTING = SUM.replace("add(p, p)", "all-gather(p), replica_groups=mesh['a'=2], device_ids=(0,1) {'a'}, dimensions={0}")
ENDLESS = """HloModule m
more {
  t = s32[2] parameter(0)
  e = s32[1] slice(t), slice={[0:1]}
  x = s32[] reshape(e)
  z = s32[] constant(0)
  ROOT k = pred[] compare(x, z), direction=GE
}
next {
  t = s32[2] parameter(0)
  o = s32[2] constant({1, 1})
  u = s32[2] add(t, o)
  m = s32[2] constant({100, 100})
  ROOT r = s32[2] remainder(u, m)
}
ENTRY e {
  p = s32[2] parameter(0)
  ROOT w = s32[2] while(p), condition=more, body=next
}
"""


def program(text: str) -> Program:
    """Return a program for one device."""
    return Program((text,), 1, 1, ((1, 2),))


def test_a_lost_process_costs_one_program() -> None:
    """XLA ends the process in the second program, never ends in the fourth, and all others are run."""
    outcomes = Runtime(timeout_s=1.5).run([program(text) for text in (SUM, ABORTING, SUM, ENDLESS, SUM)])
    assert [outcome.results for outcome in outcomes] == [((2, 4),), None, ((2, 4),), None, ((2, 4),)]
    assert "XLA ended its process" in str(outcomes[1].refused)
    assert outcomes[3].refused == "it was ended after 1.5 seconds without an answer"


def test_the_first_text_that_xla_takes_is_run() -> None:
    """Spellings that a release does not read are passed over, and the one that ran is told."""
    texts = (SUM.replace("add", "nothing"), SUM, SUM.replace("add", "subtract"))
    first, second = Runtime().run([Program(texts[1:], 1, 1, ((1, 2),)), Program(texts, 1, 1, ((1, 2),))])
    assert (first.text, first.results) == (0, ((2, 4),))
    assert (second.text, second.results) == (1, ((2, 4),))


def test_after_some_losses_the_rest_is_given_up() -> None:
    """A module full of what ends XLA does not start a process for each."""
    *lost, given_up, also = Runtime().run([program(ABORTING)] * 6)
    assert all("XLA ended its process" in str(outcome.refused) for outcome in lost)
    assert given_up == also
    assert given_up.refused == "it was not run: XLA had been lost 4 times before"


def test_a_comparison_that_never_ends_is_ended() -> None:
    """The time limit holds for modules too, and the sentence names them."""
    module = load(ENDLESS, replicas=1)
    runtime = dataclasses.replace(Runtime(), timeout_s=1.5)
    with pytest.raises(InputError, match="ended after 1.5 seconds"):
        runtime.compare(module, module, Counts(1, 1), max_ulp=0)


def test_a_process_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a child there is no answer."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(CommlensError, match="cannot be started"):
        Runtime().run([program(SUM)])


@pytest.mark.parametrize("missing", ["jax", "jaxlib"])
def test_without_jax_the_extra_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package does without jax; proving does not."""
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(CommlensError, match=r"install commlens\[jax\]"):
        Runtime()


def test_nothing_to_run_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No programs, no process."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert Runtime().run([]) == []


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([{"refused": "no"}], {"refused": "no"}),
        ([{"text": 0, "results": {"0": [1]}}, {"refused": "no"}], {"refused": "no"}),
        ([{"outputs": [{"index": 0, "max_ulp": 1}]}, {"outputs": [{"index": 0, "differs": "x"}]}], {"outputs": [{"index": 0, "differs": "x"}]}),
        ([{"outputs": [{"index": 0, "max_ulp": 9, "differs": "x"}]}, {"outputs": [{"index": 0, "max_ulp": 3}]}], {"outputs": [{"index": 0, "max_ulp": 9, "differs": "x"}]}),
    ],
)  # fmt: skip
def test_answers_of_several_processes_are_joined(parts: Sequence[dict], whole: dict) -> None:
    """What one process refuses is refused, and of two results the worse one counts."""
    assert joined(parts) == whole
