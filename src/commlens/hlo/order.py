"""The order in which XLA visits the instructions of a computation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.hlo.model import Instruction


def post_order(instructions: Sequence[Instruction]) -> list[Instruction]:
    """List instructions so that each stands behind its operands and control predecessors.

    The walk starts from every instruction without users, in list order, and goes depth first: control predecessors
    before operands, of those the last listed first, then operand 0, 1, ... Control successors are not users.

    Args:
        instructions: all instructions of one computation, in list order.

    Returns:
        The same instructions in post-order. Instructions on a cycle, which no valid module has, come last in list
        order, so that none is lost.

    Source: ``HloComputation::MakeInstructionPostOrder``, xla/hlo/ir/hlo_computation.cc.
    """
    by_name = {instruction.name: index for index, instruction in enumerate(instructions)}
    operands = [
        [by_name[name] for name in instruction.operand_names if name in by_name] for instruction in instructions
    ]
    used = {operand for indices in operands for operand in indices}
    finished: dict[int, None] = {}
    entered: set[int] = set()
    for start in range(len(instructions)):
        if start in used:
            continue
        stack = [start]
        while stack:
            index = stack[-1]
            if index in entered:
                stack.pop()
                finished.setdefault(index)
                continue
            entered.add(index)
            predecessors = (by_name.get(name) for name in instructions[index].control_predecessors)
            pending = [*reversed(operands[index]), *(each for each in predecessors if each is not None)]
            stack.extend(each for each in pending if each not in entered)
    finished |= dict.fromkeys(range(len(instructions)))
    return [instructions[index] for index in finished]
