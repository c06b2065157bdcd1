"""The instructions of a computation that is laid out as compilers print it: a line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from commlens.hlo.text.instruction import TextInstruction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo.text.computation import TextComputation

INDENT = 2
"""Blanks before every instruction."""


class PrintedLines(Sequence[TextInstruction]):
    """The lines of a computation, each made an instruction when somebody asks for it: there may be a million.

    Args:
        computation: the computation.
    """

    def __init__(self, computation: TextComputation) -> None:
        self._computation = computation
        start, end = computation.body, computation.end
        body = np.frombuffer(computation.text, dtype=np.uint8)[start:end]
        newlines = np.flatnonzero(body == ord("\n"))
        starts = np.concatenate((np.zeros(1, dtype=np.int64), newlines + 1))
        stops = np.append(newlines, body.size)
        filled = starts < stops
        self._starts = starts[filled] + (start + INDENT)
        self._stops = stops[filled] + start

    def spans(self) -> tuple[list[int], list[int]]:
        """Return where the instructions start and where their lines end."""
        return self._starts.tolist(), self._stops.tolist()

    def position(self, offset: int) -> int:
        """Return the position of the line on which an offset lies."""
        return int(np.searchsorted(self._starts, offset, side="right")) - 1

    def __len__(self) -> int:
        return self._starts.size

    @overload
    def __getitem__(self, index: int) -> TextInstruction: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[TextInstruction, ...]: ...

    def __getitem__(self, index: int | slice) -> TextInstruction | tuple[TextInstruction, ...]:
        if isinstance(index, slice):
            return tuple(self[each] for each in range(*index.indices(len(self))))
        return TextInstruction(self._computation, int(self._starts[index]), int(self._stops[index]))

    def __iter__(self) -> Iterator[TextInstruction]:
        computation = self._computation
        for start, stop in zip(self._starts.tolist(), self._stops.tolist(), strict=True):
            yield TextInstruction(computation, start, stop)
