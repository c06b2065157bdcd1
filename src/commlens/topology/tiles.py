"""Tile assignments: which device holds which tile of an array, as an iota or as an array of ids.

A tile assignment is an array with one dimension per array dimension (and more for subgroups); the entry at a tile's
coordinates is the device that holds it. Most are iotas and stay that: dimensions are cut, moved and joined in the
number of their axes, and only where no iota says the result it is written out.

Source: xla/hlo/ir/tile_assignment.h and .cc; for the way to meshes and back xla/hlo/ir/named_sharding.cc.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from commlens.errors import CommlensError
from commlens.topology.axes import AxisRef
from commlens.topology.digits import count, row_major
from commlens.topology.iota import IntArray, IotaTileAssignment
from commlens.topology.mesh import Mesh
from commlens.topology.validation import fits_int64

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commlens.topology.digits import Digit

Tile: TypeAlias = IotaTileAssignment | IntArray
"""A tile assignment: an iota, or the device ids as an array."""

TileLike: TypeAlias = IotaTileAssignment | npt.NDArray[np.integer]
"""A tile assignment as it may be given."""

DimAxes: TypeAlias = tuple[tuple[AxisRef, ...], ...]
"""Per dimension of an array the mesh axes that it is cut along, outermost first."""


def as_tile(tile: TileLike) -> Tile:
    """Take a tile assignment; ids that are written out are checked and copied.

    Raises:
        CommlensError: for an array without dimensions, or with ids that are negative, repeated or no integers.

    Example:
        >>> as_tile(np.array([[0, 2], [1, 3]]))
        array([[0, 2],
               [1, 3]])
    """
    if isinstance(tile, IotaTileAssignment):
        return tile
    values = np.asarray(tile)
    if not fits_int64(values) or not values.ndim or not values.size:
        msg = f"expected a tile assignment of device ids, found shape {values.shape} with elements of {values.dtype}"
        raise CommlensError(msg)
    ids, repeats = np.unique(values, return_counts=True)
    if ids[0] < 0 or ids.size < values.size:
        wrong, what = (ids[0], "is negative") if ids[0] < 0 else (ids[repeats > 1][0], "stands more than once")
        msg = f"expected distinct device ids of 0 or more in a tile assignment, found {wrong}, which {what}"
        raise CommlensError(msg)
    copy = values.astype(np.int64)
    copy.flags.writeable = False
    return copy


def tile_dims(tile: Tile) -> tuple[int, ...]:
    """The shape of a tile assignment."""
    return tile.dims if isinstance(tile, IotaTileAssignment) else tile.shape


def tile_array(tile: Tile) -> IntArray:
    """The device ids written out.

    Raises:
        CommlensError: for an iota that is too large for that.
    """
    return tile.to_array() if isinstance(tile, IotaTileAssignment) else tile


def reshape_tile(tile: Tile, dims: Iterable[int]) -> Tile:
    """The same devices in the same order under another shape."""
    return tile.reshape(dims) if isinstance(tile, IotaTileAssignment) else tile.reshape(tuple(dims))


def transpose_tile(tile: Tile, perm: Sequence[int]) -> Tile:
    """The tile assignment with its dimensions in another order: an iota if it was one and one says it.

    Raises:
        CommlensError: for an iota that has to be written out and is too large for that.
    """
    if not isinstance(tile, IotaTileAssignment):
        return tile.transpose(perm)
    moved = tile.transpose(perm)
    return tile.to_array().transpose(perm) if moved is None else moved


def tiles_equal(first: Tile | None, second: Tile | None) -> bool:
    """Whether two tile assignments are equal: iotas by form, others by value, an iota may equal an array.

    Source: ``TileAssignment::operator==``.
    """
    if isinstance(first, IotaTileAssignment) and isinstance(second, IotaTileAssignment):
        return first == second
    if first is None or second is None or tile_dims(first) != tile_dims(second):
        return first is second
    return np.array_equal(tile_array(first), tile_array(second))


def mesh_to_tile(mesh: Mesh, dim_axes: Iterable[Iterable[AxisRef | str | int]]) -> Tile:
    """Say by a tile assignment that the dimensions of an array are cut along mesh axes.

    Args:
        mesh: a mesh with axes.
        dim_axes: per dimension the axes it is cut along, outermost first.

    Returns:
        One dimension per array dimension; where some axes are not used, one more at the end for the copies along
        them, in mesh order. An iota unless the device order of the mesh stands against it.

    Raises:
        CommlensError: for a mesh without axes, for invalid references, and for a reference that overlaps another.

    Source: ``NamedSharding`` to ``HloSharding``, xla/hlo/ir/named_sharding.cc.

    Example:
        >>> mesh = Mesh({"a": 4, "b": 2})
        >>> str(mesh_to_tile(mesh, [[AxisRef("a", 1, 2)], ["b"]]))
        'devices=[2,2,2]<=[2,2,2]T(0,2,1)'
    """
    refs = resolve_dims(mesh, dim_axes)
    copies = count(mesh.unused_digits(ref for dim in refs for ref in dim))
    return mesh_tile(mesh, refs if copies == 1 else (*refs, None))


def resolve_dims(mesh: Mesh, dim_axes: Iterable[Iterable[AxisRef | str | int]]) -> DimAxes:
    """Check lists of references against a mesh and against each other, and name their axes.

    Raises:
        CommlensError: for a mesh without axes, an invalid list, or references in different lists that overlap.
    """
    if not mesh.axes:
        msg = f"expected a mesh with axes to cut dimensions along, found {mesh}"
        raise CommlensError(msg)
    resolved = tuple(mesh.resolve_all(refs) for refs in dim_axes)
    for first, second in combinations([ref for refs in resolved for ref in refs], 2):
        if not first.can_coexist(second):
            msg = f"Axes cannot coexist or axes overlap: {first} and {second}; an axis can cut one dimension only"
            raise CommlensError(msg)
    return resolved


def mesh_tile(mesh: Mesh, dims: Sequence[Sequence[AxisRef] | None]) -> Tile:
    """The tile assignment with these references along its dimensions, already checked.

    Args:
        mesh: a mesh with axes.
        dims: per dimension its references; None stands for all that is left of the mesh.
    """
    unused = mesh.unused_digits(ref for refs in dims if refs is not None for ref in refs)
    digits: list[tuple[Digit, ...]] = [
        unused if refs is None else tuple(mesh.digit_of(ref) for ref in refs) for refs in dims
    ]
    sizes = [count(part) for part in digits] or [1]
    positions = IotaTileAssignment.from_digits(sizes, [digit for part in digits for digit in part])
    if positions is None:
        msg = f"expected references that make up {mesh}, found {dims}"
        raise CommlensError(msg)
    order = mesh.order.ids
    if order is None:
        return positions
    tile = order.compose(positions) if isinstance(order, IotaTileAssignment) else None
    return mesh.order.devices_at(positions.to_array()) if tile is None else tile


def tile_to_mesh(tile: TileLike) -> tuple[Mesh, DimAxes]:
    """Make up a mesh for a tile assignment, and say which of its axes each dimension is cut along.

    Args:
        tile: the tile assignment; ids that are written out must be a permutation of ``0..n-1``.

    Returns:
        A mesh with axes ``axis_0``, ``axis_1``, ..., and the axes per dimension, outermost first;
        :func:`mesh_to_tile` undoes it. An iota whose dimensions are made of whole factors of its reshape gives one axis
        per factor, in device order, over devices in plain order. Any other tile gives one axis per dimension, over
        devices in the order of the tile. Dimensions of size 1 have no axes.

    Raises:
        CommlensError: for ids that no mesh can have.

    Source: newer ``NamedSharding`` from ``HloSharding``, xla/service/spmd/spmd_partitioner_util.cc.

    Example:
        >>> mesh, dim_axes = tile_to_mesh(IotaTileAssignment((2, 4), (4, 2), (1, 0)))
        >>> str(mesh), [[str(ref) for ref in refs] for refs in dim_axes]
        ("mesh['axis_0'=4,'axis_1'=2]", [["'axis_1'"], ["'axis_0'"]])
    """
    checked = as_tile(tile)
    parts = _dim_digits(checked) if isinstance(checked, IotaTileAssignment) else None
    if parts is None:
        return dims_to_mesh(checked)
    in_order = sorted((digit for part in parts for digit in part), reverse=True)
    dim_axes = tuple(tuple(AxisRef(f"axis_{in_order.index(digit)}") for digit in part) for part in parts)
    return _generated_mesh([digit.size for digit in in_order], None), dim_axes


def dims_to_mesh(tile: Tile) -> tuple[Mesh, DimAxes]:
    """Make up a mesh with one axis per dimension of a tile assignment, over devices in the order of the tile.

    Raises:
        CommlensError: for ids that no mesh can have.

    Example:
        >>> mesh, _ = dims_to_mesh(IotaTileAssignment((2, 1, 4), (4, 2), (1, 0)))
        >>> str(mesh)
        "mesh['axis_0'=2,'axis_1'=4], device_ids=([4,2]T(1,0))"
    """
    sizes = [size for size in tile_dims(tile) if size > 1]
    names = iter([f"axis_{index}" for index in range(len(sizes))])
    dim_axes = tuple((AxisRef(next(names)),) if size > 1 else () for size in tile_dims(tile))
    return _generated_mesh(sizes, tile), dim_axes


def _dim_digits(tile: IotaTileAssignment) -> list[tuple[Digit, ...]] | None:
    """The device ids along each dimension as digits; None where one is not made of whole factors of the reshape."""
    places = row_major(tile.dims)
    parts = [tile.values_of(place) for place in places]
    whole = all(count(part) == place.size for part, place in zip(parts, places, strict=True))
    return parts if whole else None


def _generated_mesh(sizes: Sequence[int], order: Tile | None) -> Mesh:
    axes = {f"axis_{index}": size for index, size in enumerate(sizes or [1])}
    if isinstance(order, IotaTileAssignment):
        return Mesh(axes, order.reshape((math.prod(axes.values()),)))
    return Mesh(axes, None if order is None else order.reshape(-1))
