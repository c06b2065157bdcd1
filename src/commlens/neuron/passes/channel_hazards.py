"""What new channel ids break, as far as a module shows it: told to the user, not mended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.errors import CommlensError
from commlens.hlo import CallGraph, Site
from commlens.neuron.channel_ids import TRANSFER_DONES
from commlens.neuron.passes.renumbering import TRANSFERS
from commlens.neuron.places import listed, place_of
from commlens.neuron.predicates import ENFORCED_OPCODES
from commlens.topology import CollectiveOpGroupMode, get_collective_op_group_mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlens.hlo import Instruction, Json, Module
    from commlens.neuron.channel_ids import Carrier
    from commlens.neuron.passes.renumbering import Renumbering

_SHOWN: Final = 20
_JOINS_PARTITIONS: Final = str(CollectiveOpGroupMode.CROSS_REPLICA_AND_PARTITION)
_NO_MODE: Final = "none (use_global_device_ids needs a channel id)"


@dataclass(frozen=True, slots=True)
class Channels:
    """The channel ids of a module before and after.

    Attributes:
        module: the module, as it was.
        found: what may have a channel id, in the order of the walk.
        dones: the done forms of send and recv.
        changes: the new ids.
        new: the new ids by identity of what gets them.
        shared: the ids that several instructions have in the end, one of which the enforcer never looks at.
    """

    module: Module
    found: Sequence[Carrier]
    dones: Sequence[Carrier]
    changes: Sequence[Renumbering]
    new: Mapping[int, int]
    shared: Mapping[int, Sequence[Carrier]]

    def shared_as_json(self) -> list[dict[str, Json]]:
        """Return who shares an id, for the statistics."""
        return [
            {"channel_id": number, "instructions": [{**place_of(each.item), "opcode": each.opcode} for each in found]}
            for number, found in self.shared.items()
        ]


def channels_of(
    module: Module, found: Sequence[Carrier], dones: Sequence[Carrier], changes: Sequence[Renumbering]
) -> Channels:
    """Put together what was found and what becomes of it."""
    new = {id(each.carrier): each.channel_id for each in changes}
    by_id: dict[int, list[Carrier]] = {}
    unseen: set[int] = set()
    for each in found:
        channel_id = new.get(id(each), each.channel_id)
        if channel_id is not None:
            by_id.setdefault(channel_id, []).append(each)
            if each.opcode not in ENFORCED_OPCODES:
                unseen.add(channel_id)
    shared = {number: by_id[number] for number in by_id if number in unseen and len(by_id[number]) > 1}
    return Channels(module, found, dones, changes, new, shared)


def hazards(channels: Channels) -> Iterator[str]:
    """Say in sentences what the new ids break, and what they leave as it was."""
    yield from _torn_families(channels)
    yield from _new_modes(channels)
    yield from _separated_branches(channels)
    yield from _never_looked_at(channels)


def repeat_hazard(repeated: Sequence[Renumbering]) -> Iterator[str]:
    """Say which updates and dones go on stating the old id of their start."""
    if repeated:
        items = [each.carrier.item for each in repeated]
        yield f"the old channel id of their start still stands on {listed(items)} (safe=true keeps them together)"


def _torn_families(channels: Channels) -> Iterator[str]:
    """Name sends, recvs and done forms that shared an id and no longer do."""
    new = channels.new
    families: dict[int | None, list[Carrier]] = {}
    for each in (*channels.found, *channels.dones):
        if each.opcode in TRANSFERS or each.opcode in TRANSFER_DONES:
            families.setdefault(each.channel_id, []).append(each)
    for old, members in families.items():
        yield from _ambiguous(members, new)
        moved = [each for each in members if id(each) in new]
        stayed = [each.item for each in members if id(each) not in new]
        if moved and (stayed or len({new[id(each)] for each in moved}) > 1):
            gets = ", ".join(f"{listed([each.item])} gets {new[id(each)]}" for each in moved[:_SHOWN])
            rest = f" and {len(moved) - _SHOWN} more get others" if len(moved) > _SHOWN else ""
            keeps = f", while {listed(stayed)} keep {_words(old)}" if stayed else ""
            yield (
                f"sends and recvs with {_words(old)} are torn apart: {gets}{rest}{keeps}; XLA pairs them by channel id"
                " (safe=true keeps them together)"
            )


def _ambiguous(members: Sequence[Carrier], new: Mapping[int, int]) -> Iterator[str]:
    """Name sends, or recvs, that have one id in the end: kept together, though not all can belong together."""
    by_id: dict[tuple[str, int], list[Site | Instruction]] = {}
    for each in members:
        channel_id = new.get(id(each), each.channel_id)
        if each.opcode in TRANSFERS and channel_id is not None:
            by_id.setdefault((each.opcode, channel_id), []).append(each.item)
    for (opcode, channel_id), items in by_id.items():
        if len(items) > 1:
            yield (
                f"several {opcode}s have channel id {channel_id}, and which belongs to what cannot be told: they stay"
                f" together, {listed(items)}"
            )


def _words(channel_id: int | None) -> str:
    return "no channel id" if channel_id is None else f"channel id {channel_id}"


def _new_modes(channels: Channels) -> Iterator[str]:
    """Name collectives for which an id where there was none changes what the ids in their groups mean."""
    found: dict[tuple[str, str], list[Site | Instruction]] = {}
    for each in channels.changes:
        if each.carrier.channel_id is None and each.carrier.opcode not in TRANSFERS:
            flag = _use_global_device_ids(each.carrier.item)
            modes = (_mode(False, flag), _mode(True, flag))
            found.setdefault(modes, []).append(each.carrier.item)
    for (before, after), items in found.items():
        same = channels.module.num_partitions == 1 and after == _JOINS_PARTITIONS
        effect = "which joins the same devices, as there is one partition" if same else "so other devices may meet"
        yield (
            f"a channel id where there was none changes the group mode from {before} to {after} for {listed(items)},"
            f" {effect} (safe=true leaves them without an id)"
        )


def _use_global_device_ids(item: Site | Instruction) -> bool | None:
    return item.signature.use_global_device_ids if isinstance(item, Site) else item.use_global_device_ids


def _mode(has_channel_id: bool, use_global_device_ids: bool | None) -> str:
    try:
        return str(get_collective_op_group_mode(has_channel_id, use_global_device_ids))
    except CommlensError:
        return _NO_MODE


def _separated_branches(channels: Channels) -> Iterator[str]:
    """Name conditionals whose branches shared an id, one opcode each, as XLA allows."""
    renumbered = {(each.carrier.opcode, each.carrier.channel_id) for each in channels.changes}
    shared: dict[tuple[str, int], dict[str, list[Site | Instruction]]] = {}
    for each in channels.found:
        if each.channel_id is not None and (each.opcode, each.channel_id) in renumbered:
            places = shared.setdefault((each.opcode, each.channel_id), {})
            places.setdefault(each.computation, []).append(each.item)
    shared = {key: places for key, places in shared.items() if len(places) > 1}
    names = {name for places in shared.values() for name in places}
    graph = CallGraph(channels.module, names, lambda _: False)
    for (opcode, channel_id), places in shared.items():
        for conditional, items in _by_conditional(graph, places).items():
            yield (
                f"branches of the conditional {conditional} shared channel id {channel_id} in {listed(items)}, which"
                f" XLA allows to instructions of one opcode, here {opcode}; they have different ids now"
            )


def _by_conditional(
    graph: CallGraph, places: Mapping[str, Sequence[Site | Instruction]]
) -> dict[str, list[Site | Instruction]]:
    """Return the conditionals of which several branches lead to the given computations, and what stands in those."""
    branches: dict[tuple[str, str], dict[str, list[Site | Instruction]]] = {}
    for name, items in places.items():
        for computation, conditional, branch in _branches_to(graph, name):
            branches.setdefault((computation, conditional), {}).setdefault(branch, []).extend(items)
    return {
        conditional: list(dict.fromkeys(item for items in found.values() for item in items))
        for (_, conditional), found in branches.items()
        if len(found) > 1
    }


def _branches_to(graph: CallGraph, name: str) -> list[tuple[str, str, str]]:
    """Return computation and name of every conditional that leads to a computation, and by which branch."""
    found: dict[tuple[str, str, str], None] = {}
    stack, seen = [name], {name}
    while stack:
        for call in graph.calls_of(stack.pop()):
            caller = call.caller.computation.name
            if call.role == "branch":
                found[caller, call.caller.name, call.callee] = None
            if caller not in seen:
                seen.add(caller)
                stack.append(caller)
    return list(found)


def _never_looked_at(channels: Channels) -> Iterator[str]:
    """Name what shares an id with others because the enforcer passes over its opcode."""
    shared = channels.shared
    if shared:
        unseen = [each.item for found in shared.values() for each in found if each.opcode not in ENFORCED_OPCODES]
        ids = ", ".join(map(str, list(shared)[:_SHOWN])) + (", ..." if len(shared) > _SHOWN else "")
        yield (
            f"channel ids are not unique over the module: several instructions still have {ids}, because the pass never"
            f" looks at opcodes such as those of {listed(unseen)}"
        )
