"""What starts, updates and ends an operation that XLA keeps inside an async-start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo.model import UnreadableError
from commlens.hlo.opcodes import COLLECTIVES, DEDICATED_START, base_opcode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo.model import Instruction, Module

_ASYNC_START: Final = "async-start"
_STARTS: Final = frozenset({_ASYNC_START, *(f"{opcode}-start" for opcode in COLLECTIVES - DEDICATED_START)})


def async_chains(module: Module) -> dict[Instruction, list[Instruction]]:
    """Return the starts, updates and dones of operations that XLA keeps inside an async-start.

    Args:
        module: a module.

    Returns:
        By operation: the root of what an ``async-start`` calls, or a start that is written in short and stands for what
        it wraps. Starts come first, then updates and dones in file order. What cannot be read is left out.

    Example:
        >>> from commlens.hlo import load
        >>> module = load('''w {
        ...   q = f32[16] parameter(0)
        ...   ROOT r = f32[4] reduce-scatter(q), replica_groups={}, dimensions={0}, to_apply=add
        ... }
        ... ENTRY e {
        ...   p = f32[16] parameter(0)
        ...   s = ((f32[16]), f32[4]) async-start(p), calls=w
        ...   ROOT d = f32[4] async-done(s)
        ... }''')
        >>> async_chains(module)
        {<reduce-scatter r>: [<async-start s>, <async-done d>]}
    """
    operations = {start: operation for start in module.instructions_of(_STARTS) for operation in _wrapped(start)}
    chains: dict[Instruction, list[Instruction]] = {}
    for start, operation in operations.items():
        chains.setdefault(operation, []).append(start)
    halves = {f"{base_opcode(start.opcode)[0]}-{half}" for start in operations for half in ("update", "done")}
    for each in module.instructions_of(halves) if halves else ():
        operation = _operation(each, operations)
        if operation is not None:
            chains[operation].append(each)
    return chains


def _wrapped(start: Instruction) -> Iterator[Instruction]:
    """Yield the operation that a start wraps."""
    try:
        if start.opcode != _ASYNC_START:
            yield start
            return
        for role, name in start.called:
            computation = start.computation.module.computation(name) if role == "async" else None
            if computation is not None and len(computation.instructions):
                yield computation.root
    except UnreadableError:
        return  # nobody can say what it wraps


def _operation(half: Instruction, operations: dict[Instruction, Instruction]) -> Instruction | None:
    """Return the operation to which an update or done leads, and note it for all that stands between."""
    way: dict[Instruction, None] = {}
    current = half
    try:
        while current not in operations and current not in way and base_opcode(current.opcode)[1] in ("update", "done"):
            way[current] = None
            current = current.operands[0]
    except (UnreadableError, IndexError):
        return None  # nobody can say what it belongs to
    operation = operations.get(current)
    if operation is not None:
        operations.update(dict.fromkeys(way, operation))
    return operation
