"""Transposes that swap two dimensions of an array and its layout with them, so that nothing moves: bitcasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.hlo.edits import EditError

if TYPE_CHECKING:
    from collections.abc import Sequence


def swap_permutation(
    own: int | None, dimension: int | None, rank: int, name: str, found: str
) -> tuple[int, ...] | None:
    """Return how the dimensions of a member of a combination are to be permuted.

    Args:
        own: the dimension that it gathers along; None where it states none.
        dimension: the one that the combination gathers along; None where all members agree.
        rank: how many dimensions its result has.
        name: its name, for messages.
        found: its result's shape, for messages.

    Returns:
        A permutation that is its own inverse; None where the dimensions stay.

    Raises:
        EditError: the result has no such dimensions.

    Example:
        >>> swap_permutation(0, 2, 3, "x", "f32[2,3,4]")
        (2, 1, 0)
    """
    if dimension is None:
        return None
    if own is None or not 0 <= own < rank or not 0 <= dimension < rank:
        msg = f"expected dimension {dimension} in {name}, and one of its own to gather along, found {found}"
        raise EditError(msg)
    if own == dimension:
        return None
    order = list(range(rank))
    order[own], order[dimension] = dimension, own
    return tuple(order)


def swapped_layout(minor_to_major: Sequence[int], swap: Sequence[int], name: str, found: str) -> list[int]:
    """Return the layout of an array whose dimensions are swapped, in memory as it was.

    Args:
        minor_to_major: its layout before; nothing is the default one, and stays.
        swap: what :func:`swap_permutation` gave.
        name: whose layout it is, for messages.
        found: how it is spelled, for messages.

    Raises:
        EditError: it is no layout of so many dimensions.

    Example:
        >>> swapped_layout([2, 1, 0], (2, 1, 0), "x", "{2,1,0}")
        [0, 1, 2]
    """
    if minor_to_major and sorted(minor_to_major) != list(range(len(swap))):
        msg = f"expected a layout of {len(swap)} dimensions for {name}, found {found}"
        raise EditError(msg)
    return [swap[axis] for axis in minor_to_major]
