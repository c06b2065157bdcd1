"""The groups of global device ids that really exchange data, kept as compact as the groups they come from.

A global id is ``replica * num_partitions + partition``. Groups of replica or partition ids stand for groups of devices
as their mode says; on an iota list that is one more mixed-radix digit, so the answer costs the number of digits and
not the number of devices.

Source: ``GetParticipatingFlattenedIdGroups`` in xla/service/collective_ops_utils.cc, and for
:func:`expand_across_replicas` ``ExpandPartitionGroupListAcrossReplicas`` in xla/service/spmd/spmd_partitioner_util.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlens.errors import CommlensError
from commlens.topology.comparison import as_device_list
from commlens.topology.device_assignment import check_counts
from commlens.topology.device_lists import CollectiveDeviceList, IotaReplicaGroupList
from commlens.topology.digits import Digit, split_inner
from commlens.topology.explicit_groups import offsets_of
from commlens.topology.group_modes import CollectiveOpGroupMode as Mode
from commlens.topology.iota import IotaTileAssignment, check_expandable
from commlens.topology.pairs import SourceTargetPairs

if TYPE_CHECKING:
    from commlens.topology.device_lists import DeviceList
    from commlens.topology.explicit_groups import GroupsLike
    from commlens.topology.iota import IntArray
    from commlens.topology.pairs import PairsLike


def participant_list(
    mode: Mode | str, groups: DeviceList | GroupsLike, replicas: int, partitions: int, *, any_group_order: bool = False
) -> DeviceList:
    """Give the groups of global ids that a collective joins.

    Args:
        mode: what the ids in ``groups`` are.
        groups: the replica group list of the collective; no groups = one group of everybody.
        replicas: number of replicas of the program.
        partitions: number of partitions of the program.
        any_group_order: accept the groups in any order (members keep theirs), for which every iota list has an
            iota answer.

    Returns:
        In the documented order: listed group outer, partition (cross_replica) or replica (cross_partition) inner;
        inside a group of cross_replica_and_partition replica outer, partition inner; members in the written order.
        flattened_id gives the list itself. Else an iota list wherever one says it, also for strided explicit lists,
        and an explicit list where none does.

    Raises:
        CommlensError: no groups in flattened_id mode; an id that is no replica (partition) of the program, so that no
            device answers to it; 2^63 devices or more; an explicit answer too large to write out.

    Example:
        >>> groups = IotaReplicaGroupList(2, 2)
        >>> for mode in Mode:
        ...     print(mode.snake, participant_list(mode, groups, 4, 4 if mode == Mode.CROSS_PARTITION else 2))
        cross_replica [4,2]<=[2,2,2]T(0,2,1)
        cross_partition [8,2]<=[4,2,2]T(1,0,2)
        cross_replica_and_partition [2,4]<=[8]
        flattened_id [2,2]<=[4]
    """
    mode = Mode(mode)
    replicas, partitions = check_counts(replicas, partitions)
    listed = groups_or_everybody(mode, groups, replicas, partitions)
    if mode is Mode.FLATTENED_ID:
        return listed
    iota = listed.to_iota()
    if iota is not None:
        _check_range(mode, 0, iota.num_devices - 1, replicas, partitions)
        tile = _expand_digits(mode, iota.tile, replicas, partitions, any_group_order=any_group_order)
        if tile is not None:
            return IotaReplicaGroupList.from_tile(tile)
    return _expand_ids(mode, listed, replicas, partitions)


def groups_or_everybody(mode: Mode, groups: DeviceList | GroupsLike, replicas: int, partitions: int) -> DeviceList:
    """Give the groups of a collective as a list; where it has none, the one group of all ids that this stands for.

    Raises:
        CommlensError: no groups in flattened_id mode.
    """
    listed = as_device_list(groups)
    if listed.num_replica_groups:
        return listed
    if mode is Mode.FLATTENED_ID:
        msg = "replica groups cannot be empty for kFlattenedID mode; list the groups, one of all devices if need be"
        raise CommlensError(msg)
    return IotaReplicaGroupList(1, _id_count(mode, replicas, partitions))


def participant_pairs(mode: Mode | str, pairs: PairsLike, replicas: int, partitions: int) -> SourceTargetPairs:
    """Give the pairs of global ids between which a collective-permute, send or recv moves data.

    Args:
        mode: cross_replica (no channel id: pairs of replica ids, in every partition) or cross_partition (channel id:
            pairs of partition ids, in every replica).
        pairs: the pairs as written.
        replicas: number of replicas of the program.
        partitions: number of partitions of the program.

    Returns:
        The pairs with the partition (cross_replica) or the replica (cross_partition) outermost.

    Raises:
        CommlensError: another mode, an id that is no replica (partition) of the program, or an answer too large to
            write out.

    Example:
        >>> str(participant_pairs("cross_replica", [(0, 1)], 2, 2))
        '{{0,2},{1,3}}'
    """
    mode = Mode(mode)
    replicas, partitions = check_counts(replicas, partitions)
    ids = SourceTargetPairs(pairs).to_array()
    if mode not in (Mode.CROSS_REPLICA, Mode.CROSS_PARTITION):
        msg = f"expected source-target pairs in mode kCrossReplica or kCrossPartition, found {mode}"
        raise CommlensError(msg)
    return SourceTargetPairs(_global_ids(mode, ids, replicas, partitions).reshape(-1, 2))


def expand_across_replicas(groups: DeviceList | GroupsLike, replicas: int, partitions: int) -> DeviceList:
    """Repeat groups of partition ids in every replica, as groups of global ids: replica outer, listed group inner.

    Args:
        groups: groups of partition ids that hold every partition once.
        replicas: number of replicas.
        partitions: number of partitions.

    Returns:
        An iota list where the groups have an iota form, else an explicit one.

    Raises:
        CommlensError: the groups do not hold every partition once, or an explicit answer too large to
            write out.

    Source: ``ExpandPartitionGroupListAcrossReplicas``.

    Example:
        >>> str(expand_across_replicas(IotaReplicaGroupList(10, 5, (2, 5, 5), (0, 2, 1)), 2, 50))
        '[20,5]<=[4,5,5]T(0,2,1)'
    """
    replicas, partitions = check_counts(replicas, partitions)
    listed = as_device_list(groups)
    iota = listed.to_iota()
    if iota is not None:
        _check_cover(iota.num_devices == partitions, partitions)
        dims = (replicas * iota.num_replica_groups, iota.num_devices_per_group)
        tile = IotaTileAssignment.from_digits(dims, (Digit(partitions, replicas), *iota.tile.digits))
        if tile is not None:
            return IotaReplicaGroupList.from_tile(tile)
    ids = listed.flattened_replica_groups()
    _check_cover(ids.size == partitions and np.array_equal(np.sort(ids), np.arange(ids.size)), partitions)
    everywhere = _global_ids(Mode.CROSS_PARTITION, ids, replicas, partitions)
    return CollectiveDeviceList.from_flat(everywhere.reshape(-1), offsets_of(np.tile(listed.group_sizes(), replicas)))


def _id_count(mode: Mode, replicas: int, partitions: int) -> int:
    """How many ids there are of the kind that groups of a mode other than flattened_id hold."""
    return partitions if mode is Mode.CROSS_PARTITION else replicas


def _expand_digits(
    mode: Mode, tile: IotaTileAssignment, replicas: int, partitions: int, *, any_group_order: bool
) -> IotaTileAssignment | None:
    """Add the digit of the replica or partition to an iota list of shape (groups, members).

    Returns:
        None where the place of the digit lies inside another digit, or where the ids of the answer have gaps because
        some partitions are in no group.
    """
    groups, members = tile.dims
    step = 1 if mode is Mode.CROSS_PARTITION else partitions
    listed = tuple(Digit(stride * step, size) for stride, size in tile.digits)
    if mode is Mode.CROSS_REPLICA_AND_PARTITION:
        return IotaTileAssignment.from_digits((groups, members * partitions), (*listed, Digit(1, partitions)))
    added = Digit(1, partitions) if mode is Mode.CROSS_REPLICA else Digit(partitions, replicas)
    anywhere = any_group_order or added.size == 1
    halves = ((), listed) if anywhere else split_inner(listed, members)
    if halves is None:
        return None
    outer, inner = halves
    return IotaTileAssignment.from_digits((groups * added.size, members), (*outer, added, *inner))


def _expand_ids(mode: Mode, listed: DeviceList, replicas: int, partitions: int) -> CollectiveDeviceList:
    """Do the same to groups of any kind, id by id."""
    everywhere = _global_ids(mode, listed.flattened_replica_groups(), replicas, partitions)
    copies, sizes = len(everywhere), listed.group_sizes()
    check_expandable(sizes.size * copies)  # empty groups are repeated as well
    if mode is Mode.CROSS_REPLICA_AND_PARTITION:  # all copies of an id follow it into its group
        return CollectiveDeviceList.from_flat(everywhere.T.reshape(-1), offsets_of(sizes * copies))
    size = listed.num_devices_per_group
    if size is not None:
        group_major = everywhere.reshape(copies, sizes.size, size).swapaxes(0, 1)
        return CollectiveDeviceList(group_major.reshape(copies * sizes.size, size))
    group_of_each = np.tile(np.repeat(np.arange(sizes.size), sizes), copies)
    order = np.argsort(group_of_each, kind="stable")  # keeps the order of copies, and of the members of each
    return CollectiveDeviceList.from_flat(everywhere.reshape(-1)[order], offsets_of(np.repeat(sizes, copies)))


def _global_ids(mode: Mode, ids: IntArray, replicas: int, partitions: int) -> IntArray:
    """The global ids that replica or partition ids stand for: one copy of the array per partition or replica."""
    if ids.size:
        _check_range(mode, int(ids.min()), int(ids.max()), replicas, partitions)
    copies = replicas if mode is Mode.CROSS_PARTITION else partitions
    check_expandable(max(ids.size, 1) * copies)
    copy = np.arange(copies, dtype=np.int64).reshape(-1, *[1] * ids.ndim)
    return copy * partitions + ids if mode is Mode.CROSS_PARTITION else ids * partitions + copy


def _check_range(mode: Mode, smallest: int, largest: int, replicas: int, partitions: int) -> None:
    count = _id_count(mode, replicas, partitions)
    if smallest < 0 or largest >= count:
        what = "partition" if mode is Mode.CROSS_PARTITION else "replica"
        found = smallest if smallest < 0 else largest
        msg = f"expected {what} ids in 0..{count - 1} in mode {mode}, found {found}, to which no device answers"
        raise CommlensError(msg)


def _check_cover(covered: bool, partitions: int) -> None:
    if not covered:
        msg = f"expected groups that hold each of the {partitions} partitions once, found other groups"
        raise CommlensError(msg)
