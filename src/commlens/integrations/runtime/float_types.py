"""Which types hold floats, of numpy and of ml_dtypes, which jax brings along."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import numpy as np

_NARROW: Final = 8
"""How many times fewer units may be between floats of 16 bits than between wider ones."""

_FEWEST_OF_16_BITS: Final = 8
"""Significant bits of ``bfloat16``."""


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a type holds floats.

    Example:
        >>> is_float(np.dtype(np.float16)), is_float(np.dtype(np.int8))
        (True, False)
    """
    return _info(dtype) is not None


def significant_bits(dtype: np.dtype[Any]) -> int:
    """Return how many binary digits a float type has, the first one, which is not stored, among them.

    Raises:
        ValueError: the type holds no floats.

    Example:
        >>> significant_bits(np.dtype(np.float32))
        24
    """
    info = _info(dtype)
    if info is None:
        msg = f"expected a type of floats, found {dtype}"
        raise ValueError(msg)
    return int(info.nmant) + 1


def allowed_ulp(dtype: np.dtype[Any], asked: int) -> int:
    """Return by how many units in the last place two floats of a type may be apart.

    A unit is a small part of a wide float and a large one of a narrow float: 16 units are two millionths of a
    ``float32``, an eighth of a ``bfloat16`` and a factor of four in ``float8_e4m3fn``. So it is what was asked for in
    types of 24 digits and more, an eighth of it, rounded up, in those of 16 bits, one unit in those of fewer, and none
    where the next float is twice as large.

    Args:
        dtype: a type of floats.
        asked: how many units were asked for.

    Raises:
        ValueError: the type holds no floats.

    Example:
        >>> [allowed_ulp(np.dtype(each), 16) for each in (np.float64, np.float32, np.float16)]
        [16, 16, 2]
    """
    digits = significant_bits(dtype)
    if digits >= significant_bits(np.dtype(np.float32)):
        return asked
    if digits >= _FEWEST_OF_16_BITS:
        return -(-asked // _NARROW)
    return min(asked, 1) if digits > 1 else 0


def _info(dtype: np.dtype[Any]) -> Any:
    if issubclass(dtype.type, np.floating):
        return np.finfo(dtype)
    if dtype.kind not in "fV":  # those of ml_dtypes are one or the other
        return None
    try:
        return import_module("ml_dtypes").finfo(dtype)
    except (ImportError, ValueError, TypeError):
        return None
