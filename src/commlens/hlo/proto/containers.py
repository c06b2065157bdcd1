"""Finding the modules in a binary proto, whichever of XLA's messages it is.

Field 1 tells the messages apart: a name (HloModuleProto, HloModuleGroupProto), a module (HloProto,
HloModuleProtoWithConfig, HloUnoptimizedSnapshot) or a message with a module in it (HloSnapshot).
Source: xla/service/hlo.proto and xla/xla.proto.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from commlens.hlo.model import UnreadableError
from commlens.hlo.proto.decoding import decode
from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloInstructionOutline, HloModuleConfigProto, HloModuleOutline
from commlens.hlo.proto.wire import BYTES, VARINT, Field, WireError, read_fields

_OPCODE: Final = re.compile(rb"[a-z][a-z0-9\-]*")
_INPUTS: Final = frozenset({1, 2})
"""Fields of HloInputs, which stands where HloModuleProtoWithConfig has its configuration."""


class FoundModule(NamedTuple):
    """A module and the configuration beside it, where there is one."""

    outline: HloModuleOutline
    config: HloModuleConfigProto | None


def find_modules(data: bytes) -> list[FoundModule]:
    """Find the modules in a binary proto.

    Args:
        data: the whole content.

    Returns:
        The modules in file order, at least one.

    Raises:
        WireError: this is no such proto, or was cut.
    """
    whole = _module(data)
    if whole is not None:
        return [FoundModule(whole, None)]
    fields = list(read_fields(data, 0, len(data)))
    first = next((field for field in fields if field.number == 1 and field.wire_type == BYTES), None)
    if first is not None:
        inner = _module(data[first.start : first.end]) or _module_in(data, first)
        if inner is not None:
            return [FoundModule(inner, _config(data, fields))]
    members = [_module(data[each.start : each.end]) for each in fields if each.number == 2 and each.wire_type == BYTES]
    found = [FoundModule(member, None) for member in members if member is not None]
    if not found:
        msg = "the data are a protobuf message, but none with an HLO module"
        raise WireError(msg)
    return found


def _module(data: bytes) -> HloModuleOutline | None:
    """Return the outline of a message if it is a module: it has computations, and those have instructions."""
    try:
        outline = decode(HloModuleOutline, data)
        for computation in outline.computations:
            for instruction in computation.instructions:
                opcode = decode(HloInstructionOutline, instruction).opcode
                return outline if _OPCODE.fullmatch(opcode) else None
    except UnreadableError:
        return None
    return None


def _module_in(data: bytes, outer: Field) -> HloModuleOutline | None:
    """Return the module in field 1 of a message, None if there is none."""
    try:
        for field in read_fields(data, outer.start, outer.end):
            if field.number == 1 and field.wire_type == BYTES:
                return _module(data[field.start : field.end])
    except WireError:
        return None
    return None


def _config(data: bytes, fields: list[Field]) -> HloModuleConfigProto | None:
    """Return the configuration in field 2 of a message, None if that field holds something else."""
    seconds = [field for field in fields if field.number == 2 and field.wire_type == BYTES]
    if len(seconds) != 1:
        return None
    start, end = seconds[0].start, seconds[0].end
    try:
        inner = list(read_fields(data, start, end))
        if all(field.number in _INPUTS and field.wire_type != VARINT for field in inner):
            return None
        return decode(HloModuleConfigProto, data[start:end])
    except (WireError, UnreadableError):
        return None
