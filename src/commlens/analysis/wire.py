"""What one device receives when a collective runs once, as exact numbers.

The figures of all-gather, reduce-scatter and all-reduce are those of a ring, the schedule that moves the least per
device: every device passes blocks on to its neighbour. Of an all-to-all only the blocks that are meant for a device
count, not those that it would hand on. Source: "Bandwidth optimal all-reduce algorithms for clusters of workstations"
(Patarasuk, Yuan, 2009); the same factors are what nccl-tests calls bus bandwidth (doc/PERFORMANCE.md).
"""

from __future__ import annotations

from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Number: TypeAlias = int | float
"""A figure as it is shown: an int where it is whole, else the nearest float."""

Payload: TypeAlias = Literal["operand", "result"]

_RING: Final[Mapping[str, tuple[Payload, int]]] = MappingProxyType(
    {
        "all-gather": ("result", 1),
        "reduce-scatter": ("operand", 1),
        "all-reduce": ("operand", 2),
        "all-to-all": ("operand", 1),
    }
)
"""Opcode -> which payload is exchanged, and how many times; each time a device receives (n-1)/n of it."""

NEEDS_GROUP_SIZE: Final = frozenset(_RING) | {"collective-broadcast"}
"""Opcodes whose figure depends on how many devices take part in a group."""


def ring_bytes(opcode: str, size: int, *, operand_bytes: int | None, result_bytes: int | None) -> Fraction | None:
    """Return the bytes that each device of a group receives.

    Args:
        opcode: one of :data:`NEEDS_GROUP_SIZE`.
        size: devices in the group.
        operand_bytes: bytes of a device's operands, None where they are not known.
        result_bytes: bytes of a device's results likewise.

    Returns:
        The exact figure, 0 in a group of at most one device; None where the payload is not known.

    Example:
        >>> ring_bytes("all-reduce", 6, operand_bytes=400, result_bytes=400)
        Fraction(2000, 3)
    """
    if size <= 1:
        return Fraction(0)
    payload, rounds = _RING.get(opcode, ("operand", 1))
    size_of_payload = operand_bytes if payload == "operand" else result_bytes
    if size_of_payload is None:
        return None
    if opcode not in _RING:  # a broadcast hands the whole payload on
        return Fraction(size_of_payload)
    return Fraction(rounds * size_of_payload * (size - 1), size)


def point_to_point_bytes(
    opcode: str, *, operand_bytes: int | None, result_bytes: int | None, all_self_pairs: bool
) -> Fraction | None:
    """Return the bytes that a target of collective-permute, send or recv receives.

    Args:
        opcode: ``"collective-permute"``, ``"send"`` or ``"recv"``.
        operand_bytes: bytes of a device's operands, None where they are not known.
        result_bytes: bytes of a device's results likewise.
        all_self_pairs: whether every pair leads from a device to itself.

    Returns:
        The exact figure; None where the payload is not known. A send receives nothing.

    Example:
        >>> point_to_point_bytes("recv", operand_bytes=0, result_bytes=32, all_self_pairs=False)
        Fraction(32, 1)
    """
    if opcode == "send" or (opcode == "collective-permute" and all_self_pairs):
        return Fraction(0)
    payload = result_bytes if opcode == "recv" else operand_bytes
    return None if payload is None else Fraction(payload)


def shown(figure: Fraction) -> Number:
    """Return a figure as an int where it is whole, else as the nearest float; beyond floats, rounded to an int.

    Example:
        >>> shown(Fraction(800)), shown(Fraction(2000, 3))
        (800, 666.6666666666666)
    """
    if figure.denominator == 1:
        return figure.numerator
    try:
        return float(figure)
    except OverflowError:
        return round(figure)


def in_bytes(number: Fraction | int) -> str:
    """Write a number of bytes for a message, to the nearest whole one.

    Example:
        >>> in_bytes(1_572_864), in_bytes(Fraction(2000, 3))
        ('1,572,864 B', '667 B')
    """
    return f"{round(number):,} B"


def largest(figures: Sequence[Fraction | None]) -> Fraction | None:
    """Return the largest of some figures; None where one of them is not known.

    Example:
        >>> largest([Fraction(400), Fraction(2000, 3)]), largest([Fraction(1), None])
        (Fraction(2000, 3), None)
    """
    known = [figure for figure in figures if figure is not None]
    return max(known, default=Fraction(0)) if len(known) == len(figures) else None
