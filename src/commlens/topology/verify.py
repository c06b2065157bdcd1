"""The rule by which XLA accepts replica groups and source-target pairs.

Source: ``CheckReplicaGroups`` and ``CheckSourceTargetPairs``, xla/service/hlo_verifier.cc.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from commlens.topology.comparison import as_device_list
from commlens.topology.faults import SHOWN, Fault, name_ids
from commlens.topology.group_modes import CollectiveOpGroupMode as Mode
from commlens.topology.pairs import SourceTargetPairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.topology.device_lists import DeviceList
    from commlens.topology.explicit_groups import GroupsLike
    from commlens.topology.iota import IntArray
    from commlens.topology.pairs import PairsLike

_WITHOUT_GROUPS = Fault(
    "flattened-without-groups",
    "expected replica groups in mode kFlattenedID, found none; list the groups, one of all devices if need be",
)
_ID_KINDS = MappingProxyType(
    {
        Mode.CROSS_REPLICA: "replica",
        Mode.CROSS_PARTITION: "partition",
        Mode.CROSS_REPLICA_AND_PARTITION: "replica",
        Mode.FLATTENED_ID: "global",
    }
)
_UNCHECKED = frozenset({"collective-broadcast"})
_UNEVEN_ALLOWED = frozenset({"all-reduce", "all-reduce-start"})


def verify_groups(
    opcode: str,
    groups: DeviceList | GroupsLike,
    mode: Mode | str,
    replicas: int | None,
    partitions: int | None,
    *,
    check_single: bool = False,
) -> tuple[Fault, ...]:
    """Judge the replica groups of a collective by upstream's rule.

    The rule: no group is empty; no id stands twice; the ids are exactly ``0..n-1``, and n is the number of replicas
    (cross_replica, cross_replica_and_partition), of partitions (cross_partition) or of both multiplied (flattened_id);
    all groups have one size, except those of an all-reduce. Without groups all is well except in flattened_id mode.
    Groups of a collective-broadcast are not looked at. A count of 1 is taken for "not stated", so that n may be any.

    Args:
        opcode: the collective in dashed spelling.
        groups: its replica group list.
        mode: what the ids are.
        replicas: number of replicas; None if unknown, and then nothing is said about range and coverage where the
            mode needs it.
        partitions: number of partitions; None if unknown.
        check_single: go beyond upstream and hold the ids against a count of 1 as well.

    Returns:
        The faults, in the order of the rule, of the rules ``flattened-without-groups``, ``group-empty``,
        ``id-repeated``, ``id-out-of-range``, ``groups-incomplete`` and ``groups-uneven``; empty for valid groups.

    Raises:
        CommlensError: for a mode that does not exist, and for ids that are no integers of 64 bits.

    Example:
        >>> [fault.rule for fault in verify_groups("all-gather", [[0, 1], [1]], "cross_replica", 3, 1)]
        ['id-repeated', 'groups-incomplete', 'groups-uneven']
        >>> print(*verify_groups("all-to-all", [[0, 1]], "cross_partition", 2, 4))
        expected all of the partition ids 0..3 in the groups, found no 2 and 3; give every one a group
    """
    mode = Mode(mode)
    listed = as_device_list(groups)
    if opcode in _UNCHECKED:
        return ()
    if listed.num_replica_groups == 0:
        return (_WITHOUT_GROUPS,) if mode is Mode.FLATTENED_ID else ()
    return tuple(_faults(opcode, listed, mode, _count(mode, replicas, partitions), check_single=check_single))


def verify_pairs(
    pairs: PairsLike,
    mode: Mode | str,
    replicas: int | None,
    partitions: int | None,
    *,
    check_single: bool = False,
) -> tuple[Fault, ...]:
    """Judge source-target pairs by upstream's rule.

    The rule: ids are at least 0 and below the number of replicas (no channel id: cross_replica) or partitions (channel
    id: cross_partition), where a count of 1 is taken for "not stated"; each source sends once, each target receives
    once.

    Args:
        pairs: the pairs.
        mode: what the ids are.
        replicas: number of replicas; None if unknown.
        partitions: number of partitions; None if unknown.
        check_single: go beyond upstream and hold the ids against a count of 1 as well.

    Returns:
        The faults, of the rules ``id-out-of-range`` and ``pair-repeated``; empty for valid pairs.

    Raises:
        CommlensError: for a mode that does not exist, and for pairs that are none.

    Example:
        >>> [fault.rule for fault in verify_pairs([(0, 1), (1, 1)], "cross_partition", 1, 2)]
        ['pair-repeated']
    """
    count = _count(Mode(mode), replicas, partitions)
    return SourceTargetPairs(pairs).faults(count if check_single or count != 1 else None)


def _count(mode: Mode, replicas: int | None, partitions: int | None) -> int | None:
    """How many ids of this kind there are."""
    if mode is Mode.CROSS_PARTITION:
        return partitions
    if mode is not Mode.FLATTENED_ID:
        return replicas
    return None if replicas is None or partitions is None else replicas * partitions


def _faults(opcode: str, listed: DeviceList, mode: Mode, count: int | None, *, check_single: bool) -> Iterator[Fault]:
    """Every fault of groups that are there."""
    if not listed.is_written_out:  # even groups that hold each of 0..n-1 once
        if count is not None and (check_single or count != 1):
            number = listed.num_devices
            missing = range(number, min(count, number + SHOWN))
            yield from _cover_faults(mode, count, range(count, number), missing, count - number)
        return
    sizes = listed.group_sizes()
    if (sizes == 0).any():
        empty = name_ids(np.flatnonzero(sizes == 0).tolist())
        yield Fault("group-empty", f"expected ids in every group, found none in group {empty}, counted from 0; drop it")
    ids, repeats = np.unique(listed.flattened_replica_groups(), return_counts=True)
    if (repeats > 1).any():
        repeated = name_ids(ids[repeats > 1].tolist())
        yield Fault(
            "id-repeated", f"expected every id once in the groups, found {repeated} more often; keep one of each"
        )
    if count is not None:
        limit = count if check_single or count != 1 else ids.size
        inside = (ids >= 0) & (ids < limit)
        missing = limit - int(np.count_nonzero(inside))
        yield from _cover_faults(mode, limit, ids[~inside].tolist(), _first_missing(ids[inside], limit), missing)
    different = np.unique(sizes[sizes > 0])
    if different.size > 1 and opcode not in _UNEVEN_ALLOWED:
        found = name_ids(different.tolist())
        yield Fault("groups-uneven", f"expected groups of one size in {opcode}, found sizes {found}; even them out")


def _cover_faults(
    mode: Mode, limit: int, outside: Sequence[int], missing: Sequence[int], missing_total: int
) -> Iterator[Fault]:
    """Faults of groups that should hold the ids below a limit and no others.

    Args:
        mode: what the ids are.
        limit: how many ids there are.
        outside: all ids of the groups that are not below it.
        missing: the first ids below it that are in no group, as many as a sentence names.
        missing_total: how many of these there are.
    """
    if outside:
        yield Fault(
            "id-out-of-range",
            f"expected {_ID_KINDS[mode]} ids in 0..{limit - 1} in mode {mode}, found {name_ids(outside)};"
            " name only what the program has",
        )
    if missing:
        yield Fault(
            "groups-incomplete",
            f"expected all of the {_ID_KINDS[mode]} ids 0..{limit - 1} in the groups,"
            f" found no {name_ids(missing, missing_total)}; give every one a group",
        )


def _first_missing(ids: IntArray, limit: int) -> list[int]:
    """The first ids below a limit that are not among distinct ids: as many as a sentence names, and no array of all."""
    enough = np.arange(min(limit, ids.size + SHOWN), dtype=np.int64)
    return np.setdiff1d(enough, ids)[:SHOWN].tolist()
