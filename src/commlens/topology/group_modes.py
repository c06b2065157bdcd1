"""What the ids in the groups of a collective stand for: its group mode.

Source: xla/hlo/ir/collective_op_group_mode.h and .cc; for the opcodes that carry the flag
``GetCollectiveUseGlobalDeviceIds`` of xla/service/collective_ops_utils.cc.
"""

from __future__ import annotations

from enum import IntEnum

from commlens.errors import CommlensError, excerpt

_NAMES = ("kCrossReplica", "kCrossPartition", "kCrossReplicaAndPartition", "kFlattenedID")
_FLAG_ALWAYS_HAS_A_VALUE = frozenset(
    {"all-gather", "all-gather-start", "all-reduce", "all-reduce-start", "reduce-scatter"}
)
_FLAG_NEVER_HAS_A_VALUE = frozenset(
    {
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "collective-permute-start",
        "ragged-all-to-all",
    }
)


class CollectiveOpGroupMode(IntEnum):
    """What the ids in replica groups are, and which devices one id stands for.

    Members:
        CROSS_REPLICA: replica ids; each group is used once in every partition.
        CROSS_PARTITION: partition ids; each group is used once in every replica.
        CROSS_REPLICA_AND_PARTITION: replica ids; each one brings all its partitions into the group.
        FLATTENED_ID: global ids, ``replica * num_partitions + partition``.

    ``str`` gives the name that XLA's C++ code uses. ``CollectiveOpGroupMode(x)`` takes a number, a mode, or any of the
    spellings that :meth:`parse` takes.

    Example:
        >>> mode = CollectiveOpGroupMode("cross_replica")
        >>> mode.value, str(mode), mode.snake
        (0, 'kCrossReplica', 'cross_replica')
    """

    CROSS_REPLICA = 0
    CROSS_PARTITION = 1
    CROSS_REPLICA_AND_PARTITION = 2
    FLATTENED_ID = 3

    @property
    def snake(self) -> str:
        """The spelling of newer XLA texts, e.g. ``"flattened_id"``."""
        return self.name.lower()

    def __str__(self) -> str:
        return _NAMES[self.value]

    def __format__(self, format_spec: str) -> str:
        return format(str(self), format_spec)

    @classmethod
    def parse(cls, text: str) -> CollectiveOpGroupMode:
        """Read a mode in any spelling XLA has used.

        Args:
            text: ``"kCrossReplica"``, ``"cross_replica"``, ``"CROSS_REPLICA"`` or the name in the proto,
                ``"COLLECTIVE_OP_GROUP_MODE_CROSS_REPLICA"``, and alike for the other modes.

        Raises:
            CommlensError: the text names no mode.

        Example:
            >>> CollectiveOpGroupMode.parse("kFlattenedID") is CollectiveOpGroupMode.parse("flattened_id")
            True
        """
        for mode in cls:
            if text in (mode.name, mode.snake, str(mode), f"COLLECTIVE_OP_GROUP_MODE_{mode.name}"):
                return mode
        known = ", ".join(f"{mode} or {mode.snake}" for mode in cls)
        msg = f"expected a group mode ({known}), found {excerpt(text)!r}"
        raise CommlensError(msg)

    @classmethod
    def _missing_(cls, value: object) -> CollectiveOpGroupMode | None:
        return cls.parse(value) if isinstance(value, str) else None


def get_collective_op_group_mode(has_channel_id: bool, use_global_device_ids: bool | None) -> CollectiveOpGroupMode:
    """Decide the group mode of a collective.

    Args:
        has_channel_id: whether the instruction has a channel id.
        use_global_device_ids: the flag; None for opcodes that have no such flag (see
            :func:`use_global_device_ids_for`).

    Raises:
        CommlensError: the flag is true but there is no channel id.

    Source: ``GetCollectiveOpGroupMode(bool, optional<bool>)``.

    Example:
        >>> str(get_collective_op_group_mode(True, None)), str(get_collective_op_group_mode(True, False))
        ('kCrossPartition', 'kCrossReplicaAndPartition')
    """
    if not has_channel_id:
        if use_global_device_ids:
            msg = (
                "Invalid combination of has_channel_id and use_global_device_ids: the flag is true, but there is no"
                " channel id; add a channel_id or drop use_global_device_ids"
            )
            raise CommlensError(msg)
        return CollectiveOpGroupMode.CROSS_REPLICA
    if use_global_device_ids is None:
        return CollectiveOpGroupMode.CROSS_PARTITION
    if use_global_device_ids:
        return CollectiveOpGroupMode.FLATTENED_ID
    return CollectiveOpGroupMode.CROSS_REPLICA_AND_PARTITION


def use_global_device_ids_for(opcode: str, stated: bool | None) -> bool | None:
    """Give the value that ``use_global_device_ids`` really has on an opcode.

    An absent flag is a fact about the opcode, not about the text: opcodes with the flag read it as false when nothing
    is written, the others never have one.

    Args:
        opcode: a collective in dashed spelling, also with its dedicated ``-start``.
        stated: what the instruction states; None when it states nothing. Ignored where the opcode has no flag.

    Returns:
        True, False, or None where the opcode has no flag.

    Raises:
        CommlensError: the opcode is no collective that has a group mode.

    Example:
        >>> use_global_device_ids_for("all-gather", None), use_global_device_ids_for("all-to-all", None)
        (False, None)
    """
    if opcode in _FLAG_ALWAYS_HAS_A_VALUE:
        return bool(stated)
    if opcode in _FLAG_NEVER_HAS_A_VALUE:
        return None
    known = ", ".join(sorted(_FLAG_ALWAYS_HAS_A_VALUE | _FLAG_NEVER_HAS_A_VALUE))
    msg = f"expected a collective that has a group mode ({known}), found {opcode!r}"
    raise CommlensError(msg)


def group_mode_for_opcode(
    opcode: str, has_channel_id: bool, use_global_device_ids: bool | None
) -> CollectiveOpGroupMode:
    """Decide the group mode of a collective from what its instruction states.

    Args:
        opcode: as for :func:`use_global_device_ids_for`.
        has_channel_id: whether the instruction has a channel id.
        use_global_device_ids: what the instruction states; None when it states nothing.

    Raises:
        CommlensError: the opcode has no group mode, or the flag is true without a channel id.

    Example:
        >>> str(group_mode_for_opcode("all-reduce", True, None)), str(group_mode_for_opcode("all-to-all", True, None))
        ('kCrossReplicaAndPartition', 'kCrossPartition')
    """
    return get_collective_op_group_mode(has_channel_id, use_global_device_ids_for(opcode, use_global_device_ids))
