"""Naming what varies: which mesh axes a collective runs along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.topology import AxisRef, axes_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.analysis.participation import Participation
    from commlens.topology import Mesh, SourceTargetPairs

NO_AXES: Final = "none"
"""How a key of totals spells groups of one device."""

UNKNOWN_AXES: Final = "?"
"""How a key of totals spells groups that fit no axes, and all groups where no mesh is known."""


class AxesKey(NamedTuple):
    """Under which axes totals count a row. Keys sort in mesh order, then ``"none"``, then ``"?"``.

    Attributes:
        order: what they sort by.
        text: the axes in mesh order, joined by commas.
    """

    order: tuple[tuple[int, int, int], ...]
    text: str


def axes_along(participation: Participation, mesh: Mesh) -> tuple[AxisRef, ...] | None:
    """Return the axes of a mesh that a collective runs along.

    Args:
        participation: who takes part.
        mesh: the mesh that names axes.

    Returns:
        For groups the axes and sub-axes in the order of the members, outermost first; for pairs the whole axes whose
        coordinate differs in at least one of them, in mesh order. None where they fit no axes or are not known.
    """
    if participation.pairs is not None:
        return axes_of_pairs(participation.pairs, mesh)
    return None if participation.groups is None else axes_of(participation.groups, mesh)


def axes_of_pairs(pairs: SourceTargetPairs, mesh: Mesh) -> tuple[AxisRef, ...] | None:
    """Return the whole axes along which at least one pair moves data, in mesh order; None for ids outside the mesh.

    Example:
        >>> from commlens.topology import Mesh, SourceTargetPairs
        >>> axes_of_pairs(SourceTargetPairs([(0, 4), (3, 3)]), Mesh({"data": 2, "model": 4}))
        (AxisRef(name_or_index='data', pre_size=None, size=None),)
    """
    positions = mesh.order.positions_of(pairs.to_array())
    if positions is None:
        return None
    found: list[AxisRef] = []
    for name in mesh.axis_names:
        place = mesh.digit_of(name)
        coordinates = positions // place.stride % place.size
        if (coordinates[:, 0] != coordinates[:, 1]).any():
            found.append(AxisRef(name))
    return tuple(found)


def axes_key(axes: Iterable[AxisRef] | None, mesh: Mesh | None) -> AxesKey:
    """Return under which axes totals count a row, whatever the order of the members in its groups.

    Args:
        axes: the axes the row runs along; None where they are not known.
        mesh: the module's mesh; None where there is none.

    Returns:
        The key; neighbouring parts of one axis count as the one part that they make.

    Example:
        >>> from commlens.topology import Mesh
        >>> mesh = Mesh({"data": 4, "model": 4})
        >>> axes_key([AxisRef("model"), AxisRef("data", 2, 2), AxisRef("data", 1, 2)], mesh).text
        'data,model'
    """
    if axes is None or mesh is None:
        return AxesKey(((_LAST + 1, 0, 0),), UNKNOWN_AXES)
    sizes = dict(mesh.axes)
    merged: list[AxisRef] = []
    for ref in sorted(axes, key=lambda each: _place(each, mesh)):
        joined = merged[-1].merge(ref, sizes[str(ref.name_or_index)]) if merged else None
        if joined is None:
            merged.append(ref)
        else:
            merged[-1] = joined
    if not merged:
        return AxesKey(((_LAST, 0, 0),), NO_AXES)
    return AxesKey(tuple(_place(ref, mesh) for ref in merged), ",".join(ref.label for ref in merged))


_LAST: Final = 1 << 63
"""Sorts behind every index of an axis."""


def _place(ref: AxisRef, mesh: Mesh) -> tuple[int, int, int]:
    return mesh.axis_index(ref.name_or_index), ref.pre_size or 0, ref.size or 0
