"""What two modules may be and say on XLA itself: forms it is helped with, limits, types, results that say nothing."""

from __future__ import annotations

import pytest

from commlens import load
from commlens.analysis import Comparison, Counts
from commlens.errors import InputError
from commlens.integrations.runtime import Runtime

pytestmark = pytest.mark.xla


def compared(first: str, second: str) -> Comparison:
    """Compare two modules."""
    one, other = (load(text, replicas=1) for text in (first, second))
    return Runtime().compare(one, other, Counts(1, one.num_partitions or 1), max_ulp=16)


def differing(comparison: Comparison) -> list[int]:
    """Return the results that differ."""
    return [output.index for output in comparison.outputs if output.differs is not None]


PERMUTED = """HloModule parts, num_partitions=4
ENTRY e {
  x = u32[4] parameter(0), sharding={devices=[4]<=[4]}
  i = u32[] partition-id()
  b = u32[4] broadcast(i), dimensions={}
  y = u32[4] add(x, b)
  ROOT g = u32[4] collective-permute(y), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
}
"""


def test_a_partitioned_permute_is_not_partitioned_again() -> None:
    """Pairs are a sign of the partitioner as groups are; the partitioner would not take the partition's own id."""
    assert compared(PERMUTED, PERMUTED).agree
    assert differing(compared(PERMUTED, PERMUTED.replace("{2,3},{3,0}", "{2,0},{3,3}"))) == [0]


APART = """HloModule whole, num_partitions=4
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[8,4] parameter(0), sharding={devices=[4,1]<=[4]}
  c = f32[8,4] custom-call(x), custom_call_target="Sharding", sharding={devices=[4,1]<=[4]}
  m = f32[2,4] custom-call(c), custom_call_target="SPMDFullToShardShape", sharding={manual}
  n = f32[2,4] multiply(m, m), sharding={manual}
  y = f32[2,4] all-reduce(m), channel_id=1, replica_groups=GROUPS, to_apply=add, sharding={manual}
  z = f32[2,4] all-reduce(n), channel_id=2, replica_groups=GROUPS, to_apply=add, sharding={manual}
  w = f32[2,4] subtract(y, z), sharding={manual}
  d = f32[2,4] custom-call(w), custom_call_target="Sharding", sharding={manual}
  ROOT r = f32[8,4] custom-call(d), custom_call_target="SPMDShardToFullShape", sharding={devices=[4,1]<=[4]}
}
""".replace("GROUPS", "{{0,1,2,3}}, use_global_device_ids=true")

COMBINED = (
    APART[: APART.index("  y = ")]
    + """  t = (f32[2,4], f32[2,4]) all-reduce(m, n), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, \
to_apply=add, sharding={{manual}, {manual}}
  y = f32[2,4] get-tuple-element(t), index=0, sharding={manual}
  z = f32[2,4] get-tuple-element(t), index=1, sharding={manual}
"""
    + APART[APART.index("  w = ") :]
)
"""The same program with its two sums in one collective, as a combiner leaves it."""


def test_a_combined_program_before_the_partitioner_agrees() -> None:
    """A collective of several operands becomes one for each where XLA partitions the module, too."""
    assert compared(APART, COMBINED).agree
    assert differing(compared(APART, COMBINED.replace("subtract(y, z)", "subtract(z, y)"))) == [0]


def test_groups_by_a_named_mesh_are_written_out() -> None:
    """XLA's reader does not take this spelling."""
    text = PERMUTED.replace("collective-permute(y)", "all-to-all(y), dimensions={0}").replace(
        "source_target_pairs", "replica_groups"
    )
    lists, named = (text.replace("{{0,1},{1,2},{2,3},{3,0}}", each) for each in ("{{0,1},{2,3}}", "@mesh<a=2,b=2> {b}"))
    assert compared(lists, named).agree
    assert differing(compared(lists, named.replace("{b}", "{a}"))) == [0]


def test_parameters_have_a_limit_together() -> None:
    """Each of them would be small enough."""
    lines = "".join(f"  p{each} = f32[30000000] parameter({each})\n" for each in range(12))
    text = f"HloModule m\nENTRY e {{\n{lines}  ROOT r = f32[30000000] add(p0, p1)\n}}\n"
    with pytest.raises(InputError, match="1073741824 bytes together on all devices, found 1440000000"):
        compared(text, text)


NO_NUMBER = """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  z = f32[4] subtract(p, p)
  d = f32[4] divide(z, z)
  ROOT r = (f32[4], f32[4]) tuple(d, p)
}
"""


def test_results_without_a_number_show_nothing() -> None:
    """They do not count beside others, and alone they are no agreement."""
    some = compared(NO_NUMBER, NO_NUMBER)
    assert (some.agree, [output.finite for output in some.outputs]) == (True, [False, True])
    none = NO_NUMBER.replace("tuple(d, p)", "tuple(d, d)")
    assert compared(none, none).agree is None


SMALL = """HloModule m
ENTRY e {{
  p = {0}[8] parameter(0)
  k = {0}[] constant({1})
  b = {0}[8] broadcast(k), dimensions={{}}
  ROOT x = {0}[8] multiply(p, b)
}}
"""


@pytest.mark.parametrize(
    ("dtype", "factor"),
    [("f8e4m3fn", 4), ("f8e5m2", 4), ("f8e8m0fnu", 2), ("f4e2m1fn", -1), ("bf16", 1.1), ("f16", 1.01)],
)
def test_few_digits_allow_few_units(dtype: str, factor: float) -> None:
    """What would be rounding of a wide float is a factor of a narrow one."""
    one, other = SMALL.format(dtype, 1), SMALL.format(dtype, factor)
    assert compared(one, one).agree
    assert differing(compared(one, other)) == [0]


UNCOUNTED = """HloModule m
more {
  t = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  ROOT c = pred[] compare(i, n), direction=LT
}
next {
  t = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  o = s32[] constant(1)
  j = s32[] add(i, o)
  ROOT r = (s32[], s32[]) tuple(j, n)
}
ENTRY e {
  z = s32[] constant(0)
  n = s32[] parameter(0)
  t = (s32[], s32[]) tuple(z, n)
  ROOT w = (s32[], s32[]) while(t), condition=more, body=next
}
"""


def test_loops_that_cannot_be_counted_are_named() -> None:
    """The limit to rounds does not hold for them, and the answer says so."""
    (note,) = compared(UNCOUNTED, UNCOUNTED).notes
    assert "the rounds of loop w cannot be counted" in note
    assert compared(NO_NUMBER, NO_NUMBER).notes == ()
