"""Setting fields of an instruction; all others stay as they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo.formatting import as_text
from commlens.hlo.opcodes import base_opcode
from commlens.hlo.proto import descriptors
from commlens.hlo.proto.schema.commlens_hlo_pb2 import FrontendAttributes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.hlo.edit_plan import AttributeChange
    from commlens.hlo.proto.descriptors import FieldDescriptor
    from commlens.hlo.proto.raw_message import RawMessage, Value
    from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloInstructionProto

ALL_REDUCES: Final = frozenset({"all-reduce", "reduce-scatter"})
"""Opcodes that may state their channel in the field of 2019, ``all_reduce_id``."""

_GONE_IN_A_CUSTOM_CALL: Final = frozenset(
    {
        *("dimensions", "dynamic_slice_sizes", "channel_id", "called_computation_ids", "replica_group_ids"),
        *("all_reduce_id", "is_host_transfer", "replica_groups", "source_target_pairs", "constrain_layout"),
        *("use_global_device_ids", "collective_device_list", "iota_collective_device_list"),
        *("mesh_axes_replica_group_list", "backend_config_payload"),
    }
)
_CUSTOM_CALL: Final = b"custom-call"


class AttributeWriter:
    """Writes attributes of instructions of one module; most maps occur again and again, and are written once."""

    __slots__ = ("_maps",)

    def __init__(self) -> None:
        self._maps: dict[tuple[bytes, ...], RawMessage] = {}

    def changed(self, written: RawMessage, message: HloInstructionProto, change: AttributeChange) -> RawMessage | None:
        """Set attributes of an instruction.

        Args:
            written: the instruction.
            message: the same, decoded.
            change: what to set.

        Returns:
            The instruction as it is to be written; None where it is so already.
        """
        changes: dict[FieldDescriptor, Sequence[Value]] = {}
        if change.channel_id is not None:
            changes |= _channel(message, change.channel_id)
        if change.frontend_attributes:
            before = written.message(descriptors.FRONTEND_ATTRIBUTES) or written.empty(
                descriptors.FRONTEND_ATTRIBUTES.kind
            )
            after = before
            for key, value in change.frontend_attributes.items():
                after = self._with_attribute(after, key.encode(), value.encode())
            if after is not before:
                changes[descriptors.FRONTEND_ATTRIBUTES] = [after]
        return written.with_fields(changes) if changes else None

    def _with_attribute(self, attributes: RawMessage, key: bytes, value: bytes) -> RawMessage:
        known = (attributes.data, key, value)
        made = self._maps.get(known)
        if made is None:
            made = with_attribute(attributes, key, value)
            if made is not attributes:
                self._maps[known] = made
        return made


def _channel(message: HloInstructionProto, channel_id: int) -> dict[FieldDescriptor, Sequence[Value]]:
    """Return what to write for a channel to be another one: an all-reduce of 2019 has it in a field of its own."""
    is_old = message.all_reduce_id > 0 and base_opcode(as_text(message.opcode))[0] in ALL_REDUCES
    field, number = (
        (descriptors.ALL_REDUCE_ID, message.all_reduce_id) if is_old else (descriptors.CHANNEL_ID, message.channel_id)
    )
    return {field: [channel_id]} if number != channel_id else {}


def with_attribute(attributes: RawMessage, key: bytes, value: bytes) -> RawMessage:
    """Set one of the frontend attributes of an instruction.

    A new one goes before the first greater key, else to the end. Of a key that stands there twice the last counts.

    Args:
        attributes: the frontend attributes.
        key: its key.
        value: its value.

    Returns:
        The frontend attributes as they are to be written; the given ones where they are so already.
    """
    entries = attributes.messages(descriptors.ATTRIBUTES)
    decoded = [entry.decoded(FrontendAttributes.MapEntry) for entry in entries]
    keys = [entry.key for entry in decoded]
    if key not in keys:
        index = next((index for index, other in enumerate(keys) if other > key), len(keys))
        entry = attributes.empty(descriptors.ATTRIBUTES.kind).with_fields(
            {descriptors.ATTRIBUTE_KEY: [key], descriptors.ATTRIBUTE_VALUE: [value]}
        )
        return attributes.with_inserted(descriptors.ATTRIBUTES, index, entry)
    index = len(keys) - 1 - keys[::-1].index(key)
    if decoded[index].value == value:
        return attributes
    return attributes.with_replaced(
        descriptors.ATTRIBUTES, {index: [entries[index].with_fields({descriptors.ATTRIBUTE_VALUE: [value]})]}
    )


def as_custom_call(written: RawMessage, target: bytes, backend_config: bytes) -> RawMessage:
    """Turn a collective into a custom call.

    Args:
        written: the instruction.
        target: ``custom_call_target``.
        backend_config: the configuration.
    """
    return written.without(_GONE_IN_A_CUSTOM_CALL).with_fields(
        {
            descriptors.OPCODE: [_CUSTOM_CALL],
            descriptors.CUSTOM_CALL_TARGET: [target],
            descriptors.BACKEND_CONFIG: [backend_config],
            descriptors.CUSTOM_CALL_API_VERSION: [descriptors.API_VERSION_ORIGINAL],
        }
    )
