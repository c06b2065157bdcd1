"""Modules: read, look, write. One face, two backends (text and proto)."""

from commlens.hlo.callgraph import CallGraph
from commlens.hlo.collectives import is_collective, signature_of
from commlens.hlo.discovery import Discovery, discover
from commlens.hlo.files import write_atomically
from commlens.hlo.group_modes import group_mode
from commlens.hlo.header_mesh import header_meshes
from commlens.hlo.loading import load, load_all, load_inputs
from commlens.hlo.model import Call, Computation, Instruction, Module, Unread, UnreadableError
from commlens.hlo.opcodes import base_opcode
from commlens.hlo.shapes import Shape, parse_shape
from commlens.hlo.signature import InstructionSite, Signature, Site
from commlens.hlo.trip_counts import trip_count

__all__ = [
    "Call",
    "CallGraph",
    "Computation",
    "Discovery",
    "Instruction",
    "InstructionSite",
    "Module",
    "Shape",
    "Signature",
    "Site",
    "Unread",
    "UnreadableError",
    "base_opcode",
    "discover",
    "group_mode",
    "header_meshes",
    "is_collective",
    "load",
    "load_all",
    "load_inputs",
    "parse_shape",
    "signature_of",
    "trip_count",
    "write_atomically",
]
