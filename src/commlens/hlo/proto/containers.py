"""Finding the modules in a binary proto, whichever of XLA's messages it is.

Field 1 tells the messages apart: a name (HloModuleProto, HloModuleGroupProto), a module (HloProto,
HloModuleProtoWithConfig, HloUnoptimizedSnapshot) or a message with a module in it (HloSnapshot).
Source: xla/service/hlo.proto and xla/xla.proto.
"""

from __future__ import annotations

import re
from typing import Final

from commlens.hlo.model import UnreadableError
from commlens.hlo.proto.decoding import decode_or_empty
from commlens.hlo.proto.locations import BinaryLocation, FoundModule
from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloInstructionOutline, HloModuleConfigProto
from commlens.hlo.proto.wire import BYTES, Field, WireError, read_fields

_OPCODE: Final = re.compile(rb"[a-z][a-z0-9\-]*")


def find_modules(data: bytes) -> list[FoundModule]:
    """Find the modules in a binary proto.

    Args:
        data: the whole content.

    Returns:
        The modules in file order, at least one.

    Raises:
        WireError: this is no such proto, or was cut; or a module stands twice in a field that may occur once.
    """
    whole = _module(data, ())
    if whole is not None:
        return [whole]
    fields = list(read_fields(data, 0, len(data)))
    first = next((field for field in fields if field.number == 1 and field.wire_type == BYTES), None)
    if first is not None:
        inner = _module(data, (first,))
        if inner is not None:
            _check_single(fields, "hlo_module")
            return [inner._replace(config=_config(data, fields))]
        innermost = _module_in(data, first)
        if innermost is not None:
            _check_single(fields, "hlo")
            _check_single(list(read_fields(data, first.start, first.end)), "hlo_module")
            return [innermost]
    members = [_module(data, (each,)) for each in fields if each.number == 2 and each.wire_type == BYTES]
    found = [member for member in members if member is not None]
    if not found:
        msg = "the data are a protobuf message, but none with an HLO module"
        raise WireError(msg)
    return found


def _check_single(fields: list[Field], name: str) -> None:
    """Refuse a message with two modules in field 1, which may occur once.

    Protobuf puts the fields of the second behind those of the first, which makes a module of two halves.

    Raises:
        WireError: it has two.
    """
    number = sum(field.number == 1 and field.wire_type == BYTES for field in fields)
    if number > 1:
        msg = f"expected {name} (field 1) once in its message, found it {number} times"
        raise WireError(msg)


def _module(data: bytes, fields: tuple[Field, ...]) -> FoundModule | None:
    """Return what stands in fields, if it is a module: it has computations with instructions that have opcodes."""
    location = BinaryLocation(fields)
    try:
        outline = location.outline(data)
    except UnreadableError:
        return None
    instructions = (each for computation in outline.computations for each in computation.instructions)
    opcodes = (decode_or_empty(HloInstructionOutline, each).opcode for each in instructions)
    return FoundModule(data, outline, None, location) if any(map(_OPCODE.fullmatch, opcodes)) else None


def _module_in(data: bytes, outer: Field) -> FoundModule | None:
    """Return the module in field 1 of a message, None if there is none."""
    try:
        for field in read_fields(data, outer.start, outer.end):
            if field.number == 1 and field.wire_type == BYTES:
                return _module(data, (outer, field))
    except WireError:
        return None
    return None


def _config(data: bytes, fields: list[Field]) -> HloModuleConfigProto | None:
    """Return the configuration in field 2 beside a module.

    HloUnoptimizedSnapshot has the inputs of its partitions there: they share no number with what is read of a
    configuration, so they say nothing.
    """
    for field in fields:
        if field.number == 2 and field.wire_type == BYTES:
            return decode_or_empty(HloModuleConfigProto, data[field.start : field.end])
    return None
