"""Iota tile assignments: arrays of device ids kept as a reshape and a transposition of ``0..n-1``.

Source of the semantics: xla/hlo/ir/tile_assignment.cc. An iota stands for
``arange(n).reshape(reshape_dims).transpose(transpose_perm).reshape(dims)`` and answers questions about it in the number
of its axes; the array is built only on request.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from commlens.errors import CommlensError
from commlens.topology.digits import Digit, align, count, merge, row_major, to_radix
from commlens.topology.validation import checked_integers, checked_permutation, checked_sizes, device_count, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

IntArray: TypeAlias = npt.NDArray[np.int64]
"""Device ids, positions or offsets."""

EXPANSION_LIMIT = 1 << 28
"""Most ids that are written out one by one (2 GiB as an array); an untrusted module must not fill the memory."""


def check_expandable(number: int) -> None:
    """Refuse to write out more ids than memory should be spent on.

    Raises:
        CommlensError: above :data:`EXPANSION_LIMIT` ids.
    """
    if number > EXPANSION_LIMIT:
        msg = (
            f"{number} device ids are not written out one by one (the limit is {EXPANSION_LIMIT}); "
            "ask for single values or groups instead"
        )
        raise CommlensError(msg)


@dataclass(frozen=True, slots=True, init=False)
class IotaTileAssignment:
    """An array of the device ids ``0..n-1``, kept as a reshape and a transposition.

    Always canonical: sizes of 1 are dropped from the reshape, axes that stay neighbours under the transposition are
    joined, and an identity is ``(n,)``, ``(0,)``. The form depends on the ids alone, so equality of the fields is
    equality of the arrays.

    Args:
        dims: shape of the array, sizes of at least 1.
        reshape_dims: shape that ``0..n-1`` is given first; None for ``(n,)``.
        transpose_perm: order of the reshaped axes, as numpy has it; None for the order they have.

    Raises:
        CommlensError: when a size is below 1, ``transpose_perm`` is no permutation of the reshaped axes, the products
            differ, or there are 2^63 devices or more.

    Source: ``IotaTileAssignment``, xla/hlo/ir/tile_assignment.h and .cc.

    Example:
        >>> tile = IotaTileAssignment((4, 2), (2, 1, 4), (2, 1, 0))
        >>> str(tile)
        'devices=[4,2]<=[2,4]T(1,0)'
        >>> tile.to_array().tolist()
        [[0, 4], [1, 5], [2, 6], [3, 7]]
        >>> IotaTileAssignment((2, 4)).reshape_dims
        (8,)
    """

    dims: tuple[int, ...]
    reshape_dims: tuple[int, ...]
    transpose_perm: tuple[int, ...]

    def __init__(
        self,
        dims: Iterable[int],
        reshape_dims: Iterable[int] | None = None,
        transpose_perm: Iterable[int] | None = None,
    ) -> None:
        shape = checked_sizes(dims, "dims")
        number = device_count(shape)
        reshape = (number,) if reshape_dims is None else checked_sizes(reshape_dims, "reshape_dims")
        perm = (
            tuple(range(len(reshape))) if transpose_perm is None else checked_permutation(transpose_perm, len(reshape))
        )
        if number != device_count(reshape):
            msg = (
                f"an iota needs as many ids as places: dims {shorten(shape)} make {number}, "
                f"reshape_dims {shorten(reshape)} make {device_count(reshape)}"
            )
            raise CommlensError(msg)
        places = row_major(reshape)
        self._set(shape, merge(places[axis] for axis in perm))

    @classmethod
    def from_digits(cls, dims: Iterable[int], digits: Iterable[Digit]) -> IotaTileAssignment | None:
        """Build the iota that counts like these digits, outermost first.

        Returns:
            The iota, or None when the digits do not count through ``0..n-1``.

        Example:
            >>> str(IotaTileAssignment.from_digits((4, 2), (Digit(1, 4), Digit(4, 2))))
            'devices=[4,2]<=[2,4]T(1,0)'
        """
        shape = checked_sizes(dims, "dims")
        normal = merge(digits)
        if count(normal) != math.prod(shape) or to_radix(normal) is None:
            return None
        made = cls.__new__(cls)
        made._set(shape, normal)
        return made

    def _set(self, dims: tuple[int, ...], digits: tuple[Digit, ...]) -> None:
        """Fill the fields from digits in normal form."""
        radix = to_radix(digits)
        reshape, perm = radix if radix and radix[0] else ((1,), (0,))
        object.__setattr__(self, "dims", dims)
        object.__setattr__(self, "reshape_dims", reshape)
        object.__setattr__(self, "transpose_perm", perm)

    @property
    def ndim(self) -> int:
        """Number of dimensions of the array."""
        return len(self.dims)

    @property
    def num_elements(self) -> int:
        """Number of device ids."""
        return math.prod(self.dims)

    @property
    def digits(self) -> tuple[Digit, ...]:
        """The ids in row-major order of the array, as digits in normal form, outermost first.

        Example:
            >>> IotaTileAssignment((4, 2), (2, 4), (1, 0)).digits
            (Digit(stride=1, size=4), Digit(stride=4, size=2))
        """
        places = row_major(self.reshape_dims)
        return merge(places[axis] for axis in self.transpose_perm)

    @property
    def text(self) -> str:
        """The spelling without ``devices=``.

        Example:
            >>> IotaTileAssignment((2, 3)).text
            '[2,3]<=[6]'
        """
        return f"[{_join(self.dims)}]<={self.order_text}"

    @property
    def order_text(self) -> str:
        """The spelling of the right-hand side alone, e.g. ``[2,4]T(1,0)``."""
        identity = len(self.reshape_dims) == 1
        return f"[{_join(self.reshape_dims)}]" + ("" if identity else f"T({_join(self.transpose_perm)})")

    def __str__(self) -> str:
        return f"devices={self.text}"

    def is_identity(self) -> bool:
        """Whether the ids stand in the order ``0..n-1``."""
        return len(self.reshape_dims) == 1

    def canonical(self) -> IotaTileAssignment:
        """Itself: the constructor has canonicalised."""
        return self

    def value_at(self, index: Sequence[int]) -> int:
        """The device id at an index of the array.

        Args:
            index: one coordinate per dimension.

        Raises:
            CommlensError: when the index is not inside the array.

        Example:
            >>> IotaTileAssignment((4, 2), (2, 4), (1, 0)).value_at((1, 1))
            5
        """
        coordinates = checked_integers(index, "coordinates")
        inside = len(coordinates) == self.ndim and all(
            0 <= place < size for place, size in zip(coordinates, self.dims, strict=True)
        )
        if not inside:
            msg = f"expected an index inside an array of shape {shorten(self.dims)}, found {shorten(coordinates)}"
            raise CommlensError(msg)
        return self.flat_value(sum(c * p.stride for c, p in zip(coordinates, row_major(self.dims), strict=True)))

    def index_of(self, device: int) -> tuple[int, ...]:
        """Where a device id stands in the array: the inverse of :meth:`value_at`.

        Raises:
            CommlensError: when the id is not in ``0..n-1``.

        Example:
            >>> IotaTileAssignment((4, 2), (2, 4), (1, 0)).index_of(5)
            (1, 1)
        """
        device = operator.index(device)
        if not 0 <= device < self.num_elements:
            msg = f"expected a device id in 0..{self.num_elements - 1}, found {device}"
            raise CommlensError(msg)
        flat = self.flat_index(device)
        return tuple(flat // place.stride % place.size for place in row_major(self.dims))

    def flat_value(self, position: int) -> int:
        """The id at a row-major position that is known to be inside the array."""
        value = 0
        for stride, size in reversed(self.digits):
            position, coordinate = divmod(position, size)
            value += coordinate * stride
        return value

    def flat_index(self, device: int) -> int:
        """The row-major position of an id that is known to be in ``0..n-1``."""
        position = 0
        for stride, size in self.digits:
            position = position * size + device // stride % size
        return position

    def flat_values(self, positions: IntArray) -> IntArray:
        """The ids at many row-major positions at once: :meth:`flat_value` for each.

        Example:
            >>> IotaTileAssignment((4, 2), (2, 4), (1, 0)).flat_values(np.arange(2, 6)).tolist()
            [1, 5, 2, 6]
        """
        values = np.zeros_like(positions)
        inner = 1
        for stride, size in reversed(self.digits):
            values += positions // inner % size * stride
            inner *= size
        return values

    def flat_indices(self, devices: IntArray) -> IntArray:
        """The row-major positions of many ids at once: :meth:`flat_index` for each."""
        positions = np.zeros_like(devices)
        for stride, size in self.digits:
            positions *= size
            positions += devices // stride % size
        return positions

    def to_array(self) -> IntArray:
        """The array itself, of shape ``dims``; the caller's to keep.

        Raises:
            CommlensError: above :data:`EXPANSION_LIMIT` ids.
        """
        check_expandable(self.num_elements)
        ids = np.arange(self.num_elements, dtype=np.int64)
        return ids.reshape(self.reshape_dims).transpose(self.transpose_perm).reshape(self.dims)

    def reshape(self, dims: Iterable[int]) -> IotaTileAssignment:
        """The same ids in the same row-major order under another shape.

        Raises:
            CommlensError: when the new shape has another number of places.

        Example:
            >>> str(IotaTileAssignment((4, 2), (2, 4), (1, 0)).reshape((2, 2, 2)))
            'devices=[2,2,2]<=[2,4]T(1,0)'
        """
        return IotaTileAssignment(dims, self.reshape_dims, self.transpose_perm)

    def transpose(self, perm: Iterable[int]) -> IotaTileAssignment | None:
        """The array with its dimensions in another order, as numpy transposes.

        Returns:
            The transposed iota, or None where no iota has its ids: a dimension, or the dimensions that stay neighbours
            together, cannot be cut out of the reshape axes. Upstream falls back to an explicit array there.

        Raises:
            CommlensError: when ``perm`` is no permutation of the dimensions.

        Example:
            >>> str(IotaTileAssignment((6, 35), (7, 10, 3), (2, 1, 0)).transpose((1, 0)))
            'devices=[35,6]<=[7,2,5,3]T(2,0,3,1)'
            >>> IotaTileAssignment((2, 3), (2, 3), (1, 0)).transpose((1, 0)) is None
            True
        """
        order = checked_permutation(perm, self.ndim)
        return self.compose(IotaTileAssignment([self.dims[axis] for axis in order], self.dims, order))

    def values_of(self, positions: Digit) -> tuple[Digit, ...]:
        """The ids that stand at a digit of row-major positions, as digits.

        Returns:
            As much of the digit, from the inside, as can be cut along the axes of the iota; see
            :func:`~commlens.topology.digits.align`.

        Example:
            >>> IotaTileAssignment((4, 2), (2, 4), (1, 0)).values_of(Digit(1, 4))
            (Digit(stride=1, size=2), Digit(stride=4, size=2))
        """
        values = self.digits
        return tuple(
            Digit(values[piece.place].stride * piece.digit.stride, piece.digit.size)
            for piece in align(positions, [digit.size for digit in values])
        )

    def positions_of(self, values: Digit) -> tuple[Digit, ...]:
        """The row-major positions at which a digit of ids stands: the inverse of :meth:`values_of`.

        Example:
            >>> IotaTileAssignment((4, 2), (2, 4), (1, 0)).positions_of(Digit(2, 4))
            (Digit(stride=1, size=2), Digit(stride=4, size=2))
        """
        moved = [self.reshape_dims[axis] for axis in self.transpose_perm]
        positions = row_major(moved)
        return tuple(
            Digit(positions[self.transpose_perm.index(piece.place)].stride * piece.digit.stride, piece.digit.size)
            for piece in align(values, self.reshape_dims)
        )

    def compose(self, positions: IotaTileAssignment) -> IotaTileAssignment | None:
        """This iota after another one: the ids that stand at the row-major positions which the other holds.

        Returns:
            The composition, of the shape of ``positions``, or None where no iota has its ids: a digit of ``positions``
            straddles axes of this iota.

        Example:
            >>> order = IotaTileAssignment((8,), (4, 2), (1, 0))
            >>> str(order.compose(IotaTileAssignment((4, 2), (2, 4), (1, 0))))
            'devices=[4,2]<=[8]'
        """
        values = chain.from_iterable(map(self.values_of, positions.digits))
        return IotaTileAssignment.from_digits(positions.dims, values)


def _join(values: Iterable[int]) -> str:
    return ",".join(map(str, values))
