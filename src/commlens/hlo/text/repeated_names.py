"""Names that several instructions of a computation bear: XLA refuses such a text, and to edit one of them is a guess.

Only the names of edited instructions are looked for. In a printed computation, which may have a million lines, they are
compared by numbers made of their first bytes, and only those with equal numbers are read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from commlens.hlo.edits import EditError
from commlens.hlo.formatting import as_text
from commlens.hlo.text.printed_lines import INDENT
from commlens.hlo.text.scanner import BLOCK
from commlens.hlo.text.tokens import DEFINITION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from commlens.hlo.text.computation import TextComputation
    from commlens.hlo.text.instruction import TextInstruction
    from commlens.hlo.text.tokens import Text

    Positions = NDArray[np.int64]

_DEFINITION: Final = re.compile(DEFINITION)
_SMALL: Final = 8192
"""Up to so many bytes, all names are read."""
_WORDS: Final = 4
"""How many times eight bytes of a name are compared before it is read."""
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_ROOT: Final = np.uint64(int.from_bytes(b"ROOT ", "little") << 24)
_BLANKS, _ONES, _HIGH = (np.uint64(int.from_bytes(bytes([each]) * 8, "little")) for each in (0x20, 0x01, 0x80))


def check_names(instructions: Iterable[TextInstruction]) -> None:
    """Refuse instructions that bear a name which another one of their computation bears too.

    Raises:
        EditError: one of them does.
    """
    edited: dict[TextComputation, list[int]] = {}
    for instruction in instructions:
        edited.setdefault(instruction.computation, []).append(instruction.start)
    for computation, starts in edited.items():
        _check(computation, starts)


def _check(computation: TextComputation, edited: Sequence[int]) -> None:
    text, module = computation.text, computation.module
    own = frozenset(edited)
    places: dict[bytes, list[int]] = {}
    for start in _likely(computation, edited):
        definition = _DEFINITION.match(text, start)
        if definition is not None:
            places.setdefault(definition["name"], []).append(start)
    for name, starts in places.items():
        faulty = next((start for start in starts if start in own), None) if len(starts) > 1 else None
        if faulty is not None:
            first, second = map(module.line_of, starts[:2])
            msg = f"expected each instruction of {computation.name} to have a name of its own, found {as_text(name)} in"
            msg += f" the lines {first} and {second}"
            raise EditError(msg, line=module.line_of(faulty), column=module.column_of(faulty))


def _likely(computation: TextComputation, edited: Sequence[int]) -> Iterable[int]:
    """Return where the instructions start that may have a name of an edited one, itself and another."""
    if computation.starts is not None:
        return computation.starts
    text = computation.text
    if computation.end - computation.body <= _SMALL:
        return [line.start for line in computation.instructions]
    own = np.array(edited, dtype=np.int64)
    wanted = np.unique(_words(text, _name_starts(text, own)))
    near = np.concatenate(
        [lines[np.isin(_words(text, _name_starts(text, lines)), wanted)] for lines in _lines(computation)]
    )
    numbers = np.zeros(near.size, dtype=np.uint64)
    places = _name_starts(text, near)
    for _ in range(_WORDS):
        word = _words(text, places)
        numbers = numbers * _MIX + word
        places = places + 8 * (word >> np.uint64(56) != 0)  # a name that has ended is looked at no further
    order = np.argsort(numbers, kind="stable")
    same = numbers[order][1:] == numbers[order][:-1]
    return np.sort(near[order[np.append(same, False) | np.append(False, same)]]).tolist()


def _lines(computation: TextComputation) -> Iterator[Positions]:
    """Yield where the lines of a printed computation start, behind their indentation, some at a time."""
    body = np.frombuffer(computation.text, dtype=np.uint8)
    for start in range(computation.body - 1, computation.end, BLOCK):
        block = body[start : min(start + BLOCK, computation.end)]
        yield np.flatnonzero(block == ord("\n")) + (start + 1 + INDENT)


def _name_starts(text: Text, starts: Positions) -> Positions:
    """Return where the names of instructions start, given where those do."""
    found = starts + 5 * (_eights(text, starts) << np.uint64(24) == _ROOT)
    return found + (_eights(text, found) & np.uint64(0xFF) == ord("%"))


def _words(text: Text, places: Positions) -> NDArray[np.uint64]:
    """Return the eight bytes at some places as numbers, of a name that ends before with zeros for all behind it."""
    words = _eights(text, places)
    differs = words ^ _BLANKS
    ends = (differs - _ONES) & ~differs & _HIGH  # the lowest bit that is set stands in the first byte that is a blank
    return words & (((ends & (~ends + np.uint64(1))) >> np.uint64(7)) - np.uint64(1))


def _eights(text: Text, places: Positions) -> NDArray[np.uint64]:
    last = len(text) - 8
    eights: NDArray[np.uint64] = np.ndarray(last + 1, dtype="<u8", buffer=text, strides=(1,))
    return eights[np.minimum(places, last)]
