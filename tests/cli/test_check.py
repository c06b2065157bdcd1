"""``commlens check``: exit codes, forms, choices, settings, baselines."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checking import ALL_RULES
from commlens.cli.check_command import TARGETS as CLI_TARGETS
from commlens.hlo import TARGETS, load
from proto_twin import proto_twin

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Outcome, Run

ROOT = Path(__file__).resolve().parents[2]

HEAD = """HloModule step, num_partitions=4
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
"""
GOOD = (
    HEAD
    + "  ROOT r = f32[8] all-reduce(p), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add\n}\n"
)
BAD = GOOD.replace("{{0,1,2,3}}", "{{0,1},{1,9}}")
ALONE = GOOD.replace("{{0,1,2,3}}", "{{0},{1},{2},{3}}")
UNREAD = GOOD.replace("{{0,1,2,3}}", "[2,2]<=[8]")


@pytest.fixture
def at(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Return what runs check in an empty folder in which some files are."""

    def at(*arguments: str, columns: int = 120, **files: str) -> Outcome:
        for name, text in files.items():
            (tmp_path / name.replace("__", ".")).write_text(text)
        monkeypatch.chdir(tmp_path)
        return run("check", *arguments, columns=columns)

    return at


def findings(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the findings of an answer in JSON."""
    answer: dict[str, Any] = json.loads(outcome.out)
    assert answer["schema"] == "commlens.check/1"
    return answer["findings"]


# --- exit codes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "rules"),
    [
        (GOOD, 0, []),
        (ALONE, 0, ["size-one-axis"]),
        (UNREAD, 1, ["unread"]),
        (BAD, 1, ["id-out-of-range", "id-repeated", "groups-incomplete"]),
    ],
    ids=["nothing", "a note", "a warning", "errors"],
)
def test_exit_codes(at: Callable[..., Outcome], text: str, code: int, rules: list[str]) -> None:
    """1 when an error or a warning is left, 0 for notes alone; findings are no complaint."""
    outcome = at("step.txt", "--format", "json", step__txt=text)
    assert (outcome.code, outcome.err) == (code, "")
    assert [each["rule"] for each in findings(outcome)] == rules


def test_unusable_inputs_win(at: Callable[..., Outcome]) -> None:
    """Without --keep-going nothing is answered; with it the others are, and the exit code is still 2."""
    assert at("none.txt", "step.txt", step__txt=BAD).error.startswith("none.txt: cannot be read")
    outcome = at("none.txt", "step.txt", "--keep-going", "--format", "json", step__txt=BAD)
    assert outcome.code == 2
    assert len(findings(outcome)) == 3
    assert outcome.err.startswith("commlens: error: none.txt: ")


def test_no_file_is_an_error(at: Callable[..., Outcome]) -> None:
    """Checking nothing is a slip."""
    assert at().error == "Missing argument 'FILE...' (see commlens check --help)"


# --- forms ----------------------------------------------------------------------------------------------------------


def test_keys_of_a_finding(at: Callable[..., Outcome]) -> None:
    """What scripts rely on: rule, severity, message, path, line, instructions."""
    first = findings(at("step.txt", "--format", "json", step__txt=BAD))[0]
    assert first["rule"] == "id-out-of-range"
    assert first["severity"] == "error"
    assert (first["path"], first["line"], first["instructions"]) == ("step.txt", 9, ["r"])
    assert (
        first["message"] == "expected global ids in 0..3 in mode kFlattenedID, found 9; run the program on 10 devices"
    )


def test_binary_files_have_no_lines(at: Callable[..., Outcome], tmp_path: Path) -> None:
    """A proto has its findings without lines, and so do SARIF and GitHub."""
    (tmp_path / "step.pb").write_bytes(proto_twin(load(BAD)).SerializeToString())
    files = ("step.pb", "--replicas", "1", "--partitions", "4")
    assert {each["line"] for each in findings(at(*files, "--format", "json"))} == {None}
    results = json.loads(at(*files, "--format", "sarif").out)["runs"][0]["results"]
    assert all("region" not in each["locations"][0]["physicalLocation"] for each in results)
    assert all(
        line.startswith("::error file=step.pb,title=") for line in at(*files, "--format", "github").out.splitlines()
    )


def test_table(at: Callable[..., Outcome]) -> None:
    """Where, how bad, which rule, what, who, and how many in the end."""
    assert (
        at("step.txt", step__txt=BAD).out
        == """step.txt:9 error [id-out-of-range]
    expected global ids in 0..3 in mode kFlattenedID, found 9; run the program on 10 devices
    r (line 9)

step.txt:9 error [id-repeated]
    expected every id once in the groups, found 1 more often; keep one of each
    r (line 9)

step.txt:9 error [groups-incomplete]
    expected all of the global ids 0..3 in the groups, found no 2 and 3; give every one a group
    r (line 9)

3 errors in 1 module, 24 rules tried
commlens check --explain id-out-of-range tells more of a rule.
"""
    )
    assert at("step.txt").out.splitlines()[-2:] == [
        "3 errors in 1 module, 24 rules tried",
        "commlens check --explain id-out-of-range tells more of a rule.",
    ]
    assert at("fine.txt", fine__txt=GOOD).out == "no findings in 1 module, 24 rules tried\n"


def test_table_puts_alike_findings_together(at: Callable[..., Outcome]) -> None:
    """Findings in the same words are one entry that names a few instructions and counts the rest; JSON has them all."""
    line = "  a{n} = f32[8] all-reduce(p), channel_id={n}, replica_groups={{{{0,0}},{{1,2,3}}}}, use_global_device_ids=true, to_apply=add\n"
    text = GOOD.replace("  ROOT r", "".join(line.format(n=n) for n in range(10, 50)) + "  ROOT r")
    outcome = at("step.txt", step__txt=text)
    assert outcome.out.count("[id-repeated]") == 1
    assert (
        "a10 (line 9), a11 (line 10), a12 (line 11), a13 (line 12), a14 (line 13), a15 (line 14) and 34 more"
        in outcome.out
    )
    assert "40 errors in 1 module" in outcome.out
    assert len(findings(at("step.txt", "--format", "json"))) == 40


def test_table_keeps_different_messages_apart(at: Callable[..., Outcome]) -> None:
    """One rule may say two things of one instruction: both are told."""
    permute = "  ROOT r = f32[8] collective-permute(p), channel_id=1, source_target_pairs={{0,1},{0,1}}\n}\n"
    outcome = at("step.txt", step__txt=HEAD + permute)
    assert outcome.out.count("[pair-repeated]") == 2
    assert "found source 0 in several" in outcome.out
    assert "found target 1 in several" in outcome.out


@pytest.mark.parametrize("columns", [20, 60])
def test_table_fits_the_terminal(at: Callable[..., Outcome], columns: int) -> None:
    """Messages are wrapped; only a word that is longer stands alone."""
    lines = at("step.txt", columns=columns, step__txt=BAD).out.splitlines()
    wrapped = [line for line in lines if line.startswith("    ")]
    assert wrapped
    assert all(len(line) <= columns or len(line.split()) == 1 for line in wrapped)


def test_csv_and_markdown(at: Callable[..., Outcome]) -> None:
    """A line for each finding, with the columns of the JSON."""
    first, *others = csv.DictReader(io.StringIO(at("step.txt", "--format", "csv", step__txt=BAD).out))
    expected = {"path": "step.txt", "line": "9", "rule": "id-out-of-range", "severity": "error", "instructions": "r"}
    assert expected.items() <= first.items()
    assert len(others) == 2
    lines = at("step.txt", "--format", "markdown").out.splitlines()
    assert lines[0] == "| where | severity | rule | instructions | message |"
    assert len([line for line in lines if line.startswith("| `step.txt:9` | error |")]) == 3
    assert at("fine.txt", "--format", "markdown", fine__txt=GOOD).out == "no findings in 1 module, 24 rules tried\n"


def test_output_goes_to_a_file(at: Callable[..., Outcome], tmp_path: Path) -> None:
    """-o writes the answer in any form, all of it or nothing; a run that fails leaves the old file."""
    for form in ("table", "json", "csv", "markdown", "sarif", "github"):
        printed = at("step.txt", "--format", form, step__txt=BAD).out
        outcome = at("step.txt", "--format", form, "-o", "answer")
        assert (outcome.code, outcome.out) == (1, "")
        assert (tmp_path / "answer").read_text() == printed
    assert at("none.txt", "-o", "answer").code == 2
    assert (tmp_path / "answer").read_text() == printed


def test_several_files_and_modules(at: Callable[..., Outcome], tmp_path: Path) -> None:
    """Every finding says which file it is in, compressed ones and several modules of one file too."""
    (tmp_path / "step.txt.gz").write_bytes(gzip.compress(BAD.encode()))
    both = f"{BAD}\n{BAD.replace('HloModule step', 'HloModule other')}"
    found = findings(at("step.txt.gz", "both.txt", "--format", "json", both__txt=both))
    assert [(each["path"], each["module"]) for each in found[::3]] == [
        ("step.txt.gz", "step"),
        ("both.txt", "step"),
        ("both.txt", "other"),
    ]
    assert at("step.txt.gz", "both.txt").out.splitlines()[-2] == "9 errors in 3 modules, 24 rules tried"


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


# --- choices --------------------------------------------------------------------------------------------------------


def test_select_and_ignore(at: Callable[..., Outcome]) -> None:
    """Lists with commas, options that are repeated, patterns."""

    def rules(*options: str) -> list[str]:
        return [each["rule"] for each in findings(at("step.txt", "--format", "json", *options, step__txt=BAD))]

    assert rules("--select", "id-repeated") == ["id-repeated"]
    assert rules("--select", "id-repeated,groups") == ["id-repeated", "groups-incomplete"]
    assert rules("--select", "id-repeated", "--select", "id-*") == ["id-out-of-range", "id-repeated"]
    assert rules("--ignore", "id") == ["groups-incomplete"]
    assert rules("--select", "id", "--ignore", "id-repeated") == ["id-out-of-range"]
    assert at("step.txt", "--ignore", "id,groups").code == 0


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--select", "nothing"), "expected the id of a rule, found 'nothing'; did you mean "),
        (("--ignore", "id-repeatet"), "expected the id of a rule, found 'id-repeatet'; did you mean id-repeated? (see"),
        (("--select", "NEU"), "expected a target of NEU-COMM-MAX, one of inf2, trn1, trn2, trn3, found none (see"),
        (("--target", "v5e"), "Invalid value for '--target': 'v5e' is not one of"),
        (("--lnc", "0"), "Invalid value for '--lnc'"),
        (("--mesh", "x"), "Invalid value for '--mesh': expected axes such as"),
        (("--format", "xml"), "Invalid value for '--format'"),
        (
            ("--baseline", "none.json"),
            "none.json: the baseline cannot be read: no such file or directory; make one with",
        ),
        (("--config", "none.toml"), "none.toml: the settings cannot be read: no such file or directory"),
    ],
)
def test_faults_of_the_command_line(at: Callable[..., Outcome], options: tuple[str, ...], error: str) -> None:
    """One line says what was expected and what was found."""
    assert at("step.txt", *options, step__txt=GOOD).error.startswith(error)


def test_mesh_and_target(at: Callable[..., Outcome]) -> None:
    """Both reach the rules."""
    odd = GOOD.replace("{{0,1,2,3}}", "{{0,3},{1,2}}")
    assert [
        each["rule"] for each in findings(at("step.txt", "--mesh", "x=2,y=2", "--format", "json", step__txt=odd))
    ] == ["groups-off-mesh"]
    options = ("--target", "trn1", "--lnc", "2", "--local-world-size", "2")
    assert [each["rule"] for each in findings(at("step.txt", *options, "--format", "json"))] == [
        "NEU-TRN1-CORES",
        "NEU-LNC-ARCH",
        "NEU-SYMMETRIC-NODES",
    ]


def test_targets_are_those_of_the_rules() -> None:
    """The command line is parsed without loading the rules, so it has a list of its own: the same one."""
    assert CLI_TARGETS == TARGETS


# --- explanations ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ALL_RULES, ids=[rule.id for rule in ALL_RULES])
def test_explain(run: Run, rule: Any) -> None:
    """Every rule tells what it is about, with its examples, and needs no file for that."""
    outcome = run("check", "--explain", rule.id, columns=80)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(f"{rule.id} ({rule.severity}): {rule.title}\n")
    assert " ".join(rule.documentation.split()) in " ".join(outcome.out.split())
    for example in (rule.bad, rule.good):
        assert all(f"    {line}\n" in outcome.out for line in example.text.splitlines())


def test_explain_in_other_forms(run: Run) -> None:
    """The same as data, and as a section of a page."""
    [rule] = json.loads(run("check", "--explain", "neu-trn1-cores", "--format", "json").out)["rules"]
    assert (rule["rule"], rule["severity"], rule["targets"]) == ("NEU-TRN1-CORES", "error", ["trn1"])
    assert run("check", "--explain", "unread", "--format", "markdown").out.startswith(
        "### unread\n\n**Something that may"
    )
    assert len(list(csv.reader(io.StringIO(run("check", "--explain", "unread", "--format", "csv").out)))) == 2
    assert run("check", "--explain", "unread", "--format", "sarif").error.startswith(
        "expected the format of a rule, one of table"
    )
    assert run("check", "--explain", "stream").error.startswith(
        "expected the id of a rule, found 'stream'; did you mean "
    )


def test_list_of_rules(run: Run) -> None:
    """All rules, whatever they are about."""
    listed = json.loads(run("check", "--list-rules", "--format", "json").out)["rules"]
    assert [each["rule"] for each in listed] == [rule.id for rule in ALL_RULES]
    assert [line.split()[0] for line in run("check", "--list-rules", columns=100).out.splitlines()[1:]] == [
        rule.id for rule in ALL_RULES
    ]
    assert len(run("check", "--list-rules", "--format", "markdown").out.splitlines()) == len(ALL_RULES) + 2


# --- baselines ------------------------------------------------------------------------------------------------------


def test_baseline(at: Callable[..., Outcome]) -> None:
    """Today's findings are accepted, tomorrow's are not, and those that are gone are said."""
    assert at("step.txt", "--format", "json", "-o", "old.json", step__txt=BAD).code == 1
    accepted = at("step.txt", "--baseline", "old.json")
    assert accepted.code == 0
    assert accepted.out == "no findings in 1 module, 24 rules tried\n3 more findings accepted by the baseline.\n"
    worse = BAD.replace("  ROOT r", "  a = f32[8] all-reduce(p), replica_groups={{0,0}}, to_apply=add\n  ROOT r")
    outcome = at("step.txt", "--baseline", "old.json", "--format", "json", step__txt=worse)
    assert outcome.code == 1
    assert [(each["rule"], each["instructions"]) for each in findings(outcome)] == [("id-repeated", ["a"])]
    assert json.loads(outcome.out)["accepted"] == 3
    mended = at("step.txt", "--baseline", "old.json", step__txt=GOOD)
    assert mended.code == 0
    assert "0 more findings accepted by the baseline; 3 findings of it no longer there, make it anew." in mended.out


def test_a_baseline_is_an_answer(at: Callable[..., Outcome]) -> None:
    """Something else in its place is refused before anything is shown."""
    assert at("step.txt", "--baseline", "x.json", step__txt=BAD, x__json="{}").error.startswith(
        "x.json: expected the answer of"
    )


# --- settings -------------------------------------------------------------------------------------------------------

OWN = '[check]\nignore = ["id"]\n'


def test_settings_of_our_own_file(at: Callable[..., Outcome]) -> None:
    """commlens.toml has them under [check], and the answer says where they are from."""
    outcome = at("step.txt", "--format", "json", step__txt=BAD, commlens__toml=OWN)
    assert [each["rule"] for each in findings(outcome)] == ["groups-incomplete"]
    assert json.loads(outcome.out)["settings"] == "commlens.toml"
    assert "\nSettings of commlens.toml.\n" in at("step.txt").out


def test_settings_of_a_project(
    at: Callable[..., Outcome], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyproject.toml has them in its table; the nearest file that has any counts, from the folder upwards."""
    at("step.txt", step__txt=BAD, pyproject__toml='[tool.commlens.check]\nselect = "id-repeated"\n')
    below = tmp_path / "src" / "deep"
    below.mkdir(parents=True)
    (tmp_path / "src" / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    monkeypatch.chdir(below)
    step = str(tmp_path / "step.txt")
    assert [each["rule"] for each in findings(run("check", step, "--format", "json"))] == ["id-repeated"]
    (tmp_path / "src" / "commlens.toml").write_text("[check]\n")
    assert len(findings(run("check", step, "--format", "json"))) == 3


def test_the_command_line_counts_more(at: Callable[..., Outcome]) -> None:
    """An option takes the place of its setting, --isolated of all, --config of the search."""

    def rules(*options: str) -> list[str]:
        return [each["rule"] for each in findings(at("step.txt", "--format", "json", *options))]

    at("step.txt", step__txt=BAD, commlens__toml=OWN, other__toml='[check]\nselect = ["groups"]\n')
    assert rules("--ignore", "groups") == ["id-out-of-range", "id-repeated"]
    assert rules("--isolated") == ["id-out-of-range", "id-repeated", "groups-incomplete"]
    assert rules("--config", "other.toml") == ["groups-incomplete"]
    assert rules("--config", "other.toml", "--select", "unread") == []


def test_all_settings(at: Callable[..., Outcome]) -> None:
    """Target, LNC, ranks on a node, mesh and baseline can be set; a baseline is looked for beside the settings."""
    settings = '[check]\ntarget = "trn1"\nlnc = 2\nlocal-world-size = 2\nmesh = "x=2,y=2"\nbaseline = "old.json"\n'
    odd = GOOD.replace("{{0,1,2,3}}", "{{0,3},{1,2}}")
    at("step.txt", "--format", "json", "--isolated", "--mesh", "x=2,y=2", "-o", "old.json", step__txt=odd)
    outcome = at("step.txt", "--format", "json", commlens__toml=settings)
    assert [each["rule"] for each in findings(outcome)] == ["NEU-TRN1-CORES", "NEU-LNC-ARCH", "NEU-SYMMETRIC-NODES"]
    assert json.loads(outcome.out)["accepted"] == 1


def test_ignores_per_file(at: Callable[..., Outcome], tmp_path: Path) -> None:
    """Rules can be left out of some files alone, by pattern of name or path."""
    settings = '[check.per-file-ignores]\n"old*" = ["id"]\n"*/new.txt" = "groups-incomplete"\n'
    (tmp_path / "dumps").mkdir()
    (tmp_path / "dumps" / "old.txt").write_text(BAD)
    files = {"old__txt": BAD, "new__txt": BAD, "commlens__toml": settings}
    found = findings(at("old.txt", "dumps/old.txt", "./new.txt", "--format", "json", **files))
    assert [(each["path"], each["rule"]) for each in found] == [
        ("old.txt", "groups-incomplete"),
        ("dumps/old.txt", "groups-incomplete"),
        ("./new.txt", "id-out-of-range"),
        ("./new.txt", "id-repeated"),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[check\n", "commlens.toml:1:7: expected settings in TOML: "),
        ("[check]\nignore = \n", "commlens.toml:2:10: expected settings in TOML: invalid value"),
        ("check = 1\n", "commlens.toml: expected the table [check], found another value"),
        (
            "[check]\nignroe = []\n",
            "commlens.toml: expected settings of check (select, ignore, per-file-ignores, target, ",
        ),
        (
            "[check]\nignore = 1\n",
            'commlens.toml: expected ignore to be a list of rules such as ["size-one-axis", "stream"], found 1',
        ),
        ("[check]\nignore = [1]\n", "commlens.toml: expected ignore to be a list of rules"),
        ("[check]\nlnc = 0\n", "commlens.toml: expected lnc to be a number of at least 1, found 0"),
        ("[check]\nlnc = true\n", "commlens.toml: expected lnc to be a number of at least 1, found True"),
        ("[check]\nmesh = 1\n", "commlens.toml: expected mesh to be a text, found 1"),
        (
            '[check]\nmesh = "x"\n',
            "commlens.toml: expected mesh to be axes such as data=2,model=4 or a JSON file: expected",
        ),
        (
            '[check]\ntarget = "v5e"\n',
            "commlens.toml: expected target to be one of trn1, trn2, trn3, inf2, gpu, tpu, found 'v5e'",
        ),
        ('[check]\nper-file-ignores = ["x"]\n', "commlens.toml: expected per-file-ignores to be a table such as"),
        ('[check.per-file-ignores]\nx = ["nothing"]\n', "expected the id of a rule, found 'nothing'"),
        ('[check]\nselect = ["nothing"]\n', "expected the id of a rule, found 'nothing'"),
    ],
)
def test_settings_that_are_none(at: Callable[..., Outcome], text: str, error: str) -> None:
    """A slip in the settings is named with its file, and with its place where that is known."""
    assert at("step.txt", step__txt=GOOD, commlens__toml=text).error.startswith(error)


def test_settings_must_be_text(at: Callable[..., Outcome], tmp_path: Path) -> None:
    """Other bytes than UTF-8 are no settings."""
    (tmp_path / "commlens.toml").write_bytes(b"\xff\xfe")
    assert "expected settings in TOML, which is UTF-8" in at("step.txt", step__txt=GOOD).error


# --- the page -------------------------------------------------------------------------------------------------------


def test_page_has_every_rule_as_it_is() -> None:
    """docs/reference/checks.md holds the section of each rule (``python tools/checks_page.py`` mends it)."""
    from checks_page import PAGE, with_rules

    page = PAGE.read_text(encoding="utf-8")
    assert page == with_rules(page)
    assert [rule.id for rule in ALL_RULES] == re.findall(r"^### (\S+)$", page, flags=re.MULTILINE)
