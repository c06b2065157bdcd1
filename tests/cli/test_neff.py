"""``commlens neff``."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commlens.neuron import NeffHeader
from neff_files import as_json, definition, neff
from neuron_cases import cases, section

if TYPE_CHECKING:
    from command_line import Run

HERE = Path(__file__).parent
KEYS = {
    "replica_groups",
    "src_target_pairs",
    "rank_world_size",
    "world_size",
    "world_size_documented",
    "world_size_total",
    "refusals",
    "topologies",
    "has_cc",
}
TP = [[0, 1, 2, 3], [4, 5, 6, 7]]
DP = [[0, 4], [1, 5], [2, 6], [3, 7]]
RING = [[0, 1], [1, 2], [2, 3], [3, 0]]
TEXT = """HloModule step{counts}
ENTRY e {{
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={groups}, to_apply=add
}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """Return the current folder, empty; taken after ``run``, which goes elsewhere."""
    assert run is not None
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(run: Run, *arguments: str) -> dict[str, Any]:
    """Return the JSON answer of a run that succeeds in silence."""
    outcome = run("neff", *arguments, "--format", "json")
    assert (outcome.code, outcome.err) == (0, "")
    return json.loads(outcome.out)


# --- answers --------------------------------------------------------------------------------------------------------


FILES: dict[str, tuple[bytes, str]] = {
    "neff": (neff(definition(replica_groups=[TP], src_target_pairs=[RING], rank_world_size=2)), "neff"),
    "plain-neff": (neff(definition(replica_groups=[TP], src_target_pairs=[RING], rank_world_size=2), pkg=1), "neff"),
    "def.json": (definition(replica_groups=[TP], src_target_pairs=[RING], rank_world_size=2), "def.json"),
    "nested": (
        as_json({"CCInfo": {"replica_groups": [TP], "src_target_pairs": [RING], "#rank_world_size": 2}}),
        "def.json",
    ),
}


@pytest.mark.parametrize(("content", "kind"), FILES.values(), ids=FILES.keys())
@pytest.mark.parametrize("packed", [False, True], ids=["as-it-is", "compressed"])
def test_json(run: Run, folder: Path, content: bytes, kind: str, packed: bool) -> None:
    """Every kind of file gives the documented keys, whatever its name and compression."""
    (folder / "input").write_bytes(gzip.compress(content) if packed else content)
    found = answer(run, "input")
    assert found.keys() >= KEYS
    assert {key: found[key] for key in KEYS} == {
        "replica_groups": [TP],
        "src_target_pairs": [RING],
        "rank_world_size": 2,
        "world_size": 4,
        "world_size_documented": 4,
        "world_size_total": 8,
        "refusals": [],
        "topologies": [{"num_groups": 2, "group_size": 4}],
        "has_cc": True,
    }
    assert (found["schema"], found["path"], found["kind"]) == ("commlens.neff/1", "input", kind)
    assert (found["header"] is None, found["subgraphs"] is None) == (kind != "neff",) * 2


def test_json_of_a_header(run: Run, folder: Path) -> None:
    """The fields of the header are told, and what each subgraph says."""
    data = neff(definition(replica_groups=[TP]), feature_bits=0x400, lnc_size=2)
    (folder / "x.neff").write_bytes(data)
    found = answer(run, "x.neff")
    header = NeffHeader.from_bytes(data)
    assert found["header"] == {
        "pkg_version": 2,
        "header_size": 1024,
        "data_size": len(data) - 1024,
        "neff_version_major": 2,
        "neff_version_minor": 0,
        "neff_build_version": "2.0.test",
        "num_tpb": 1,
        "hash": header.hash.hex(),
        "hash_matches": True,
        "uuid": "00010203-0405-0607-0809-0a0b0c0d0e0f",
        "name": "step",
        "requested_tpb_count": 1,
        "tpb_per_node": "00" * 64,
        "feature_bits": 0x400,
        "features": ["vnc (lnc > 1)"],
        "lnc_size": 2,
    }
    assert [graph["member"] for graph in found["subgraphs"]] == ["sg00/def.json"]
    assert (found["cores_per_lnc"], found["ranks"]) == (2, None)


@pytest.mark.parametrize("form", ["text", "stdin", "pipe"])
def test_modules(run: Run, folder: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is read from a file, from standard input, and from a pipe that can be read only once."""
    content = TEXT.format(counts=", replica_count=4", groups="{{0,1},{2,3}}").encode()
    name = "input"
    if form == "text":
        (folder / name).write_bytes(content)
    elif form == "stdin":
        name = "-"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    else:
        os.mkfifo(name)
        threading.Thread(target=(folder / name).write_bytes, args=(content,), daemon=True).start()
    found = answer(run, name)
    assert (found["path"], found["kind"], found["replica_groups"]) == (name, "module", [[[0, 1], [2, 3]]])
    assert (found["src_target_pairs"], found["rank_world_size"], found["world_size"]) == (None, None, 2)


def test_counts_of_a_module(run: Run, folder: Path) -> None:
    """Empty groups ask for counts, which may be given."""
    (folder / "m.txt").write_text(TEXT.format(counts="", groups="{}"))
    assert run("neff", "m.txt").error.startswith(
        "m.txt:4: all-reduce r: empty replica_groups mean all devices, and nobody states how many there are"
    )
    assert answer(run, "m.txt", "--replicas", "2")["replica_groups"] == [[[0, 1]]]
    (folder / "m.txt.gz").write_bytes(gzip.compress((folder / "m.txt").read_bytes()))
    assert run("neff", "m.txt.gz").error.startswith("m.txt.gz:4: all-reduce r: ")


def test_neff_from_standard_input(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A NEFF may come through a pipe; faults are named by the sign of standard input."""
    assert folder.is_dir()
    for content, code in ((neff(definition(replica_groups=[TP])), 0), (neff(definition(replica_groups=[])), 2)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        outcome = run("neff", "-")
        assert outcome.code == code
    assert outcome.error.startswith("-: Empty replica_groups found")


# --- readings -------------------------------------------------------------------------------------------------------


WORDS = {
    "error:inconsistent": "Inconsistent worker count across topologies: ",
    "error:empty_topology 0": "Empty topology found at index 0, possible MPMD neff file",
    "error:empty_topology 1": "Empty topology found at index 1, possible MPMD neff file",
}


@pytest.mark.parametrize("case", cases("cc_rank_world_size"))
def test_cases(run: Run, folder: Path, case: dict[str, Any]) -> None:
    """Each reading answers, or refuses in one line that says what the other reading gives."""
    (folder / "def.json").write_bytes(as_json(case["def_json"]))
    expected = {"documented": case["inner_reading"], "total": case["total_reading"]}
    for reading, other in (("documented", "total"), ("total", "documented")):
        arguments = ("def.json", "--reading", reading)
        if isinstance(expected[reading], int):
            found = answer(run, *arguments)
            assert (found["reading"], found["world_size"], found[f"world_size_{reading}"]) == (
                reading,
                *[expected[reading]] * 2,
            )
            assert bool(found["refusals"]) == isinstance(expected["documented"], str)
            continue
        error = run("neff", *arguments).error
        assert error.startswith("def.json: " + WORDS[expected[reading]])
        number = expected[other] if isinstance(expected[other], int) else "none either"
        assert error.endswith(f" (--reading {other} gives {number})")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(b"{}", "x: NEFF does not have CC op (--reading total gives 1)", id="nothing"),
        pytest.param(
            as_json({"replica_groups": []}),
            "x: Empty replica_groups found (--reading total gives none either)",
            id="groups",
        ),
        pytest.param(
            as_json({"src_target_pairs": []}),
            "x: Empty src_target_pairs found (--reading total gives none either)",
            id="pairs",
        ),
        pytest.param(
            neff(as_json(section("miniature_def_json_tp_dp")["def_json"])),
            "x: Inconsistent worker count across topologies: 4 vs 2. Possible MPMD neff file: the documented reader "
            "recommends --stopAfter=compile (--reading total gives 8)",
            id="inconsistent",
        ),
        pytest.param(neff(definition())[:1000], "x: Invalid number of NEFF bytes received: ", id="cut"),
        pytest.param(neff(definition(), neff_version_major=3), "x: NEFF version not supported: ", id="version"),
        pytest.param(
            neff(definition(), feature_bits=1 << 30), "x: this NEFF needs features of a newer compiler", id="new"
        ),
        pytest.param(neff(definition())[:-1], "x: Invalid NEFF data size: ", id="size"),
        pytest.param(neff(b"{]"), "x: sg00/def.json:1:2: expected a JSON object", id="json-inside"),
        pytest.param(b"{\n]", "x:2:1: expected a JSON object", id="json"),
        pytest.param(b"Dear diary,", "x:1:1: expected a .neff, a def.json, HLO text or a protobuf", id="letter"),
        pytest.param(
            b"",
            "x: expected a .neff, a def.json, HLO text or a protobuf with an HLO module, found an empty file",
            id="nothing-at-all",
        ),
    ],
)
def test_refusals(run: Run, folder: Path, content: bytes, error: str) -> None:
    """One line, the exit code 2, nothing on standard output; the old answer stays where it was."""
    (folder / "x").write_bytes(content)
    (folder / "answer").write_text("old")
    found = run("neff", "x").error
    assert found == error if error.endswith(")") else found.startswith(error)
    assert run("neff", "x", "-o", "answer", "--format", "json").error == found
    assert (folder / "answer").read_text() == "old"


def test_nothing_said_by_the_other_reading(run: Run, folder: Path) -> None:
    """A program without collectives has its answer: no CC, one worker, and why the documented reader refuses."""
    (folder / "def.json").write_bytes(b"{}")
    found = answer(run, "def.json", "--reading", "total")
    assert (found["has_cc"], found["world_size"], found["world_size_documented"]) == (False, 1, None)
    assert found["refusals"] == ["NEFF does not have CC op"]
    assert (found["replica_groups"], found["topologies"]) == (None, [])


@pytest.mark.parametrize("size", [0, 5, 64, 1023])
def test_what_is_called_neff_is_refused_as_one(run: Run, folder: Path, size: int) -> None:
    """A file that is cut before anything speaks for a NEFF is known by its name alone."""
    (folder / "x.neff").write_bytes(neff(definition())[:size])
    assert run("neff", "x.neff").error == (
        f"x.neff: Invalid number of NEFF bytes received: expected a header of 1024 bytes, found {size} bytes in all"
    )


# --- warnings, cores ------------------------------------------------------------------------------------------------


def test_hash_can_be_asked_for(run: Run, folder: Path) -> None:
    """Then another hash is a refusal."""
    (folder / "x").write_bytes(neff(definition(replica_groups=[TP]), hash=bytes(32)))
    assert "expected the archive to have the hash" in run("neff", "x", "--validate-hash").error


def test_cores(run: Run, folder: Path) -> None:
    """Cores per rank come from the command line, else from the header; where they differ a note says so."""
    (folder / "x.neff").write_bytes(
        neff(definition(replica_groups=[[[0, 2], [1]]], src_target_pairs=[[[1, 5]]]), lnc_size=1)
    )
    found = answer(run, "x.neff", "--cores-per-lnc", "2")
    assert found["cores_per_lnc"] == 2
    assert found["ranks"] == [
        {"rank": 0, "cores": [0, 1], "groups": [0]},
        {"rank": 1, "cores": [2, 3], "groups": [1]},
        {"rank": 2, "cores": [4, 5], "groups": [0]},
        {"rank": 3, "cores": [6, 7], "groups": [None]},
        {"rank": 4, "cores": [8, 9], "groups": [None]},
        {"rank": 5, "cores": [10, 11], "groups": [None]},
    ]
    assert any(note.startswith("the header of the NEFF states LNC 1") for note in found["notes"])
    assert not any("LNC" in note for note in answer(run, "x.neff", "--cores-per-lnc", "1")["notes"])
    for wrong in ("0", "65", "two"):
        assert "--cores-per-lnc" in run("neff", "x.neff", "--cores-per-lnc", wrong).error


def test_many_ranks_are_not_listed(run: Run, folder: Path) -> None:
    """Above some number the cores of each help nobody."""
    (folder / "x").write_bytes(as_json({"replica_groups": [[list(range(4097))]]}))
    assert answer(run, "x", "--cores-per-lnc", "2")["ranks"] is None
    (folder / "x").write_bytes(as_json({"replica_groups": [[list(range(4096))]]}))
    assert len(answer(run, "x", "--cores-per-lnc", "2")["ranks"]) == 4096
    assert "... and 4,064 more" in run("neff", "x", "--cores-per-lnc", "2").out


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        pytest.param({"replica_groups": [TP]}, "the readings differ: 4 is the size of the largest group", id="differ"),
        pytest.param(
            {"replica_groups": [[[0, 1], [2, 3]], [[0, 1]]]}, "the other reading has no world size", id="no-total"
        ),
        pytest.param({"replica_groups": [[[0, 1]]], "rank_world_size": 1}, "#rank_world_size, 1, is less", id="stated"),
    ],
)
def test_notes(run: Run, folder: Path, keys: dict[str, Any], says: str) -> None:
    """What a reader has to know of the answer stands below it."""
    (folder / "x").write_bytes(definition(**keys))
    [note] = answer(run, "x")["notes"]
    assert says in note
    assert says in " ".join(run("neff", "x").out.split())
    assert says in run("neff", "x", "--format", "markdown").out.replace("\\", "")


# --- forms ----------------------------------------------------------------------------------------------------------


def test_the_answer_as_it_looks(run: Run, folder: Path) -> None:
    """A NEFF with two topologies and a permute, on two cores per rank."""
    content = definition(replica_groups=[TP, DP], src_target_pairs=[RING, []], rank_world_size=8)
    (folder / "step.neff").write_bytes(neff(content, lnc_size=2))
    outcome = run("neff", "step.neff", "--reading", "total", "--cores-per-lnc", "2", columns=100)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (HERE / "golden" / "neff.txt").read_text(encoding="utf-8")


def test_csv(run: Run, folder: Path) -> None:
    """A line per topology and set of pairs; one line where there is neither."""
    (folder / "x").write_bytes(definition(replica_groups=[TP], src_target_pairs=[RING]))
    heading, first, second = csv.reader(io.StringIO(run("neff", "x", "--format", "csv").out))
    assert heading[:4] == ["path", "kind", "list", "index"]
    assert first[2:10] == ["replica_groups", "0", "2", "4", "8", "[2,4]<=[8]", "documented", "4"]
    assert second[2:8] == ["src_target_pairs", "0", "4", "", "", "{{0,1},{1,2},{2,3},{3,0}}"]
    (folder / "x").write_bytes(definition(rank_world_size=7))
    _, only = csv.reader(io.StringIO(run("neff", "x", "--format", "csv").out))
    assert only == ["x", "def.json", "", "", "", "", "", "", "documented", "7", "7", "7", "7", "true"]


def test_markdown(run: Run, folder: Path) -> None:
    """Facts and tables, with nothing of the input obeyed."""
    (folder / "x.neff").write_bytes(neff(definition(replica_groups=[TP]), name=b"a|<b>"))
    out = run("neff", "x.neff", "--format", "markdown").out
    assert "name a\\|&lt;b&gt;" in out
    assert "| topology | groups | group size | ranks | replica groups |" in out


# --- caches ---------------------------------------------------------------------------------------------------------


def write_cache(folder: Path) -> None:
    """Write a cache of a good entry and of one in which nothing fits."""
    for graph, flags in (("07c6ee519ad94eb45d54", "d41d8cd9"), ("0b06e363914569010515", "00000000")):
        entry = folder / "cache" / "neuronxcc-2.14.213.0+013d129b" / f"MODULE_{graph}+{flags}"
        entry.mkdir(parents=True)
        (entry / "model.done").touch()
        (entry / "compile_flags.txt").touch()
        if flags == "d41d8cd9":
            (entry / "model.neff").write_bytes(neff(definition(replica_groups=[TP], src_target_pairs=[RING])))
            (entry / "model.hlo_module.pb").write_text(TEXT.format(counts="", groups="[2,4]<=[8]"))


def test_a_cache_as_it_looks(run: Run, folder: Path) -> None:
    """A row per entry, what is wrong with it below."""
    write_cache(folder)
    outcome = run("neff", "cache", columns=110)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (HERE / "golden" / "neff-cache.txt").read_text(encoding="utf-8")


def test_a_cache_in_other_forms(run: Run, folder: Path) -> None:
    """JSON has everything, CSV a line per entry, Markdown the table and the problems."""
    write_cache(folder)
    found = answer(run, "cache")
    assert (found["schema"], found["path"]) == ("commlens.neff/1", "cache")
    good, bad = found["entries"]
    assert (good["module_hash"], good["flags_match"], good["problems"]) == ("07c6ee519ad94eb45d54", True, [])
    assert (good["replica_groups"], good["cc_from"], good["world_size_total"]) == ([TP], "neff", 8)
    assert [problem["kind"] for problem in bad["problems"]] == ["no-neff", "no-module", "flags-hash"]
    heading, first, second = csv.reader(io.StringIO(run("neff", "cache", "--format", "csv").out))
    assert dict(zip(heading, first, strict=True))["replica_groups"] == "[2,4]<=[8]"
    assert dict(zip(heading, second, strict=True))["problems"].startswith(
        "the entry is marked as done, and there is no"
    )
    markdown = run("neff", "cache", "--format", "markdown").out
    assert "| entry | module | done |" in markdown
    assert f"\n`{bad['path'].rpartition('/')[2]}`: there is no model.hlo\\_module.pb\n" in markdown


def test_a_folder_without_a_cache(run: Run, folder: Path) -> None:
    """It is refused by its name."""
    (folder / "empty").mkdir()
    assert run("neff", "empty").error == "empty: expected a Neuron compile cache, with folders MODULE_*, found none"
