"""Lines of collectives for the tests of the rules."""

from __future__ import annotations

from checking import FLAG

FOUR = "num_partitions=4"


def reduced(groups: str, *, channel: int | None = 1, flag: bool = True) -> str:
    """Write an all-reduce over some groups."""
    channel_id = "" if channel is None else f", channel_id={channel}"
    return f"r = f32[8] all-reduce(p){channel_id}, replica_groups={groups}{f', {FLAG}' if flag else ''}, to_apply=add"


def gathered(name: str, operand: str, groups: str, channel: int, *, size: int = 16, more: str = "") -> str:
    """Write an all-gather of an f32[8] in global ids."""
    return (
        f"{name} = f32[{size}] all-gather({operand}), channel_id={channel}, replica_groups={groups}, dimensions={{0}},"
        f" {FLAG}{more}"
    )
