"""What a collective is, apart from its name and place: the part that many instructions of a module share.

Large modules repeat few collectives many times. A backend reads each distinct spelling once, keeps the result as a
:class:`Signature`, and every instruction spelled alike shares it; figures are worked out once per signature.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.hlo.model import Instruction
    from commlens.hlo.shapes import Shape
    from commlens.topology import DeviceList, SourceTargetPairs


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """Everything a collective says of itself but its name, place and channel number.

    Compared by identity, so that figures can be kept per signature.

    Attributes:
        opcode: the operation in today's name without its asynchronous half, e.g. ``"all-gather"``.
        is_async: whether it was written as start and done.
        operand_shapes: array leaves of the operands, contexts and tokens left out.
        result_shapes: array leaves of the payload of the result (a start counts its payload once).
        groups: the replica group list; None for opcodes that have pairs or nothing.
        pairs: source-target pairs of collective-permute, send and recv; None where there are none.
        has_channel: whether it has a channel id.
        use_global_device_ids: the flag with its opcode's default; None for opcodes without one.
        constrain_layout: whether layouts must be kept.
        dimensions: gather, scatter or split dimension; None where there is none.
        token_operands: positions in ``operand_shapes`` of operands that only order things.
        is_host_transfer: for send and recv whether the host is the peer; None for all others.
        via: what form it was found in when its own opcode does not say it, e.g. ``"all-reduce-scatter"``.
        frontend_attributes: the start's attributes, then the wrapped operation's for missing keys.
    """

    opcode: str
    is_async: bool
    operand_shapes: tuple[Shape, ...]
    result_shapes: tuple[Shape, ...]
    groups: DeviceList | None = None
    pairs: SourceTargetPairs | None = None
    has_channel: bool = False
    use_global_device_ids: bool | None = None
    constrain_layout: bool = False
    dimensions: tuple[int, ...] | None = None
    token_operands: tuple[int, ...] = ()
    is_host_transfer: bool | None = None
    via: str | None = None
    frontend_attributes: Mapping[str, str] = field(default_factory=dict[str, str])


class Site:
    """One place that communicates: a signature, and where it stands.

    Backends subclass it where they can give the place without making an instruction; there are so many sites that
    they are kept light, and that this is no abstract class: checking for one costs more than all the rest.

    Attributes:
        instruction: the instruction, of the start where there is one.
        signature: what it does.
        channel_id: its channel, None if it has none.
    """

    __slots__ = ("channel_id", "signature")

    def __init__(self, signature: Signature, channel_id: int | None) -> None:
        self.signature = signature
        self.channel_id = channel_id

    @property
    def instruction(self) -> Instruction:
        """The instruction that communicates."""
        msg = f"{type(self).__name__} does not say where it stands"
        raise LookupError(msg)

    @property
    def name(self) -> str:
        """The instruction's name."""
        return self.instruction.name

    @property
    def computation_name(self) -> str:
        """Name of the computation it stands in."""
        return self.instruction.computation.name

    @property
    def line(self) -> int | None:
        """Line in the text, counted from 1; None in a proto."""
        return self.instruction.line

    @property
    def op_name(self) -> str | None:
        """``op_name`` of the metadata."""
        return self.instruction.op_name

    @property
    def source(self) -> str | None:
        """``"file:line"`` of the metadata."""
        return self.instruction.source


class InstructionSite(Site):
    """A site that was read through its instruction."""

    __slots__ = ("_instruction",)

    def __init__(self, instruction: Instruction, signature: Signature, channel_id: int | None) -> None:
        super().__init__(signature, channel_id)
        self._instruction = instruction

    @property
    def instruction(self) -> Instruction:
        """The instruction that communicates."""
        return self._instruction
