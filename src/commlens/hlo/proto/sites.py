"""Reading the communicating instructions of a proto, quickly where they are like others before them.

Two collectives with the same bytes but for what differs from place to place (name, ids, metadata, channel number), and
with operands of the same shapes, share a signature: only the first of them is decoded in full.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from google.protobuf.message import DecodeError

from commlens.hlo.collectives import signature_of
from commlens.hlo.custom_calls import custom_call_opcode
from commlens.hlo.model import UnreadableError
from commlens.hlo.proto.computation import UNKNOWN_ID
from commlens.hlo.proto.instruction import ProtoInstruction
from commlens.hlo.proto.opcode_scan import COMMUNICATING_OPCODES
from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloCollectiveOutline
from commlens.hlo.signature import InstructionSite

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.hlo.model import Instruction
    from commlens.hlo.proto.computation import ProtoComputation
    from commlens.hlo.proto.opcode_scan import EncodedInstruction
    from commlens.hlo.signature import Signature, Site

_VARYING: Final = tuple(field.name for field in HloCollectiveOutline.DESCRIPTOR.fields)
_CUSTOM_FUSION: Final = b"kCustom"
_DISGUISES: Final = frozenset({"fusion", "custom-call", "async-start"})


@dataclass(slots=True)
class SiteReader:
    """Reads what may communicate in one module; keeps the collectives it has seen.

    Attributes:
        signatures: signature by what is common to equal collectives.
    """

    signatures: dict[tuple[bytes | bool, ...], Signature] = field(
        default_factory=dict[tuple["bytes | bool", ...], "Signature"]
    )

    def read(self, computation: ProtoComputation, found: Iterable[EncodedInstruction]) -> list[Site | Instruction]:
        """Read the candidates of one computation.

        Args:
            computation: the computation.
            found: its candidates.

        Returns:
            A site for every plain collective; an instruction for one that cannot be read and for what must be looked
            into. All of them in row order.
        """
        items: list[tuple[int, Site | Instruction]] = []
        for encoded in found:
            opcode = encoded.opcode
            instruction = ProtoInstruction(computation, encoded.position)
            if opcode in COMMUNICATING_OPCODES:
                items.append(self._collective(instruction, encoded.data))
            elif opcode in _DISGUISES and _may_communicate(instruction, opcode, encoded.data):
                items.append((instruction.message.id, instruction))
        return computation.in_row_order(items)

    def _collective(self, instruction: ProtoInstruction, data: bytes) -> tuple[int, Site | Instruction]:
        number = UNKNOWN_ID
        try:
            outline = HloCollectiveOutline.FromString(data)
            number = outline.id
            return number, self._site(instruction, outline)
        except (UnreadableError, DecodeError):
            return number, instruction

    def _site(self, instruction: ProtoInstruction, outline: HloCollectiveOutline) -> InstructionSite:
        """Read a collective.

        Raises:
            UnreadableError: it cannot be read.
        """
        if outline.all_reduce_id > 0:
            return InstructionSite(instruction, signature_of(instruction), instruction.channel_id)
        channel = outline.channel_id
        shapes = _operand_shapes(instruction, outline)
        for name in _VARYING:
            outline.ClearField(name)
        key = (outline.SerializeToString(), channel > 0, *shapes)
        signature = self.signatures.get(key)
        if signature is None:
            signature = self.signatures[key] = signature_of(instruction)
        return InstructionSite(instruction, signature, channel if channel > 0 else None)


def _operand_shapes(instruction: ProtoInstruction, outline: HloCollectiveOutline) -> list[bytes]:
    """Return the encoded shapes of the operands; none for one that is not defined."""
    find, position, number = instruction.computation.outline_of, instruction.position, outline.id
    found = [find(operand, position, number) for operand in outline.operand_ids]
    return [b"" if each is None else each[1].shape for each in found]


def _may_communicate(instruction: ProtoInstruction, opcode: str, data: bytes) -> bool:
    """Whether what is no plain collective may communicate all the same; a damaged one is among the module's faults."""
    if opcode == "fusion" and _CUSTOM_FUSION not in data:
        return False
    try:
        target = instruction.raw_attribute("custom_call_target") or ""
    except UnreadableError:
        return False
    return opcode != "custom-call" or custom_call_opcode(target) is not None
