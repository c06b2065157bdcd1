"""``commlens neff``: options that ask for something, and inputs that are none."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from neff_files import as_json, definition, neff, tar_of

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import Run

TP = [[0, 1, 2, 3], [4, 5, 6, 7]]
MODULE = b"""HloModule step, replica_count=2
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={}, to_apply=add
}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """Return the current folder, empty; taken after ``run``, which goes elsewhere."""
    assert run is not None
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(run: Run, *arguments: str) -> dict[str, Any]:
    """Return the JSON answer of a run that succeeds."""
    outcome = run("neff", *arguments, "--format", "json")
    assert outcome.code == 0, outcome
    return json.loads(outcome.out)


# --- cores of every rank --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "number", "in_none"),
    [
        pytest.param({"replica_groups": [[[0, 1]]], "rank_world_size": 4}, 4, [2, 3], id="stated"),
        pytest.param({"replica_groups": [[[0, 3]]], "src_target_pairs": [[[1, 5]]]}, 6, [1, 2, 4, 5], id="pairs"),
        pytest.param({"replica_groups": [TP]}, 8, [], id="total-is-more"),
        pytest.param({"rank_world_size": 3}, 3, [], id="no-lists"),
    ],
)
def test_the_cores_of_every_rank(run: Run, folder: Path, keys: dict[str, Any], number: int, in_none: list[int]) -> None:
    """Ranks that nothing names have cores too, and are in no group."""
    (folder / "x").write_bytes(definition(**keys))
    ranks = answer(run, "x", "--cores-per-lnc", "2")["ranks"]
    assert [rank["rank"] for rank in ranks] == list(range(number))
    assert [rank["cores"] for rank in ranks] == [[2 * rank, 2 * rank + 1] for rank in range(number)]
    assert [rank["rank"] for rank in ranks if rank["groups"] == [None]] == in_none


def test_ranks_that_are_named_beyond_the_world_size(run: Run, folder: Path) -> None:
    """A group with a large id makes the list no longer than that."""
    (folder / "x").write_bytes(definition(replica_groups=[[[0, 100_000]]]))
    ranks = answer(run, "x", "--cores-per-lnc", "1")["ranks"]
    assert [rank["rank"] for rank in ranks] == [0, 1, 100_000]


@pytest.mark.parametrize(
    "keys", [{"replica_groups": [[list(range(4097))]]}, {"rank_world_size": 2**32 - 1}], ids=["named", "stated"]
)
def test_ranks_that_are_too_many_are_said_to_be(run: Run, folder: Path, keys: dict[str, Any]) -> None:
    """What was asked for is not left out in silence."""
    (folder / "x").write_bytes(definition(**keys))
    found = answer(run, "x", "--cores-per-lnc", "1")
    assert found["ranks"] is None
    assert "the cores of more than 4,096 ranks are not listed" in found["notes"]
    assert not any("are not listed" in note for note in answer(run, "x")["notes"])


# --- options without effect -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        (
            "x.neff",
            ("--replicas", "7"),
            "x.neff: expected a module with --replicas, which is about a module; found a NEFF",
        ),
        (
            "def.json",
            ("--replicas", "7", "--partitions", "2"),
            "def.json: expected a module with --replicas, --partitions, which are about a module; found a def.json",
        ),
        (
            "def.json",
            ("--validate-hash",),
            "def.json: expected a NEFF with --validate-hash, which is about a NEFF; found a def.json",
        ),
        ("m", ("--validate-hash",), "m: expected a NEFF with --validate-hash, which is about a NEFF; found a module"),
        (
            "x.neff",
            ("--cores-per-lnc", "2", "--format", "csv"),
            "expected --format table, json or markdown with --cores-per-lnc, for the CSV form lists no ranks "
            "(see commlens neff --help)",
        ),
    ],
)
def test_options_that_would_do_nothing(run: Run, folder: Path, name: str, options: tuple[str, ...], error: str) -> None:
    """They are refused."""
    (folder / "x.neff").write_bytes(neff(definition(replica_groups=[TP])))
    (folder / "def.json").write_bytes(definition(replica_groups=[TP]))
    (folder / "m").write_bytes(MODULE)
    assert run("neff", name, *options).error == error


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("x.neff", ("--validate-hash",)),
        ("x.neff", ("--format", "csv")),
        ("m", ("--replicas", "4", "--partitions", "1")),
        ("m", ("--cores-per-lnc", "2", "--format", "json")),
    ],
)
def test_options_that_do_something(run: Run, folder: Path, name: str, options: tuple[str, ...]) -> None:
    """They are taken."""
    (folder / "x.neff").write_bytes(neff(definition(replica_groups=[TP])))
    (folder / "m").write_bytes(MODULE)
    assert run("neff", name, *options).code == 0


# --- what is none ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "error"),
    [
        pytest.param(b"Dear diary,", "x:1:1: expected a .neff, a def.json, HLO text or a protobuf", id="letter"),
        pytest.param(
            b"",
            "x: expected a .neff, a def.json, HLO text or a protobuf with an HLO module, found an empty",
            id="empty",
        ),
        pytest.param(
            MODULE.replace(b"={}", b"={{-1}}"), "x:4: all-reduce r: expected replica_groups[0][0][0]", id="module"
        ),
    ],
)
def test_what_could_have_been_read(run: Run, folder: Path, content: bytes, error: str) -> None:
    """Something that is nothing is told what there could have been; a module with a fault is a module."""
    (folder / "x").write_bytes(content)
    found = run("neff", "x").err.splitlines()[-1].removeprefix("commlens: error: ")
    assert found.startswith(error)
    assert ("a def.json" in found) == ("a def.json" in error)


@pytest.mark.parametrize("packed", [False, True], ids=["tar", "tgz"])
@pytest.mark.parametrize("name", ["x", "x.neff"])
def test_an_archive_without_a_header(run: Run, folder: Path, packed: bool, name: str) -> None:
    """The archive alone is no NEFF."""
    archive = tar_of([("sg00/def.json", definition(replica_groups=[TP]))])
    (folder / name).write_bytes(gzip.compress(archive) if packed else archive)
    assert run("neff", name).error == (f"{name}: a NEFF begins with a header of 1,024 bytes; this archive has none")


def test_the_archive_may_be_of_any_dialect(run: Run, folder: Path) -> None:
    """PAX archives are known as well."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("é" * 200))
    (folder / "x").write_bytes(target.getvalue())
    assert "this archive has none" in run("neff", "x").error


# --- faults in JSON -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(as_json({"replica_groups": [[[True]]]}), "from 0 to 4294967295, found true", id="flag"),
        pytest.param(as_json({"replica_groups": [[[None]]]}), "found null", id="null"),
        pytest.param(b'{"replica_groups": [[[NaN]]]}', "found NaN", id="nan"),
        pytest.param(b'{"replica_groups": [[[-Infinity]]]}', "found -Infinity", id="infinite"),
        pytest.param(as_json({"replica_groups": [[["0"]]]}), 'found "0"', id="text"),
        pytest.param(as_json({"replica_groups": {}}), "[topology][group][rank]; found an object", id="object"),
        pytest.param(as_json({"CCInfo": 3}), "expected CCInfo to be an object, found 3", id="nested"),
        pytest.param(as_json({"CCInfo": "x" * 99}), 'found "xxxxxxxxxx', id="long"),
    ],
)
def test_faults_are_said_in_words_of_json(run: Run, folder: Path, content: bytes, says: str) -> None:
    """No word of Python's stands in them."""
    (folder / "def.json").write_bytes(content)
    error = run("neff", "def.json").error
    assert says in error
    assert " int " not in error


# --- keys that come twice -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "key"),
    [
        (b'{"replica_groups": [[[0, 1]]], "replica_groups": [[[0, 1, 2]]]}', "replica_groups"),
        (b'{"CCInfo": {"src_target_pairs": [], "src_target_pairs": []}}', "src_target_pairs"),
        (b'{"#rank_world_size": 1, "#rank_world_size": 1}', "#rank_world_size"),
        (b'{"CCInfo": {}, "CCInfo": {}}', "CCInfo"),
    ],
)
@pytest.mark.parametrize("packed", [False, True], ids=["def.json", "neff"])
def test_keys_that_come_twice(run: Run, folder: Path, content: bytes, key: str, packed: bool) -> None:
    """Readers take one or the other of them, so the file is refused."""
    (folder / "x").write_bytes(neff(content) if packed else content)
    assert run("neff", "x").error.endswith(f": expected the key {key} once, found it twice")


def test_other_keys_may_come_twice(run: Run, folder: Path) -> None:
    """What says nothing of workers is not looked at, wherever it stands."""
    (folder / "x").write_bytes(
        b'{"a": 1, "a": 2, "b": {"replica_groups": 1, "replica_groups": 2}, "#rank_world_size": 2}'
    )
    assert answer(run, "x")["world_size"] == 2
