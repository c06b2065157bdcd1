"""The modules of a file by where they stand, and the computations of each by number."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from commlens.hlo.text.computation import TextComputation
from commlens.hlo.text.index import Index, make_index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from commlens.hlo.text.module import TextModule
    from commlens.hlo.text.tokens import Text


@dataclass(frozen=True, slots=True)
class ModuleSpan:
    """Where a module stands in a file.

    Attributes:
        index: the file's index.
        first: number of the module's first computation.
        last: number behind its last one.
        header: span of its ``HloModule`` header; None where there is none.
    """

    index: Index
    first: int
    last: int
    header: tuple[int, int] | None

    @property
    def numbers(self) -> range:
        """The numbers of the module's computations."""
        return range(self.first, self.last)

    @property
    def extent(self) -> tuple[int, int]:
        """Where the first computation starts and the last one ends."""
        return int(self.index.opened[self.first]), int(self.index.ends[self.last - 1])

    def part(self, size: int) -> tuple[int, int]:
        """Return where the module's text starts and ends in a file of a size: all of it where it holds no other.

        A header without computations belongs to the module before it.
        """
        opened = self.index.opened
        start = 0 if self.first == 0 or self.header is None else self.header[0]
        if self.last == len(opened):
            return start, size
        following = bisect_left(self.index.headers, (int(opened[self.last]), 0))
        return start, self.index.headers[following - 1][0]


def module_spans(text: Text) -> list[ModuleSpan]:
    """Return where the modules of a file stand that hold something."""
    index = make_index(text)
    opened = index.opened.tolist()
    borders = [bisect_left(opened, start) for start, _ in index.headers]
    spans: list[ModuleSpan] = []
    if not borders or borders[0] > 0:
        spans.append(ModuleSpan(index, 0, borders[0] if borders else len(opened), None))
    spans += [
        ModuleSpan(index, first, last, header)
        for header, first, last in zip(index.headers, borders, [*borders[1:], len(opened)], strict=False)
    ]
    return [span for span in spans if span.last > span.first]


class ComputationTable:
    """The computations of a module, by number; each is made when somebody asks for it.

    Args:
        module: the module.
        span: where it stands.
    """

    def __init__(self, module: TextModule, span: ModuleSpan) -> None:
        self.text = module.text
        self.span = span
        self._module = module
        self._made: dict[int, TextComputation] = {}
        self._irregular = {number for number in span.numbers if number in span.index.irregular}

    @property
    def irregular(self) -> list[int]:
        """The numbers of the computations that are not laid out as compilers print them, as far as that is known."""
        return sorted(self._irregular)

    def computation(self, number: int) -> TextComputation:
        """Return the computation of a number."""
        made = self._made.get(number)
        if made is None:
            index = self.span.index
            made = self._made[number] = TextComputation(
                self._module,
                number,
                int(index.opened[number]),
                int(index.bodies[number]),
                int(index.ends[number]),
                index.irregular.get(number),
                loose=number in index.loose,
                closed=number not in index.unclosed,
            )
        return made

    @cached_property
    def computations(self) -> tuple[TextComputation, ...]:
        """All computations in file order."""
        return tuple(self.computation(number) for number in self.span.numbers)

    def read_leniently(self, number: int) -> TextComputation:
        """Return a computation that seemed printed but is not, its instructions found token by token.

        For the reading of what communicates alone, which comes first: whoever asks later finds it settled.
        """
        computation = self.computation(number)
        if number not in self._irregular:
            self._irregular.add(number)
            computation.read_leniently()
        return computation

    def by_computation(self, positions: NDArray[np.int64]) -> Iterator[tuple[int, slice]]:
        """Yield which of some ascending positions in the file stand in which computation of the module.

        Returns:
            An iterator over the numbers of computations, each with a slice of the positions.
        """
        low, high = np.searchsorted(positions, self.span.extent).tolist()
        numbers = np.searchsorted(self.span.index.opened, positions[low:high]) - 1
        borders = [low, *(np.flatnonzero(np.diff(numbers)) + (low + 1)).tolist(), high]
        for start, stop in pairwise(borders):
            if start < stop:
                yield int(numbers[start - low]), slice(start, stop)
