"""Slow twins of the topology maths: loops over devices, no numpy, none of the algebra they are held against."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Ref = tuple[int, int, int]
"""Axis index, pre-size, size; the whole axis has pre-size 1 and its own size."""


def iota(reshape: Sequence[int], perm: Sequence[int]) -> list[int]:
    """Give ``arange(n).reshape(reshape).transpose(perm)`` in row-major order, one coordinate after the other."""
    values: list[int] = []
    for moved in product(*(range(reshape[axis]) for axis in perm)):
        coordinates = dict(zip(perm, moved, strict=True))
        value = 0
        for axis, size in enumerate(reshape):
            value = value * size + coordinates[axis]
        values.append(value)
    return values


def digits(spelt: Sequence[tuple[int, int]]) -> list[int]:
    """Count through ``(stride, size)`` digits, the last one fastest."""
    return [
        sum(stride * step for (stride, _), step in zip(spelt, steps, strict=True))
        for steps in product(*(range(size) for _, size in spelt))
    ]


def transpose(values: Sequence[int], dims: Sequence[int], perm: Sequence[int]) -> list[int]:
    """Transpose a row-major array."""
    moved: list[int] = []
    for steps in product(*(range(dims[axis]) for axis in perm)):
        coordinates = dict(zip(perm, steps, strict=True))
        position = 0
        for axis, size in enumerate(dims):
            position = position * size + coordinates[axis]
        moved.append(values[position])
    return moved


def rows(values: Sequence[int], size: int) -> list[list[int]]:
    """Cut into groups of one size."""
    return [list(values[start : start + size]) for start in range(0, len(values), size)]


def mesh_groups(sizes: Sequence[int], order: Sequence[int], refs: Sequence[Ref]) -> list[list[int]]:
    """Sort every device into its group by its coordinates apart from the listed axes, and there by those on them."""
    groups: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {}
    for device, coordinates in zip(order, product(*map(range, sizes)), strict=True):
        rest = list(coordinates)
        inside: list[int] = []
        for axis, pre_size, size in refs:
            unit = sizes[axis] // (pre_size * size)
            step = coordinates[axis] // unit % size
            inside.append(step)
            rest[axis] -= step * unit
        groups.setdefault(tuple(rest), []).append((tuple(inside), device))
    return [[device for _, device in sorted(groups[key])] for key in sorted(groups)]


def axes(groups: Sequence[Sequence[int]], sizes: Sequence[int], order: Sequence[int]) -> tuple[Ref, ...] | None:
    """Find the one list of axes with these groups, in any order, by trying them all."""
    positions = {device: position for position, device in enumerate(order)}
    try:
        wanted = [tuple(positions[device] for device in group) for group in groups]
    except KeyError:
        return None
    return all_axes(tuple(sizes)).get(tuple(sorted(wanted)))


@cache
def all_axes(sizes: tuple[int, ...]) -> dict[tuple[tuple[int, ...], ...], tuple[Ref, ...]]:
    """Every list of axes and sub-axes of a mesh, by its sorted groups of positions.

    Lists with an axis of size 1, or with neighbours that could be one sub-axis, are spellings of others and left out.
    """
    found: dict[tuple[tuple[int, ...], ...], tuple[Ref, ...]] = {}
    each = list(parts(sizes))
    tried: list[tuple[Ref, ...]] = [()]
    while tried:
        refs = tried.pop()
        tiling = tile(sizes, refs)
        if tiling is not None:
            found[tiling] = refs
            tried += [(*refs, ref) for ref in each if not refs or not _continues(refs[-1], ref)]
    return found


def parts(sizes: Sequence[int]) -> Iterator[Ref]:
    """Every axis and sub-axis of a mesh."""
    for axis, whole in enumerate(sizes):
        for pre_size, size in product(range(1, whole + 1), range(2, whole + 1)):
            if whole % (pre_size * size) == 0:
                yield axis, pre_size, size


def _unit(sizes: Sequence[int], ref: Ref) -> int:
    axis, pre_size, size = ref
    return prod(sizes[axis:]) // (pre_size * size)


def _continues(outer: Ref, inner: Ref) -> bool:
    return outer[0] == inner[0] and outer[1] * outer[2] == inner[1]


def tile(sizes: Sequence[int], refs: Sequence[Ref]) -> tuple[tuple[int, ...], ...] | None:
    """Cover all positions by translates of the listed axes: the least one that is free must begin the next."""
    offsets = digits([(_unit(sizes, ref), ref[2]) for ref in refs])
    free = set(range(prod(sizes)))
    tiles: list[tuple[int, ...]] = []
    while free:
        start = min(free)
        translate = tuple(start + offset for offset in offsets)
        if not free.issuperset(translate) or len(set(translate)) != len(translate):
            return None
        free -= set(translate)
        tiles.append(translate)
    return tuple(tiles)
