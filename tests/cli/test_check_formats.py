"""``commlens check --format sarif`` and ``github``."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from check_command import ALONE, BAD, GOOD, UNREAD
from checking import ALL_RULES
from commlens.hlo import load
from proto_twin import proto_twin

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Outcome, Run


# --- SARIF ----------------------------------------------------------------------------------------------------------

SARIF_LEVELS = {"error", "warning", "note", "none"}
SARIF_KEYS = {
    "log": {"$schema", "version", "runs"},
    "run": {"tool", "results"},
    "driver": {"name", "version", "rules"},
    "rule": {"id", "shortDescription", "fullDescription", "help", "defaultConfiguration"},
    "result": {"ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"},
}
"""The properties that are used; each is one of SARIF 2.1.0, and those that it requires are among them."""


def check_sarif(log: dict[str, Any]) -> list[dict[str, Any]]:
    """Hold a log against the standard: required properties, their types, references between them; return the results."""
    assert set(log) == SARIF_KEYS["log"]
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    [run] = log["runs"]
    assert set(run) == SARIF_KEYS["run"]
    driver = run["tool"]["driver"]
    assert set(driver) == SARIF_KEYS["driver"]
    assert isinstance(driver["name"], str)
    for rule in driver["rules"]:
        assert set(rule) == SARIF_KEYS["rule"]
        assert rule["defaultConfiguration"]["level"] in SARIF_LEVELS
        for key in ("shortDescription", "fullDescription", "help"):
            assert isinstance(rule[key]["text"], str)
            assert rule[key]["text"]
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    for result in run["results"]:
        assert set(result) == SARIF_KEYS["result"]
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in SARIF_LEVELS
        assert isinstance(result["message"]["text"], str)
        assert all(isinstance(each, str) for each in result["partialFingerprints"].values())
        for location in result["locations"]:
            check_location(location)
    return run["results"]


def check_location(location: dict[str, Any]) -> None:
    """Hold a location against the standard: relative URIs without characters that need quoting, lines from 1."""
    assert set(location) <= {"physicalLocation", "logicalLocations"}
    physical = location.get("physicalLocation")
    if physical is not None:
        assert set(physical) <= {"artifactLocation", "region"}
        assert re.fullmatch(r"(?:file://)?[A-Za-z0-9\-._~/%]+", physical["artifactLocation"]["uri"])
        if "region" in physical:
            assert physical["region"]["startLine"] >= 1
    for each in location["logicalLocations"]:
        assert set(each) <= {"name", "fullyQualifiedName", "kind"}
        assert each["name"]


def test_sarif(at: Callable[..., Outcome]) -> None:
    """The log keeps the standard's required properties, names the rules, and has each finding with its place."""
    results = check_sarif(json.loads(at("step.txt", "--format", "sarif", step__txt=BAD).out))
    assert [each["ruleId"] for each in results] == ["id-out-of-range", "id-repeated", "groups-incomplete"]
    first = results[0]
    assert first["message"]["text"].startswith("r: expected global ids in 0..3")
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "step.txt"},
        "region": {"startLine": 9},
    }
    assert first["locations"][0]["logicalLocations"] == [
        {"name": "r", "fullyQualifiedName": "step/e/r", "kind": "instruction"}
    ]
    assert check_sarif(json.loads(at("fine.txt", "--format", "sarif", fine__txt=GOOD).out)) == []


def test_sarif_of_everything_is_valid(at: Callable[..., Outcome]) -> None:
    """The examples of all rules make valid logs."""
    for rule in ALL_RULES:
        deployment = rule.bad.deployment
        options = [
            *(("--target", str(deployment.target)) if deployment.target else ()),
            *(("--lnc", str(deployment.lnc)) if deployment.lnc else ()),
            *(("--local-world-size", str(deployment.ranks_per_node)) if deployment.ranks_per_node else ()),
        ]
        outcome = at("step.txt", "--format", "sarif", *options, step__txt=rule.bad.text)
        assert rule.id in [each["ruleId"] for each in check_sarif(json.loads(outcome.out))]


def test_fingerprints_stay_while_lines_move(at: Callable[..., Outcome]) -> None:
    """A service that tracks findings knows them again after the file has grown above them."""
    prints = [
        [
            each["partialFingerprints"]
            for each in json.loads(at("step.txt", "--format", "sarif", step__txt=text).out)["runs"][0]["results"]
        ]
        for text in (BAD, BAD.replace("  ROOT r", "  n = f32[8] negate(p)\n  ROOT r"))
    ]
    assert prints[0] == prints[1]
    assert len({json.dumps(each) for each in prints[0]}) == 3


def test_files_of_one_name_in_different_folders_have_findings_of_their_own(at: Callable[..., Outcome]) -> None:
    """Two hosts' dumps are called alike: a service must not take the finding in one for that in the other."""
    at("x", x=GOOD)
    for folder in ("a", "b"):
        Path(folder).mkdir()
        Path(folder, "step.txt").write_text(ALONE)
    results = json.loads(at("a/step.txt", "./a/step.txt", "b/step.txt", "--format", "sarif").out)["runs"][0]["results"]
    prints = [each["partialFingerprints"]["commlensFinding/v1"] for each in results]
    assert prints[0] == prints[1] != prints[2]


def test_sarif_of_standard_input_and_odd_names(
    at: Callable[..., Outcome], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names with blanks and other signs are quoted; standard input has no file, so the instruction alone is named."""
    at("x", **{"a step%__txt": BAD, "x": GOOD})
    [result, *_] = check_sarif(json.loads(at("a step%.txt", "--format", "sarif").out))
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20step%25.txt"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    [result, *_] = check_sarif(json.loads(run("check", "-", "--format", "sarif").out))
    assert "physicalLocation" not in result["locations"][0]


# --- GitHub ---------------------------------------------------------------------------------------------------------


def test_github(at: Callable[..., Outcome]) -> None:
    """One workflow command for each finding; nothing at all when there is none."""
    assert at("step.txt", "--format", "github", step__txt=BAD).out.splitlines()[0] == (
        "::error file=step.txt,line=9,title=id-out-of-range::r: expected global ids in 0..3 in mode kFlattenedID, found 9;"
        " run the program on 10 devices"
    )
    assert at("note.txt", "--format", "github", note__txt=ALONE).out.startswith(
        "::notice file=note.txt,line=9,title=size-one-axis::"
    )
    assert at("odd.txt", "--format", "github", odd__txt=UNREAD).out.startswith(
        "::warning file=odd.txt,line=9,title=unread::"
    )
    assert at("fine.txt", "--format", "github", fine__txt=GOOD).out == ""


def test_github_annotates_no_file_where_there_is_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding on standard input belongs to no file of the repository."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ALONE.encode())))
    assert run("check", "-", "--format", "github").out.startswith("::notice title=size-one-axis::r: expected ")


def test_github_commands_cannot_be_broken_out_of(at: Callable[..., Outcome]) -> None:
    """Names from a module or a file that hold line breaks, colons or percent signs stay in their command."""
    at("x", **{"a,b:c%__txt": BAD, "x": GOOD})
    line = at("a,b:c%.txt", "--format", "github").out.splitlines()[0]
    assert line.startswith("::error file=a%2Cb%3Ac%25.txt,line=9,title=id-out-of-range::r: expected")
    proto = proto_twin(load(BAD))
    proto.computations[-1].instructions[-1].name = b"r\n::set-output name=x::\x1b[31m"
    Path("odd.pb").write_bytes(proto.SerializeToString())
    outcome = at("odd.pb", "--replicas", "1", "--partitions", "4", "--format", "github")
    assert [line[:8] for line in outcome.out.splitlines()] == ["::error "] * 3
    assert "\x1b" not in outcome.out
    assert "\x1b" not in at("odd.pb", "--replicas", "1", "--partitions", "4").out
