"""Following a value through a module: forwards to what becomes of it, backwards to where it comes from.

A value passes through what changes neither its elements nor their number: copies, reshapes and transposes, conversions
of type, the done half of an asynchronous collective, the picking of an element of a tuple; and through fusions, inside
of which it is followed as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.hlo import UnreadableError, base_opcode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.analysis.checks.def_use import Flows, Uses
    from commlens.hlo import Instruction

RELAYOUTS: Final = frozenset({"copy", "bitcast", "reshape", "transpose", "convert"})
"""What keeps every element of its one operand."""

_PASSES: Final = RELAYOUTS | {"get-tuple-element"}
_SLICES: Final = frozenset({"slice", "dynamic-slice"})
CALLS: Final = frozenset({"fusion", "call"})
"""What runs a computation once and gives what its root gives; also the roles of what they call."""

_DEEPEST: Final = 40
"""Fusions in fusions, or steps backwards; compilers write a few."""
_MOST_VALUES: Final = 10_000
"""Forms of one value to follow; compilers write a few, and a hostile module any number."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A computation as one call of it sees it.

    Attributes:
        uses: its edges.
        caller: the value that the call gives, None for a computation that is looked at on its own.
        depth: how many calls lead here.
    """

    uses: Uses
    caller: Value | None = None
    depth: int = 0


class Value(NamedTuple):
    """What an instruction gives, in one call of its computation.

    Attributes:
        frame: the computation.
        position: where the instruction stands in it.
    """

    frame: Frame
    position: int

    @property
    def instruction(self) -> Instruction:
        """The instruction."""
        return self.frame.uses.instructions[self.position]

    @property
    def operands(self) -> list[Value]:
        """What its operands give."""
        return [Value(self.frame, position) for position in self.frame.uses.operands(self.position)]


def results_of(value: Value, number: int) -> dict[int, list[Value]] | None:
    """Return the single results of a collective, which stand in a tuple where there are several.

    Args:
        value: the collective, or the start of it.
        number: how many results it has.

    Returns:
        The values that each is picked out as, by its place; None where the tuple as a whole goes elsewhere, or where
        that cannot be told.
    """
    if number == 1:
        return {0: [value]}
    found: dict[int, list[Value]] = {}
    pending = [value]
    while pending:
        current = pending.pop()
        uses = current.frame.uses
        if current.position == uses.root or len(found) > _MOST_VALUES:
            return None
        for user in (Value(current.frame, position) for position in uses.users(current.position)):
            try:
                opcode, index = user.instruction.opcode, user.instruction.raw_attribute("index") or ""
            except UnreadableError:
                return None
            if base_opcode(opcode)[1] in ("done", "update") and user.position > current.position:
                pending.append(user)
            elif opcode == "get-tuple-element" and index.isdecimal():
                found.setdefault(int(index), []).append(user)
            else:
                return None
    return found


def slices_of(flows: Flows, values: Sequence[Value]) -> list[Value] | None:
    """Return the slices that are made of a value, if nothing else is made of it.

    Args:
        flows: the module.
        values: the forms that the value is there in.

    Returns:
        The instructions ``slice`` and ``dynamic-slice``, in fusions too; None where something else uses it, where it
        leaves its computation, or where that cannot be told. An empty list: nothing uses it.
    """
    try:
        return _slices_of(flows, values)
    except (UnreadableError, LookupError):
        return None


def _slices_of(flows: Flows, values: Sequence[Value]) -> list[Value] | None:
    found: list[Value] = []
    pending, seen = list(values), set(values)
    while pending:
        current = pending.pop()
        if len(seen) > _MOST_VALUES:
            return None
        further = [] if current.position != current.frame.uses.root else [current.frame.caller]
        for position in current.frame.uses.users(current.position):
            user = Value(current.frame, position)
            if user.instruction.opcode in _SLICES and user.operands[0] == current:
                found.append(user)
            else:
                further += _passed_on(flows, current, user)
        for each in further:
            if each is None:
                return None
            if each not in seen:
                seen.add(each)
                pending.append(each)
    return found


def _passed_on(flows: Flows, value: Value, user: Value) -> list[Value | None]:
    """Return in what form a user hands a value on; None among it where that cannot be followed."""
    opcode, uses = user.instruction.opcode, user.frame.uses
    if user.position in uses.graph.broken:
        return [None]
    if opcode in _PASSES or base_opcode(opcode)[1] in ("done", "update"):
        return [user]
    inner = _enter(flows, user) if opcode == "fusion" and user.frame.depth < _DEEPEST else None
    if inner is None:
        return [None]
    numbers = [number for number, position in enumerate(uses.operands(user.position)) if position == value.position]
    return [Value(inner, inner.uses.parameters[number]) for number in numbers]


def callee_of(flows: Flows, value: Value) -> Value | None:
    """Return what the root of the computation gives that a fusion or call runs; None where there is none to look at."""
    if value.frame.depth >= _DEEPEST:
        return None
    inner = _enter(flows, value)
    root = None if inner is None else inner.uses.root
    return None if inner is None or root is None else Value(inner, root)


def argument_of(value: Value) -> Value | None:
    """Return what the call gives to a parameter; None for a parameter of a computation that is looked at on its own."""
    caller = value.frame.caller
    number = value.instruction.raw_attribute("parameter_number") or ""
    if caller is None or not number.isdecimal():
        return None
    operands = caller.operands
    return operands[int(number)] if int(number) < len(operands) else None


def _enter(flows: Flows, value: Value) -> Frame | None:
    names = [name for role, name in value.instruction.called if role in CALLS]
    uses = flows.uses_of(names[0]) if len(names) == 1 else None
    return None if uses is None else Frame(uses, value, value.frame.depth + 1)


class Origin(NamedTuple):
    """Where a value comes from.

    Attributes:
        value: what an instruction gives that does more than hand a value on.
        element: which element of its tuple it is; None where it is the whole.
    """

    value: Value
    element: int | None


def origin_of(flows: Flows, value: Value, through: frozenset[str] = RELAYOUTS) -> Origin:
    """Return where a value comes from.

    Args:
        flows: the module.
        value: the value.
        through: opcodes of one operand to look through; tuples and fusions are looked through as well.

    Raises:
        UnreadableError: an instruction on the way cannot be read.
        LookupError: a computation on the way is empty or incomplete.
    """
    element: int | None = None
    for _ in range(_DEEPEST):
        before = _before(flows, value, element, through)
        if before is None:
            break
        value, element = before
    return Origin(value, element)


def _before(flows: Flows, value: Value, element: int | None, through: frozenset[str]) -> Origin | None:
    """Return the step before a value, None where there is none."""
    instruction = value.instruction
    opcode = instruction.opcode
    if opcode == "get-tuple-element" and element is None:
        number = instruction.raw_attribute("index") or ""
        return Origin(value.operands[0], int(number)) if number.isdecimal() and value.operands else None
    if opcode == "tuple" and element is not None:
        operands = value.operands
        return Origin(operands[element], None) if element < len(operands) else None
    if opcode in through and element is None and value.operands:
        return Origin(value.operands[0], None)
    if opcode == "parameter":
        argument = argument_of(value)
        return None if argument is None else Origin(argument, element)
    inner = callee_of(flows, value) if opcode in CALLS else None
    return None if inner is None else Origin(inner, element)


def value_of(flows: Flows, instruction: Instruction) -> Value | None:
    """Return what an instruction gives, in its computation on its own; None where its edges cannot be made out."""
    uses = flows.uses(instruction.computation)
    position = None if uses is None else uses.position(instruction)
    return None if uses is None or position is None else Value(Frame(uses), position)
