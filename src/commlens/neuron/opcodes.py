"""The opcode numbers of one Neuron compiler build.

Source: the build neuronx_cc 2.24.5133, whose ``hlo-opt`` numbers the opcodes of an XLA of early 2025 in the order of
xla/hlo/ir/hlo_opcode.h. Other builds number otherwise: compare names wherever a name is known.
"""

from __future__ import annotations

from difflib import get_close_matches
from operator import index
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, SupportsIndex

from commlens.errors import CommlensError

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES: Final = (
    "abs add add-dependency after-all all-gather all-gather-done all-gather-start all-reduce all-reduce-done "
    "all-reduce-start all-to-all and async-done async-start async-update atan2 batch-norm-grad batch-norm-inference "
    "batch-norm-training bitcast bitcast-convert broadcast call cbrt ceil cholesky clamp count-leading-zeros "
    "collective-broadcast collective-permute collective-permute-done collective-permute-start compare complex "
    "concatenate conditional constant convert convolution copy copy-done copy-start cosine custom-call divide domain "
    "dot dynamic-reshape dynamic-slice dynamic-update-slice erf exponential exponential-minus-one fft floor fusion "
    "gather get-dimension-size get-tuple-element imag infeed iota is-finite log log-plus-one logistic map maximum "
    "minimum multiply negate not opt-barrier or outfeed pad parameter partition-id popcnt power ragged-all-to-all "
    "ragged-dot real recv recv-done reduce reduce-precision reduce-scatter reduce-window remainder replica-id reshape "
    "reverse rng rng-bit-generator rng-get-and-update-state round-nearest-afz round-nearest-even rsqrt scatter select "
    "select-and-scatter send send-done set-dimension-size shift-left shift-right-arithmetic shift-right-logical sign "
    "sine slice sort sqrt stochastic-convert subtract tan tanh topk transpose triangular-solve tuple while xor"
)

OPCODES_2_24: Final[tuple[str, ...]] = tuple(_NAMES.split())
"""The 123 opcodes of the build; the position of a name is its number."""

CUSTOM_CALLS: Final = frozenset({"custom-call", "custom-call-start"})
"""What may be a collective that XLA does not know for one."""

_NUMBERS: Final[Mapping[str, int]] = MappingProxyType({name: number for number, name in enumerate(OPCODES_2_24)})


def opcode_number(opcode: str | int) -> int:
    """Return the number of an opcode in the build, which keeps it in one byte.

    Args:
        opcode: a name of :data:`OPCODES_2_24`, or any number of 0 to 255. Numbers from 123 on stand for no opcode.

    Raises:
        CommlensError: the build has no opcode of that name, or it is no number of a byte.

    Example:
        >>> opcode_number("reduce-scatter"), opcode_number(0x57)
        (87, 87)
    """
    if isinstance(opcode, str):
        number = _NUMBERS.get(opcode)
        if number is None:
            close = get_close_matches(opcode, OPCODES_2_24, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            msg = f"expected one of the {len(OPCODES_2_24)} opcodes of the build 2.24, found {opcode!r}{hint}"
            raise CommlensError(msg)
        return number
    number = _whole_number(opcode)
    if number is None or not 0 <= number <= _LARGEST:
        msg = f"expected the number of an opcode, 0 to {_LARGEST}, or its name, found {opcode!r}"
        raise CommlensError(msg)
    return number


def _whole_number(value: object) -> int | None:
    """Return a number of any integral type; None for all else, truth values too."""
    return None if isinstance(value, bool) or not isinstance(value, SupportsIndex) else index(value)


_LARGEST: Final = 0xFF
