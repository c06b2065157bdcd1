"""How far the results of two programs are apart: exactly for integers, in units in the last place for floats."""

from __future__ import annotations

from math import ceil, frexp, ldexp
from typing import TYPE_CHECKING, Any

import numpy as np

from commlens.integrations.runtime.float_types import allowed_ulp, is_float, significant_bits

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, Any]
    ByDevice = Mapping[int, Array]


def difference(left: ByDevice, right: ByDevice, max_ulp: int) -> dict[str, object]:
    """Compare one result of two programs.

    Args:
        left: the result of each device of the first program.
        right: that of the second one.
        max_ulp: units in the last place that floats may be apart; fewer of narrow types (:func:`allowed_ulp`).

    Returns:
        ``max_ulp``, the largest distance on any device (0 for integers that are equal, left out where there is none);
        ``differs``, where and how they differ, if they differ by more than they may; ``finite``, False, if no number
        of the first program's result is finite. Where terms cancel, a distance between small numbers is large though
        little is wrong, so ``differs`` says as well how much that is in units of the largest number of the result.

    Example:
        >>> one, other = np.float32([1.0, 2.0]), np.float32([1.0, np.nextafter(np.float32(2), np.float32(3))])
        >>> difference({0: one}, {0: other}, 4)
        {'max_ulp': 1}
        >>> difference({0: one}, {0: -one}, 4)["differs"]
        'device 0, element 1: 2.0 and -2.0 (16777216 ulp of the largest number, 2)'
        >>> difference({0: np.int32([1, 2])}, {0: np.int32([1, 3])}, 4)
        {'differs': 'device 0, element 1: 2 and 3'}
    """
    furthest, allowed, where = 0, max_ulp, ""
    for device, a in left.items():
        b = right[device]
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return {"differs": f"device {device}: {a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"}
        distances = _distances(a, b)
        if distances is None:
            unequal = np.flatnonzero(a.reshape(-1) != b.reshape(-1))
            if unequal.size:
                return {"differs": _place(device, a, b, int(unequal[0]))}
            continue
        allowed = allowed_ulp(_real(a).dtype, max_ulp)
        if distances.size and int(distances.max()) > furthest:
            furthest = int(distances.max())
            where = _place(device, a, b, int(distances.argmax()))
    found: dict[str, object] = {"max_ulp": furthest}
    if left and not any(_has_a_finite_number(array) for array in left.values()):
        found["finite"] = False
    return found if furthest <= allowed else {**found, "differs": where + _beside_the_largest(left, right)}


def _has_a_finite_number(array: Array) -> bool:
    flat = _real(array)
    return not flat.size or not is_float(flat.dtype) or bool(np.isfinite(flat).any())


def _beside_the_largest(left: ByDevice, right: ByDevice) -> str:
    """Say how far two results are apart at most, in units in the last place of their largest number.

    Nothing where numbers stand beside what is none: that is no distance.
    """
    pairs = [(_real(left[device]), _real(right[device])) for device in left]
    if any(not np.array_equal(np.isfinite(a), np.isfinite(b)) for a, b in pairs):
        return ""
    finite = [(_finite(a), _finite(b)) for a, b in pairs]
    largest = max(float(np.abs(each).max(initial=0)) for pair in finite for each in pair)
    half_apart = max(float(np.abs(a / 2 - b / 2).max(initial=0)) for a, b in finite)  # the whole could overflow
    if not half_apart:
        return ""
    halves = half_apart / ldexp(1.0, frexp(largest)[1] - significant_bits(pairs[0][0].dtype))
    return f" ({ceil(2 * halves)} ulp of the largest number, {largest:.3g})"


def _finite(flat: Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the numbers of an array, 0 in the place of what is none."""
    return np.where(np.isfinite(flat), flat, np.zeros((), flat.dtype)).astype(np.float64)


def _place(device: int, a: Array, b: Array, flat: int) -> str:
    """Say where two arrays differ, by the first element that was asked for."""
    flat = flat // 2 if a.dtype.kind == "c" else flat
    index = ",".join(str(int(each)) for each in np.unravel_index(flat, a.shape))
    element = f", element {index}" if index else ""
    return f"device {device}{element}: {a.reshape(-1)[flat]} and {b.reshape(-1)[flat]}"


def _distances(a: Array, b: Array) -> np.ndarray[Any, np.dtype[np.uint64]] | None:
    """Return how many floats lie between two of one type, for each element; None for what is no float.

    Both being NaN is distance 0, one being NaN is further than any number.
    """
    a, b = _real(a), _real(b)
    if not is_float(a.dtype):
        return None
    p, q = _place_in_order(a), _place_in_order(b)
    apart = np.maximum(p, q) - np.minimum(p, q)
    no_number = np.isnan(a), np.isnan(b)
    apart[(a == b) | (no_number[0] & no_number[1])] = 0
    apart[no_number[0] ^ no_number[1]] = np.iinfo(np.uint64).max
    return apart


def _real(array: Array) -> Array:
    """Return the elements in a row; of complex ones both parts."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(f"f{flat.dtype.itemsize // 2}") if flat.dtype.kind == "c" else flat


def _place_in_order(array: Array) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Number all floats of a type from the smallest to the largest (IEEE 754 orders the bits of each sign so).

    Types of one byte are not all laid out like that, have a sign in another bit or none: their few values are sorted.
    """
    width = array.dtype.itemsize
    if width == 1:
        every = np.arange(256, dtype=np.uint8).view(array.dtype).astype(np.float64)
        return np.searchsorted(np.unique(every[~np.isnan(every)]), array.astype(np.float64)).astype(np.uint64)
    bits = array.view(f"u{width}").astype(np.uint64)
    sign = np.uint64(1 << (8 * width - 1))
    negative = (bits & sign) != 0
    return np.where(negative, sign - (bits & (sign - np.uint64(1))), sign + bits)
