"""Order inversions: two collectives that hosts run in different order, and the devices that can wait for each other.

Where two devices are in one group of X and in one group of Y, and one runs X before Y and the other one Y before X, the
first waits in X for the second, and the second in Y for the first. Devices that share one group alone can wait for each
other in a ring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from commlens.analysis.hosts.wait_rings import Wait, ring_of_many, ring_of_two
from commlens.analysis.limits import FULL_LIMIT
from commlens.errors import CommlensError
from commlens.topology import SourceTargetPairs

if TYPE_CHECKING:
    from commlens.analysis.hosts.wait_rings import Groups
    from commlens.topology import DeviceList

MOST_TRIED: Final = 1 << 16
"""Most devices in the groups of some collectives among which ways to close a ring are tried one by one."""

_MOST_IN_RINGS: Final = 1 << 20

_Ids: TypeAlias = npt.NDArray[np.int64]
_Joined: TypeAlias = "DeviceList | SourceTargetPairs"
_Blocks: TypeAlias = list[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Inversion:
    """What there is to say of two collectives that run in different order, or of several.

    Attributes:
        blocks: devices any two of which meet in both.
        ring: a ring; None where none was found.
        complete: whether none is there where none was found.
    """

    blocks: _Blocks
    ring: tuple[Wait, ...] | None
    complete: bool


def inversion_of(first: _Joined | None, second: _Joined | None) -> Inversion:
    """Return which devices can deadlock where hosts run two collectives in different order.

    Args:
        first: the groups or pairs of one; None where they are not known.
        second: those of the other.

    Example:
        >>> from commlens.topology import CollectiveDeviceList
        >>> inversion = inversion_of(CollectiveDeviceList([[0, 1], [2, 3]]), CollectiveDeviceList([[0, 2], [1, 3]]))
        >>> inversion.blocks, [wait.device for wait in inversion.ring]
        ([], [0, 1, 3, 2])
    """
    if first is None or second is None or not (_is_known(first) and _is_known(second)):
        return Inversion([], None, complete=False)
    blocks = devices_in_both(first, second)
    if blocks:
        return Inversion(blocks, (Wait(blocks[0][0], 0, 0), Wait(blocks[0][1], 1, 1)), complete=True)
    if isinstance(first, SourceTargetPairs) or isinstance(second, SourceTargetPairs):
        if size_of(first) + size_of(second) > MOST_TRIED:
            return Inversion([], None, complete=False)
        ring, complete = ring_of_many([groups_in(first), groups_in(second)], [1, 0])
        return Inversion([], ring, complete)
    if max(first.num_devices, second.num_devices) > _MOST_IN_RINGS:
        return Inversion([], None, complete=False)
    common, groups, others = _common(first, second)
    return Inversion([], ring_of_two(common.tolist(), groups.tolist(), others.tolist()), complete=True)


def _is_known(joined: _Joined) -> bool:
    """Whether it names devices: an empty list of groups means all devices, of which nobody states the number."""
    return isinstance(joined, SourceTargetPairs) or joined.num_devices > 0


def size_of(joined: _Joined) -> int:
    """Return how many devices the groups or pairs have, each counted as often as it stands there."""
    return 2 * len(joined) if isinstance(joined, SourceTargetPairs) else joined.num_devices


def groups_in(joined: _Joined) -> Groups:
    """Return the sets of devices that wait for each other: groups, or the two ends of each pair."""
    return sorted(_ends(joined)) if isinstance(joined, SourceTargetPairs) else joined.groups()


def devices_in_both(first: _Joined, second: _Joined) -> _Blocks:
    """Return the devices that meet in both of two collectives.

    Args:
        first: the groups or pairs of one.
        second: those of the other.

    Returns:
        Blocks of two devices and more, each in one group of both; empty where there are none, or where there are more
        devices than anybody looks at.

    Example:
        >>> from commlens.topology import CollectiveDeviceList
        >>> threes, twos = CollectiveDeviceList([[0, 1, 2], [3, 4, 5]]), CollectiveDeviceList([[0, 1], [2, 3], [4, 5]])
        >>> devices_in_both(threes, twos)
        [(0, 1), (4, 5)]
    """
    if isinstance(first, SourceTargetPairs) or isinstance(second, SourceTargetPairs):
        return _pairs_together(first, second)
    try:
        common, groups, others = _common(first, second)
    except CommlensError:
        return []
    keys = groups * (int(others.max(initial=0)) + 1) + others
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    blocks = np.split(common[order], starts[1:])
    return sorted(tuple(block.tolist()) for block in blocks if len(block) > 1)


def _common(first: DeviceList, second: DeviceList) -> tuple[_Ids, _Ids, _Ids]:
    """Return the devices that are in groups of both, and beside each the numbers of its two groups.

    Raises:
        CommlensError: there are more than anybody looks at.
    """
    ids, groups = _numbered(first)
    others, other_groups = _numbered(second)
    common, places, other_places = np.intersect1d(ids, others, return_indices=True)
    return common, groups[places], other_groups[other_places]


def _pairs_together(first: _Joined, second: _Joined) -> _Blocks:
    """Return the pairs of the one whose ends meet in the other too."""
    if isinstance(first, SourceTargetPairs):
        ends = _ends(first)
        if isinstance(second, SourceTargetPairs):
            return sorted(ends & _ends(second))
        homes = {device: second.group_of(device) for pair in ends for device in pair}
        groups = {device: None if home is None else home[0] for device, home in homes.items()}
        return sorted((a, b) for a, b in ends if groups[a] is not None and groups[a] == groups[b])
    return _pairs_together(second, first)


def _ends(pairs: SourceTargetPairs) -> set[tuple[int, int]]:
    """Return the two devices of each pair, the smaller one first."""
    return {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}


def _numbered(groups: DeviceList) -> tuple[_Ids, _Ids]:
    """Return the devices of all groups, and beside each the number of its group.

    Raises:
        CommlensError: there are more than anybody looks at.
    """
    if groups.num_devices > FULL_LIMIT:
        msg = f"expected at most {FULL_LIMIT} devices, found {groups.num_devices}"
        raise CommlensError(msg)
    return groups.flattened_replica_groups(), np.repeat(np.arange(groups.num_replica_groups), groups.group_sizes())
