"""From an instruction to the signature of the collective it is: the one place that knows what attributes mean.

Works on the interface in :mod:`commlens.hlo.model`, so text and proto cannot differ.
Source: the classes of xla/hlo/ir/hlo_instructions.h, their parsing in xla/hlo/parser/hlo_parser.cc and their reading in
``HloInstruction::CreateFromProto``, xla/hlo/ir/hlo_instruction.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo.model import UnreadableError
from commlens.hlo.opcodes import COLLECTIVES, DIMENSION_REQUIRED, POINT_TO_POINT, base_opcode
from commlens.hlo.shapes import array_leaves
from commlens.hlo.signature import Signature
from commlens.topology import parse_source_target_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.hlo.model import Instruction
    from commlens.hlo.shapes import Shape
    from commlens.topology import DeviceList, SourceTargetPairs

PAIRS_ATTRIBUTE: Final = "_xla_send_recv_source_target_pairs"
"""Frontend attribute in which send and recv carry their pairs."""

TOKEN_ATTRIBUTE: Final = "has_token"
"""Frontend attribute that marks the last operand as one that only orders things."""


def is_collective(opcode: str) -> bool:
    """Whether an opcode is a collective, a send or a recv, or the start of one; done and update forms are not.

    Example:
        >>> is_collective("reduce-scatter-start"), is_collective("all-gather-done"), is_collective("copy-start")
        (True, False, False)
    """
    base, half = base_opcode(opcode)
    return (base in COLLECTIVES and half in ("", "start")) or opcode in POINT_TO_POINT


def signature_of(instruction: Instruction) -> Signature:
    """Read a collective.

    Args:
        instruction: an instruction for whose opcode :func:`is_collective` holds.

    Returns:
        Its signature.

    Raises:
        UnreadableError: an attribute breaks its grammar or is missing, an operand is not defined, or a type is unknown.
    """
    base, half = base_opcode(instruction.opcode)
    if not is_collective(instruction.opcode):
        msg = f"expected the opcode of a collective, found {instruction.opcode!r}"
        raise UnreadableError(msg)
    if base in POINT_TO_POINT:
        return _point_to_point(instruction, base)
    operands = array_leaves(instruction.operand_shapes())
    results = payload(instruction.shape, base, half == "start").arrays()
    attributes = instruction.frontend_attributes
    pairs: SourceTargetPairs | None = None
    groups: DeviceList | None = None
    if base == "collective-permute":
        pairs = instruction.source_target_pairs
        if pairs is None:
            msg = "expected the attribute source_target_pairs, found none"
            raise UnreadableError(msg)
    else:
        groups = instruction.replica_groups
    return Signature(
        opcode=base,
        is_async=half == "start",
        operand_shapes=operands,
        result_shapes=results,
        groups=groups,
        pairs=pairs,
        has_channel=instruction.channel_id is not None,
        use_global_device_ids=instruction.use_global_device_ids,
        constrain_layout=instruction.constrain_layout,
        dimensions=checked_dimensions(base, instruction.dimensions),
        token_operands=token_operands(base, operands, results, groups, attributes),
        frontend_attributes=attributes,
    )


def _point_to_point(instruction: Instruction, opcode: str) -> Signature:
    """Read a send (its first operand is what it sends) or a recv (its result's first part is what arrives)."""
    attributes = instruction.frontend_attributes
    written = attributes.get(PAIRS_ATTRIBUTE)
    try:
        pairs = None if written is None else parse_source_target_pairs(written)
    except ValueError as error:
        msg = f"{PAIRS_ATTRIBUTE} cannot be read: {error}"
        raise UnreadableError(msg) from error
    shape = instruction.shape
    payload_shape = shape.elements[0] if shape.is_tuple and shape.elements else shape
    sent = opcode == "send"
    return Signature(
        opcode=opcode,
        is_async=False,
        operand_shapes=array_leaves(instruction.operand_shapes()[:1]) if sent else (),
        result_shapes=() if sent else payload_shape.arrays(),
        pairs=pairs,
        has_channel=instruction.channel_id is not None,
        is_host_transfer=bool(instruction.flag("is_host_transfer")),
        frontend_attributes=attributes,
    )


def payload(shape: Shape, opcode: str, start: bool) -> Shape:
    """Return the part of a collective's result that holds what was exchanged.

    The start of an all-reduce has the plain result; every other start has ``(operands, results, contexts...)``, and so
    has an async-start around an all-reduce, which XLA prints as ``all-reduce-start`` too: its first part is a tuple.

    Args:
        shape: the whole result.
        opcode: the operation without its asynchronous half.
        start: whether this is a start.

    Raises:
        UnreadableError: a start's result is no tuple of operands and results.
    """
    is_nested = shape.is_tuple and bool(shape.elements) and shape.elements[0].is_tuple
    if not start or (opcode == "all-reduce" and not is_nested):
        return shape
    if not shape.is_tuple or len(shape.elements) < 2:
        msg = f"expected the result of {opcode}-start to be (operands, results, ...), found {shape}"
        raise UnreadableError(msg)
    return shape.elements[1]


def checked_dimensions(opcode: str, dimensions: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return the dimension that counts, as XLA takes it.

    all-gather and reduce-scatter need one and take the first of several; all-to-all takes exactly one or, in its tuple
    form, none; ragged-all-to-all drops what is written.

    Raises:
        UnreadableError: a required dimension is missing, or all-to-all states none or several.
    """
    if opcode in DIMENSION_REQUIRED:
        if not dimensions:
            msg = f"expected {opcode} to state its dimension, as in dimensions={{0}}, found none"
            raise UnreadableError(msg)
        return dimensions[:1]
    if opcode == "all-to-all" and dimensions is not None:
        if len(dimensions) != 1:
            msg = f"expected one dimension of all-to-all, or no dimensions attribute, found {len(dimensions)}"
            raise UnreadableError(msg)
        return dimensions
    return None


def token_operands(
    opcode: str,
    operands: tuple[Shape, ...],
    results: tuple[Shape, ...],
    groups: DeviceList | None,
    attributes: Mapping[str, str],
) -> tuple[int, ...]:
    """Return the positions of operands that ride along only to order things.

    torch_xla and Neuron add a scalar to their collectives. In a variadic all-gather or reduce-scatter of more than
    one participant it is the operand that keeps its shape; elsewhere it must be said with ``has_token="1"``.
    """
    found: set[int] = set()
    if opcode in DIMENSION_REQUIRED and len(operands) > 1 and len(operands) == len(results):
        kept = {i for i, (before, after) in enumerate(zip(operands, results, strict=True)) if before == after}
        several = groups is not None and (groups.num_devices_per_group or 0) > 1
        if several or len(kept) < len(operands):
            found |= kept
    if attributes.get(TOKEN_ATTRIBUTE) == "1" and operands:
        found.add(len(operands) - 1)
    return tuple(sorted(found))
