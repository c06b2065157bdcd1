"""Scalars that depend on the device: what an index computation gives on each, worked out for all at once.

Programs choose the part of an array that belongs to a device by arithmetic on ``partition-id`` and ``replica-id``, or
look it up in a table. Here that arithmetic is done on arrays with one element per device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from commlens.analysis.checks.dataflow import CALLS, argument_of, callee_of
from commlens.hlo import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from commlens.analysis.checks.dataflow import Value
    from commlens.analysis.checks.def_use import Flows
    from commlens.hlo import Instruction

Numbers: TypeAlias = npt.NDArray[np.int64]
"""One whole number per device."""

_DEEPEST: Final = 60
_MOST_VALUES: Final = 2000
"""Scalars to work out for one slice: a real index takes a dozen, and a hostile one would take for ever."""
_LARGEST_TABLE: Final = 1 << 20
_BITS: Final = 62
_SAME: Final = frozenset({"copy", "bitcast", "reshape", "convert", "broadcast"})
_NUMBER: Final = re.compile(r"-?\d{1,18}")
_TABLE: Final = re.compile(r"\{[\s\d,-]*\}")


def _divided(left: Numbers, right: Numbers) -> Numbers:
    """Divide as XLA does: towards zero, and by zero to -1."""
    safe = np.where(right == 0, 1, right)
    return np.where(right == 0, -1, np.sign(left) * np.sign(safe) * (np.abs(left) // np.abs(safe)))


def _remainder(left: Numbers, right: Numbers) -> Numbers:
    """Return what division leaves, as XLA does: with the sign of the dividend, and by zero the dividend."""
    return np.where(right == 0, left, left - _divided(left, right) * right)


def _left(left: Numbers, right: Numbers) -> Numbers:
    return np.left_shift(left, np.clip(right, 0, _BITS))


def _right(left: Numbers, right: Numbers) -> Numbers:
    return np.right_shift(left, np.clip(right, 0, _BITS))


_TWO: Final[Mapping[str, Callable[[Numbers, Numbers], Numbers]]] = MappingProxyType(
    {
        "add": np.add,
        "subtract": np.subtract,
        "multiply": np.multiply,
        "divide": _divided,
        "remainder": _remainder,
        "minimum": np.minimum,
        "maximum": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "shift-left": _left,
        "shift-right-logical": _right,
        "shift-right-arithmetic": _right,
    }
)
_COMPARED: Final[Mapping[str, Callable[[Numbers, Numbers], npt.NDArray[np.bool_]]]] = MappingProxyType(
    {
        "EQ": np.equal,
        "NE": np.not_equal,
        "LT": np.less,
        "LE": np.less_equal,
        "GT": np.greater,
        "GE": np.greater_equal,
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceValues:
    """Works scalars out on every device.

    Attributes:
        flows: the module.
        replicas: the replica of each device.
        partitions: the partition of each device.
    """

    flows: Flows
    replicas: Numbers
    partitions: Numbers
    _known: dict[Value, Numbers | None] = field(default_factory=dict["Value", "Numbers | None"], init=False, repr=False)

    def of(self, value: Value, depth: int = 0) -> Numbers | None:
        """Return a scalar (or an array of one element) on each device; None where it depends on data or is not known.

        Widths are not kept: a program that relies on wrapping round is not understood as it is meant.
        """
        if value not in self._known:
            small = depth < _DEEPEST and len(self._known) < _MOST_VALUES
            try:
                self._known[value] = self._of(value, depth) if small else None
            except (UnreadableError, LookupError):
                self._known[value] = None
        return self._known[value]

    def _of(self, value: Value, depth: int) -> Numbers | None:
        instruction = value.instruction
        if value.position in value.frame.uses.graph.broken or instruction.shape.num_elements != 1:
            return None
        match instruction.opcode:
            case "partition-id":
                return self.partitions
            case "replica-id":
                return self.replicas
            case "constant":
                return self._constant(instruction)
            case "parameter":
                argument = argument_of(value)
                return None if argument is None else self.of(argument, depth + 1)
            case "dynamic-slice":
                return self._looked_up(value, depth)
            case opcode if opcode in CALLS:
                inner = callee_of(self.flows, value)
                return None if inner is None else self.of(inner, depth + 1)
            case opcode:
                operands = [self.of(operand, depth + 1) for operand in value.operands]
                known = [each for each in operands if each is not None]
                return None if len(known) < len(operands) else self._computed(opcode, instruction, known)

    def _computed(self, opcode: str, instruction: Instruction, operands: list[Numbers]) -> Numbers | None:
        match opcode, operands:
            case _, [one] if opcode in _SAME:
                return one
            case "negate", [one]:
                return -one
            case _, [left, right] if opcode in _TWO:
                return _TWO[opcode](left, right)
            case "compare", [left, right]:
                compare = _COMPARED.get(instruction.raw_attribute("direction") or "")
                return None if compare is None else compare(left, right).astype(np.int64)
            case "select", [chosen, yes, no]:
                return np.where(chosen != 0, yes, no)
            case "clamp", [least, one, most]:
                return np.minimum(np.maximum(one, least), most)
            case _:
                return None

    def _constant(self, instruction: Instruction) -> Numbers | None:
        text = (instruction.raw_attribute("literal") or "").strip("{} ")
        number = {"true": 1, "false": 0}.get(text)
        if number is None and _NUMBER.fullmatch(text) is not None:
            number = int(text)
        return None if number is None else np.full(self.partitions.shape, number, dtype=np.int64)

    def _looked_up(self, value: Value, depth: int) -> Numbers | None:
        """Return the element of a constant table that a device's index picks."""
        operands = value.operands
        if len(operands) != 2:
            return None
        table, index = self._table(operands[0], depth), self.of(operands[1], depth + 1)
        return None if table is None or index is None else table[np.clip(index, 0, table.size - 1)]

    def _table(self, value: Value, depth: int) -> Numbers | None:
        """Return a constant array of whole numbers."""
        while value.instruction.opcode == "parameter" and depth < _DEEPEST:
            argument = argument_of(value)
            if argument is None:
                return None
            value, depth = argument, depth + 1
        instruction = value.instruction
        size = instruction.shape.num_elements or 0
        text = instruction.raw_attribute("literal") or "" if instruction.opcode == "constant" else ""
        if not 0 < size <= _LARGEST_TABLE or len(instruction.shape.dimensions) != 1 or not _TABLE.fullmatch(text):
            return None
        numbers = _NUMBER.findall(text)
        return np.array([int(each) for each in numbers], dtype=np.int64) if len(numbers) == size else None
