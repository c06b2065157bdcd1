"""How often a while loop runs its body, where the module says so or the loop can be counted.

``known_trip_count`` in the backend config is believed. Without it a loop is counted when its condition compares one
element of its state with a constant, its body adds a constant to that element, and the element starts as a constant;
copies, fusions and calls in between are seen through. A counter is a number of its type: one that would wrap around
before the loop ends, or of a float too large to count by ones, is not counted. Everything else is unknown.
Source: ``WhileLoopBackendConfig`` in xla/xla_data.proto; the idea of ``ComputeWhileLoopTripCount``,
xla/service/while_loop_analysis.cc.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from commlens.hlo.model import UnreadableError
from commlens.hlo.shapes import ELEMENT_BITS

if TYPE_CHECKING:
    from commlens.hlo.model import Computation, Instruction

_KNOWN: Final = re.compile(r'"known_trip_count"\s*:\s*\{\s*"n"\s*:\s*(?:"(\d{1,18})"|(\d{1,18}))\s*[,}]')
_TRANSPARENT: Final = frozenset({"copy", "bitcast", "reshape", "opt-barrier"})
_EXACT_DIGITS: Final = {"bf16": 8, "f16": 11, "f32": 24, "f64": 53}
"""Floats that can count, and the binary digits of the numbers up to which they hold every whole one."""

_DEEPEST: Final = 40
_MOST_STEPS: Final = 2000
"""Instructions to look at per loop: a real counter takes a dozen, and a hostile one would take for ever."""
_MIRRORED: Final = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "EQ": "EQ", "NE": "NE"}


_Kind: TypeAlias = Literal["constant", "state", "element", "sum", "compare", "tuple", "unknown"]


@dataclass(frozen=True, slots=True)
class _Value:
    """What is known of a scalar or a tuple.

    Attributes:
        kind: ``constant``, ``state`` (the loop's whole state), ``element`` (one element of it), ``sum`` (an element and
            a constant), ``compare`` (a comparison), ``tuple`` (made by an instruction), ``unknown``.
        number: the constant, the added constant, or 0.
        index: which element of the state.
        left: left side of a comparison.
        right: right side of a comparison.
        direction: how they are compared.
        maker: the instruction that makes a tuple.
        arguments: what the parameters of the maker's computation are.
    """

    kind: _Kind
    number: int = 0
    index: int = -1
    left: _Value | None = None
    right: _Value | None = None
    direction: str = ""
    maker: Instruction | None = None
    arguments: tuple[_Value, ...] | None = None


_UNKNOWN: Final = _Value("unknown")
_STATE: Final = _Value("state")


def trip_count(loop: Instruction) -> int | None:
    """Return how often a while instruction runs its body.

    Args:
        loop: an instruction with opcode ``while``.

    Returns:
        The count, None where it depends on data or cannot be seen.
    """
    known = _KNOWN.search(loop.raw_attribute("backend_config") or "")
    if known is not None:
        return int(known[1] or known[2])
    try:
        return _Counter().count(loop)
    except (UnreadableError, LookupError):
        return None


class _Counter:
    """Counts one loop; knows how many more instructions it may look at."""

    def __init__(self) -> None:
        self._steps = _MOST_STEPS

    def count(self, loop: Instruction) -> int | None:
        """Count a loop by its instructions."""
        called = dict(loop.called)
        module = loop.computation.module
        condition, body = module.computation(called.get("condition", "")), module.computation(called.get("body", ""))
        if condition is None or body is None:
            return None
        test = self._value(condition.root, (_STATE,), 0)
        if test.kind != "compare" or test.left is None or test.right is None:
            return None
        element, bound, direction = test.left, test.right, test.direction
        if element.kind == "constant":
            element, bound, direction = bound, element, _MIRRORED.get(direction, "")
        if element.kind != "element":
            return None
        initial = self._value(loop.operands[0], None, 0)
        limit = self._invariant(bound, body, initial)
        start = self._part(initial, element.index, 0)
        counter = loop.shape.elements[element.index].element_type
        step = self._part(self._value(body.root, (_STATE,), 0), element.index, 0)
        if limit is None or start.kind != "constant" or step.kind != "sum" or step.index != element.index:
            return None
        by = _signed_step(step.number, counter)
        count = _steps(start.number, limit, by, direction)
        return count if count is not None and _holds(counter, start.number + count * by) else None

    def _invariant(self, bound: _Value, body: Computation, initial: _Value) -> int | None:
        """Return the bound of a loop if it is a constant, or an element that starts as one and never changes."""
        if bound.kind == "constant":
            return bound.number
        if bound.kind != "element":
            return None
        kept = self._part(self._value(body.root, (_STATE,), 0), bound.index, 0)
        start = self._part(initial, bound.index, 0)
        return start.number if kept == bound and start.kind == "constant" else None

    def _part(self, value: _Value, index: int, depth: int) -> _Value:
        """Return one element of a tuple."""
        if value.kind == "state":
            return _Value("element", index=index)
        if value.kind != "tuple" or value.maker is None:
            return _UNKNOWN
        operands = value.maker.operands
        return self._value(operands[index], value.arguments, depth + 1) if 0 <= index < len(operands) else _UNKNOWN

    def _value(self, instruction: Instruction, arguments: tuple[_Value, ...] | None, depth: int) -> _Value:
        """Return what is known of an instruction, given what its computation's parameters are."""
        self._steps -= 1
        if depth > _DEEPEST or self._steps < 0:
            return _UNKNOWN
        match instruction.opcode:
            case "constant":
                literal = instruction.raw_attribute("literal") or ""
                return _constant(int(literal), instruction) if re.fullmatch(r"-?\d{1,20}", literal) else _UNKNOWN
            case "parameter":
                number = instruction.raw_attribute("parameter_number") or ""
                known = arguments is not None and number.isdecimal() and int(number) < len(arguments)
                return arguments[int(number)] if known and arguments is not None else _UNKNOWN
            case "tuple":
                return _Value("tuple", maker=instruction, arguments=arguments)
            case "call" | "fusion":
                return self._called(instruction, arguments, depth)
            case "get-tuple-element":
                index = instruction.raw_attribute("index") or ""
                whole = self._value(instruction.operands[0], arguments, depth + 1)
                return self._part(whole, int(index), depth) if index.isdecimal() else _UNKNOWN
            case "add" | "subtract" | "compare":
                sides = [self._value(operand, arguments, depth + 1) for operand in instruction.operands[:2]]
                return _combined(instruction, sides[0], sides[1]) if len(sides) == 2 else _UNKNOWN
            case "convert":
                return _converted(instruction, self._value(instruction.operands[0], arguments, depth + 1))
            case opcode if opcode in _TRANSPARENT:
                return self._value(instruction.operands[0], arguments, depth + 1)
            case _:
                return _UNKNOWN

    def _called(self, instruction: Instruction, arguments: tuple[_Value, ...] | None, depth: int) -> _Value:
        """Return what is known of the result of a call or a fusion."""
        names = [name for role, name in instruction.called if role in ("call", "fusion")]
        callee = instruction.computation.module.computation(names[0]) if names else None
        if callee is None:
            return _UNKNOWN
        inner = tuple(self._value(operand, arguments, depth + 1) for operand in instruction.operands)
        return self._value(callee.root, inner, depth + 1)


def _steps(start: int, limit: int, step: int, direction: str) -> int | None:
    """Return how often ``start += step`` can be done while ``start DIRECTION limit`` holds."""
    if direction == "NE":
        if start == limit:
            return 0
        reached = step != 0 and (limit - start) % step == 0 and (limit - start) // step > 0
        return (limit - start) // step if reached else None
    if direction in ("GT", "GE"):
        start, limit, step = -start, -limit, -step
    elif direction not in ("LT", "LE"):
        return None
    if direction in ("LE", "GE"):
        limit += 1
    if start >= limit:
        return 0
    return -((start - limit) // step) if step > 0 else None


def _range(element_type: str) -> tuple[int, int] | None:
    """Return the least and the largest whole number up to which a type holds all; None for types that do not count.

    Those below a byte do not: protos state their constants in fields that are not read, and text must not differ.
    """
    if element_type in _EXACT_DIGITS:
        return -(1 << _EXACT_DIGITS[element_type]), 1 << _EXACT_DIGITS[element_type]
    bits = ELEMENT_BITS.get(element_type)
    if bits is None or bits < 8 or element_type[0] not in ("s", "u"):
        return None
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if element_type[0] == "s" else (0, (1 << bits) - 1)


def _holds(element_type: str, number: int) -> bool:
    """Whether a type counts as far as a number."""
    limits = _range(element_type)
    return limits is not None and limits[0] <= number <= limits[1]


def _signed_step(step: int, element_type: str) -> int:
    """Return what adding a constant does: of an integer the nearest way round, as adding 255 to a u8 takes 1 away."""
    if element_type in _EXACT_DIGITS or element_type not in ELEMENT_BITS:
        return step
    half = 1 << ELEMENT_BITS[element_type] - 1
    return (step + half) % (2 * half) - half


def _constant(number: int, instruction: Instruction) -> _Value:
    """Return a constant, unknown where the instruction's type does not hold it."""
    return _Value("constant", number) if _holds(instruction.shape.element_type, number) else _UNKNOWN


def _converted(instruction: Instruction, value: _Value) -> _Value:
    """Return what is known of a number in another type: the same, where that type holds all that it can be."""
    if value.kind == "constant":
        return _constant(value.number, instruction)
    before = _range(instruction.operands[0].shape.element_type)
    target = instruction.shape.element_type
    return value if before is not None and all(_holds(target, end) for end in before) else _UNKNOWN


def _combined(instruction: Instruction, left: _Value, right: _Value) -> _Value:
    """Return what is known of a sum, a difference or a comparison."""
    if instruction.opcode == "compare":
        return _Value("compare", left=left, right=right, direction=instruction.raw_attribute("direction") or "")
    sign = -1 if instruction.opcode == "subtract" else 1
    if left.kind == "constant" and right.kind == "constant":
        return _constant(left.number + sign * right.number, instruction)
    if left.kind == "constant" and sign == 1:
        left, right = right, left
    if left.kind in ("element", "sum") and right.kind == "constant":
        return _Value("sum", left.number + sign * right.number, left.index)
    return _UNKNOWN
