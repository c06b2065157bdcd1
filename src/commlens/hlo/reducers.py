"""Which computation a collective reduces with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commlens.hlo.model import Computation, Instruction


def reducer_of(instruction: Instruction) -> Computation | None:
    """Return the computation that a collective applies to two elements.

    Args:
        instruction: the collective, or the start of it. Of an ``async-start`` the collective that it wraps is asked.

    Returns:
        The computation; None where the instruction applies none, or one that the module does not have.

    Raises:
        UnreadableError: the instruction, or what it wraps, cannot be read.
        LookupError: what it wraps is empty.

    Example:
        >>> from commlens.hlo import load
        >>> module = load('''
        ... larger {
        ...   a = f32[] parameter(0)
        ...   b = f32[] parameter(1)
        ...   ROOT c = f32[] maximum(b, a)
        ... }
        ... ENTRY e {
        ...   p = f32[8] parameter(0)
        ...   ROOT r = f32[8] all-reduce(p), replica_groups={}, to_apply=larger
        ... }''')
        >>> reducer_of(module.instruction("r"))
        <computation larger>
    """
    module = instruction.computation.module
    called = dict(instruction.called)
    if "async" in called:
        wrapped = module.computation(called["async"])
        called = {} if wrapped is None else dict(wrapped.root.called)
    return module.computation(called["apply"]) if "apply" in called else None
