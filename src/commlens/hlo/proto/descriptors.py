"""Descriptors of the messages and fields that edits name, those included that the schema leaves out.

Source: xla/service/hlo.proto and xla/xla_data.proto.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.hlo.proto.raw_message import Word
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.proto.wire import BYTES, VARINT

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from google.protobuf.message import Message


@dataclass(frozen=True, slots=True, eq=False)
class MessageDescriptor:
    """A kind of message: the names and numbers of its fields.

    Attributes:
        numbers: the fields' numbers by name.
        names: their names by number.
    """

    numbers: Mapping[str, int]
    names: Mapping[int, str]

    @classmethod
    def of(cls, numbers: Mapping[str, int]) -> MessageDescriptor:
        """Return the descriptor of messages whose fields have these numbers."""
        names = {number: name for name, number in numbers.items()}
        return cls(MappingProxyType(dict(numbers)), MappingProxyType(names))


@dataclass(frozen=True, slots=True, eq=False)
class FieldDescriptor:
    """A field of a kind of message.

    Attributes:
        number: its number, by which binary messages know it.
        name: its name, by which texts know it.
        kind: of the message in it; :data:`NO_MESSAGE` of a field with another value.
        packed: whether a binary message has its numbers, which may be many, in one piece.
        wire_types: how a binary message may write its value.
    """

    number: int
    name: str
    kind: MessageDescriptor
    packed: bool
    wire_types: Collection[int]


def _message(message: type[Message], others: str = "") -> MessageDescriptor:
    """Return the descriptor of a message of the schema, whole.

    Args:
        message: its class.
        others: fields that the schema leaves out: ``"name number ..."``.
    """
    words = others.split()
    numbers = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    numbers |= {field.name: field.number for field in message.DESCRIPTOR.fields}
    return MessageDescriptor.of(numbers)


NO_MESSAGE: Final = MessageDescriptor.of({})
"""What is in a field that holds a number or a text."""

MODULE: Final = _message(
    schema.HloModuleProto,
    "host_program_shape 4 id 5 input_output_alias 8 cross_program_prefetches 10 is_dynamic 11 spmd_output_sharding 12 "
    "profile_info 13 spmd_parameters_shardings 14 use_auto_spmd_partitioning 16 buffer_donor 18 "
    "original_value_recovery_table 20 device_type 21 pjrt_id 23",
)
COMPUTATION: Final = _message(schema.HloComputationProto, "program_shape 4 is_fusion_computation 7 execution_thread 8")
INSTRUCTION: Final = _message(
    schema.HloInstructionProto,
    "window 15 convolution_dimension_numbers 16 slice_dimensions 17 exponent_bits 18 mantissa_bits 19 "
    "padding_config 21 outfeed_config 22 distribution 23 epsilon 24 feature_index 25 infeed_config 27 outfeed_shape 29 "
    "dot_dimension_numbers 30 fft_type 31 fft_length 32 gather_dimension_numbers 33 gather_slice_sizes 34 sharding 40 "
    "scatter_dimension_numbers 48 feature_group_count 50 precision_config 51 domain_entry_sharding 54 "
    "domain_exit_sharding 55 operand_shapes_with_layout 57 batch_group_count 58 triangular_solve_options 59 "
    "is_stable 60 parameter_replication 61 cholesky_options 62 custom_call_has_side_effect 65 delta 66 "
    "indices_are_sorted 67 unique_indices 69 rng_algorithm 70 comparison_type 72 is_cross_program_prefetch 73 "
    "output_operand_aliasing 74 padding_type 75 custom_call_schedule 76 custom_call_api_version 77 "
    "cross_program_prefetch_index 80 k 81 statistics_viz 82 largest 85 original_value 88 is_composite 89 "
    "ragged_dot_dimension_numbers 90 result_accuracy 91 is_reverse 94 num_carries 95 is_associative 96 conv_kind 97 "
    "sparsity_config 98",
)
_METADATA: Final = _message(
    schema.OpMetadata,
    "op_type 1 profile_type 5 size_of_generated_code_in_bytes 8 size_of_memory_working_set_in_bytes 9 profile_info 10 "
    "deduplicated_name 12 scheduling_name 16 source_end_line 17 source_column 18 source_end_column 19 "
    "metadata_payload 20",
)
_SHAPE: Final = _message(schema.ShapeProto, "layout 5")
_LAYOUT: Final = _message(
    schema.LayoutProto,
    "tiles 6 element_size_in_bits 7 memory_space 8 dim_level_types 9 physical_shape 10 index_primitive_type 11 "
    "pointer_primitive_type 12 dim_unique 13 dim_ordered 14 dynamic_shape_metadata_prefix_bytes 15 "
    "tail_padding_alignment_in_elements 16 split_configs 17",
)
_SHARDING: Final = MessageDescriptor.of(
    {"type": 1, "tile_assignment_dimensions": 3, "tuple_shardings": 5, "iota_reshape_dims": 9, "named_sharding": 14}
)
_ATTRIBUTES: Final = _message(schema.FrontendAttributes)
_ENTRY: Final = _message(schema.FrontendAttributes.MapEntry)
_SCHEDULE: Final = MessageDescriptor.of({"sequences": 1})
_SEQUENCE_ENTRY: Final = MessageDescriptor.of({"key": 1, "value": 2})
_SEQUENCE: Final = _message(schema.HloScheduleProto.InstructionSequence)


def _field(kind: MessageDescriptor, name: str, inner: MessageDescriptor = NO_MESSAGE) -> FieldDescriptor:
    """Return a field with a number in it, or with a message."""
    return FieldDescriptor(
        kind.numbers[name], name, inner, packed=False, wire_types=(VARINT if inner is NO_MESSAGE else BYTES,)
    )


def _text(kind: MessageDescriptor, name: str) -> FieldDescriptor:
    return FieldDescriptor(kind.numbers[name], name, NO_MESSAGE, packed=False, wire_types=(BYTES,))


def _numbers(kind: MessageDescriptor, name: str) -> FieldDescriptor:
    return FieldDescriptor(kind.numbers[name], name, NO_MESSAGE, packed=True, wire_types=(BYTES, VARINT))


COMPUTATIONS: Final = _field(MODULE, "computations", COMPUTATION)
SCHEDULE: Final = _field(MODULE, "schedule", _SCHEDULE)
SEQUENCES: Final = _field(_SCHEDULE, "sequences", _SEQUENCE_ENTRY)
SEQUENCE: Final = _field(_SEQUENCE_ENTRY, "value", _SEQUENCE)
SCHEDULED_IDS: Final = _numbers(_SEQUENCE, "instruction_ids")

INSTRUCTIONS: Final = _field(COMPUTATION, "instructions", INSTRUCTION)
ROOT_ID: Final = _field(COMPUTATION, "root_id")
EXECUTION_THREAD: Final = _text(COMPUTATION, "execution_thread")

NAME: Final = _text(INSTRUCTION, "name")
OPCODE: Final = _text(INSTRUCTION, "opcode")
SHAPE: Final = _field(INSTRUCTION, "shape", _SHAPE)
METADATA: Final = _field(INSTRUCTION, "metadata", _METADATA)
TUPLE_INDEX: Final = _field(INSTRUCTION, "tuple_index")
DIMENSIONS: Final = _numbers(INSTRUCTION, "dimensions")
CHANNEL_ID: Final = _field(INSTRUCTION, "channel_id")
CUSTOM_CALL_TARGET: Final = _text(INSTRUCTION, "custom_call_target")
ID: Final = _field(INSTRUCTION, "id")
OPERAND_IDS: Final = _numbers(INSTRUCTION, "operand_ids")
CONTROL_PREDECESSOR_IDS: Final = _numbers(INSTRUCTION, "control_predecessor_ids")
SHARDING: Final = _field(INSTRUCTION, "sharding", _SHARDING)
BACKEND_CONFIG: Final = _text(INSTRUCTION, "backend_config")
ALL_REDUCE_ID: Final = _field(INSTRUCTION, "all_reduce_id")
FRONTEND_ATTRIBUTES: Final = _field(INSTRUCTION, "frontend_attributes", _ATTRIBUTES)
CUSTOM_CALL_API_VERSION: Final = _field(INSTRUCTION, "custom_call_api_version")

ATTRIBUTES: Final = _field(_ATTRIBUTES, "map", _ENTRY)
ATTRIBUTE_KEY: Final = _text(_ENTRY, "key")
ATTRIBUTE_VALUE: Final = _text(_ENTRY, "value")

ELEMENT_TYPE: Final = _field(_SHAPE, "element_type")
SIZES: Final = _numbers(_SHAPE, "dimensions")
TUPLE_SHAPES: Final = _field(_SHAPE, "tuple_shapes", _SHAPE)
LAYOUT: Final = _field(_SHAPE, "layout", _LAYOUT)
IS_DYNAMIC: Final = _numbers(_SHAPE, "is_dynamic_dimension")
MINOR_TO_MAJOR: Final = _numbers(_LAYOUT, "minor_to_major")
SHARDING_TYPE: Final = _field(_SHARDING, "type")
TUPLE_SHARDINGS: Final = _field(_SHARDING, "tuple_shardings", _SHARDING)

_NAMES_IN_TEXTS: Final = MappingProxyType(
    {
        "backend_config_payload": "backend_config",
        "dynamic_slice_sizes": "slice_sizes",
        "original_value": "origin",
        "statistics_viz": "statistics",
    }
)

MODELED_FIELDS: Final = frozenset(
    {
        *("name", "opcode", "shape", "metadata", "parameter_number", "literal", "tuple_index", "fusion_kind"),
        *("comparison_direction", "dimensions", "channel_id", "custom_call_target", "id", "operand_ids"),
        *("control_predecessor_ids", "called_computation_ids", "sharding", "replica_group_ids", "all_reduce_id"),
        *("is_host_transfer", "replica_groups", "source_target_pairs", "constrain_layout", "frontend_attributes"),
        *("use_global_device_ids", "collective_device_list", "iota_collective_device_list"),
        "mesh_axes_replica_group_list",
    }
)
"""Fields that a member of an instruction or the meaning of a collective speaks of."""

TUPLE_SHAPE: Final = Word(13, "TUPLE")
TUPLE_SHARDING: Final = Word(2, "TUPLE")
API_VERSION_ORIGINAL: Final = Word(1, "API_VERSION_ORIGINAL")


def attribute_name(field: str) -> str:
    """Return what HLO text calls the attribute that a field of an instruction is.

    Example:
        >>> attribute_name("statistics_viz"), attribute_name("backend_config")
        ('statistics', 'backend_config')
    """
    return _NAMES_IN_TEXTS.get(field, field)
