"""``commlens ranks``."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commlens.neuron import rank_layout

if TYPE_CHECKING:
    from command_line import Run

HERE = Path(__file__).parent

SIXTEEN = ("--world", "16", "--tp", "2", "--pp", "2", "--ep", "2")
EIGHT = ("--world", "8", "--tp", "2", "--pp", "2")

PIPELINE = """HloModule step{counts}
add {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}}
ENTRY e {{
  p = f32[8] parameter(0)
  gather = f32[16] all-gather(p), replica_groups={{{{0,1}},{{2,3}},{{4,5}},{{6,7}}}}, dimensions={{0}}
  turned = f32[16] all-gather(p), replica_groups={{{{6,7}},{{3,2}},{{1,0}},{{4,5}}}}, dimensions={{0}}
  grads = f32[8] all-reduce(p), replica_groups=[4,2]<=[2,2,2]T(0,2,1), to_apply=add
  first = f32[8] all-reduce(p), replica_groups={{{{0,2}}}}, to_apply=add
  odd = f32[4] reduce-scatter(p), replica_groups={{{{0,7}},{{1,6}},{{2,5}},{{3,4}}}}, dimensions={{0}}, to_apply=add
  loss = f32[8] all-reduce(p), replica_groups={{}}, to_apply=add
  ROOT stage = f32[8] collective-permute(p), source_target_pairs={{{{0,4}},{{1,5}},{{2,6}},{{3,7}}}}
}}
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    """Write a module of eight ranks: tp 2, dp 2, pp 2."""
    file = tmp_path / "step.hlo"
    file.write_text(PIPELINE.format(counts=", replica_count=8"))
    return str(file)


def answer(run: Run, *arguments: str) -> dict[str, Any]:
    """Run the command for JSON."""
    outcome = run("ranks", *arguments, "--format", "json")
    assert (outcome.code, outcome.err) == (0, "")
    return json.loads(outcome.out)


# --- layouts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("ranks.txt", SIXTEEN),
        ("ranks-logic2.txt", ("--world", "128", "--tp", "32", "--hardware", "trn2", "--pp", "2")),
        ("ranks-tp4.txt", ("--world", "64", "--tp", "4", "--hardware", "trn2", "--kv", "2")),
    ],
)
def test_the_groups_as_they_look(run: Run, name: str, arguments: tuple[str, ...]) -> None:
    """The whole table: what the job is, a line for each family, what is odd."""
    outcome = run("ranks", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (HERE / "golden" / name).read_text(encoding="utf-8")


def test_contract_keys(run: Run) -> None:
    """Every key that programs rely on is there."""
    found = answer(run, *SIXTEEN)
    assert found["schema"] == "commlens.ranks/1"
    assert (found["world"], found["degrees"]) == (16, {"tp": 2, "pp": 2, "dp": 4, "ep": 2})
    assert (found["logic"], found["local_world_size"], found["against"]) == ("LOGIC1", 32, [])
    assert found["groups"]["ep_model"] == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9, 11], [12, 14], [13, 15]]
    assert found["groups"]["pp"][0] == found["groups"]["pp_send_recv"][0] == [0, 8]
    assert found["iota"]["dp"] == "[4,4]<=[2,4,2]T(0,2,1)"
    assert found["iota"]["pp_send_recv_odd"] is None
    assert list(found["iota"]) == list(found["groups"])


def test_keys_that_are_asked_for(run: Run) -> None:
    """kv, cp and token shuffle groups stand there when they are asked for."""
    found = answer(run, "--world", "8", "--tp", "8", "--kv", "2", "--cp", "4", "--token-shuffle", "1")
    assert found["groups"]["kv"] == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert found["groups"]["cp_tp"] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert found["groups"]["cp"] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert found["groups"]["token_shuffle"] == [[0], [1], [2], [3], [4], [5], [6], [7]]
    assert "pp_send_recv" not in found["groups"]
    neighbours = answer(run, "--world", "8", "--tp", "8", "--kv", "2", "--kv-sequential")
    assert neighbours["groups"]["kv"] == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize(
    ("options", "logic", "lnc", "local"),
    [
        ((), "LOGIC1", 1, 32),
        (("--hardware", "trn2"), "LOGIC2", 2, 64),
        (("--hardware", "trn2", "--lnc", "1"), "LOGIC1", 1, 128),
        (("--local-world-size", "16"), "LOGIC1", 1, 16),
    ],
)
def test_hardware_and_nodes(run: Run, options: tuple[str, ...], logic: str, lnc: int, local: int) -> None:
    """Hardware and LNC choose the layout and the ranks of a node."""
    found = answer(run, "--world", "64", "--tp", "32", *options)
    assert (found["logic"], found["lnc"], found["local_world_size"]) == (logic, lnc, local)


def test_json_is_what_the_library_says(run: Run) -> None:
    """Groups are streamed in pieces and come out whole."""
    found = answer(run, "--world", "98304", "--tp", "6", "--pp", "2", "--ep", "4")
    layout = rank_layout(98304, 6, pp=2, ep=4)
    assert found["groups"] == {name: groups.groups() for name, groups in layout.groups.items()}
    assert found["iota"] == layout.iota


def test_csv_and_markdown(run: Run) -> None:
    """CSV has a line for each group, Markdown the table."""
    out = run("ranks", *EIGHT, "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(out, newline="")))
    assert rows[4] == {"layout": "dp", "group": "0", "ranks": "0,2"}
    assert len([row for row in rows if row["layout"] == "tp"]) == 4
    out = run("ranks", *EIGHT, "--format", "markdown").out
    assert "| dp | 4 | 2 | `[4,2]<=[2,2,2]T(0,2,1)` | `{0,2},{1,3},{4,6},{5,7}` |\n" in out


@pytest.mark.parametrize("form", ["table", "markdown"])
@pytest.mark.parametrize("more", [(), ("--hardware", "trn2")])
def test_a_million_ranks_do_not_fill_the_screen(run: Run, form: str, more: tuple[str, ...]) -> None:
    """Tables show the beginning of large worlds."""
    run("ranks", *EIGHT, "--format", form)  # whatever is loaded at first use
    tracemalloc.start()
    outcome = run("ranks", "--world", "1048576", "--tp", "32", "--pp", "8", *more, "--format", form)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert outcome.code == 0
    assert len(outcome.out) < 3000
    assert peak < 250 << 20


# --- against a module ------------------------------------------------------------------------------------------------


def test_which_collective_is_which(run: Run, module: str) -> None:
    """Each row names the layouts whose groups it has, however they are written."""
    found = answer(run, *EIGHT, "--mesh", "pp=2,dp=2,tp=2", "--against", module)["against"]
    assert [(each["name"], each["axes"], each["matches"]) for each in found] == [
        ("gather", ["tp"], ["tp"]),
        ("turned", None, ["tp"]),
        ("grads", ["dp"], ["dp", "ep_data"]),
        ("first", None, []),
        ("odd", None, []),
        ("loss", ["pp", "dp", "tp"], []),
        ("stage", ["pp"], ["pp", "pp_send_recv", "pp_send_recv_odd"]),
    ]
    assert {each["name"]: each["in_order"] for each in found}["turned"] == []
    assert {each["name"]: each["first_group_only"] for each in found}["first"] == ["dp", "ep_data"]
    assert {each["path"] for each in found} == {module}


def test_the_comparison_as_it_looks(run: Run, module: str) -> None:
    """Rows that say the same are shown as one; another order and a first group alone are named as such."""
    lines = run("ranks", *EIGHT, "--against", module, columns=120).out.splitlines()
    shown = [line.split("  ") for line in lines[lines.index(f"step  {module}") + 1 :]]
    assert [[cell.strip() for cell in line if cell.strip()] for line in shown] == [
        ["rows", "opcode", "layout", "axes", "where"],
        ["1", "all-gather", "tp", "?", "gather line 9"],
        ["1", "all-gather", "tp (other order)", "?", "turned line 10"],
        ["1", "all-reduce", "dp, ep_data", "?", "grads line 11"],
        ["1", "all-reduce", "only the first of dp, ep_data", "?", "first line 12"],
        ["1", "reduce-scatter", "none", "?", "odd line 13"],
        ["1", "all-reduce", "none", "?", "loss line 14"],
        ["1", "collective-permute", "pp, pp_send_recv, pp_send_recv_odd", "?", "stage line 15"],
    ]


def test_a_real_pattern_of_pipeline_stages(run: Run, tmp_path: Path) -> None:
    """The groups in which neuronx-distributed sends between stages, as a published module has them."""
    file = tmp_path / "stages.hlo"
    even = ",".join(f"{{{rank},{rank + 8}}},{{{rank + 16},{rank + 24}}}" for rank in range(8))
    odd = ",".join(f"{{{rank + 8},{rank + 16}}},{{{rank + 24},{rank}}}" for rank in range(8))
    file.write_text(
        "HloModule m\nENTRY e {\n  p = f32[1] parameter(0)\n"
        f"  a = f32[2] all-gather(p), replica_groups={{{odd}}}, dimensions={{0}}\n"
        f"  ROOT b = f32[2] all-gather(p), replica_groups={{{even}}}, dimensions={{0}}\n}}\n"
    )
    found = answer(run, "--world", "32", "--tp", "8", "--pp", "4", "--against", str(file))
    assert [each["matches"] for each in found["against"]] == [["pp_send_recv_odd"], ["pp_send_recv"]]
    assert [each["in_order"] for each in found["against"]] == [["pp_send_recv_odd"], ["pp_send_recv"]]


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("file", "degrees", "expected"),
    [
        (
            "public/20_neuron_linear_tp4_pp8.hlo",
            ("--world", "32", "--tp", "8", "--pp", "4"),
            ["", *["pp_send_recv_odd"] * 3, *["pp_send_recv"] * 3, "dp,ep_model,ep_data", "tp", "pp"],
        ),
        ("public/22_neuron_bert_dp_tp_fwdbwd.hlo.gz", ("--world", "2", "--tp", "2"), ["tp"] * 4),
    ],
)
def test_published_modules_have_these_groups(
    run: Run, corpus: Path, file: str, degrees: tuple[str, ...], expected: list[str]
) -> None:
    """Modules that neuronx-distributed made have the groups that the formulas give, members in the same order."""
    found = answer(run, *degrees, "--against", str(corpus / file))["against"]
    names = [",".join(each["matches"]) for each in found]
    assert sorted(names) == sorted(expected)
    assert [each["in_order"] for each in found if each["matches"]] == [
        each["matches"] for each in found if each["matches"]
    ]


def test_what_cannot_be_told(run: Run, tmp_path: Path) -> None:
    """Without counts empty groups are unknown, and the table says why; counts may be given."""
    file = tmp_path / "m.hlo"
    file.write_text(PIPELINE.format(counts=""))
    outcome = run("ranks", *EIGHT, "--against", str(file))
    assert (outcome.code, outcome.err) == (0, "")
    assert "loss: nobody states how many replicas and partitions there are" in outcome.out
    assert "nobody states" not in run("ranks", *EIGHT, "--against", str(file), "--replicas", "8").out


def test_a_module_for_other_devices_is_warned_of(run: Run, module: str) -> None:
    """Groups of another world match nothing; a warning says why."""
    outcome = run("ranks", *SIXTEEN, "--against", module)
    assert outcome.code == 0
    assert outcome.err == f"commlens: warning: {module}: the module runs on 8 devices, the layout has 16 ranks\n"


def test_a_mesh_for_other_devices_is_warned_of(run: Run, tmp_path: Path) -> None:
    """Where a module states no counts, it is the mesh that says that it is for another number of devices."""
    file = tmp_path / "m.hlo"
    file.write_text(PIPELINE.format(counts=""))
    outcome = run("ranks", *EIGHT, "--mesh", "a=2,b=2", "--against", str(file))
    assert outcome.code == 0
    assert outcome.err == f"commlens: warning: {file}: the mesh has 4 devices, the layout has 8 ranks\n"
    assert run("ranks", *EIGHT, "--mesh", "a=2,b=4", "--against", str(file)).err == ""


def test_what_could_not_be_read_is_warned_of(run: Run, tmp_path: Path) -> None:
    """A module of which a part is unread is compared as far as it goes."""
    file = tmp_path / "m.hlo"
    broken = "  bad = f32[16] all-gather(p), replica_groups={{0,1}, dimensions={0}\n"
    file.write_text(PIPELINE.format(counts=", replica_count=8").replace("  ROOT stage", broken + "  ROOT stage"))
    outcome = run("ranks", *EIGHT, "--against", str(file))
    assert outcome.code == 0
    assert "1 that may communicate could not be read (see commlens report)" in outcome.err
    [warning] = json.loads(run("ranks", *EIGHT, "--against", str(file), "--format", "json").out)["warnings"]
    assert outcome.err == f"commlens: warning: {warning}\n"


def test_matches_as_csv_and_markdown(run: Run, module: str) -> None:
    """With a module CSV has a line for each collective, Markdown a table more."""
    rows = list(csv.DictReader(io.StringIO(run("ranks", *EIGHT, "--against", module, "--format", "csv").out)))
    assert [(row["name"], row["matches"]) for row in rows[:3]] == [
        ("gather", "tp"),
        ("turned", "tp"),
        ("grads", "dp,ep_data"),
    ]
    assert (rows[1]["in_order"], rows[1]["axes"]) == ("none", "")
    out = run("ranks", *EIGHT, "--against", module, "--format", "markdown").out
    assert "| 1 | all-gather | tp | ? | gather line 9 |\n" in out


# --- on cores --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lnc", [1, 2])
def test_whom_each_core_meets(run: Run, module: str, lnc: int) -> None:
    """For every physical core its rank, and its peers in every collective."""
    options = ("--hardware", "trn2", "--lnc", str(lnc), "--against", module, "--cores")
    [found] = answer(run, *EIGHT, *options)["cores"]
    names = [each["name"] for each in found["collectives"]]
    assert names == ["gather", "turned", "grads", "first", "odd", "loss", "stage"]
    refused = {each["name"]: each["refusal"] for each in found["collectives"] if each["refusal"]}
    assert list(refused) == ["odd"]
    assert "Multiple LNCs are not supported yet" in refused["odd"]
    assert [(each["core"], each["rank"]) for each in found["cores"]] == [(core, core // lnc) for core in range(8 * lnc)]
    peers = dict(zip(names, found["cores"][3 * lnc]["peers"], strict=True))
    assert peers["gather"] == {"peers": [2], "position": 1, "sends_to": [], "receives_from": []}
    assert peers["grads"]["peers"] == [1]
    assert peers["first"] is None
    assert peers["stage"] == {"peers": [7], "position": None, "sends_to": [7], "receives_from": []}


def test_cores_as_they_look(run: Run, module: str) -> None:
    """A line for each core, a column for collectives that join the same ranks; refusals stand above."""
    out = run("ranks", *EIGHT, "--against", module, "--cores", columns=160).out
    assert "odd: the simulator would refuse it: Multiple LNCs are not supported yet" in out
    heading, *cores = out[out.index("core  rank") :].splitlines()
    assert heading.split() == ["core", "rank", "gather", "+1", "grads", "first", "odd", "loss", "stage"]
    assert cores[1].split("  ")[-1] == "to 5"
    assert [line.split()[:3] for line in cores[:2]] == [["0", "0", "1"], ["1", "1", "0"]]
    assert "not in it" in cores[1]
    assert len(cores) == 8


def test_cores_as_csv_and_markdown(run: Run, module: str) -> None:
    """CSV has a line for each core and collective."""
    options = (*EIGHT, "--against", module, "--cores", "--format")
    rows = list(csv.DictReader(io.StringIO(run("ranks", *options, "csv").out)))
    assert len(rows) == 8 * 7
    assert (rows[7]["core"], rows[7]["rank"], rows[7]["name"], rows[7]["peers"]) == ("1", "1", "gather", "0")
    assert "| core | rank |" in run("ranks", *options, "markdown").out


def test_many_cores_are_cut(run: Run, tmp_path: Path) -> None:
    """The table shows the first 128 cores and says how many there are more."""
    file = tmp_path / "m.hlo"
    file.write_text(PIPELINE.format(counts=", replica_count=256"))
    out = run("ranks", "--world", "256", "--tp", "2", "--against", str(file), "--cores").out
    assert out.endswith("... and 128 more cores (--format json lists all)\n")


def test_cores_of_a_module_for_other_ranks(run: Run, module: str) -> None:
    """Cores are shown for a module of this world only."""
    assert run("ranks", *SIXTEEN, "--against", module, "--cores").error == (
        f"{module}: expected a module for 16 ranks, found one for 8 devices"
    )


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--tp", "2"), "Missing option '--world' (see commlens ranks --help)"),
        (("--world", "8"), "Missing option '--tp' (see commlens ranks --help)"),
        (("--pp", "2"), "Missing option '--world' and option '--tp' (see commlens ranks --help)"),
        (("--world", "8", "--tp", "0"), "Invalid value for '--tp': 0 is not in the range x>=1"),
        (
            ("--world", "8", "--tp", "3"),
            "expected a world size that is divisible by tp x pp, found 8 ranks and 3 x 1 =",
        ),
        (("--world", "8", "--tp", "4"), "expected a world of whole nodes of 32 ranks, found 8 ranks"),
        (("--world", "8", "--tp", "2", "--lnc", "2"), "expected LNC 1 on trn1, found 2"),
        (("--world", "8", "--tp", "2", "--hardware", "gpu"), "Invalid value for '--hardware': 'gpu' is not one of"),
        (("--world", "8", "--tp", "2", "--kv", "3"), "expected kv to divide tp = 2, found 3; 1, 2 do"),
        (("--world", "8", "--tp", "2", "--cp", "2"), "expected a world of one tensor parallel group"),
        (("--world", "8", "--tp", "2", "--token-shuffle", "3"), "expected the token shuffle size to divide dp = 4"),
        (("--world", "99999999", "--tp", "1"), "expected a world of at most 16,777,216 ranks"),
        (("--world", "8", "--tp", "2", "--cores"), "expected --against FILE with --cores"),
        (("--world", "8", "--tp", "2", "--kv-sequential"), "expected --kv N with --kv-sequential, which is about its"),
        (("--world", "8", "--tp", "2", "--against", "missing.hlo"), "missing.hlo: "),
    ],
)
def test_what_is_refused(run: Run, arguments: tuple[str, ...], reason: str) -> None:
    """Degrees that do not fit and files that are none end with exit code 2 and one line."""
    assert run("ranks", *arguments).error.startswith(reason)


def test_a_failed_run_leaves_the_old_file(run: Run, tmp_path: Path) -> None:
    """-o writes all of the answer or nothing."""
    out = tmp_path / "ranks.json"
    assert run("ranks", *EIGHT, "--format", "json", "-o", str(out)).code == 0
    before = out.read_text()
    assert json.loads(before)["world"] == 8
    assert run("ranks", "--world", "9", "--tp", "2", "-o", str(out)).code == 2
    assert out.read_text() == before
