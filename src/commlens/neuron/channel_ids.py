"""Channel ids of a module: who has one, and which is free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.hlo import Site, UnreadableError, communication_in_list_order
from commlens.neuron.predicates import CHANNEL_CLASS
from commlens.neuron.reading import require_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from commlens.hlo import Instruction, Module

TRANSFER_DONES: Final = frozenset({"send-done", "recv-done"})
"""The done forms that have a channel id of their own: that of the send or recv they end."""


class Carrier(NamedTuple):
    """An instruction that may have a channel id.

    Attributes:
        opcode: its opcode in XLA's memory.
        channel_id: its channel id; None where it has none.
        item: the instruction, as a site where it was read as one.
        computation: name of the computation it stands in.
    """

    opcode: str
    channel_id: int | None
    item: Site | Instruction
    computation: str

    @property
    def instruction(self) -> Instruction:
        """The instruction."""
        return self.item.instruction if isinstance(self.item, Site) else self.item


def next_channel_id(module: Module, opcodes: Collection[str] = CHANNEL_CLASS) -> int:
    """Return the id that the next new channel gets: one above the largest in use, at least 1.

    All computations count, reachable or not, what asynchronous starts wrap too, and the done forms of send and recv.
    In a text ids may be 0 or less; they do not lower the answer. A proto cannot state them: 0 is no id there.

    Args:
        module: a module.
        opcodes: the opcodes whose ids count, :data:`~commlens.neuron.predicates.CHANNEL_CLASS`, or the documented
            listing :data:`~commlens.neuron.predicates.NEXT_CHANNEL_ID_LISTING`.

    Raises:
        UnreadableError: a channel id cannot be read.

    Source: ``hlo_query::NextChannelId``, xla/hlo/utils/hlo_query.cc, as neuronx_cc 2.24.5133 has it.

    Example:
        >>> from commlens.hlo import load
        >>> next_channel_id(load('''ENTRY e {
        ...   p = f32[8] parameter(0)
        ...   ROOT g = f32[16] all-gather(p), dimensions={0}, channel_id=40
        ... }'''))
        41
    """
    found = (*carriers(module, _raise), *transfer_dones(module, _raise))
    return id_above(each for each in found if each.opcode in opcodes)


def id_above(found: Iterable[Carrier]) -> int:
    """Return one above the largest channel id, at least 1."""
    largest = max((each.channel_id for each in found if each.channel_id is not None), default=0)
    return max(largest, 0) + 1


def carriers(module: Module, refuse: Callable[[Instruction, UnreadableError], None]) -> list[Carrier]:
    """List what may have a channel id, computations in file order, instructions in list order.

    The done forms of send and recv are left out: see :func:`transfer_dones`.

    Args:
        module: a module.
        refuse: what to do with an instruction whose opcode or channel id cannot be read; it is left out otherwise.
    """
    found: list[Carrier] = []
    for computation, items in communication_in_list_order(module):
        name = computation.name
        for each in items:
            if each.site is not None:
                found.append(Carrier(each.opcode, each.site.channel_id, each.site, name))
            elif not each.opcode or each.opcode in CHANNEL_CLASS:
                found += _read(each.instruction, each.opcode, refuse)
    return found


def transfer_dones(module: Module, refuse: Callable[[Instruction, UnreadableError], None]) -> Iterator[Carrier]:
    """Yield the done forms of send and recv, in file order; see :func:`carriers`."""
    for instruction in module.instructions_of(TRANSFER_DONES):
        yield from _read(instruction, instruction.opcode, refuse)


def _read(
    instruction: Instruction, opcode: str, refuse: Callable[[Instruction, UnreadableError], None]
) -> Iterator[Carrier]:
    try:
        require_whole(instruction)
        yield Carrier(opcode or instruction.opcode, instruction.channel_id, instruction, instruction.computation.name)
    except UnreadableError as error:
        refuse(instruction, error)


def _raise(instruction: Instruction, error: UnreadableError) -> None:
    msg = f"{instruction.excerpt}: {error}"
    raise UnreadableError(msg) from error
