"""A device that is in no group."""

from __future__ import annotations

from functools import partial
from typing import Final

from commlens.analysis.checks.queries import sites_with
from commlens.hlo import Example, Rule

RULE: Final = Rule(
    id="groups-incomplete",
    severity="error",
    title="Devices are in no group",
    documentation=(
        "The module states how many replicas and partitions there are, and some of their ids are in no group. All "
        "devices run the instruction, so those wait for partners that they do not have: XLA refuses the list, and "
        "Neuron's runtime says that the replica groups do not have the device itself. Fires only where the counts are "
        "known; a collective-broadcast may leave devices out. Give every id a group, of itself alone if need be."
    ),
    source="CheckReplicaGroups, xla/service/hlo_verifier.cc",
    bad=Example("""HloModule example, num_partitions=4
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), channel_id=2, use_global_device_ids=true, replica_groups={{0}}, to_apply=add
}
"""),
    good=Example("""HloModule example, num_partitions=4
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), channel_id=2, use_global_device_ids=true, replica_groups={{0,1,2,3}}, to_apply=add
}
"""),
    find=partial(sites_with, rule="groups-incomplete"),
)
