"""Definitions before uses: the one rule about the order of a computation.

An instruction uses its operands and its control predecessors. XLA looks both up by name while it reads a text, and by
id while it reads the list of a proto, in the computation at hand and nowhere else; what comes later does not exist for
it yet. A schedule changes nothing about that. This package reads such modules all the same, and says so here.
Source: ``HloParserImpl::ParseOperands`` and ``ParseInstructionNames``, xla/hlo/parser/hlo_parser.cc;
``HloComputation::CreateFromProto``, xla/hlo/ir/hlo_computation.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.hlo.model import UnreadableError
from commlens.hlo.use_before_definition import UseBeforeDefinition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlens.hlo.graphs import Graph
    from commlens.hlo.model import Computation, Instruction, Module


def uses_before_definition(computation: Computation) -> Iterator[UseBeforeDefinition]:
    r"""Find the uses in a computation of what is not defined before.

    Args:
        computation: the computation, of a text or a proto.

    Returns:
        The uses in list order (a proto: as the file lists it), once for each instruction and name. Takes time in
        proportion to the computation.

    Raises:
        UnreadableError: an instruction of a text cannot be taken apart. Of a proto such an instruction is passed over,
            and nothing there is called undefined.

    Example:
        >>> from commlens.hlo.loading import load
        >>> module = load("ENTRY e {\n  n = f32[8] add(p, q)\n  ROOT p = f32[8] parameter(0)\n}\n")
        >>> [(each.user.name, each.needed, each.whereabouts) for each in uses_before_definition(module.entry)]
        [('n', 'p', 'behind'), ('n', 'q', 'undefined')]
    """
    if computation.module.format == "proto":
        from commlens.hlo.proto import uses_before_definition_in_list

        return uses_before_definition_in_list(computation)
    return _uses_in_text(computation, computation.graph())


def module_uses_before_definition(module: Module) -> Iterator[UseBeforeDefinition]:
    """Find the uses in a module of what is not defined before, in file order.

    Nothing is said of instructions that stand in no computation, which are the cutting of a text, nor of computations
    that cannot be taken apart.
    """
    for computation in module.computations:
        if computation.name:
            try:
                yield from uses_before_definition(computation)
            except UnreadableError:
                continue


def _uses_in_text(computation: Computation, graph: Graph) -> Iterator[UseBeforeDefinition]:
    """Find them by positions in the list, which is the order of a text."""
    if not graph.broken and graph.is_in_order():
        return
    late = {position for position, operands in enumerate(graph.operands) if operands and max(operands) >= position}
    late |= {position for position, before in graph.control_predecessors.items() if max(before, default=-1) >= position}
    suspects = late | graph.broken
    instructions = computation.instructions
    first = _first_definitions(instructions)
    for position in sorted(suspects):
        user = instructions[position]
        for name in dict.fromkeys((*user.operand_names, *user.control_predecessors)):
            place = first.get(_instruction_named(name))
            if place is None:
                yield UseBeforeDefinition(user, name, "undefined")
            elif place >= position:
                yield UseBeforeDefinition(user, name, "behind" if place > position else "itself")


def _instruction_named(operand: str) -> str:
    """Return the name in an operand, which newer XLA may write as an element of a tuple: ``s32[8] %sort.1#0``."""
    name, mark, element = operand.rpartition("#")
    return name.rpartition(" ")[2].removeprefix("%") if mark and element.isdecimal() else operand


def _first_definitions(instructions: Sequence[Instruction]) -> Mapping[str, int]:
    """Return where each name is defined first: that one XLA means, until it refuses the second."""
    found: dict[str, int] = {}
    for position, instruction in enumerate(instructions):
        found.setdefault(instruction.name, position)
    return found
