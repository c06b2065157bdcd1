"""Which devices a collective binds together, so that two collectives can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commlens.topology import CollectiveDeviceList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.topology import DeviceList


class Cliques(NamedTuple):
    """The groups of a collective as sets.

    Attributes:
        key: equal for the same sets, however they are spelled and ordered.
        groups: the groups, ascending, laid out where they are an iota.
        first: the members of the first group of an iota; None of other lists.
    """

    key: object
    groups: DeviceList
    first: tuple[int, ...] | None


def cliques_of(groups: DeviceList) -> Cliques:
    """Return the groups of a collective in a form in which they can be compared.

    An iota is known by its first group: what varies inside a group are the digits in which the members of that one
    differ, and the other groups are the same digits elsewhere. So only one group is written out.

    Example:
        >>> from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList
        >>> written = CollectiveDeviceList([[7, 4, 6, 5], [3, 2, 1, 0]])
        >>> cliques_of(IotaReplicaGroupList(2, 4)).key == cliques_of(written).key
        True
    """
    iota = groups.to_iota()
    if iota is None:
        groups = CollectiveDeviceList(sorted(sorted(set(group)) for group in groups.groups()))
        iota = groups.to_iota()
    if iota is None:
        return Cliques(groups, groups, None)
    first = tuple(sorted(iota.group(0)))
    return Cliques((iota.num_devices, first), iota, first)


def clashing(found: Sequence[Cliques]) -> list[Cliques]:
    """Return those by which some device is in a group that differs from its group in another of them.

    Groups of one device do not count. Takes time in proportion to the ids that are written out; iotas are compared by
    their first groups: all have the device 0, and if two of them differ there, they differ for every device.

    Example:
        >>> from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList
        >>> rows, columns = IotaReplicaGroupList(2, 4), IotaReplicaGroupList(4, 2, (2, 4), (1, 0))
        >>> alone = CollectiveDeviceList([[8, 9]])
        >>> [str(each.groups) for each in clashing([cliques_of(each) for each in (rows, alone, columns)])]
        ['[2,4]<=[8]', '[4,2]<=[2,4]T(1,0)']
    """
    iotas = [each for each in found if each.first is not None and len(each.first) > 1]
    lists = [each for each in found if each.first is None]
    bad = {each.key for each in iotas} if len({each.first for each in iotas}) > 1 else set[object]()
    for each in lists:
        for iota in iotas[:2]:  # a group that is the same in one differs from the other
            if any(len(group) > 1 and _differs(group, iota.groups) for group in each.groups.groups()):
                bad |= {each.key, iota.key}
    return [each for each in found if each.key in bad | _clashing_lists(lists)]


def _clashing_lists(lists: Sequence[Cliques]) -> set[object]:
    """Return the keys of lists by which a device is in different groups."""
    numbers: dict[tuple[int, ...], int] = {}
    groups_of: dict[int, dict[int, list[object]]] = {}
    for each in lists:
        for group in each.groups.groups():
            if len(group) > 1:
                number = numbers.setdefault(tuple(group), len(numbers))
                for device in group:
                    groups_of.setdefault(device, {}).setdefault(number, []).append(each.key)
    meeting = [found for found in groups_of.values() if len(found) > 1]
    return {key for found in meeting for keys in found.values() for key in keys}


def _differs(group: Sequence[int], others: DeviceList) -> bool:
    """Whether a member of a group is elsewhere in another group of several members."""
    places = [place[0] for device in group if (place := others.group_of(device)) is not None]
    theirs = [others.group(place) for place in dict.fromkeys(places)]
    is_same = len(theirs) == 1 and len(places) == len(group) == len(theirs[0])
    return not is_same and any(len(each) > 1 for each in theirs)
