"""Who uses whom in a computation, by positions in the instruction list."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

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

    def starts(self) -> list[int]:
        """List the positions of instructions that have no users; control successors are not users."""
        used = set(chain.from_iterable(self.operands))
        return [position for position in range(len(self.operands)) if position not in used]

    def is_in_order(self) -> bool:
        """Whether in the list everything stands behind its operands and control predecessors; then there is no cycle.

        Example:
            >>> Graph([[], [0], [0, 1]]).is_in_order(), Graph([[1], []]).is_in_order()
            (True, False)
        """
        size = len(self.operands)
        users = np.repeat(np.arange(size), np.fromiter(map(len, self.operands), dtype=np.int64, count=size))
        used = np.fromiter(chain.from_iterable(self.operands), dtype=np.int64, count=users.size)
        control = self.control_predecessors.items()
        return bool((used < users).all()) and all(each < position for position, before in control for each in before)

    def post_order(self, starts: Iterable[int] | None = None) -> list[int]:
        """List positions so that each stands behind its operands and control predecessors.

        The walk starts from every instruction without users, in list order, and goes depth first: control predecessors
        before operands, of those the last listed first, then operand 0, 1, ...

        Args:
            starts: what the walk starts from instead, in this order.

        Returns:
            All positions. Those on a cycle, which no valid module has, come last in list order, so that none is lost.

        Source: ``HloComputation::MakeInstructionPostOrder``, xla/hlo/ir/hlo_computation.cc.

        Example:
            >>> Graph([[], [0], [], [2, 1]]).post_order()
            [2, 0, 1, 3]
        """
        operands, control = self.operands, self.control_predecessors
        waiting = bytearray(b"\1") * len(operands)  # 0: the walk has come there
        finished: list[int] = []
        for start in self.starts() if starts is None else starts:
            stack = [start]
            while stack:
                position = stack.pop()
                if position < 0:  # all that it needs is done
                    finished.append(~position)
                elif waiting[position]:
                    waiting[position] = 0
                    pending = [each for each in reversed(operands[position]) if waiting[each]]
                    if position in control:
                        pending += [each for each in control[position] if waiting[each]]
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
