"""``commlens neff`` of a folder: what the forms of the answer say of a cache."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from neff_files import definition, neff

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import Run

TP = [[0, 1, 2, 3], [4, 5, 6, 7]]
ENTRY = "MODULE_07c6ee519ad94eb45d54+d41d8cd9"
COMPILER = "neuronxcc-2.14.213.0+013d129b"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """Return the current folder, empty; taken after ``run``, which goes elsewhere."""
    assert run is not None
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_entry(place: Path, **files: bytes) -> None:
    """Write an entry whose files bear names with two low lines for a dot."""
    entry = place / ENTRY
    entry.mkdir(parents=True)
    for name, content in {"model__done": b"", **files}.items():
        (entry / name.replace("__", ".")).write_bytes(content)


def test_rows_of_several_hosts(run: Run, folder: Path) -> None:
    """Where entries stand in several folders, each row and each problem says in which."""
    for host in ("host0", "host1"):
        write_entry(folder / "cache" / host / COMPILER)
    heading, *rows = [line for line in run("neff", "cache", columns=400).out.splitlines() if "  " in line.strip()]
    assert heading.split()[:2] == ["folder", "entry"]
    assert [row.split()[0] for row in rows] == [f"host0/{COMPILER}", f"host1/{COMPILER}"]
    markdown = run("neff", "cache", "--format", "markdown").out
    assert "| folder | entry | module |" in markdown
    assert f"\n`host1/{COMPILER}/{ENTRY}`: there is no model.hlo\\_module.pb\n" in markdown


def test_rows_of_one_host(run: Run, folder: Path) -> None:
    """One folder needs no column."""
    write_entry(folder / "cache" / COMPILER)
    assert "folder" not in run("neff", "cache", columns=400).out
    assert f"\n`{ENTRY}`: there is no model.hlo" in run("neff", "cache", "--format", "markdown").out


def test_problems_name_the_file_in_the_entry(run: Run, folder: Path) -> None:
    """The row says where the entry is; a problem of it says only which file."""
    write_entry(folder / "cache", model__neff=neff(b"{]"), model__hlo_module__pb=b"HloModule m\nENTRY e {\n")
    [entry] = json.loads(run("neff", "cache", "--format", "json").out)["entries"]
    told = {problem["kind"]: problem["what"] for problem in entry["problems"]}
    assert told["neff"].startswith("model.neff: sg00/def.json:1:2: expected a JSON object")
    assert "cache" not in " ".join(told.values())
    (folder / "cache" / ENTRY / "model.neff").write_bytes(b"x")
    (folder / "cache" / ENTRY / "model.hlo_module.pb").write_bytes(b"x")
    [entry] = json.loads(run("neff", "cache", "--format", "json").out)["entries"]
    told = {problem["kind"]: problem["what"] for problem in entry["problems"]}
    assert told["neff"].startswith("model.neff: Invalid number of NEFF bytes")
    assert told["module"].startswith("model.hlo_module.pb:1:1: expected HLO text")


def test_json_of_entries(run: Run, folder: Path) -> None:
    """An entry says of workers what a program alone says."""
    write_entry(folder / "cache", model__neff=neff(definition(replica_groups=[TP])))
    [entry] = json.loads(run("neff", "cache", "--format", "json").out)["entries"]
    assert (entry["world_size"], entry["topologies"]) == (4, [{"num_groups": 2, "group_size": 4}])
    assert (entry["has_cc"], entry["complete"]) == (True, True)
    (folder / "cache" / ENTRY / "model.neff").write_bytes(b"x")
    [entry] = json.loads(run("neff", "cache", "--format", "json").out)["entries"]
    assert [entry[key] for key in ("world_size", "topologies", "has_cc", "complete")] == [None] * 4


def test_json_of_subgraphs(run: Run, folder: Path) -> None:
    """A subgraph that says nothing of workers says so."""
    (folder / "x").write_bytes(
        neff({"sg00/def.json": definition(replica_groups=[TP], rank_world_size=8), "sg01/def.json": definition()})
    )
    assert json.loads(run("neff", "x", "--format", "json").out)["subgraphs"] == [
        {
            "name": "sg00",
            "member": "sg00/def.json",
            "replica_groups": [TP],
            "src_target_pairs": None,
            "rank_world_size": 8,
        },
        {
            "name": "sg01",
            "member": "sg01/def.json",
            "replica_groups": None,
            "src_target_pairs": None,
            "rank_world_size": None,
        },
    ]
