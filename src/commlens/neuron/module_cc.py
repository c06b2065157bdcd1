"""What an HLO module says of its workers: the geometries of its groups, and its pairs.

Source: the documented path from a module to a NEFF. Groups are copied as they are, ids included; ``writeCCInfo`` keeps
each geometry once, so that the outermost level of ``replica_groups`` is the set of distinct group lists. Empty groups
are written out as the ids that the others of their mode list, so that the same groups never stand there twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.errors import CommlensError, InputError
from commlens.hlo import discover
from commlens.neuron.cc_fields import CCFields, checked_groups, checked_pairs
from commlens.topology import (
    CollectiveOpGroupMode,
    IotaReplicaGroupList,
    get_collective_op_group_mode,
    participant_list,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.hlo import Module, Signature, Site, Unread
    from commlens.neuron.cc_fields import PairSet, Topology
    from commlens.topology import DeviceList

MOST_LISTED_IDS: Final = 1 << 24
"""How many ids are written out for one module."""


def module_fields(module: Module) -> CCFields:
    """Collect what a module says of its workers.

    Args:
        module: a module. Its counts of replicas and partitions are asked only about empty groups.

    Returns:
        Distinct group lists and distinct lists of pairs, compared place by place, in the order in which they first
        appear; None where there are none. Permutes, and sends and receives that state pairs, add pairs, transfers to
        the host nothing; all other collectives add groups. Notes name what could not be read, and sends and receives
        without pairs.

    Raises:
        InputError: groups are empty and nobody says how many devices that means; an id is no rank; there are more ranks
            than are written out.
    """
    found = discover(module)
    collected = _Collected(module)
    seen: set[Signature] = set()
    for site in found.sites:
        if site.signature not in seen and not site.signature.is_host_transfer:
            seen.add(site.signature)
            collected.add(site)
    silent = [site for site in found.sites if _says_nothing(site.signature)]
    unread = (_unread_note(item, module.format) for item in found.unread)
    return CCFields(
        tuple(collected.topologies) or None,
        tuple(collected.pair_sets) or None,
        None,
        (*_ids_notes(module, found.sites), *_silent_notes(silent), *unread),
        incomplete=bool(silent or found.unread),
    )


class _Collected:
    """Geometries and pairs, each once, in the order in which they came."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._ranks = 0
        self._lists: set[DeviceList] = set()
        self.topologies: dict[Topology, None] = {}
        self.pair_sets: dict[PairSet, None] = {}

    def add(self, site: Site) -> None:
        """Add what one collective says."""
        try:
            self._add(site)
        except CommlensError as error:
            reason = f"{site.signature.opcode} {site.name}: {error}"
            raise InputError(reason, path=self._module.path, line=site.line) from error

    def _add(self, site: Site) -> None:
        signature = site.signature
        if signature.pairs is not None:
            [pairs] = checked_pairs([signature.pairs.groups()], "source_target_pairs")
            self.pair_sets.setdefault(pairs)
            return
        if signature.groups is None:
            return
        listed = signature.groups if signature.groups.num_replica_groups else self._everybody(signature)
        if listed in self._lists:
            return
        self._lists.add(listed)
        self._ranks += listed.num_devices
        if self._ranks > MOST_LISTED_IDS:
            msg = f"expected a module whose groups list at most {MOST_LISTED_IDS:,} ranks, found more"
            raise CommlensError(msg)
        [topology] = checked_groups([listed.groups()], "replica_groups")
        self.topologies.setdefault(topology)

    def _everybody(self, signature: Signature) -> DeviceList:
        """Return what empty groups stand for: every id that the groups of this mode list.

        Those of kCrossReplicaAndPartition list replicas of which each brings all its partitions; everybody is
        written there as what takes part, all devices, lest a program of one replica seem to need one worker.
        """
        replicas, partitions = self._module.replica_count, self._module.num_partitions
        mode = get_collective_op_group_mode(signature.has_channel, signature.use_global_device_ids)
        if mode is CollectiveOpGroupMode.FLATTENED_ID:
            return participant_list(mode, [], 1, 1)  # refuses them, in the words of that mode
        if replicas is None or partitions is None:
            msg = (
                "empty replica_groups mean all devices, and nobody states how many there are: expected a module that "
                "states replica_count or num_partitions, or counts given beside it (--replicas, --partitions)"
            )
            raise CommlensError(msg)
        match mode:
            case CollectiveOpGroupMode.CROSS_REPLICA:
                return IotaReplicaGroupList(1, replicas)
            case CollectiveOpGroupMode.CROSS_PARTITION:
                return IotaReplicaGroupList(1, partitions)
            case _:
                return IotaReplicaGroupList(1, replicas * partitions)


def _ids_notes(module: Module, sites: Sequence[Site]) -> Iterator[str]:
    """Say where ids as written are no ranks, because each stands for several devices."""
    replicas, partitions = module.replica_count or 1, module.num_partitions or 1
    strange = [site for site in sites if _lists_parts(site.signature, replicas, partitions)]
    if strange:
        others = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        yield (
            f"the ids of {strange[0].name}{others} are those of replicas or partitions, copied as they are written; "
            "the rank of a device would be replica * partitions + partition"
        )


def _lists_parts(signature: Signature, replicas: int, partitions: int) -> bool:
    """Whether a collective lists replicas that have several partitions each, or partitions of several replicas."""
    if signature.pairs is not None:
        return not signature.is_host_transfer and (replicas if signature.has_channel else partitions) > 1
    if signature.groups is None:
        return False
    match _mode_of(signature):
        case CollectiveOpGroupMode.CROSS_REPLICA:
            return partitions > 1
        case CollectiveOpGroupMode.CROSS_PARTITION:
            return replicas > 1
        case CollectiveOpGroupMode.CROSS_REPLICA_AND_PARTITION:
            return partitions > 1 and signature.groups.num_replica_groups > 0
        case _:
            return False


def _mode_of(signature: Signature) -> CollectiveOpGroupMode | None:
    """Return the group mode; None where the flags contradict each other."""
    try:
        return get_collective_op_group_mode(signature.has_channel, signature.use_global_device_ids)
    except CommlensError:
        return None


def _says_nothing(signature: Signature) -> bool:
    """Whether something communicates with other devices and does not state with which: a send or recv without pairs."""
    return signature.groups is None and signature.pairs is None and not signature.is_host_transfer


def _silent_notes(silent: Sequence[Site]) -> Iterator[str]:
    if silent:
        first = silent[0]
        others = f" and {len(silent) - 1} more state" if len(silent) > 1 else " states"
        yield (
            f"{first.signature.opcode} {first.name}{others} no source-target pairs (the frontend attribute "
            "_xla_send_recv_source_target_pairs); whom it meets is not known and missing here"
        )


def _unread_note(item: Unread, form: str) -> str:
    where = f"line {item.where}" if form == "text" else item.where
    what = " ".join(word for word in (item.opcode, item.name) if word)
    return f"{where}: {what + ': ' if what else ''}{item.why}; its groups or pairs may be missing here"
