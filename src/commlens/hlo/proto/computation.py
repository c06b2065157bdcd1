"""A computation of a proto: encoded instructions, found by id when somebody asks."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Final

from commlens.hlo.formatting import as_text
from commlens.hlo.model import Computation, UnreadableError
from commlens.hlo.proto.decoding import decode
from commlens.hlo.proto.graphs import graph_by_ids
from commlens.hlo.proto.instruction import ProtoInstruction
from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloInstructionOutline

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from commlens.hlo.graphs import Graph
    from commlens.hlo.model import Instruction
    from commlens.hlo.proto.module import ProtoModule
    from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloComputationOutline
    from commlens.hlo.signature import Site

_REPEATED: Final = -1
_LARGE: Final = 4096
UNKNOWN_ID: Final = sys.maxsize
"""Stands for the id of an instruction that cannot be decoded: behind all others."""


class ProtoComputation(Computation):
    """One computation of a proto.

    Args:
        module: the module it belongs to.
        number: its position in the file.
        outline: its outline.
    """

    def __init__(self, module: ProtoModule, number: int, outline: HloComputationOutline) -> None:
        self._module = module
        self.number = number
        self.outline = outline
        self.encoded: Sequence[bytes] = outline.instructions
        """Its instructions, encoded, in the file's order."""

    @property
    def name(self) -> str:
        """The name."""
        return self._module.names[self.number]

    @property
    def is_entry(self) -> bool:
        """Whether it is the module's entry."""
        return self._module.entry is self

    @property
    def module(self) -> ProtoModule:
        """The module it belongs to."""
        return self._module

    @cached_property
    def _ids(self) -> list[int]:
        """The id of every instruction, in the file's order."""
        return [_id(data) for data in self.encoded]

    @cached_property
    def _names(self) -> list[str]:
        """The name of every instruction, in the file's order."""
        return [_name(data) for data in self.encoded]

    @cached_property
    def _in_order(self) -> list[int]:
        """Positions of the instructions by id, as XLA sorts them on reading."""
        return sorted(range(len(self.encoded)), key=self._ids.__getitem__)

    @property
    def instructions(self) -> tuple[ProtoInstruction, ...]:
        """All instructions by id."""
        return self._instructions

    @cached_property
    def _instructions(self) -> tuple[ProtoInstruction, ...]:
        return tuple(ProtoInstruction(self, position) for position in self._in_order)

    @cached_property
    def _by_name(self) -> dict[str, int]:
        names = self._names
        return {names[position]: position for position in reversed(self._in_order)}

    def instruction(self, name: str) -> ProtoInstruction | None:
        """Return the instruction of that name, the first of several, None if there is none."""
        position = self._by_name.get(name)
        return None if position is None else ProtoInstruction(self, position)

    def name_at(self, position: int) -> str:
        """Return the name of the instruction at a position."""
        return self._names[position] if "_names" in self.__dict__ else _name(self.encoded[position])

    @cached_property
    def _by_id(self) -> dict[int, int]:
        """Positions by id; an id that is given twice leads nowhere."""
        found: dict[int, int] = {}
        for position, number in enumerate(self._ids):
            found[number] = _REPEATED if number in found else position
        found.pop(UNKNOWN_ID, None)
        return found

    def outline_of(self, number: int, user: int, user_id: int) -> tuple[int, HloInstructionOutline] | None:
        """Find an instruction by its id.

        In a large computation first where ids without gaps would put it, then right before its user: XLA's writers make
        that true of nearly all operands, and a map of all ids costs more than everything else.

        Args:
            number: the id.
            user: position of an instruction that uses it.
            user_id: that instruction's id.

        Returns:
            Its position and outline; None where no instruction has that id.

        Raises:
            UnreadableError: several have it. In a large computation that is only noticed where all were looked at.
        """
        encoded = self.outline.instructions
        for guess in (user + number - user_id, user - 1) if len(encoded) > _LARGE else ():
            if 0 <= guess < len(encoded):
                outline = decode(HloInstructionOutline, encoded[guess])
                if outline.id == number:
                    return guess, outline
        position = self._by_id.get(number)
        if position == _REPEATED:
            msg = f"several instructions of the computation {self.name} have the id {number}"
            raise UnreadableError(msg)
        return None if position is None else (position, decode(HloInstructionOutline, encoded[position]))

    def position_of(self, number: int, user: int, user_id: int) -> int | None:
        """Find the position of an instruction by its id; see :meth:`outline_of`."""
        found = self.outline_of(number, user, user_id)
        return None if found is None else found[0]

    def graph(self) -> Graph:
        """Return who uses whom, by positions in :attr:`instructions`."""
        return graph_by_ids(self.encoded) or super().graph()

    @property
    def root(self) -> ProtoInstruction:
        """The root: the instruction with the root's id, else the last.

        Raises:
            LookupError: the computation is empty.
        """
        if not self.encoded:
            msg = f"the computation {self.name} has no instructions"
            raise LookupError(msg)
        position = self._by_id.get(self.outline.root_id, _REPEATED)
        return ProtoInstruction(self, self._in_order[-1] if position == _REPEATED else position)

    def in_row_order(self, items: list[tuple[int, Site | Instruction]]) -> list[Site | Instruction]:
        """Sort what was found: as scheduled where the computation has a schedule, else by id.

        Args:
            items: ids, and what was found at them.
        """
        if len(items) > 1:
            schedule = self._module.schedule_of(self.outline.id)
            ranks = {number: rank for rank, number in enumerate(schedule)} if schedule else {}
            items = sorted(items, key=lambda item: (ranks.get(item[0], len(ranks)), item[0]))
        return [item for _, item in items]

    def in_list_order(self, positions: Iterable[int]) -> list[ProtoInstruction]:
        """Return the instructions at some positions of the file's list, by id."""
        ids = {position: _id(self.encoded[position]) for position in positions}
        return [ProtoInstruction(self, position) for position in sorted(ids, key=ids.__getitem__)]

    def communication(self) -> Iterable[Site | Instruction]:
        """Return what may communicate, in row order."""
        return self._module.communicating.get(self.number, ())


def _id(data: bytes) -> int:
    try:
        return decode(HloInstructionOutline, data).id
    except UnreadableError:
        return UNKNOWN_ID


def _name(data: bytes) -> str:
    try:
        return as_text(decode(HloInstructionOutline, data).name)
    except UnreadableError:
        return ""
