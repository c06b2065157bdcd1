"""Modules: read, look, write. One face, two backends (text and proto)."""

from commlens.hlo.callgraph import CallGraph
from commlens.hlo.collectives import is_collective, signature_of
from commlens.hlo.discovery import Discovery, discover
from commlens.hlo.edits import BecomeCustomCall, Combine, Edit, EditError, SetChannelId, SetFrontendAttribute
from commlens.hlo.files import write_atomically
from commlens.hlo.graphs import Graph
from commlens.hlo.group_modes import group_mode
from commlens.hlo.header_mesh import header_meshes
from commlens.hlo.instruction_lists import Listed, communication_in_list_order, opcode_in_memory
from commlens.hlo.loading import load, load_all, load_inputs
from commlens.hlo.model import Call, Computation, Instruction, Module, Unread, UnreadableError
from commlens.hlo.opcodes import base_opcode
from commlens.hlo.passes.base import Json, Pass, PassResult, Refusals, finished
from commlens.hlo.shapes import Shape, parse_shape
from commlens.hlo.signature import InstructionSite, Signature, Site
from commlens.hlo.trip_counts import trip_count

__all__ = [
    "BecomeCustomCall",
    "Call",
    "CallGraph",
    "Combine",
    "Computation",
    "Discovery",
    "Edit",
    "EditError",
    "Graph",
    "Instruction",
    "InstructionSite",
    "Json",
    "Listed",
    "Module",
    "Pass",
    "PassResult",
    "Refusals",
    "SetChannelId",
    "SetFrontendAttribute",
    "Shape",
    "Signature",
    "Site",
    "Unread",
    "UnreadableError",
    "base_opcode",
    "communication_in_list_order",
    "discover",
    "finished",
    "group_mode",
    "header_meshes",
    "is_collective",
    "load",
    "load_all",
    "load_inputs",
    "opcode_in_memory",
    "parse_shape",
    "signature_of",
    "trip_count",
    "write_atomically",
]
