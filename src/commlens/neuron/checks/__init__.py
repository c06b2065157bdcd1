"""The rules about what the Neuron compiler and runtime add to stock XLA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.neuron.checks import (
    neu_channel_dup,
    neu_channel_mixed_opcodes,
    neu_comm_max,
    neu_group_uneven,
    neu_lnc_arch,
    neu_rank_neg,
    neu_rdh_pow2,
    neu_reduce_op,
    neu_send_recv_channel,
    neu_stream_max,
    neu_stream_nondigit,
    neu_stream_per_group,
    neu_symmetric_nodes,
    neu_trn1_cores,
    stream_partial,
    stream_split,
    stream_type_groups,
    stream_type_opcode,
)

if TYPE_CHECKING:
    from commlens.hlo import Rule

RULES: Final[tuple[Rule, ...]] = (
    stream_partial.RULE,
    stream_split.RULE,
    stream_type_opcode.RULE,
    stream_type_groups.RULE,
    neu_comm_max.RULE,
    neu_stream_max.RULE,
    neu_stream_nondigit.RULE,
    neu_stream_per_group.RULE,
    neu_rank_neg.RULE,
    neu_group_uneven.RULE,
    neu_trn1_cores.RULE,
    neu_lnc_arch.RULE,
    neu_symmetric_nodes.RULE,
    neu_rdh_pow2.RULE,
    neu_send_recv_channel.RULE,
    neu_channel_mixed_opcodes.RULE,
    neu_channel_dup.RULE,
    neu_reduce_op.RULE,
)
"""The rules about Neuron, in the order in which their findings are listed."""
