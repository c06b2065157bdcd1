"""What all tests share: Hypothesis profiles, and the module collection that may stand beside the repository.

The collection (``../shared/corpus``) is not part of the repository. Tests over it say so with the marker ``corpus`` and
take the fixture ``corpus`` (the folder) or ``corpus_file`` (one of its files: the test runs once per file that the
marker's patterns match). Without the collection they are left out, and the run says how many.

Tests that ask XLA through jax or jaxlib have the marker ``xla``, or take a fixture that does; ``-m 'not xla'`` goes
without. Tests under ``soak`` folders are collected with ``--soak`` alone: they take minutes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("long", deadline=None, max_examples=10_000)
settings.load_profile("ci")  # --hypothesis-profile=long asks for the other one

CORPUS_FIXTURES = frozenset({"corpus", "corpus_file"})
XLA_FIXTURES = frozenset({"xla", "xla_python"})
LEFT_OUT = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what asks for long runs, and for other releases of XLA."""
    parser.addoption(
        "--soak", type=float, default=0, help="minutes for every fuzzer, from a new seed; 0: fixed samples"
    )
    parser.addoption(
        "--xla-python",
        action="append",
        default=[],
        metavar="PYTHON",
        help="an interpreter with another jaxlib that reads modules too; may be given several times",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers that say what a test needs; ``corpus`` stands in pyproject.toml."""
    config.addinivalue_line("markers", "xla: asks XLA through jax or jaxlib, which the package does without")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave alone what takes minutes, unless minutes were given."""
    inside = "soak" in (collection_path.name, collection_path.parent.name)
    return True if inside and not config.getoption("--soak") else None


def corpus_folder(config: pytest.Config) -> Path:
    """Return where the module collection stands, if it is there."""
    return config.rootpath.parent / "shared" / "corpus"


@pytest.fixture(scope="session")
def corpus(request: pytest.FixtureRequest) -> Path:
    """Return the folder of the module collection."""
    return corpus_folder(request.config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once per interpreter that has a jaxlib, or once per file of the collection that its marker names."""
    if "xla_python" in metafunc.fixturenames:
        pythons = [sys.executable, *(metafunc.config.getoption("--xla-python") or ())]
        metafunc.parametrize("xla_python", pythons, ids=["this jaxlib", *pythons[1:]])
    if "corpus_file" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("corpus")
    if marker is None or not marker.args:
        msg = f"{metafunc.definition.nodeid} takes corpus_file: say which files, @pytest.mark.corpus('jax-*/*.txt*')"
        raise pytest.UsageError(msg)
    folder = corpus_folder(metafunc.config)
    if not folder.is_dir():
        metafunc.parametrize("corpus_file", [None], ids=["absent"])
        return
    files = sorted({path for pattern in marker.args for path in folder.glob(pattern) if path.is_file()})
    if not files:
        msg = f"{metafunc.definition.nodeid}: no file of the corpus matches {marker.args}"
        raise pytest.UsageError(msg)
    metafunc.parametrize("corpus_file", files, ids=[path.relative_to(folder).as_posix() for path in files])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that ask XLA and those over the collection, and leave the latter out where it is absent."""
    for item in items:
        if not XLA_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("xla")
    over_corpus = [item for item in items if _is_over_corpus(item)]
    for item in over_corpus:
        item.add_marker("corpus")
    if corpus_folder(config).is_dir():
        return
    config.stash[LEFT_OUT] = _test_count(over_corpus)
    if over_corpus:
        config.hook.pytest_deselected(items=over_corpus)
        items[:] = [item for item in items if item not in set(over_corpus)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were left out, if any were."""
    left_out = terminalreporter.config.stash.get(LEFT_OUT, 0)
    if left_out:
        terminalreporter.write_line(f"corpus absent: {left_out} tests left out")


def _is_over_corpus(item: pytest.Item) -> bool:
    fixtures: Iterable[str] = getattr(item, "fixturenames", ())
    return item.get_closest_marker("corpus") is not None or not CORPUS_FIXTURES.isdisjoint(fixtures)


def _test_count(items: Iterable[pytest.Item]) -> int:
    """Count test functions: however many files or parameters a function would run over, it is one test."""
    return len({item.nodeid.split("[", maxsplit=1)[0] for item in items})
