"""Golden texts of small modules on eight partitions, and the lines of those modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.analysis.expectations.golden_texts import golden_of

if TYPE_CHECKING:
    from commlens.analysis import Report

GATHER = "{} = f32[64] all-gather(p), channel_id=1, replica_groups={}, dimensions={{0}}, use_global_device_ids=true"
REDUCE = "{} = f32[16] all-reduce(p), channel_id=1, replica_groups={}, use_global_device_ids=true, to_apply=add"
PERMUTE = "{} = f32[16] collective-permute(p), channel_id=1, source_target_pairs={}"
SEND_OUT = "{} = f32[16] collective-broadcast(p), channel_id=1, replica_groups={}"
DATA_MODEL = {"data": 2, "model": 4}


def text_of(report: Report) -> str:
    """Return the golden text of a report."""
    return str(golden_of(report)[0])
