"""The values of constants, spelled as XLA prints them.

Source: ``LiteralBase::PrintWithoutShapeOneline``, xla/literal.cc, and ``RoundTripFpToString``, xla/util.cc.
"""

from __future__ import annotations

import math
import struct
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from commlens.hlo.proto.schema.commlens_hlo_pb2 import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from commlens.hlo.proto.schema.commlens_hlo_pb2 import LiteralProto

_MOST: Final = 1 << 16
"""As many values are spelled; tables with a place for each device are smaller, and weights are of no interest."""

_Spell: TypeAlias = "Callable[[float], str | None]"


class _Values(NamedTuple):
    """How a literal holds the values of an element type.

    Attributes:
        field: which field, of numbers or of bytes that stand for some.
        code: how :mod:`struct` calls one of the numbers in bytes.
        spell: spells one of them.
    """

    field: str
    code: str
    spell: _Spell

    def read(self, message: LiteralProto, count: int) -> Sequence[float] | None:
        """Return the values; None where they are not so many."""
        stated: Sequence[float] | bytes = getattr(message, self.field)
        if not isinstance(stated, bytes):
            return stated if len(stated) == count else None
        form = f"<{count}{self.code}"
        return struct.unpack(form, stated) if struct.calcsize(form) == len(stated) else None


def literal_text(message: LiteralProto) -> str | None:
    """Return a literal as XLA prints it.

    Args:
        message: the literal.

    Returns:
        The text of a scalar, or of an array with one dimension and at most 65,536 values, that has truth values, whole
        numbers of 8 to 64 bits or floating-point numbers of 16 to 64 bits; None for every other literal, for one with
        more or fewer values than its shape says, and for one with a NaN that carries a message of its own.
    """
    element_type, dimensions = message.shape.element_type, message.shape.dimensions
    kind = _KINDS.get(element_type)
    count = dimensions[0] if dimensions else 1
    if kind is None or len(dimensions) > 1 or not 0 <= count <= _MOST:
        return None
    values = kind.read(message, count)
    if values is None:
        return None
    if not dimensions:
        return _TRUTH[bool(values[0])] if element_type == PrimitiveType.PRED else kind.spell(values[0])
    spelled = [text for text in map(kind.spell, values) if text is not None]
    return f"{{{', '.join(spelled)}}}" if len(spelled) == count else None


def _whole(number: float) -> str:
    return f"{int(number)}"


def _wide(code: str, digits: int, more: int, usual_nan: int) -> _Spell:
    """Return what spells numbers of 32 or 64 bits with few digits where those lead back to it, else with more."""
    form = f"<{code}"

    def spell(number: float) -> str | None:
        if math.isnan(number):
            return _nan(struct.pack(form, number), usual_nan)
        text = f"{number:.{digits}g}"
        (again,) = struct.unpack(form, struct.pack(form, float(text)))
        return text if again == number else f"{number:.{more}g}"

    return spell


def _narrow(widened: Callable[[bytes], bytes], code: str, digits: int, usual_nan: int) -> _Spell:
    """Return what spells numbers of 16 bits, given as whole numbers, with so many digits."""

    def spell(bits: float) -> str | None:
        encoded = int(bits).to_bytes(2, "little")
        (number,) = struct.unpack(f"<{code}", widened(encoded))
        return _nan(encoded, usual_nan) if math.isnan(number) else f"{number:.{digits}g}"

    return spell


def _nan(encoded: bytes, usual: int) -> str | None:
    """Spell what is no number, unless its bits say more than that."""
    sign, rest = divmod(int.from_bytes(encoded, "little"), 1 << (8 * len(encoded) - 1))
    return None if rest != usual else "-nan" if sign else "nan"


_TRUTH: Final = ("false", "true")
_KINDS: Final[Mapping[int, _Values]] = MappingProxyType(
    {
        PrimitiveType.PRED: _Values("preds", "", _whole),
        PrimitiveType.S8: _Values("s8s", "b", _whole),
        PrimitiveType.S16: _Values("s16s", "h", _whole),
        PrimitiveType.S32: _Values("s32s", "", _whole),
        PrimitiveType.S64: _Values("s64s", "", _whole),
        PrimitiveType.U8: _Values("u8s", "B", _whole),
        PrimitiveType.U16: _Values("u16s", "H", _whole),
        PrimitiveType.U32: _Values("u32s", "", _whole),
        PrimitiveType.U64: _Values("u64s", "", _whole),
        PrimitiveType.F16: _Values("f16s", "H", _narrow(lambda half: half, "e", 5, 0x7E00)),
        PrimitiveType.BF16: _Values("bf16s", "H", _narrow(lambda half: b"\0\0" + half, "f", 4, 0x7FC0)),
        PrimitiveType.F32: _Values("f32s", "", _wide("f", 6, 9, 0x7FC00000)),
        PrimitiveType.F64: _Values("f64s", "", _wide("d", 15, 17, 0x7FF8 << 48)),
    }
)
