"""An instruction of a proto: a place in its computation, decoded when somebody asks."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.hlo.formatting import as_text
from commlens.hlo.model import Instruction, UnreadableError
from commlens.hlo.opcodes import base_opcode
from commlens.hlo.proto import descriptors
from commlens.hlo.proto.attribute_edits import ALL_REDUCES
from commlens.hlo.proto.decoding import attributes_of, braced, decode, shape_of
from commlens.hlo.proto.groups import replica_groups_of
from commlens.hlo.proto.literals import literal_text
from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloInstructionProto
from commlens.topology import SourceTargetPairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from commlens.hlo.model import Role
    from commlens.hlo.proto.computation import ProtoComputation
    from commlens.hlo.proto.raw_message import RawMessage
    from commlens.hlo.shapes import Shape
    from commlens.topology import DeviceList

_ROLES: Final[Mapping[str, Role]] = MappingProxyType(
    {
        "call": "call",
        "fusion": "fusion",
        "async-start": "async",
        "custom-call": "custom-call",
        "conditional": "branch",
    }
)
_FLAGS: Final[Mapping[str, Callable[[HloInstructionProto], bool]]] = MappingProxyType(
    {
        "constrain_layout": lambda message: message.constrain_layout,
        "is_host_transfer": lambda message: message.is_host_transfer,
        "use_global_device_ids": lambda message: message.use_global_device_ids,
    }
)
_TEXTS: Final[Mapping[str, Callable[[HloInstructionProto], bytes]]] = MappingProxyType(
    {
        "custom_call_target": lambda message: message.custom_call_target,
        "kind": lambda message: message.fusion_kind,
        "direction": lambda message: message.comparison_direction,
        "async_execution_thread": lambda message: message.async_execution_thread,
    }
)
_NUMBERS: Final[Mapping[str, Callable[[HloInstructionProto], list[int]]]] = MappingProxyType(
    {
        "replica_group_ids": lambda message: list(message.replica_group_ids),
        "dynamic_slice_sizes": lambda message: list(message.dynamic_slice_sizes),
    }
)


def _step(stride: int) -> str:
    return "" if stride == 1 else f":{stride}"


class ProtoInstruction(Instruction):
    """One instruction of a proto.

    Args:
        computation: where it stands.
        position: its position in the file's list of instructions, which need not be its position by id.
    """

    __slots__ = ("_computation", "_message", "position")

    def __init__(self, computation: ProtoComputation, position: int) -> None:
        self._computation = computation
        self._message: HloInstructionProto | None = None
        self.position = position

    @property
    def message(self) -> HloInstructionProto:
        """The decoded instruction.

        Raises:
            UnreadableError: the bytes are no instruction.
        """
        if self._message is None:
            self._message = decode(HloInstructionProto, self._computation.encoded[self.position])
        return self._message

    @property
    def raw(self) -> RawMessage:
        """The instruction as it is written."""
        computation = self._computation
        found = computation.module.found
        return found.location.instruction(found.source, computation.encoded, computation.number, self.position)

    @property
    def name(self) -> str:
        """The name."""
        return as_text(self.message.name)

    @property
    def opcode(self) -> str:
        """The opcode as the module spells it."""
        return as_text(self.message.opcode)

    @property
    def computation(self) -> ProtoComputation:
        """The computation it stands in."""
        return self._computation

    @property
    def line(self) -> None:
        """None: a proto has no lines."""

    @property
    def shape(self) -> Shape:
        """The result's shape."""
        if not self.message.HasField("shape"):
            msg = f"expected {self.opcode} to state its result's shape, found none"
            raise UnreadableError(msg)
        return shape_of(self.message.shape)

    @property
    def operands(self) -> tuple[ProtoInstruction, ...]:
        """The operands in order."""
        return tuple(self._operand(number) for number in self.message.operand_ids)

    def _operand(self, number: int) -> ProtoInstruction:
        position = self._computation.position_of(number, self.position, self.message.id)
        if position is None:
            place = f"the computation {self._computation.name}"
            msg = f"the operand with id {number} of {self.name} is not defined in {place}"
            raise UnreadableError(msg)
        return ProtoInstruction(self._computation, position)

    @property
    def operand_names(self) -> tuple[str, ...]:
        """The names of the operands in order; one that is not defined is called by its id."""
        return self._names(self.message.operand_ids)

    def _names(self, numbers: Iterable[int]) -> tuple[str, ...]:
        computation, message = self._computation, self.message
        positions = ((number, computation.position_of(number, self.position, message.id)) for number in numbers)
        return tuple(
            f"id {number}" if position is None else computation.name_at(position) for number, position in positions
        )

    def operand_shapes(self) -> tuple[Shape, ...]:
        """Return the shapes of the operands as defined."""
        return tuple(operand.shape for operand in self.operands)

    @property
    def is_root(self) -> bool:
        """Whether this is its computation's root."""
        return self._computation.root.position == self.position

    @property
    def control_predecessors(self) -> tuple[str, ...]:
        """Names of the instructions that must run before this one for other reasons than data."""
        return self._names(self.message.control_predecessor_ids)

    @property
    def channel_id(self) -> int | None:
        """The channel id, of an all-reduce in its old field too.

        Raises:
            UnreadableError: both fields state one, which XLA refuses.
        """
        message = self.message
        channel = max(message.channel_id, 0)
        old = max(message.all_reduce_id, 0) if base_opcode(self.opcode)[0] in ALL_REDUCES else 0
        if channel and old:
            msg = f"expected channel_id or all_reduce_id, found {channel} and {old}"
            raise UnreadableError(msg)
        return channel or old or None

    @property
    def replica_groups(self) -> DeviceList:
        """The replica group list, the empty list where none is stated."""
        return replica_groups_of(self.message)

    @property
    def source_target_pairs(self) -> SourceTargetPairs | None:
        """The pairs; None where there are none, except of a collective-permute: a proto cannot leave those out."""
        pairs = [(pair.source, pair.target) for pair in self.message.source_target_pairs]
        stated = bool(pairs) or base_opcode(self.opcode)[0] == "collective-permute"
        return SourceTargetPairs(pairs) if stated else None

    @property
    def dimensions(self) -> tuple[int, ...] | None:
        """The dimensions; None where there are none."""
        return tuple(self.message.dimensions) or None

    @property
    def frontend_attributes(self) -> dict[str, str]:
        """The frontend attributes, by key."""
        return attributes_of(self.message.frontend_attributes)

    def flag(self, name: str) -> bool | None:
        """Return a boolean attribute: True, or None where it is false, which a proto does not tell from absent."""
        read = _FLAGS.get(name)
        return None if read is None else read(self.message) or None

    def raw_attribute(self, name: str) -> str | None:
        """Return another attribute as the text spells it, None where it is absent."""
        message = self.message
        if name in _TEXTS:
            return as_text(_TEXTS[name](message)) or None
        if name in _NUMBERS:
            numbers = _NUMBERS[name](message)
            return braced(numbers) if numbers else None
        match name:
            case "backend_config":
                return as_text(self._backend_config()) or None
            case "index":
                return str(message.tuple_index) if self.opcode == "get-tuple-element" else None
            case "slice":
                bounds = [f"[{each.start}:{each.limit}{_step(each.stride)}]" for each in message.slice_dimensions]
                return f"{{{', '.join(bounds)}}}" if bounds else None
            case "parameter_number":
                return str(message.parameter_number) if self.opcode == "parameter" else None
            case "literal":
                return literal_text(message.literal) if message.HasField("literal") else None
            case _:
                return None

    def _backend_config(self) -> bytes:
        """Return the configuration: its own bytes, or a payload that may be kept in the module."""
        message = self.message
        if message.backend_config or not message.HasField("backend_config_payload"):
            return message.backend_config
        payload = message.backend_config_payload
        return self._computation.module.payload(payload.id) if payload.HasField("id") else payload.value

    @property
    def called(self) -> tuple[tuple[Role, str], ...]:
        """Roles and names of the computations this instruction calls; one that does not exist is called by its id."""
        opcode, names = self.opcode, self._computation.module.computation_names(self.message.called_computation_ids)
        if opcode == "while" and len(names) == 2:  # xla/hlo/ir/hlo_instruction.h: kBodyComputationIndex is 0
            return (("condition", names[1]), ("body", names[0]))
        role: Role = _ROLES.get(opcode, "apply")
        return tuple((role, name) for name in names)

    @property
    def op_name(self) -> str | None:
        """``op_name`` of the metadata."""
        return as_text(self.message.metadata.op_name) or None

    @property
    def source(self) -> str | None:
        """``"file:line"`` of the metadata, through the stack frame tables where the module has those."""
        metadata = self.message.metadata
        if metadata.source_file:
            return f"{as_text(metadata.source_file)}:{metadata.source_line}"
        return self._computation.module.source_of_frame(metadata.stack_frame_id) if metadata.stack_frame_id else None

    @property
    def list_key(self) -> int:
        """The id."""
        return self.message.id

    def metadata_fields(self) -> dict[str, bytes]:
        """Return the fields of the metadata as they are written, by name."""
        metadata = self.raw.message(descriptors.METADATA)
        return {} if metadata is None else metadata.fields()

    def other_attributes(self) -> dict[str, bytes]:
        """Return, as they are written, the fields that no other member speaks of, under the names they have in a text.

        Fields without anything in them, which XLA writes for many an instruction, say nothing.
        """
        fields = self.raw.fields()
        found = {
            descriptors.attribute_name(name): value
            for name, value in fields.items()
            if name not in descriptors.MODELED_FIELDS and value.strip()
        }
        return found | {name: self._backend_config() for name in ("backend_config",) if name in found}

    @property
    def excerpt(self) -> str:
        """What to show of the instruction to people."""
        try:
            return f"{self.name} = {self.opcode}"
        except UnreadableError:
            return f"instruction {self.position} of the computation {self._computation.name}"

    def __eq__(self, other: object) -> bool:
        """Two views of one place are the same instruction."""
        if not isinstance(other, ProtoInstruction):
            return NotImplemented
        return self._computation is other.computation and self.position == other.position

    def __hash__(self) -> int:
        """Hash by place."""
        return hash((id(self._computation), self.position))
