"""Reading what a pass needs of an instruction that is no plain, readable collective."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Site

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.hlo import Instruction

_ATTRIBUTE_OF_NONE: Final = "no_such_attribute"


def require_whole(instruction: Instruction) -> None:
    """Refuse an instruction of which an attribute cannot be read.

    A value that breaks its grammar may have swallowed the attributes behind it, and nothing can be added behind what
    cannot be taken apart. What is no matter of attributes, a shape or an operand, is not asked for.

    Raises:
        UnreadableError: an attribute cannot be read.
    """
    for name in ("channel_id", "replica_groups", "dimensions", "source_target_pairs"):
        getattr(instruction, name)
    require_closed(instruction)


def require_closed(instruction: Instruction) -> None:
    """Refuse an instruction of which nobody can say which attributes it lacks.

    Raises:
        UnreadableError: a value does not end, or something behind the attributes cannot be taken apart.
    """
    instruction.flag(_ATTRIBUTE_OF_NONE)  # absent: that can only say who has seen all, each to its end


def attributes_of(item: Site | Instruction) -> Mapping[str, str]:
    """Return the frontend attributes of something that may communicate.

    Raises:
        UnreadableError: it cannot be taken apart.
    """
    if isinstance(item, Site):
        return item.signature.frontend_attributes
    require_whole(item)
    return item.frontend_attributes
