"""The order in which a mesh counts through its devices."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from commlens.errors import CommlensError
from commlens.topology.iota import IntArray, IotaTileAssignment

DeviceIds: TypeAlias = (
    Sequence[int] | npt.NDArray[np.integer] | tuple[Sequence[int], Sequence[int]] | IotaTileAssignment | None
)
"""How the devices of a mesh may be given; see :class:`~commlens.topology.mesh.Mesh`."""


@dataclass(frozen=True, slots=True)
class DeviceOrder:
    """Devices by position: ``0..number-1``, an iota, or ids written out.

    Attributes:
        number: how many devices there are.
        ids: None for ``0..number-1``, a one-dimensional iota, or a tuple of ids.
    """

    number: int
    ids: IotaTileAssignment | tuple[int, ...] | None = None
    _inverse: IntArray | None = field(default=None, init=False, compare=False, repr=False)

    @classmethod
    def of(cls, number: int, device_ids: DeviceIds) -> DeviceOrder:
        """Read an order as users give it; ``0..number-1`` becomes None in whatever form it comes.

        Raises:
            CommlensError: when the ids are no permutation of ``0..number-1``.

        Example:
            >>> DeviceOrder.of(4, [0, 1, 2, 3]).ids is None, DeviceOrder.of(4, ((2, 2), (1, 0))).ids.text
            (True, '[4]<=[2,2]T(1,0)')
        """
        if device_ids is None:
            return cls(number)
        if isinstance(device_ids, IotaTileAssignment):
            iota = device_ids.reshape((number,))
        elif _is_iota_pair(device_ids):
            iota = IotaTileAssignment((number,), *device_ids)
        else:
            return cls(number, _explicit(device_ids, number))
        return cls(number, None if iota.is_identity() else iota)

    @property
    def text(self) -> str:
        """The order in HLO text, without the parentheses around it: ``[4,2]T(1,0)``, ``3,1,0,2`` or ``[8]``.

        Example:
            >>> DeviceOrder.of(8, ((4, 2), (1, 0))).text, DeviceOrder(8).text
            ('[4,2]T(1,0)', '[8]')
        """
        if self.ids is None:
            return f"[{self.number}]"
        return self.ids.order_text if isinstance(self.ids, IotaTileAssignment) else ",".join(map(str, self.ids))

    def device_at(self, position: int) -> int:
        """The device at a position that is known to exist."""
        if self.ids is None:
            return position
        return self.ids.flat_value(position) if isinstance(self.ids, IotaTileAssignment) else self.ids[position]

    def position_of(self, device: int) -> int | None:
        """The position of a device; None when it is not among the devices."""
        device = operator.index(device)
        if isinstance(self.ids, tuple) and self.number == 1:  # a maximal mesh: its device may have any id
            return 0 if device == self.ids[0] else None
        if not 0 <= device < self.number:
            return None
        if self.ids is None:
            return device
        if isinstance(self.ids, IotaTileAssignment):
            return self.ids.flat_index(device)
        return int(self._inverted(self.ids)[device])

    def devices_at(self, positions: IntArray) -> IntArray:
        """The devices at many positions, all known to exist."""
        if self.ids is None:
            return positions
        if isinstance(self.ids, IotaTileAssignment):
            return self.ids.flat_values(positions)
        return np.array(self.ids, dtype=np.int64)[positions]

    def positions_of(self, devices: IntArray) -> IntArray | None:
        """The positions of many devices; None when one of them is not in ``0..number-1``."""
        if devices.size and (devices.min() < 0 or devices.max() >= self.number):
            return None
        if self.ids is None:
            return devices
        if isinstance(self.ids, IotaTileAssignment):
            return self.ids.flat_indices(devices)
        return self._inverted(self.ids)[devices]

    def _inverted(self, ids: tuple[int, ...]) -> IntArray:
        """Positions by device, worked out once."""
        if self._inverse is None:
            inverse = np.empty(self.number, dtype=np.int64)
            inverse[np.array(ids)] = np.arange(self.number)
            object.__setattr__(self, "_inverse", inverse)
            return inverse
        return self._inverse


def _is_iota_pair(
    given: Sequence[int] | npt.NDArray[np.integer] | tuple[Sequence[int], Sequence[int]],
) -> TypeGuard[tuple[Sequence[int], Sequence[int]]]:
    """Whether this is ``(reshape_dims, transpose_perm)`` and no flat sequence of ids."""
    return not isinstance(given, np.ndarray) and len(given) == 2 and not isinstance(given[0], int | np.integer)


def _explicit(given: npt.ArrayLike, number: int) -> tuple[int, ...] | None:
    """The ids as a tuple; None where they are 0..number-1."""
    try:
        ids = np.asarray(given).reshape(-1)
    except ValueError:
        msg = "device_ids must be a flat sequence or an array, found rows of different lengths"
        raise CommlensError(msg) from None
    if ids.size != number:
        msg = f"expected {number} device_ids, one per place of the mesh, found {ids.size}"
        raise CommlensError(msg)
    if ids.dtype.kind not in "iu":
        msg = f"device_ids must be integers, found {ids.dtype}"
        raise CommlensError(msg)
    expected = np.arange(number)
    if np.array_equal(ids, expected):
        return None
    if not np.array_equal(np.sort(ids), expected):
        strays = ids[(ids < 0) | (ids >= number)]
        found = f"{strays[0]} is not one of them" if strays.size else "an id occurs twice"
        msg = f"Device ids must be a permutation of 0..{number - 1}: {found}"
        raise CommlensError(msg)
    return tuple(ids.tolist())
