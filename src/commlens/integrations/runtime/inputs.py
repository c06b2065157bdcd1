"""Inputs for programs: the same for the same seed, on every machine and in every release."""

from __future__ import annotations

import random
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from commlens.integrations.runtime.float_types import is_float, significant_bits

if TYPE_CHECKING:
    from collections.abc import Sequence


def values(shape: Sequence[int], dtype: np.dtype[Any], seed: str) -> np.ndarray[Any, Any]:
    """Return an array of pseudo-random values.

    Floats lie in -1..1 on a grid as coarse as a third of their digits allows, never 0: sums, and sums of products, are
    then mostly exact, so that a program which adds in another order gives the same, and one that adds other terms does
    not. Integers lie in 0..15, so that they may count or point at something.

    Args:
        shape: the shape.
        dtype: a type of numpy or ml_dtypes.
        seed: other seeds, other values.

    Example:
        >>> values((2, 3), np.dtype(np.int32), "seed").tolist()
        [[14, 2, 14], [8, 10, 1]]
        >>> values((3,), np.dtype(np.float32), "seed").tolist()
        [0.98828125, 0.26953125, 0.98828125]
    """
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return values((*shape, 2), part, seed).view(dtype).reshape(tuple(shape))
    raw = np.frombuffer(random.Random(seed).randbytes(4 * prod(shape)), dtype="<u4")
    if is_float(dtype):
        steps = 1 << max(2, significant_bits(dtype) // 3)
        drawn = ((raw % steps * 2.0 + 1 - steps) / steps).astype(dtype)
    else:
        drawn = (raw & (1 if dtype.kind == "b" else 15)).astype(dtype)
    return drawn.reshape(tuple(shape))
