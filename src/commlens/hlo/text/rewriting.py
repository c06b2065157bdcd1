"""Making another instruction of one, in its place and under its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo.text.attribute_edits import comma_before
from commlens.hlo.text.splices import Splice
from commlens.hlo.text.tokens import quoted
from commlens.hlo.text.values import MODELED_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Collection

    from commlens.hlo.edits import BecomeCustomCall
    from commlens.hlo.text.line import Line

CUSTOM_CALL: Final = b"custom-call"
_KEPT_BY_CUSTOM_CALLS: Final = frozenset({"control-predecessors", "frontend_attributes", "metadata", "sharding"})


def rewritten(
    line: Line, opcode: bytes, attributes: bytes, *, keep: Collection[str], operands: bytes | None = None
) -> list[Splice]:
    r"""Find which bytes change when an instruction becomes another one.

    Args:
        line: the instruction, taken apart without fault.
        opcode: its new opcode.
        attributes: its new attributes, each behind a comma; they come first.
        keep: names of the attributes that stay as they are, behind the new ones.
        operands: its new operand list; None for the old one.

    Returns:
        Splices with offsets in the instruction, in ascending order.

    Example:
        >>> from commlens.hlo.text.line import parse_line
        >>> from commlens.hlo.text.splices import spliced
        >>> text = b"ROOT x = f32[8] all-reduce(a), to_apply=add, sharding={replicated}"
        >>> changes = rewritten(
        ...     parse_line(text), b"get-tuple-element", b", index=1", keep={"sharding"}, operands=b"both"
        ... )
        >>> spliced(text, changes)
        b'ROOT x = f32[8] get-tuple-element(both), index=1, sharding={replicated}'
    """
    start, end = line.operand_span
    opcode_end = len(line.text[: start - 1].rstrip())
    found = [Splice(opcode_end - len(line.opcode), opcode_end, opcode)]
    if operands is not None:
        found.append(Splice(start, end, operands))
    found.append(Splice(end + 1, end + 1, attributes))
    found += [
        Splice(comma_before(line, key), span.end, b"") for key, span in line.attributes.items() if key not in keep
    ]
    return sorted(found)


def custom_call_splices(line: Line, attributes: bytes) -> list[Splice]:
    """Find which bytes change when a collective becomes a custom call.

    Args:
        line: the collective, taken apart without fault.
        attributes: what :func:`custom_call_attributes` says of the custom call.
    """
    others = line.attributes.keys() - MODELED_ATTRIBUTES - {"backend_config"}
    return rewritten(line, CUSTOM_CALL, attributes, keep=others | _KEPT_BY_CUSTOM_CALLS)


def custom_call_attributes(edit: BecomeCustomCall) -> bytes:
    """Return the attributes that a custom call has before all others, each behind a comma."""
    return b", custom_call_target=%s, backend_config=%s" % (quoted(edit.target), edit.backend_config.encode())
