"""Text of shardings, as the attribute ``sharding=`` of HLO text has them.

Source: ``HloParserImpl::ParseSharding`` and ``ParseNamedSharding``, xla/hlo/parser/hlo_parser.cc. The grammar in short:

    sharding  {replicated}   {maximal device=0}   {manual}   {unknown}   {unreduced}   {devices=TILE}   {NAMED}
              {{...}, {...}} for a tuple
    TILE      [2,4]<=[8]   [4,2]<=[2,4]T(1,0)   [2,2]0,2,1,3
    NAMED     mesh['a'=2,'b'=4], [{'a'}, {'b':(1)2, ?}], replicated={'b':(2)2}
              mesh['a'=2], replicated   maximal_mesh[device_id=0]

With every form but the named one may stand, in any order: last_tile_dim_replicate, last_tile_dims={manual,...},
shard_as 1, shard_like 1; with all metadata={...}.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from commlens.errors import CommlensError, GrammarError
from commlens.topology.device_list_text import at_mesh, placed, read_axes, read_iota_order, read_mesh, read_ref
from commlens.topology.iota import IotaTileAssignment
from commlens.topology.named_sharding import NamedSharding
from commlens.topology.sharding import ShardGroup, Sharding
from commlens.topology.subgroups import SUBGROUPS
from commlens.topology.tiles import as_tile
from commlens.topology.tokens import Cursor
from commlens.topology.validation import device_count, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlens.topology.axes import AxisRef
    from commlens.topology.mesh import Mesh
    from commlens.topology.sharding import ShardingKind
    from commlens.topology.subgroups import Subgroup
    from commlens.topology.tiles import Tile

_KINDS: Mapping[str, ShardingKind] = MappingProxyType(
    {
        "replicated": "replicated",
        "maximal": "maximal",
        "manual": "manual",
        "unknown": "unknown",
        "unreduced": "unreduced",
    }
)
_ROLES: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(_KINDS, "kind")
    | {"devices": "tile assignment", "device": "device", "metadata": "metadata"}
    | dict.fromkeys(("last_tile_dim_replicate", "last_tile_dims"), "list of last tile dimensions")
    | dict.fromkeys(("shard_as", "shard_like"), "shard group")
)
"""The attributes of a sharding; of those with one role it has at most one."""

_EXPECTED = "'devices=', a mesh, a kind of sharding (replicated, maximal, manual, unknown, unreduced) or '}'"


def parse_sharding(text: str) -> Sharding:
    """Read a sharding in any form.

    Args:
        text: the sharding and nothing else, in braces; white space and comments may stand between tokens.

    Raises:
        GrammarError: where the text breaks the grammar, a tile assignment has another number of devices than of tiles
            or repeats one, or a mesh or an axis reference is invalid.

    Example:
        >>> str(parse_sharding("{devices=[2,2,2]<=[8] last_tile_dims={replicated, manual}}"))
        '{devices=[2,2,2]<=[2,2,2]T(0,2,1) last_tile_dims={manual, replicated}}'
        >>> parse_sharding("{devices=[2,2]<=[16]}")
        Traceback (most recent call last):
        commlens.errors.GrammarError: expected as many devices as tiles, found 4 tiles in [2, 2] against 16 devices
    """
    cursor = Cursor(text)
    cursor.expect("{", "to start a sharding")
    if cursor.at("{") or cursor.at("}"):
        sharding = Sharding("tuple", elements=tuple(_read_elements(cursor, text)))
    else:
        sharding = _read_single(cursor, text)
    cursor.expect_end()
    return sharding


def _read_elements(cursor: Cursor, text: str) -> Iterator[Sharding]:
    """Take the shardings of the elements of a tuple, and the brace behind them."""
    more = not cursor.at("}")
    while more:
        cursor.expect("{", "to start the sharding of an element of the tuple")
        yield _read_single(cursor, text)
        more = cursor.accept(",")
    cursor.expect("}", "to end the tuple of shardings")


def _read_single(cursor: Cursor, text: str) -> Sharding:
    """Take the sharding of one array, from behind its brace to the closing one."""
    start = cursor.token.start
    if at_mesh(cursor):
        return _read_named(cursor, text, start)
    attributes = _Attributes()
    while not cursor.accept("}"):
        attributes.read(cursor, text)
    with placed(start):
        return attributes.sharding()


@dataclass(slots=True)
class _Attributes:
    """The attributes of one sharding, as far as they have been read."""

    kind: ShardingKind | None = None
    tile: Tile | None = None
    device: int | None = None
    last_tile_dims: tuple[Subgroup, ...] = ()
    metadata: str | None = None
    shard_group: ShardGroup | None = None
    seen: set[str] = field(default_factory=set[str])

    def read(self, cursor: Cursor, text: str) -> None:
        """Take one attribute.

        Raises:
            GrammarError: for an unknown or repeated attribute, and for faults inside it.
        """
        token = cursor.token
        name = token.text
        role = _ROLES.get(name) if cursor.at_name() else None
        if role is None:
            cursor.fail(_EXPECTED)
        if role in self.seen:
            msg = f"expected one {role} in a sharding, found another, {name!r}; keep one of them"
            raise GrammarError(msg, position=token.start)
        self.seen.add(role)
        cursor.take()
        if name in _KINDS:
            self.kind = _KINDS[name]
        elif name == "last_tile_dim_replicate":
            self.last_tile_dims = ("replicated",)
        elif name == "shard_as" or name == "shard_like":
            self.shard_group = ShardGroup(name, cursor.integer("the number of a shard group"))
        else:
            cursor.expect("=", f"after {name!r}")
            self._read_value(name, cursor, text)

    def _read_value(self, name: str, cursor: Cursor, text: str) -> None:
        """Take what stands behind the ``=`` of an attribute."""
        if name == "devices":
            self.tile = _read_tile(cursor)
        elif name == "device":
            self.device = cursor.integer("a device id")
        elif name == "last_tile_dims":
            self.last_tile_dims = tuple(cursor.items("{", "}", lambda: _read_subgroup(cursor)))
        else:
            self.metadata = _read_raw_braces(cursor, text)

    def sharding(self) -> Sharding:
        """The sharding that the attributes make up together.

        Raises:
            CommlensError: where they do not go together.
        """
        kind = self.kind or "tiled"
        tile = self.tile
        if self.kind is None and tile is None:
            msg = f"expected 'devices=' or a kind of sharding ({', '.join(_KINDS)}), found neither"
            raise CommlensError(msg)
        single = tile is not None and not isinstance(tile, IotaTileAssignment) and tile.size == 1
        if kind == "maximal" and tile is None and self.device is not None:
            tile = as_tile(np.array([self.device]))
        elif self.device is not None or single != (kind == "maximal"):
            msg = "expected one device with a maximal sharding and with no other; write {maximal device=...}"
            raise CommlensError(msg)
        return Sharding(kind, tile, self.last_tile_dims, self.metadata, shard_group=self.shard_group)


def _read_tile(cursor: Cursor) -> Tile:
    """Take a tile assignment, ``[2,4]<=[8]`` or ``[2,2]0,2,1,3``."""
    start = cursor.token.start
    dims = cursor.integers("[", "]", "a number of tiles")
    if cursor.accept("<="):
        reshape, perm = read_iota_order(cursor)
        with placed(start):
            _check_number(dims, device_count(reshape))
            return IotaTileAssignment(dims, reshape, perm)
    ids = [cursor.integer("'<=' or a device id")]
    while cursor.accept(","):
        ids.append(cursor.integer("a device id"))
    with placed(start):
        _check_number(dims, len(ids))
        return as_tile(np.array(ids, dtype=np.int64).reshape(dims))


def _check_number(dims: list[int], devices: int) -> None:
    if not dims or min(dims) < 1:
        msg = f"expected numbers of tiles of at least 1, found {shorten(dims)}"
        raise CommlensError(msg)
    tiles = device_count(dims)
    if tiles != devices:
        msg = f"expected as many devices as tiles, found {tiles} tiles in {shorten(dims)} against {devices} devices"
        raise CommlensError(msg)


def _read_subgroup(cursor: Cursor) -> Subgroup:
    return _accept_subgroup(cursor) or cursor.fail(f"a kind of last tile dimension ({', '.join(SUBGROUPS)})")


def _accept_subgroup(cursor: Cursor) -> Subgroup | None:
    for kind in SUBGROUPS:
        if cursor.accept(kind):
            return kind
    return None


def _read_raw_braces(cursor: Cursor, text: str) -> str:
    """Take a block in braces as it stands, and give what is between them."""
    start = cursor.token.start
    if not cursor.at("{"):
        cursor.fail("'{' to start metadata")
    depth = 0
    while True:
        if cursor.token.start == len(text):
            cursor.fail("'}' to end metadata")
        depth += cursor.at("{") - cursor.at("}")
        token = cursor.take()
        if not depth:
            return text[start + 1 : token.start].strip()


def _read_named(cursor: Cursor, text: str, start: int) -> Sharding:
    """Take a sharding by mesh axes, from its mesh to the closing brace."""
    mesh = read_mesh(cursor)
    dims: list[list[AxisRef | None]] = []
    lists: dict[Subgroup, list[AxisRef]] = {kind: [] for kind in SUBGROUPS}
    whole = None
    if not mesh.is_maximal:
        cursor.accept(",")
        whole = _accept_subgroup(cursor) if mesh.axes or cursor.at("replicated") else None
        if whole is None:
            dims = cursor.items("[", "]", lambda: cursor.items("{", "}", lambda: _read_dim_axis(cursor, mesh)))
        elif whole != "replicated":
            lists[whole] = [mesh.resolve(name) for name in mesh.axis_names]
    metadata = None
    while cursor.accept(","):
        if cursor.accept("metadata"):
            cursor.expect("=", "after 'metadata'")
            metadata = _read_raw_braces(cursor, text)
        else:
            kind, refs = _read_axes_of_kind(cursor, mesh, whole)
            lists[kind] += refs
    cursor.expect("}", "to end the sharding")
    with placed(start):
        named = NamedSharding(
            mesh,
            tuple(tuple(ref for ref in refs if ref is not None) for refs in dims),
            tuple(dim for dim, refs in enumerate(dims) if None in refs),
            **{kind: tuple(refs) for kind, refs in lists.items()},
        )
        return Sharding.of_named(named, metadata)


def _read_dim_axis(cursor: Cursor, mesh: Mesh) -> AxisRef | None:
    """Take a reference, or the ``?`` behind the last one of a dimension that may be cut further."""
    if not cursor.accept("?"):
        return read_ref(cursor, mesh)
    if not cursor.at("}"):
        cursor.fail("'}' after '?'")
    return None


def _read_axes_of_kind(cursor: Cursor, mesh: Mesh, whole: Subgroup | None) -> tuple[Subgroup, list[AxisRef]]:
    """Take ``manual={'a'}`` or its like."""
    if whole is not None or mesh.is_maximal:
        cursor.fail("'metadata='")
    kind = _accept_subgroup(cursor)
    if kind is None:
        cursor.fail("'replicated=', 'unreduced=', 'manual=' or 'metadata='")
    cursor.expect("=", f"after {kind!r}")
    return kind, read_axes(cursor, mesh)
