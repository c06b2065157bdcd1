"""From edits to a changed module."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from commlens.errors import CommlensError
from commlens.hlo.edit_plan import check_combination, plan_edits
from commlens.hlo.edits import EditError
from commlens.hlo.proto import descriptors
from commlens.hlo.proto.arranging import Arrangement, arranged
from commlens.hlo.proto.attribute_edits import AttributeWriter, as_custom_call
from commlens.hlo.proto.combining import Fresh
from commlens.hlo.proto.fresh_ids import fresh_ids
from commlens.hlo.proto.instruction import ProtoInstruction
from commlens.hlo.proto.repeated_ids import check_ids
from commlens.hlo.proto.repeated_names import check_names
from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloScheduleProto

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from commlens.hlo.edit_plan import EditPlan, Step
    from commlens.hlo.edits import Edit
    from commlens.hlo.model import Instruction
    from commlens.hlo.proto.module import ProtoModule
    from commlens.hlo.proto.raw_message import RawMessage


def edited(module: ProtoModule, edits: Iterable[Edit]) -> RawMessage | None:
    """Make edits.

    Args:
        module: the module that the edited instructions stand in.
        edits: what to change.

    Returns:
        The module as it is to be written; None where it is so already.

    Raises:
        EditError: two edits contradict each other, or one cannot be made.
    """

    def own(instruction: Instruction) -> ProtoInstruction:
        if isinstance(instruction, ProtoInstruction) and instruction.computation.module is module:
            return instruction
        msg = f"expected an instruction of the module {module.name}, found {instruction.excerpt} of another"
        raise EditError(msg)

    try:
        arrangements = _arrangements(module, plan_edits(edits, own))
        return _rebuilt(module, arrangements) if arrangements else None
    except EditError:
        raise
    except CommlensError as error:
        raise _uneditable(module.name, error) from error


def _uneditable(what: str, error: CommlensError) -> EditError:
    return EditError(f"{what} cannot be edited: {error}")


def _arrangements(module: ProtoModule, plan: EditPlan[ProtoInstruction]) -> dict[int, Arrangement]:
    """Return what the computations become that change, by their positions in the file."""
    changed: dict[int, dict[int, RawMessage]] = {}
    members = (member for step in plan.combinations for member in step.members)
    subjects = (*plan.attributes, *plan.custom_calls, *members)
    check_ids(subjects)
    check_names(module.outline.computations, subjects)
    writer = AttributeWriter()
    for instruction, change in plan.attributes.items():
        try:
            _ = instruction.channel_id  # refuses where two fields state one
            made = writer.changed(instruction.raw, instruction.message, change)
        except CommlensError as error:
            raise _uneditable(instruction.excerpt, error) from error
        if made is not None:
            changed.setdefault(instruction.computation.number, {})[instruction.position] = made
    for instruction, edit in plan.custom_calls.items():
        try:
            _ = instruction.channel_id
            made = as_custom_call(instruction.raw, edit.target.encode(), edit.backend_config.encode())
        except CommlensError as error:
            raise _uneditable(instruction.excerpt, error) from error
        changed.setdefault(instruction.computation.number, {})[instruction.position] = made
    found = {
        number: Arrangement({position: [each] for position, each in rows.items()}) for number, rows in changed.items()
    }
    if plan.combinations:
        found |= _combined(module, plan.combinations, changed)
    return found


def _combined(
    module: ProtoModule, steps: Iterable[Step[ProtoInstruction]], changed: Mapping[int, Mapping[int, RawMessage]]
) -> dict[int, Arrangement]:
    """Return what the computations become in which collectives are combined, by their positions in the file."""
    by_number: dict[int, list[Step[ProtoInstruction]]] = {}
    for step in steps:
        check_combination(*step)
        if module.has_instruction_named(step.edit.name.encode()):
            msg = f"expected a name for the new instruction that the module does not have, found {step.edit.name}"
            raise EditError(msg)
        by_number.setdefault(step.members[0].computation.number, []).append(step)
    ids = fresh_ids(module.outline.computations)
    names = {opcode: module.fresh_names(opcode) for opcode in ("transpose", "get-tuple-element")}
    taken = {step.edit.name for step in steps}

    def fresh_name(opcode: str) -> bytes:
        return next(name for name in names[opcode] if name not in taken).encode()

    return {
        number: arranged(
            module.computations[number], made, changed.get(number, {}), Fresh(fresh_name, partial(ids.take, number))
        )
        for number, made in by_number.items()
    }


def _rebuilt(module: ProtoModule, arrangements: Mapping[int, Arrangement]) -> RawMessage:
    """Write a module with changed computations."""
    written = module.found.raw
    computations = written.messages_at(descriptors.COMPUTATIONS, arrangements)
    replaced: dict[int, list[RawMessage]] = {}
    sequences: dict[int, Sequence[int]] = {}
    for number, arrangement in arrangements.items():
        computation = computations[number].with_replaced(descriptors.INSTRUCTIONS, arrangement.rows)
        if arrangement.root is not None:
            computation = computation.with_fields({descriptors.ROOT_ID: [arrangement.root]})
        if arrangement.sequence:
            sequences[module.computations[number].outline.id] = arrangement.sequence
        replaced[number] = [computation]
    changed = written.with_replaced(descriptors.COMPUTATIONS, replaced)
    return _with_sequences(changed, sequences) if sequences else changed


def _with_sequences(module: RawMessage, sequences: Mapping[int, Sequence[int]]) -> RawMessage:
    """Return a module in whose schedule computations have other sequences, given by computation id."""
    schedule = module.message(descriptors.SCHEDULE) or module.empty(descriptors.SCHEDULE.kind)
    entries = schedule.messages(descriptors.SEQUENCES)
    changed: dict[int, list[RawMessage]] = {}
    for index, entry in enumerate(entries):
        sequence = sequences.get(entry.decoded(HloScheduleProto.SequencesEntry).key)
        if sequence is not None:
            instructions = entry.message(descriptors.SEQUENCE) or entry.empty(descriptors.SEQUENCE.kind)
            value = instructions.with_fields({descriptors.SCHEDULED_IDS: sequence})
            changed[index] = [entry.with_fields({descriptors.SEQUENCE: [value]})]
    return module.with_fields({descriptors.SCHEDULE: [schedule.with_replaced(descriptors.SEQUENCES, changed)]})
