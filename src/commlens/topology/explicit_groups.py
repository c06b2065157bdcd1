"""Groups written out id by id, kept as two arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import TypeAlias, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from commlens.errors import CommlensError
from commlens.topology.device_list_base import CollectiveDeviceListBase, check_group_index
from commlens.topology.iota import IntArray
from commlens.topology.proto_messages import ReplicaGroupMessage
from commlens.topology.validation import fits_int64

GroupsLike: TypeAlias = Iterable[Sequence[int] | npt.NDArray[np.integer] | ReplicaGroupMessage]
"""Groups as they may be given: sequences or arrays of ids, or ReplicaGroup messages."""

_HLO_BRACKETS = str.maketrans("[]", "{}", " ")


@dataclass(frozen=True, slots=True, eq=False)
class ExplicitGroups(CollectiveDeviceListBase):
    """Groups in one array of ids and one of bounds, both read-only.

    Args:
        ids: all ids, group by group.
        offsets: where each group starts in ``ids``, and at last the number of ids.

    Example:
        >>> str(ExplicitGroups(np.array([0, 1, 2]), np.array([0, 2, 3])))
        '{{0,1},{2}}'
    """

    ids: IntArray
    offsets: IntArray
    _index: tuple[IntArray, IntArray] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.ids.setflags(write=False)
        self.offsets.setflags(write=False)

    @classmethod
    def of(cls, groups: GroupsLike) -> ExplicitGroups:
        """Copy groups from whatever holds them.

        Raises:
            CommlensError: for ids that are no integers or do not fit in 64 bits.
        """
        try:
            ids, sizes = _from_array(groups) if _is_array(groups) else _from_rows(groups)
        except (TypeError, ValueError):
            raise _not_groups() from None
        offsets = offsets_of(sizes)
        if ids.shape != (offsets[-1],):
            raise _not_groups()
        return cls(_as_int64(ids), offsets)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, ExplicitGroups) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[bytes, bytes]:
        return self.ids.tobytes(), self.offsets.tobytes()

    def __str__(self) -> str:
        # The text of nested lists needs only other brackets, and Python writes it much faster than a loop here could.
        return str(self.groups()).translate(_HLO_BRACKETS)

    @property
    def form(self) -> str:
        """``"list"``, or ``"empty"`` without groups."""
        return "list" if self.num_replica_groups else "empty"

    @property
    def num_replica_groups(self) -> int:
        """Number of groups."""
        return self.offsets.size - 1

    @property
    def num_devices_per_group(self) -> int | None:
        """Devices in each group; None if the groups differ in size, 0 if there are none."""
        if not self.num_replica_groups:
            return 0
        size = int(self.offsets[1])
        return size if np.array_equal(self.offsets, np.arange(self.offsets.size) * size) else None

    @property
    def num_devices(self) -> int:
        """Sum of the sizes of the groups."""
        return self.ids.size

    def group_sizes(self) -> IntArray:
        """The size of every group."""
        return np.diff(self.offsets)

    @property
    def is_written_out(self) -> bool:
        """True."""
        return True

    def layout(self) -> None:
        """None: the ids are written out."""

    def flattened_replica_groups(self) -> IntArray:
        """All ids, group by group: 1-D, read-only."""
        return self.ids

    def groups(self) -> list[list[int]]:
        """The groups as lists, built anew."""
        if self.num_devices_per_group is not None:
            return self.to_array().tolist()
        bounds = self.offsets.tolist()
        ids = self.ids.tolist()
        return [ids[start:stop] for start, stop in pairwise(bounds)]

    def group_of(self, device: int) -> tuple[int, int] | None:
        """The group a device is in and its place there, both counted from 0; None if it is in no group."""
        ids, places = self._sorted()
        found = int(np.searchsorted(ids, device))
        if found == ids.size or ids[found] != device:
            return None
        place = int(places[found])
        group = int(np.searchsorted(self.offsets, place, side="right")) - 1
        return group, place - int(self.offsets[group])

    def _sorted(self) -> tuple[IntArray, IntArray]:
        """The ids in ascending order and where each stands, equal ids in list order; worked out once."""
        if self._index is None:
            places = np.argsort(self.ids, kind="stable")
            index = (self.ids[places], places)
            object.__setattr__(self, "_index", index)
            return index
        return self._index

    def group(self, index: int) -> list[int]:
        """The ids of one group."""
        check_group_index(index, self.num_replica_groups)
        return self.ids[self.offsets[index] : self.offsets[index + 1]].tolist()


def offsets_of(sizes: npt.NDArray[np.integer]) -> IntArray:
    """Where each of some groups starts when all stand in one array, and at last the number of ids.

    Example:
        >>> offsets_of(np.array([2, 1]))
        array([0, 2, 3])
    """
    offsets = np.zeros(sizes.size + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _is_array(groups: GroupsLike) -> TypeGuard[npt.NDArray[np.generic]]:
    return isinstance(groups, np.ndarray)


def _from_array(groups: npt.NDArray[np.generic]) -> tuple[npt.NDArray[np.generic], IntArray]:
    """The ids, and the size of each group, of an array of shape (groups, members)."""
    number, size = cast("tuple[int, int]", groups.shape)
    return groups.reshape(-1), np.full(number, size, dtype=np.int64)


def _from_rows(groups: GroupsLike) -> tuple[npt.NDArray[np.generic], IntArray]:
    """The ids, and the size of each group, of groups one by one."""
    rows = [cast("Sequence[int]", getattr(row, "replica_ids", row)) for row in groups]
    return np.array(list(chain.from_iterable(rows))), np.array([len(row) for row in rows], dtype=np.int64)


def _not_groups() -> CommlensError:
    return CommlensError("expected groups of device ids: one sequence of integers per group")


def _as_int64(values: npt.NDArray[np.generic]) -> IntArray:
    """A copy of the ids as 64-bit integers."""
    if not values.size:
        return np.empty(0, dtype=np.int64)
    if not fits_int64(values):
        msg = "device ids must be integers that fit in 64 bits"
        raise CommlensError(msg)
    return values.astype(np.int64)
