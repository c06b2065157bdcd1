"""What an HLO module says of its workers: the geometries of its groups, and its pairs.

Source: the documented path from a module to a NEFF. Groups are copied as they are, ids included; ``writeCCInfo`` keeps
each geometry once, so that the outermost level of ``replica_groups`` is the set of distinct group lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.errors import CommlensError, InputError
from commlens.hlo import discover
from commlens.neuron.cc_fields import CCFields, checked_groups, checked_pairs
from commlens.topology import CollectiveOpGroupMode, get_collective_op_group_mode, participant_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.hlo import Module, Signature, Site, Unread
    from commlens.neuron.cc_fields import PairSet, Topology
    from commlens.topology import DeviceList

MOST_RANKS: Final = 1 << 24
"""How many ranks are written out for one module."""


def module_fields(module: Module) -> CCFields:
    """Collect what a module says of its workers.

    Args:
        module: a module. Its counts of replicas and partitions are asked only about empty groups.

    Returns:
        Distinct group lists and distinct lists of pairs, compared place by place, in the order in which they first
        appear; None where there are none. Permutes, and sends and receives that state pairs, add pairs; all other
        collectives add groups. Notes name what could not be read.

    Raises:
        InputError: groups are empty and nobody says how many devices that means; an id is no rank; there are more ranks
            than are written out.
    """
    found = discover(module)
    collected = _Collected(module)
    seen: set[Signature] = set()
    for site in found.sites:
        if site.signature not in seen:
            seen.add(site.signature)
            collected.add(site)
    unread = (_unread_note(item, module.format) for item in found.unread)
    notes = (*_ids_notes(module, found.sites), *unread)
    return CCFields(tuple(collected.topologies) or None, tuple(collected.pair_sets) or None, None, notes)


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
        if self._ranks > MOST_RANKS:
            msg = f"expected a module whose groups list at most {MOST_RANKS:,} ranks, found more"
            raise CommlensError(msg)
        [topology] = checked_groups([listed.groups()], "replica_groups")
        self.topologies.setdefault(topology)

    def _everybody(self, signature: Signature) -> DeviceList:
        """Return what empty groups stand for: everybody, as the group mode has it, in global ids."""
        replicas, partitions = self._module.replica_count, self._module.num_partitions
        mode = get_collective_op_group_mode(signature.has_channel, signature.use_global_device_ids)
        if mode is not CollectiveOpGroupMode.FLATTENED_ID and (replicas is None or partitions is None):
            msg = (
                "empty replica_groups mean all devices, and nobody states how many there are: expected a module that "
                "states replica_count or num_partitions, or counts given beside it (--replicas, --partitions)"
            )
            raise CommlensError(msg)
        return participant_list(mode, [], replicas or 1, partitions or 1)


def _ids_notes(module: Module, sites: Sequence[Site]) -> Iterator[str]:
    """Say where ids as written are no ranks: in a program of several replicas and several partitions."""
    if (module.replica_count or 1) == 1 or (module.num_partitions or 1) == 1:
        return
    strange = [site for site in sites if _lists_parts(site.signature)]
    if strange:
        others = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        yield (
            f"the ids of {strange[0].name}{others} are those of replicas or partitions, copied as they are written; "
            "the rank of a device would be replica * partitions + partition"
        )


def _lists_parts(signature: Signature) -> bool:
    """Whether the ids that a collective lists are those of replicas or of partitions, not of devices."""
    if signature.pairs is not None:
        return not signature.is_host_transfer
    if signature.groups is None or not signature.groups.num_replica_groups:
        return False
    return not (signature.has_channel and signature.use_global_device_ids)


def _unread_note(item: Unread, form: str) -> str:
    where = f"line {item.where}" if form == "text" else item.where
    what = " ".join(word for word in (item.opcode, item.name) if word)
    return f"{where}: {what + ': ' if what else ''}{item.why}; its groups or pairs may be missing here"
