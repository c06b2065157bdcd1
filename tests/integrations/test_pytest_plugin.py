"""The pytest plug-in in projects of its own: made for each test, run by a pytest of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.analysis import expect
from commlens.integrations.pytest_plugin import GoldenFiles, _safe, _shown, pytest_terminal_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parent.parent.parent
PLUGIN = ("-p", "commlens.integrations.pytest_plugin", "-p", "no:cacheprovider")

MODULE = """
TEXT = '''HloModule step, num_partitions=8
ENTRY e {
  p = f32[16] parameter(0)
  ROOT g = f32[64] all-gather(p), channel_id=1, replica_groups=GROUPS, dimensions={0}, use_global_device_ids=true
}
'''
MESH = "data=2,model=4"
"""

TEST = (
    MODULE
    + """
def test_step(commlens_golden):
    commlens_golden(TEXT.replace("GROUPS", "[2,4]<=[8]"), MESH)
"""
)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Return an empty project whose pytest loads our plug-in and no others."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run the tests of a project in this process."""
    return project.runpytest_inprocess(*PLUGIN, *options)


def golden_files(project: pytest.Pytester) -> list[str]:
    """Return every file below a folder of golden files."""
    return sorted(path.relative_to(project.path).as_posix() for path in project.path.rglob("golden/*"))


# --- the life of a golden file --------------------------------------------------------------------------------------


def test_a_missing_file_fails_and_says_what_to_do(project: pytest.Pytester) -> None:
    """Nothing is recorded in silence: the test fails, names the file and the option, and shows what it would say."""
    project.makepyfile(TEST)
    result = run(project)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*expected the golden file *golden*test_a_missing_file_fails_and_says_what_to_do.test_step.comm.txt, found none*",
            "*1      all-gather  model  2 of 4  f32    64 -> 256  1*",
        ]
    )
    assert "pytest --commlens-update" in result.stdout.str()
    assert golden_files(project) == []


def test_a_failure_shows_the_test_and_no_more(project: pytest.Pytester) -> None:
    """What found out that a claim does not hold is no news: frames of the package are hidden, unless it has a bug."""
    project.makepyfile(
        TEST
        + """
def test_claim():
    import commlens
    commlens.expect(TEXT.replace("GROUPS", "[2,4]<=[8]")).count("all-gather", 7)

def test_no_claim():
    import commlens
    commlens.expect(TEXT.replace("GROUPS", "[2,4]<=[8]")).count("all-gather")
"""
    )
    result = run(project)
    result.assert_outcomes(failed=3)
    shown = result.stdout.str()
    golden, claim, question = (
        shown.partition(name)[2].partition("\n____")[0]
        for name in ("__ test_step __", "__ test_claim __", "__ test_no_claim __")
    )
    assert "expected the golden file" in golden
    assert "expected exactly 7 all-gather, found 1" in claim
    assert "commlens/analysis" not in golden + claim
    assert "commlens/integrations" not in golden + claim
    assert "commlens/analysis/expectations" in question


def test_an_update_writes_says_so_and_is_kept(project: pytest.Pytester) -> None:
    """The option writes beside the test and names the file; later runs compare; another update has nothing to do."""
    project.makepyfile(test_life=TEST)
    result = run(project, "--commlens-update")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "=* commlens: golden files written: 1 *=",
            "golden/test_life.test_step.comm.txt",
            "read them before you commit*",
        ]
    )
    assert golden_files(project) == ["golden/test_life.test_step.comm.txt"]
    assert "commlens" not in run(project, "-q").stdout.str()
    again = run(project, "--commlens-update")
    again.assert_outcomes(passed=1)
    again.stdout.fnmatch_lines(["=* commlens: no golden file had to be written *=", "*1 passed*"])


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({"[2,4]<=[8]": "{{0,1,2,3},{4,5,6,7}}"}, {"passed": 1}),
        ({"GROUPS,": "GROUPS, metadata={op_name=\"x\"},", "channel_id=1": "channel_id=5"}, {"passed": 1}),
        (
            {
                "ROOT g = f32[64] all-gather(p)": "s = (f32[16], f32[64]) all-gather-start(p)",
                "ids=true\n": "ids=true\n  ROOT d = f32[64] all-gather-done(s)\n",
            },
            {"passed": 1},
        ),
        ({"[2,4]<=[8]": "[4,2]<=[8]"}, {"failed": 1}),
        ({"f32[16]": "f32[32]", "f32[64]": "f32[128]"}, {"failed": 1}),
        ({"[2,4]<=[8]": "[4,4]<=[8]"}, {"failed": 1}),
        ({"data=2,model=4": "data=4,model=2"}, {"failed": 1}),
    ],
    ids=["list-or-iota", "names", "async", "groups", "bytes", "unread", "mesh"],
)  # fmt: skip
def test_communication_fails_and_spelling_does_not(
    project: pytest.Pytester, change: dict[str, str], outcome: dict[str, int]
) -> None:
    """A golden file is blind to how a module is written and to nothing else."""
    project.makepyfile(test_it=TEST)
    run(project, "--commlens-update").assert_outcomes(passed=1)
    recorded = (project.path / golden_files(project)[0]).read_bytes()
    changed = TEST
    for old, new in change.items():
        assert old in changed
        changed = changed.replace(old, new)
    project.makepyfile(test_it=changed)
    run(project).assert_outcomes(**outcome)
    assert (project.path / golden_files(project)[0]).read_bytes() == recorded


def test_a_stale_file_shows_the_difference_alone(project: pytest.Pytester) -> None:
    """The report of the failure has the lines with - and + and the row behind it."""
    project.makepyfile(test_it=TEST)
    run(project, "--commlens-update")
    project.makepyfile(test_it=TEST.replace("[2,4]<=[8]", "[4,2]<=[8]").replace("f32[64]", "f32[32]"))
    result = run(project)
    result.stdout.fnmatch_lines(
        [
            "*golden file (-) says, found other communication (+)",
            "*- 1  all-gather  model  2 of 4  f32  64 -> 256  1",
            "*+ 1  all-gather  model:(2)2  4 of 2  f32  64 -> 128  1",
            "*g (line 4) in e: f32[[]32], axes model:(2)2, runs 1 x",
        ]
    )
    run(project, "--commlens-update").stdout.fnmatch_lines(["golden/test_it.test_step.comm.txt"])
    run(project).assert_outcomes(passed=1)


def test_a_claim_without_the_fixture_is_renewed_too(project: pytest.Pytester) -> None:
    """``expect(...).golden(path)`` follows the option, in tests and in their fixtures; update=False does not."""
    project.makepyfile(
        test_plain=MODULE
        + """
import pytest
from pathlib import Path
from commlens import expect

HERE = Path(__file__).parent

@pytest.fixture
def program():
    claims = expect(TEXT.replace("GROUPS", "[4,2]<=[8]"), MESH).golden(HERE / "fixture.comm.txt")
    yield claims
    claims.golden(HERE / "teardown.comm.txt")

def test_step(program):
    expect(TEXT.replace("GROUPS", "[2,4]<=[8]"), MESH).count("all-gather", 1).golden(HERE / "plain.comm.txt")

def test_never(program):
    program.golden(HERE / "never.comm.txt", update=False)
"""
    )
    result = run(project, "--commlens-update")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*golden files written: 3*", "fixture.comm.txt", "plain.comm.txt", "teardown.comm.txt"]
    )
    result = run(project, "-k", "step")
    result.assert_outcomes(passed=1)


# --- names ----------------------------------------------------------------------------------------------------------

MANY = (
    MODULE
    + """
import pytest

GROUPS = {"iota": "[2,4]<=[8]", "Iota": "[4,2]<=[8]", "a/b": "[1,8]<=[8]", "a_b": "[8,1]<=[8]", "../..": "{{0,1}}", "": "{{0,2}}"}

@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS.keys())
@pytest.mark.parametrize("size", [16, 1.5])
def test_step(commlens_golden, groups, size):
    commlens_golden(TEXT.replace("GROUPS", groups), MESH)

class TestLayer:
    def test_step(self, commlens_golden):
        commlens_golden(TEXT.replace("GROUPS", "[2,4]<=[8]"), MESH)
        commlens_golden(TEXT.replace("GROUPS", "[4,2]<=[8]"), MESH, name="decode")
"""
)


def test_every_case_has_a_file_of_its_own(project: pytest.Pytester) -> None:
    """Parameters, classes, files and folders: no two share a file, none leaves the folder, not even without case."""
    project.makepyfile(test_many=MANY, test_other=MANY)
    sub = project.mkdir("sub")
    (sub / "test_third.py").write_text(MANY)
    run(project, "--commlens-update").assert_outcomes(passed=39)
    files = golden_files(project)
    assert len({name.lower() for name in files}) == len(files) == 3 * 14
    assert {name for name in files if "size" not in name and "1.5" not in name and "16" not in name} == {
        f"{folder}golden/{file}.TestLayer.test_step{name}.comm.txt"
        for folder, file in (("", "test_many"), ("", "test_other"), ("sub/", "test_third"))
        for name in ("", "+decode")
    }
    assert "golden/test_many.test_step-16-iota.comm.txt" in files
    run(project).assert_outcomes(passed=39)


def test_two_programs_of_one_test_need_names(project: pytest.Pytester) -> None:
    """The second would overwrite the first: it is refused, with an update too."""
    project.makepyfile(test_two=TEST + "    commlens_golden(TEXT.replace('GROUPS', '[4,2]<=[8]'), MESH)\n")
    for options in ((), ("--commlens-update",)):
        run(project, *options).assert_outcomes(failed=1)
    run(project).stdout.fnmatch_lines(["*tell them apart with name=...*"])


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=200), unique=True, min_size=2, max_size=8))
def test_any_texts_make_safe_names_of_their_own(texts: list[str]) -> None:
    """Every text has its own short name of harmless characters, on file systems without case as well."""
    names = [_safe(text) for text in texts]
    assert len({name.lower() for name in names}) == len(texts)
    assert all(len(name) < 140 and set(name) <= SAFE for name in names)


SAFE = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def test_paths_are_shown_from_the_root(tmp_path: Path) -> None:
    """Files of the project are named from its root, others in full."""
    assert _shown(tmp_path / "a" / "b.txt", tmp_path) == "a/b.txt"
    assert _shown(tmp_path / "b.txt", tmp_path / "a") == str(tmp_path / "b.txt")
    assert GoldenFiles(tmp_path / "t").path("x y").name.startswith("t+x_y-")


# --- workers --------------------------------------------------------------------------------------------------------


def started(project: pytest.Pytester, *options: str, paths: Sequence[Path] = ()) -> subprocess.Popen[str]:
    """Start a pytest of its own in a project."""
    path = os.pathsep.join([str(ROOT / "src"), *map(str, paths)])
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *options],
        cwd=project.path,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_runs_at_once_do_not_trouble_each_other(project: pytest.Pytester) -> None:
    """Two processes write the same files of one project, as workers may: whole files, both pass, nothing is left over."""
    project.makepyfile(test_many=MANY)
    runs = [started(project, *PLUGIN, "-q", "--commlens-update") for _ in range(2)]
    outputs = [each.communicate(timeout=120)[0] for each in runs]
    assert [each.returncode for each in runs] == [0, 0], outputs
    assert len(golden_files(project)) == 14
    assert not [path for path in project.path.rglob(".*comm.txt*")]
    run(project).assert_outcomes(passed=13)


def test_what_workers_wrote_is_said_once(pytester: pytest.Pytester) -> None:
    """The summary goes by reports alone, which workers send: of setup, call and teardown, from any process."""
    lines: list[str] = []
    said = [SimpleNamespace(user_properties=[("commlens golden file written", name), ("other", "x")]) for name in "bab"]
    reporter = SimpleNamespace(
        stats={"passed": said, "deselected": [object()], "": []},
        write_sep=lambda _, text: lines.append(text),
        write_line=lines.append,
        config=pytester.parseconfig(),
    )
    pytest_terminal_summary(reporter)  # type: ignore[arg-type]
    assert lines == ["commlens: golden files written: 2", "a", "b", "read them before you commit them"]


# --- installed and absent -------------------------------------------------------------------------------------------


def test_installed_it_is_found_by_itself(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry point of pyproject.toml is what pytest loads, under warnings as errors; no analysis is imported for it."""
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]["pytest11"]
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    installed = project.mkdir("installed") / "commlens-0.0.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: commlens\nVersion: 0.0.0\n")
    (installed / "RECORD").write_text("commlens/__init__.py,,\n")
    points = "\n".join(f"{name} = {target}" for name, target in stated.items())
    (installed / "entry_points.txt").write_text(f"[pytest11]\n{points}\n")
    project.makepyfile(
        test_found="""
import sys

def test_is_there(request, commlens_golden):
    assert commlens_golden.path().name == "test_found.test_is_there.comm.txt"
    assert request.config.pluginmanager.has_plugin("commlens")
    assert not {"commlens.analysis", "commlens.hlo", "google"} & set(sys.modules)
"""
    )
    run = started(project, "-q", "-p", "no:cacheprovider", "test_found.py", paths=[installed.parent])
    output = run.communicate(timeout=120)[0]
    assert run.returncode == 0, output


def test_without_pytest_nothing_else_misses_it() -> None:
    """The package and its assertions work where pytest is not installed."""
    script = (
        "import sys; sys.modules['pytest'] = sys.modules['_pytest'] = None\n"
        "import commlens, commlens.integrations, commlens.integrations.jax, commlens.analysis\n"
        "commlens.expect('HloModule m\\nENTRY e {\\n  ROOT p = f32[4] parameter(0)\\n}\\n').none()\n"
        "print('fine')"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env)
    assert done.stdout == "fine\n"


def test_the_option_is_off_by_itself(project: pytest.Pytester) -> None:
    """Help names it, and other tests of a project see nothing of us."""
    project.makepyfile(test_plain="def test_plain():\n    assert sum([1, 2]) == 3\n")
    result = run(project)
    result.assert_outcomes(passed=1)
    assert "commlens" not in "".join(result.outlines[3:])
    assert "--commlens-update" in run(project, "--help").stdout.str()
    expect("HloModule m\nENTRY e {\n  ROOT p = f32[4] parameter(0)\n}\n").none()
