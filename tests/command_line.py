"""A run of the command line, as tests see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


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


class Run(Protocol):
    """Runs the program inside the test process."""

    def __call__(self, *arguments: str, columns: int = 80) -> Outcome:
        """Run it with some arguments, as if the terminal were so wide."""
        ...
