"""Figures and how they are taken: the best of several runs, ours and theirs in one process, one after the other."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Attributes:
        what: what was measured.
        ours: our figure in words.
        theirs: what it is held against, in words.
        result: the ratio or the figure in words.
        wanted: what is wanted, in words.
        met: whether it is.
    """

    what: str
    ours: str
    theirs: str
    result: str
    wanted: str
    met: bool


def best_of(action: Callable[[], object], rounds: int) -> float:
    """Return the seconds of the fastest of some runs."""
    seconds: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def best(benchmark: BenchmarkFixture) -> float:
    """Return the seconds of the fastest run that a benchmark has made."""
    if benchmark.stats is None:
        msg = "the benchmark has not run"
        raise RuntimeError(msg)
    return float(benchmark.stats["min"])


def in_words(seconds: float) -> str:
    """Return seconds in a fitting unit."""
    unit, scale = next((pair for pair in (("s", 1), ("ms", 1e3)) if seconds * pair[1] >= 1), ("us", 1e6))
    return f"{seconds * scale:.3g} {unit}"


@dataclass(frozen=True)
class Table:
    """Collects figures.

    Attributes:
        figures: what is there so far.
    """

    figures: list[Figure]

    def faster(self, what: str, ours: float, theirs: float, *, at_least: float) -> None:
        """Note how many times faster we are."""
        result, met = f"{theirs / ours:.1f} x faster", theirs / ours >= at_least
        self.figures.append(Figure(what, in_words(ours), in_words(theirs), result, f">= {at_least:g} x", met))

    def within(self, what: str, ours: float, theirs: float, *, at_most: float) -> None:
        """Note how many times longer we take."""
        result, met = f"{ours / theirs:.2f} x the time", ours / theirs <= at_most
        self.figures.append(Figure(what, in_words(ours), in_words(theirs), result, f"<= {at_most:g} x", met))

    def under(self, what: str, ours: float, limit: float) -> None:
        """Note a time against a limit in seconds."""
        self.figures.append(Figure(what, in_words(ours), "", in_words(ours), f"<= {in_words(limit)}", ours <= limit))

    def memory(self, what: str, peak: int, limit: int) -> None:
        """Note a peak of memory against a limit, both in bytes."""
        result = f"{peak / 1e6:.0f} MB"
        self.figures.append(Figure(what, result, "", result, f"<= {limit / 1e6:.0f} MB", peak <= limit))
