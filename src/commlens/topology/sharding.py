"""Shardings: how the devices share an array.

Source: xla/hlo/ir/hlo_sharding.h and .cc.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from commlens.errors import CommlensError
from commlens.topology.iota import IotaTileAssignment, check_expandable
from commlens.topology.named_sharding import NamedSharding
from commlens.topology.subgroups import SUBGROUPS, canonical_subgroups
from commlens.topology.tiles import as_tile, dims_to_mesh, tile_array, tile_dims, tile_to_mesh, tiles_equal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.topology.subgroups import Subgroup
    from commlens.topology.tiles import Tile, TileLike

ShardingKind: TypeAlias = Literal["replicated", "maximal", "manual", "unknown", "unreduced", "tiled", "tuple"]
"""What a sharding says: all devices hold everything, one does, the program decides, nobody knows, all hold partial
results, each holds a tile; or one sharding per element of a tuple."""


@dataclass(frozen=True, slots=True)
class ShardGroup:
    """Shardings that are to become equal.

    Attributes:
        relation: ``"shard_as"`` or ``"shard_like"``.
        number: which group.

    Example:
        >>> str(ShardGroup("shard_as", 1))
        'shard_as 1'
    """

    relation: Literal["shard_as", "shard_like"]
    number: int

    def __str__(self) -> str:
        return f"{self.relation} {self.number}"


@dataclass(frozen=True, slots=True, eq=False)
class Sharding:
    """How the devices share an array, or the elements of a tuple.

    The constructor brings subgroups into canonical form, so that a sharding prints as XLA prints it:
    ``last_tile_dims={replicated,manual}`` become manual before replicated, subgroups of size 1 vanish, and a tile that
    cuts nothing becomes ``{replicated}``, ``{manual}`` or ``{unreduced}``.

    Args:
        kind: what it says.
        tile: for ``"tiled"`` the tile assignment; for ``"maximal"`` an array with the one device.
        last_tile_dims: what the last dimensions of the tile are, those that cut no dimension of the array.
        metadata: the text between the braces of ``metadata={...}`` as it was written; not printed and not compared.
        elements: for ``"tuple"`` one sharding per element.
        shard_group: the shardings it is to be equal to, if any.
        named: the spelling by mesh axes, if that is how it was written; see :meth:`of_named`.

    Raises:
        CommlensError: for fields that do not go together.

    Example:
        >>> sharding = Sharding("tiled", IotaTileAssignment((4, 1, 2), (2, 4), (1, 0)), ("replicated",))
        >>> str(sharding), sharding.tile_counts, sharding.num_copies, sharding.tile_of(5)
        ('{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}', (4, 1), 2, (1, 0))
    """

    kind: ShardingKind
    tile: Tile | None = None
    last_tile_dims: tuple[Subgroup, ...] = ()
    metadata: str | None = None
    elements: tuple[Sharding, ...] = ()
    shard_group: ShardGroup | None = None
    named: NamedSharding | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _check_kind(self.kind, self.tile, self.last_tile_dims, self.elements)
        if self.tile is None:
            return
        tile: Tile | None = as_tile(self.tile)
        kinds = tuple(self.last_tile_dims)
        if kinds:
            tile, kinds = canonical_subgroups(tile, kinds)
        if tile is None:
            object.__setattr__(self, "kind", kinds[0])
            kinds = ()
        elif not isinstance(tile, IotaTileAssignment):
            tile.flags.writeable = False
        object.__setattr__(self, "tile", tile)
        object.__setattr__(self, "last_tile_dims", kinds)

    @classmethod
    def maximal(cls, device: int, *, metadata: str | None = None, shard_group: ShardGroup | None = None) -> Sharding:
        """One device holds everything.

        Raises:
            CommlensError: for a negative device.

        Example:
            >>> str(Sharding.maximal(3))
            '{maximal device=3}'
        """
        return cls("maximal", np.array([device]), metadata=metadata, shard_group=shard_group)

    @classmethod
    def of_named(cls, named: NamedSharding, metadata: str | None = None) -> Sharding:
        """Take a sharding by mesh axes; all questions about tiles are answered as for the tile assignment it means.

        Raises:
            CommlensError: for a mesh whose order of devices has to be written out and is too large for that.

        Example:
            >>> from commlens.topology import Mesh
            >>> sharding = Sharding.of_named(NamedSharding(Mesh({"a": 2, "b": 4}), (("b",), ())))
            >>> str(sharding), str(sharding.to_tile())
            ("{mesh['a'=2,'b'=4], [{'b'}, {}]}", '{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}')
        """
        if named.mesh.is_maximal:
            return cls("maximal", np.array([named.mesh.device_at(0)]), metadata=metadata, named=named)
        if not named.mesh.axes:
            return cls("replicated", metadata=metadata, named=named)
        tile, kinds = named.tile()
        return cls("tiled", tile, kinds, metadata, named=named)

    def to_tile(self) -> Sharding:
        """The same sharding without its spelling by mesh axes."""
        elements = tuple(each.to_tile() for each in self.elements)
        return Sharding(self.kind, self.tile, self.last_tile_dims, self.metadata, elements, self.shard_group)

    def to_named(self) -> Sharding:
        """The same sharding of an array over a mesh that is made up for it; a named one is itself.

        Raises:
            CommlensError: for a sharding without tiles, and for devices that no mesh can have.

        Example:
            >>> str(Sharding("tiled", IotaTileAssignment((2, 4), (4, 2), (1, 0))).to_named())
            "{mesh['axis_0'=4,'axis_1'=2], [{'axis_1'}, {'axis_0'}]}"
        """
        if self.named is not None:
            return self
        tile, rank = self._tile(), len(self.tile_counts)
        mesh, dim_axes = tile_to_mesh(tile)
        # A mesh fixes the order of devices in a subgroup; where the tile has another, the mesh must be in its order.
        if any(
            list(refs) != sorted(refs, key=lambda ref: mesh.axis_index(ref.name_or_index)) for refs in dim_axes[rank:]
        ):
            mesh, dim_axes = dims_to_mesh(tile)
        lists = dict(zip(self.last_tile_dims, dim_axes[rank:], strict=True))
        manual, unreduced = lists.get("manual", ()), lists.get("unreduced", ())
        return Sharding.of_named(
            NamedSharding(mesh, dim_axes[:rank], unreduced=unreduced, manual=manual), self.metadata
        )

    # --- devices and tiles

    @property
    def device(self) -> int | None:
        """The device of a maximal sharding."""
        return int(tile_array(self.tile)[0]) if self.kind == "maximal" and self.tile is not None else None

    @property
    def num_devices(self) -> int | None:
        """How many devices share the array; None where the sharding does not say."""
        return None if self.tile is None else math.prod(tile_dims(self.tile))

    @property
    def tile_counts(self) -> tuple[int, ...]:
        """Into how many tiles each dimension of the array is cut.

        Raises:
            CommlensError: for a sharding without tiles.
        """
        dims = tile_dims(self._tile())
        return dims[: len(dims) - len(self.last_tile_dims)]

    @property
    def num_copies(self) -> int:
        """How many devices hold copies of one tile; devices of manual and unreduced subgroups hold no copies.

        Raises:
            CommlensError: for a sharding without tiles.
        """
        dims = tile_dims(self._tile())
        return dims[-1] if self.last_tile_dims[-1:] == ("replicated",) else 1

    def tile_of(self, device: int) -> tuple[int, ...]:
        """The coordinates of the tile that a device holds, one per dimension of the array.

        Raises:
            CommlensError: for a sharding without tiles, and a device that it does not have.

        Example:
            >>> Sharding("tiled", IotaTileAssignment((1, 64, 4)), ("replicated",)).tile_of(13)
            (0, 3)
        """
        tile = self._tile()
        if isinstance(tile, IotaTileAssignment):
            index = tile.index_of(device)
        else:
            hits = np.argwhere(tile == device).tolist()
            if not hits:
                msg = f"expected a device of {self}, found {device}"
                raise CommlensError(msg)
            index = tuple(hits[0])
        return index[: len(index) - len(self.last_tile_dims)]

    def devices_of(self, tile_index: Sequence[int]) -> list[int]:
        """The devices that hold a tile, in the order of the tile assignment: its copies, or its subgroups.

        Args:
            tile_index: the coordinates of the tile, one per dimension of the array.

        Raises:
            CommlensError: for a sharding without tiles, and coordinates outside it.

        Example:
            >>> Sharding("tiled", IotaTileAssignment((4, 1, 2), (2, 4), (1, 0)), ("replicated",)).devices_of((1, 0))
            [1, 5]
        """
        tile, counts = self._tile(), self.tile_counts
        index = tuple(tile_index)
        if len(index) != len(counts) or not all(0 <= each < size for each, size in zip(index, counts, strict=True)):
            msg = f"expected the coordinates of a tile inside {list(counts)}, found {list(index)}"
            raise CommlensError(msg)
        if not isinstance(tile, IotaTileAssignment):
            return tile[index].reshape(-1).tolist()
        flat = 0
        for each, size in zip(index, counts, strict=True):
            flat = flat * size + each
        members = math.prod(tile.dims[len(counts) :])
        check_expandable(members)
        return tile.flat_values(np.arange(flat * members, (flat + 1) * members, dtype=np.int64)).tolist()

    def _tile(self) -> Tile:
        if self.kind != "tiled" or self.tile is None:
            msg = f"expected a sharding that cuts an array into tiles, found {self}"
            raise CommlensError(msg)
        return self.tile

    # --- as a value

    def _rest(self) -> tuple[object, ...]:
        return self.kind, self.last_tile_dims, self.elements, self.shard_group, self.named

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sharding):
            return NotImplemented
        return self._rest() == other._rest() and tiles_equal(self.tile, other.tile)

    def __hash__(self) -> int:
        return hash((self._rest(), None if self.tile is None else tile_dims(self.tile)))

    def __str__(self) -> str:
        if self.kind == "tuple":
            return f"{{{', '.join(map(str, self.elements))}}}"
        if self.named is not None:
            return str(self.named)
        parts = [self._main_text()]
        if self.last_tile_dims == ("replicated",):
            parts.append("last_tile_dim_replicate")
        elif self.last_tile_dims:
            parts.append(f"last_tile_dims={{{', '.join(self.last_tile_dims)}}}")
        if self.shard_group is not None:
            parts.append(str(self.shard_group))
        return f"{{{' '.join(parts)}}}"

    def _main_text(self) -> str:
        if self.tile is None:
            return self.kind
        if self.kind == "maximal":
            return f"maximal device={self.device}"
        if isinstance(self.tile, IotaTileAssignment):
            return str(self.tile)
        dims, ids = (",".join(map(str, values)) for values in (self.tile.shape, self.tile.reshape(-1).tolist()))
        return f"devices=[{dims}]{ids}"


def _check_kind(
    kind: ShardingKind, tile: TileLike | None, last_tile_dims: Sequence[Subgroup], elements: Sequence[Sharding]
) -> None:
    if kind not in get_args(ShardingKind):
        msg = f"expected a kind of sharding ({', '.join(get_args(ShardingKind))}), found {kind!r}"
        raise CommlensError(msg)
    wrong = set(last_tile_dims) - set(SUBGROUPS)
    if wrong:
        msg = f"expected last tile dimensions that are {', '.join(SUBGROUPS)}, found {', '.join(sorted(wrong))}"
        raise CommlensError(msg)
    if (tile is not None) != (kind in ("tiled", "maximal")) or (last_tile_dims and kind != "tiled"):
        msg = f"expected a tile assignment with a tiled or maximal sharding and with no other, found kind {kind!r}"
        raise CommlensError(msg)
    if kind == "maximal" and tile is not None and np.shape(tile_array(as_tile(tile))) != (1,):
        msg = "expected an array with the one device of a maximal sharding, found more"
        raise CommlensError(msg)
    if kind != "tuple" and elements:
        msg = f"expected elements with a tuple of shardings only, found kind {kind!r}"
        raise CommlensError(msg)
