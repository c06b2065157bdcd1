"""Whether a collective fits what a message says of devices, and who its peers are then.

A message names the devices that wait for each other: one group of the collective. What the ids in a module's groups
are depends on their mode, so they are compared as global ids; where the module does not say enough to tell those, the
answer is neither yes nor no. The clique of a collective-permute is all devices, the devices that its pairs connect, or
one pair, by back end and version, so each of these fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from commlens.analysis.limits import FULL_LIMIT
from commlens.topology import CollectiveDeviceList

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis.figures import Figures
    from commlens.analysis.logs.said import Said
    from commlens.topology import DeviceList, SourceTargetPairs

Match: TypeAlias = Literal["full", "unknown", "partial"]
"""How a collective fits a message: in all it says, in all that can be told, or in its devices but not in its ids."""

Peers: TypeAlias = list[int] | list[list[int]] | None
"""The devices of a group; a list of them for each group where the message does not say which; None: cannot be told."""

_SHOWN: Final = 16


@dataclass(frozen=True, slots=True)
class Fit:
    """How the devices of a collective fit.

    Attributes:
        match: ``"partial"`` where something that the message says beside its devices is not true of it.
        why: in words; empty where the message says nothing of devices.
        peers: who takes part.
        wrong: what is not true of it.
    """

    match: Match
    why: str
    peers: Peers
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class Fitting:
    """Fits the devices that one message names.

    Attributes:
        said: the message.
        num_devices: devices of the module; None where nobody states them.
        limit: most ids that an answer lists.
    """

    said: Said
    num_devices: int | None
    limit: int

    def fit(self, figures: Figures) -> Fit | None:
        """Return how a collective fits; None where it does not."""
        participation = figures.participation
        if figures.signature.is_host_transfer:
            return None if said_of_devices(self.said) else Fit("full", "", None)
        if participation.pairs is not None:
            return self._of_pairs(participation.pairs)
        if participation.groups is not None:
            return self._of_groups(participation.groups)
        if not said_of_devices(self.said):
            return Fit("full", "", None)
        if participation.mode is None or (self.num_devices is not None and participation.unknown_because):
            return None  # no device can follow what it says
        return Fit("unknown", f"who takes part is not known: {participation.unknown_because}", None)

    def _of_groups(self, groups: DeviceList) -> Fit | None:
        said = self.said
        differs = None if said.groups is None else difference(groups, said.groups)
        if said.devices is not None:
            found = group_with(groups, said.devices)
            if found is None:
                return None
            return _against(differs, Fit("full", f"{_set(found)} is a group of it", self._listed(found)))
        if said.groups is not None:
            if differs is not None:
                return None
            return Fit("full", "its groups are these", self._all(groups))
        return self._of_size(groups)

    def _of_size(self, groups: DeviceList) -> Fit | None:
        """Fit a message that says how many devices there are, or nothing of them."""
        said = self.said
        wanted = said.num_participants or said.num_threads
        if wanted is None:
            return Fit("full", "", self._all(groups))
        sizes = groups.group_sizes()
        if said.rank is not None and said.rank >= wanted:
            return None
        fitting = np.flatnonzero(sizes == wanted)
        if fitting.size:
            some = [groups.group(int(index)) for index in fitting] if groups.num_devices <= self.limit else None
            count = "its group has" if groups.num_replica_groups == 1 else "groups of it have"
            return Fit("full", f"{count} {wanted} devices", _flat(some))
        if said.num_participants is None and bool((sizes > wanted).any()):
            why = f"groups of it have more than {wanted} devices: it fits if {wanted} of them belong to this process"
            return Fit("unknown", why, self._all(groups))
        size = groups.num_devices_per_group
        wrong = (
            f"none of its groups has {wanted} devices"
            if size is None
            else f"its groups have {size} devices, not {wanted}"
        )
        return Fit("partial", "", self._all(groups), wrong)

    def _of_pairs(self, pairs: SourceTargetPairs) -> Fit | None:
        said = self.said
        differs = None if said.groups is None else difference(CollectiveDeviceList(connected(pairs)), said.groups)
        if said.devices is not None:
            return _against(differs, self._of_connected(pairs, said.devices))
        if differs is not None:
            return None
        wanted = said.num_participants or said.num_threads
        if wanted is None:
            return Fit("full", "" if said.groups is None else "its pairs connect these groups", self._all_pairs(pairs))
        if wanted == self.num_devices:
            return Fit("full", f"it runs on all {wanted} devices", self._listed(list(range(wanted))))
        some = [component for component in connected(pairs) if len(component) == wanted]
        if some:
            return Fit("full", f"its pairs connect {wanted} devices", _flat(some))
        return Fit("partial", "", self._all_pairs(pairs), f"its pairs connect no {wanted} devices")

    def _of_connected(self, pairs: SourceTargetPairs, devices: Sequence[int]) -> Fit | None:
        """Fit devices with those that pairs connect, with one pair, with all that a permute runs on."""
        wanted = frozenset(devices)
        if self.num_devices is not None and wanted == frozenset(range(self.num_devices)):
            return Fit("full", "it runs on all devices, and these are all", self._listed(sorted(wanted)))
        for component in connected(pairs):
            if wanted == frozenset(component):
                return Fit("full", f"its pairs connect {_set(component)}", self._listed(component))
        pair = next((pair for pair in pairs if frozenset(pair) == wanted), None)
        if pair is not None:
            return Fit("full", f"{{{pair[0]},{pair[1]}}} is a pair of it", list(dict.fromkeys(pair)))
        if wanted == frozenset(pairs.to_array().reshape(-1).tolist()):
            return Fit("full", "its pairs name these devices", self._listed(sorted(wanted)))
        return None

    def _listed(self, devices: list[int]) -> Peers:
        return devices if len(devices) <= self.limit else None

    def _all(self, groups: DeviceList) -> Peers:
        return _flat(groups.groups()) if groups.num_devices <= self.limit else None

    def _all_pairs(self, pairs: SourceTargetPairs) -> Peers:
        return _flat(connected(pairs)) if 2 * len(pairs) <= self.limit else None


def said_of_devices(said: Said) -> bool:
    """Whether a message says which devices there are, or how many."""
    return any(each is not None for each in (said.devices, said.groups, said.num_participants, said.num_threads))


def group_with(groups: DeviceList, devices: Sequence[int]) -> list[int] | None:
    """Return the group that has these devices and no others, its members in their order; None where there is none.

    Groups that overlap, which no device can follow, are looked at one by one.

    Example:
        >>> from commlens.topology import IotaReplicaGroupList
        >>> group_with(IotaReplicaGroupList(4, 2, (2, 4), (1, 0)), [6, 2]), group_with(IotaReplicaGroupList(4, 2), [1])
        ([2, 6], None)
    """
    wanted = frozenset(devices)
    size = groups.num_devices_per_group
    if size is not None and size != len(wanted):
        return None
    place = groups.group_of(next(iter(wanted)))
    if place is None:
        return None
    found = groups.group(place[0])
    if frozenset(found) == wanted:
        return found
    if not groups.is_written_out or groups.num_devices > FULL_LIMIT:
        return None
    return next((group for group in groups.groups() if frozenset(group) == wanted), None)


def difference(groups: DeviceList, listed: Sequence[Sequence[int]]) -> str | None:
    """Say how groups differ from those of a message, whatever the order of groups and members; None: in nothing.

    Example:
        >>> difference(CollectiveDeviceList([[1, 0], [2, 3]]), [[2, 3], [0, 1]])
        >>> difference(CollectiveDeviceList([[1, 0], [2, 3]]), [[0, 1]])
        'its groups are not those of the message: {2,3} is not one'
        >>> difference(CollectiveDeviceList([[0, 1]]), [[0, 1], [2]])
        'its groups are not those of the message: {2} is none of its own'
    """
    what = "its groups are not those of the message"
    if groups.num_devices > FULL_LIMIT:
        return what  # more than a message can list
    mine, theirs = ([tuple(sorted(group)) for group in each] for each in (groups.groups(), listed))
    if sorted(mine) == sorted(theirs):
        return None
    known, said = set(mine), set(theirs)
    other = next((group for group in mine if group not in said), None)
    if other is not None:
        return f"{what}: {_set(other)} is not one"
    other = next((group for group in theirs if group not in known), None)
    return f"{what}: one stands there twice" if other is None else f"{what}: {_set(other)} is none of its own"


def _against(differs: str | None, fit: Fit | None) -> Fit | None:
    """Return how a collective fits whose groups may not be those of the message."""
    return fit if fit is None or differs is None else Fit("partial", fit.why, fit.peers, differs)


def connected(pairs: SourceTargetPairs) -> list[list[int]]:
    """Return the sets of devices that pairs connect, in whichever direction: each ascending, by their smallest.

    Example:
        >>> from commlens.topology import SourceTargetPairs
        >>> connected(SourceTargetPairs([(0, 1), (5, 6), (2, 1)]))
        [[0, 1, 2], [5, 6]]
    """
    above: dict[int, int] = {}
    for source, target in pairs:
        first, second = _top(above, source), _top(above, target)
        above[max(first, second)] = min(first, second)
    found: dict[int, list[int]] = {}
    for device in sorted(above):
        found.setdefault(_top(above, device), []).append(device)
    return list(found.values())


def _top(above: dict[int, int], device: int) -> int:
    above.setdefault(device, device)
    while above[device] != device:
        above[device] = above[above[device]]
        device = above[device]
    return device


def _flat(groups: list[list[int]] | None) -> Peers:
    """Return the only group as it is."""
    return groups[0] if groups is not None and len(groups) == 1 else groups


def _set(devices: Sequence[int]) -> str:
    """Spell a set of devices, in short where it has many.

    Example:
        >>> _set([0, 4]), _set(range(4096))
        ('{0,4}', '{0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,...} (4,096 devices)')
    """
    shown = ",".join(map(str, devices[:_SHOWN]))
    return f"{{{shown}}}" if len(devices) <= _SHOWN else f"{{{shown},...}} ({len(devices):,} devices)"


def outside(devices: Sequence[int], num_devices: int) -> Iterator[int]:
    """Yield the devices that are none of ``0..num_devices-1``."""
    return (device for device in devices if device >= num_devices)
