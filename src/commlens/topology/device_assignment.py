"""Which device runs which replica and partition.

Source: xla/service/computation_placer.h, ``DeviceAssignment``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

import numpy as np

from commlens.errors import CommlensError
from commlens.topology.validation import INT64_MAX, fits_int64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    AssignmentArray = Sequence[Sequence[int]] | NDArray[np.integer]


class DeviceAssignment:
    """A table of devices by replica and partition.

    Without a table device ``replica * partitions + partition`` runs that replica and partition: device ids are then
    the global ids, and no table is built however many there are.

    Args:
        replicas: number of replicas; or the whole table ``[replica][partition]`` of distinct device ids, and
            ``partitions`` is left out.
        partitions: number of partitions.

    Attributes:
        replicas: number of replicas, at least 1.
        partitions: number of partitions, at least 1.

    Raises:
        CommlensError: a count below 1, 2^63 devices or more; a table that is not rectangular or names a device twice.

    Example:
        >>> DeviceAssignment(3, 2).device_at(2, 1), DeviceAssignment([[33, 34], [44, 45]]).coordinates_of(44)
        (5, (1, 0))
    """

    __slots__ = ("_devices", "partitions", "replicas")

    @overload
    def __init__(self, replicas: int, partitions: int) -> None: ...

    @overload
    def __init__(self, replicas: AssignmentArray) -> None: ...

    def __init__(self, replicas: int | AssignmentArray, partitions: int | None = None) -> None:
        self._devices: NDArray[np.int64] | None = None
        if partitions is not None:
            if not isinstance(replicas, (int, np.integer)):
                msg = "expected either a table [replica][partition] alone or two counts, found a table and a count"
                raise CommlensError(msg)
            self.replicas, self.partitions = check_counts(int(replicas), int(partitions))
            return
        table = _table(replicas)
        self.replicas, self.partitions = check_counts(*table.shape)
        if not np.array_equal(table.reshape(-1), np.arange(table.size)):
            self._devices = table

    def device_at(self, replica: int, partition: int) -> int:
        """Give the device of a replica and partition.

        Raises:
            CommlensError: there is no such replica or partition.
        """
        for what, index, count in (("replica", replica, self.replicas), ("partition", partition, self.partitions)):
            if not 0 <= index < count:
                msg = f"expected a {what} id in 0..{count - 1}, found {index}"
                raise CommlensError(msg)
        if self._devices is None:
            return replica * self.partitions + partition
        return int(self._devices[replica, partition])

    def coordinates_of(self, device: int) -> tuple[int, int]:
        """Give the replica and the partition that a device runs.

        Raises:
            CommlensError: the device is not in the assignment.
        """
        if self._devices is None:
            if 0 <= device < self.replicas * self.partitions:
                return divmod(device, self.partitions)
        else:
            hits = np.argwhere(self._devices == device).tolist()
            if hits:
                replica, partition = hits[0]
                return replica, partition
        msg = f"expected a device of the device assignment, found {device}; {self} has no such device"
        raise CommlensError(msg)

    def devices_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Give the devices of global ids, ``replica * partitions + partition``, in an array of the same shape.

        Raises:
            CommlensError: an id is no global id of this assignment.

        Example:
            >>> DeviceAssignment([[33, 34], [44, 45]]).devices_of(np.array([0, 2, 3])).tolist()
            [33, 44, 45]
        """
        number = self.replicas * self.partitions
        strays = ids[(ids < 0) | (ids >= number)]
        if strays.size:
            msg = f"expected global device ids in 0..{number - 1}, found {strays[0]}"
            raise CommlensError(msg)
        return ids if self._devices is None else self._devices.reshape(-1)[ids]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceAssignment):
            return NotImplemented
        if (self.replicas, self.partitions) != (other.replicas, other.partitions):
            return False
        if self._devices is None or other._devices is None:
            return self._devices is other._devices
        return np.array_equal(self._devices, other._devices)

    def __hash__(self) -> int:
        return hash((self.replicas, self.partitions, None if self._devices is None else self._devices.tobytes()))

    def __repr__(self) -> str:
        counts = f"{self.replicas}, {self.partitions}"
        return f"DeviceAssignment({counts if self._devices is None else self._devices.tolist()})"


def check_counts(replicas: int, partitions: int) -> tuple[int, int]:
    """Insist on counts that a program can run with: global ids, ``replica * partitions + partition``, are int64.

    Raises:
        CommlensError: one of the counts is below 1, or there are 2^63 devices or more.
    """
    if replicas < 1 or partitions < 1:
        msg = f"expected at least 1 replica and 1 partition, found {replicas} and {partitions}"
        raise CommlensError(msg)
    if replicas * partitions > INT64_MAX:
        msg = f"global device ids must fit in 64 bits, {replicas} replicas of {partitions} partitions have more devices"
        raise CommlensError(msg)
    return replicas, partitions


def as_device_assignment(assignment: DeviceAssignment | AssignmentArray) -> DeviceAssignment:
    """Take an assignment or a table ``[replica][partition]`` of device ids."""
    return assignment if isinstance(assignment, DeviceAssignment) else DeviceAssignment(assignment)


def _table(rows: int | AssignmentArray) -> NDArray[np.int64]:
    try:
        table = np.array(rows)
    except ValueError:
        msg = "expected a rectangular table [replica][partition] of device ids, found rows of different lengths"
        raise CommlensError(msg) from None
    if table.ndim != 2 or not fits_int64(table):
        msg = f"expected a table [replica][partition] of device ids, found shape {table.shape} of {table.dtype}"
        raise CommlensError(msg)
    ids, counts = np.unique(table, return_counts=True)
    if (counts > 1).any():
        msg = f"expected every device once in the device assignment, found device {ids[counts > 1][0]} several times"
        raise CommlensError(msg)
    table = table.astype(np.int64)
    table.flags.writeable = False
    return table
