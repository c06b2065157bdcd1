"""Ids that several instructions of a computation have: which of them an operand means, nobody can say."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from commlens.hlo.edits import EditError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.hlo.proto.computation import ProtoComputation
    from commlens.hlo.proto.instruction import ProtoInstruction

_ID: Final = re.compile(rb"\x98\x02([\x80-\xff]*+[\x00-\x7f])")
"""Field 35 of an instruction, a number: what looks so may stand in a string as well."""


def check_ids(instructions: Iterable[ProtoInstruction]) -> None:
    """Refuse instructions that have an id which another one of their computation has too.

    Raises:
        EditError: one of them has.
    """
    edited: dict[ProtoComputation, list[ProtoInstruction]] = {}
    for instruction in instructions:
        edited.setdefault(instruction.computation, []).append(instruction)
    for computation, found in edited.items():
        seen = Counter(_ID.findall(b"".join(computation.encoded)))
        likely = (each for each in found if any(seen[number] > 1 for number in _ids(computation, each)))
        for each in likely:
            others = [other for other in computation.instructions if other.list_key == each.list_key and other != each]
            if others:
                names = f"{each.name} and {others[0].name}"
                msg = f"expected each instruction of {computation.name} to have an id of its own, found {each.list_key}"
                msg += f" as the id of {names}"
                raise EditError(msg)


def _ids(computation: ProtoComputation, instruction: ProtoInstruction) -> list[bytes]:
    return _ID.findall(computation.encoded[instruction.position])
