"""Public reports that the passes answer: what is renumbered, and what is combined with what."""

from __future__ import annotations

import re

import pytest

from combiner_modules import both, combined, entries
from commlens.neuron import NeuronAllGatherCombiner, NeuronUniqueChannelIdEnforcer
from proto_twin import load_as

SHARED_CHANNEL = """HloModule m, num_partitions=2
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[4] parameter(0)
  t = token[] after-all()
  s = (f32[4], u32[], token[]) send(x, t), channel_id=3
  sd = token[] send-done(s), channel_id=3
  v = (f32[4], u32[], token[]) recv(t), channel_id=3
  vd = (f32[4], token[]) recv-done(v), channel_id=3
  ROOT r1 = f32[4] all-reduce(x), channel_id=3, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
}
"""

GATHER = "{} = {}[16] all-gather({}), channel_id={}, replica_groups={}, dimensions={{0}}, use_global_device_ids=true"
FIRST, OTHER = "{{0,1},{2,3}}", "{{0,2},{1,3}}"
FIVE_GATHERS = "\n".join(
    (
        "HloModule m, num_partitions=4",
        "condition {",
        "  c = (bf16[16], bf16[8]) parameter(0)",
        "  ROOT go = pred[] constant(false)",
        "}",
        "body {",
        "  b = (bf16[16], bf16[8]) parameter(0)",
        "  o = bf16[8] get-tuple-element(b), index=1",
        f"  {GATHER.format('g5', 'bf16', 'o', 5, FIRST)}",
        "  ROOT w = (bf16[16], bf16[8]) tuple(g5, o)",
        "}",
        "ENTRY e {",
        "  p = bf16[8] parameter(0)",
        "  q = bf16[8] parameter(1)",
        "  f = f32[8] parameter(2)",
        f"  {GATHER.format('g1', 'bf16', 'p', 1, FIRST)}",
        f"  {GATHER.format('g2', 'bf16', 'q', 2, FIRST)}",
        f"  {GATHER.format('g3', 'f32', 'f', 3, FIRST)}",
        f"  {GATHER.format('g4', 'bf16', 'p', 4, OTHER)}",
        "  i = (bf16[16], bf16[8]) tuple(g1, p)",
        "  l = (bf16[16], bf16[8]) while(i), condition=condition, body=body",
        "  ROOT all = ((bf16[16], bf16[8]), bf16[16], f32[16], bf16[16]) tuple(l, g2, g3, g4)",
        "}",
        "",
    )
)


@both
def test_b07_the_ids_of_a_pairing_are_no_duplicates(backend: str) -> None:
    """B07: with safe=true the all-reduce alone leaves the channel of a send and its recv, and old and new are told."""
    module = load_as(SHARED_CHANNEL, backend)
    result = NeuronUniqueChannelIdEnforcer(safe=True).run(module)
    ids = {name: result.module.instruction(name).channel_id for name in ("s", "sd", "v", "vd", "r1")}
    assert ids == {"s": 3, "sd": 3, "v": 3, "vd": 3, "r1": 4}
    assert [(each["instruction"], each["old"], each["new"]) for each in entries(result, "renumbered")] == [("r1", 3, 4)]
    if backend == "text":
        lines = zip(SHARED_CHANNEL.splitlines(), result.module.to_bytes().decode().splitlines(), strict=True)
        assert [re.findall(r"(\w+) =", new)[0] for old, new in lines if old != new] == ["r1"]


@both
@pytest.mark.parametrize(
    ("mixed", "sets"), [(False, [["g1", "g2"]]), (True, [["g1", "g2", "g3"]])], ids=["strict", "mixed"]
)
def test_b28_what_is_combined_with_what(backend: str, mixed: bool, sets: list[list[str]]) -> None:
    """B28: equal dtypes and groups join; other dtypes if that is allowed, other groups and computations never."""
    result = NeuronAllGatherCombiner(mixed_dtypes=mixed).run(load_as(FIVE_GATHERS, backend))
    assert combined(result) == sets
