"""One channel id per collective."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from commlens.hlo import Pass, Refusals, SetChannelId, figures, pass_result, shares
from commlens.neuron.channel_ids import carriers_of, id_above, transfer_dones
from commlens.neuron.passes.channel_hazards import channels_of, hazards, repeat_hazard
from commlens.neuron.passes.renumbering import renumber, renumber_safely, repeats
from commlens.neuron.passes.taken_ids import taken_hazards
from commlens.neuron.passes.unread import unread_among
from commlens.neuron.places import place_of
from commlens.neuron.predicates import ENFORCED_OPCODES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from commlens.hlo import Edit, Instruction, Json, Module, PassResult, UnreadableError
    from commlens.neuron.channel_ids import Carrier
    from commlens.neuron.passes.renumbering import Renumbering

_LARGEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class NeuronUniqueChannelIdEnforcer(Pass):
    """Gives a fresh channel id to every collective whose id another one had first.

    It walks computations in file order and instructions in list order. Fresh ids start above the largest id of the
    module, are taken one by one, and never return; ids are neither lowered nor closed up.

    What may surprise, all of it documented:

    - It looks at seven opcodes only (:func:`~commlens.neuron.is_collective`): not at the starts and done forms with an
      opcode of their own, collective-broadcast or ragged-all-to-all. So ids are unique among what it looks at.
    - Collectives that are written as custom calls, as JAX 0.12 does, are none to it: a fresh id may be one of theirs.
    - "No id" is one value among the others: the second collective without an id gets one. That changes what the ids in
      its groups mean (see :func:`~commlens.hlo.group_mode`). In a text 0 and negative ids are values as well.
    - A send and its recv share an id on purpose. The second of them is renumbered, and its done form keeps the old id.
    - Branches of a conditional may share an id in XLA. They no longer do.
    - A module without computations is unchanged.

    ``warnings`` name every instruction that one of these concerns. That is where documented behaviour and upstream XLA
    part; what the Neuron runtime makes of a shared or changed id is not known.

    Attributes:
        name: ``"neuron_unique_channel_id_enforcer"``, number 82 of the registry.
        safe: whether to keep together what works by sharing an id, which is not documented behaviour: sends, recvs and
            their done forms of one id move together, a start and its done too, and what has no id is left alone.

    Source: ``xla::hilo::NeuronUniqueChannelIdEnforcer`` of neuronx_cc 2.24.5133.
    """

    name: ClassVar[str] = "neuron_unique_channel_id_enforcer"
    safe: bool = False

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Make channel ids unique.

        Args:
            module: the module, which stays as it is.
            keep_going: whether to leave alone what cannot be read in full, instead of refusing the module.

        Returns:
            The new module. ``stats``: the first fresh id, every renumbered instruction with its old and new id, how
            many were looked at, how many were not by opcode, ids that several instructions still share, and collectives
            that are written as custom calls with their ids.

        Raises:
            InputError: an instruction that may have a channel id cannot be read in full or edited, or there are no ids
                left.
        """
        refusals = Refusals(module, keep_going)
        refusals.check_structure()
        unread: dict[Instruction, UnreadableError] = {}
        found, custom_calls, unread_calls = carriers_of(module, unread.__setitem__)
        dones = list(transfer_dones(module, unread.__setitem__))
        unread = {**unread_among(each.item for each in found), **unread}
        hidden = [*_without_id(unread, (*found, *dones)), *unread_calls]
        next_id = id_above((*found, *dones))
        changes = renumber_safely(found, dones, next_id) if self.safe else renumber(found, next_id)
        repeated = repeats(module, changes, refusals.refuse)
        if self.safe:
            changes, repeated = [*changes, *repeated], []
        wanted = changes
        changes = _within_range(_understood(unread, changes, refusals), refusals)
        edits = [SetChannelId(each.instruction, each.channel_id) for each in changes]
        made = refusals.apply(edits, _channel)
        missing = made.missing(edits)
        changes = [each for each in changes if each.instruction not in missing]
        new = {each.channel_id for each in changes}
        repeated = [each for each in repeated if each.channel_id in new]
        left_alone = [each.carrier for each in wanted if each.channel_id not in new]
        channels = channels_of(module, (*found, *custom_calls), dones, changes, left_alone)
        looked_at = Counter(each.opcode for each in channels.found)
        seen = sum(count for opcode, count in looked_at.items() if opcode in ENFORCED_OPCODES)
        not_looked_at = {op: count for op, count in sorted(looked_at.items()) if op not in ENFORCED_OPCODES}
        stats: dict[str, Json] = {
            "next_channel_id": next_id,
            "renumbered": [each.as_json() for each in changes],
            "looked_at": seen,
            "not_looked_at": not_looked_at,
            "still_shared": channels.shared_as_json(),
            "custom_calls": [
                {**place_of(each.item), "opcode": each.opcode, "channel_id": each.channel_id} for each in custom_calls
            ],
        }
        facts = (
            *figures(next_channel_id=next_id, renumbered=len(changes), looked_at=seen),
            *shares("not looked at", not_looked_at),
            *figures(still_shared=len(channels.shared)),
        )
        return pass_result(
            self.name,
            refusals,
            made,
            changed=bool(changes),
            stats=stats,
            facts=facts,
            warnings=(*hazards(channels), *repeat_hazard(repeated), *taken_hazards(changes, custom_calls, hidden)),
        )


def _channel(edit: Edit) -> int | None:
    """Return the new id of an edit: what gets the same one changes together or not at all."""
    return edit.channel_id if isinstance(edit, SetChannelId) else None


def _without_id(unread: Collection[Instruction], known: Iterable[Carrier]) -> list[Instruction]:
    """Return what cannot be read, its channel id neither."""
    if not unread:
        return []
    found = {each.instruction for each in known}
    return [each for each in unread if each not in found]


def _understood(
    unread: Mapping[Instruction, UnreadableError], changes: Sequence[Renumbering], refusals: Refusals
) -> list[Renumbering]:
    """Refuse what cannot be read in full; return the changes without it and without what changes along with it."""
    members: dict[int, list[Instruction]] = {}
    new: dict[Instruction, int] = {}
    for each in changes if unread else ():
        members.setdefault(each.channel_id, []).append(each.instruction)
        new[each.instruction] = each.channel_id
    for instruction, error in unread.items():
        partners = members.pop(new[instruction], ()) if instruction in new else ()
        refusals.refuse(instruction, error, [each for each in partners if each not in unread])
    return [each for each in changes if each.channel_id in members] if unread else [*changes]


def _within_range(changes: Sequence[Renumbering], refusals: Refusals) -> list[Renumbering]:
    """Refuse ids that do not fit 64 bits."""
    kept: list[Renumbering] = []
    for each in changes:
        if each.channel_id <= _LARGEST:
            kept.append(each)
        else:
            why = f"expected a free channel id for it, found none: fresh ids go up, and {_LARGEST} is the largest"
            refusals.refuse(each.instruction, why)
    return kept
