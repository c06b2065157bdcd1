"""Numbers of cores, ranks and degrees as callers give them, checked."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

from commlens.errors import CommlensError

if TYPE_CHECKING:
    from typing import SupportsIndex


def whole_number(what: str, number: SupportsIndex, *, least: int = 0) -> int:
    """Return a Python or numpy integer as an int.

    Args:
        what: how the error calls it.
        number: the number.
        least: the least that it may be.

    Raises:
        CommlensError: it is smaller, or no integer.

    Example:
        >>> whole_number("tp", 0, least=1)
        Traceback (most recent call last):
        commlens.errors.CommlensError: expected tp to be an integer of at least 1, found 0
    """
    try:
        value = index(number)
    except TypeError:
        value = least - 1
    if value < least:
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
