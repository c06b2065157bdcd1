"""A use before definition: an operand or control predecessor that is not defined before its user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from commlens.hlo.model import Instruction

Whereabouts: TypeAlias = Literal["behind", "itself", "undefined"]
"""Where something is that does not stand before the instruction that needs it."""


class UseBeforeDefinition(NamedTuple):
    """An instruction, and an operand or control predecessor of it that is not defined before it.

    Attributes:
        user: the instruction.
        needed: the name of what it needs; of an undefined one in a proto, its id in words.
        whereabouts: where that is instead.
    """

    user: Instruction
    needed: str
    whereabouts: Whereabouts

    @property
    def why(self) -> str:
        """What is wrong with the instruction, in a sentence that does not name it."""
        found = {"behind": f"{self.needed} behind it", "itself": "itself", "undefined": f"{self.needed} undefined"}
        return f"expected all that it needs to be defined before it in its computation, found {found[self.whereabouts]}"
