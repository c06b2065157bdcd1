"""An id that stands in the groups of a collective more than once."""

from __future__ import annotations

from functools import partial
from typing import Final

from commlens.analysis.checks.queries import sites_with
from commlens.hlo import Example, Rule

RULE: Final = Rule(
    id="id-repeated",
    severity="error",
    title="A device is in several groups, or twice in one",
    documentation=(
        "An id stands in the replica groups more than once. A device takes part in a collective once: in two groups "
        "it would have to wait for both, and XLA and every runtime refuse such a list. Keep one of the places. Where "
        "the groups were meant to overlap, write several collectives."
    ),
    source="CheckReplicaGroups, xla/service/hlo_verifier.cc",
    bad=Example("""HloModule example, replica_count=4
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={{0,1},{1,2,3}}, to_apply=add
}
"""),
    good=Example("""HloModule example, replica_count=4
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={{0,1},{2,3}}, to_apply=add
}
"""),
    find=partial(sites_with, rule="id-repeated"),
)
