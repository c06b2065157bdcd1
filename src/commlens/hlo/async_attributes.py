"""Starts, updates and dones that state frontend attributes of the operation which their async-start wraps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo.async_chains import async_chains
from commlens.hlo.fast_queries import has_attribute
from commlens.hlo.model import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.hlo.model import Instruction, Module

_FRONTEND_ATTRIBUTES: Final = "frontend_attributes"


def instructions_restating(module: Module, key: str) -> Mapping[Instruction, list[Instruction]]:
    """Return the instructions that state a frontend attribute beside the operation that has it.

    Whoever changes the attribute of the operation must change it there as well, or the next reader finds the old value:
    a row has the start's attributes before those of what it wraps, and XLA's text reader puts those of the last that
    states some in the place of the operation's.

    Args:
        module: a module.
        key: key of the attribute.

    Returns:
        By operation those of its starts, updates and dones that have the key, or may have it because their attributes
        cannot be read; and in a text the one whose attributes XLA gives to the operation, whichever those are.
    """
    overridden = module.overridden_attributes
    found: dict[Instruction, list[Instruction]] = {}
    for operation, chain in async_chains(module).items():
        others = [each for each in chain if each != operation]
        last = _last_that_states(others) if operation in overridden else None
        found[operation] = [each for each in others if each == last or _may_state(each, key)]
    return {operation: others for operation, others in found.items() if others}


def _last_that_states(chain: list[Instruction]) -> Instruction | None:
    return next((each for each in reversed(chain) if has_attribute(each, _FRONTEND_ATTRIBUTES)), None)


def _may_state(instruction: Instruction, key: str) -> bool:
    try:
        return key in instruction.frontend_attributes
    except UnreadableError:
        return True
