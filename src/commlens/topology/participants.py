"""Who takes part in a collective, asked the way XLA's own helpers answer it.

:mod:`commlens.topology.participant_lists` gives the same groups in compact form and over global ids.

Source: xla/service/collective_ops_utils.h and .cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from commlens.errors import CommlensError
from commlens.topology.comparison import as_device_list
from commlens.topology.device_assignment import as_device_assignment, check_counts
from commlens.topology.device_lists import CollectiveDeviceList
from commlens.topology.digits import split_inner
from commlens.topology.explicit_groups import offsets_of
from commlens.topology.group_modes import CollectiveOpGroupMode as Mode
from commlens.topology.iota import check_expandable
from commlens.topology.participant_lists import groups_or_everybody, participant_list, participant_pairs

if TYPE_CHECKING:
    from commlens.topology.device_assignment import AssignmentArray, DeviceAssignment
    from commlens.topology.device_lists import DeviceList
    from commlens.topology.digits import Digit
    from commlens.topology.explicit_groups import GroupsLike
    from commlens.topology.iota import IntArray
    from commlens.topology.pairs import PairsLike

_ID_KINDS = MappingProxyType(
    {
        Mode.CROSS_REPLICA: "Replica",
        Mode.CROSS_PARTITION: "Partition",
        Mode.CROSS_REPLICA_AND_PARTITION: "Replica",
        Mode.FLATTENED_ID: "Flattened",
    }
)


@dataclass(frozen=True, slots=True)
class ExclusivelyCross:
    """Whether a collective stays inside replicas or inside partitions.

    Attributes:
        cross_module_only: all members of a group belong to one replica, in every group.
        cross_replica_only: all members of a group belong to one partition, in every group.

    Example:
        >>> exclusively_cross([[0, 1]], False, False, 2, 1)
        ExclusivelyCross(cross_module_only=False, cross_replica_only=True)
    """

    cross_module_only: bool
    cross_replica_only: bool


def get_participating_ids(
    mode: Mode | str, current_id: int, total_participant_count: int | None, groups: DeviceList | GroupsLike
) -> list[int]:
    """Give the ids, of the kind that ``groups`` holds, that take part together with one of them.

    Args:
        mode: what the ids are; only the wording of errors depends on it.
        current_id: the id that asks. Not looked at when there are no groups, as upstream.
        total_participant_count: how many ids there are; needed only when there are no groups.
        groups: the replica group list.

    Raises:
        CommlensError: no groups and no total; the id stands in two groups or in none. A repeat inside one group goes
            unnoticed, as upstream. A total that is too large to write out.

    Source: ``GetParticipatingIDs``.

    Example:
        >>> get_participating_ids("cross_replica", 1, None, [[0, 4], [1, 5]])
        [1, 5]
    """
    kind = _ID_KINDS[Mode(mode)]
    listed = as_device_list(groups)
    if listed.num_replica_groups == 0:
        if total_participant_count is None:
            msg = "expected replica groups or the total number of participants, found neither"
            raise CommlensError(msg)
        check_expandable(total_participant_count)
        return list(range(total_participant_count))
    hits = _groups_with(listed, current_id)
    if len(hits) == 1:
        return hits[0]
    fault = "appears twice" if hits else "doesn't appear"
    msg = f"{kind} ID {current_id} {fault} in replica groups; it should stand in exactly one group"
    raise CommlensError(msg)


def get_participating_devices(
    device_id: int,
    device_assignment: DeviceAssignment | AssignmentArray,
    groups: DeviceList | GroupsLike,
    mode: Mode | str,
) -> list[int]:
    """Give the devices that take part together with one device, itself among them, in communication order.

    Args:
        device_id: the device that asks.
        device_assignment: which device runs which replica and partition.
        groups: the replica group list.
        mode: what its ids are.

    Raises:
        CommlensError: the device is not in the assignment, or its group cannot be told (see
            :func:`get_participating_ids`); no groups in flattened_id mode.

    Source: ``GetParticipatingDevices``.

    Example:
        >>> get_participating_devices(45, [[33, 34], [44, 45], [55, 56]], [[0], [1, 2]], "cross_replica_and_partition")
        [44, 45, 55, 56]
    """
    mode = Mode(mode)
    assignment = as_device_assignment(device_assignment)
    replicas, partitions = assignment.replicas, assignment.partitions
    replica, partition = assignment.coordinates_of(device_id)
    if mode is Mode.CROSS_REPLICA:
        ids = get_participating_ids(mode, replica, replicas, groups)
        return [assignment.device_at(each, partition) for each in ids]
    if mode is Mode.CROSS_PARTITION:
        ids = get_participating_ids(mode, partition, partitions, groups)
        return [assignment.device_at(replica, each) for each in ids]
    if mode is Mode.CROSS_REPLICA_AND_PARTITION:
        ids = get_participating_ids(mode, replica, replicas, groups)
        return [assignment.device_at(each, inner) for each in ids for inner in range(partitions)]
    listed = participant_list(mode, groups, replicas, partitions)
    ids = get_participating_ids(mode, replica * partitions + partition, None, listed)
    return assignment.devices_of(np.array(ids, dtype=np.int64)).tolist()


def get_participating_devices_groups(
    device_assignment: DeviceAssignment | AssignmentArray, groups: DeviceList | GroupsLike, mode: Mode | str
) -> list[list[int]]:
    """Give all groups of devices, in the documented order of :func:`participant_list`.

    Args:
        device_assignment: which device runs which replica and partition.
        groups: the replica group list.
        mode: what its ids are.

    Raises:
        CommlensError: an id to which no device answers, or no groups in flattened_id mode.

    Source: ``GetParticipatingDevicesGroups``.

    Example:
        >>> get_participating_devices_groups([[33, 34], [44, 45], [55, 56]], [[0], [1, 2]], "cross_replica")
        [[33], [34], [44, 55], [45, 56]]
    """
    assignment = as_device_assignment(device_assignment)
    listed = participant_list(mode, groups, assignment.replicas, assignment.partitions)
    devices = assignment.devices_of(listed.flattened_replica_groups())
    return CollectiveDeviceList.from_flat(devices, offsets_of(listed.group_sizes())).groups()


def get_participating_devices_groups_for_source_target_pairs(
    device_assignment: DeviceAssignment | AssignmentArray, pairs: PairsLike, mode: Mode | str
) -> list[list[int]]:
    """Give the pairs of devices between which data moves.

    Args:
        device_assignment: which device runs which replica and partition.
        pairs: the source-target pairs.
        mode: cross_replica (no channel id) or cross_partition (channel id).

    Returns:
        ``[source, target]`` device pairs; the partition (no channel id) or the replica (channel id) outermost.

    Raises:
        CommlensError: another mode, or an id to which no device answers.

    Example:
        >>> get_participating_devices_groups_for_source_target_pairs([[33, 34], [44, 45]], [(0, 1)], "cross_replica")
        [[33, 44], [34, 45]]
    """
    assignment = as_device_assignment(device_assignment)
    joined = participant_pairs(mode, pairs, assignment.replicas, assignment.partitions)
    return assignment.devices_of(joined.to_array()).tolist()


def participant_counts(groups: DeviceList | GroupsLike, mode: Mode | str, replicas: int, partitions: int) -> list[int]:
    """Give the number of participants of every group, with upstream's exception.

    Args:
        groups: the replica group list; no groups = one group of everybody.
        mode: what its ids are.
        replicas: number of replicas.
        partitions: number of partitions.

    Returns:
        One count per group of devices; but cross_partition counts each listed group once, not once per replica, as
        upstream does.

    Raises:
        CommlensError: a count of replicas or partitions below 1, 2^63 devices or more, no groups in flattened_id mode,
            or more counts than can be written out.

    Source: ``GetParticipantCountsForReplicaGroups``.

    Example:
        >>> participant_counts([[0, 1], [2]], "cross_replica", 3, 2), participant_counts([], "cross_partition", 3, 2)
        ([2, 2, 1, 1], [2])
    """
    mode = Mode(mode)
    replicas, partitions = check_counts(replicas, partitions)
    listed = groups_or_everybody(mode, groups, replicas, partitions)
    repeats = partitions if mode is Mode.CROSS_REPLICA else 1
    factor = partitions if mode is Mode.CROSS_REPLICA_AND_PARTITION else 1
    check_expandable(listed.num_replica_groups * repeats)
    return [size * factor for size in listed.group_sizes().tolist() for _ in range(repeats)]


def group_count_and_size(
    groups: DeviceList | GroupsLike, mode: Mode | str, replicas: int, partitions: int
) -> tuple[int, int] | None:
    """Give the number of groups and their size, with upstream's exceptions.

    Returns:
        ``(count, size)``; None where sizes differ. An iota list answers with its own two numbers whatever the mode,
        and cross_partition counts listed groups, as upstream.

    Raises:
        CommlensError: where :func:`participant_counts` would raise.

    Source: ``GetReplicaGroupCountAndSize``.

    Example:
        >>> group_count_and_size([[1, 0]], "cross_replica_and_partition", 3, 2)
        (1, 4)
    """
    listed = as_device_list(groups)
    if listed.form == "iota":
        return listed.num_replica_groups, listed.num_devices_per_group or 0
    counts = participant_counts(listed, mode, replicas, partitions)
    return (len(counts), counts[0]) if len(set(counts)) == 1 else None


def exclusively_cross(
    groups: DeviceList | GroupsLike, use_global_ids: bool, has_channel_id: bool, replicas: int, partitions: int
) -> ExclusivelyCross:
    """Tell whether a collective stays inside replicas (cross-module only) or inside partitions (cross-replica only).

    Args:
        groups: the replica group list as written.
        use_global_ids: whether its ids are global ids; looked at only with a channel id.
        has_channel_id: whether the instruction has a channel id.
        replicas: number of replicas.
        partitions: number of partitions.

    Returns:
        Both answers. Groups of one device satisfy both. No groups satisfy what is asked of every group, as upstream,
        although they stand for one group of everybody.

    Raises:
        CommlensError: a count below 1, 2^63 devices or more, or groups that no iota says and that are too large
            to write out.

    Source: ``IsExclusivelyCrossModule`` and ``IsExclusivelyCrossReplica``.

    Example:
        >>> exclusively_cross([[0, 2], [1, 3]], True, True, 2, 2)
        ExclusivelyCross(cross_module_only=False, cross_replica_only=True)
    """
    _, partitions = check_counts(replicas, partitions)
    if not has_channel_id:
        return ExclusivelyCross(cross_module_only=False, cross_replica_only=True)
    listed = as_device_list(groups)
    if not use_global_ids:
        singletons = listed.num_replica_groups == 0 or listed.num_devices_per_group == 1
        return ExclusivelyCross(cross_module_only=singletons, cross_replica_only=partitions == 1)
    iota = listed.to_iota()
    halves = None if iota is None else split_inner(iota.tile.digits, iota.num_devices_per_group)
    if halves is not None:
        return _exclusively_cross_digits(halves[1], listed.num_devices, partitions)
    replica, partition = np.divmod(listed.flattened_replica_groups(), partitions)
    return ExclusivelyCross(
        cross_module_only=_constant_in_groups(replica, listed),
        cross_replica_only=_constant_in_groups(partition, listed),
    )


def _exclusively_cross_digits(members: tuple[Digit, ...], devices: int, partitions: int) -> ExclusivelyCross:
    """Judge by the digits inside a group.

    Stepping along a digit leaves the replica, ``id // partitions``, unless every multiple of ``partitions`` among the
    ids is also one of the digit's end, where it wraps; it leaves the partition, ``id % partitions``, unless the stride
    is a multiple of ``partitions``.
    """
    return ExclusivelyCross(
        cross_module_only=devices <= partitions or all(partitions % digit.end == 0 for digit in members),
        cross_replica_only=all(digit.stride % partitions == 0 for digit in members),
    )


def _constant_in_groups(values: IntArray, listed: DeviceList) -> bool:
    """Whether all members of a group have the same value, in every group."""
    group = _group_of_each(listed)
    return not np.any((group[1:] == group[:-1]) & (values[1:] != values[:-1]))


def _group_of_each(listed: DeviceList) -> IntArray:
    """The number of its group for each of the ids in a row."""
    return np.repeat(np.arange(listed.num_replica_groups), listed.group_sizes())


def _groups_with(listed: DeviceList, current_id: int) -> list[list[int]]:
    """All groups that hold an id; a compact list holds each of its ids once."""
    if listed.is_written_out:
        found = np.unique(_group_of_each(listed)[listed.flattened_replica_groups() == current_id])
        return [listed.group(group) for group in found.tolist()]
    place = listed.group_of(current_id)
    return [] if place is None else [listed.group(place[0])]
