"""What a pass leaves alone, which of its edits are made, and the result that comes of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from commlens.errors import InputError
from commlens.hlo.edits import Combine, EditError
from commlens.hlo.model import UnreadableError
from commlens.hlo.passes.base import LeftAlone, PassResult

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from commlens.errors import CommlensError
    from commlens.hlo.edits import Edit
    from commlens.hlo.model import Instruction, Module
    from commlens.hlo.passes.base import Json


@dataclass(frozen=True, slots=True)
class AppliedEdits:
    """Edits that were made, and the module with them.

    Attributes:
        edits: the edits.
        module: the module with them; the one before where nothing differs.
    """

    edits: tuple[Edit, ...]
    module: Module

    def missing(self, edits: Sequence[Edit]) -> frozenset[Instruction]:
        """Return the instructions that some edits were about which were not made."""
        if len(edits) == len(self.edits):
            return frozenset()
        made = set(map(id, self.edits))
        return frozenset(each for edit in edits if id(edit) not in made for each in _subjects(edit))


@dataclass(slots=True)
class Refusals:
    """What a pass cannot understand: the end of it, or a list of what was left alone.

    A pass must understand what it reads or changes, in full: a collective of its opcodes of which anything cannot be
    read is refused, whether or not the pass needs that part. What a pass never looks at does not stop it.

    Attributes:
        module: the module that the pass works on.
        keep_going: whether to go on.
        left: what was left alone, for the result.
    """

    module: Module
    keep_going: bool
    left: list[LeftAlone] = field(default_factory=list[LeftAlone])

    def check_structure(self) -> None:
        """Refuse a module that was cut or whose parts cannot be told apart.

        Raises:
            InputError: unless faults are to be left alone.
        """
        for fault in self.module.structure_faults:
            line, _, column = fault.where.partition(":")
            placed = line.isdecimal()
            self._refuse(
                LeftAlone(
                    instruction=fault.name,
                    where=f"module {self.module.name}" if placed else fault.where,
                    why=fault.why,
                    line=int(line) if placed else None,
                    column=int(column) if placed and column.isdecimal() else None,
                    text=fault.text,
                )
            )

    def refuse(self, instruction: Instruction, why: str | CommlensError, partners: Iterable[Instruction] = ()) -> None:
        """Refuse what cannot be done with an instruction.

        Args:
            instruction: the instruction.
            why: the reason; an error may know the place better than the instruction does.
            partners: others that are left alone because of it, for they would only have changed together with it.

        Raises:
            InputError: unless faults are to be left alone.
        """
        left = _left(instruction, why)
        self._refuse(left)
        together = f"it is left alone along with {left.subject}, which cannot be understood or changed"
        self.left += [_left(each, together) for each in partners if each != instruction]

    def refuse_module(self, why: str) -> None:
        """Refuse what concerns no single instruction.

        Raises:
            InputError: unless faults are to be left alone.
        """
        self._refuse(LeftAlone(None, f"module {self.module.name}", why))

    def _refuse(self, left: LeftAlone) -> None:
        if self.keep_going:
            self.left.append(left)
            return
        raise InputError(left.reason(), path=self.module.path, line=left.line, column=left.column)

    def apply(self, edits: Iterable[Edit], together: Callable[[Edit], Hashable] | None = None) -> AppliedEdits:
        """Make edits; refuse those that cannot be made.

        Args:
            edits: what to change.
            together: edits for which this is equal are made together or not at all; None where each stands alone.

        Raises:
            InputError: one cannot be made, unless faults are to be left alone.
        """
        groups: dict[Hashable, list[Edit]] = {}
        for number, edit in enumerate(edits):
            groups.setdefault(number if together is None else together(edit), []).append(edit)
        return self._added(AppliedEdits((), self.module), [*groups.values()])

    def _added(self, made: AppliedEdits, groups: Sequence[Sequence[Edit]]) -> AppliedEdits:
        """Make edits beside those that are made already, group by group where they cannot all be made."""
        if not groups:
            return made
        edits = (*made.edits, *chain.from_iterable(groups))
        try:
            return AppliedEdits(edits, self.module.edited(edits))
        except (EditError, UnreadableError) as error:
            if len(groups) == 1:
                self._refuse_group(groups[0], error)
                return made
        half = len(groups) // 2
        return self._added(self._added(made, groups[:half]), groups[half:])

    def _refuse_group(self, group: Sequence[Edit], error: CommlensError) -> None:
        """Refuse the edits of a group because of the one that cannot be made, or of the first if it is none alone."""
        subjects = [instruction for edit in group for instruction in _subjects(edit)]
        for edit in group if len(group) > 1 else ():
            try:
                self.module.edited([edit])
            except (EditError, UnreadableError) as found:
                self.refuse(_subjects(edit)[0], found, subjects)
                return
        self.refuse(subjects[0], error, subjects)


def pass_result(
    name: str,
    refusals: Refusals,
    made: AppliedEdits | None = None,
    *,
    changed: bool,
    stats: Mapping[str, Json],
    facts: Iterable[str] = (),
    found: bool | None = None,
    warnings: Iterable[str] = (),
) -> PassResult:
    """Put a pass's result together.

    Args:
        name: the pass's name.
        refusals: what was left alone; listed in the result's ``stats`` under ``left_alone`` as well.
        made: the edits that were made; None for a pass that makes none.
        changed: what the documented pass reports.
        stats: what happened in detail, of what was really done.
        facts: the same in a few words each.
        found: for a pass that only looks for something.
        warnings: sentences about what the documented behaviour may break.
    """
    module = refusals.module if made is None else made.module
    return PassResult(
        name=name,
        changed=changed,
        modified=module is not refusals.module,
        stats={**stats, "left_alone": [each.as_json() for each in refusals.left]},
        module=module,
        found=found,
        warnings=tuple(warnings),
        edits=() if made is None else made.edits,
        facts=tuple(facts),
        left_alone=tuple(refusals.left),
    )


def place_of(error: CommlensError) -> tuple[int | None, int | None]:
    """Return line and column of a fault, each None where the error does not know it."""
    return (error.line, error.column) if isinstance(error, EditError | UnreadableError | InputError) else (None, None)


def _left(instruction: Instruction, why: str | CommlensError) -> LeftAlone:
    """Say what is left alone; an error that knows a place knows it better than the instruction."""
    line, column = (None, None) if isinstance(why, str) else place_of(why)
    if column is None:
        line, column = place_of_name(instruction)
    return LeftAlone(
        instruction=_name(instruction),
        where=f"computation {instruction.computation.name}",
        why=str(why),
        line=line,
        column=column,
        text=instruction.excerpt,
    )


def place_of_name(instruction: Instruction) -> tuple[int | None, int | None]:
    """Return line and column of an instruction's name, counted from 1; a proto has neither."""
    from commlens.hlo.text.instruction import TextInstruction

    return instruction.place_of() if isinstance(instruction, TextInstruction) else (instruction.line, None)


def _name(instruction: Instruction) -> str | None:
    try:
        return instruction.name
    except UnreadableError:  # not even that can be made out
        return None


def _subjects(edit: Edit) -> tuple[Instruction, ...]:
    return edit.members if isinstance(edit, Combine) else (edit.instruction,)
