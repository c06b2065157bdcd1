"""Numbers of cores, ranks and degrees as callers give them, checked."""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

from commlens.errors import CommlensError


def as_integer(number: object) -> int | None:
    """Return a Python or numpy integer as an int; None for everything else, flags and fractions among it.

    Example:
        >>> as_integer(3), as_integer(3.0), as_integer(True)
        (3, None, None)
    """
    if type(number) is int:
        return number  # asking a protocol takes long, and there may be millions of them
    if isinstance(number, bool) or not isinstance(number, SupportsIndex):
        return None
    try:
        return index(number)
    except TypeError:
        return None  # an array of several numbers


def whole_number(what: str, number: SupportsIndex, *, least: int = 0) -> int:
    """Return a Python or numpy integer as an int.

    Args:
        what: how the error calls it.
        number: the number.
        least: the least that it may be.

    Raises:
        CommlensError: it is smaller, or no integer; flags are none.

    Example:
        >>> whole_number("tp", 0, least=1)
        Traceback (most recent call last):
        commlens.errors.CommlensError: expected tp to be an integer of at least 1, found 0
    """
    value = as_integer(number)
    if value is None or value < least:
        msg = f"expected {what} to be an integer of at least {least}, found {number!r}"
        raise CommlensError(msg)
    return value


def check_divides(what: str, number: int, whole_name: str, whole: int) -> None:
    """Refuse a number that does not divide another.

    Raises:
        CommlensError: it is below 1 or does not divide it; the text lists what would.

    Example:
        >>> check_divides("kv", 3, "tp", 8)
        Traceback (most recent call last):
        commlens.errors.CommlensError: expected kv to divide tp = 8, found 3; 1, 2, 4, 8 do
    """
    whole_number(what, number, least=1)
    if whole % number:
        divisors = ", ".join(str(each) for each in range(1, min(whole, 128) + 1) if whole % each == 0)
        msg = f"expected {what} to divide {whole_name} = {whole}, found {number}; {divisors} do"
        raise CommlensError(msg)
