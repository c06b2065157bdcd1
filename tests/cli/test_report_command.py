"""``commlens report``."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commlens import load, load_all, report
from commlens.cli import main

if TYPE_CHECKING:
    from command_line import Run

HERE = Path(__file__).parent
STEP = "data/train_step.hlo"
MESH = ("--mesh", "data=2,model=4")

TINY = """HloModule {name}, num_partitions=2
ENTRY main {{
  x = f32[4]{{0}} parameter(0)
  ROOT r = f32[4]{{0}} all-reduce(x), channel_id=1, replica_groups={groups}, use_global_device_ids=true, to_apply=add
}}
"""


def tiny(name: str = "tiny", groups: str = "{{0,1}}") -> str:
    """Return a module with one all-reduce."""
    return TINY.format(name=name, groups=groups)


def golden(name: str) -> str:
    """Return an expected output."""
    return (HERE / "golden" / name).read_text(encoding="utf-8")


# --- the table ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_the_table_as_it_looks(run: Run, columns: int) -> None:
    """The whole table, at three widths: rows put together, unknowns marked, conditionals named, totals at the end."""
    outcome = run("report", STEP, *MESH, columns=columns)
    assert outcome.code == 0
    assert outcome.out == golden(f"report-{columns}.txt")


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_the_table_fits_the_terminal(run: Run, columns: int) -> None:
    """No line is wider than the terminal."""
    assert max(map(len, run("report", STEP, *MESH, columns=columns).out.splitlines())) <= columns


def test_the_markdown_as_it_looks(run: Run) -> None:
    """The Markdown form, whole."""
    assert run("report", STEP, *MESH, "--format", "markdown").out == golden("report.md")


def test_none_is_said_only_where_it_is_known(run: Run, tmp_path: Path) -> None:
    """A module without collectives says so; one whose only collective cannot be read does not."""
    silent, unreadable = tmp_path / "silent.hlo", tmp_path / "unreadable.hlo"
    silent.write_text("HloModule m\nENTRY e {\n  ROOT x = f32[4] parameter(0)\n}\n")
    unreadable.write_text(tiny(groups="{{0,1"))
    assert "no collectives, " in run("report", str(silent)).out
    told = run("report", str(unreadable))
    assert "no collectives" not in told.out
    assert "no collective could be read" in told.out
    assert "1 thing that may communicate could not be read" in told.out


# --- JSON and CSV ---------------------------------------------------------------------------------------------------


def test_json_is_what_the_library_says(run: Run) -> None:
    """The JSON form holds the keys of the report, in order, and its schema first."""
    outcome = run("report", STEP, *MESH, "--format", "json")
    answer = json.loads(outcome.out)
    assert list(answer) == ["schema", "modules"]
    assert answer["schema"] == "commlens.report/1"
    (module,) = load_all(HERE / STEP)
    expected = report(module, "data=2,model=4").as_dict() | {"path": STEP}
    assert answer["modules"] == [json.loads(json.dumps(expected))]
    assert list(answer["modules"][0]) == list(expected)


def test_json_has_a_row_to_a_line(run: Run) -> None:
    """Rows stand on lines of their own, for diff and grep."""
    lines = run("report", STEP, "--format", "json").out.splitlines()
    rows = [json.loads(line.rstrip(",")) for line in lines if line.startswith('{"name"')]
    assert len(rows) == 7


def test_json_keeps_large_numbers(run: Run, tmp_path: Path) -> None:
    """Ids and sizes beyond what a float holds are exact."""
    file = tmp_path / "m.hlo"
    file.write_text(
        tiny().replace("f32[4]", "f32[9007199254740993]").replace("channel_id=1", f"channel_id={2**63 - 1}")
    )
    (row,) = json.loads(run("report", str(file), "--format", "json").out)["modules"][0]["collectives"]
    assert (row["channel_id"], row["operand_bytes"]) == (2**63 - 1, 4 * 9007199254740993)


def test_csv_has_a_row_for_every_collective(run: Run) -> None:
    """One line per collective, with the values of the JSON form."""
    rows = list(csv.DictReader(io.StringIO(run("report", STEP, *MESH, "--format", "csv").out, newline="")))
    expected = report(load(HERE / STEP), "data=2,model=4").collectives
    assert [row["name"] for row in rows] == [row.name for row in expected]
    first, *_, last = rows
    assert (first["axes"], first["replica_groups"], first["result_bytes"]) == ("model", "[2,4]<=[8]", "16384")
    assert (first["async"], first["trip_count"], first["op_name"]) == ("false", "24", "step/gather")
    assert (last["axes"], last["num_devices_per_group"], last["via"]) == ("", "", "")


def test_csv_tells_no_axes_from_unknown_axes(run: Run, tmp_path: Path) -> None:
    """Groups of one device run along no axis, which is not the same as an empty cell."""
    file = tmp_path / "m.hlo"
    file.write_text(tiny(groups="{{0},{1}}"))
    for options, axes in ((("--mesh", "a=2"), "none"), ((), "")):
        text = run("report", str(file), "--format", "csv", *options).out
        (row,) = csv.DictReader(io.StringIO(text, newline=""))
        assert row["axes"] == axes


def test_full_lists_every_id(run: Run, tmp_path: Path) -> None:
    """Ids above 4096 are left out unless --full asks for them."""
    file = tmp_path / "m.hlo"
    file.write_text(tiny(groups="[1,5000]<=[5000]").replace("num_partitions=2", "num_partitions=5000"))
    for options, number in (((), None), (("--full",), 5000)):
        (row,) = json.loads(run("report", str(file), "--format", "json", *options).out)["modules"][0]["collectives"]
        groups = row["replica_groups"]["groups"]
        assert (None if groups is None else len(groups[0])) == number


# --- inputs ---------------------------------------------------------------------------------------------------------


def test_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """``-`` is standard input; options may stand before it."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(tiny().encode())))
    (module,) = json.loads(run("report", "--format", "json", "-").out)["modules"]
    assert (module["path"], module["name"]) == ("-", "tiny")


def test_a_closed_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without standard input says so."""
    monkeypatch.setattr("sys.stdin", None)
    assert "which is closed" in run("report", "-").error


def test_several_files_are_several_modules(run: Run, tmp_path: Path) -> None:
    """Modules come in the order of the files."""
    for name in ("b", "a"):
        (tmp_path / name).write_text(tiny(name))
    modules = json.loads(run("report", str(tmp_path / "b"), str(tmp_path / "a"), "--format", "json").out)["modules"]
    assert [module["name"] for module in modules] == ["b", "a"]
    table = run("report", str(tmp_path / "b"), str(tmp_path / "a")).out
    assert table.index("b  ") < table.index("a  ")
    assert table.count("received: bytes") == 1


def test_stages_of_a_dump(run: Run, tmp_path: Path) -> None:
    """Of a folder that XLA dumped to, --stage chooses."""
    for stage in ("before", "after"):
        name = f"module_0001.m.{'cpu_' if stage == 'after' else ''}{stage}_optimizations.txt"
        (tmp_path / name).write_text(tiny(stage))
    for stage, names in {
        "last": ["after"],
        "before": ["before"],
        "after": ["after"],
        "all": ["after", "before"],
    }.items():
        modules = json.loads(run("report", str(tmp_path), "--stage", stage, "--format", "json").out)["modules"]
        assert sorted(module["name"] for module in modules) == names


def test_stated_counts(run: Run, tmp_path: Path) -> None:
    """--replicas and --partitions overrule what the module says."""
    file = tmp_path / "m.hlo"
    file.write_text(tiny())
    (module,) = json.loads(run("report", str(file), "--replicas", "4", "--partitions", "1", "--format", "json").out)[
        "modules"
    ]
    assert (module["replica_count"], module["num_partitions"]) == (4, 1)


def test_too_large_an_input(run: Run) -> None:
    """--max-bytes refuses what is larger, in units as people write them."""
    assert "--max-bytes" in run("report", STEP, "--max-bytes", "1KiB").error
    assert run("report", STEP, "--max-bytes", "1M").code == 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param(None, "No such file", id="missing"),
        pytest.param(b"", "an empty file", id="empty"),
        pytest.param(b"\x00\x01\x02", "expected", id="rubbish"),
        pytest.param(b"hello\n", "expected", id="prose"),
        pytest.param(b"\x1f\x8bxxxx", "gzip", id="wrong-gzip"),
    ],
)
def test_an_input_without_a_module(run: Run, tmp_path: Path, content: bytes | None, says: str) -> None:
    """An input that holds no module ends with 2 and names the file, a text with line and column."""
    file = tmp_path / "in"
    if content is not None:
        file.write_bytes(content)
    error = run("report", str(file)).error
    assert error.startswith(f"{file}:1:1: " if content == b"hello\n" else f"{file}: ")
    assert says in error


def test_an_empty_name_is_no_folder(run: Run) -> None:
    """An unset variable in a script does not make the command read whatever lies around."""
    assert "an empty one" in run("report", "").error


def test_one_bad_file_silences_all(run: Run, tmp_path: Path) -> None:
    """Without --keep-going nothing is on standard output, whichever file is bad."""
    bad = tmp_path / "bad"
    bad.write_bytes(b"")
    assert run("report", STEP, str(bad)).error.startswith(f"{bad}: ")


def test_keep_going_reports_the_others(run: Run, tmp_path: Path) -> None:
    """With --keep-going the good files are reported; the fault comes last and the exit code is still 2."""
    bad = tmp_path / "bad"
    bad.write_bytes(b"")
    outcome = run("report", str(bad), STEP, "--keep-going", "--format", "json")
    assert outcome.code == 2
    assert [module["name"] for module in json.loads(outcome.out)["modules"]] == ["train_step"]
    warning, error = outcome.err.splitlines()
    assert warning.startswith(f"commlens: warning: {STEP}:55: ")
    assert error.startswith(f"commlens: error: {bad}: ")


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_keep_going_without_any_module(run: Run, tmp_path: Path, form: str) -> None:
    """Where no file holds a module there is nothing to report, not even an empty answer."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"")
    outcome = run("report", str(tmp_path / "a"), str(tmp_path / "b"), "--keep-going", "--format", form)
    assert (outcome.code, outcome.out, outcome.err.count("commlens: error: ")) == (2, "", 2)


# --- warnings -------------------------------------------------------------------------------------------------------


def test_unread_collectives_are_warnings(run: Run) -> None:
    """What could not be read is a warning with its place; the report is still a success."""
    outcome = run("report", STEP)
    assert outcome.code == 0
    (warning,) = outcome.err.splitlines()
    assert warning.startswith(f"commlens: warning: {STEP}:55: ")
    assert "all-reduce.3" in warning
    assert len(json.loads(run("report", STEP, "--format", "json").out)["modules"][0]["unread"]) == 1


def test_at_most_twenty_warnings(run: Run, tmp_path: Path) -> None:
    """After 20 warnings a count stands for the rest."""
    lines = "".join(f"  r{i} = f32[4] all-reduce(x), replica_groups={{{{0,z}}}}, to_apply=add\n" for i in range(25))
    file = tmp_path / "m.hlo"
    file.write_text(f"HloModule m\nENTRY e {{\n  x = f32[4] parameter(0)\n{lines}}}\n")
    warnings = run("report", str(file)).err.splitlines()
    assert len(warnings) == 21
    assert "and 5 more" in warnings[-1] or warnings[-1].startswith("commlens: warning: 5 more")


# --- writing into a file --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_output_into_a_file(run: Run, tmp_path: Path, form: str) -> None:
    """-o writes what standard output would have got, and nothing there."""
    file = tmp_path / "out"
    outcome = run("report", STEP, "--format", form, "-o", str(file))
    assert (outcome.code, outcome.out) == (0, "")
    assert file.read_text(encoding="utf-8") == run("report", STEP, "--format", form).out
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_dash_is_standard_output(run: Run) -> None:
    """``-o -`` writes where no -o would."""
    assert run("report", STEP, "-o", "-").out == run("report", STEP).out


def test_a_failed_run_leaves_the_old_file(run: Run, tmp_path: Path) -> None:
    """A run that fails does not touch the output of an older one."""
    file = tmp_path / "out"
    file.write_text("old")
    assert run("report", STEP, "/nowhere/at/all", "-o", str(file)).error
    assert file.read_text() == "old"


def test_an_output_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    """The error names the file that was asked for."""
    file = tmp_path / "no" / "out"
    assert run("report", f"{HERE}/{STEP}", "-o", str(file), "--format", "json").error.startswith(f"{file}: ")


# --- hostile modules ------------------------------------------------------------------------------------------------

HOSTILE = """HloModule [red]m\x1b[31m, num_partitions=2
ENTRY =cmd|x {
  x = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, \
to_apply=add, frontend_attributes={_k="=1+1",b="<script>alert(1)</script>"}, \
metadata={op_name="=HYPERLINK(1)" source_file="@\u202egnp.exe" source_line=3}
}
"""


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_hostile_names_do_nothing(run: Run, tmp_path: Path, form: str) -> None:
    """Names, paths and attributes are data: nothing reaches the output that a terminal, page or spreadsheet obeys."""
    file = tmp_path / "\x1b]0;title\x07|<b>=.hlo"
    file.write_text(HOSTILE, encoding="utf-8")
    outcome = run("report", str(file), "--format", form, columns=300)
    assert (outcome.code, outcome.err) == (0, "")
    for stream in (outcome.out, outcome.err):
        assert all(line.isprintable() for line in stream.splitlines())
    if form == "csv":
        cells = [cell for row in csv.reader(io.StringIO(outcome.out, newline="")) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
        assert "'=HYPERLINK(1)" in cells
    if form == "markdown":
        assert re.search(r"<[A-Za-z/!]", outcome.out) is None


def test_very_long_names_do_not_fill_the_screen(run: Run, tmp_path: Path) -> None:
    """Names of any length leave the table readable; the JSON form has them whole."""
    name = "n" * 100_000
    file = tmp_path / "m.hlo"
    file.write_text(tiny(name).replace("ROOT r ", f"ROOT {name} "))
    assert max(map(len, run("report", str(file), columns=120).out.splitlines())) < 1000
    assert json.loads(run("report", str(file), "--format", "json").out)["modules"][0]["collectives"][0]["name"] == name


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_any_encoding_of_standard_output(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    """A terminal without box characters gets plain ones."""
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding=encoding))
    assert main(["explain", "[2,2]<=[4]"]) == 0
    assert "+-------------+" in written.getvalue().decode(encoding)
