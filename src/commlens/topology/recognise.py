"""Recognising layouts: written-out ids as iotas, and groups of any spelling as axes of a mesh.

All questions come down to digits (:mod:`commlens.topology.digits`): written-out ids are first read as digits in one
pass of numpy, layouts have theirs at hand.

XLA has no counterpart: it never turns a list into an iota, nor groups into axes. What is found means the same by the
rules of xla/hlo/ir/tile_assignment.cc and xla/hlo/ir/mesh_and_axis.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from commlens.topology.axes import AxisRef, sub_axis
from commlens.topology.digits import Digit, align, count, merge, split_inner
from commlens.topology.iota import IotaTileAssignment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.topology.iota import IntArray
    from commlens.topology.mesh import Mesh


class Groups(Protocol):
    """What :func:`axes_of` asks of a replica group list."""

    def members_on(self, mesh: Mesh) -> tuple[Digit, ...] | None:
        """The positions on the mesh inside every group, counted from its first member, as digits."""
        ...


def digits_of(sequence: IntArray) -> tuple[Digit, ...] | None:
    """Read numbers as digits in normal form, outermost first, in O(n).

    The innermost digit is the longest run with the step of the first two numbers; every run of that length must be a
    translate of it; what is left is the same question about the first number of every run.

    Args:
        sequence: 1-D, one number at least.

    Returns:
        The digits that count exactly like the sequence, or None where there are none.

    Example:
        >>> digits_of(np.array([0, 4, 1, 5, 2, 6]))
        (Digit(stride=1, size=3), Digit(stride=4, size=2))
        >>> digits_of(np.array([0, 1, 3])) is None
        True
    """
    if sequence[0] != 0:
        return None
    digits: list[Digit] = []
    rest = sequence
    while rest.size > 1:
        stride = int(rest[1])
        if stride < 1:
            return None
        breaks = np.flatnonzero(np.diff(rest) != stride)
        size = int(breaks[0]) + 1 if breaks.size else rest.size
        if rest.size % size:
            return None
        rows = rest.reshape(-1, size)
        if len(rows) > 1 and not np.array_equal(rows, rows[:, :1] + rows[0]):
            return None
        digits.append(Digit(stride, size))
        rest = rows[:, 0]
    return tuple(reversed(digits))


def iota_of(ids: IntArray) -> IotaTileAssignment | None:
    """Recognise an array of ids as an iota, in O(n).

    Args:
        ids: of any shape with one id at least.

    Returns:
        The iota of the same shape, or None where no iota has these ids.

    Example:
        >>> str(iota_of(np.array([[0, 2], [1, 3]])))
        'devices=[2,2]<=[2,2]T(1,0)'
        >>> iota_of(np.array([[0, 1], [3, 2]])) is None
        True
    """
    digits = digits_of(ids.reshape(-1)) if ids.size else None
    return None if digits is None else IotaTileAssignment.from_digits(ids.shape, digits)


def members_of_array(positions: IntArray) -> tuple[Digit, ...] | None:
    """The offsets inside a group, as digits, of groups that cover the positions ``0..n-1``.

    By unique tiling (see :mod:`commlens.topology.digits`) nothing has to be known of the first members of the groups.

    Args:
        positions: shape (groups, members).

    Returns:
        The digits, or None where the groups do not cover the positions once each, are no translates of each other, or
        do not count like digits.
    """
    groups, members = positions.shape
    covered = np.zeros(groups * members, dtype=bool)
    covered[positions] = True
    if not members or not covered.all():
        return None
    offsets = positions - positions[:, :1]
    return digits_of(offsets[0]) if np.array_equal(offsets, np.broadcast_to(offsets[0], offsets.shape)) else None


def members_of_layout(tile: IotaTileAssignment, order: IotaTileAssignment | None) -> tuple[Digit, ...] | None:
    """The same for groups and a device order that are both iotas, in the number of their axes.

    Reads the ids of the groups from the inside outward, each digit carried to positions by the order; what has become
    one digit there may be cut anew, so the cut between group and members comes last. A digit that straddles the order
    ends the reading: from there on positions do not advance evenly, and members that reach so far fit no axes.

    Args:
        tile: the groups, of shape (groups, members).
        order: devices by position; None for ``0..n-1``.

    Returns:
        The digits, or None where the members do not advance evenly in every group.
    """
    inner: tuple[Digit, ...] = ()
    for digit in reversed(tile.digits):
        carried = (digit,) if order is None else order.positions_of(digit)
        inner = carried + inner
        if count(carried) != digit.size:
            break
    parts = split_inner(merge(inner), tile.dims[1])
    return None if parts is None else parts[1]


def name_axes(digits: Sequence[Digit], mesh: Mesh) -> tuple[AxisRef, ...] | None:
    """Name the axes and sub-axes that digits of positions run along.

    Args:
        digits: in normal form, outermost first.
        mesh: the mesh the positions belong to.

    Returns:
        One reference per digit and axis, outermost first; None where a digit straddles axes that it does not divide.

    Example:
        >>> from commlens.topology.mesh import Mesh
        >>> [str(ref) for ref in name_axes((Digit(2, 4),), Mesh({"a": 4, "b": 4}))]
        ["'a':(2)2", "'b':(1)2"]
    """
    refs: list[AxisRef] = []
    for digit in digits:
        pieces = align(digit, mesh.axis_sizes)
        if math.prod(piece.digit.size for piece in pieces) != digit.size:
            return None
        for place, part in pieces:
            name, size = mesh.axes[place]
            refs.append(sub_axis(name, size // part.end, part.size, size))
    return tuple(refs)


def axes_of(groups: Groups, mesh: Mesh) -> tuple[AxisRef, ...] | None:
    """The mesh axes that vary inside a group, in the order of the members, outermost first.

    The order of the groups does not matter; the order of the members does, and must be the same in all groups. Axes of
    size 1 never appear, neighbouring sub-axes are merged, and groups of one device have no axes.

    Args:
        groups: a replica group list of any kind.
        mesh: the mesh to name its axes on.

    Returns:
        The references, or None where the groups fit no axes: uneven or irregular groups, devices left out or repeated,
        devices outside the mesh.

    Raises:
        CommlensError: where ids would have to be written out, and are too many; see
            :data:`~commlens.topology.iota.EXPANSION_LIMIT`.

    Source: the references are those of ``MeshAxesReplicaGroupList``, xla/hlo/ir/replica_group.cc; XLA does not look
    for them itself.

    Example:
        >>> from commlens.topology import CollectiveDeviceList, Mesh
        >>> axes_of(CollectiveDeviceList([[4, 6], [5, 7], [0, 2], [1, 3]]), Mesh({"a": 2, "b": 4}))
        (AxisRef(name_or_index='b', pre_size=1, size=2),)
    """
    members = groups.members_on(mesh) if mesh.axes else None
    return None if members is None else name_axes(members, mesh)
