"""References to mesh axes and sub-axes, and the rules about which of them go together.

Source of the semantics: xla/hlo/ir/mesh_and_axis.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlens.errors import CommlensError

if TYPE_CHECKING:
    from commlens.topology.proto_messages import AxisRefMessage

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def quote(name: str) -> str:
    """Write an axis name as HLO text has it.

    Upstream does not escape anything, so its text of a name with a quote cannot be read back; here it can.

    Example:
        >>> quote("data")
        "'data'"
    """
    return f"'{name.translate(_ESCAPES)}'"


@dataclass(frozen=True, slots=True)
class AxisRef:
    """A whole axis of some mesh, or a part of one.

    A sub-axis ``'a':(pre_size)size`` sees axis ``a`` as a row-major array of shape ``(pre_size, size, rest)`` and means
    the middle dimension.

    Attributes:
        name_or_index: name of the axis, or its position in the mesh. A name that the mesh does not have, but which is a
            decimal number, is a position too.
        pre_size: product of what lies outside the sub-axis; None for the whole axis.
        size: size of the sub-axis, at least 2; None for the whole axis.

    Raises:
        CommlensError: when only one of ``pre_size`` and ``size`` is given, or one is too small.

    Example:
        >>> str(AxisRef("a")), str(AxisRef("a", 1, 2)), str(AxisRef(2, 3, 4))
        ("'a'", "'a':(1)2", '2:(3)4')
    """

    name_or_index: str | int
    pre_size: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.name_or_index, int) and self.name_or_index < 0:
            raise _invalid(self, "an axis index must not be negative")
        if (self.pre_size is None) != (self.size is None):
            raise _invalid(self, "a sub-axis needs both a pre-size and a size")
        if self.pre_size is not None and self.pre_size < 1:
            raise _invalid(self, "sub-axis pre-size must be >= 1")
        if self.size is not None and self.size < 2:
            raise _invalid(self, "sub-axis size must be >= 2")

    @classmethod
    def from_proto(cls, message: AxisRefMessage) -> AxisRef:
        """Read an AxisRefProto, or anything with its attributes."""
        part = message.sub_axis_info
        if part is None or (part.pre_size, part.size) == (0, 0):
            return cls(message.mesh_axis_index)
        return cls(message.mesh_axis_index, part.pre_size, part.size)

    def to_proto_fields(self, axis_index: int) -> dict[str, object]:
        """The fields of an AxisRefProto, by their names.

        Args:
            axis_index: position of the axis in the mesh.
        """
        fields: dict[str, object] = {"mesh_axis_index": axis_index}
        if self.is_sub_axis:
            fields["sub_axis_info"] = {"pre_size": self.pre_size, "size": self.size}
        return fields

    @property
    def is_sub_axis(self) -> bool:
        """Whether only a part of the axis is meant."""
        return self.size is not None

    @property
    def label(self) -> str:
        """The spelling for people, without quotes: ``a`` or ``a:(1)2``.

        Example:
            >>> AxisRef("a", 1, 2).label
            'a:(1)2'
        """
        return f"{self.name_or_index}{self._suffix}"

    def __str__(self) -> str:
        axis = self.name_or_index
        return f"{quote(axis) if isinstance(axis, str) else axis}{self._suffix}"

    @property
    def _suffix(self) -> str:
        return "" if self.size is None else f":({self.pre_size}){self.size}"

    def can_coexist(self, other: AxisRef) -> bool:
        """Whether one list may hold both.

        Different axes always may. On one axis both must be sub-axes that do not overlap, and the greater pre-size must
        be a multiple of the lesser ``pre_size * size``. Axes are told apart as they are written: give both by name, or
        both by index.

        Example:
            >>> AxisRef("a", 1, 2).can_coexist(AxisRef("a", 4, 2)), AxisRef("a").can_coexist(AxisRef("a", 1, 2))
            (True, False)
        """
        if self.name_or_index != other.name_or_index:
            return True
        mine, theirs = self._span(), other._span()
        if mine is None or theirs is None:
            return False
        outer, inner = sorted((mine, theirs))
        return inner[0] % outer[1] == 0  # which no overlap leaves: the inner pre-size would be smaller

    def can_merge(self, other: AxisRef) -> bool:
        """Whether ``other``, listed next, continues this sub-axis inward. Not symmetric.

        Example:
            >>> AxisRef("a", 1, 2).can_merge(AxisRef("a", 2, 4)), AxisRef("a", 2, 4).can_merge(AxisRef("a", 1, 2))
            (True, False)
        """
        mine, theirs = self._span(), other._span()
        same_axis = self.name_or_index == other.name_or_index
        return same_axis and mine is not None and theirs is not None and mine[1] == theirs[0]

    def merge(self, other: AxisRef, axis_size: int) -> AxisRef | None:
        """Join this sub-axis with one that continues it.

        Args:
            other: the sub-axis listed next.
            axis_size: size of the whole axis; a join that reaches it is the whole axis.

        Returns:
            The joined reference, or None where the two cannot be merged.

        Example:
            >>> str(AxisRef("a", 2, 2).merge(AxisRef("a", 4, 4), axis_size=16))
            "'a':(2)8"
            >>> str(AxisRef("a", 1, 2).merge(AxisRef("a", 2, 4), axis_size=8))
            "'a'"
        """
        mine, theirs = self._span(), other._span()
        if mine is None or theirs is None or not self.can_merge(other):
            return None
        return sub_axis(self.name_or_index, mine[0], theirs[1] // mine[0], axis_size)

    def _span(self) -> tuple[int, int] | None:
        """``(pre_size, pre_size * size)`` of a sub-axis."""
        return None if self.pre_size is None or self.size is None else (self.pre_size, self.pre_size * self.size)


def sub_axis(name_or_index: str | int, pre_size: int, size: int, axis_size: int) -> AxisRef:
    """The reference to a part of an axis, which is the whole axis where the part reaches it.

    Example:
        >>> sub_axis("a", 1, 8, axis_size=8)
        AxisRef(name_or_index='a', pre_size=None, size=None)
    """
    return AxisRef(name_or_index) if size == axis_size else AxisRef(name_or_index, pre_size, size)


def _invalid(ref: AxisRef, why: str) -> CommlensError:
    return CommlensError(f"axis reference {ref} is not valid: {why}")
