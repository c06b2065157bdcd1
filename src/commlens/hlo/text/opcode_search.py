"""Finding the instructions of a few opcodes without taking all others apart."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

import numpy as np

from commlens.hlo.model import UnreadableError
from commlens.hlo.text.values import BEFORE_OPERANDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from commlens.hlo.text.computation import TextComputation
    from commlens.hlo.text.computation_table import ComputationTable
    from commlens.hlo.text.instruction import TextInstruction

_BEHIND: Final = re.compile(BEFORE_OPERANDS)
_NAME_BYTES: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.%")


def instructions_with(table: ComputationTable, opcodes: Collection[str]) -> Iterator[TextInstruction]:
    """Yield the instructions of a module that have one of some opcodes, as spelled, in file order.

    An opcode that stands nowhere costs one search for its bytes; one that seems to stand somewhere, one instruction.
    """
    positions = np.array(sorted({each for opcode in opcodes for each in _positions(table, opcode)}), dtype=np.int64)
    for number, which in table.by_computation(positions):
        computation = table.computation(number)
        find = _in_printed if computation.starts is None else _in_irregular
        yield from find(computation, positions[which].tolist(), opcodes)


def _positions(table: ComputationTable, opcode: str) -> Iterator[int]:
    """Yield where an opcode seems to stand before a parenthesis; whether it does, the instruction decides."""
    text, word = table.text, opcode.encode()
    position, end = table.span.extent
    while (position := text.find(word, position, end)) >= 0:
        behind = position + len(word)
        if text[position - 1] not in _NAME_BYTES and _BEHIND.match(text, behind, end) is not None:
            yield position
        position = behind


def _in_printed(computation: TextComputation, positions: list[int], opcodes: Collection[str]) -> list[TextInstruction]:
    """Return the instructions on the lines of these positions that have one of the opcodes."""
    lines = {each.start: each for each in map(computation.at, positions)}
    return [each for each in lines.values() if _has_one_of(each, opcodes)]


def _in_irregular(
    computation: TextComputation, positions: list[int], opcodes: Collection[str]
) -> list[TextInstruction]:
    """Return the instructions that these positions may stand in and that have one of the opcodes."""
    found: list[TextInstruction] = []
    for instruction in computation.instructions:
        first = bisect_left(positions, instruction.start)
        if first < len(positions) and positions[first] < instruction.end and _has_one_of(instruction, opcodes):
            found.append(instruction)
    return found


def _has_one_of(instruction: TextInstruction, opcodes: Collection[str]) -> bool:
    try:
        return instruction.opcode in opcodes
    except UnreadableError:
        return False  # whatever it is, nobody can say that it has one of the opcodes
