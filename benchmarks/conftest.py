"""What the benchmarks share: large modules, made once and kept, and the table of figures at the end.

Nothing fails for being slow: machines differ. A figure that misses what is wanted is marked in the table.
"""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from figures import Figure, Table
from step_module import sparse_lines

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
DENSE_LAYERS = 1200
SPARSE_BYTES = 50_000_000


FIGURES = pytest.StashKey[list[Figure]]()


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
    path = CACHE / "given.pb"
    CACHE.mkdir(exist_ok=True)
    path.write_bytes(
        import_module("jaxlib._hlo").hlo_module_from_text(dense_text.read_text()).as_serialized_hlo_module_proto()
    )
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


@pytest.hookimpl(trylast=True)
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
