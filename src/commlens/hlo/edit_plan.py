"""The plan that edits make: what each instruction is to become. Contradictions are refused, no source is touched."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from commlens.hlo.edits import BecomeCustomCall, Combine, EditError, SetChannelId, SetFrontendAttribute
from commlens.hlo.model import Instruction
from commlens.hlo.opcodes import FLAG_CARRIERS, base_opcode

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from commlens.hlo.edits import Edit

InstructionT = TypeVar("InstructionT", bound=Instruction)

_WORD: Final = re.compile(r"[A-Za-z_][\w.\-]*", re.ASCII)
_LARGEST: Final = 2**63 - 1
_VARIADIC: Final = frozenset((opcode, "") for opcode in FLAG_CARRIERS)
"""Collectives of which several are one with several operands; an all-to-all with several operands is something else."""


class AttributeChange(NamedTuple):
    """What is to become of an instruction's attributes.

    Attributes:
        channel_id: the new channel id; None where it stays.
        frontend_attributes: new values of frontend attributes, by key.
    """

    channel_id: int | None
    frontend_attributes: Mapping[str, str]


class Step(NamedTuple, Generic[InstructionT]):
    """One combination.

    Attributes:
        edit: the edit.
        members: its members, as instructions of the backend.
    """

    edit: Combine
    members: list[InstructionT]


@dataclass(slots=True)
class EditPlan(Generic[InstructionT]):
    """What each instruction is to become.

    Attributes:
        attributes: new attributes.
        custom_calls: instructions that become custom calls.
        combinations: the combinations in the order in which they are to be made; no instruction is a member twice, and
            :func:`check_combination` is still to be asked.
    """

    attributes: dict[InstructionT, AttributeChange] = field(default_factory=dict["InstructionT", AttributeChange])
    custom_calls: dict[InstructionT, BecomeCustomCall] = field(default_factory=dict["InstructionT", BecomeCustomCall])
    combinations: list[Step[InstructionT]] = field(default_factory=list["Step[InstructionT]"])


def plan_edits(edits: Iterable[Edit], own: Callable[[Instruction], InstructionT]) -> EditPlan[InstructionT]:
    """Sort edits by what they are about.

    Args:
        edits: the edits.
        own: returns an instruction as one of the backend; raises EditError for one of another module.

    Raises:
        EditError: two edits contradict each other, or one can be made in no source.
    """
    found = EditPlan[InstructionT]()
    rewritten: set[InstructionT] = set()
    names: set[str] = set()
    for edit in edits:
        match edit:
            case SetFrontendAttribute() | SetChannelId():
                instruction = own(edit.instruction)
                _check_free(instruction, rewritten)
                found.attributes[instruction] = _with(found.attributes.get(instruction), edit)
            case BecomeCustomCall():
                instruction = own(edit.instruction)
                if not _WORD.fullmatch(edit.target):
                    raise _no_word(edit.target, f"target that {instruction.name} calls")
                _rewrite(instruction, rewritten, found.attributes)
                found.custom_calls[instruction] = edit
            case Combine():
                step = Step(edit, [own(member) for member in edit.members])
                for member in step.members:
                    _rewrite(member, rewritten, found.attributes)
                if edit.name in names:
                    msg = f"expected a name of its own for each new instruction, found {edit.name} twice"
                    raise EditError(msg)
                names.add(edit.name)
                found.combinations.append(step)
    return found


def _rewrite(instruction: InstructionT, rewritten: set[InstructionT], changed: Container[Instruction]) -> None:
    """Note that an instruction becomes another one."""
    _check_free(instruction, rewritten)
    _check_free(instruction, changed)
    rewritten.add(instruction)


def _check_free(instruction: Instruction, taken: Container[Instruction]) -> None:
    if instruction in taken:
        msg = f"expected no other edit of {instruction.name}, which becomes another instruction, found one"
        raise EditError(msg)


def _no_word(text: str, what: str) -> EditError:
    return EditError(f"expected a word as the {what}, found {text!r}")


def _with(change: AttributeChange | None, edit: SetFrontendAttribute | SetChannelId) -> AttributeChange:
    """Add an edit to what is to become of an instruction already."""
    channel_id, values = change or AttributeChange(None, {})
    if isinstance(edit, SetFrontendAttribute):
        if not _WORD.fullmatch(edit.key):
            raise _no_word(edit.key, f"key of a frontend attribute of {edit.instruction.name}")
        if edit.key in values:
            msg = f"expected one new value for the frontend attribute {edit.key} of {edit.instruction.name}, found two"
            raise EditError(msg)
        return AttributeChange(channel_id, {**values, edit.key: edit.value})
    if channel_id is not None:
        msg = f"expected one new channel id for {edit.instruction.name}, found two"
        raise EditError(msg)
    if not 1 <= edit.channel_id <= _LARGEST:
        name, found = edit.instruction.name, edit.channel_id
        msg = f"expected a channel id from 1 to {_LARGEST} for {name}, found {found}"
        raise EditError(msg)
    return AttributeChange(edit.channel_id, values)


def check_combination(edit: Combine, members: Sequence[Instruction]) -> None:
    """Refuse what is no combination of several like collectives under a new name.

    Args:
        edit: the edit.
        members: its members, each known to be a whole instruction.

    Raises:
        EditError: it cannot be made.
        UnreadableError: a member cannot be read.
    """
    if not _WORD.fullmatch(edit.name):
        raise _no_word(edit.name, "name of a new instruction")
    kinds = {(base_opcode(member.opcode), member.computation.name) for member in members}
    if len(members) < 2 or len(kinds) > 1:
        found = ", ".join(member.name for member in members) or "none"
        msg = f"expected instructions of one opcode and one computation to make {edit.name} of, found {found}"
        raise EditError(msg)
    for member in members:
        if base_opcode(member.opcode) not in _VARIADIC:
            msg = f"expected all-gathers, all-reduces or reduce-scatters to make {edit.name} of, found {member.name}"
            raise EditError(msg)
        number = len(member.operand_names)
        if number != 1:
            msg = f"expected {member.name}, of which {edit.name} is made, to have one operand, found {number}"
            raise EditError(msg)
    along = {(member.dimensions or ())[:1] for member in members}
    if edit.dimension is None and len(along) > 1:
        msg = f"expected the dimension of {edit.name}, whose members have different ones, found none"
        raise EditError(msg)
