"""Whether an instruction may be edited: only one that was understood in full."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from commlens.errors import GrammarError
from commlens.hlo.edits import EditError
from commlens.hlo.formatting import as_text
from commlens.hlo.model import UnreadableError
from commlens.hlo.shapes import read_shape
from commlens.hlo.text.damage import text_behind_value, unclosed
from commlens.hlo.text.grammar import grammar_fault
from commlens.hlo.text.line import shape_end, shape_text
from commlens.hlo.text.tokens import blank_comments

if TYPE_CHECKING:
    from commlens.hlo.text.instruction import TextInstruction

_EXCERPT = 20


def check_editable(instruction: TextInstruction) -> None:
    """Refuse an instruction of which anything cannot be read.

    Args:
        instruction: one that can be taken apart.

    Raises:
        EditError: an attribute or layout breaks its grammar, a control predecessor does not stand before it, or
            something stands before its name that belongs to nothing.
    """
    line = instruction.parts
    fault = line.fault or unclosed(instruction) or grammar_fault(line)
    fault = fault or _predecessor_fault(instruction) or _stray_fault(instruction)
    if fault is not None:
        row, column = instruction.place_of(instruction.end - len(line.text) + fault.position)
        msg = f"the attributes of {line.name} cannot be edited: {fault}"
        raise EditError(msg, line=row, column=column)


def _predecessor_fault(instruction: TextInstruction) -> GrammarError | None:
    """Return the fault that a control predecessor is no instruction before this one, None where all are."""
    line = instruction.parts
    span = line.attributes.get("control-predecessors")
    for name in () if span is None else instruction.control_predecessors:
        found = instruction.computation.defined(name, instruction.start)
        if found is None or found.start >= instruction.start:
            where = "none of that name" if found is None else "it behind" if found != instruction else "itself"
            why = f"expected the control predecessor {name} among the instructions before {line.name}, found {where}"
            return GrammarError(why, position=span.start if span else 0)
    return None


def _stray_fault(instruction: TextInstruction) -> GrammarError | None:
    """Return the fault that something stands before the name, as in ``%a/b = ``; None where only an instruction does.

    Only a computation that people laid out can have that: on a printed line nothing comes before.
    """
    computation, start = instruction.computation, instruction.start
    if computation.starts is None:
        return None
    number = bisect_left(computation.starts, start)
    begin = computation.starts[number - 1] if number else computation.body
    before = blank_comments(computation.text[begin:start]).rpartition(b"\n")[2]
    if not before.strip() or (number and _is_whole(computation.at(begin))):
        return None
    found = as_text(before.strip()[-_EXCERPT:])
    position = start - instruction.end + len(instruction.parts.text) - len(before.lstrip())
    return GrammarError(f"expected a name such as %x.1 alone before '=', found {found!r} before it", position=position)


def _is_whole(instruction: TextInstruction) -> bool:
    try:
        line = instruction.parts
    except UnreadableError:
        return False
    return line.fault is None and unclosed(instruction) is None and text_behind_value(line) is None


def check_stated_types(instruction: TextInstruction) -> None:
    """Refuse an instruction that states another type beside an operand than that with which the operand is defined.

    Layouts and whether a dimension is dynamic may differ, as XLA has it.

    Raises:
        EditError: element type or dimensions of the two differ.
    """
    line, computation = instruction.parts, instruction.computation
    for (start, end), name in zip(line.operand_spans(), instruction.operand_names, strict=False):
        defined = computation.definitions.value_of(name.encode(), instruction.start)
        if defined is None or b"[" not in line.text[start:end]:
            continue
        try:
            stated = line.text[start : shape_end(line.text, start)]
            if computation.text[defined : defined + len(stated)] == stated:
                continue
            one, other = (read_shape(text, 0)[0] for text in (as_text(stated), shape_text(computation.text, defined)))
        except GrammarError:
            continue  # one of the two is left out
        if [(leaf.element_type, leaf.dimensions) for leaf in one.leaves()] != [
            (leaf.element_type, leaf.dimensions) for leaf in other.leaves()
        ]:
            row, column = instruction.place_of(instruction.end - len(line.text) + start)
            msg = f"{line.name} cannot be combined: expected its operand {name} to be {other}, as defined, found {one}"
            raise EditError(msg, line=row, column=column)
