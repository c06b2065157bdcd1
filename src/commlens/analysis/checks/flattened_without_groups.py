"""No groups in the one mode that needs them."""

from __future__ import annotations

from functools import partial
from typing import Final

from commlens.analysis.checks.queries import sites_with
from commlens.hlo import Example, Rule

RULE: Final = Rule(
    id="flattened-without-groups",
    severity="error",
    title="Global ids without groups",
    documentation=(
        "The collective has a channel id and use_global_device_ids=true, which makes the ids in its groups global "
        "ids, but it states no groups. Empty groups mean everybody in every other mode; in this one XLA refuses them. "
        "List one group of all devices, or drop the flag."
    ),
    source="GetParticipatingDevicesGroups, xla/service/collective_ops_utils.cc",
    bad=Example("""HloModule example, num_partitions=4
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), channel_id=1, use_global_device_ids=true, replica_groups={}, to_apply=add
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
  ROOT r = f32[8] all-reduce(p), channel_id=1, use_global_device_ids=true, replica_groups={{0,1,2,3}}, to_apply=add
}
"""),
    find=partial(sites_with, rule="flattened-without-groups"),
)
