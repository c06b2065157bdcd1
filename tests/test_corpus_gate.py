"""The tests over the module collection run when it stands beside the repository and are counted when it does not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
import pytest

def test_plain():
    pass

@pytest.mark.corpus("jax-*/*.txt")
@pytest.mark.parametrize("stage", [1, 2])
def test_each_file(corpus_file, stage):
    assert corpus_file.read_text() == "HloModule m"

def test_whole_folder(corpus):
    assert corpus.is_dir()

@pytest.mark.corpus
def test_marked_alone():
    pass
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a small repository that has the conftest of this one."""
    tests = tmp_path / "clone" / "tests"
    tests.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("conftest.py"), tests)
    (tests / "test_suite.py").write_text(SUITE)
    (tmp_path / "clone" / "pytest.ini").write_text("[pytest]\ntestpaths = tests\nmarkers = corpus: over the corpus\n")
    return tmp_path / "clone"


def run_pytest(clone: Path, *arguments: str) -> tuple[int, list[str]]:
    """Run pytest as a person would and return its exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=clone,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def add_corpus(clone: Path, *names: str) -> None:
    """Put files of the collection beside the repository."""
    for name in names:
        path = clone.parent / "shared" / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("HloModule m")


def test_absent_corpus_is_counted_before_the_closing_line(clone: Path) -> None:
    """Without the collection its tests do not run, count once per function, and the run says so."""
    code, lines = run_pytest(clone)
    assert code == 0
    assert lines[-2] == "corpus absent: 3 tests left out"
    assert "1 passed, 4 deselected" in lines[-1]


def test_present_corpus_runs_once_per_file(clone: Path) -> None:
    """With the collection every test over it runs, and nothing is said to be left out."""
    add_corpus(clone, "jax-1/a.txt", "jax-2/b.txt", "other/c.txt")
    code, lines = run_pytest(clone)
    assert code == 0
    assert "7 passed" in lines[-1]
    assert not any("left out" in line for line in lines)


def test_nothing_is_said_where_no_corpus_test_was_asked_for(clone: Path) -> None:
    """A run over other tests alone leaves nothing out."""
    code, lines = run_pytest(clone, "tests/test_suite.py::test_plain")
    assert code == 0
    assert not any("left out" in line for line in lines)


def test_pattern_without_files_is_an_error(clone: Path) -> None:
    """A pattern that matches nothing would be a test that never runs: the run refuses it."""
    add_corpus(clone, "other/c.txt")
    code, lines = run_pytest(clone)
    assert code != 0
    assert any("no file of the corpus matches ('jax-*/*.txt',)" in line for line in lines)


def test_corpus_marker_selects_the_corpus_tests(clone: Path) -> None:
    """``-m corpus`` finds tests that only take the fixture as well."""
    add_corpus(clone, "jax-1/a.txt")
    code, lines = run_pytest(clone, "-m", "corpus")
    assert code == 0
    assert "4 passed, 1 deselected" in lines[-1]
