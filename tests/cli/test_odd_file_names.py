"""Files whose names are no text: bytes that are no UTF-8, which Python keeps as lone surrogates."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from command_line import Run

ODD = os.fsdecode(b"\xff.hlo")
SHOWN = "\\udcff.hlo"

MODULE = """HloModule m, replica_count=4

add {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}}

ENTRY e {{
  p = f32[16] parameter(0)
  ROOT r = f32[16] all-reduce(p), channel_id=1, replica_groups={groups}, to_apply=add
}}
"""

COMMANDS = {
    "check": ("check", ODD),
    "diff": ("diff", "plain.hlo", ODD),
    "explain-log": ("explain-log", os.fsdecode(b"\xff.log"), ODD),
    "hosts": ("hosts", "plain.hlo", ODD),
    "neff": ("neff", ODD),
    "opt": ("opt", ODD, "--pipeline", "neuron", "-o", os.fsdecode(b"new\xff.hlo")),
    "ranks": ("ranks", "--world", "32", "--tp", "4", "--against", ODD),
    "report": ("report", ODD),
}


@pytest.fixture(autouse=True)
def folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with such a module, one that differs, and a log."""
    monkeypatch.chdir(tmp_path)
    Path(ODD).write_text(MODULE.format(groups="{{0,1},{2,2}}"))
    Path("plain.hlo").write_text(MODULE.format(groups="{{0,1},{2,3}}"))
    Path(os.fsdecode(b"\xff.log")).write_text("r took long\n")
    return tmp_path


def texts_in(value: object) -> list[str]:
    """Return every text in a JSON value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in texts_in(part)]
    return [text for item in value for text in texts_in(item)] if isinstance(value, list) else []


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_them(run: Run, command: str, form: str) -> None:
    """Strict UTF-8 holds the answer and the warnings, in which escapes stand for what is no text."""
    outcome = run(*COMMANDS[command], "--format", form)
    assert outcome.code in (0, 1)
    assert outcome.out.encode()
    assert all(line.startswith("commlens: warning: ") for line in outcome.err.splitlines())


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "opt"])
def test_json_gives_the_name_back(run: Run, command: str) -> None:
    """The answer is ASCII, and reads back as the name with which Python opens the file."""
    answer = run(*COMMANDS[command], "--format", "json").out
    assert answer.isascii()
    assert ODD in texts_in(json.loads(answer))


def test_json_names_the_file_that_was_written(run: Run) -> None:
    """The product bears its odd name, in the folder and in the answer."""
    answer = json.loads(run(*COMMANDS["opt"], "--format", "json").out)
    assert answer["module"] == os.fsdecode(b"new\xff.hlo")
    assert Path(answer["module"]).read_text().startswith("HloModule m")


def test_csv_has_an_escape(run: Run) -> None:
    """A cell is text that every reader takes."""
    _, row = csv.reader(io.StringIO(run("report", ODD, "--format", "csv").out))
    assert row[0] == SHOWN


def test_code_scanning_finds_the_file(run: Run) -> None:
    """SARIF has the bytes in a URI, GitHub's form the escape."""
    log = json.loads(run("check", ODD, "--format", "sarif").out)
    places = [result["locations"][0]["physicalLocation"] for result in log["runs"][0]["results"]]
    assert {place["artifactLocation"]["uri"] for place in places} == {"%FF.hlo"}
    assert run("check", ODD, "--format", "github").out.startswith(f"::error file={SHOWN},line=11,")


@pytest.mark.parametrize("option", [("--mesh",), ("--config",), ("--baseline",)])
def test_errors_name_the_file(run: Run, option: tuple[str, ...]) -> None:
    """One printable line says what is wrong with a file of such a name, whatever it is for."""
    odd = os.fsdecode(b"\xff.json")
    Path(odd).write_text("{")
    assert run("check", ODD, *option, odd).error.startswith("\\udcff.json:1:")


def test_an_answer_in_such_a_file(run: Run) -> None:
    """-o takes the name as it is."""
    target = os.fsdecode(b"answer\xff.json")
    assert run("report", ODD, "--format", "json", "-o", target).out == ""
    assert json.loads(Path(target).read_bytes())["modules"][0]["path"] == ODD
