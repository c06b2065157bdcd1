"""``commlens diff``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from command_line import Run

HERE = Path(__file__).parent
OLD, NEW = "data/old_step.hlo", "data/new_step.hlo"
MESH = ("--mesh", "data=2,model=4")

TINY = """HloModule tiny{header}
ENTRY e {{
  x = f32[4] parameter(0)
  ROOT r = f32[4] all-reduce(x), channel_id={channel}, replica_groups={groups}, use_global_device_ids=true, to_apply=add
}}
"""


def tiny(groups: str = "{{0,1}}", *, channel: int = 1, header: str = ", num_partitions=2") -> str:
    """Return a module with one all-reduce."""
    return TINY.format(groups=groups, channel=channel, header=header)


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Return a function that writes texts into files and returns their names."""

    def write(*texts: str) -> list[str]:
        files = [tmp_path / f"{number}.hlo" for number in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
        return list(map(str, files))

    return write


# --- how it looks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_as_it_looks(run: Run, columns: int) -> None:
    """The whole table: both modules, one sentence, changes with what differs below, sums that differ, notes."""
    outcome = run("diff", OLD, NEW, *MESH, columns=columns)
    assert (outcome.code, outcome.err) == (1, "")
    assert outcome.out == (HERE / "golden" / f"diff-{columns}.txt").read_text(encoding="utf-8")


def test_the_markdown_as_it_looks(run: Run) -> None:
    """The Markdown form, whole."""
    expected = (HERE / "golden" / "diff.md").read_text(encoding="utf-8")
    assert run("diff", OLD, NEW, *MESH, "--format", "markdown").out == expected


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_the_table_fits_the_terminal(run: Run, columns: int) -> None:
    """No line is wider than the terminal."""
    assert max(map(len, run("diff", OLD, NEW, *MESH, columns=columns).out.splitlines())) <= columns


def test_changes_that_are_alike_stand_together(run: Run, write: Any) -> None:
    """Collectives that changed in the same way are one line with a count, other channels are not listed one by one."""
    line = (
        "  r{0} = f32[4] all-reduce(x), channel_id={1}, replica_groups={2}, use_global_device_ids=true, to_apply=add\n"
    )
    texts = [
        "HloModule m, num_partitions=2\nENTRY e {\n  x = f32[4] parameter(0)\n"
        + "".join(line.format(number, number + shift, groups) for number in range(30))
        + "}\n"
        for shift, groups in ((1, "{{0,1}}"), (2, "[1,2]<=[2]"))
    ]
    outcome = run("diff", *write(*texts))
    assert outcome.code == 0
    assert outcome.out.count("r0 and 29 more") == 2
    assert "replica_groups {{0,1}} -> [1,2]<=[2]; other channels" in outcome.out
    assert len(outcome.out.splitlines()) < 12


@pytest.mark.parametrize(
    ("opcode", "axes"), [("all-reduce", "model (shuffled)"), ("all-gather", "?")], ids=["sum", "concatenation"]
)
def test_axes_of_shuffled_groups(run: Run, write: Any, opcode: str, axes: str) -> None:
    """They are named where the order of members changes no result; JSON and CSV keep the axes of rows."""
    line = "ROOT r = f32[4] {}(x), channel_id=1, replica_groups={}, dimensions={{0}}, use_global_device_ids=true"
    texts = [
        f"HloModule m, num_partitions=4\nENTRY e {{\n  x = f32[4] parameter(0)\n  {line.format(opcode, groups)}\n}}\n"
        for groups in ("{{1,0},{2,3}}", "{{0,2},{1,3}}")
    ]
    arguments = ("diff", *write(*texts), "--mesh", "data=2,model=2")
    assert f" {opcode}  {axes}  " in run(*arguments, columns=120).out
    (change,) = json.loads(run(*arguments, "--format", "json").out)["changes"]
    assert (change["axes"], change["before"]["axes"]) == (None, None)
    _, row = csv.reader(io.StringIO(run(*arguments, "--format", "csv").out))
    assert row[2] == ""


# --- JSON and CSV ---------------------------------------------------------------------------------------------------


def test_json_has_the_keys_of_the_contract(run: Run) -> None:
    """One object with the changes, each with rows as ``report`` has them, and whether the communication is the same."""
    answer = json.loads(run("diff", OLD, NEW, *MESH, "--format", "json").out)
    assert answer["schema"] == "commlens.diff/1"
    assert answer["same_communication"] is False
    kinds = [change["kind"] for change in answer["changes"]]
    assert kinds == [*["changed"] * 5, "added", "order", "spelling"]
    report = json.loads(run("report", OLD, *MESH, "--format", "json").out)["modules"][0]
    rows = {row["name"]: row for row in report["collectives"]}
    for change in answer["changes"]:
        assert change["before"] is None or change["before"] == rows[change["before"]["name"]]
    reduced = next(change for change in answer["changes"] if change["opcode"] == "all-reduce")
    assert (reduced["axes"], reduced["after"]["axes"]) == (["data"], ["model"])
    assert answer["before"]["totals"] == report["totals"]
    assert answer["before"]["path"] == OLD


def test_json_has_sums_before_and_after(run: Run) -> None:
    """Every axis and operation has its sums in both modules, null where there are none."""
    totals = json.loads(run("diff", OLD, NEW, *MESH, "--format", "json").out)["totals"]
    found = {
        (total["axes"], total["opcode"]): [each and each["count"] for each in (total["before"], total["after"])]
        for total in totals
    }
    assert found["data", "all-reduce"] == [1, None]
    assert found["model", "all-to-all"] == [None, 1]
    assert found["data", "all-gather"] == [1, 1]


def test_json_has_a_change_to_a_line(run: Run) -> None:
    """Changes stand on lines of their own."""
    lines = run("diff", OLD, NEW, "--format", "json").out.splitlines()
    assert sum(line.startswith('{"kind"') for line in lines) == 8


def test_csv_has_a_line_for_every_change(run: Run) -> None:
    """What changed, and the place in both modules; an empty cell is nothing, ``none`` is no axes."""
    text = run("diff", OLD, NEW, *MESH, "--format", "csv").out
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["kind"] for row in rows] == [*["changed"] * 5, "added", "order", "spelling"]
    added = rows[5]
    assert (added["before"], added["after"], added["after_line"], added["axes"]) == ("", "all-to-all.1", "54", "model")


# --- exit codes -----------------------------------------------------------------------------------------------------


def test_the_same_module(run: Run) -> None:
    """Exit code 0, and it is said."""
    outcome = run("diff", OLD, OLD)
    assert outcome.code == 0
    assert "the communication is the same" in outcome.out
    assert json.loads(run("diff", OLD, OLD, "--format", "json").out)["changes"] == []


def test_spelling_alone_is_no_difference(run: Run, write: Any) -> None:
    """Exit code 0 where only the spelling differs, which is said apart."""
    outcome = run("diff", *write(tiny(), tiny("[1,2]<=[2]", channel=7)))
    assert outcome.code == 0
    assert "the communication is the same; 1 collective spelled in another way" in outcome.out


def test_unread_items_are_warnings_and_no_claim(run: Run) -> None:
    """Exit code 1: nothing differs as far as one can see, which is not enough; the warnings name the place."""
    step = "data/train_step.hlo"
    outcome = run("diff", step, step)
    assert outcome.code == 1
    assert "whether the communication is the same cannot be said" in " ".join(outcome.out.split())
    warnings = outcome.err.splitlines()
    assert len(warnings) == 2
    assert all(warning.startswith(f"commlens: warning: {step}:55: all-reduce all-reduce.3: ") for warning in warnings)
    answer = json.loads(run("diff", step, step, "--format", "json").out)
    assert (answer["same_communication"], answer["changes"]) == (None, [])
    assert len(answer["before"]["unread"]) == 1


def test_counts_can_be_stated(run: Run, write: Any) -> None:
    """--replicas and --partitions hold for both modules."""
    text = tiny("{}", header="").replace(", channel_id=1", "").replace(", use_global_device_ids=true", "")
    files = write(text, text.replace("replica_groups={}", "replica_groups={{0,1}}"))
    assert run("diff", *files).code == 1
    assert run("diff", *files, "--replicas", "2").code == 0
    assert run("diff", *files, "--replicas", "4").code == 1


# --- faults ---------------------------------------------------------------------------------------------------------


def test_inputs_that_cannot_be_read(run: Run, write: Any) -> None:
    """A file that is not there, or holds no module, ends with 2 and names it, whichever it is."""
    assert run("diff", OLD, "no.hlo").error.startswith("no.hlo: ")
    assert run("diff", "no.hlo", OLD).error.startswith("no.hlo: ")
    (empty,) = write("")
    assert run("diff", OLD, empty).error.startswith(f"{empty}: ")


def test_several_modules_on_one_side(run: Run, write: Any, tmp_path: Path) -> None:
    """What to compare must be one module: the message says how many there are."""
    write(tiny(), tiny())
    assert "found 2" in run("diff", OLD, str(tmp_path)).error


@pytest.mark.parametrize("arguments", [(), (OLD,), (OLD, NEW, OLD)])
def test_a_wrong_number_of_files(run: Run, arguments: tuple[str, ...]) -> None:
    """Exactly two."""
    assert "see commlens diff --help" in run("diff", *arguments).error


def test_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either side may be standard input."""
    content = (HERE / OLD).read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert run("diff", "-", OLD).code == 0


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_hostile_names_do_nothing(run: Run, tmp_path: Path, form: str) -> None:
    """Names of modules and files are shown, never acted upon."""
    file = tmp_path / "\x1b]0;title\x07|<b>=.hlo"
    file.write_text(tiny().replace("HloModule tiny", "HloModule [red]m\x1b[31m").replace("ENTRY e", "ENTRY =cmd|x"))
    outcome = run("diff", str(file), OLD, "--format", form, columns=300)
    assert outcome.code == 1
    assert all(line.isprintable() for line in outcome.out.splitlines())


def test_output_into_a_file(run: Run, tmp_path: Path) -> None:
    """-o writes the answer; the exit code says the same as without it."""
    file = tmp_path / "out.json"
    outcome = run("diff", OLD, NEW, "--format", "json", "-o", str(file))
    assert (outcome.code, outcome.out) == (1, "")
    assert file.read_text() == run("diff", OLD, NEW, "--format", "json").out
