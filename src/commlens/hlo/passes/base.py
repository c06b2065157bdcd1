"""What a pass is, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

from commlens.hlo.passes.spec import check_options, spec_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlens.hlo.edits import Edit
    from commlens.hlo.model import Module

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value that JSON can say."""


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """Something that a pass could not understand and left as it was.

    Attributes:
        instruction: its name; None where it is no instruction, or one without a readable name.
        where: the computation or module that it stands in.
        why: what was expected and what was found.
        line: its line, counted from 1; None in a proto.
        column: the column of the fault, counted from 1; None where nobody knows it.
        text: the beginning of what stands there; empty where nothing does.
    """

    instruction: str | None
    where: str
    why: str
    line: int | None = None
    column: int | None = None
    text: str = ""

    @property
    def subject(self) -> str:
        """What to call it in a sentence."""
        return self.instruction or self.text or self.where

    def reason(self) -> str:
        """Return why a module is refused because of it; path and line are told beside that."""
        place = "" if self.line is not None else f"{self.where}: "
        what = "" if self.instruction is None else f"{self.instruction}: "
        return f"{place}{what}{self.why}"

    def sentence(self) -> str:
        """Return what a warning says of it; path and line are told beside that.

        Example:
            >>> LeftAlone("g", "computation e", "expected '}', found ','", 12).sentence()
            "g is left alone: expected '}', found ','"
            >>> LeftAlone(None, "module m", "expected '}', found the end", 12, text="ENTRY e {").sentence()
            "'ENTRY e {' cannot be understood: expected '}', found the end"
        """
        place = "" if self.line is not None else f"{self.where}: "
        if self.instruction is not None:
            return f"{place}{self.instruction} is left alone: {self.why}"
        return f"{place}{self.text!r} cannot be understood: {self.why}" if self.text else f"{place}{self.why}"

    def as_json(self) -> dict[str, Json]:
        """Return it for the statistics."""
        return {
            "instruction": self.instruction,
            "line": self.line,
            "column": self.column,
            "where": self.where,
            "text": self.text,
            "why": self.why,
        }


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
        facts: what happened in a few words each, for people: ``"stamped 8"``.
        left_alone: what could not be understood and was left as it was.
    """

    name: str
    changed: bool
    modified: bool
    stats: Mapping[str, Json]
    module: Module
    found: bool | None = None
    warnings: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    facts: tuple[str, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()


class Pass(Protocol):
    """A pass: a frozen dataclass whose fields are its options and whose string form is ``name{option=value,...}``.

    Attributes:
        name: the documented name.
    """

    __slots__ = ()

    name: ClassVar[str]

    def __post_init__(self) -> None:
        """Refuse values that the string form refuses as well.

        Raises:
            CommlensError: an option has a value that it cannot have.
        """
        check_options(self)

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Run the pass.

        Args:
            module: the module, which stays as it is.
            keep_going: whether to leave alone, and name, what cannot be understood, instead of refusing the module.

        Raises:
            InputError: the module has parts that the pass would have to understand and cannot, or an edit cannot be
                made; the place is named. With ``keep_going`` only what concerns the whole module still is an error.
            EditError: edits contradict each other.
            UnreadableError: what decides about the whole module cannot be read.
        """
        ...

    def __str__(self) -> str:
        """Return the pass as text, which reads back as an equal pass."""
        return spec_of(self)
