"""Lines of programs that tests claim something of, on a mesh of data and model."""

from __future__ import annotations

GATHER = (
    "{} = f32[64] all-gather(p), channel_id=1, replica_groups=[2,4]<=[8], dimensions={{0}}, use_global_device_ids=true"
)
REDUCE = "{} = f32[16] all-reduce(p), channel_id=1, replica_groups={}, use_global_device_ids=true, to_apply=add"
LINES = (
    GATHER.format("g1"),
    GATHER.format("g2"),
    REDUCE.format("both", "[1,8]<=[2,4]T(1,0)"),
    REDUCE.format("alone", "[8,1]<=[8]"),
    REDUCE.format("odd", "{{0,3},{1,2},{4,7},{5,6}}"),
)
DATA_MODEL = {"data": 2, "model": 4}
