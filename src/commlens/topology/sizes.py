"""Sizes, permutations and counts as they come from users and files, checked and made plain."""

from __future__ import annotations

import operator
import reprlib
from typing import TYPE_CHECKING

from commlens.errors import CommlensError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def whole_numbers(values: Iterable[int], what: str) -> tuple[int, ...]:
    """Take a sequence of Python or numpy integers as a tuple of ints.

    Args:
        values: the numbers.
        what: how an error calls them, in the plural.

    Raises:
        CommlensError: for anything that is no integer.

    Example:
        >>> whole_numbers(range(2, 4), "sizes")
        (2, 3)
    """
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError as error:
        msg = f"the {what} must be integers: {error}"
        raise CommlensError(msg) from None


def device_count(sizes: Sequence[int]) -> int:
    """The product of sizes, as long as device ids still fit in 64 bits.

    Raises:
        CommlensError: above 2^63 devices.

    Example:
        >>> device_count((2, 4))
        8
    """
    number = 1
    for size in sizes:
        number *= size
        if number > 1 << 63:
            msg = f"device ids must fit in 64 bits, sizes {shorten(sizes)} make more devices"
            raise CommlensError(msg)
    return number


def shorten(values: Sequence[int]) -> str:
    """Write numbers for a sentence: the first few of them where they are many.

    Example:
        >>> shorten((2, 4)), shorten(range(100))
        ('[2, 4]', '[0, 1, 2, 3, 4, 5, ...]')
    """
    return reprlib.repr(list(values[:10]))


def checked_sizes(values: Iterable[int], name: str) -> tuple[int, ...]:
    """Take sizes, one of them at least, each at least 1.

    Args:
        values: the sizes.
        name: how an error calls them.

    Raises:
        CommlensError: for anything else.
    """
    sizes = whole_numbers(values, name)
    if not sizes or min(sizes) < 1:
        msg = f"{name} must hold one size at least, and sizes of at least 1, found {shorten(sizes)}"
        raise CommlensError(msg)
    return sizes


def checked_permutation(values: Iterable[int], length: int) -> tuple[int, ...]:
    """Take a permutation of ``0..length-1``.

    Raises:
        CommlensError: for anything else.
    """
    perm = whole_numbers(values, "axes of a permutation")
    if sorted(perm) != list(range(length)):
        msg = f"expected a permutation of the axes 0..{length - 1}, found {shorten(perm)}"
        raise CommlensError(msg)
    return perm
