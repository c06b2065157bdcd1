"""The group mode of an instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.topology import get_collective_op_group_mode

if TYPE_CHECKING:
    from commlens.hlo.model import Instruction
    from commlens.topology import CollectiveOpGroupMode


def group_mode(instruction: Instruction) -> CollectiveOpGroupMode:
    """Return what the ids in an instruction's groups or pairs mean.

    Args:
        instruction: a collective.

    Returns:
        The mode. For opcodes that never state ``use_global_device_ids`` it is cross_replica or cross_partition.

    Raises:
        ValueError: the flag is set without a channel id.

    Source: ``GetCollectiveOpGroupMode(const HloInstruction*)``, xla/service/collective_ops_utils.cc.
    """
    return get_collective_op_group_mode(instruction.channel_id is not None, instruction.use_global_device_ids)
