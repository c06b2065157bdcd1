"""From edits to splices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from commlens.hlo.edit_plan import AttributeChange, check_combination, plan_edits
from commlens.hlo.edits import EditError
from commlens.hlo.model import UnreadableError
from commlens.hlo.text.arranging import ParsedInstruction, Step, arranged
from commlens.hlo.text.attribute_edits import attribute_splices
from commlens.hlo.text.editable import check_editable, check_stated_types
from commlens.hlo.text.fast_edits import FastEditor
from commlens.hlo.text.instruction import TextInstruction
from commlens.hlo.text.repeated_names import check_names
from commlens.hlo.text.rewriting import custom_call_attributes, custom_call_splices
from commlens.hlo.text.splices import Splice

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from commlens.hlo.edit_plan import EditPlan
    from commlens.hlo.edits import Edit
    from commlens.hlo.model import Instruction
    from commlens.hlo.text.computation import TextComputation
    from commlens.hlo.text.module import TextModule

    _EditPlan: TypeAlias = EditPlan[TextInstruction]

_INDEX_COMMENT: Final = b"/*index="


def splices_of(module: TextModule, edits: Iterable[Edit]) -> list[Splice]:
    """Find what changes in the file of a module when edits are made.

    Args:
        module: the module that the edited instructions stand in.
        edits: what to change.

    Returns:
        Splices with offsets in the file; none where the module is so already.

    Raises:
        EditError: two edits contradict each other, or one cannot be made.
    """

    def own(instruction: Instruction) -> TextInstruction:
        if isinstance(instruction, TextInstruction) and module.holds(instruction):
            return instruction
        msg = f"expected an instruction of the module {module.name}, found {instruction.name} of another"
        raise EditError(msg)

    plan = plan_edits(edits, own)
    check_names((*plan.attributes, *plan.custom_calls))
    editor = FastEditor()
    splices = [*_attribute_splices(module, plan, editor), *_custom_calls(plan, editor)]
    return _with_combinations(module, plan, splices) if plan.combinations else splices


def _attribute_splices(module: TextModule, plan: _EditPlan, editor: FastEditor) -> Iterator[Splice]:
    for instruction, change in _with_overriding(module, plan.attributes).items():
        quick = editor.splices(instruction, change)
        if quick is not None:
            yield from quick
            continue
        parsed = _parsed(instruction)
        yield from _shifted(attribute_splices(parsed.line, parsed.source, change), parsed.offset)


def _with_overriding(
    module: TextModule, changes: Mapping[TextInstruction, AttributeChange]
) -> Mapping[TextInstruction, AttributeChange]:
    """Add what must change with an operation whose frontend attributes XLA takes from another instruction.

    Raises:
        EditError: that instruction is to get another value.
    """
    if not module.overriding:
        return changes
    found = dict(changes)
    for instruction, change in changes.items():
        other = module.overriding.get(instruction)
        if other is None or not change.frontend_attributes:
            continue
        channel_id, values = found.get(other) or AttributeChange(None, {})
        for key, value in change.frontend_attributes.items():
            if values.get(key, value) != value:
                row, column = other.place_of()
                msg = f"expected the value of {instruction.name} for the frontend attribute {key} of {other.name}, from"
                msg += f" which it gets its own when XLA reads the text: {value!r}, found {values[key]!r}"
                raise EditError(msg, line=row, column=column)
        found[other] = AttributeChange(channel_id, {**values, **change.frontend_attributes})
    return found


def _custom_calls(plan: _EditPlan, editor: FastEditor) -> Iterator[Splice]:
    for instruction, edit in plan.custom_calls.items():
        quick = editor.custom_call(instruction, edit)
        if quick is not None:
            yield from quick
            continue
        parsed = _parsed(instruction)
        yield from _shifted(custom_call_splices(parsed.line, custom_call_attributes(edit)), parsed.offset)


def _shifted(splices: Iterable[Splice], offset: int) -> Iterator[Splice]:
    return (Splice(start + offset, end + offset, replacement) for start, end, replacement in splices)


def _with_combinations(module: TextModule, plan: _EditPlan, others: list[Splice]) -> list[Splice]:
    """Return all splices, given those that are no combinations; they move along with their instructions."""
    steps: dict[TextComputation, list[Step]] = {}
    for edit, instructions in plan.combinations:
        members = [_parsed(instruction) for instruction in instructions]
        check_combination(edit, [member.instruction for member in members])
        for member in members:
            check_stated_types(member.instruction)
        steps.setdefault(members[0].instruction.computation, []).append(Step(edit, members))
    fresh = {opcode: module.fresh_names(opcode) for opcode in ("transpose", "get-tuple-element")}
    indexed = module.text.find(_INDEX_COMMENT, *module.part) >= 0
    found: list[Splice] = []
    for computation, made in steps.items():
        inside = [splice for splice in others if computation.body <= splice.start <= computation.end]
        others = [splice for splice in others if not computation.body <= splice.start <= computation.end]
        found += arranged(computation, made, inside, lambda opcode: next(fresh[opcode]).encode(), indexed=indexed)
    return [*found, *others]


def _parsed(instruction: TextInstruction) -> ParsedInstruction:
    """Return an instruction taken apart: all of its lines, where it has several.

    Raises:
        EditError: it cannot be taken apart, or stands as an operand of another and can have no attributes.
    """
    computation = instruction.computation
    if computation.starts is not None and not instruction.nested:
        instruction = computation.at(instruction.start)
    try:
        line = instruction.parts
    except UnreadableError as error:
        msg = f"the instruction {instruction.excerpt!r} cannot be edited: {error}"
        raise EditError(msg, line=error.line, column=error.column) from error
    if instruction.nested:
        row, column = instruction.place_of()
        msg = f"{instruction.name} cannot be edited where it stands as an operand of another: give it a line of its own"
        raise EditError(msg, line=row, column=column)
    check_editable(instruction)
    return ParsedInstruction(instruction, line, instruction.end - len(line.text))
