"""The distinct group lists of a module: what the Neuron runtime makes a communicator of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.errors import CommlensError
from commlens.hlo import canonical_groups, check_listable
from commlens.topology import get_collective_op_group_mode, participant_list

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.hlo import Signature, Site, Subject, Target
    from commlens.topology import DeviceList

NEURON_TARGETS: Final[frozenset[Target]] = frozenset({"trn1", "trn2", "trn3", "inf2"})
"""The machines that Neuron's rules are about."""


def topologies_of(subject: Subject) -> Mapping[DeviceList, tuple[Site, ...]]:
    """Return the distinct group lists in global ids, in the order in which they first appear, with who has them.

    Lists are compared place by place, as CC info does, whatever their spelling. Where nobody states the counts, or no
    device has the ids, they are taken as they are written.
    """
    known: dict[Signature, DeviceList] = {}
    found: dict[DeviceList, list[Site]] = {}
    for site in subject.sites:
        signature = site.signature
        if signature.groups is not None:
            if signature not in known:
                joined = _global_groups(subject, signature, signature.groups)
                if joined.layout() is None:
                    check_listable(joined)
                known[signature] = canonical_groups(joined)
            found.setdefault(known[signature], []).append(site)
    return {groups: tuple(sites) for groups, sites in found.items()}


def group_sizes_of(groups: DeviceList) -> frozenset[int]:
    """Return the sizes that the groups of a list have."""
    size = groups.num_devices_per_group
    return frozenset(groups.group_sizes().tolist()) if size is None else frozenset({size} - {0})


def _global_groups(subject: Subject, signature: Signature, groups: DeviceList) -> DeviceList:
    replicas, partitions = subject.module.replica_count, subject.module.num_partitions
    if replicas is None or partitions is None:
        return groups
    try:
        mode = get_collective_op_group_mode(signature.has_channel, signature.use_global_device_ids)
        return participant_list(mode, groups, replicas, partitions)
    except CommlensError:  # a rule of its own says what is wrong with them
        return groups
