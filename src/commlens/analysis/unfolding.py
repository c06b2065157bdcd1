"""How an iota list unfolds into device ids, one digit at a time: what ``explain`` shows.

``[G,N]<=[a,b,...]T(perm)`` counts positions 0, 1, 2, ... and cuts them into G rows of N. To find the device at a
position, write the position in digits whose sizes are the reshape dims in the order of ``perm``, move every digit back
to its own place, and read the number again with the reshape dims as sizes.
Source: ``IotaTileAssignment::value_at``, xla/hlo/ir/tile_assignment.cc.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlens.errors import CommlensError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Step:
    """The way of one device.

    Attributes:
        group: the group it stands in.
        rank: its place in the group.
        position: ``group * N + rank``, its place in the whole list.
        digits: the position in digits, one per entry of ``perm``, most significant first.
        moved: the same digits, each in the place of its reshape dim.
        device: ``moved`` read as one number: the device id.
    """

    group: int
    rank: int
    position: int
    digits: tuple[int, ...]
    moved: tuple[int, ...]
    device: int


@dataclass(frozen=True, slots=True)
class Unfolding:
    """An iota list as a recipe.

    Attributes:
        num_groups: G.
        group_size: N.
        reshape_dims: sizes of the digits of a device id, most significant first.
        transpose_perm: which of those digits comes first, second, ... in a position.

    Example:
        >>> unfolding = Unfolding(4, 2, (2, 4), (1, 0))
        >>> unfolding.position_dims, unfolding.step(1, 1)
        ((4, 2), Step(group=1, rank=1, position=3, digits=(1, 1), moved=(1, 1), device=5))
        >>> unfolding.step_of(6)
        Step(group=2, rank=1, position=5, digits=(2, 1), moved=(1, 2), device=6)
    """

    num_groups: int
    group_size: int
    reshape_dims: tuple[int, ...]
    transpose_perm: tuple[int, ...]

    @property
    def num_devices(self) -> int:
        """Ids in the list."""
        return math.prod(self.reshape_dims)

    @property
    def position_dims(self) -> tuple[int, ...]:
        """Sizes of the digits of a position, most significant first."""
        return tuple(self.reshape_dims[dim] for dim in self.transpose_perm)

    def step(self, group: int, rank: int) -> Step:
        """Follow one place of the list to its device.

        Raises:
            CommlensError: there is no such place.
        """
        if not (0 <= group < self.num_groups and 0 <= rank < self.group_size):
            found = f"group {group}, rank {rank}"
            msg = f"expected a group in 0..{self.num_groups - 1} and a rank in 0..{self.group_size - 1}, found {found}"
            raise CommlensError(msg)
        position = group * self.group_size + rank
        digits = _digits(position, self.position_dims)
        digit_of_dim = dict(zip(self.transpose_perm, digits, strict=True))
        moved = tuple(digit_of_dim[dim] for dim in range(len(self.reshape_dims)))
        return Step(group, rank, position, digits, moved, _number(moved, self.reshape_dims))

    def step_of(self, device: int) -> Step:
        """Follow one device back to its place.

        Raises:
            CommlensError: the list has no such device.
        """
        if not 0 <= device < self.num_devices:
            msg = f"expected a device in 0..{self.num_devices - 1}, found {device}"
            raise CommlensError(msg)
        moved = _digits(device, self.reshape_dims)
        digits = tuple(moved[dim] for dim in self.transpose_perm)
        position = _number(digits, self.position_dims)
        return Step(position // self.group_size, position % self.group_size, position, digits, moved, device)

    def steps(self, limit: int) -> Iterator[Step]:
        """Yield the ways of the first devices in the order of the list, ``limit`` of them at most."""
        for position in range(min(limit, self.num_devices)):
            yield self.step(position // self.group_size, position % self.group_size)


def _digits(value: int, sizes: Sequence[int]) -> tuple[int, ...]:
    digits: list[int] = []
    for size in reversed(sizes):
        value, digit = divmod(value, size)
        digits.append(digit)
    return tuple(reversed(digits))


def _number(digits: Sequence[int], sizes: Sequence[int]) -> int:
    value = 0
    for digit, size in zip(digits, sizes, strict=True):
        value = value * size + digit
    return value
