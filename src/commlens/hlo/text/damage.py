"""Instructions that can be taken apart and are damaged all the same: values without an end, two things in one value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from commlens.errors import GrammarError
from commlens.hlo.formatting import as_text
from commlens.hlo.text.tokens import blank_outside, unbalanced
from commlens.hlo.text.values import COMMUNICATES

if TYPE_CHECKING:
    from commlens.hlo.text.instruction import TextInstruction
    from commlens.hlo.text.line import Line

_TOO_MANY: Final = re.compile(rb"\}[ \t]*+(?:[)}\]]|,(?!\s*+execution_thread\s*+=))")
_IN_PARTS: Final = ("replica_groups", "source_target_pairs")
_MESH: Final = re.compile(rb"@?(?:maximal_)?mesh\b")


def unclosed(instruction: TextInstruction) -> GrammarError | None:
    """Return the fault that a bracket or string behind the operands has no other half, None where all have one.

    In a computation without an end, its last instruction may have taken the brace of that end for its own; where
    a brace ends it in the midst of a list, that brace is one too many.

    Args:
        instruction: one that can be taken apart.
    """
    line, computation = instruction.parts, instruction.computation
    if instruction.end == computation.end and _TOO_MANY.match(computation.text, computation.end):
        return GrammarError("expected the other half of '}', found none", position=len(line.text))
    brace = -1 if computation.is_closed else line.text.find(b"\n}")
    position = unbalanced(line.text, line.operand_span.end + 1, len(line.text) if brace < 0 else brace)
    if position is None:
        return None
    key = next((key for key, span in line.attributes.items() if span.start <= position < span.end), None)
    where = "" if key is None else f" in the value of {key}"
    found = as_text(line.text[position : position + 1])
    return GrammarError(f"expected the other half of {found!r}{where}, found none", position=position)


def text_behind_value(line: Line) -> GrammarError | None:
    """Return the fault that something stands behind the value of an attribute: a damaged line, perhaps, that follows.

    Groups and meshes may have blanks in them; whether they are whole, their own grammar says.
    """
    for key, (start, end) in line.attributes.items():
        blank = None if key in _IN_PARTS or _MESH.match(line.text, start, end) else blank_outside(line.text, start, end)
        if blank is not None:
            position = end - len(line.text[blank:end].lstrip())
            found = as_text(line.text[position:end].split()[0][:20])
            why = f"expected a comma and another attribute behind the value of {key}, found {found!r}"
            return GrammarError(why, position=position)
    return None


def hides_collective(line: Line) -> bool:
    """Whether something that looks like a collective stands behind the operands of a broken instruction."""
    return COMMUNICATES.search(line.text, line.operand_span.end) is not None
