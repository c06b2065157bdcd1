"""What the tests of ``commlens check`` share: small modules, and the findings of an answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from command_line import Outcome

HEAD = """HloModule step, num_partitions=4
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
"""
GOOD = (
    HEAD
    + "  ROOT r = f32[8] all-reduce(p), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add\n}\n"
)
BAD = GOOD.replace("{{0,1,2,3}}", "{{0,1},{1,9}}")
ALONE = GOOD.replace("{{0,1,2,3}}", "{{0},{1},{2},{3}}")
UNREAD = GOOD.replace("{{0,1,2,3}}", "[2,2]<=[8]")


def findings(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the findings of an answer in JSON."""
    answer: dict[str, Any] = json.loads(outcome.out)
    assert answer["schema"] == "commlens.check/1"
    return answer["findings"]
