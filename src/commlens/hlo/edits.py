"""Edits of a module: data that say what changes; each backend knows how its source spells that.

A pass finds what to do and returns edits, :meth:`commlens.hlo.Module.edited` makes the new module. Nothing else writes
to a source, so everything outside the edits stays as it was, byte for byte in a text, field for field in a proto.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from commlens.errors import PlacedError

if TYPE_CHECKING:
    from commlens.hlo.model import Instruction


class EditError(PlacedError):
    """Edits contradict each other or cannot be made: the module is left as it was."""


@dataclass(frozen=True, slots=True)
class SetFrontendAttribute:
    """Give a frontend attribute a value, whether or not the instruction has it already.

    Attributes:
        instruction: whose.
        key: the attribute's key, a word.
        value: its value, unquoted.
    """

    instruction: Instruction
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class SetChannelId:
    """Give an instruction a channel id, whether or not it has one already.

    Attributes:
        instruction: which.
        channel_id: the id, at least 1: a proto cannot state others.
    """

    instruction: Instruction
    channel_id: int


@dataclass(frozen=True, slots=True)
class Combine:
    """Make one variadic collective of several, each of which becomes a get-tuple-element of it.

    A member keeps its name, its place among the users and its metadata, so no user changes. The new instruction has the
    operands of the members in their order, the groups, channel id, reducer and flags of the first of them, and
    ``constrain_layout`` false. It unites their control predecessors; shardings become a tuple. It stands where the
    first member stood, or as little behind as its operands allow: then what needs a member follows it.

    Attributes:
        members: two or more instructions of one computation with one operand each.
        name: name of the new instruction, one that the module does not have yet.
        frontend_attributes: keys of the first member's frontend attributes that the new instruction keeps.
        metadata: fields of the first member's metadata that it keeps.
        other_attributes: names of the first member's other attributes (:meth:`Instruction.other_attributes`) that it
            keeps.
        dimension: gather dimension of the new instruction where the members' differ: operands and results of members
            with another one are transposed, the two dimensions swapped. None where all members agree.
    """

    members: tuple[Instruction, ...]
    name: str
    frontend_attributes: frozenset[str] = frozenset()
    metadata: frozenset[str] = frozenset()
    other_attributes: frozenset[str] = frozenset()
    dimension: int | None = None


@dataclass(frozen=True, slots=True)
class BecomeCustomCall:
    """Turn a collective into a custom call with the same name, operands, shape and other attributes.

    Groups, channel id, flags, dimensions and the reducer go: what of them matters stands in the configuration.

    Attributes:
        instruction: which.
        target: ``custom_call_target``, a word.
        backend_config: the configuration, JSON in one line.
    """

    instruction: Instruction
    target: str
    backend_config: str


Edit: TypeAlias = SetFrontendAttribute | SetChannelId | Combine | BecomeCustomCall
"""One change of a module."""
