"""Modules: read, look, write. One face, two backends (text and proto)."""

from commlens.hlo.bare import bare_bytes
from commlens.hlo.callgraph import CallGraph
from commlens.hlo.collectives import is_collective, signature_of
from commlens.hlo.containers import MAX_BYTES, compression_of, read_file, read_stream, uncompressed
from commlens.hlo.custom_calls import custom_call_opcode, custom_call_signature
from commlens.hlo.discovery import Discovery, discover
from commlens.hlo.edits import BecomeCustomCall, Combine, Edit, EditError, SetChannelId, SetFrontendAttribute
from commlens.hlo.files import descriptor_named, write_atomically
from commlens.hlo.glances import (
    applied_name,
    first_operand,
    list_keys,
    opcode_of,
    operation_on_parameters,
    post_order_keys,
    seen_as_chains,
    states,
)
from commlens.hlo.graphs import Graph
from commlens.hlo.group_modes import group_mode
from commlens.hlo.header_mesh import header_meshes
from commlens.hlo.instruction_lists import Listed, communication_in_list_order, opcode_in_memory
from commlens.hlo.loading import load, load_all, load_inputs
from commlens.hlo.metadata import metadata_in_words
from commlens.hlo.model import Call, Computation, Instruction, Module, Unread, UnreadableError
from commlens.hlo.needs import unmet_needs, unmet_needs_of
from commlens.hlo.opcodes import base_opcode
from commlens.hlo.passes.base import Json, LeftAlone, Pass, PassResult
from commlens.hlo.passes.facts import figures, shares
from commlens.hlo.passes.needs import check_needs
from commlens.hlo.passes.pipeline import Pipeline
from commlens.hlo.passes.refusals import Made, Refusals, finished
from commlens.hlo.passes.spec import Option, nearest, options_of, parse_specs, spec_of, specs_of
from commlens.hlo.products import Original, read_original
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
from commlens.hlo.running_order import in_running_order, is_scheduled
from commlens.hlo.shapes import Shape, parse_shape
from commlens.hlo.signature import InstructionSite, Signature, Site
from commlens.hlo.spellings import one_spelling
from commlens.hlo.spoken_beside import restating
from commlens.hlo.threads import execution_thread
from commlens.hlo.trip_counts import trip_count
from commlens.hlo.unmet_need import UnmetNeed
from commlens.hlo.wording import shortened, some_of

__all__ = [
    "MAX_BYTES",
    "MOST_LISTED",
    "SEVERITIES",
    "TARGETS",
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
    "Made",
    "Module",
    "Option",
    "Original",
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
    "Subject",
    "Target",
    "UnmetNeed",
    "Unread",
    "UnreadableError",
    "applied_name",
    "bare_bytes",
    "base_opcode",
    "check_listable",
    "check_needs",
    "communication_in_list_order",
    "compression_of",
    "custom_call_opcode",
    "custom_call_signature",
    "descriptor_named",
    "discover",
    "execution_thread",
    "figures",
    "find_all",
    "finished",
    "first_operand",
    "group_mode",
    "header_meshes",
    "in_running_order",
    "is_collective",
    "is_scheduled",
    "list_keys",
    "load",
    "load_all",
    "load_inputs",
    "metadata_in_words",
    "nearest",
    "one_spelling",
    "opcode_in_memory",
    "opcode_of",
    "operation_on_parameters",
    "options_of",
    "parse_shape",
    "parse_specs",
    "post_order_keys",
    "read_file",
    "read_original",
    "read_stream",
    "reducer_of",
    "reduction_kind",
    "restating",
    "seen_as_chains",
    "shares",
    "shortened",
    "signature_of",
    "some_of",
    "spec_of",
    "specs_of",
    "states",
    "trip_count",
    "uncompressed",
    "unmet_needs",
    "unmet_needs_of",
    "write_atomically",
]
