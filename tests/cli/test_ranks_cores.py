"""``commlens ranks`` about a module: options that need one, what the simulator refuses, and why cells are unknown."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from commlens.neuron import rank_layout

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import Run

FOUR = ("--world", "4", "--tp", "2")
ENTRY = "HloModule step{counts}\nENTRY e {{\n  p = f32[8] parameter(0)\n  t = token[] after-all()\n{body}}}\n"
PERMUTE = "  c = f32[8] collective-permute(p), source_target_pairs={{0,1}}, replica_groups={{0,1}}\n"
REDUCE = "  r = f32[8] all-reduce(p), replica_groups={{0,1},{2,3}}, to_apply=add\n"
SEND = "  s = (f32[8], u32[], token[]) send(p, t), channel_id=1\n"
HOST = "  h = (f32[8], u32[], token[]) send(p, t), channel_id=2, is_host_transfer=true\n"


def written(folder: Path, body: str, counts: str = ", replica_count=4") -> str:
    """Write a module, and return its path."""
    file = folder / "step.hlo"
    file.write_text(ENTRY.format(counts=counts, body=body))
    return str(file)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--cores"], "--cores, which is"),
        (["--simulated"], "--simulated, which is"),
        (["--mesh", "data=2,model=2"], "--mesh, which is"),
        (["--replicas", "4"], "--replicas, which is"),
        (["--partitions", "4"], "--partitions, which is"),
        (["--partitions", "4", "--replicas", "1", "--cores"], "--cores, --replicas, --partitions, which are"),
    ],
)
def test_options_that_are_about_a_module(run: Run, options: list[str], named: str) -> None:
    """Without a module they would say nothing; they are refused instead of being passed over."""
    error = run("ranks", *FOUR, *options).error
    assert error == f"expected --against FILE with {named} about a module (see commlens ranks --help)"


def test_what_the_simulator_refuses(run: Run, tmp_path: Path) -> None:
    """It is said of the cores, and ends the run where that is asked for, with the place and the simulator's words."""
    file = written(tmp_path, REDUCE + PERMUTE)
    words = "Permute should not contain replica_groups: expected source-target pairs alone, found 1 group"
    shown = " ".join(run("ranks", *FOUR, "--against", file, "--cores").out.split())
    assert f"c: the simulator would refuse it: {words}." in shown
    assert run("ranks", *FOUR, "--against", file, "--simulated").error == f"{file}:6: collective-permute c: {words}"
    fine = written(tmp_path, REDUCE)
    assert run("ranks", *FOUR, "--against", fine, "--simulated").out == run("ranks", *FOUR, "--against", fine).out


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_unknown_cells_have_their_reasons(run: Run, tmp_path: Path, form: str) -> None:
    """Every collective whose cells are unknown is named with the reason, once."""
    file = written(tmp_path, REDUCE + SEND + HOST)
    out = run("ranks", *FOUR, "--against", file, "--cores", "--format", form, columns=200).out
    reasons = [line for line in out.splitlines() if line.startswith(("s: ", "h: "))]
    assert reasons == ["s: the instruction does not state its source-target pairs.", "h: the peer is the host."]


def test_cells_that_lack_counts_alone_have_their_reason(run: Run, tmp_path: Path) -> None:
    """Pairs without counts have no cores, though the comparison above may tell what they are."""
    file = written(tmp_path, PERMUTE.replace(", replica_groups={{0,1}}", ""), counts="")
    out = " ".join(run("ranks", *FOUR, "--against", file, "--cores").out.split())
    assert "c: nobody states how many replicas and partitions there are" in out


def test_groups_of_many_are_shown_by_their_ends(run: Run, tmp_path: Path) -> None:
    """A cell names the first and last peers; JSON has them all."""
    file = written(tmp_path, "  r = f32[8] all-reduce(p), replica_groups={}, to_apply=add\n", ", replica_count=64")
    arguments = ("ranks", "--world", "64", "--tp", "2", "--against", file, "--cores")
    line = next(line for line in run(*arguments, columns=200).out.splitlines() if line.startswith("   0     0"))
    assert line.split() == ["0", "0", *map(str, range(1, 9)), "...", *map(str, range(56, 64))]
    [found] = json.loads(run(*arguments, "--format", "json").out)["cores"]
    assert found["cores"][0]["peers"][0]["peers"] == list(range(1, 64))


@pytest.mark.parametrize(("world", "tp", "pp"), [(64, 4, 2), (16, 2, 2), (8, 1, 1), (1 << 17, 2, 4)])
def test_csv_of_the_groups(run: Run, world: int, tp: int, pp: int) -> None:
    """A line for each group of each family, however many there are, as any reader of CSV takes it apart."""
    options = ("--world", str(world), "--tp", str(tp), "--pp", str(pp))
    heading, *rows = csv.reader(io.StringIO(run("ranks", *options, "--format", "csv").out))
    layout = rank_layout(world, tp, pp=pp)
    assert heading == ["layout", "group", "ranks"]
    expected = (
        [name, str(number), ",".join(map(str, group))]
        for name, groups in layout.groups.items()
        for number, group in enumerate(groups.to_array().tolist())
    )
    assert rows == list(expected)


def test_a_rank_that_keeps_its_data(run: Run, tmp_path: Path) -> None:
    """A pair of a rank with itself is shown as that, and told in JSON."""
    file = written(tmp_path, "  c = f32[8] collective-permute(p), source_target_pairs={{0,2},{1,1}}\n")
    arguments = ("ranks", *FOUR, "--against", file, "--cores")
    rows = [line.split() for line in run(*arguments).out.splitlines()[-4:]]
    assert rows == [["0", "0", "to", "2"], ["1", "1", "itself"], ["2", "2", "from", "0"], ["3", "3", "not", "in", "it"]]
    [found] = json.loads(run(*arguments, "--format", "json").out)["cores"]
    assert found["cores"][1]["peers"] == [{"peers": [], "position": None, "sends_to": [1], "receives_from": [1]}]
