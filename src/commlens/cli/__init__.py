"""The command line: parse arguments, call one function, choose a view, turn errors into exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: the arguments without the program's name; None for those of the process.

    Returns:
        The exit code: 0 done, 1 the command looked for something and found it, 2 unusable input or command line,
        130 interrupted.
    """
    from commlens.cli.program import run

    return run(argv)
