"""Which grid shows a replica group list best."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from commlens.views.device_grid import Axis, Grid, Member, Picture, picture_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlens.analysis import Explanation
    from commlens.topology import Mesh

MOST_CELLS: Final = 512
"""Most devices of which a picture is drawn."""

_USUAL_COLUMNS: Final = 8


def written_picture(explanation: Explanation, width: int) -> Picture | None:
    """Draw the ids of a list in a grid: that of the mesh, else that of the iota, else groups one below another.

    Args:
        explanation: the list.
        width: columns that there are.

    Returns:
        The picture; None where there are too many ids, or they do not fit.
    """
    groups = explanation.groups
    members = members_of(groups or [])
    if min(members, default=-1) < 0:
        return None  # nobody, or ids that are none
    number = max(members) + 1
    mesh = explanation.mesh
    if mesh is not None and number <= mesh.num_devices <= MOST_CELLS:
        return _fitted(Grid(_mesh_axes(mesh), mesh.device_array().reshape(-1).tolist(), members), width)
    return None if number > MOST_CELLS else _fitted(_filled(_own_axes(explanation, number), number, members), width)


def participants_picture(participants: Sequence[Sequence[int]], counts: tuple[int, int], width: int) -> Picture | None:
    """Draw the global ids that take part in a grid of replicas and partitions; None where that is too large."""
    replicas, partitions = counts
    members = members_of(participants)
    if replicas * partitions > MOST_CELLS or not all(0 <= device < replicas * partitions for device in members):
        return None
    axes = (Axis("replica", replicas), Axis("partition", partitions))
    return _fitted(_filled(axes, replicas * partitions, members), width)


def members_of(groups: Sequence[Sequence[int]]) -> dict[int, Member]:
    """Return where each device stands, its first place where it stands in the groups more than once.

    Example:
        >>> members_of([[0, 1], [1]])[1]
        Member(group=0, rank=1, repeated=True)
    """
    members: dict[int, Member] = {}
    for group, devices in enumerate(groups):
        for rank, device in enumerate(devices):
            first = members.get(device)
            members[device] = Member(group, rank) if first is None else first._replace(repeated=True)
    return members


def _filled(axes: tuple[Axis, ...], number: int, members: Mapping[int, Member]) -> Grid:
    """Fill a grid with the ids 0..number-1; what is left over are holes."""
    cells = math.prod(axis.size for axis in axes)
    return Grid(axes, [device if device < number else None for device in range(cells)], members)


def _mesh_axes(mesh: Mesh) -> tuple[Axis, ...]:
    return tuple(Axis(name, size) for name, size in mesh.axes) or (Axis("", 1),)


def _own_axes(explanation: Explanation, number: int) -> tuple[Axis, ...]:
    """Return axes for ids 0..number-1 without a mesh."""
    unfolding = explanation.unfolding
    if unfolding is not None and len(unfolding.reshape_dims) > 1:
        return tuple(Axis(f"d{dim}", size) for dim, size in enumerate(unfolding.reshape_dims))
    size = explanation.num_devices_per_group or 0
    columns = size if 1 < size <= number else min(_USUAL_COLUMNS, number)
    return (Axis("", math.ceil(number / columns)), Axis("", columns))


def _fitted(grid: Grid, width: int) -> Picture | None:
    """Fold long lines into several; None where that does not help."""
    picture = picture_of(grid)
    if picture.width <= width:
        return picture
    *outer, last = grid.axes
    for columns in range(last.size - 1, 1, -1):
        if last.size % columns == 0:
            folded = (*outer, Axis(last.name, last.size // columns, columns), Axis("+" if last.name else "", columns))
            picture = picture_of(Grid(folded, grid.devices, grid.members))
            if picture.width <= width:
                return picture
    return None
