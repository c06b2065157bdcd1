"""What may communicate in a module, in the order of its instruction lists: the order that passes go by."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from commlens.hlo.model import UnreadableError
from commlens.hlo.opcodes import COLLECTIVES, DEDICATED_START, base_opcode
from commlens.hlo.signature import InstructionSite, Site

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlens.hlo.model import Computation, Instruction, Module


class Listed(NamedTuple):
    """Something of an instruction list that may communicate.

    Attributes:
        opcode: the opcode it has in XLA's memory; empty where none can be made out.
        site: what it does; None where it is no plain collective, send or recv, or cannot be read.
        item: the site, or the instruction.
    """

    opcode: str
    site: Site | None
    item: Site | Instruction

    @property
    def instruction(self) -> Instruction:
        """The instruction."""
        return self.item.instruction if isinstance(self.item, Site) else self.item


def opcode_in_memory(opcode: str) -> str:
    """Return the opcode under which XLA keeps an instruction that a text spells in short.

    ``reduce-scatter-start`` and its like are an async-start around a reduce-scatter; its attributes are those of the
    reduce-scatter. Three collectives have a start of their own.

    Example:
        >>> opcode_in_memory("reduce-scatter-start"), opcode_in_memory("all-gather-start")
        ('reduce-scatter', 'all-gather-start')
    """
    base, half = base_opcode(opcode)
    if half == "start" and base in COLLECTIVES and base not in DEDICATED_START:
        return base
    return f"{base}-{half}" if half else base


def communication_in_list_order(module: Module) -> Iterator[tuple[Computation, list[Listed]]]:
    """Yield what may communicate: computations in file order, in each the instructions in list order.

    Frontend attributes are those that an instruction has in XLA's memory, see :attr:`Module.overridden_attributes`.

    Args:
        module: a module.

    Returns:
        An iterator over the computations in which something may communicate.
    """
    overridden = module.overridden_attributes
    for computation, items in module.communication():
        listed = [_listed(item) for item in items]
        if overridden:
            listed = [_in_memory(each, overridden) for each in listed]
        if module.format == "proto":  # a text gives them as written, a proto as scheduled
            listed.sort(key=_list_key)
        yield computation, listed


def _listed(item: Site | Instruction) -> Listed:
    if isinstance(item, Site):
        opcode, signature = item.signature.opcode, item.signature
        return Listed(f"{opcode}-start" if signature.is_async and opcode in DEDICATED_START else opcode, item, item)
    try:
        return Listed(opcode_in_memory(item.opcode), None, item)
    except UnreadableError:
        return Listed("", None, item)


def _in_memory(listed: Listed, overridden: Mapping[Instruction, Mapping[str, str]]) -> Listed:
    """Return something with the frontend attributes that it has in XLA's memory."""
    opcode, site, _ = listed
    attributes = None if site is None else overridden.get(listed.instruction)
    if site is None or attributes is None:
        return listed
    signature = replace(site.signature, frontend_attributes=attributes)
    site = InstructionSite(listed.instruction, signature, site.channel_id)
    return Listed(opcode, site, site)


def _list_key(listed: Listed) -> int:
    try:
        return listed.instruction.list_key
    except UnreadableError:
        return -1
