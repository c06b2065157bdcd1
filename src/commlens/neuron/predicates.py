"""Which opcodes the passes of the Neuron compiler take for collectives: three predicates, three answers.

Each is a comparison with all-reduce and two bit masks, a low one that the opcode's number indexes and a high one that
the number less a base does. Masks and bases belong together; none may be used with another's. Numbers are bytes, so the
subtraction is modulo 256: below the base it gives a large number, which the bound of the mask then refuses.

Source: ``neuron::IsCollective``, the scan in ``hlo_query::NextChannelId`` and the scan in ``CollectiveStreamIdChecker``
of neuronx_cc 2.24.5133. The latter two choose the classes ``HloChannelInstruction`` and ``HloCollectiveInstruction`` of
xla/hlo/ir/hlo_instructions.h.
"""

from __future__ import annotations

from typing import Final

from commlens.neuron.opcodes import OPCODES_2_24, opcode_number

_ALL_REDUCE: Final = 7
_BYTE: Final = 0xFF


def is_collective(opcode: str | int) -> bool:
    """Whether the channel id enforcer looks at an opcode (``neuron::IsCollective``).

    Args:
        opcode: a name, or a number of the build 2.24, 0 to 255.

    Returns:
        True for all-gather, all-reduce, all-to-all, collective-permute, recv, reduce-scatter and send. The starts with
        an opcode of their own, collective-broadcast, ragged-all-to-all and all done forms are none.

    Raises:
        ValueError: no such opcode.

    Example:
        >>> is_collective("send"), is_collective("all-gather-start"), is_collective(0x1D)
        (True, False, True)
    """
    number = opcode_number(opcode)
    if number == _ALL_REDUCE:
        return True
    if number <= 0x1D:
        return number > 3 and _bit(0x20000410, number)
    rebased = (number - 0x53) & _BYTE
    return rebased < 0x14 and _bit(0x80011, rebased)


def is_collective_stream_checked(opcode: str | int) -> bool:
    """Whether the stream id checker looks at an opcode.

    Args:
        opcode: a name, or a number of the build 2.24, 0 to 255.

    Returns:
        True for all-gather, all-gather-start, all-reduce, all-reduce-start, all-to-all, collective-broadcast,
        ragged-all-to-all and reduce-scatter: the class ``HloCollectiveInstruction``.

    Raises:
        ValueError: no such opcode.

    Example:
        >>> is_collective_stream_checked("send"), is_collective_stream_checked("all-gather-start")
        (False, True)
    """
    number = opcode_number(opcode)
    return number == _ALL_REDUCE or _in_stock_masks(number)


def has_channel(opcode: str | int) -> bool:
    """Whether the channel id of an opcode counts for the next free id (the scan of ``NextChannelId``).

    Beyond the masks that it shares with the stream id checker, it takes collective-permute and its start, send and
    send-done, recv and recv-done. The documented listing leaves recv-done out
    (:data:`NEXT_CHANNEL_ID_LISTING`); the comparisons that it was read from do not.

    Args:
        opcode: a name, or a number of the build 2.24, 0 to 255.

    Returns:
        Whether it is one of the 14 opcodes of the class ``HloChannelInstruction``.

    Raises:
        ValueError: no such opcode.

    Example:
        >>> has_channel("recv-done"), has_channel("all-gather-done")
        (True, False)
    """
    number = opcode_number(opcode)
    if number == _ALL_REDUCE or _in_stock_masks(number):
        return True
    return number & ~2 == 0x1D or 0x52 < number <= 0x54 or (number - 0x66) & _BYTE <= 1


def _in_stock_masks(number: int) -> bool:
    """The two masks that ``NextChannelId`` and the checker share."""
    if number <= 0x0A:
        return number > 3 and _bit(0x650, number)
    rebased = (number - 0x1C) & _BYTE
    return rebased <= 0x3B and _bit(0x810000000000001, rebased)


def _bit(mask: int, position: int) -> bool:
    return bool(mask >> position & 1)


ENFORCED_OPCODES: Final = frozenset(filter(is_collective, OPCODES_2_24))
"""The seven opcodes whose channel ids the enforcer makes unique."""

COLLECTIVE_CLASS: Final = frozenset(filter(is_collective_stream_checked, OPCODES_2_24))
"""The eight opcodes of the class ``HloCollectiveInstruction``: what carries replica groups, and may get a stream id."""

CHANNEL_CLASS: Final = frozenset(filter(has_channel, OPCODES_2_24))
"""The fourteen opcodes of the class ``HloChannelInstruction``: what may have a channel id."""

NEXT_CHANNEL_ID_LISTING: Final = CHANNEL_CLASS - {"recv-done"}
"""The thirteen opcodes that the documented listing of ``NextChannelId`` gives, one less than its evidence.

The two give the same next id for every module in which a recv-done has the channel of its recv.
"""
