"""What a pass is, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

from commlens.errors import InputError
from commlens.hlo.edits import Combine, EditError
from commlens.hlo.model import UnreadableError
from commlens.hlo.passes.spec import spec_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from commlens.hlo.edits import Edit
    from commlens.hlo.model import Instruction, Module

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value that JSON can say."""


@dataclass(frozen=True, slots=True)
class PassResult:
    """What a pass did.

    Attributes:
        name: the pass's documented name.
        changed: what the documented pass reports, its quirks included.
        modified: whether the module really differs.
        stats: what happened in detail, ready for JSON.
        module: the new module; the given one where nothing differs.
        found: what a pass that only looks for something found; None for all others.
        warnings: full sentences about what the documented behaviour may break.
        edits: every change made.
    """

    name: str
    changed: bool
    modified: bool
    stats: Mapping[str, Json]
    module: Module
    found: bool | None = None
    warnings: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()


class Pass(Protocol):
    """A pass: a frozen dataclass whose fields are its options and whose string form is ``name{option=value,...}``.

    Attributes:
        name: the documented name.
    """

    __slots__ = ()

    name: ClassVar[str]

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Run the pass.

        Args:
            module: the module, which stays as it is.
            keep_going: whether to leave alone, and name, what cannot be understood, instead of refusing the module.

        Raises:
            InputError: the module has parts that the pass would have to understand and cannot; the place is named.
        """
        ...

    def __str__(self) -> str:
        """Return the pass as text, which reads back as an equal pass."""
        return spec_of(self)


@dataclass(slots=True)
class Refusals:
    """What a pass cannot understand: the end of it, or a list of what was left alone.

    Attributes:
        module: the module that the pass works on.
        keep_going: whether to go on.
        left: what was left alone, for the result's ``stats``.
    """

    module: Module
    keep_going: bool
    left: list[dict[str, Json]] = field(default_factory=list["dict[str, Json]"])

    def check_structure(self) -> None:
        """Refuse a module that was cut or whose parts cannot be told apart."""
        for fault in self.module.structure_faults:
            line = fault.where.partition(":")[0]
            self._refuse(fault.name, int(line) if line.isdecimal() else None, fault.where, fault.why)

    def refuse(self, instruction: Instruction, why: str) -> None:
        """Refuse what cannot be done with an instruction.

        Raises:
            InputError: unless faults are to be left alone.
        """
        try:
            name = instruction.name
        except UnreadableError:  # not even that can be made out
            name = None
        self._refuse(name, instruction.line, f"computation {instruction.computation.name}", why)

    def refuse_module(self, why: str) -> None:
        """Refuse what concerns no single instruction.

        Raises:
            InputError: unless faults are to be left alone.
        """
        self._refuse(None, None, f"module {self.module.name}", why)

    def _refuse(self, name: str | None, line: int | None, where: str, why: str) -> None:
        if not self.keep_going:
            place = "" if line is not None else f"{where}: "
            what = "" if name is None else f"{name}: "
            reason = f"{place}{what}{why}"
            raise InputError(reason, path=self.module.path, line=line)
        self.left.append({"instruction": name, "line": line, "where": where, "why": why})


def finished(
    name: str,
    refusals: Refusals,
    edits: Iterable[Edit] = (),
    *,
    changed: bool,
    stats: Mapping[str, Json],
    found: bool | None = None,
    warnings: Iterable[str] = (),
    separable: bool = True,
) -> PassResult:
    """Make a pass's edits and put its result together.

    Args:
        name: the pass's name.
        refusals: what was left alone; listed in the result's ``stats`` under ``left_alone``.
        edits: what to change.
        changed: what the documented pass reports.
        stats: what happened in detail.
        found: for a pass that only looks for something.
        warnings: sentences about what the documented behaviour may break.
        separable: whether an edit that cannot be made may be left out and the others made.

    Raises:
        InputError: an edit cannot be made, unless such instructions are to be left alone.
        EditError: likewise, where the edits are not separable.
    """
    made = tuple(edits)
    if separable:
        made, module = _made(refusals, made)
    else:
        module = refusals.module.edited(made) if made else refusals.module
    return PassResult(
        name=name,
        changed=changed,
        modified=module is not refusals.module,
        stats={**stats, "left_alone": refusals.left},
        module=module,
        found=found,
        warnings=tuple(warnings),
        edits=made,
    )


def _made(refusals: Refusals, edits: tuple[Edit, ...]) -> tuple[tuple[Edit, ...], Module]:
    """Make the edits that can be made; return them and the new module."""
    try:
        return edits, refusals.module.edited(edits) if edits else refusals.module
    except EditError as error:
        if len(edits) == 1:
            refusals.refuse(_subject(edits[0]), str(error))
            return (), refusals.module
    half = len(edits) // 2
    possible = _made(refusals, edits[:half])[0] + _made(refusals, edits[half:])[0]
    return possible, refusals.module.edited(possible) if possible else refusals.module


def _subject(edit: Edit) -> Instruction:
    return edit.members[0] if isinstance(edit, Combine) else edit.instruction
