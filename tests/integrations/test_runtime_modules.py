"""Two modules on XLA itself: what they compute, whatever form a compiler left them in."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from commlens import load
from commlens.analysis import Comparison, Counts, claim_of, prove
from commlens.errors import InputError
from commlens.integrations.runtime import Runtime

if TYPE_CHECKING:
    from pathlib import Path

    from commlens.hlo import Module

pytestmark = pytest.mark.xla

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
