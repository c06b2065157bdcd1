"""Who uses whom in a computation, by positions in the instruction list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from commlens.hlo.model import Instruction


@dataclass(frozen=True, slots=True)
class Graph:
    """The edges of one computation.

    Attributes:
        operands: by position in the list, the positions of the operands in order.
        control_predecessors: by position, the positions of control predecessors as listed; most have none.
        broken: positions of instructions with an operand or control predecessor that is not defined.
        distinct: whether each instruction is known to have a name of its own; of several, the last is meant.
    """

    operands: Sequence[Sequence[int]]
    control_predecessors: Mapping[int, Sequence[int]] = field(default_factory=dict[int, "Sequence[int]"])
    broken: frozenset[int] = frozenset()
    distinct: bool = False

    def predecessors(self, position: int) -> Sequence[int]:
        """Return what must come before an instruction: operands, then control predecessors."""
        control = self.control_predecessors.get(position)
        return self.operands[position] if control is None else (*self.operands[position], *control)

    def successors(self) -> list[list[int]]:
        """Return by position what must come behind an instruction: its users and control successors."""
        found: list[list[int]] = [[] for _ in self.operands]
        for position in range(len(self.operands)):
            for each in dict.fromkeys(self.predecessors(position)):
                found[each].append(position)
        return found

    def post_order(self) -> list[int]:
        """List positions so that each stands behind its operands and control predecessors.

        The walk starts from every instruction without users, in list order, and goes depth first: control predecessors
        before operands, of those the last listed first, then operand 0, 1, ... Control successors are not users.

        Returns:
            All positions. Those on a cycle, which no valid module has, come last in list order, so that none is lost.

        Source: ``HloComputation::MakeInstructionPostOrder``, xla/hlo/ir/hlo_computation.cc.

        Example:
            >>> Graph([[], [0], [], [2, 1]]).post_order()
            [2, 0, 1, 3]
        """
        used = {operand for operands in self.operands for operand in operands}
        waiting = bytearray(b"\1") * len(self.operands)  # 0: the walk has come there
        finished: list[int] = []
        for start in range(len(self.operands)):
            stack = [] if start in used else [start]
            while stack:
                position = stack.pop()
                if position < 0:  # all that it needs is done
                    finished.append(~position)
                elif waiting[position]:
                    waiting[position] = 0
                    pending = [each for each in reversed(self.operands[position]) if waiting[each]]
                    if position in self.control_predecessors:
                        pending += [each for each in self.control_predecessors[position] if waiting[each]]
                    if pending:
                        stack.append(~position)
                        stack += pending
                    else:
                        finished.append(position)
        return finished + [position for position, waits in enumerate(waiting) if waits]


def graph_of(instructions: Sequence[Instruction]) -> Graph:
    """Read the edges of a computation instruction by instruction.

    Args:
        instructions: all instructions of one computation, in list order.

    Raises:
        UnreadableError: operands or attributes of one cannot be made out.
    """
    names = {instruction.name: position for position, instruction in enumerate(instructions)}
    operands: list[list[int]] = []
    control: dict[int, list[int]] = {}
    broken: set[int] = set()
    for position, instruction in enumerate(instructions):
        used, before = instruction.operand_names, instruction.control_predecessors
        operands.append(_positions(used, names))
        if before:
            control[position] = _positions(before, names)
        if len(operands[-1]) < len(used) or len(control.get(position, ())) < len(before):
            broken.add(position)
    return Graph(operands, control, frozenset(broken), len(names) == len(operands))


def _positions(names: Iterable[str], positions: Mapping[str, int]) -> list[int]:
    return [positions[name] for name in names if name in positions]
