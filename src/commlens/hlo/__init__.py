"""HLO modules: loading, reading, editing, writing. One interface, two backends (text and proto)."""

from commlens.hlo.async_attributes import instructions_restating
from commlens.hlo.callgraph import CallGraph
from commlens.hlo.collectives import is_collective, signature_of
from commlens.hlo.compression import MAX_BYTES, compression_of, read_file, read_stream, uncompressed
from commlens.hlo.custom_calls import custom_call_opcode, custom_call_signature
from commlens.hlo.definition_order import module_uses_before_definition, uses_before_definition
from commlens.hlo.discovery import Discovery, discover
from commlens.hlo.edits import BecomeCustomCall, Combine, Edit, EditError, SetChannelId, SetFrontendAttribute
from commlens.hlo.execution_threads import execution_thread
from commlens.hlo.fast_queries import (
    are_provably_chained,
    first_operand,
    has_attribute,
    list_keys,
    opcode_of,
    post_order_keys,
    reducer_opcode,
    to_apply_name,
)
from commlens.hlo.files import descriptor_named, write_atomically
from commlens.hlo.formatting import shortened, some_of
from commlens.hlo.graphs import Graph
from commlens.hlo.group_canonicalization import canonical_groups
from commlens.hlo.group_modes import group_mode
from commlens.hlo.header_mesh import header_meshes
from commlens.hlo.instruction_lists import Listed, communication_in_list_order, opcode_in_memory
from commlens.hlo.loading import load, load_all, load_inputs
from commlens.hlo.metadata import metadata_in_words
from commlens.hlo.model import Call, Computation, Instruction, Module, Unread, UnreadableError
from commlens.hlo.opcodes import base_opcode
from commlens.hlo.passes.base import Json, LeftAlone, Pass, PassResult
from commlens.hlo.passes.definition_order import check_definition_order
from commlens.hlo.passes.facts import figures, shares
from commlens.hlo.passes.pipeline import Pipeline, pass_in_words
from commlens.hlo.passes.refusals import AppliedEdits, Refusals, pass_result
from commlens.hlo.passes.spec import Option, nearest, options_of, parse_specs, spec_of, specs_of
from commlens.hlo.reducers import reducer_of
from commlens.hlo.reductions import ReductionKind, reduction_kind
from commlens.hlo.rules import (
    MOST_LISTED,
    SEVERITIES,
    TARGETS,
    Deployment,
    Example,
    Finding,
    Place,
    Rule,
    Severity,
    Subject,
    Target,
    check_listable,
    find_all,
)
from commlens.hlo.schedules import in_schedule_order, is_scheduled
from commlens.hlo.serialization import serialized_module
from commlens.hlo.shapes import Shape, parse_shape
from commlens.hlo.signature import InstructionSite, Signature, Site
from commlens.hlo.source_files import SourceFile, read_source_file
from commlens.hlo.trip_counts import trip_count
from commlens.hlo.use_before_definition import UseBeforeDefinition

__all__ = [
    "MAX_BYTES",
    "MOST_LISTED",
    "SEVERITIES",
    "TARGETS",
    "AppliedEdits",
    "BecomeCustomCall",
    "Call",
    "CallGraph",
    "Combine",
    "Computation",
    "Deployment",
    "Discovery",
    "Edit",
    "EditError",
    "Example",
    "Finding",
    "Graph",
    "Instruction",
    "InstructionSite",
    "Json",
    "LeftAlone",
    "Listed",
    "Module",
    "Option",
    "Pass",
    "PassResult",
    "Pipeline",
    "Place",
    "ReductionKind",
    "Refusals",
    "Rule",
    "SetChannelId",
    "SetFrontendAttribute",
    "Severity",
    "Shape",
    "Signature",
    "Site",
    "SourceFile",
    "Subject",
    "Target",
    "Unread",
    "UnreadableError",
    "UseBeforeDefinition",
    "are_provably_chained",
    "base_opcode",
    "canonical_groups",
    "check_definition_order",
    "check_listable",
    "communication_in_list_order",
    "compression_of",
    "custom_call_opcode",
    "custom_call_signature",
    "descriptor_named",
    "discover",
    "execution_thread",
    "figures",
    "find_all",
    "first_operand",
    "group_mode",
    "has_attribute",
    "header_meshes",
    "in_schedule_order",
    "instructions_restating",
    "is_collective",
    "is_scheduled",
    "list_keys",
    "load",
    "load_all",
    "load_inputs",
    "metadata_in_words",
    "module_uses_before_definition",
    "nearest",
    "opcode_in_memory",
    "opcode_of",
    "options_of",
    "parse_shape",
    "parse_specs",
    "pass_in_words",
    "pass_result",
    "post_order_keys",
    "read_file",
    "read_source_file",
    "read_stream",
    "reducer_of",
    "reducer_opcode",
    "reduction_kind",
    "serialized_module",
    "shares",
    "shortened",
    "signature_of",
    "some_of",
    "spec_of",
    "specs_of",
    "to_apply_name",
    "trip_count",
    "uncompressed",
    "uses_before_definition",
    "write_atomically",
]
