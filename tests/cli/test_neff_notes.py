"""What ``commlens neff`` says beside the answer: warnings of the input, and notes of what the numbers come from."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from neff_files import definition, neff

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import Run

TP = [[0, 1, 2, 3], [4, 5, 6, 7]]
DP = [[0, 4], [1, 5], [2, 6], [3, 7]]
REDUCE = "r = f32[8] all-reduce(p), replica_groups={{0,1}}, to_apply=add"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """Return the current folder, empty; taken after ``run``, which goes elsewhere."""
    assert run is not None
    monkeypatch.chdir(tmp_path)
    return tmp_path


def module(*lines: str) -> bytes:
    """Return a module whose entry has some instructions behind the parameter ``p``."""
    body = "".join(f"  {line}\n" for line in lines)
    return f"HloModule m\nENTRY e {{\n  p = f32[8] parameter(0)\n{body}}}\n".encode()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(
            neff(definition(replica_groups=[TP]), hash=bytes(32)), "x: the archive does not have the hash", id="hash"
        ),
        pytest.param(
            neff({"sg00/def.json": definition(replica_groups=[TP]), "sg01/def.json": definition(replica_groups=[DP])}),
            "different from it: sg01/def.json",
            id="subgraphs",
        ),
        pytest.param(
            neff(definition(replica_groups=[TP]), lnc_size=7),
            "x: the header states LNC 7, and Neuron hardware has 1 or 2 physical cores per rank",
            id="lnc",
        ),
        pytest.param(
            module("t = token[] after-all()", "s = (f32[8], u32[], token[]) send(p, t), channel_id=1", REDUCE),
            "x: send s states no source-target pairs",
            id="send",
        ),
        pytest.param(
            module("a = f32[8] all-reduce(p), replica_groups={{0,1}, to_apply=add", REDUCE),
            "x: line 4: all-reduce a: ",
            id="unread",
        ),
    ],
)
def test_warnings(run: Run, folder: Path, content: bytes, says: str) -> None:
    """What is odd about the input is a warning on standard error, and among the notes."""
    (folder / "x").write_bytes(content)
    outcome = run("neff", "x", "--reading", "total", "--format", "json")
    [warning] = outcome.err.splitlines()
    assert (outcome.code, warning.startswith("commlens: warning: x: ")) == (0, True)
    assert says in warning
    assert warning.removeprefix("commlens: warning: x: ") in json.loads(outcome.out)["notes"]
    assert "warnings" in run("neff", "x", "--reading", "total").out


@pytest.mark.parametrize(
    ("keys", "note"),
    [
        pytest.param({"replica_groups": [TP]}, "4 is the size of the largest group, as documented; all", id="groups"),
        pytest.param(
            {"replica_groups": [DP], "src_target_pairs": [[[0, 4]]]},
            "5 is one more than the largest id of the source-target pairs, as documented, and more than any group has; all",
            id="pairs",
        ),
        pytest.param(
            {"replica_groups": [DP], "src_target_pairs": [[[0, 1]]], "rank_world_size": 6},
            "6 is the stated #rank_world_size, as documented, and more than any group or pair needs; all",
            id="stated",
        ),
    ],
)
def test_where_the_readings_differ(run: Run, folder: Path, keys: dict[str, object], note: str) -> None:
    """The note says what the documented number comes from, and what the other one."""
    (folder / "def.json").write_bytes(definition(**keys))
    found = json.loads(run("neff", "def.json", "--format", "json").out)
    assert found["notes"] == [
        f"the readings differ: {note} groups of a topology together have 8 workers (--reading total)"
    ]


@pytest.mark.parametrize("reading", ["documented", "total"])
def test_a_program_of_which_nothing_could_be_read(run: Run, folder: Path, reading: str) -> None:
    """It is refused as not known, behind the warning that says why; it is none without collectives."""
    (folder / "m").write_bytes(module("a = f32[8] all-reduce(p), replica_groups={{0,1}, to_apply=add"))
    outcome = run("neff", "m", "--reading", reading)
    warning, error = outcome.err.splitlines()
    assert (outcome.code, outcome.out) == (2, "")
    assert warning.startswith("commlens: warning: m: line 4: all-reduce a: ")
    assert error.startswith(
        "commlens: error: m: how many workers the program needs is not known: no groups or pairs can"
    )
    assert "gives none either)" in error
    assert "NEFF does not have CC op" not in error


def test_a_cut_program_without_collectives(run: Run, folder: Path) -> None:
    """Nobody knows whether it has any, and so nothing is said of them."""
    (folder / "m").write_bytes(module()[:-2])
    outcome = run("neff", "m")
    assert (outcome.code, "it has collectives" in outcome.err) == (2, False)
    assert "no groups or pairs can be read of it, and some may be missing (--reading total gives none" in outcome.err


def test_a_refusal_of_a_cut_program_names_a_lower_bound(run: Run, folder: Path) -> None:
    """The number of the other reading is the least that there can be, and the whole module's is the number."""
    whole = module(REDUCE.replace("{{0,1}}", "{{0,1},{2,3}}"), REDUCE.replace("{{0,1}}", "{{0,1,2,3}}"))
    for content, number in ((whole, "4"), (whole[:-2], "at least 4")):
        (folder / "m").write_bytes(content)
        assert run("neff", "m").err.endswith(f" (--reading total gives {number})\n")


@pytest.mark.parametrize(
    ("lines", "complete"),
    [([REDUCE], True), (["a = f32[8] all-reduce(p), replica_groups={{0,1}, to_apply=add", REDUCE], False)],
)
def test_json_says_whether_something_is_missing(run: Run, folder: Path, lines: list[str], complete: bool) -> None:
    """What could not be read is told from what is not there."""
    (folder / "m").write_bytes(module(*lines))
    found = json.loads(run("neff", "m", "--format", "json").out)
    assert (found["complete"], found["has_cc"], found["world_size"]) == (complete, True, 2)
    heading, row = csv.reader(io.StringIO(run("neff", "m", "--format", "csv").out))
    assert dict(zip(heading, row, strict=True))["complete"] == ("true" if complete else "false")


@pytest.mark.parametrize("cut", [0, 1, 2, 30])
def test_a_world_size_of_a_cut_module_is_a_lower_bound(run: Run, folder: Path, cut: int) -> None:
    """Table and Markdown say so where the end of the text is missing, and only there."""
    (folder / "m").write_bytes(module(REDUCE, REDUCE.replace("r =", "b ="))[: -cut or None])
    table, markdown = (run("neff", "m", "--format", form).out for form in ("table", "markdown"))
    bound = ">= " if cut > 1 else ""
    assert f"world size   {bound}2 by the documented reading" in table
    assert f"| world size | {bound.replace('>', '&gt;')}2 by the documented reading" in markdown
    missing = "some collectives are missing here: the program needs at least so many workers"
    assert [missing in " ".join(text.split()) for text in (table, markdown)] == [cut > 1] * 2


def test_notes_are_prose_in_markdown(run: Run, folder: Path) -> None:
    """Sentences are no code, and no mark in them acts."""
    (folder / "def.json").write_bytes(definition(replica_groups=[TP], rank_world_size=1))
    out = run("neff", "def.json", "--format", "markdown").out
    assert "\nthe readings differ: 4 is the size of the largest group, as documented; all groups of a topology" in out
    assert "\nthe stated \\#rank\\_world\\_size, 1, is less than the lists need, and does not count\n" in out
    assert "| world size | 4 by the documented reading: a topology counts by its largest group |" in out


@pytest.mark.parametrize("lnc", [0, 1, 2])
def test_an_lnc_that_is_known_or_not_stated(run: Run, folder: Path, lnc: int) -> None:
    """It is no matter for a warning."""
    (folder / "x").write_bytes(neff(definition(replica_groups=[TP]), lnc_size=lnc))
    assert (run("neff", "x").code, run("neff", "x").err) == (0, "")


def test_a_stated_number_of_nobody(run: Run, folder: Path) -> None:
    """Where there are no lists, none are spoken of."""
    (folder / "x").write_bytes(definition(rank_world_size=0))
    [note] = json.loads(run("neff", "x", "--format", "json").out)["notes"]
    assert note == "the stated #rank_world_size, 0, is less than the 1 worker of any program, and does not count"


def test_bytes_that_are_no_text(run: Run, folder: Path) -> None:
    """They are escapes in every form, so that every reader of JSON takes the answer."""
    (folder / "x").write_bytes(
        neff(definition(rank_world_size=2), name=b"caf\xe9 \xc3\xa9", neff_build_version=b"\xff")
    )
    outcome = run("neff", "x", "--format", "json")
    header = json.loads(outcome.out)["header"]
    assert (header["name"], header["neff_build_version"]) == ("caf\\xe9 \u00e9", "\\xff")
    assert "\\ud" not in outcome.out.lower()
    assert "name caf\\xe9 \u00e9, built by \\xff," in run("neff", "x").out


def test_names_of_subgraphs_that_are_no_text(run: Run, folder: Path) -> None:
    """Members and kelves bear names of strangers."""
    (folder / "x").write_bytes(neff({"a\udcff/sg00/def.json": definition(rank_world_size=2)}))
    found = run("neff", "x", "--format", "json").out
    assert json.loads(found)["subgraphs"][0]["member"] == "a\\xff/sg00/def.json"
    assert "\\ud" not in found


def test_facts_are_no_code_in_markdown(run: Run, folder: Path) -> None:
    """A subgraph is named in a sentence."""
    (folder / "x").write_bytes(neff(definition(replica_groups=[TP])))
    assert "LNC 1, subgraphs sg00/def.json\n" in run("neff", "x", "--format", "markdown").out
