"""``commlens explain``."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commlens.analysis import explain

if TYPE_CHECKING:
    from command_line import Run

HERE = Path(__file__).parent

ITALIC = "[4,2]<=[2,4]T(1,0)"
HUGE = "[1048576,1048576]<=[1048576,1048576]T(1,0)"
REFERENCE_MESH = ("--mesh", "data=2,model=4")

GOLDEN = {
    "explain-iota.txt": [ITALIC, *REFERENCE_MESH],
    "explain-list.txt": ["{{0,1},{1,3,5}}"],
    "explain-mesh-axes.txt": ["mesh['a'=2,'b'=2,'c'=4] {'a','c':(1)2}"],
    "explain-cross-replica.txt": ["{{0,1}}", "--mode", "cross_replica", "--replicas", "2", "--partitions", "2"],
    "explain-empty.txt": ["{}", "--mode", "kCrossPartition", "--replicas", "2", "--partitions", "4"],
    "explain-huge.txt": [HUGE],
}
"""Expected output -> arguments."""


@pytest.mark.parametrize("name", GOLDEN)
def test_the_explanation_as_it_looks(run: Run, name: str) -> None:
    """The whole explanation: sentence, picture, groups, spellings, digits."""
    outcome = run("explain", *GOLDEN[name])
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (HERE / "golden" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("spec", [ITALIC, "{{0,1},{2,3}}", "{{0,0},{-1}}", "{}", "mesh['a'=2,'b'=2] {'a'}", HUGE])
def test_json_is_what_the_library_says(run: Run, spec: str) -> None:
    """The JSON form is the explanation's keys after the schema."""
    answer = json.loads(run("explain", spec, "--format", "json").out)
    assert answer.pop("schema") == "commlens.explain/1"
    assert answer == json.loads(json.dumps(explain(spec).as_dict()))


def test_contract_keys(run: Run) -> None:
    """Every key that programs rely on is there."""
    options = ("--mode", "kFlattenedID", "--devices", "16")
    answer = json.loads(run("explain", ITALIC, *REFERENCE_MESH, *options, "--format", "json").out)
    assert answer["form"] == "iota"
    assert (answer["num_replica_groups"], answer["num_devices_per_group"]) == (4, 2)
    assert answer["groups"] == answer["participants"] == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert answer["list"] == "{{0,4},{1,5},{2,6},{3,7}}"
    assert answer["iota"] == ITALIC
    assert answer["mesh_axes"] == "mesh['data'=2,'model'=4] {'data'}"
    assert answer["axes"] == ["data"]
    assert answer["is_partition"] is False


def test_csv_and_markdown(run: Run) -> None:
    """The other forms hold the same keys."""
    (row,) = csv.DictReader(io.StringIO(run("explain", ITALIC, "--format", "csv").out, newline=""))
    assert (row["iota"], row["groups"], row["axes"]) == (ITALIC, "{{0,4},{1,5},{2,6},{3,7}}", "")
    markdown = run("explain", ITALIC, "--format", "markdown").out
    assert f"| iota | `{ITALIC}` |\n" in markdown
    assert markdown.startswith("| key | value |\n")


def test_the_mesh_may_stand_in_a_file(run: Run, tmp_path: Path) -> None:
    """--mesh takes a JSON file; its faults name their place in it."""
    file = tmp_path / "mesh.json"
    file.write_text('{"axes": {"data": 2, "model": 4}, "device_ids": null}')
    answer = json.loads(run("explain", ITALIC, "--mesh", str(file), "--format", "json").out)
    assert answer["axes"] == ["data"]
    file.write_text('{"axes": {"data": 2,}}')
    assert run("explain", ITALIC, "--mesh", str(file)).error.startswith(f"{file}:1:")


@pytest.mark.parametrize(
    ("spec", "column"),
    [("[4,2]<=[2,4]T(1,1)", None), ("{{0,1}", 7), ("", 1), ("[2,4]<=[8", 10), ("{{0,99999999999999999999}}", None)],
)
def test_a_broken_spec_is_pointed_at(run: Run, spec: str, column: int | None) -> None:
    """Faults of the spec carry its line and column."""
    error = run("explain", spec).error
    assert error.startswith("SPEC:1:" if column is None else f"SPEC:1:{column}: ")


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
@pytest.mark.parametrize("spec", [HUGE, "[100000,100000]<=[10000000000]", "mesh['a'=1048576,'b'=1048576] {'b'}"])
def test_huge_lists_are_never_written_out(run: Run, spec: str, form: str) -> None:
    """A list of 2^40 devices is explained without listing them."""
    run("explain", "[2,2]<=[4]", "--format", form)  # whatever is loaded at first use
    tracemalloc.start()
    outcome = run("explain", spec, "--format", form)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert outcome.code == 0
    assert len(outcome.out) < 10_000
    assert peak < 5_000_000


def test_a_wide_mesh_is_folded(run: Run) -> None:
    """A line of devices that is too long for the terminal is drawn as several."""
    out = run("explain", "[4,16]<=[64]", "--mesh", "data=4,model=16").out
    assert "model 8 │" in out
    assert max(map(len, (line for line in out.splitlines() if "│" in line))) <= 80


def test_many_devices_have_no_picture(run: Run) -> None:
    """From some number on a picture helps nobody."""
    out = run("explain", "[64,64]<=[4096]").out
    assert "│" not in out
    assert "... and 60 more groups" in out


def test_groups_that_are_not_written_are_not_said_to_miss_the_axes(run: Run) -> None:
    """The empty list lies along axes as soon as it is told who takes part; until then that is what is missing."""
    unsaid = run("explain", "{}", "--mesh", "a=4").out
    assert "axes         ? (no groups are written: --mode, --replicas and --partitions tell who takes part)" in unsaid
    assert "as mesh axes" not in unsaid
    said = run("explain", "{}", "--mesh", "a=4", "--mode", "cross_replica", "--replicas", "4").out
    assert "axes         a\n" in said
    assert "as mesh axes" not in said
