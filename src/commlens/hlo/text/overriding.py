"""Whose frontend attributes an asynchronous operation really has.

When XLA reads a text, each of the instructions start, update and done that states ``frontend_attributes``, were they
empty, puts them in the place of those of the operation that is wrapped: all of them, so the last that states some wins.
A proto is taken as it is. Seen with the parser of jaxlib 0.10.2; its source is xla/hlo/parser/hlo_parser.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo.async_chains import async_chains
from commlens.hlo.model import UnreadableError
from commlens.hlo.text.instruction import TextInstruction

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    found: dict[TextInstruction, TextInstruction] = {}
    for operation, chain in async_chains(module).items():
        stating = [each for each in chain if isinstance(each, TextInstruction) and _states_attributes(each)]
        last = stating[-1] if stating else None
        if last is not None and last != operation and isinstance(operation, TextInstruction) and _can_be_read(last):
            found[operation] = last
    return found


def _states_attributes(instruction: TextInstruction) -> bool:
    try:
        return _KEY in instruction.parts.attributes
    except UnreadableError:
        return False


def _can_be_read(stating: TextInstruction) -> bool:
    try:
        _ = stating.frontend_attributes
    except UnreadableError:
        return False
    return True
