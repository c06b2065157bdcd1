"""From edits to splices: which instruction each edit is about, and whether they agree."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from commlens.hlo.edits import BecomeCustomCall, Combine, EditError, SetChannelId, SetFrontendAttribute
from commlens.hlo.model import UnreadableError
from commlens.hlo.opcodes import FLAG_CARRIERS, base_opcode
from commlens.hlo.text.arranging import Step, Whole, arranged
from commlens.hlo.text.attribute_edits import AttributeChange, attribute_splices
from commlens.hlo.text.instruction import TextInstruction
from commlens.hlo.text.lexis import NAME
from commlens.hlo.text.quick_edits import QuickEditor
from commlens.hlo.text.rewriting import custom_call_splices
from commlens.hlo.text.splices import Splice
from commlens.hlo.text.values import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commlens.hlo.edits import Edit
    from commlens.hlo.model import Instruction
    from commlens.hlo.text.computation import TextComputation
    from commlens.hlo.text.module import TextModule

_WORD: Final = re.compile(NAME.decode(), re.ASCII)
_VARIADIC: Final = frozenset((opcode, "") for opcode in FLAG_CARRIERS)
"""Collectives of which several are one with several operands; an all-to-all with several operands is something else."""
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
    wanted = _Wanted(module)
    for edit in edits:
        wanted.add(edit)
    splices = [*_attribute_splices(wanted), *_custom_calls(wanted)]
    return _with_combinations(wanted, splices) if wanted.combinations else splices


@dataclass(slots=True)
class _Wanted:
    """What is to become of which instruction.

    Attributes:
        module: the module.
        changes: new attributes by instruction.
        rewritten: instructions that become others, and the edit that says so.
        combinations: the combinations by new name, in the order in which they are to be made.
    """

    module: TextModule
    changes: dict[TextInstruction, AttributeChange] = field(default_factory=dict["TextInstruction", AttributeChange])
    rewritten: dict[TextInstruction, BecomeCustomCall | Combine] = field(
        default_factory=dict["TextInstruction", BecomeCustomCall | Combine]
    )
    combinations: dict[str, Combine] = field(default_factory=dict[str, Combine])

    def add(self, edit: Edit) -> None:
        """Add an edit.

        Raises:
            EditError: it contradicts one that is there already, or is about another module.
        """
        match edit:
            case SetFrontendAttribute() | SetChannelId():
                instruction = self.own(edit.instruction)
                self._check_free(instruction, self.rewritten)
                self.changes[instruction] = _with(self.changes.get(instruction), edit)
            case BecomeCustomCall():
                self._rewrite(edit.instruction, edit)
            case Combine():
                for member in edit.members:
                    self._rewrite(member, edit)
                if edit.name in self.combinations:
                    msg = f"expected a name of its own for each new instruction, found {edit.name} twice"
                    raise EditError(msg)
                self.combinations[edit.name] = edit

    def own(self, instruction: Instruction) -> TextInstruction:
        """Return an instruction of the module.

        Raises:
            EditError: it stands in another.
        """
        if isinstance(instruction, TextInstruction) and self.module.holds(instruction):
            return instruction
        msg = f"expected an instruction of the module {self.module.name}, found {instruction.name} of another"
        raise EditError(msg)

    def _rewrite(self, instruction: Instruction, edit: BecomeCustomCall | Combine) -> None:
        own = self.own(instruction)
        self._check_free(own, self.rewritten)
        self._check_free(own, self.changes)
        self.rewritten[own] = edit

    def _check_free(self, instruction: TextInstruction, taken: Iterable[TextInstruction]) -> None:
        if instruction in taken:
            msg = f"expected no other edit of {instruction.name}, which becomes another instruction, found one"
            raise EditError(msg)


def _check_combination(edit: Combine, members: list[Whole]) -> None:
    """Refuse what is no combination of several like collectives under a new name."""
    if not _WORD.fullmatch(edit.name):
        msg = f"expected a word as the name of a new instruction, found {edit.name!r}"
        raise EditError(msg)
    kinds = {(base_opcode(member.line.opcode), member.instruction.computation.number) for member in members}
    if len(members) < 2 or len(kinds) > 1:
        found = ", ".join(member.line.name for member in members) or "none"
        msg = f"expected instructions of one opcode and one computation to make {edit.name} of, found {found}"
        raise EditError(msg)
    for member in members:
        if base_opcode(member.line.opcode) not in _VARIADIC:
            msg = (
                f"expected all-gathers, all-reduces or reduce-scatters to make {edit.name} of, found {member.line.name}"
            )
            raise EditError(msg)
        number = len(member.line.operand_names())
        if number != 1:
            msg = f"expected {member.line.name}, of which {edit.name} is made, to have one operand, found {number}"
            raise EditError(msg)


def _with(change: AttributeChange | None, edit: SetFrontendAttribute | SetChannelId) -> AttributeChange:
    """Add an edit to what is to become of an instruction already."""
    channel_id, values = change or AttributeChange(None, {})
    if isinstance(edit, SetChannelId):
        if channel_id is not None:
            msg = f"expected one new channel id for {edit.instruction.name}, found two"
            raise EditError(msg)
        if not 1 <= edit.channel_id <= INT64_MAX:
            name, found = edit.instruction.name, edit.channel_id
            msg = f"expected a channel id from 1 to {INT64_MAX} for {name}, found {found}"
            raise EditError(msg)
        return AttributeChange(edit.channel_id, values)
    if edit.key in values:
        msg = f"expected one new value for the frontend attribute {edit.key} of {edit.instruction.name}, found two"
        raise EditError(msg)
    if not _WORD.fullmatch(edit.key):
        msg = f"expected a word as the key of a frontend attribute of {edit.instruction.name}, found {edit.key!r}"
        raise EditError(msg)
    return AttributeChange(channel_id, {**values, edit.key: edit.value})


def _attribute_splices(wanted: _Wanted) -> Iterator[Splice]:
    editor = QuickEditor()
    for instruction, change in wanted.changes.items():
        quick = editor.splices(instruction, change) if instruction.computation.starts is None else None
        if quick is not None:
            yield from quick
            continue
        whole = _whole(wanted.module, instruction)
        yield from _shifted(attribute_splices(whole.line, whole.source, change), whole.offset)


def _custom_calls(wanted: _Wanted) -> Iterator[Splice]:
    for instruction, edit in wanted.rewritten.items():
        if isinstance(edit, BecomeCustomCall):
            if not _WORD.fullmatch(edit.target):
                msg = f"expected a word as the target that {instruction.name} calls, found {edit.target!r}"
                raise EditError(msg)
            whole = _whole(wanted.module, instruction)
            yield from _shifted(custom_call_splices(whole.line, edit), whole.offset)


def _shifted(splices: Iterable[Splice], offset: int) -> Iterator[Splice]:
    return (Splice(start + offset, end + offset, replacement) for start, end, replacement in splices)


def _with_combinations(wanted: _Wanted, others: list[Splice]) -> list[Splice]:
    """Return all splices, given those that are no combinations; they move along with their instructions."""
    module = wanted.module
    steps: dict[TextComputation, list[Step]] = {}
    for edit in wanted.combinations.values():  # all of them first: one may show that a computation is not as printed
        members = [_whole(module, wanted.own(member)) for member in edit.members]
        _check_combination(edit, members)
        steps.setdefault(members[0].instruction.computation, []).append(Step(edit, members))
    fresh = {opcode: module.fresh_names(opcode) for opcode in ("transpose", "get-tuple-element")}
    indexed = module.text.find(_INDEX_COMMENT, *module.part) >= 0
    found: list[Splice] = []
    for computation, made in steps.items():
        inside = [splice for splice in others if computation.body <= splice.start <= computation.end]
        others = [splice for splice in others if not computation.body <= splice.start <= computation.end]
        found += arranged(computation, made, inside, lambda opcode: next(fresh[opcode]).encode(), indexed=indexed)
    return [*found, *others]


def _whole(module: TextModule, instruction: TextInstruction) -> Whole:
    """Return an instruction taken apart: all of its lines, where it has several.

    Raises:
        EditError: it cannot be taken apart, or stands as an operand of another and can have no attributes.
    """
    computation = instruction.computation
    if computation.starts is None and not instruction.is_whole_line:
        module.read_carefully(computation)
    if computation.starts is not None and not instruction.nested:
        instruction = computation.at(instruction.start)
    try:
        line = instruction.parts
    except UnreadableError as error:
        msg = f"the instruction {instruction.excerpt!r} cannot be edited: {error}"
        raise EditError(msg) from error
    if line.fault is not None:
        msg = f"the attributes of {line.name} cannot be edited: {line.fault}"
        raise EditError(msg)
    if instruction.nested:
        msg = f"{line.name} cannot be edited where it stands as an operand of another: give it a line of its own"
        raise EditError(msg)
    return Whole(instruction, line, instruction.end - len(line.text))
