"""The rules about stock XLA, and running rules on modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.analysis.checks import (
    all_gather_slice,
    all_reduce_slice,
    channel_two_opcodes,
    flag_without_channel,
    flattened_without_groups,
    gathered_twice,
    group_empty,
    groups_incomplete,
    groups_off_mesh,
    groups_uneven,
    id_out_of_range,
    id_repeated,
    index_sum,
    overlapping_in_loop,
    pair_repeated,
    send_recv_unpaired,
    shape_mismatch,
    size_one_axis,
    start_done_unpaired,
    unread,
    used_before_defined,
)

if TYPE_CHECKING:
    from commlens.hlo import Rule

RULES: Final[tuple[Rule, ...]] = (
    unread.RULE,
    used_before_defined.RULE,
    id_out_of_range.RULE,
    id_repeated.RULE,
    group_empty.RULE,
    groups_uneven.RULE,
    groups_incomplete.RULE,
    groups_off_mesh.RULE,
    flag_without_channel.RULE,
    flattened_without_groups.RULE,
    channel_two_opcodes.RULE,
    send_recv_unpaired.RULE,
    start_done_unpaired.RULE,
    pair_repeated.RULE,
    shape_mismatch.RULE,
    overlapping_in_loop.RULE,
    all_reduce_slice.RULE,
    all_gather_slice.RULE,
    index_sum.RULE,
    size_one_axis.RULE,
    gathered_twice.RULE,
)
"""The rules about stock XLA, in the order in which their findings are listed."""
