"""On which thread of execution a computation runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from commlens.hlo.formatting import as_text
from commlens.hlo.text.tokens import unquoted

if TYPE_CHECKING:
    from commlens.hlo.model import Computation

MAIN_THREAD: Final = "main"
"""The thread of what says nothing else."""

_BLANKS: Final = rb"(?>\s|//[^\n]*+|/\*(?>[^*]|\*(?!/))*+\*/)*+"
_STATED: Final = re.compile(
    _BLANKS.join((rb"\}", rb",", rb"execution_thread", rb"=", rb'(?P<name>"(?>[^"\\\n]++|\\[^\n])*+")'))
)


def execution_thread(computation: Computation) -> str:
    """Return the name of the thread on which a computation runs.

    It is the one that the computation states behind its closing brace, in a proto in its field 8. One that states none
    has that of whatever runs it: an ``async-start`` may name a thread, all other calls stay on the caller's. What
    nothing calls runs on the main thread.

    Source: ``HloComputation::execution_thread``; ``HloAsyncStartInstruction``, xla/hlo/ir/hlo_instructions.cc, hands
    its thread on to what it calls.

    Raises:
        UnreadableError: the computation cannot be taken apart.

    Example:
        >>> from commlens.hlo import load
        >>> module = load('''side {
        ...   ROOT q = f32[8] parameter(0)
        ... }, execution_thread="sparsecore"
        ... ENTRY e {
        ...   ROOT p = f32[8] parameter(0)
        ... }''')
        >>> [execution_thread(each) for each in module.computations]
        ['sparsecore', 'main']
    """
    module, seen = computation.module, set[str]()
    while computation.name not in seen:
        seen.add(computation.name)
        stated = _stated(computation)
        if stated:
            return stated
        calls = module.callers({computation.name})
        for call in calls:
            if call.role == "async":
                return call.caller.raw_attribute("async_execution_thread") or MAIN_THREAD
        if calls:
            computation = calls[0].caller.computation
    return MAIN_THREAD


def _stated(computation: Computation) -> str | None:
    """Return the thread that a computation states itself."""
    from commlens.hlo.proto.computation import ProtoComputation
    from commlens.hlo.text.computation import TextComputation

    if isinstance(computation, TextComputation):
        match = _STATED.match(computation.text, computation.end) if computation.is_closed else None
        return None if match is None else unquoted(match["name"])
    if isinstance(computation, ProtoComputation):
        value = computation.module.execution_threads[computation.number]
        return unquoted(value) or as_text(value) or None  # only the text form has quotes
    return None
