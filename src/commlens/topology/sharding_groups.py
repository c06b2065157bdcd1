"""From shardings to the replica groups of the collectives that move data between their tiles.

A group holds the devices whose tile coordinates agree but for the dimensions that a collective reduces or gathers over.
The groups of an iota stay an iota where one says them.

Source: xla/service/spmd/spmd_partitioner_util.cc, ``GetPartitionGroupsForReplication``,
``GetIotaPartitionGroupsForReplication``, ``GetPartitionGroupsAcrossTargetDims`` and their iota and mesh forms.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from commlens.errors import CommlensError
from commlens.topology.axes import AxisRef
from commlens.topology.device_lists import CollectiveDeviceList, IotaReplicaGroupList, MeshAxesReplicaGroupList
from commlens.topology.iota import IotaTileAssignment
from commlens.topology.recognise import axes_of
from commlens.topology.sharding import Sharding
from commlens.topology.tiles import as_tile, reshape_tile, resolve_dims, tile_dims, transpose_tile
from commlens.topology.validation import checked_integers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.topology.mesh import Mesh
    from commlens.topology.tiles import Tile, TileLike


def replication_groups(tile: TileLike | Sharding, dims: Iterable[int]) -> CollectiveDeviceList | IotaReplicaGroupList:
    """Group the devices whose tile coordinates differ in some dimensions only.

    Args:
        tile: a tile assignment, or a sharding that has one. Its last dimensions may be subgroups; the copies of a
            partial replication are grouped by naming theirs.
        dims: the dimensions that vary inside a group; their order does not matter.

    Returns:
        Groups by the row-major index of the other dimensions, members row-major over ``dims`` in ascending order: an
        iota if the tile is one and one says it, else a list.

    Raises:
        CommlensError: for dimensions that the tile does not have, or that are named twice; for a sharding without
            tiles; for a list that is too large to write out.

    Example:
        >>> tile = IotaTileAssignment((2, 2, 2))
        >>> str(replication_groups(tile, [1])), str(replication_groups(tile, [2, 0]))
        ('[4,2]<=[2,2,2]T(0,2,1)', '[2,4]<=[2,2,2]T(1,0,2)')
    """
    assignment = _tile_of(tile)
    sizes = tile_dims(assignment)
    inner = _distinct_dims(dims, len(sizes))
    return _group_last(assignment, [dim for dim in range(len(sizes)) if dim not in inner], inner)


def all_reduce_groups_along_sharding_dims(
    tile: TileLike | Sharding, dims: Iterable[int]
) -> CollectiveDeviceList | IotaReplicaGroupList:
    """Give the groups of an all-reduce that adds up what the devices along some tile dimensions hold.

    Args, returns and errors are those of :func:`replication_groups`.

    Source: ``SpmdPartitioner::AllReduceAlongShardingDims``.

    Example:
        >>> str(all_reduce_groups_along_sharding_dims(IotaTileAssignment((2, 4)), [0]))
        '[4,2]<=[2,4]T(1,0)'
    """
    return replication_groups(tile, dims)


def all_gather_groups(tile: TileLike | Sharding, dims: Iterable[int]) -> CollectiveDeviceList | IotaReplicaGroupList:
    """Give the groups of an all-gather that puts together the tiles along some tile dimensions.

    Args, returns and errors are those of :func:`replication_groups`.

    Source: ``SpmdPartitioner::AllGatherShards``.

    Example:
        >>> str(all_gather_groups(IotaTileAssignment((4, 2)), [0]))
        '[2,4]<=[4,2]T(1,0)'
    """
    return replication_groups(tile, dims)


def across_dims_groups(
    tile: TileLike | Sharding, dims: Iterable[int], sizes: Iterable[int]
) -> CollectiveDeviceList | IotaReplicaGroupList:
    """Group runs of neighbouring tiles along some dimensions, such as two by two.

    Args:
        tile: as for :func:`replication_groups`.
        dims: the dimensions to group along.
        sizes: per named dimension how many neighbours make a group; each divides its dimension.

    Returns:
        Groups by the row-major index of the runs, members row-major inside a run, dimensions in ascending order: an
        iota if the tile is one and one says it, else a list.

    Raises:
        CommlensError: as :func:`replication_groups`, and for sizes that do not divide their dimensions.

    Source: ``GetPartitionGroupsAcrossTargetDims``.

    Example:
        >>> groups = across_dims_groups(IotaTileAssignment((4, 4)), [0, 1], [2, 2])
        >>> str(groups), groups.group(0)
        ('[4,4]<=[2,2,2,2]T(0,2,1,3)', [0, 1, 4, 5])
    """
    assignment = _tile_of(tile)
    runs = _run_sizes(dims, sizes, tile_dims(assignment))
    cut: list[int] = []
    outer: list[int] = []
    inner: list[int] = []
    for dim, size in enumerate(tile_dims(assignment)):
        run = runs.get(dim, 1)
        outer.append(len(cut))
        cut.append(size // run)
        if dim in runs:
            inner.append(len(cut))
            cut.append(run)
    return _group_last(reshape_tile(assignment, cut), outer, inner)


def named_replication_groups(
    mesh: Mesh, dim_axes: Iterable[Iterable[AxisRef | str | int]], dims: Iterable[int]
) -> MeshAxesReplicaGroupList | None:
    """Give the groups of :func:`replication_groups` by mesh axes, for an array that is cut along mesh axes.

    Args:
        mesh: a mesh with axes.
        dim_axes: per dimension of the array the axes it is cut along, outermost first.
        dims: the dimensions that vary inside a group. Their order is kept: it is the order of the members.

    Returns:
        Groups over the axes of those dimensions, neighbouring sub-axes joined; None where those have no axes.

    Raises:
        CommlensError: for invalid references, and dimensions that do not exist or are named twice.

    Source: newer ``GetMeshAxesPartitionGroupsForReplication``.

    Example:
        >>> from commlens.topology import Mesh
        >>> groups = named_replication_groups(Mesh({"a": 2, "b": 2}), [["b"], ["a"]], [0, 1])
        >>> str(groups), groups.groups()
        ("mesh['a'=2,'b'=2] {'b','a'}", [[0, 2, 1, 3]])
    """
    cut = resolve_dims(mesh, dim_axes)
    wanted = _distinct_dims(dims, len(cut), keep_order=True)
    return _mesh_groups(mesh, [ref for dim in wanted for ref in cut[dim]])


def named_across_dims_groups(
    mesh: Mesh, dim_axes: Iterable[Iterable[AxisRef | str | int]], dims: Iterable[int], sizes: Iterable[int]
) -> MeshAxesReplicaGroupList | None:
    """Give the groups of :func:`across_dims_groups` by mesh axes, for an array that is cut along mesh axes.

    Of each dimension the minor-most axes are taken until the size is met; the last one taken is cut to its minor part.

    Args:
        mesh: a mesh with axes.
        dim_axes: per dimension of the array the axes it is cut along, outermost first.
        dims: the dimensions to group along. Their order is kept: it is the order of the members.
        sizes: per named dimension how many neighbours make a group.

    Returns:
        Groups over those axes, neighbouring sub-axes joined; None where there are no axes, or where an axis would have
        to be cut at a size that does not divide it.

    Raises:
        CommlensError: for invalid references, and dimensions that do not exist, are named twice or whose size does not
            divide them.

    Source: newer ``GetMeshAxesPartitionGroupsAcrossTargetDims``.

    Example:
        >>> from commlens.topology import Mesh
        >>> str(named_across_dims_groups(Mesh({"a": 4, "b": 2, "c": 3}), [["a", "b"], ["c"]], [0], [4]))
        "mesh['a'=4,'b'=2,'c'=3] {'a':(2)2,'b'}"
    """
    cut = resolve_dims(mesh, dim_axes)
    counts = [math.prod(mesh.digit_of(ref).size for ref in refs) for refs in cut]
    wanted = _distinct_dims(dims, len(cut), keep_order=True)
    runs = _run_sizes(wanted, sizes, counts)
    taken = [_minor_part(mesh, cut[dim], runs[dim]) for dim in wanted]
    if any(refs is None for refs in taken):
        return None
    return _mesh_groups(mesh, [ref for refs in taken if refs is not None for ref in refs])


def sharding_axes(sharding: Sharding, mesh: Mesh) -> tuple[tuple[AxisRef, ...] | None, ...]:
    """Name the mesh axes that each tile dimension of a sharding runs along.

    Args:
        sharding: a sharding with tiles.
        mesh: the mesh to name its axes on.

    Returns:
        Per tile dimension, subgroups at the end among them, the axes, outermost first; None where there are none.

    Raises:
        CommlensError: for a sharding without tiles.

    Example:
        >>> from commlens.topology import Mesh
        >>> sharding = Sharding("tiled", IotaTileAssignment((4, 1, 2), (2, 4), (1, 0)), ("replicated",))
        >>> [[str(ref) for ref in refs] for refs in sharding_axes(sharding, Mesh({"model": 2, "batch": 4}))]
        [["'batch'"], [], ["'model'"]]
    """
    assignment = _tile_of(sharding)
    alone = axes_of(replication_groups(assignment, []), mesh)  # the answer for any dimension of size 1: may be many
    return tuple(
        alone if size == 1 else axes_of(replication_groups(assignment, [dim]), mesh)
        for dim, size in enumerate(tile_dims(assignment))
    )


def _tile_of(tile: TileLike | Sharding) -> Tile:
    if not isinstance(tile, Sharding):
        return as_tile(tile)
    if tile.kind != "tiled" or tile.tile is None:
        msg = f"expected a sharding that cuts an array into tiles, found {tile}"
        raise CommlensError(msg)
    return tile.tile


def _group_last(tile: Tile, outer: list[int], inner: list[int]) -> CollectiveDeviceList | IotaReplicaGroupList:
    """Number the groups by the outer dimensions, and their members by the inner ones."""
    sizes = tile_dims(tile)
    dims = (math.prod(sizes[dim] for dim in outer), math.prod(sizes[dim] for dim in inner))
    moved = reshape_tile(transpose_tile(tile, [*outer, *inner]), dims)
    return (
        IotaReplicaGroupList.from_tile(moved) if isinstance(moved, IotaTileAssignment) else CollectiveDeviceList(moved)
    )


def _distinct_dims(dims: Iterable[int], number: int, *, keep_order: bool = False) -> list[int]:
    found = list(checked_integers(dims, "dimensions"))
    if len(set(found)) < len(found) or not all(0 <= dim < number for dim in found):
        msg = f"expected distinct dimensions in 0..{number - 1}, found {found}"
        raise CommlensError(msg)
    return found if keep_order else sorted(found)


def _run_sizes(dims: Iterable[int], sizes: Iterable[int], counts: Sequence[int]) -> dict[int, int]:
    """Give the size of the runs by dimension."""
    wanted = _distinct_dims(dims, len(counts), keep_order=True)
    runs = checked_integers(sizes, "sizes")
    if len(runs) != len(wanted):
        msg = f"expected one size per dimension, found {len(runs)} sizes for {len(wanted)} dimensions"
        raise CommlensError(msg)
    for dim, run in zip(wanted, runs, strict=True):
        if run < 1 or counts[dim] % run:
            msg = f"expected a size that divides the {counts[dim]} tiles along dimension {dim}, found {run}"
            raise CommlensError(msg)
    return dict(zip(wanted, runs, strict=True))


def _minor_part(mesh: Mesh, refs: Sequence[AxisRef], size: int) -> list[AxisRef] | None:
    """Take references from the minor end until their sizes multiply to a size, the last one cut to its minor part."""
    taken: list[AxisRef] = []
    left = size
    for ref in reversed(refs):
        whole = mesh.digit_of(ref).size
        if left == 1:
            break
        if left % whole == 0:
            taken.insert(0, ref)
            left //= whole
            continue
        if whole % left:
            return None
        pre_size = (ref.pre_size or 1) * (whole // left)
        taken.insert(0, AxisRef(ref.name_or_index, pre_size, left))
        left = 1
    return taken if left == 1 else None


def _mesh_groups(mesh: Mesh, refs: Sequence[AxisRef]) -> MeshAxesReplicaGroupList | None:
    joined = list(_join_neighbours(mesh, refs))
    return MeshAxesReplicaGroupList(mesh, joined) if joined else None


def _join_neighbours(mesh: Mesh, refs: Iterable[AxisRef]) -> Iterator[AxisRef]:
    """Join references with those that continue them."""
    pending: AxisRef | None = None
    for ref in refs:
        size = mesh.axes[mesh.axis_index(ref.name_or_index)][1]
        joined = None if pending is None else pending.merge(ref, size)
        if joined is None and pending is not None:
            yield pending
        pending = ref if joined is None else joined
    if pending is not None:
        yield pending
