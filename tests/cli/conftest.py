"""Running the command line inside the test process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commlens.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Outcome:
    """What a run of the program left.

    Attributes:
        code: the exit code.
        out: standard output.
        err: standard error.
    """

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The only line of standard error, without ``commlens: error: ``; nothing may be on standard output."""
        lines = self.err.splitlines()
        assert (self.code, self.out, len(lines)) == (2, "", 1), self
        assert lines[0].startswith("commlens: error: ")
        assert lines[0].isprintable()
        return lines[0].removeprefix("commlens: error: ")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Return a function that runs the program with arguments, in the folder of these tests, 80 columns wide."""
    monkeypatch.chdir(HERE)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("COMMLENS_DEBUG", raising=False)

    def run(*arguments: str, columns: int = 80) -> Outcome:
        monkeypatch.setenv("COLUMNS", str(columns))
        code = main(arguments)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run
