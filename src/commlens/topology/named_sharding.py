"""Shardings by mesh axes: ``{mesh['a'=2,'b'=4], [{'a'}, {'b':(1)2}]}``.

Source: xla/hlo/ir/named_sharding.h and .cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlens.errors import CommlensError
from commlens.topology.tiles import mesh_tile, resolve_dims

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.topology.axes import AxisRef
    from commlens.topology.mesh import Mesh
    from commlens.topology.subgroups import Subgroup
    from commlens.topology.tiles import DimAxes, Tile


@dataclass(frozen=True, slots=True)
class NamedSharding:
    """How an array is cut along the axes of a mesh.

    Args:
        mesh: the mesh; the empty and the maximal mesh have no other fields.
        dim_axes: per dimension of the array the axes it is cut along, outermost first.
        open_dims: dimensions that the compiler may cut further, ascending; written with ``?``.
        replicated: axes along which there must be copies, in mesh order.
        unreduced: axes along which partial results wait to be reduced, in mesh order.
        manual: axes that the program handles itself, in mesh order.

    Raises:
        CommlensError: for references that the mesh does not have, that overlap, that could be written as one, or that
            do not stand in mesh order where they should.

    Example:
        >>> from commlens.topology import Mesh
        >>> str(NamedSharding(Mesh({"a": 2, "b": 4}), (("b",), ()), open_dims=(1,), manual=("a",)))
        "{mesh['a'=2,'b'=4], [{'b'}, {?}], manual={'a'}}"
    """

    mesh: Mesh
    dim_axes: DimAxes = ()
    open_dims: tuple[int, ...] = ()
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    manual: tuple[AxisRef, ...] = ()

    def __post_init__(self) -> None:
        lists = (*self.dim_axes, self.replicated, self.unreduced, self.manual)
        if self.mesh.axes:
            lists = resolve_dims(self.mesh, lists)
        elif any(lists):
            msg = f"expected no axes with {self.mesh}, which has none, found some"
            raise CommlensError(msg)
        *dims, replicated, unreduced, manual = lists
        for what, refs in (("replicated", replicated), ("unreduced", unreduced), ("manual", manual)):
            self._check_mesh_order(what, refs)
        object.__setattr__(self, "dim_axes", tuple(dims))
        object.__setattr__(self, "replicated", replicated)
        object.__setattr__(self, "unreduced", unreduced)
        object.__setattr__(self, "manual", manual)

    def _check_mesh_order(self, what: str, refs: Sequence[AxisRef]) -> None:
        in_order = sorted(refs, key=lambda ref: (self.mesh.axis_index(ref.name_or_index), ref.pre_size or 0))
        if list(refs) != in_order:
            msg = f"expected the {what} axes in mesh order, found {_braces(refs)}; write {_braces(in_order)}"
            raise CommlensError(msg)

    def __str__(self) -> str:
        return f"{{{', '.join([str(self.mesh), *self._parts()])}}}"

    def _parts(self) -> list[str]:
        """What stands behind the mesh; an array without dimensions has short forms."""
        if self.mesh.is_maximal:
            return []
        listed = {"replicated": self.replicated, "unreduced": self.unreduced, "manual": self.manual}
        lists = [f"{what}={_braces(refs, ', ')}" for what, refs in listed.items() if refs]
        if not self.dim_axes:
            if not lists:
                return ["replicated"]
            for what in ("unreduced", "manual"):
                if len(lists) == 1 and listed[what] and not self.mesh.unused_digits(listed[what]):
                    return [what]
        dims = [
            _braces([*map(str, refs), *(["?"] if dim in self.open_dims else [])], ", ")
            for dim, refs in enumerate(self.dim_axes)
        ]
        return [f"[{', '.join(dims)}]", *lists]

    def tile(self) -> tuple[Tile, tuple[Subgroup, ...]]:
        """The tile assignment, and what its last dimensions are.

        One dimension per array dimension, then one for the manual axes and one for the unreduced ones, if there are
        any, and one for the copies along all that is left.

        Raises:
            CommlensError: for a mesh without axes.
        """
        used = [ref for refs in (*self.dim_axes, self.unreduced, self.manual) for ref in refs]
        listed: list[tuple[Subgroup, Sequence[AxisRef] | None]] = []
        if self.manual:
            listed.append(("manual", self.manual))
        if self.unreduced:
            listed.append(("unreduced", self.unreduced))
        if not listed or self.mesh.unused_digits(used):
            listed.append(("replicated", None))
        tile = mesh_tile(self.mesh, [*self.dim_axes, *(refs for _, refs in listed)])
        return tile, tuple([kind for kind, _ in listed])


def _braces(items: Sequence[object], separator: str = ",") -> str:
    return f"{{{separator.join(map(str, items))}}}"
