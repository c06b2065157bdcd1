"""What the benchmarks share: large modules, made once and kept, and the table of figures at the end.

Each figure is the best of several runs, ours and theirs in the same process, one after the other. Nothing fails for being
slow: the machines differ. A figure that misses what is wanted is marked in the table.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from step_module import sparse_lines

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
DENSE_LAYERS = 1200
SPARSE_BYTES = 50_000_000


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


FIGURES = pytest.StashKey[list[Figure]]()


def best_of(action: Callable[[], object], rounds: int) -> float:
    """Return the seconds of the fastest of some runs."""
    seconds: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def in_words(seconds: float) -> str:
    """Return seconds in a fitting unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1 or unit == "us":
            return f"{seconds * scale:.3g} {unit}"
    raise AssertionError


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take a dense module from elsewhere."""
    parser.addoption("--dense", type=Path, help="HLO text with many collectives, instead of the one made here")


@pytest.fixture(scope="session")
def table(request: pytest.FixtureRequest) -> Table:
    """Return the table of figures."""
    return Table(request.config.stash.setdefault(FIGURES, []))


@pytest.fixture(scope="session")
def dense_text(request: pytest.FixtureRequest) -> Path:
    """Return the text of a training step with 19,201 collectives."""
    given: Path | None = request.config.getoption("--dense")
    return given if given is not None else made("dense.txt")


@pytest.fixture(scope="session")
def dense_proto(request: pytest.FixtureRequest, dense_text: Path) -> Path:
    """Return the same module as a proto."""
    if request.config.getoption("--dense") is None:
        return made("dense.pb")
    from jaxlib import _hlo

    path = CACHE / "given.pb"
    CACHE.mkdir(exist_ok=True)
    path.write_bytes(_hlo.hlo_module_from_text(dense_text.read_text()).as_serialized_hlo_module_proto())
    return path


@pytest.fixture(scope="session")
def sparse_text() -> Path:
    """Return a text of the same size with one collective per 100 kB."""
    path = CACHE / "sparse.txt"
    CACHE.mkdir(exist_ok=True)
    with path.open("w") as file:
        file.writelines(sparse_lines(SPARSE_BYTES))
    return path


def made(name: str) -> Path:
    """Return a file of the dense module, making both the first time (two minutes)."""
    if not (CACHE / "done").exists():
        CACHE.mkdir(exist_ok=True)
        script = [sys.executable, str(HERE / "step_module.py"), str(DENSE_LAYERS)]
        subprocess.run([*script, str(CACHE / "dense.txt"), str(CACHE / "dense.pb")], check=True)
        (CACHE / "done").touch()
    return CACHE / name


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table."""
    figures = terminalreporter.config.stash.get(FIGURES, [])
    if not figures:
        return
    terminalreporter.section("figures (best of several, one run)")
    rows = [("", "ours", "theirs", "result", "wanted")]
    rows += [(f.what, f.ours, f.theirs, f.result, f.wanted + ("" if f.met else "   MISSED")) for f in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        terminalreporter.write_line(line.rstrip())
