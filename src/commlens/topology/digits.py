"""Mixed-radix digit algebra: the arithmetic behind iota lists, meshes and sub-axes.

A *digit* ``(stride, size)`` stands for the values ``0, stride, 2*stride, ..., (size-1)*stride``. A sequence of digits,
outermost first, counts like an odometer: the last digit runs fastest, and the value is the sum of the digits. The ids
of an iota list, the members of one group and the devices along a mesh axis are all such sequences, so "which axes is
this?" is a question about a handful of digits, however many devices there are.

Two facts carry the recognisers built on this module.

**Normal form.** Let a sequence of digits count through ``0..n-1``, each once, in some order. Joining neighbours that
continue each other (``outer.stride == inner.stride * inner.size``) and dropping digits of size 1 gives a form that
depends on the counted values alone. Proof: the innermost stride is the second value. The run with that step ends
exactly where its digit ends, because the value that follows is the stride of the next digit, and had that continued the
run the two would have been joined. What is left is the same question about every ``size``-th value.

**Unique tiling.** A set of offsets whose least element is 0 covers ``0..n-1`` by disjoint translates in at most one
way: the least value not covered yet must be the least element of its translate. So when groups cover all devices and
each is a translate of the same digits, their first members are the combinations of all the *other* digits, in whatever
order the groups are listed: only the digits inside a group need looking at.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Digit(NamedTuple):
    """The values ``0, stride, ..., (size-1)*stride``.

    Example:
        >>> Digit(stride=4, size=2).end
        8
    """

    stride: int
    size: int

    @property
    def end(self) -> int:
        """The first multiple of the stride that the digit does not reach."""
        return self.stride * self.size


class Piece(NamedTuple):
    """A part of a digit that lies inside one place of a radix.

    Attributes:
        place: index of the place in the radix.
        digit: the part, its stride counted in units of that place.
    """

    place: int
    digit: Digit


def count(digits: Iterable[Digit]) -> int:
    """How many values the digits count through.

    Example:
        >>> count((Digit(4, 2), Digit(1, 3)))
        6
    """
    return math.prod(digit.size for digit in digits)


def row_major(sizes: Sequence[int]) -> tuple[Digit, ...]:
    """The digits of an array of this shape, outermost first.

    Example:
        >>> row_major((2, 4))
        (Digit(stride=4, size=2), Digit(stride=1, size=4))
    """
    digits: list[Digit] = []
    stride = 1
    for size in reversed(sizes):
        digits.append(Digit(stride, size))
        stride *= size
    return tuple(reversed(digits))


def merge(digits: Iterable[Digit]) -> tuple[Digit, ...]:
    """The normal form: neighbours that continue each other are joined, digits of size 1 are dropped.

    Example:
        >>> merge((Digit(4, 2), Digit(1, 1), Digit(2, 2), Digit(1, 2)))
        (Digit(stride=1, size=8),)
    """
    merged: list[Digit] = []
    for digit in digits:
        if digit.size == 1:
            continue
        if merged and merged[-1].stride == digit.end:
            digit = Digit(digit.stride, merged.pop().size * digit.size)
        merged.append(digit)
    return tuple(merged)


def split_inner(digits: Sequence[Digit], inner_count: int) -> tuple[tuple[Digit, ...], tuple[Digit, ...]] | None:
    """Cut the digits in two so that the inner part counts through exactly ``inner_count`` values.

    Returns:
        The outer and the inner digits, or None where the cut would fall inside a digit that it does not divide.

    Example:
        >>> split_inner((Digit(1, 6),), 3)
        ((Digit(stride=3, size=2),), (Digit(stride=1, size=3),))
        >>> split_inner((Digit(1, 3), Digit(3, 2)), 3) is None
        True
    """
    inner: list[Digit] = []
    left = inner_count
    for position in range(len(digits) - 1, -1, -1):
        stride, size = digits[position]
        if left == 1:
            return tuple(digits[: position + 1]), tuple(reversed(inner))
        taken = math.gcd(size, left)
        if taken not in (size, left):
            return None
        inner.append(Digit(stride, taken))
        left //= taken
        if taken != size:
            return (*digits[:position], Digit(stride * taken, size // taken)), tuple(reversed(inner))
    return ((), tuple(reversed(inner))) if left == 1 else None


def align(digit: Digit, sizes: Sequence[int]) -> tuple[Piece, ...]:
    """Cut a digit along the places of a row-major radix, outermost piece first.

    Adding any value of the digit to a number whose affected places are 0 then changes those places only, without carry.
    Where the digit straddles a boundary that it does not divide, the largest inner part that can be cut is returned, so
    the whole digit was aligned if and only if the sizes of the pieces multiply to its size.

    Example:
        >>> align(Digit(stride=2, size=4), (2, 2, 4))
        (Piece(place=1, digit=Digit(stride=1, size=2)), Piece(place=2, digit=Digit(stride=2, size=2)))
        >>> align(Digit(stride=2, size=4), (4, 3))
        ()
    """
    pieces: list[Piece] = []
    stride, left = digit
    places = row_major(sizes)
    for index in range(len(places) - 1, -1, -1):
        place = places[index]
        if left == 1:
            break
        if stride >= place.end:
            continue
        if stride % place.stride or place.end % stride:
            break
        room = place.end // stride
        taken = math.gcd(room, left)
        if taken > 1:
            pieces.append(Piece(index, Digit(stride // place.stride, taken)))
        stride *= taken  # where this does not reach the next place, the next place ends the loop
        left //= taken
    return tuple(reversed(pieces))


def to_radix(digits: Sequence[Digit]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The iota that counts like these digits: reshape sizes and transposition.

    Returns:
        ``(reshape_dims, transpose_perm)`` such that digit ``k`` is axis ``transpose_perm[k]`` of a row-major array of
        shape ``reshape_dims``, or None when the digits do not count through ``0..n-1``.

    Example:
        >>> to_radix((Digit(1, 4), Digit(4, 2)))
        ((2, 4), (1, 0))
    """
    order = sorted(range(len(digits)), key=lambda position: -digits[position].stride)
    sizes = tuple(digits[position].size for position in order)
    if tuple(digits[position] for position in order) != row_major(sizes):
        return None
    perm = [0] * len(digits)
    for axis, position in enumerate(order):
        perm[position] = axis
    return sizes, tuple(perm)
