"""Scanning encoded instructions for opcodes that may communicate or call something that does, without decoding them.

Every writer puts an instruction's name before its opcode. Behind the name the bytes of the opcode's field can be
compared with those of opcodes that are of no interest; a miss of any kind, such as an opcode from the future, only
means that the instruction is looked at more closely.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.hlo.formatting import as_text
from commlens.hlo.model import UnreadableError
from commlens.hlo.opcodes import APPLIERS, COLLECTIVES, LEGACY_ALL_REDUCE, POINT_TO_POINT
from commlens.hlo.proto.decoding import decode, decode_or_empty
from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloInstructionOutline

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloComputationOutline

COMMUNICATING_OPCODES: Final = frozenset(
    {f"{opcode}{half}" for opcode in COLLECTIVES | {LEGACY_ALL_REDUCE} for half in ("", "-start")} | POINT_TO_POINT
)
"""Opcodes of which each instruction is a row."""

_DONE: Final = frozenset(
    {f"{opcode}{half}" for opcode in COLLECTIVES | {"async", "copy"} for half in ("-update", "-done")}
    | {"send-done", "recv-done"}
)
_LEAF_NAMES: Final = (
    "abs acos acosh add add-dependency after-all and asin asinh atan2 atanh batch-norm-grad "
    "batch-norm-inference batch-norm-training bitcast bitcast-convert broadcast cbrt ceil cholesky clamp "
    "compare complex concatenate constant convert convolution copy copy-start cosine cosh count-leading-zeros "
    "divide domain dot dynamic-reshape dynamic-slice dynamic-update-slice erf exponential exponential-minus-one "
    "fft floor gather get-dimension-size get-tuple-element imag infeed iota is-finite log log-plus-one logistic "
    "maximum minimum multiply negate not opt-barrier or outfeed pad parameter partition-id popcnt power "
    "ragged-dot real reduce-precision remainder replica-id reshape reverse rng rng-bit-generator "
    "rng-get-and-update-state round-nearest-afz round-nearest-even rsqrt scaled-dot select set-dimension-size "
    "shift-left shift-right-arithmetic shift-right-logical sign sine sinh slice sqrt stochastic-convert "
    "subtract tan tanh topk transpose triangular-solve tuple xor"
)
_LEAVES: Final = frozenset(_LEAF_NAMES.split())
"""Opcodes that neither communicate nor call a computation. Source: xla/hlo/ir/hlo_opcode.h."""

_OPCODE_TAG: Final = 0x12  # field 2, length-delimited
_NAME_TAG: Final = b"\x0a"  # field 1, length-delimited


def _field(opcode: str) -> bytes:
    return bytes((_OPCODE_TAG, len(opcode))) + opcode.encode()


_IRRELEVANT_NAMES: Final = _LEAVES | _DONE | APPLIERS
_IRRELEVANT: Final = frozenset(map(_field, _IRRELEVANT_NAMES))
_RELEVANT: Final = MappingProxyType(
    {_field(opcode): opcode for opcode in COMMUNICATING_OPCODES | {"fusion", "custom-call", "while", "call"}}
)


_KNOWN: Final = _IRRELEVANT | _RELEVANT.keys() | {_field("async-start")}
"""The bytes of the field of every opcode that is not news to us."""


class EncodedInstruction(NamedTuple):
    """An encoded instruction.

    Attributes:
        position: its position in its computation.
        opcode_field: the bytes of its opcode's field where that stands behind a short name; else anything.
        data: all of its bytes.
    """

    position: int
    opcode_field: bytes
    data: bytes

    @property
    def opcode(self) -> str | None:
        """The opcode, None where the bytes are no instruction."""
        known = _RELEVANT.get(self.opcode_field)
        if known is not None:
            return known
        try:
            return as_text(decode(HloInstructionOutline, self.data).opcode)
        except UnreadableError:
            return None


class Candidates(NamedTuple):
    """Instructions of one computation that may communicate or call something that does.

    Attributes:
        number: the computation's position in the file.
        instructions: the instructions, in the file's order.
    """

    number: int
    instructions: list[EncodedInstruction]


def find_candidates(computations: Iterable[HloComputationOutline]) -> list[Candidates]:
    """Find the instructions that may communicate or call something that does.

    One loop goes over all instructions of the module, and it does as little as can be.

    Args:
        computations: all computations of the module.

    Returns:
        Those that have such instructions, in order.
    """
    found: list[Candidates] = []
    for number, computation in enumerate(computations):
        instructions: list[EncodedInstruction] = []
        position = 0
        try:
            for data in computation.instructions:
                start = data[1] + 2  # behind the name, if it has less than 128 bytes
                opcode_field = data[start : start + 2 + data[start + 1]]
                if opcode_field not in _IRRELEVANT:
                    instructions.append(EncodedInstruction(position, opcode_field, data))
                position += 1
        except IndexError:  # one is shorter than a name and an opcode
            every = (EncodedInstruction(place, b"", data) for place, data in enumerate(computation.instructions))
            instructions = [each for each in every if each.opcode not in _IRRELEVANT_NAMES]
        if instructions:
            found.append(Candidates(number, instructions))
    return found


def find_opcodes(computation: HloComputationOutline, opcodes: Collection[str]) -> list[int]:
    """Find the instructions of a computation that have one of some opcodes.

    Args:
        computation: the computation.
        opcodes: the opcodes.

    Returns:
        Their positions in the file's order.
    """
    wanted = {_field(opcode) for opcode in opcodes}
    others = _KNOWN - wanted
    found: list[int] = []
    for position, data in enumerate(computation.instructions):
        try:
            start = data[1] + 2
            opcode_field = data[start : start + 2 + data[start + 1]]
        except IndexError:
            opcode_field = b""
        if opcode_field in wanted or (
            opcode_field not in others and EncodedInstruction(position, b"", data).opcode in opcodes
        ):
            found.append(position)
    return found


def encoded_names(computation: HloComputationOutline) -> Iterator[bytes]:
    """Yield the names of a computation's instructions; of one that cannot be decoded, nothing."""
    for data in computation.instructions:
        if data[:1] == _NAME_TAG and b"" < data[1:2] < b"\x80":
            yield data[2 : 2 + data[1]]
        else:
            yield decode_or_empty(HloInstructionOutline, data).name
