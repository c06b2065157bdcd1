"""Finding out, as cheaply as possible, which encoded instructions may communicate or call something that does.

Every writer puts an instruction's name before its opcode. Behind the name the bytes of the opcode's field can be compared
with those of opcodes that are of no interest; a miss of any kind, such as an opcode from the future, only means that the
instruction is looked at more closely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.hlo.model import UnreadableError
from commlens.hlo.opcodes import APPLIERS, COLLECTIVES, LEGACY_ALL_REDUCE, POINT_TO_POINT
from commlens.hlo.proto.decoding import as_text, decode
from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloInstructionOutline

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloComputationOutline

STARTS_AND_PLAIN: Final = frozenset(
    {f"{opcode}{half}" for opcode in COLLECTIVES | {LEGACY_ALL_REDUCE} for half in ("", "-start")} | POINT_TO_POINT
)
"""Opcodes of which each instruction is a row."""

_DONE: Final = frozenset(
    {f"{opcode}{half}" for opcode in COLLECTIVES | {"async", "copy"} for half in ("-update", "-done")}
    | {"send-done", "recv-done"}
)
_LEAVES: Final = frozenset(
    """abs acos acosh add add-dependency after-all and asin asinh atan2 atanh batch-norm-grad batch-norm-inference
    batch-norm-training bitcast bitcast-convert broadcast cbrt ceil cholesky clamp compare complex concatenate constant
    convert convolution copy copy-start cosine cosh count-leading-zeros divide domain dot dynamic-reshape dynamic-slice
    dynamic-update-slice erf exponential exponential-minus-one fft floor gather get-dimension-size get-tuple-element imag
    infeed iota is-finite log log-plus-one logistic maximum minimum multiply negate not opt-barrier or outfeed pad
    parameter partition-id popcnt power ragged-dot real reduce-precision remainder replica-id reshape reverse rng
    rng-bit-generator rng-get-and-update-state round-nearest-afz round-nearest-even rsqrt scaled-dot select
    set-dimension-size shift-left shift-right-arithmetic shift-right-logical sign sine sinh slice sqrt stochastic-convert
    subtract tan tanh topk transpose triangular-solve tuple xor""".split()
)
"""Opcodes that neither communicate nor call a computation. Source: xla/hlo/ir/hlo_opcode.h."""

_OPCODE_TAG: Final = 0x12  # field 2, length-delimited


def _field(opcode: str) -> bytes:
    return bytes((_OPCODE_TAG, len(opcode))) + opcode.encode()


_QUIET: Final = frozenset(map(_field, _LEAVES | _DONE | APPLIERS))
_LOUD: Final = {_field(opcode): opcode for opcode in STARTS_AND_PLAIN | {"fusion", "custom-call", "while", "call"}}


class Notable(NamedTuple):
    """Instructions of one computation that may communicate or call something that does.

    Attributes:
        number: the computation's position in the file.
        instructions: their positions in the computation, and their bytes.
    """

    number: int
    instructions: list[tuple[int, bytes]]


def find_notable(computations: Iterable[HloComputationOutline]) -> list[Notable]:
    """Find the instructions that may communicate or call something that does.

    One loop goes over all instructions of the module, and it does as little as can be.

    Args:
        computations: all computations of the module.

    Returns:
        Those that have such instructions, in order.
    """
    found: list[Notable] = []
    for number, computation in enumerate(computations):
        instructions: list[tuple[int, bytes]] = []
        position = 0
        try:
            for data in computation.instructions:
                start = data[1] + 2  # behind the name, if it has less than 128 bytes
                if data[start : start + 2 + data[start + 1]] not in _QUIET:
                    instructions.append((position, data))
                position += 1
        except IndexError:  # one is shorter than a name and an opcode
            pairs = enumerate(computation.instructions)
            instructions = [(position, data) for position, data in pairs if _opcode_field(data) not in _QUIET]
        if instructions:
            found.append(Notable(number, instructions))
    return found


def _opcode_field(data: bytes) -> bytes:
    """Return the bytes of the opcode's field where it stands behind a short name, else none."""
    if len(data) > 1 and len(data) > data[1] + 3:
        start = data[1] + 2
        return data[start : start + 2 + data[start + 1]]
    return b""


def opcode_of(data: bytes) -> str | None:
    """Return the opcode of an encoded instruction, None where the bytes are no instruction."""
    known = _LOUD.get(_opcode_field(data))
    if known is not None:
        return known
    try:
        return as_text(decode(HloInstructionOutline, data).opcode)
    except UnreadableError:
        return None
