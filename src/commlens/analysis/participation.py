"""Who takes part in a collective: its group mode and the global ids that it really joins.

The maths is :mod:`commlens.topology`'s; here stands what is answered when the module does not say enough, or says
something that no device can follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.errors import CommlensError
from commlens.topology import (
    CollectiveOpGroupMode,
    get_collective_op_group_mode,
    participant_list,
    participant_pairs,
)

if TYPE_CHECKING:
    from commlens.hlo import Signature
    from commlens.topology import DeviceList, SourceTargetPairs

AS_WRITTEN: Final = "as written"
"""Said of ids that are replica or partition ids because nobody states the counts."""


_NO_COUNTS: Final = (
    "nobody states how many replicas and partitions there are; give them with --replicas and --partitions"
)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many replicas and partitions a module runs on.

    Attributes:
        replicas: replicas.
        partitions: partitions.
    """

    replicas: int
    partitions: int

    @property
    def devices(self) -> int:
        """Devices in all."""
        return self.replicas * self.partitions

    @property
    def in_words(self) -> str:
        """The counts as messages write them.

        Example:
            >>> Counts(2, 4).in_words
            '2 x 4 (replicas x partitions)'
        """
        return f"{self.replicas} x {self.partitions} (replicas x partitions)"

    @classmethod
    def of(cls, replicas: int | None, partitions: int | None) -> Counts | None:
        """Take counts of which nobody may know anything: None unless both are known."""
        return None if replicas is None or partitions is None else cls(replicas, partitions)


@dataclass(frozen=True, slots=True)
class Participation:
    """The devices that a collective joins, kept as compact as what the module says.

    Attributes:
        mode: what the listed ids are; None where the flags contradict each other, and for transfers to the host.
        groups: the groups of global ids, groups in any order, members in theirs; None where they cannot be told.
        pairs: the pairs of global ids of a permute, send or recv; None likewise.
        ids: :data:`AS_WRITTEN` where ``groups`` or ``pairs`` are the listed ids for want of counts, else None.
        unknown_because: why there are neither groups nor pairs, in a sentence; None where there are.
    """

    mode: CollectiveOpGroupMode | None
    groups: DeviceList | None = None
    pairs: SourceTargetPairs | None = None
    ids: str | None = None
    unknown_because: str | None = None
    _written: DeviceList | None = None
    _counts: Counts | None = None

    @property
    def num_ids(self) -> int | None:
        """Ids in all groups or pairs together; None where they cannot be told."""
        if self.pairs is not None:
            return 2 * len(self.pairs)
        return None if self.groups is None else self.groups.num_devices

    @property
    def group_size(self) -> int | None:
        """Devices in each group; None where the groups differ in size or cannot be told."""
        return None if self.groups is None else self.groups.num_devices_per_group

    def listed(self, limit: int) -> list[list[int]] | None:
        """Return the groups or pairs as lists of global ids, in the order that XLA documents.

        Args:
            limit: most ids to list.

        Returns:
            New lists: listed group outer, partition (cross_replica) or replica (cross_partition) inner; None where
            they cannot be told or are too many.
        """
        number = self.num_ids
        if number is None or number > limit:
            return None
        if self.pairs is not None:
            return self.pairs.groups()
        if self._written is not None and self._counts is not None and self.mode is not None:
            counts = self._counts
            return participant_list(self.mode, self._written, counts.replicas, counts.partitions).groups()
        return None if self.groups is None else self.groups.groups()


def participation_of(signature: Signature, counts: Counts | None) -> Participation:
    """Work out who takes part in a collective.

    Args:
        signature: the collective.
        counts: the module's counts, None where nobody states them. Then kFlattenedID groups are global ids anyway,
            kCrossReplica and kCrossPartition ids are given as written, and the rest cannot be told.

    Returns:
        The participation. Ids to which no device answers and a forbidden combination of flags make no participants.
    """
    if signature.groups is not None:
        try:
            mode = get_collective_op_group_mode(signature.has_channel, signature.use_global_device_ids)
        except CommlensError as error:
            return Participation(None, unknown_because=str(error))
        return groups_participation(mode, signature.groups, counts)
    if signature.is_host_transfer:
        return Participation(None, unknown_because="the peer is the host")
    mode = get_collective_op_group_mode(signature.has_channel, None)
    pairs = signature.pairs
    if pairs is None:
        return Participation(mode, unknown_because="the instruction does not state its source-target pairs")
    if counts is None:
        return Participation(mode, pairs=pairs, ids=AS_WRITTEN)
    try:
        return Participation(mode, pairs=participant_pairs(mode, pairs, counts.replicas, counts.partitions))
    except CommlensError as error:
        return Participation(mode, unknown_because=str(error))


def groups_participation(mode: CollectiveOpGroupMode, groups: DeviceList, counts: Counts | None) -> Participation:
    """Work out who takes part in groups of which the mode is known; arguments as for :func:`participation_of`.

    Example:
        >>> from commlens.topology import IotaReplicaGroupList
        >>> mode = CollectiveOpGroupMode.CROSS_REPLICA_AND_PARTITION
        >>> groups_participation(mode, IotaReplicaGroupList(2, 1), Counts(2, 2)).listed(100)
        [[0, 1], [2, 3]]
    """
    empty = groups.num_replica_groups == 0
    if mode is CollectiveOpGroupMode.FLATTENED_ID and not empty:
        return Participation(mode, groups)
    if counts is None and mode is not CollectiveOpGroupMode.FLATTENED_ID:
        if empty or mode is CollectiveOpGroupMode.CROSS_REPLICA_AND_PARTITION:
            return Participation(mode, unknown_because=_NO_COUNTS)
        return Participation(mode, groups, ids=AS_WRITTEN)
    counts = counts or Counts(1, 1)  # without groups, kFlattenedID is refused whatever the counts are
    try:
        joined = participant_list(mode, groups, counts.replicas, counts.partitions, any_group_order=True)
    except CommlensError as error:
        return Participation(mode, unknown_because=str(error))
    return Participation(mode, joined, _written=groups, _counts=counts)
