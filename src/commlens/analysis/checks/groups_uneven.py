"""Groups of different sizes where all must have one."""

from __future__ import annotations

from functools import partial
from typing import Final

from commlens.analysis.checks.queries import sites_with
from commlens.hlo import Example, Rule

RULE: Final = Rule(
    id="groups-uneven",
    severity="error",
    title="Groups differ in size",
    documentation=(
        "The replica groups differ in size, in a collective whose result has the same shape on every device: an "
        "all-gather, reduce-scatter or all-to-all of unlike groups would give unlike shapes. Only an all-reduce, and "
        "a collective-broadcast, may have uneven groups. Even the groups out, or pad."
    ),
    source="CheckReplicaGroups, xla/service/hlo_verifier.cc",
    bad=Example("""HloModule example, replica_count=6
ENTRY e {
  p = f32[8] parameter(0)
  ROOT g = f32[16] all-gather(p), replica_groups={{0,1},{2,3,4,5}}, dimensions={0}
}
"""),
    good=Example("""HloModule example, replica_count=6
ENTRY e {
  p = f32[8] parameter(0)
  ROOT g = f32[16] all-gather(p), replica_groups={{0,1},{2,3},{4,5}}, dimensions={0}
}
"""),
    find=partial(sites_with, rule="groups-uneven"),
)
