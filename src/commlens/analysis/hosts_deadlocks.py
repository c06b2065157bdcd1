"""Collectives that two hosts run in different order, and the devices that would wait for each other.

A device waits in a collective until all members of its group have come to it. Let one device run X before Y and
another one Y before X: where both are in one group of X and in one group of Y, the first waits in X for the second, and
the second in Y for the first. Members of different groups never wait for each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from commlens.analysis.limits import FULL_LIMIT
from commlens.errors import CommlensError
from commlens.topology import SourceTargetPairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis.matching import Move
    from commlens.analysis.meanings import Meanings
    from commlens.analysis.schedules import Schedule
    from commlens.topology import DeviceList

MOST_BLOCKS: Final = 16
"""Most blocks of devices that are named for two collectives."""

_Ids: TypeAlias = npt.NDArray[np.int64]
_Joined: TypeAlias = "DeviceList | SourceTargetPairs"


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Two collectives that some hosts run in one order and others in the other one.

    Attributes:
        paths: a module of each kind.
        collectives: names of the two, in the order of the first module.
        devices: blocks of devices, any two of which wait for each other where one is on a host of the first kind and
            the other on one of the second; the first of many blocks.
        num_blocks: how many blocks there are.
    """

    paths: tuple[str, str]
    collectives: tuple[str, str]
    devices: tuple[tuple[int, ...], ...]
    num_blocks: int

    def as_dict(self) -> dict[str, object]:
        """Return the deadlock in its JSON form."""
        return {
            "paths": list(self.paths),
            "collectives": list(self.collectives),
            "devices": [list(block) for block in self.devices],
            "num_blocks": self.num_blocks,
        }


def deadlocks_of(
    schedule: Schedule, reorders: Sequence[Sequence[Move]], meanings: Meanings, paths: tuple[str, str]
) -> Iterator[Deadlock]:
    """Yield, for everything that has moved, the nearest collective with which devices deadlock.

    Args:
        schedule: the schedule of the first module.
        reorders: how the second one differs in order.
        meanings: what the numbers of meanings mean.
        paths: the two modules.
    """
    ranks = {step: rank for rank, step in enumerate(schedule.in_order())}
    known: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    seen: set[tuple[int, int]] = set()
    for move in chain.from_iterable(reorders):
        crossings = ((step, other) for step in move.before for other in move.crossed)
        for step, other in crossings:
            first, second = sorted((step, other), key=lambda each: ranks[each])
            numbers = (schedule.steps[first].meaning, schedule.steps[second].meaning)
            if numbers not in known:
                known[numbers] = together(meanings[numbers[0]].joined, meanings[numbers[1]].joined)
            blocks = known[numbers]
            if blocks and (first, second) not in seen:
                seen.add((first, second))
                names = (schedule.steps[first].name, schedule.steps[second].name)
                yield Deadlock(paths, names, tuple(blocks[:MOST_BLOCKS]), len(blocks))
                break


def together(first: _Joined | None, second: _Joined | None) -> list[tuple[int, ...]]:
    """Return the devices that meet in both of two collectives.

    Args:
        first: the groups or pairs of one; None where they are not known.
        second: those of the other.

    Returns:
        Blocks of two devices and more, each in one group of both; empty where there are none, or where there are more
        devices than anybody looks at.

    Example:
        >>> from commlens.topology import CollectiveDeviceList
        >>> together(CollectiveDeviceList([[0, 1, 2], [3, 4, 5]]), CollectiveDeviceList([[0, 1], [2, 3], [4, 5]]))
        [(0, 1), (4, 5)]
    """
    if first is None or second is None:
        return []
    if isinstance(first, SourceTargetPairs) or isinstance(second, SourceTargetPairs):
        return _pairs_together(first, second)
    try:
        ids, groups = _numbered(first)
        others, other_groups = _numbered(second)
    except CommlensError:
        return []
    common, places, other_places = np.intersect1d(ids, others, return_indices=True)
    keys = groups[places] * (int(other_groups.max(initial=0)) + 1) + other_groups[other_places]
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    blocks = np.split(common[order], starts[1:])
    return sorted(tuple(block.tolist()) for block in blocks if len(block) > 1)


def _pairs_together(first: _Joined, second: _Joined) -> list[tuple[int, ...]]:
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
