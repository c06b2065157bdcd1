"""What new channel ids break, as far as a module shows it: told to the user, not mended."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.errors import CommlensError
from commlens.hlo import CallGraph, Site, UnreadableError
from commlens.neuron.channel_ids import TRANSFER_DONES
from commlens.neuron.passes.renumbering import TRANSFERS
from commlens.neuron.places import listed, place_of
from commlens.neuron.predicates import ENFORCED_OPCODES
from commlens.topology import CollectiveOpGroupMode, get_collective_op_group_mode

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence

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
        shared: the ids that several instructions have in the end although the enforcer tells ids apart: it never looks
            at one of them, or could not change it.
        left_alone: identities of what would have got a new id and could not.
    """

    module: Module
    found: Sequence[Carrier]
    dones: Sequence[Carrier]
    changes: Sequence[Renumbering]
    new: Mapping[int, int]
    shared: Mapping[int, Sequence[Carrier]]
    left_alone: frozenset[int] = frozenset()

    def shared_as_json(self) -> list[dict[str, Json]]:
        """Return who shares an id, for the statistics."""
        return [
            {"channel_id": number, "instructions": [{**place_of(each.item), "opcode": each.opcode} for each in found]}
            for number, found in self.shared.items()
        ]


def channels_of(
    module: Module,
    found: Sequence[Carrier],
    dones: Sequence[Carrier],
    changes: Sequence[Renumbering],
    left_alone: Collection[Carrier] = (),
) -> Channels:
    """Put together what was found and what becomes of it.

    Args:
        module: the module, as it was.
        found: what may have a channel id, in the order of the walk.
        dones: the done forms of send and recv.
        changes: the new ids.
        left_alone: what would have got a new id and could not.
    """
    new = {id(each.carrier): each.channel_id for each in changes}
    left = frozenset(map(id, left_alone))
    by_id: dict[int, list[Carrier]] = {}
    unseen: set[int] = set()
    for each in found:
        channel_id = new.get(id(each), each.channel_id)
        if channel_id is not None:
            by_id.setdefault(channel_id, []).append(each)
            if each.opcode not in ENFORCED_OPCODES or id(each) in left:
                unseen.add(channel_id)
    shared = {number: by_id[number] for number in by_id if number in unseen and len(by_id[number]) > 1}
    return Channels(module, found, dones, changes, new, shared, left)


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
            parted = _parted_dones(stayed, {each.instruction for each in moved})
            refuses = (
                f", and its text reader refuses a done form with another id than what it ends: {listed(parted)}"
                if parted
                else ""
            )
            yield (
                f"sends and recvs with {_words(old)} are torn apart: {gets}{rest}{keeps}; XLA pairs them by channel id"
                f"{refuses} (safe=true keeps them together)"
            )


def _parted_dones(stayed: Iterable[Site | Instruction], moved: Container[Instruction]) -> list[Site | Instruction]:
    """Return the done forms that keep their id although what they end gets another one.

    Source: what the text reader of jaxlib 0.10.2 takes and refuses.
    """
    return [each for each in stayed if not isinstance(each, Site) and _ends(each, moved)]


def _ends(instruction: Instruction, starts: Container[Instruction]) -> bool:
    try:
        return instruction.opcode in TRANSFER_DONES and any(each in starts for each in instruction.operands)
    except UnreadableError:
        return False


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
    leading = _leading(CallGraph(channels.module, names, lambda _: False), names) if names else {}
    for (opcode, channel_id), places in shared.items():
        for conditional, items in _by_conditional(leading, places).items():
            yield (
                f"branches of the conditional {conditional} shared channel id {channel_id} in {listed(items)}, which"
                f" XLA allows to instructions of one opcode, here {opcode}; they have different ids now"
            )


def _by_conditional(
    leading: Mapping[str, Sequence[_Branch]], places: Mapping[str, Sequence[Site | Instruction]]
) -> dict[str, list[Site | Instruction]]:
    """Return the conditionals of which several branches lead to the given computations, and what stands in those."""
    branches: dict[tuple[str, str], dict[str, list[Site | Instruction]]] = {}
    for name, items in places.items():
        for each in leading[name]:
            branches.setdefault((each.computation, each.conditional), {}).setdefault(each.callee, []).extend(items)
    return {
        conditional: list(dict.fromkeys(item for items in found.values() for item in items))
        for (_, conditional), found in branches.items()
        if len(found) > 1
    }


class _Branch(NamedTuple):
    """A branch of a conditional.

    Attributes:
        computation: name of the computation that the conditional stands in.
        conditional: its name.
        callee: name of the computation that the branch runs.
    """

    computation: str
    conditional: str
    callee: str


def _leading(graph: CallGraph, names: Iterable[str]) -> dict[str, tuple[_Branch, ...]]:
    """Return for computations the branches that lead to them, of conditionals of which several lead to any of them.

    A computation has the branches that call it and those of its callers; along a chain of calls without a branch all
    share one tuple. What calls itself, which no valid module does, lacks its own.
    """
    order = _callers_first(graph, names)
    direct = {
        name: [
            _Branch(call.caller.computation.name, call.caller.name, name)
            for call in graph.calls_of(name)
            if call.role == "branch"
        ]
        for name in order
    }
    callees: dict[tuple[str, str], set[str]] = {}
    for branch in chain.from_iterable(direct.values()):
        callees.setdefault(branch[:2], set()).add(branch.callee)
    found: dict[str, tuple[_Branch, ...]] = {}
    for name in order:
        own = [branch for branch in direct[name] if len(callees[branch[:2]]) > 1]
        callers = dict.fromkeys(call.caller.computation.name for call in graph.calls_of(name))
        outer = list(dict.fromkeys(found[caller] for caller in callers if found.get(caller)))
        alone = len(outer) == 1 and not own
        found[name] = outer[0] if alone else tuple(dict.fromkeys(chain(own, *outer)))
    return found


def _callers_first(graph: CallGraph, names: Iterable[str]) -> list[str]:
    """Return some computations and all that lead to them, callers before callees."""
    order: dict[str, None] = {}
    entered: set[str] = set()
    stack = [(name, False) for name in names]
    while stack:
        name, finished = stack.pop()
        if finished:
            order[name] = None
        elif name not in entered:
            entered.add(name)
            stack.append((name, True))
            stack += [(call.caller.computation.name, False) for call in graph.calls_of(name)]
    return list(order)


def _never_looked_at(channels: Channels) -> Iterator[str]:
    """Name what shares an id with others because the enforcer passes over its opcode, or could not change it."""
    shared = channels.shared
    if shared:
        carriers = [each for found in shared.values() for each in found]
        unseen = [each.item for each in carriers if each.opcode not in ENFORCED_OPCODES]
        left = [each.item for each in carriers if id(each) in channels.left_alone]
        why = [f"the pass never looks at opcodes such as those of {listed(unseen)}"] if unseen else []
        why += [f"{listed(left)} could not be given another one"] if left else []
        ids = ", ".join(map(str, list(shared)[:_SHOWN])) + (", ..." if len(shared) > _SHOWN else "")
        yield (
            f"channel ids are not unique over the module: several instructions still have {ids}, because"
            f" {' and because '.join(why)}"
        )
