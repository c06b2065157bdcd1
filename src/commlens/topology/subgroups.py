"""The last dimensions of a tile assignment that cut no dimension of the array: its subgroups.

Source: ``HloSharding::Subgroup`` and ``HloSharding::PartialTile``, xla/hlo/ir/hlo_sharding.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from commlens.errors import CommlensError
from commlens.topology.digits import split_inner
from commlens.topology.iota import IotaTileAssignment
from commlens.topology.tiles import reshape_tile, tile_array, tile_dims, transpose_tile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.topology.tiles import Tile

Subgroup: TypeAlias = Literal["manual", "unreduced", "replicated"]
"""What the devices along such a dimension do: handle it themselves, hold partial results, or hold copies."""

SUBGROUPS: tuple[Subgroup, ...] = get_args(Subgroup)
"""In the order in which a canonical tile assignment has them."""


def canonical_subgroups(tile: Tile, kinds: Sequence[Subgroup]) -> tuple[Tile | None, tuple[Subgroup, ...]]:
    """Bring a tile assignment with subgroups into its canonical form.

    Subgroups of one kind are joined and all put in the order of :data:`SUBGROUPS`; those of size 1 are dropped; the
    devices that hold copies of one tile ascend. A tile that cuts nothing, with one kind of subgroup, says no more than
    that kind.

    Args:
        tile: the tile assignment.
        kinds: what its last dimensions are.

    Returns:
        The tile and its subgroups; None and the one kind where nothing is cut.

    Raises:
        CommlensError: for more subgroups than dimensions, and for an iota that has to be written out and is too large
            for that.

    Example:
        >>> tile, kinds = canonical_subgroups(IotaTileAssignment((2, 2, 2)), ("replicated", "manual"))
        >>> str(tile), kinds
        ('devices=[2,2,2]<=[2,2,2]T(0,2,1)', ('manual', 'replicated'))
    """
    dims = tile_dims(tile)
    cut = len(dims) - len(kinds)
    if cut < 0:
        msg = f"expected at most {len(dims)} kinds for the last of {len(dims)} tile dimensions, found {len(kinds)}"
        raise CommlensError(msg)
    places = {kind: [cut + place for place, each in enumerate(kinds) if each == kind] for kind in SUBGROUPS}
    sizes = {kind: math.prod(dims[place] for place in places[kind]) for kind in SUBGROUPS}
    present: tuple[Subgroup, ...] = tuple(kind for kind in SUBGROUPS if sizes[kind] > 1)
    if math.prod(dims[:cut]) == 1 and len(set(present or kinds)) == 1:
        return None, present or tuple(kinds[:1])
    order = [*range(cut), *(place for kind in SUBGROUPS for place in places[kind])]
    shape = [*dims[:cut], *(sizes[kind] for kind in present)] or [1]
    joined = reshape_tile(transpose_tile(tile, order), shape)
    return _ascending_copies(joined) if "replicated" in present else joined, present


def _ascending_copies(tile: Tile) -> Tile:
    """Put the devices along the last dimension in ascending order."""
    if isinstance(tile, IotaTileAssignment):
        halves = split_inner(tile.digits, tile.dims[-1])
        if halves is not None:
            outer, inner = halves
            ascending = IotaTileAssignment.from_digits(tile.dims, [*outer, *sorted(inner, reverse=True)])
            return tile if ascending is None else ascending
    return np.sort(tile_array(tile), axis=-1)
