"""Run the commands that the documentation shows and compare, or write, what they print.

A block fenced as ``console`` holds commands, each after ``$ `` at the start of a line, and below each what it prints; a
line of three dots stands for any lines. The commands of a file run one after another in one empty folder in which
``examples`` is there, on a terminal of 110 columns without colours. Other fences (``sh``, ``text``) are left alone.

    python tools/console_blocks.py README.md docs/*/*.md            compare, name every difference
    python tools/console_blocks.py --write README.md docs/*/*.md    put what is printed into the files
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = "```console"
ANY_LINES = "..."
PREAMBLE = """
commlens() { "$PYTHON" -c 'import sys; from commlens.cli import main; sys.exit(main())' "$@"; }
exec 2>&1
"""


@dataclass(frozen=True)
class Shown:
    """One command of a file and what the file says it prints.

    Attributes:
        line: line of the command, counted from 1.
        command: what is typed.
        output: the lines below it.
    """

    line: int
    command: str
    output: tuple[str, ...]


def shown_commands(text: str) -> list[Shown]:
    """Return the commands of all console blocks of a text."""
    found: list[Shown] = []
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if not inside:
            inside = line.rstrip() == FENCE
        elif line.startswith("```"):
            inside = False
        elif line.startswith("$ "):
            found.append(Shown(number, line[2:], ()))
        elif found:
            last = found.pop()
            found.append(Shown(last.line, last.command, (*last.output, line)))
    return found


def run(commands: list[Shown]) -> list[tuple[str, ...]]:
    """Run commands one after another in one folder and return the lines that each prints."""
    source = str(ROOT / "src")
    environment = {
        **{name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "VIRTUAL_ENV"}},
        **{"PYTHON": sys.executable, "PYTHONPATH": source, "COLUMNS": "110", "NO_COLOR": "1", "PYTHONUTF8": "1"},
    }
    printed: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        for shown in commands:
            done = subprocess.run(
                ["bash", "-c", PREAMBLE + shown.command],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                check=False,
            )
            printed.append(tuple(line.rstrip() for line in done.stdout.splitlines()))
    return printed


def agrees(expected: tuple[str, ...], printed: tuple[str, ...]) -> bool:
    """Return whether lines are as expected, where a line of three dots stands for any lines."""
    parts = ["(?:.*\n)*" if line == ANY_LINES else re.escape(line.rstrip()) + "\n" for line in expected]
    return re.fullmatch("".join(parts), "".join(line + "\n" for line in printed)) is not None


def with_output(text: str, commands: list[Shown], printed: list[tuple[str, ...]]) -> str:
    """Return a text in which each command is followed by what it printed, where that differs from what stands there."""
    lines = text.splitlines()
    for shown, new in reversed(list(zip(commands, printed, strict=True))):
        if not agrees(shown.output, new):
            lines[shown.line : shown.line + len(shown.output)] = new
    return "\n".join(lines) + "\n"


def main() -> int:
    """Compare or write the blocks of the files on the command line."""
    parser = argparse.ArgumentParser(description="Run the commands that the documentation shows.")
    parser.add_argument("--write", action="store_true", help="put what is printed into the files")
    parser.add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    differing = 0
    for path in arguments.files:
        text = path.read_text(encoding="utf-8")
        commands = shown_commands(text)
        printed = run(commands)
        for shown, new in zip(commands, printed, strict=True):
            if not agrees(shown.output, new):
                differing += 1
                print(f"{path}:{shown.line}: $ {shown.command}", *new, sep="\n    ")
        if arguments.write:
            path.write_text(with_output(text, commands, printed), encoding="utf-8")
    return 1 if differing and not arguments.write else 0


if __name__ == "__main__":
    sys.exit(main())
