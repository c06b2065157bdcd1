"""Running the command line inside the test process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from command_line import Outcome
from commlens.cli import main
from opt_command import TEXT

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Run

HERE = Path(__file__).parent


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the program with arguments, in the folder of these tests."""
    monkeypatch.chdir(HERE)
    monkeypatch.delenv("COMMLENS_DEBUG", raising=False)

    def run(*arguments: str, columns: int = 80) -> Outcome:
        monkeypatch.setenv("COLUMNS", str(columns))
        code = main(arguments)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def at(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Return what runs check in an empty folder in which some files are."""

    def at(*arguments: str, columns: int = 120, **files: str) -> Outcome:
        for name, text in files.items():
            (tmp_path / name.replace("__", ".")).write_text(text)
        monkeypatch.chdir(tmp_path)
        return run("check", *arguments, columns=columns)

    return at


@pytest.fixture
def step_file(tmp_path: Path) -> Path:
    """Return a file with a module for ``commlens opt``."""
    path = tmp_path / "step.hlo"
    path.write_text(TEXT)
    return path
