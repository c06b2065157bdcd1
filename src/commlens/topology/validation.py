"""Checks of the integers, sizes, permutations and arrays of ids that users and files give."""

from __future__ import annotations

import operator
import reprlib
from typing import TYPE_CHECKING

from commlens.errors import CommlensError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

INT64_MAX = (1 << 63) - 1


def checked_integers(values: Iterable[int], what: str) -> tuple[int, ...]:
    """Take a sequence of Python or numpy integers as a tuple of ints.

    Args:
        values: the numbers.
        what: how an error calls them, in the plural.

    Raises:
        CommlensError: for anything that is no integer.

    Example:
        >>> checked_integers(range(2, 4), "sizes")
        (2, 3)
    """
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError as error:
        msg = f"the {what} must be integers: {error}"
        raise CommlensError(msg) from None


def device_count(sizes: Sequence[int]) -> int:
    """The product of sizes, which must be an int64, as it is upstream: then ids and positions never overflow.

    Raises:
        CommlensError: for 2^63 devices or more.

    Example:
        >>> device_count((2, 4))
        8
    """
    number = 1
    for size in sizes:
        number *= size
        if abs(number) > INT64_MAX:  # sizes may not have been looked at yet
            msg = f"the number of devices must fit in 64 bits, sizes {shorten(sizes)} make more"
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
    sizes = checked_integers(values, name)
    if not sizes or min(sizes) < 1:
        msg = f"{name} must hold one size at least, and sizes of at least 1, found {shorten(sizes)}"
        raise CommlensError(msg)
    return sizes


def checked_permutation(values: Iterable[int], length: int) -> tuple[int, ...]:
    """Take a permutation of ``0..length-1``.

    Raises:
        CommlensError: for anything else.
    """
    perm = checked_integers(values, "axes of a permutation")
    if sorted(perm) != list(range(length)):
        msg = f"expected a permutation of the axes 0..{length - 1}, found {shorten(perm)}"
        raise CommlensError(msg)
    return perm


def fits_int64(values: npt.NDArray[np.generic]) -> bool:
    """Whether an array holds integers that all fit in 64 bits with a sign.

    numpy turns ints that are too large, or mixed with other things, into uint64, float64 or object; a conversion of
    uint64 to int64 would wrap around in silence.

    Example:
        >>> import numpy as np
        >>> fits_int64(np.array([0, 1])), fits_int64(np.array([1 << 63])), fits_int64(np.array([0.5]))
        (True, False, False)
    """
    return values.dtype.kind == "i" or (values.dtype.kind == "u" and int(values.max(initial=0)) <= INT64_MAX)
