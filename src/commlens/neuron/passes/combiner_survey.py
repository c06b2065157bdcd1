"""The collectives that a combiner may combine, and the one that may forbid it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlens.hlo import UnreadableError, communication_in_list_order, custom_call_opcode, signature_of
from commlens.neuron.opcodes import CUSTOM_CALLS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.hlo import Computation, Instruction, Module, Refusals, Site


@dataclass(frozen=True, slots=True)
class Collectives:
    """The collectives of one opcode.

    Attributes:
        module: where they are.
        sites: those that may be combined, by computation. Asynchronous ones are not among them: they have an opcode of
            their own in XLA's memory, or stand in a computation of their own.
        constrained: the first one that is layout-constrained.
        custom_calls: those that are written as custom calls, which XLA takes for no collectives.
    """

    module: Module
    sites: Sequence[tuple[Computation, Sequence[Site]]]
    constrained: Site | None
    custom_calls: Sequence[Instruction]


def collectives_of(module: Module, opcode: str, refusals: Refusals) -> Collectives:
    """Find the collectives of an opcode.

    Args:
        module: the module.
        opcode: the opcode.
        refusals: takes what may be one of them and cannot be read.
    """
    found: list[tuple[Computation, list[Site]]] = []
    constrained: Site | None = None
    custom_calls: list[Instruction] = []
    for computation, items in communication_in_list_order(module):
        plain: list[Site] = []
        for each in items:
            if each.site is None and each.opcode in ("", opcode):
                refusals.refuse(each.instruction, _why_unread(each.instruction))
            elif each.site is not None and each.opcode == opcode:
                if constrained is None and each.site.signature.constrain_layout:
                    constrained = each.site
                if not each.site.signature.is_async:
                    plain.append(each.site)
            elif each.opcode in CUSTOM_CALLS and _stands_for(each.instruction) == opcode:
                custom_calls.append(each.instruction)
        if plain:
            found.append((computation, plain))
    return Collectives(module, found, constrained, custom_calls)


def _stands_for(custom_call: Instruction) -> str | None:
    """Return the opcode of the collective that a custom call is."""
    named = custom_call_opcode(custom_call.raw_attribute("custom_call_target") or "")
    return None if named is None else named[0]


def _why_unread(instruction: Instruction) -> str | UnreadableError:
    try:
        signature_of(instruction)
    except UnreadableError as error:
        return error
    return "expected a collective that can be read on its own, found one that cannot"
