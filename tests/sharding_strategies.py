"""Generated shardings."""

from __future__ import annotations

from math import prod

from hypothesis import assume
from hypothesis import strategies as st

from commlens.errors import CommlensError
from commlens.topology import AxisRef, IotaTileAssignment, Mesh
from commlens.topology.named_sharding import NamedSharding
from commlens.topology.subgroups import SUBGROUPS


@st.composite
def iota_tiles(draw: st.DrawFn) -> IotaTileAssignment:
    """Draw an iota of up to some hundred devices under a shape that need not go with its reshape."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    perm = draw(st.permutations(range(len(sizes))))
    dims: list[int] = []
    left = prod(sizes)
    for _ in range(draw(st.integers(0, 3))):
        dims.append(draw(st.sampled_from([each for each in range(1, left + 1) if left % each == 0])))
        left //= dims[-1]
    return IotaTileAssignment([*dims, left], sizes, perm)


@st.composite
def tilings(draw: st.DrawFn) -> str:
    """Draw the text of a tiled sharding: iota or written out, with subgroups and a shard group."""
    tile = draw(iota_tiles())
    text = str(tile)
    if tile.num_elements > 1 and draw(st.booleans()):
        ids = draw(st.permutations(range(tile.num_elements)))
        text = f"devices=[{','.join(map(str, tile.dims))}]{','.join(map(str, ids))}"
    kinds = draw(st.lists(st.sampled_from(SUBGROUPS), max_size=len(tile.dims) - 1))
    if kinds:
        text += draw(st.sampled_from([" ", ""])) + f"last_tile_dims={{{','.join(kinds)}}}"
    if draw(st.booleans()):
        text += f" {draw(st.sampled_from(['shard_as', 'shard_like']))} {draw(st.integers(0, 9))}"
    return f"{{{text}}}"


def _pieces(draw: st.DrawFn, name: str, size: int) -> list[AxisRef]:
    """Draw a way to use an axis: whole, or in two parts."""
    outer = draw(st.sampled_from([each for each in range(1, size + 1) if size % each == 0]))
    if outer in (1, size):
        return [AxisRef(name)]
    return [AxisRef(name, 1, outer), AxisRef(name, outer, size // outer)]


@st.composite
def named_shardings(draw: st.DrawFn) -> NamedSharding:
    """Draw a sharding by mesh axes, the order of the devices plain, an iota or written out.

    Axes of size 1 cut dimensions or are not used: as subgroups they make XLA forget what it prints.
    """
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=3))
    perm = draw(st.permutations(range(len(sizes))))
    moved = IotaTileAssignment(sizes, [sizes[perm.index(axis)] for axis in range(len(sizes))], perm)
    order = draw(st.none() | st.just(moved) | st.permutations(range(prod(sizes))))
    names = ["a", "b", "data x"][: len(sizes)]
    mesh = Mesh(dict(zip(names, sizes, strict=True)), order)
    pieces = [ref for name, size in mesh.axes for ref in _pieces(draw, name, size)]
    uses = ["unused", *SUBGROUPS, 0, 1, 2]
    trivial = {AxisRef(name) for name, size in mesh.axes if size == 1}
    given_to = [(draw(st.sampled_from([0, "unused"] if ref in trivial else uses)), ref) for ref in pieces]
    lists = {use: tuple(ref for each, ref in given_to if each == use) for use in uses}
    rank = draw(st.integers(0, 3))
    dims = tuple(tuple(draw(st.permutations(lists[dim]))) for dim in range(rank))
    open_dims = tuple(dim for dim in range(rank) if draw(st.booleans()))
    try:
        return NamedSharding(mesh, dims, open_dims, lists["replicated"], lists["unreduced"], lists["manual"])
    except CommlensError:  # parts of one axis side by side: they would have to be written as one
        assume(condition=False)
        raise
