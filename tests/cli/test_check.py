"""``commlens check``: exit codes, forms, choices, explanations."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from check_command import ALONE, BAD, GOOD, HEAD, UNREAD, findings
from checking import ALL_RULES
from commlens.cli.check_command import TARGETS as CLI_TARGETS
from commlens.hlo import TARGETS, load
from proto_twin import proto_twin

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Outcome, Run


ROOT = Path(__file__).resolve().parents[2]

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


@pytest.mark.parametrize("choice", [("--select", "shape-mismatch"), ("--ignore", "unread")])
def test_what_cannot_be_read_is_never_passed_over(at: Callable[..., Outcome], choice: tuple[str, str]) -> None:
    """Rules that are silent about what they cannot read do not pass for rules that found nothing there."""
    outcome = at("step.txt", "bad.txt", *choice, step__txt=UNREAD, bad__txt=GOOD)
    assert outcome.code == 0
    assert outcome.err.startswith("commlens: warning: step.txt:9: r: ")
    assert outcome.err.count("\n") == 1
    assert "no findings in 2 modules" in outcome.out
    assert "1 thing could not be read, of which the rules say nothing." in outcome.out
    outcome = at("step.txt", "bad.txt", *choice, "--format", "json", step__txt=UNREAD, bad__txt=GOOD)
    assert (findings(outcome), json.loads(outcome.out)["unread"]) == ([], 1)


def test_what_cannot_be_read_is_counted_where_it_is_a_finding(at: Callable[..., Outcome]) -> None:
    """The count is there whatever rules run; the sentence about it only where no finding says it."""
    outcome = at("step.txt", step__txt=UNREAD)
    assert (outcome.code, outcome.err, "could not be read" in outcome.out) == (1, "", False)
    assert json.loads(at("step.txt", "--format", "json", step__txt=UNREAD).out)["unread"] == 1
    assert json.loads(at("step.txt", "--format", "json", step__txt=BAD).out)["unread"] == 0


def test_lists_that_nobody_writes_out_stop_no_run(at: Callable[..., Outcome]) -> None:
    """One wrong number in one module is a finding there, and the other modules are checked as well."""
    huge = GOOD.replace("{{0,1,2,3}}", "[32768,32768]<=[1073741824]")
    outcome = at("huge.txt", "step.txt", "--format", "json", huge__txt=huge, step__txt=BAD)
    assert (outcome.code, outcome.err) == (1, "")
    assert [(each["path"], each["rule"]) for each in findings(outcome)] == [
        ("huge.txt", "id-out-of-range"),
        ("step.txt", "id-out-of-range"),
        ("step.txt", "id-repeated"),
        ("step.txt", "groups-incomplete"),
    ]


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

3 errors in 1 module, 25 rules tried
commlens check --explain id-out-of-range tells more of a rule.
"""
    )
    assert at("step.txt").out.splitlines()[-2:] == [
        "3 errors in 1 module, 25 rules tried",
        "commlens check --explain id-out-of-range tells more of a rule.",
    ]
    assert at("fine.txt", fine__txt=GOOD).out == "no findings in 1 module, 25 rules tried\n"


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
    assert at("fine.txt", "--format", "markdown", fine__txt=GOOD).out == "no findings in 1 module, 25 rules tried\n"


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
    assert at("step.txt.gz", "both.txt").out.splitlines()[-2] == "9 errors in 3 modules, 25 rules tried"


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
        (("--select", ""), "expected the id of a rule, found ''; --list-rules shows them all"),
        (("--select", " , "), "expected the id of a rule, found ''; --list-rules shows them all"),
        (("--ignore", ""), "expected the id of a rule, found ''; --list-rules shows them all"),
        (("--select", "nothing"), "expected the id of a rule, found 'nothing'; --list-rules shows them all"),
        (("--select", "group-uneven"), "expected the id of a rule, found 'group-uneven'; did you mean groups-uneven?"),
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
    assert run("check", "--explain", "streams").error.startswith(
        "expected the id of a rule, found 'streams'; did you mean stream?"
    )


def test_explain_takes_what_select_takes(run: Run) -> None:
    """A beginning explains all its rules, one after the other, in every form."""
    wanted = [rule.id for rule in ALL_RULES if rule.id.startswith("stream-")]
    text = run("check", "--explain", "stream").out
    assert [line.split(" (")[0] for line in text.splitlines() if line.startswith("stream-")] == wanted
    rules = json.loads(run("check", "--explain", "stream-*", "--format", "json").out)["rules"]
    assert [rule["rule"] for rule in rules] == wanted
    page = run("check", "--explain", "stream", "--format", "markdown").out
    assert re.findall(r"^### (\S+)$", page, re.MULTILINE) == wanted
    assert len(list(csv.reader(io.StringIO(run("check", "--explain", "stream", "--format", "csv").out)))) == 1 + len(
        wanted
    )


def test_list_of_rules(run: Run) -> None:
    """All rules, whatever they are about."""
    listed = json.loads(run("check", "--list-rules", "--format", "json").out)["rules"]
    assert [each["rule"] for each in listed] == [rule.id for rule in ALL_RULES]
    assert [line.split()[0] for line in run("check", "--list-rules", columns=100).out.splitlines()[1:]] == [
        rule.id for rule in ALL_RULES
    ]
    assert len(run("check", "--list-rules", "--format", "markdown").out.splitlines()) == len(ALL_RULES) + 2


# --- the page -------------------------------------------------------------------------------------------------------


def test_page_has_every_rule_as_it_is() -> None:
    """docs/reference/checks.md holds the section of each rule (``python tools/checks_page.py`` mends it)."""
    from checks_page import PAGE, with_rules

    page = PAGE.read_text(encoding="utf-8")
    assert page == with_rules(page)
    assert [rule.id for rule in ALL_RULES] == re.findall(r"^### (\S+)$", page, flags=re.MULTILINE)
