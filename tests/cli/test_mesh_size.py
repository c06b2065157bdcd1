"""A mesh for another number of devices than the module: every command says so, in the same words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commlens import load, report

if TYPE_CHECKING:
    from command_line import Run

MODULE = """HloModule m{counts}
ENTRY e {{
  p = f32[16] parameter(0)
  ROOT g = f32[64] all-gather(p), channel_id=1, replica_groups=[2,4]<=[8], dimensions={{0}}, use_global_device_ids=true
}}
"""
FAULT = "expected a mesh of the program's 8 devices, found mesh['data'=2,'model'={}] of {}"

COMMANDS = {
    "diff": ("diff", "m.hlo", "same.hlo"),
    "explain-log": ("explain-log", "log", "m.hlo"),
    "hosts": ("hosts", "m.hlo", "same.hlo"),
    "ranks": ("ranks", "--world", "8", "--tp", "4", "--local-world-size", "8", "--against", "m.hlo"),
    "report": ("report", "m.hlo"),
}


@pytest.fixture(autouse=True)
def folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with the module of 8 devices, twice, one that states no counts, and a log."""
    monkeypatch.chdir(tmp_path)
    for name, counts in (("m", ", num_partitions=8"), ("same", ", num_partitions=8"), ("silent", "")):
        Path(f"{name}.hlo").write_text(MODULE.format(counts=counts))
    Path("log").write_text("g took long\n")
    return tmp_path


@pytest.mark.parametrize("model", [2, 8])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_warns(run: Run, command: str, model: int) -> None:
    """A smaller and a larger mesh are said in a warning for each module, and the answer comes all the same."""
    outcome = run(*COMMANDS[command], "--mesh", f"data=2,model={model}")
    fault = FAULT.format(model, 2 * model)
    names = [name for name in COMMANDS[command] if name.endswith(".hlo")]
    assert outcome.err.splitlines() == [f"commlens: warning: {name}: {fault}" for name in names]
    assert outcome.code == 0
    assert outcome.out


def test_check_finds_it(run: Run) -> None:
    """The finding has the same words; it is no warning beside."""
    outcome = run("check", "m.hlo", "--mesh", "data=2,model=2", "--format", "json")
    assert [found["message"] for found in json.loads(outcome.out)["findings"]] == [FAULT.format(2, 4)]
    assert outcome.err == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_mesh_that_fits_is_no_matter(run: Run, command: str) -> None:
    """Nothing is said of a mesh of as many devices."""
    assert run(*COMMANDS[command], "--mesh", "data=2,model=4").err == ""


def test_nobody_knows_how_many_devices(run: Run) -> None:
    """A module that states no counts may run on those of the mesh; options state them as well."""
    assert run("report", "silent.hlo", "--mesh", "data=2,model=2").err == ""
    stated = run("report", "silent.hlo", "--mesh", "data=2,model=2", "--partitions", "8")
    assert FAULT.format(2, 4) in stated.err


def test_the_answer_has_the_reason(run: Run) -> None:
    """The axes are null; JSON and the table say why, instead of that groups lie along no axes."""
    arguments = ("report", "m.hlo", "--mesh", "data=2,model=2")
    (module,) = json.loads(run(*arguments, "--format", "json").out)["modules"]
    assert module["collectives"][0]["axes"] is None
    assert module["notes"] == [FAULT.format(2, 4)]
    assert f"axes ?: {FAULT.format(2, 4)}." in " ".join(run(*arguments).out.split())


def test_reports_have_the_note() -> None:
    """So has the library's report; there is none where the mesh fits."""
    module = load("m.hlo")
    assert report(module, "data=2,model=2").notes == (FAULT.format(2, 4),)
    assert report(module, "data=2,model=4").notes == ()
