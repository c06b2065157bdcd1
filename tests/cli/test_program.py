"""The program as a whole: help, version, exit codes, errors in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import commlens
from commlens.cli import main
from commlens.errors import CommlensError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from command_line import Run


HERE = Path(__file__).parent
STEP = "data/train_step.hlo"


def python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)


def test_help_lists_the_commands_that_exist(run: Run) -> None:
    """--help names every command with a line, and exits with 0."""
    outcome = run("--help")
    assert outcome.code == 0
    listed = outcome.out.split("Commands:\n")[1].split("\n\n")[0]
    assert [line.split()[0] for line in listed.splitlines() if not line.startswith("   ")] == [
        "check",
        "diff",
        "explain",
        "explain-log",
        "groups",
        "hosts",
        "neff",
        "opt",
        "prove",
        "ranks",
        "report",
    ]


@pytest.mark.parametrize("command", ["report", "explain", "groups"])
def test_every_command_helps(run: Run, command: str) -> None:
    """Each command has its own help, with the options that all of them share."""
    outcome = run(command, "--help")
    assert outcome.code == 0
    assert "--format [table|json|csv|markdown]" in outcome.out


@pytest.mark.parametrize("arguments", [["--help"], ["report", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    """Help and version come at once: neither the maths nor the terminal library nor protobuf is loaded for them."""
    script = (
        "import sys\nfrom commlens.cli import main\ncode = main(sys.argv[1:])\n"
        "heavy = {'numpy', 'rich', 'google'} & {name.partition('.')[0] for name in sys.modules}\n"
        "sys.exit(f'loaded {heavy}' if heavy else code)"
    )
    done = python(script, *arguments)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_piped_report_of_text_needs_no_terminal_library() -> None:
    """A report that goes into a pipe is made without rich, and one of a text without protobuf."""
    script = (
        "import sys\nfrom commlens.cli import main\nmain(sys.argv[1:])\n"
        "sys.exit(str({'rich', 'google'} & {name.partition('.')[0] for name in sys.modules}))"
    )
    assert python(script, "report", f"{HERE}/{STEP}").stderr.splitlines()[-1] == "set()"


def test_version(run: Run) -> None:
    """--version says which version it is."""
    assert run("--version").out == f"commlens {commlens.__version__}\n"


def test_the_module_is_the_program() -> None:
    """``python -m commlens`` is the same program, and its exit code is that of the process."""
    done = subprocess.run(
        [sys.executable, "-m", "commlens", "explain", "{{0"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("commlens: error: SPEC:1:")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param([], "Missing command (see commlens --help)", id="nothing"),
        pytest.param(["frobnicate"], "No such command 'frobnicate'", id="unknown-command"),
        pytest.param(["report"], "Missing argument 'FILE...' (see commlens report --help)", id="no-file"),
        pytest.param(["report", STEP, "--colour"], "No such option", id="unknown-option"),
        pytest.param(["report", STEP, "--format", "xml"], "'xml' is not one of", id="unknown-format"),
        pytest.param(["report", STEP, "--replicas", "0"], "--replicas", id="no-replica"),
        pytest.param(["report", STEP, "--stage", "during"], "--stage", id="unknown-stage"),
        pytest.param(["report", STEP, "--max-bytes", "many"], "expected bytes such as", id="no-bytes"),
        pytest.param(["report", STEP, "--mesh", "model"], "expected axes such as data=2,model=4", id="no-mesh"),
        pytest.param(["report", STEP, "--mesh", "a=2,a=2"], "duplicate axis names", id="axis-twice"),
        pytest.param(["explain", "{{0}}", "--mode", "kSome"], "expected a group mode", id="unknown-mode"),
        pytest.param(["report", STEP, "-o", "."], "is a directory", id="output-is-a-folder"),
        pytest.param(["report", "\x1b[31m\n"], "\\x1b[31m", id="hostile-name"),
    ],
)
def test_a_wrong_command_line_is_one_line(run: Run, arguments: list[str], says: str) -> None:
    """Faults of the command line end with 2, one line on standard error and nothing on standard output."""
    assert says in run(*arguments).error


def failing(error: BaseException) -> Callable[..., Iterator[object]]:
    """Return a stand-in for the loading of files that fails."""

    def load_inputs(*_arguments: object, **_options: object) -> Iterator[object]:
        raise error

    return load_inputs


@pytest.mark.parametrize(
    ("error", "says"),
    [
        pytest.param(CommlensError("expected this, found that"), "expected this, found that", id="ours"),
        pytest.param(OSError(28, "No space left on device", "x"), "x: no space left on device", id="system"),
        pytest.param(MemoryError(), "not enough memory", id="memory"),
        pytest.param(
            ZeroDivisionError("a\nb\x1b"),
            "this is a fault of commlens, please report it: ZeroDivisionError: a b\\x1b (COMMLENS_DEBUG=1 shows where)",
            id="a-bug",
        ),
    ],
)
def test_errors_become_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, says: str) -> None:
    """Whatever goes wrong inside, the user gets one printable line and no traceback."""
    monkeypatch.setattr("commlens.hlo.load_inputs", failing(error))
    assert says in run("report", STEP).error


def test_a_bug_shows_where_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """With COMMLENS_DEBUG the last resort lets the traceback through."""
    monkeypatch.setattr("commlens.hlo.load_inputs", failing(ZeroDivisionError()))
    monkeypatch.setenv("COMMLENS_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["report", STEP])


def test_interruption(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends with 130 and no words."""
    monkeypatch.setattr("commlens.hlo.load_inputs", failing(KeyboardInterrupt()))
    outcome = run("report", STEP)
    assert (outcome.code, outcome.out, outcome.err.strip()) == (130, "", "")


def test_a_reader_that_goes_away_is_no_fault() -> None:
    """Output into a pipe that nobody reads any more ends quietly."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "commlens", "report", f"{HERE}/{STEP}", "--format", "json"],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if not line.startswith("commlens: warning: ")] == []
