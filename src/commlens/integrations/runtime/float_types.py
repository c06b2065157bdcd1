"""Which types hold floats, of numpy and of ml_dtypes, which jax brings along."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np


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


def _info(dtype: np.dtype[Any]) -> Any:
    if issubclass(dtype.type, np.floating):
        return np.finfo(dtype)
    if dtype.kind not in "fV":  # those of ml_dtypes are one or the other
        return None
    try:
        return import_module("ml_dtypes").finfo(dtype)
    except (ImportError, ValueError, TypeError):
        return None
