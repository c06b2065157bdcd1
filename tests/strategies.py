"""Hypothesis strategies for topology values, shared by all tests."""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st

from commlens.topology import AxisRef, IotaReplicaGroupList, IotaTileAssignment, Mesh, MeshAxesReplicaGroupList

NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16, 18, 24)
"""Numbers of devices with many, few and odd factors, small enough for twins that try everything."""

numbers = st.sampled_from(NUMBERS)


@st.composite
def factorings(draw: st.DrawFn, number: int) -> tuple[int, ...]:
    """Sizes with this product, in any order, some of them 1."""
    sizes: list[int] = []
    left = number
    while left > 1:
        size = draw(st.sampled_from([d for d in range(2, left + 1) if left % d == 0]))
        sizes.append(size)
        left //= size
    sizes += [1] * draw(st.integers(0 if sizes else 1, 2))
    return tuple(draw(st.permutations(sizes)))


@st.composite
def iota_orders(draw: st.DrawFn, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Reshape sizes and a transposition of them, not canonical."""
    reshape = draw(factorings(number))
    return reshape, tuple(draw(st.permutations(range(len(reshape)))))


@st.composite
def tiles(draw: st.DrawFn) -> IotaTileAssignment:
    """Iotas of any shape."""
    number = draw(numbers)
    return IotaTileAssignment(draw(factorings(number)), *draw(iota_orders(number)))


@st.composite
def iota_groups(draw: st.DrawFn, number: int | None = None) -> IotaReplicaGroupList:
    """Iota lists."""
    number = draw(numbers) if number is None else number
    members = draw(st.sampled_from([size for size in range(1, number + 1) if number % size == 0]))
    return IotaReplicaGroupList(number // members, members, *draw(iota_orders(number)))


@st.composite
def meshes(draw: st.DrawFn, number: int | None = None, *, explicit: bool = True) -> Mesh:
    """Meshes of all three orders: 0..n-1, an iota, and, if allowed, written out."""
    number = draw(numbers) if number is None else number
    sizes = draw(factorings(number))
    laid_out = st.none() | iota_orders(number)
    order = draw(laid_out | st.permutations(range(number)) if explicit else laid_out)
    return Mesh([(f"x{axis}", size) for axis, size in enumerate(sizes)], order)


@st.composite
def mesh_groups(draw: st.DrawFn, mesh: Mesh | None = None) -> MeshAxesReplicaGroupList:
    """Mesh-axes lists: axes are cut into parts, some parts are taken in any order, what can be merged is."""
    mesh = draw(meshes()) if mesh is None else mesh
    parts: list[AxisRef] = []
    for name, size in mesh.axes:
        pre_size = 1
        for part in draw(factorings(size)):
            if part > 1:
                parts.append(AxisRef(name) if part == size else AxisRef(name, pre_size, part))
            pre_size *= part
    taken = draw(st.permutations(parts))[: draw(st.integers(0, len(parts)))]
    refs: list[AxisRef] = []
    for ref in taken:
        merged = refs[-1].merge(ref, dict(mesh.axes)[str(ref.name_or_index)]) if refs else None
        if merged is not None:
            refs[-1] = merged
        else:
            refs.append(ref)
    return MeshAxesReplicaGroupList(mesh, refs)


explicit_groups = st.lists(st.lists(st.integers(-3, 20), max_size=5), max_size=5)
"""Groups as a broken compiler might write them: uneven, empty, repeated, negative."""


def order_of(mesh: Mesh) -> list[int]:
    """The devices of a mesh one by one, asked for one by one."""
    return [mesh.device_at(position) for position in range(prod(mesh.axis_sizes))]
