"""Whose frontend attributes an asynchronous operation really has.

When XLA reads a text, each of the instructions start, update and done that states ``frontend_attributes``, were they
empty, puts them in the place of those of the operation that is wrapped: all of them, so the last that states some wins.
A proto is taken as it is. Seen with the parser of jaxlib 0.10.2; its source is xla/hlo/parser/hlo_parser.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo.model import UnreadableError
from commlens.hlo.opcodes import DEDICATED_START, base_opcode
from commlens.hlo.signature import Site
from commlens.hlo.text.instruction import TextInstruction

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlens.hlo.text.module import TextModule

_KEY: Final = "frontend_attributes"


def overriding(module: TextModule) -> Mapping[TextInstruction, TextInstruction]:
    """Return for each operation that does not keep its frontend attributes the instruction whose it gets.

    Args:
        module: the module.

    Returns:
        By operation: one that an ``async-start`` wraps, or a start that is written in short and stands for what it
        wraps. What cannot be read is left out.
    """
    wrapped_by = dict(_starts(module))
    followers = {f"{base_opcode(each.opcode)[0]}-{half}" for each in wrapped_by for half in ("update", "done")}
    found: dict[TextInstruction, TextInstruction] = {}
    for each in (*wrapped_by, *module.instructions_of(followers)):
        try:
            wrapped = wrapped_by.get(each) or wrapped_by.get(each.operands[0])
            if wrapped is not None:
                wrapped_by[each] = wrapped
                if _KEY in each.parts.attributes:
                    found[wrapped] = each
        except (UnreadableError, IndexError):
            continue  # nobody can say what it belongs to
    return {wrapped: each for wrapped, each in found.items() if each != wrapped}


def _starts(module: TextModule) -> Iterator[tuple[TextInstruction, TextInstruction]]:
    """Yield the starts of collectives that XLA keeps as an async-start, each with what it wraps."""
    for _, items in module.communication():
        for item in items:
            instruction = item.instruction if isinstance(item, Site) and _is_short(item) else item
            if not isinstance(instruction, TextInstruction):
                continue
            if isinstance(item, Site):
                yield instruction, instruction
            elif _opcode(instruction) == "async-start":
                yield from ((instruction, wrapped) for wrapped in _wrapped(module, instruction))


def _is_short(site: Site) -> bool:
    """Whether a site is a start that XLA takes for an async-start and what that wraps."""
    return site.signature.is_async and site.signature.opcode not in DEDICATED_START


def _opcode(instruction: TextInstruction) -> str:
    try:
        return instruction.opcode
    except UnreadableError:
        return ""


def _wrapped(module: TextModule, start: TextInstruction) -> Iterator[TextInstruction]:
    """Yield the operation that an async-start wraps: the root of what it calls."""
    for role, name in start.called:
        computation = module.computation(name) if role == "async" else None
        if computation is not None and len(computation.instructions):
            yield computation.root
