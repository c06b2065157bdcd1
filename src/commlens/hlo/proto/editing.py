"""From edits to a changed module."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from commlens.errors import CommlensError
from commlens.hlo.agreement import agreement_of, check_combination
from commlens.hlo.edits import EditError
from commlens.hlo.proto import tags
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

    from commlens.hlo.agreement import Agreement, Step
    from commlens.hlo.edits import Edit
    from commlens.hlo.model import Instruction
    from commlens.hlo.proto.module import ProtoModule
    from commlens.hlo.proto.written import WrittenMessage


def edited(module: ProtoModule, edits: Iterable[Edit]) -> WrittenMessage | None:
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
        arrangements = _arrangements(module, agreement_of(edits, own))
        return _rebuilt(module, arrangements) if arrangements else None
    except EditError:
        raise
    except CommlensError as error:
        raise _uneditable(module.name, error) from error


def _uneditable(what: str, error: CommlensError) -> EditError:
    return EditError(f"{what} cannot be edited: {error}")


def _arrangements(module: ProtoModule, agreement: Agreement[ProtoInstruction]) -> dict[int, Arrangement]:
    """Return what the computations become that change, by their positions in the file."""
    changed: dict[int, dict[int, WrittenMessage]] = {}
    members = (member for step in agreement.combinations for member in step.members)
    subjects = (*agreement.attributes, *agreement.custom_calls, *members)
    check_ids(subjects)
    check_names(module.outline.computations, subjects)
    writer = AttributeWriter()
    for instruction, change in agreement.attributes.items():
        try:
            _ = instruction.channel_id  # refuses where two fields state one
            made = writer.changed(instruction.written, instruction.message, change)
        except CommlensError as error:
            raise _uneditable(instruction.excerpt, error) from error
        if made is not None:
            changed.setdefault(instruction.computation.number, {})[instruction.position] = made
    for instruction, edit in agreement.custom_calls.items():
        try:
            _ = instruction.channel_id
            made = as_custom_call(instruction.written, edit.target.encode(), edit.backend_config.encode())
        except CommlensError as error:
            raise _uneditable(instruction.excerpt, error) from error
        changed.setdefault(instruction.computation.number, {})[instruction.position] = made
    found = {
        number: Arrangement({position: [each] for position, each in rows.items()}) for number, rows in changed.items()
    }
    if agreement.combinations:
        found |= _combined(module, agreement.combinations, changed)
    return found


def _combined(
    module: ProtoModule, steps: Iterable[Step[ProtoInstruction]], changed: Mapping[int, Mapping[int, WrittenMessage]]
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


def _rebuilt(module: ProtoModule, arrangements: Mapping[int, Arrangement]) -> WrittenMessage:
    """Write a module with changed computations."""
    written = module.found.written
    computations = written.messages_at(tags.COMPUTATIONS, arrangements)
    replaced: dict[int, list[WrittenMessage]] = {}
    sequences: dict[int, Sequence[int]] = {}
    for number, arrangement in arrangements.items():
        computation = computations[number].with_replaced(tags.INSTRUCTIONS, arrangement.rows)
        if arrangement.root is not None:
            computation = computation.with_fields({tags.ROOT_ID: [arrangement.root]})
        if arrangement.sequence:
            sequences[module.computations[number].outline.id] = arrangement.sequence
        replaced[number] = [computation]
    changed = written.with_replaced(tags.COMPUTATIONS, replaced)
    return _with_sequences(changed, sequences) if sequences else changed


def _with_sequences(module: WrittenMessage, sequences: Mapping[int, Sequence[int]]) -> WrittenMessage:
    """Return a module in whose schedule computations have other sequences, given by computation id."""
    schedule = module.message(tags.SCHEDULE) or module.empty(tags.SCHEDULE.kind)
    entries = schedule.messages(tags.SEQUENCES)
    changed: dict[int, list[WrittenMessage]] = {}
    for index, entry in enumerate(entries):
        sequence = sequences.get(entry.decoded(HloScheduleProto.SequencesEntry).key)
        if sequence is not None:
            instructions = entry.message(tags.SEQUENCE) or entry.empty(tags.SEQUENCE.kind)
            value = instructions.with_fields({tags.SCHEDULED_IDS: sequence})
            changed[index] = [entry.with_fields({tags.SEQUENCE: [value]})]
    return module.with_fields({tags.SCHEDULE: [schedule.with_replaced(tags.SEQUENCES, changed)]})
