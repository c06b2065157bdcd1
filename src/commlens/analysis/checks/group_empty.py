"""A group without members."""

from __future__ import annotations

from functools import partial
from typing import Final

from commlens.analysis.checks.queries import sites_with
from commlens.hlo import Example, Rule

RULE: Final = Rule(
    id="group-empty",
    severity="error",
    title="A group has no members",
    documentation=(
        "One of the replica groups is empty. An empty list of groups means one group of everybody, but an empty group "
        "in a list means nothing, and XLA refuses it. It is usually what is left when a script made the groups from "
        "ranks that are not there. Drop the group."
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
  ROOT r = f32[8] all-reduce(p), replica_groups={{0,1},{},{2,3}}, to_apply=add
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
    find=partial(sites_with, rule="group-empty"),
)
