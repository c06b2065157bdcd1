"""Which channel ids the enforcer changes: by the documented walk, or by one that keeps together what is one."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.hlo import Site, UnreadableError, base_opcode
from commlens.neuron.channel_ids import Carrier
from commlens.neuron.places import place_of
from commlens.neuron.predicates import ENFORCED_OPCODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from commlens.hlo import Instruction, Json, Module

TRANSFERS: Final = frozenset({"send", "recv"})
"""The two opcodes that share a channel id by design, with each other and with their done forms."""


class Renumbering(NamedTuple):
    """A new channel id.

    Attributes:
        carrier: what gets it; it still says the old one.
        channel_id: the new id.
    """

    carrier: Carrier
    channel_id: int

    @property
    def instruction(self) -> Instruction:
        """The instruction."""
        return self.carrier.instruction

    def as_json(self) -> dict[str, Json]:
        """Return it for the statistics."""
        old, new = self.carrier.channel_id, self.channel_id
        return {**place_of(self.carrier.item), "opcode": self.carrier.opcode, "old": old, "new": new}


def renumber(found: Iterable[Carrier], next_id: int) -> list[Renumbering]:
    """Give fresh ids as the documented pass does: whoever has an id first keeps it.

    "No id" is one value among the others, so are 0 and negative ids; only the first without an id stays without.

    Args:
        found: what may have a channel id, in the order of the walk.
        next_id: the first fresh id; those that follow it are taken one by one.
    """
    fresh = count(next_id)
    seen: set[int | None] = set()
    changes: list[Renumbering] = []
    for each in found:
        if each.opcode not in ENFORCED_OPCODES:
            continue
        channel_id = each.channel_id
        if channel_id in seen:
            channel_id = next(fresh)
            changes.append(Renumbering(each, channel_id))
        seen.add(channel_id)
    return changes


def renumber_safely(found: Iterable[Carrier], dones: Iterable[Carrier], next_id: int) -> list[Renumbering]:
    """Give fresh ids without taking apart what works by sharing one.

    Sends, recvs and their done forms of one old id count as one: the first of them keeps the id for all, or all get the
    same fresh one. What has no id is left alone.

    Args:
        found: what may have a channel id, in the order of the walk.
        dones: the done forms of send and recv.
        next_id: the first fresh id.
    """
    fresh = count(next_id)
    seen: set[int] = set()
    families: dict[int, int] = {}  # new id of the sends and recvs of an old one
    changes: list[Renumbering] = []
    for each in found:
        old = each.channel_id
        if old is None or each.opcode not in ENFORCED_OPCODES:
            continue
        is_transfer = each.opcode in TRANSFERS
        new = families.get(old) if is_transfer else None
        if new is None:
            new = next(fresh) if old in seen else old
            seen.add(new)
        if is_transfer:
            families[old] = new
        if new != old:
            changes.append(Renumbering(each, new))
    for each in dones:
        new = None if each.channel_id is None else families.get(each.channel_id)
        if new not in (None, each.channel_id):
            changes.append(Renumbering(each, new))
    return changes


def repeats(
    module: Module, changes: Iterable[Renumbering], refuse: Callable[[Instruction, UnreadableError], None]
) -> list[Renumbering]:
    """Return what else states the old id of a renumbered start: its update and done, in texts of 2022 and before.

    Today's texts say what is started on the line of the start alone, and a proto has it in a computation of its own.

    Args:
        module: the module.
        changes: the new ids.
        refuse: what to do with an update or done that cannot be made out; it is left out otherwise.
    """
    starts = {each.instruction: each for each in changes if _is_short_start(each.carrier)}
    halves = {f"{each.carrier.opcode}-{half}" for each in starts.values() for half in ("update", "done")}
    found: list[Renumbering] = []
    for instruction in module.instructions_of(halves) if halves else ():
        try:
            old = instruction.channel_id
            start = None if old is None else starts.get(_start_of(instruction))
        except UnreadableError as error:
            refuse(instruction, error)
            continue
        if start is not None and old == start.carrier.channel_id:
            carrier = Carrier(instruction.opcode, old, instruction, instruction.computation.name)
            found.append(Renumbering(carrier, start.channel_id))
    return found


def _is_short_start(carrier: Carrier) -> bool:
    """Whether this is the start of an operation whose start has no opcode of its own."""
    return isinstance(carrier.item, Site) and carrier.item.signature.is_async


def _start_of(half: Instruction) -> Instruction:
    """Follow an update or done to its start, or to where the way ends."""
    seen = {half}
    current = half
    while base_opcode(current.opcode)[1] in ("update", "done") and current.operand_names:
        current = current.operands[0]
        if current in seen:
            break
        seen.add(current)
    return current
