"""Meshes: named axes over an order of devices.

Source of the semantics: xla/hlo/ir/mesh_and_axis.cc.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from commlens.errors import CommlensError
from commlens.topology.axes import AxisRef, quote
from commlens.topology.device_order import DeviceIds, DeviceOrder
from commlens.topology.digits import Digit, row_major
from commlens.topology.iota import IntArray, IotaTileAssignment, check_expandable
from commlens.topology.validation import INT64_MAX, checked_integers, device_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.topology.proto_messages import MeshMessage

MAX_AXES = 256
"""Far more than any machine has; some answers cost the square of the number of axes."""

_SHOWN_AXES = 8
"""How many axes an error names."""

_SHOWN_LETTERS = 60
"""How much of an axis name an error quotes."""

_GENERATED_NAME = re.compile(r"axis_[0-9]+")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Mesh:
    """Named axes over the devices ``0..n-1`` in some order; the last axis runs fastest.

    Two special values have no axes: the empty mesh and the maximal mesh, which is one device.

    Args:
        axes: names and sizes, outermost first; sizes of at least 1, names once each.
        device_ids: the devices row-major over the axes: None for ``0..n-1``, a flat sequence or array that is a
            permutation of it, ``(reshape_dims, transpose_perm)`` or an iota. An iota stays one, however many devices
            there are; the order ``0..n-1`` is stored as None, however it was given.

    Attributes:
        axes: pairs of name and size.
        order: the devices by row-major position.

    Raises:
        CommlensError: without an axis, for a name used twice, a size below 1, or ids that are no permutation.

    Example:
        >>> mesh = Mesh({"data": 2, "model": 4})
        >>> str(mesh), mesh.num_devices, mesh.coordinates_of(6)
        ("mesh['data'=2,'model'=4]", 8, (1, 2))
        >>> str(Mesh({"a": 2, "b": 4}, ((4, 2), (1, 0))))
        "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0))"
    """

    axes: tuple[tuple[str, int], ...]
    order: DeviceOrder

    def __init__(
        self,
        axes: Mapping[str, int] | Iterable[tuple[str, int]],
        device_ids: DeviceIds = None,
    ) -> None:
        named = tuple(cast("Mapping[str, int]", axes).items() if isinstance(axes, Mapping) else axes)
        sizes = checked_integers([size for _, size in named], "axis sizes")
        names = [name for name, _ in named]
        _check_axes(names, sizes)
        self._set(tuple(zip(names, sizes, strict=True)), DeviceOrder.of(math.prod(sizes), device_ids))

    @classmethod
    def empty(cls) -> Mesh:
        """The mesh without axes and devices, ``mesh[]``."""
        return cls._without_axes(DeviceOrder(0))

    @classmethod
    def maximal(cls, device_id: int) -> Mesh:
        """The mesh of one device, whose id may be any int64 of 0 or more.

        Raises:
            CommlensError: for anything else.

        Example:
            >>> str(Mesh.maximal(5))
            'maximal_mesh[device_id=5]'
        """
        (device,) = checked_integers([device_id], "device ids")
        if not 0 <= device <= INT64_MAX:
            msg = f"expected the id of a device, 0 or more and in 64 bits, found {device}"
            raise CommlensError(msg)
        return cls._without_axes(DeviceOrder(1, (device,)))

    @classmethod
    def _without_axes(cls, order: DeviceOrder) -> Mesh:
        made = cls.__new__(cls)
        made._set((), order)
        return made

    def _set(self, axes: tuple[tuple[str, int], ...], order: DeviceOrder) -> None:
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "order", order)

    @classmethod
    def from_proto(cls, message: MeshMessage) -> Mesh:
        """Read a MeshProto, or anything with its attributes.

        Raises:
            CommlensError: where the constructor would, and for device_ids beside an iota_transform.
        """
        axes = [(axis.name, axis.size) for axis in message.axes]
        ids = tuple(message.device_ids)
        transform = message.iota_transform
        reshape = () if transform is None else tuple(transform.reshape_dims)
        perm = () if transform is None else tuple(transform.transpose_perm)
        if ids and reshape:
            msg = "a mesh has device_ids or an iota_transform, not both"
            raise CommlensError(msg)
        if not axes:
            return cls.maximal(*ids) if len(ids) == 1 else cls.empty() if not ids else cls(axes)
        return cls(axes, (reshape, perm) if reshape else ids or None)

    def to_proto_fields(self) -> dict[str, object]:
        """The fields of a MeshProto, by their names, as plain lists and dicts; absent fields are left out.

        Example:
            >>> Mesh({"a": 2, "b": 4}, ((4, 2), (1, 0))).to_proto_fields()["iota_transform"]
            {'reshape_dims': [4, 2], 'transpose_perm': [1, 0]}
        """
        fields: dict[str, object] = {"axes": [{"name": name, "size": size} for name, size in self.axes]}
        order = self.order.ids
        if isinstance(order, IotaTileAssignment):
            fields["iota_transform"] = {
                "reshape_dims": list(order.reshape_dims),
                "transpose_perm": list(order.transpose_perm),
            }
        elif order is not None:
            fields["device_ids"] = list(order)
        return fields

    def __str__(self) -> str:
        if self.is_maximal:
            return f"maximal_mesh[device_id={self.device_at(0)}]"
        axes = ",".join(f"{quote(name)}={size}" for name, size in self.axes)
        return f"mesh[{axes}]" if self.order.ids is None else f"mesh[{axes}], device_ids=({self.order.text})"

    def __repr__(self) -> str:
        if not self.axes:
            return f"Mesh.maximal({self.device_at(0)})" if self.is_maximal else "Mesh.empty()"
        return f"Mesh({dict(self.axes)})" if self.order.ids is None else f"Mesh({dict(self.axes)}, {self.device_ids!r})"

    @property
    def device_ids(self) -> IotaTileAssignment | tuple[int, ...] | None:
        """The devices row-major over the axes: None for ``0..n-1``, an iota of shape ``axis_sizes``, or a tuple."""
        ids = self.order.ids
        return ids.reshape(self.axis_sizes) if isinstance(ids, IotaTileAssignment) else ids

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Names of the axes, outermost first."""
        return tuple(name for name, _ in self.axes)

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Sizes of the axes, outermost first."""
        return tuple(size for _, size in self.axes)

    @property
    def num_devices(self) -> int:
        """How many devices there are: 0 in the empty mesh, 1 in a maximal one."""
        return self.order.number

    @property
    def is_maximal(self) -> bool:
        """Whether this is the mesh of one device."""
        return not self.axes and self.order.ids is not None

    @property
    def has_generated_names(self) -> bool:
        """Whether all axes are called ``axis_0``, ``axis_1``, ...: names of a compiler, not of a user.

        Example:
            >>> Mesh({"axis_0": 2}).has_generated_names, Mesh({"data": 2}).has_generated_names
            (True, False)
        """
        return all(_GENERATED_NAME.fullmatch(name) for name in self.axis_names)

    def without_trivial_axes(self, *, renumber: bool = False) -> Mesh:
        """The same devices without the axes of size 1; if there is no other, the first axis stays.

        Args:
            renumber: whether to call the axes that are left ``axis_0``, ``axis_1``, ...

        Example:
            >>> str(Mesh({"axis_0": 1, "axis_1": 4}).without_trivial_axes(renumber=True))
            "mesh['axis_0'=4]"
        """
        kept = [axis for axis in self.axes if axis[1] != 1] or list(self.axes[:1])
        if not kept:
            return self
        if renumber:
            kept = [(f"axis_{index}", size) for index, (_, size) in enumerate(kept)]
        return Mesh(kept, self.order.ids)

    # --- devices and positions

    def device_at(self, position: int) -> int:
        """The device at a row-major position.

        Raises:
            CommlensError: when the position is not in ``0..num_devices-1``.
        """
        if not 0 <= position < self.num_devices:
            msg = f"expected a position in 0..{self.num_devices - 1}, found {position}"
            raise CommlensError(msg)
        return self.order.device_at(position)

    def position_of(self, device: int) -> int | None:
        """The row-major position of a device; None for one outside the mesh.

        Example:
            >>> Mesh({"a": 2, "b": 2}, (3, 1, 0, 2)).position_of(0)
            2
        """
        return self.order.position_of(device)

    def coordinates_of(self, device: int) -> tuple[int, ...] | None:
        """The coordinates of a device along the axes; None for one outside the mesh.

        Example:
            >>> Mesh({"a": 2, "b": 4}).coordinates_of(5)
            (1, 1)
        """
        position = self.position_of(device)
        if position is None:
            return None
        return tuple(position // place.stride % place.size for place in row_major(self.axis_sizes))

    def device_array(self) -> IntArray:
        """The devices as an array with one dimension per axis, built anew.

        Raises:
            CommlensError: above :data:`~commlens.topology.iota.EXPANSION_LIMIT` devices.
        """
        check_expandable(self.num_devices)
        positions = np.arange(self.num_devices, dtype=np.int64)
        return self.order.devices_at(positions).reshape(self.axis_sizes or (self.num_devices,))

    # --- axes

    def axis_index(self, name_or_index: str | int) -> int:
        """The position of an axis among the axes.

        Args:
            name_or_index: a name, an index, or an index as decimal text; a name wins.

        Raises:
            CommlensError: when there is no such axis.

        Example:
            >>> Mesh({"a": 2, "b": 4}).axis_index("b"), Mesh({"a": 2, "b": 4}).axis_index("1")
            (1, 1)
        """
        names = self.axis_names
        if name_or_index in names:
            return names.index(str(name_or_index))
        known = ", ".join(map(_shown, names[:_SHOWN_AXES])) + (", ..." if len(names) > _SHOWN_AXES else "")
        if isinstance(name_or_index, str) and not (name_or_index.isascii() and name_or_index.isdigit()):
            msg = f"{_shown(name_or_index)} is not a valid axis name or index in mesh; its axes are {known}"
            raise CommlensError(msg)
        index = int(name_or_index) if len(str(name_or_index)) < len(str(INT64_MAX)) else len(names)
        if not 0 <= index < len(names):
            msg = f"Axis index must be less than number of axes ({len(names)}), found {index}; the axes are {known}"
            raise CommlensError(msg)
        return index

    def resolve(self, ref: AxisRef | str | int) -> AxisRef:
        """Check a reference against the mesh and name its axis.

        Raises:
            CommlensError: when the axis does not exist or the sub-axis does not divide it.

        Example:
            >>> str(Mesh({"a": 2, "b": 4}).resolve(AxisRef(1, 1, 2)))
            "'b':(1)2"
        """
        given = ref if isinstance(ref, AxisRef) else AxisRef(ref)
        name, size = self.axes[self.axis_index(given.name_or_index)]
        if given.pre_size is None or given.size is None:
            return AxisRef(name)
        if size % (given.pre_size * given.size):
            msg = f"Sub-axis next_pre_size must divide the full axis size, {given} does not divide {size}"
            raise CommlensError(msg)
        if given.size >= size:
            msg = (
                f"Sub-axis size must be strictly less than the full axis size, {given} has {size}: write the whole axis"
            )
            raise CommlensError(msg)
        return AxisRef(name, given.pre_size, given.size)

    def resolve_all(self, refs: Iterable[AxisRef | str | int]) -> tuple[AxisRef, ...]:
        """Check a list of references: each on its own, all pairs, and neighbours.

        Raises:
            CommlensError: where :meth:`resolve` would, when two references overlap, or when one continues its
                left neighbour (write the merged sub-axis then).

        Example:
            >>> [str(ref) for ref in Mesh({"a": 8}).resolve_all([AxisRef("a", 4, 2), AxisRef("a", 1, 2)])]
            ["'a':(4)2", "'a':(1)2"]
        """
        resolved = tuple(self.resolve(ref) for ref in refs)
        for position, ref in enumerate(resolved):
            for earlier in resolved[:position]:
                if not earlier.can_coexist(ref):
                    msg = f"Axes cannot coexist or axes overlap: {earlier} and {ref}"
                    raise CommlensError(msg)
            if position and resolved[position - 1].can_merge(ref):
                msg = f"Adjacent axes in dimension sharding can be merged: {resolved[position - 1]} and {ref}"
                raise CommlensError(msg)
        return resolved

    def digit_of(self, ref: AxisRef | str | int) -> Digit:
        """The row-major positions along an axis or sub-axis, as a digit.

        Example:
            >>> Mesh({"a": 4, "b": 2}).digit_of(AxisRef("a", 1, 2))
            Digit(stride=4, size=2)
        """
        named = self.resolve(ref)
        axis = self.axis_index(named.name_or_index)
        place = row_major(self.axis_sizes)[axis]
        if named.pre_size is None or named.size is None:
            return place
        return Digit(place.end // (named.pre_size * named.size), named.size)

    def unused_digits(self, refs: Iterable[AxisRef | str | int]) -> tuple[Digit, ...]:
        """The positions that none of the references touches, as digits in mesh order, outermost first.

        Example:
            >>> Mesh({"a": 8}).unused_digits([AxisRef("a", 2, 2)])
            (Digit(stride=4, size=2), Digit(stride=1, size=2))
        """
        used = sorted((self.digit_of(ref) for ref in refs), reverse=True)
        digits: list[Digit] = []
        for place in row_major(self.axis_sizes):
            end = place.end
            for stride, size in used:
                if place.stride <= stride < place.end:
                    digits.append(Digit(stride * size, end // (stride * size)))
                    end = stride
            digits.append(Digit(place.stride, end // place.stride))
        return tuple(digit for digit in digits if digit.size > 1)


def _shown(name: str) -> str:
    return quote(name if len(name) <= _SHOWN_LETTERS else f"{name[:_SHOWN_LETTERS]}...")


def _check_axes(names: list[str], sizes: tuple[int, ...]) -> None:
    if not names:
        msg = "a mesh has at least one axis; Mesh.empty() and Mesh.maximal(id) are the meshes without"
        raise CommlensError(msg)
    if len(names) > MAX_AXES:
        msg = f"a mesh has {MAX_AXES} axes at most, found {len(names)}"
        raise CommlensError(msg)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        twice = ", ".join(map(_shown, repeated[:_SHOWN_AXES]))
        msg = f"Mesh has duplicate axis names: {twice}; every axis needs its own"
        raise CommlensError(msg)
    for name, size in zip(names, sizes, strict=True):
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            msg = f"the name of a mesh axis must be a string, found {name!r}"
            raise CommlensError(msg)
        if size < 1:
            msg = f"mesh axis {_shown(name)} must have a size of at least 1, found {size}"
            raise CommlensError(msg)
    device_count(sizes)
