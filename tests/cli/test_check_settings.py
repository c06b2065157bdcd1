"""``commlens check``: baselines and settings files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from check_command import BAD, GOOD, findings

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Outcome, Run


# --- baselines ------------------------------------------------------------------------------------------------------


def test_baseline(at: Callable[..., Outcome]) -> None:
    """Today's findings are accepted, tomorrow's are not, and those that are gone are said."""
    assert at("step.txt", "--format", "json", "-o", "old.json", step__txt=BAD).code == 1
    accepted = at("step.txt", "--baseline", "old.json")
    assert accepted.code == 0
    assert accepted.out == "no findings in 1 module, 25 rules tried\n3 more findings accepted by the baseline.\n"
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
        (
            '[check.per-file-ignores]\nx = ["nothing"]\n',
            "commlens.toml: expected the id of a rule, found 'nothing'",
        ),
        ('[check]\nselect = ["nothing"]\n', "commlens.toml: expected the id of a rule, found 'nothing'"),
        (
            '[check]\nignore = ["unrad"]\n',
            "commlens.toml: expected the id of a rule, found 'unrad'; did you mean unread?",
        ),
        ('[checks]\nselect = ["unread"]\n', "commlens.toml: expected the table [check] alone, found checks"),
        ('select = ["unread"]\n', "commlens.toml: expected the table [check] alone, found select"),
        ("[check]\n[chekc.per-file-ignores]\n", "commlens.toml: expected the table [check] alone, found chekc"),
    ],
)
def test_settings_that_are_none(at: Callable[..., Outcome], text: str, error: str) -> None:
    """A slip in the settings is named with its file, and with its place where that is known."""
    assert at("step.txt", step__txt=GOOD, commlens__toml=text).error.startswith(error)


def test_what_a_project_says_of_others_is_theirs(at: Callable[..., Outcome], tmp_path: Path) -> None:
    """In pyproject.toml only what stands under tool.commlens is ours; a slip there is named."""
    project = tmp_path / "pyproject.toml"
    project.write_text('[tool.other]\nchecks = 1\n[checks]\na = 1\n[tool.commlens.check]\nignore = ["unread"]\n')
    assert at("step.txt", step__txt=GOOD).code == 0
    project.write_text('[tool.commlens.checks]\nignore = ["unread"]\n')
    wanted = (
        "expected the table [tool.commlens.check] alone, found tool.commlens.checks; did you mean tool.commlens.check?"
    )
    assert at("step.txt").error == f"pyproject.toml: {wanted}"


def test_settings_must_be_text(at: Callable[..., Outcome], tmp_path: Path) -> None:
    """Other bytes than UTF-8 are no settings."""
    (tmp_path / "commlens.toml").write_bytes(b"\xff\xfe")
    assert "expected settings in TOML, which is UTF-8" in at("step.txt", step__txt=GOOD).error
