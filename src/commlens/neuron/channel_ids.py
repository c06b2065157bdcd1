"""Channel ids of a module: who has one, and which is free."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.hlo import (
    Site,
    UnreadableError,
    communication_in_list_order,
    custom_call_opcode,
    custom_call_signature,
)
from commlens.neuron.opcodes import CUSTOM_CALLS
from commlens.neuron.predicates import CHANNEL_CLASS
from commlens.neuron.reading import require_closed, require_whole

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


class Carriers(NamedTuple):
    """What has channel ids in a module.

    Attributes:
        found: what may have one, computations in file order, instructions in list order.
        custom_calls: collectives that are written as custom calls, likewise; XLA knows of no channel of theirs.
        unread: those of which nobody can say that.
    """

    found: list[Carrier]
    custom_calls: list[Carrier]
    unread: list[Instruction]


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
    found = (*carriers_of(module, _raise).found, *transfer_dones(module, _raise))
    return id_above(each for each in found if each.opcode in opcodes)


def id_above(found: Iterable[Carrier]) -> int:
    """Return one above the largest channel id that is stated, at least 1."""
    largest = max((each.channel_id for each in found if each.channel_id is not None), default=0)
    return max(largest, 0) + 1


def carriers_of(module: Module, refuse: Callable[[Instruction, UnreadableError], None]) -> Carriers:
    """List what has channel ids; the done forms of send and recv are left out, see :func:`transfer_dones`.

    Args:
        module: a module.
        refuse: what to do with an instruction of which an attribute cannot be read. It is listed all the same where its
            channel id can be read: the id is taken.
    """
    carriers = Carriers([], [], [])
    found = carriers.found
    for computation, items in communication_in_list_order(module):
        name = computation.name
        for each in items:
            if each.site is not None:
                found.append(Carrier(each.opcode, each.site.channel_id, each.site, name))
            elif not each.opcode or each.opcode in CHANNEL_CLASS:
                found += _read(each.instruction, each.opcode, refuse)
            elif each.opcode in CUSTOM_CALLS:
                _add_custom_call(carriers, each.instruction, each.opcode, name)
    return carriers


def transfer_dones(module: Module, refuse: Callable[[Instruction, UnreadableError], None]) -> Iterator[Carrier]:
    """Yield the done forms of send and recv, in file order; see :func:`carriers_of`."""
    for instruction in module.instructions_of(TRANSFER_DONES):
        yield from _read(instruction, instruction.opcode, refuse)


def _read(
    instruction: Instruction, opcode: str, refuse: Callable[[Instruction, UnreadableError], None]
) -> Iterator[Carrier]:
    try:
        require_whole(instruction)
    except UnreadableError as error:
        refuse(instruction, error)
    with suppress(UnreadableError):  # that was refused as well
        channel_id = instruction.channel_id
        if channel_id is None:
            require_closed(instruction)
        yield Carrier(opcode or instruction.opcode, channel_id, instruction, instruction.computation.name)


def _add_custom_call(found: Carriers, instruction: Instruction, opcode: str, computation: str) -> None:
    target = instruction.raw_attribute("custom_call_target") or ""
    named = custom_call_opcode(target)
    if named is None:
        return
    try:
        _, channel_id = custom_call_signature(instruction, named[0], start=named[1])
    except UnreadableError:
        found.unread.append(instruction)
    else:
        found.custom_calls.append(Carrier(f"{opcode} {target}", channel_id, instruction, computation))


def _raise(instruction: Instruction, error: UnreadableError) -> None:
    msg = f"{instruction.excerpt}: {error}"
    raise UnreadableError(msg) from error
