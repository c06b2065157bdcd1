"""Which devices a collective binds together, so that two collectives can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.analysis.axis_names import NO_AXES, axes_key
from commlens.analysis.effective_axes import axes_up_to_order
from commlens.hlo import check_listable
from commlens.topology import CollectiveDeviceList, Mesh, MeshAxesReplicaGroupList, parse_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.topology import DeviceList

_LINE: Final = "device"


class Cliques(NamedTuple):
    """The groups of a collective as sets.

    Attributes:
        key: equal for the same sets, however they are spelled and ordered.
        groups: the groups, ascending; laid out where they lie evenly in ``0..n-1``.
        steps: of such groups what varies inside one, as strides and sizes; None of others.
    """

    key: object
    groups: DeviceList
    steps: tuple[tuple[int, int], ...] | None


def cliques_of(groups: DeviceList) -> Cliques:
    """Return the groups of a collective in a form in which they can be compared.

    Groups that lie evenly are known by what varies inside one of them, since the others are the same elsewhere; they
    are not written out.

    Raises:
        CommlensError: the groups lie unevenly, and are too many to look at.

    Example:
        >>> from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList
        >>> written = CollectiveDeviceList([[7, 4, 6, 5], [3, 2, 1, 0]])
        >>> cliques_of(IotaReplicaGroupList(2, 4)).key == cliques_of(written).key
        True
    """
    number = groups.num_devices
    line = Mesh({_LINE: max(number, 1)})
    refs = axes_up_to_order(groups, line, "any")
    if refs is None:
        check_listable(groups)
        listed = CollectiveDeviceList(sorted(sorted(set(group)) for group in groups.groups()))
        return Cliques(listed, listed, None)
    text = axes_key(refs, line).text
    merged = () if text == NO_AXES else parse_axes(text, line)
    digits = ((ref.pre_size or 1, ref.size or number) for ref in merged)
    steps = tuple((number // (before * size), size) for before, size in digits)
    return Cliques((number, steps), MeshAxesReplicaGroupList(line, merged), steps)


def clashing(found: Sequence[Cliques]) -> list[Cliques]:
    """Return those by which some device is in a group that differs from its group in another of them.

    Groups of one device do not count. Takes time in proportion to the ids that are written out; even groups are
    compared by what varies inside one: all have the device 0, and if two differ there, they differ for every device.

    Example:
        >>> from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList
        >>> rows, columns = IotaReplicaGroupList(2, 4), IotaReplicaGroupList(4, 2, (2, 4), (1, 0))
        >>> alone = CollectiveDeviceList([[8, 9]])
        >>> [str(each.groups) for each in clashing([cliques_of(each) for each in (rows, alone, columns)])]
        ["mesh['device'=8] {'device':(2)4}", "mesh['device'=8] {'device':(1)2}"]
    """
    evens = [each for each in found if each.steps]
    lists = [each for each in found if each.steps is None]
    bad = {each.key for each in evens} if len({each.steps for each in evens}) > 1 else set[object]()
    for each in lists:
        for even in evens[:2]:  # a group that is the same in one differs from the other
            if any(len(group) > 1 and _differs(group, even.groups) for group in each.groups.groups()):
                bad |= {each.key, even.key}
    bad |= _clashing_lists(lists)
    return [each for each in found if each.key in bad]


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
    """Whether a member of a group is elsewhere in another group, of several members as all the others are."""
    places = [place[0] for device in group if (place := others.group_of(device)) is not None]
    is_same = len(set(places)) == 1 and len(places) == len(group) == others.num_devices_per_group
    return bool(places) and not is_same
