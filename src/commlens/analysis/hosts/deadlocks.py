"""Collectives that two kinds of hosts run in different order, and the devices that can wait for each other then.

Two collectives are looked at by themselves, see :mod:`commlens.analysis.hosts.inversions`; three and more only where no
two of them are enough, see :mod:`commlens.analysis.hosts.wait_rings`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from commlens.analysis.hosts.inversions import MOST_TRIED, Inversion, groups_in, inversion_of, size_of
from commlens.analysis.hosts.wait_rings import ring_of_many

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from commlens.analysis.diffs.matching import Matching
    from commlens.analysis.hosts.wait_rings import Groups
    from commlens.analysis.meanings import Meaning, Meanings
    from commlens.analysis.schedules import Schedule

MOST_BLOCKS: Final = 16
"""Most blocks of devices that are named for two collectives."""

_FEW: Final = 64
"""Devices of a group list up to which it is looked up by them."""

_Ids: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RingWait:
    """A device that waits for the next one of a ring; the last one waits for the first.

    Attributes:
        device: the device.
        path: a module of the hosts that it has to be on for that.
        waits_in: name of the collective, in that module of the two which is named first.
    """

    device: int
    path: str
    waits_in: str

    def as_dict(self) -> dict[str, object]:
        """Return it in its JSON form."""
        return {"device": self.device, "path": self.path, "waits_in": self.waits_in}


@dataclass(frozen=True, slots=True)
class Deadlock:
    """Collectives that some hosts run in one order and others in another one.

    Attributes:
        paths: a module of each kind.
        collectives: names of the two collectives, or of those of a ring, in the order of the first module.
        devices: blocks of devices, any two of which wait for each other where one is on a host of the first kind and
            the other on one of the second; the first of many blocks. None at all where it takes more than two devices.
        num_blocks: how many blocks there are.
        ring: devices that wait for each other where each is on a host of the kind that it names: one ring of those that
            there can be.
    """

    paths: tuple[str, str]
    collectives: tuple[str, ...]
    devices: tuple[tuple[int, ...], ...]
    num_blocks: int
    ring: tuple[RingWait, ...]

    def as_dict(self) -> dict[str, object]:
        """Return the deadlock in its JSON form."""
        return {
            "paths": list(self.paths),
            "collectives": list(self.collectives),
            "devices": [list(block) for block in self.devices],
            "num_blocks": self.num_blocks,
            "ring": [wait.as_dict() for wait in self.ring],
        }


def deadlocks_of(
    schedules: tuple[Schedule, Schedule], matching: Matching, meanings: Meanings, paths: tuple[str, str]
) -> tuple[tuple[Deadlock, ...], bool]:
    """Return, for everything that has moved, the nearest collective with which devices can deadlock.

    Only where there is none, rings through three collectives and more are looked for.

    Args:
        schedules: those of the two modules.
        matching: which of their steps belong together.
        meanings: what the numbers of meanings mean.
        paths: the two modules.

    Returns:
        The deadlocks; and whether nothing was left out because it is unknown or too large.
    """
    orders = _Orders(schedules, matching, meanings)
    names = [schedules[0].steps[step].name for step in orders.steps]
    found = [_deadlock(inversion, places, names, paths) for places, inversion in orders.inversions()]
    if not found and orders.complete:
        found = [_deadlock(inversion, places, names, paths) for places, inversion in orders.wider()]
    return tuple(found), orders.complete


def _deadlock(inversion: Inversion, places: Sequence[int], names: Sequence[str], paths: tuple[str, str]) -> Deadlock:
    waits = inversion.ring or ()
    ring = tuple(RingWait(wait.device, paths[wait.kind], names[places[wait.collective]]) for wait in waits)
    collectives = tuple(names[places[number]] for number in sorted({wait.collective for wait in waits}))
    return Deadlock(paths, collectives, tuple(inversion.blocks[:MOST_BLOCKS]), len(inversion.blocks), ring)


class _Orders:
    """The collectives that two schedules have in common, in the order of either.

    Attributes:
        steps: their numbers in the first schedule, in the order in which that one runs them.
        complete: whether nothing was left out so far.

    Args:
        schedules: the two schedules.
        matching: which of their steps belong together.
        meanings: what the numbers of meanings mean.
    """

    def __init__(self, schedules: tuple[Schedule, Schedule], matching: Matching, meanings: Meanings) -> None:
        places, others = ({step: place for place, step in enumerate(each.in_order())} for each in schedules)
        first, second = schedules
        pairs = sorted((places[i], others[j], i, j) for i, j in matching.pairs if i in places and j in others)
        alike = [(first.steps[i].meaning, second.steps[j].meaning) for _, _, i, j in pairs]
        common = [
            (other, i, meanings[mine])
            for (_, _, i, _), (mine, theirs), other in zip(pairs, alike, _in_turn(pairs, alike), strict=True)
            if meanings[mine].sets == meanings[theirs].sets
        ]
        moved = {step for moves in matching.reorders for move in moves for step in move.before}
        moved |= {i for i, _ in matching.displaced}
        self.steps = [i for _, i, _ in common]
        self.complete = True
        self._ranks = np.array([other for other, _, _ in common], dtype=np.int64)
        self._meanings = [meaning for _, _, meaning in common]
        self._sets = _numbers([meaning.sets for meaning in self._meanings])
        different: list[int] = np.unique(self._sets, return_index=True)[1].tolist()
        self._sharing = _Sharing([self._meanings[place] for place in different])
        self._moved = [place for place, step in enumerate(self.steps) if step in moved]
        self._known: dict[tuple[int, int], Inversion] = {}

    def inversions(self) -> Iterator[tuple[tuple[int, int], Inversion]]:
        """Yield two collectives in which devices can deadlock, by their places in the first order."""
        seen: set[tuple[int, int]] = set()
        for place in self._moved:
            for other in self._crossed(place):
                two = (min(place, other), max(place, other))
                inversion = self._inversion(two)
                if inversion.ring is not None and two not in seen:
                    seen.add(two)
                    yield two, inversion
                    break

    def _crossed(self, place: int) -> list[int]:
        """Return what runs on the other side of something in the second order, of equal groups the nearest alone.

        What has no device in common with it is left out: nobody can wait in both.
        """
        places = np.arange(len(self._ranks))
        behind = self._ranks - self._ranks[place]
        shares = self._sharing.with_group_list(int(self._sets[place]))[self._sets]
        crossed = np.flatnonzero(((places - place) * behind < 0) & shares)
        crossed = crossed[np.argsort(np.abs(behind[crossed]), kind="stable")]
        _, first = np.unique(self._sets[crossed], return_index=True)
        return crossed[np.sort(first)].tolist()

    def _inversion(self, two: tuple[int, int]) -> Inversion:
        first, second = two
        key = (int(self._sets[first]), int(self._sets[second]))
        if key not in self._known:
            self._known[key] = _inversion_of(self._meanings[first], self._meanings[second])
        self.complete = self.complete and (self._known[key].complete or self._known[key].ring is not None)
        return self._known[key]

    def wider(self) -> Iterator[tuple[list[int], Inversion]]:
        """Yield rings through three collectives and more, one for each stretch that both orders have in one piece."""
        ranks = np.argsort(np.argsort(self._ranks))
        highest = np.maximum.accumulate(ranks)
        bounds = [0, *(np.flatnonzero(highest == np.arange(len(ranks))) + 1).tolist()]
        for start, end in pairwise(bounds):
            if end - start < 3:
                continue
            places = list(range(start, end))
            groups = _all_groups([self._meanings[place] for place in places])
            if groups is None:
                self.complete = False
                continue
            ring, complete = ring_of_many(groups, ranks[start:end].tolist())
            self.complete = self.complete and complete
            if ring is not None:
                yield places, Inversion([], ring, complete)


class _Sharing:
    """Which group lists have a device in common, as far as they name few.

    Args:
        meanings: a collective over each of them.
    """

    def __init__(self, meanings: Sequence[Meaning]) -> None:
        self._devices = [_few_devices(meaning) for meaning in meanings]
        self._many = np.array([devices is None for devices in self._devices], dtype=np.bool_)
        self._lists_of: defaultdict[int, list[int]] = defaultdict(list)
        for number, devices in enumerate(self._devices):
            for device in devices or ():
                self._lists_of[device].append(number)

    def with_group_list(self, number: int) -> npt.NDArray[np.bool_]:
        """Return for each list whether it may have a device in common with one of them."""
        devices = self._devices[number]
        if devices is None:
            return np.ones_like(self._many)
        shares = self._many.copy()
        for device in devices:
            shares[self._lists_of[device]] = True
        return shares


def _few_devices(meaning: Meaning) -> frozenset[int] | None:
    """Return the devices of a collective; None where they are not known, or more than is worth a look."""
    if meaning.host_transfer:
        return frozenset()
    joined = meaning.joined
    if joined is None or not 0 < size_of(joined) <= _FEW:
        return None
    return frozenset(device for group in groups_in(joined) for device in group)


def _in_turn(pairs: Sequence[tuple[int, int, int, int]], alike: Sequence[Hashable]) -> list[int]:
    """Return where the second order runs each of some pairs: of what is alike, the devices meet the first in the first.

    Args:
        pairs: the places of steps in the first and the second order, and more, in the first order.
        alike: for each pair what it is; pairs that are the same cannot be told from each other.
    """
    waiting: dict[Hashable, list[int]] = {}
    for (_, other, *_), what in sorted(zip(pairs, alike, strict=True), key=lambda each: -each[0][1]):
        waiting.setdefault(what, []).append(other)
    return [waiting[what].pop() for what in alike]


def _numbers(values: Sequence[Hashable]) -> _Ids:
    """Number values, equal ones alike."""
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int64)


def _inversion_of(first: Meaning, second: Meaning) -> Inversion:
    if first.host_transfer or second.host_transfer:
        return Inversion([], None, complete=True)
    return inversion_of(first.joined, second.joined)


def _all_groups(meanings: Sequence[Meaning]) -> list[Groups] | None:
    """Return the groups of some collectives; None where some are unknown, or they are more than anybody tries."""
    joined = [meaning.joined for meaning in meanings if not meaning.host_transfer]
    if any(each is None for each in joined) or sum(size_of(each) for each in joined if each is not None) > MOST_TRIED:
        return None
    return [() if each.host_transfer or each.joined is None else groups_in(each.joined) for each in meanings]
