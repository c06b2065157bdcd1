"""The schedule of a module: whether it states one, and instructions in that order."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.hlo.model import Instruction, Module


def is_scheduled(module: Module) -> bool:
    r"""Whether a module states the order in which its instructions run.

    A text says so in its header, and then stands in that order; a proto holds a schedule beside the instructions.
    Without one, an order of instructions is that of a list alone.

    Example:
        >>> from commlens.hlo.loading import load
        >>> text = "HloModule m, is_scheduled={}\nENTRY e {{\n  ROOT p = f32[8] parameter(0)\n}}\n"
        >>> is_scheduled(load(text.format("true"))), is_scheduled(load(text.format("false")))
        (True, False)
    """
    from commlens.hlo.proto import ProtoModule
    from commlens.hlo.text import TextModule

    if isinstance(module, ProtoModule):
        return any(module.schedule_of(computation.outline.id) for computation in module.computations)
    return isinstance(module, TextModule) and module.is_scheduled


def in_schedule_order(instructions: Iterable[Instruction]) -> list[Instruction]:
    """Sort instructions of one computation: as scheduled where the module has a schedule, else as listed.

    Args:
        instructions: some instructions of one computation.

    Returns:
        The same ones, in the order in which rows stand.

    Raises:
        UnreadableError: one of them cannot be read.
    """
    listed = sorted(instructions, key=lambda each: each.list_key)
    ranks = _ranks(listed[0]) if len(listed) > 1 else {}
    return sorted(listed, key=lambda each: ranks.get(each.list_key, len(ranks))) if ranks else listed


def _ranks(instruction: Instruction) -> dict[int, int]:
    """Return the places in the schedule of an instruction's computation by id; none where there is no schedule."""
    from commlens.hlo.proto.computation import ProtoComputation

    computation = instruction.computation
    if not isinstance(computation, ProtoComputation):
        return {}
    return {number: rank for rank, number in enumerate(computation.module.schedule_of(computation.outline.id))}
