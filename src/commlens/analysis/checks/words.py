"""Figures in messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction


def in_bytes(number: Fraction | int) -> str:
    """Write a number of bytes exactly, to the nearest whole one.

    Example:
        >>> from fractions import Fraction
        >>> in_bytes(1_572_864), in_bytes(Fraction(2000, 3))
        ('1,572,864 B', '667 B')
    """
    return f"{round(number):,} B"
