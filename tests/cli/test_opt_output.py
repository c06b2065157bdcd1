"""``commlens opt``: where the module goes, and what goes wrong there."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commlens.cli.opt_command import command

if TYPE_CHECKING:
    from command_line import Run

TEXT = """HloModule step, num_partitions=2

ENTRY main {
  p = f32[8] parameter(0)
  ROOT g = f32[16] all-gather(p), replica_groups={{0,1}}, dimensions={0}, frontend_attributes={collective_type="tp_all_gather"}
}
"""
STAMPED = TEXT.replace('"}\n', '",stream_id="0"}\n')
STAMP = "aws_neuron_collective_stream_id_injector"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file with the text."""
    path = tmp_path / "step.hlo"
    path.write_text(TEXT)
    return path


def shell(command: str, file: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which OPT stamps the file."""
    opt = f"{sys.executable} -m commlens opt --passes {STAMP} {file}"
    line = command.replace("OPT", opt)
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, cwd=file.parent)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param("OPT -o - >&-", "-: standard output is closed: expected it open", id="module"),
        pytest.param("OPT -o out.hlo >&-", "-: standard output is closed: expected it open", id="answer"),
        pytest.param("OPT -o - > /dev/full", "-: standard output cannot be written: no space left on device", id="full"),
        pytest.param("OPT -o out.hlo > /dev/full", "-: standard output cannot be written: no space left", id="answer-full"),
        pytest.param("OPT -o /dev/full", "/dev/full: the module cannot be written there: no space left", id="device"),
        pytest.param("OPT -o /dev/fd/77", "/dev/fd/77: the module cannot be written there: bad file descriptor", id="not-open"),
        pytest.param("ln -s a b; ln -s b a; OPT -o a", "a: the module cannot be written there: too many levels of sym", id="loop"),
        pytest.param("ln -s a.pb b.pb; ln -s b.pb a.pb; OPT -o a.pb", "a.pb: expected a name such as a.txt", id="loop-of-another-form"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_one_line(line: str, says: str, file: Path) -> None:
    """Exit code 2 and no traceback, not even from the interpreter when it ends."""
    done = shell(line, file)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"commlens: error: {says}")


def test_nothing_is_written_where_the_answer_cannot_be_shown(file: Path) -> None:
    """A closed standard output is noticed before."""
    shell("OPT -o out.hlo >&-", file)
    assert not file.with_name("out.hlo").exists()


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("OPT -o - | cat", id="dash"),
        pytest.param("OPT -o /dev/stdout | cat", id="name"),
        pytest.param("OPT -o /dev/fd/1 | cat", id="number"),
        pytest.param("OPT -o /proc/self/fd/1 | cat", id="process"),
        pytest.param("OPT -o /dev/stdout > out; cat out", id="into-a-file"),
        pytest.param("OPT -o /dev/fd/5 5>&1 >answer", id="another-number"),
        pytest.param("exec 5>&1; OPT -o >(cat >&5) >answer; wait $!; sleep 0.2", id="process-substitution"),
        pytest.param("mkfifo pipe; timeout 60 cat pipe & OPT -o pipe >answer; wait", id="pipe-with-a-name"),
    ],
)
def test_what_is_no_file_is_written_straight(line: str, file: Path) -> None:
    """The module alone comes out there, all of it."""
    done = shell(line, file)
    assert (done.returncode, done.stdout, done.stderr) == (0, STAMPED, "")


def test_what_was_in_the_output_before_stays(file: Path) -> None:
    """Standard output may be a file that is appended to."""
    assert shell("echo first > log; OPT -o /dev/stdout >> log; cat log", file).stdout == "first\n" + STAMPED


def test_the_other_names_of_standard_output_show_no_answer(run: Run, file: Path) -> None:
    """They are refused beside --format json, as - is."""
    error = run("opt", "--passes", STAMP, str(file), "-o", "/dev/stdout", "--format", "json").error
    assert "for standard output takes only one of both" in error


def test_a_device_is_not_replaced(run: Run, file: Path) -> None:
    """The answer is shown as usual."""
    outcome = run("opt", "--passes", STAMP, str(file), "-o", os.devnull, columns=200)
    assert (outcome.code, outcome.out.splitlines()[0]) == (0, f"/dev/null is {file}, modified by 1 of 1 pass")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_reader_that_goes_early_is_no_fault(file: Path) -> None:
    """Of a process substitution as of a pipe."""
    file.write_text(TEXT + "//" + "x" * 2**20)
    done = shell("exec 5>&1; OPT -o >(head -c 9 >&5) >answer; sleep 0.2", file)
    assert (done.returncode, done.stdout, done.stderr) == (0, "HloModule", "")


def test_a_target_need_not_be_readable(file: Path) -> None:
    """It is only written; the option does not ask for more."""
    [option] = [each for each in command.params if each.name == "target"]
    assert (getattr(option.type, "readable", None), getattr(option.type, "dir_okay", None)) == (False, False)


def test_a_product_may_have_the_longest_name(run: Run, file: Path) -> None:
    """A longer one is the system's error."""
    out = file.with_name("n" * 255)
    assert run("opt", "--passes", STAMP, str(file), "-o", str(out)).code == 0
    assert out.read_text() == STAMPED
    error = run("opt", "--passes", STAMP, str(file), "-o", str(out) + "n").error
    assert error.endswith("n: the module cannot be written there: file name too long")


# --- what is told of what was left alone ----------------------------------------------------------------------------


def test_each_thing_left_alone_has_its_place(run: Run, file: Path) -> None:
    """A fault of the structure as well: what stands there is shown where there is no name."""
    line = "  x = f32[16] all-gather(p), replica_groups={{0,1}, dimensions={0}\n"
    file.write_text(TEXT.replace("  ROOT", line + "  ROOT") + "\nother {\n  q = f32[8] parameter(0)\n")
    outcome = run("opt", "--passes", STAMP, str(file), "-o", str(file.with_name("out")), "--keep-going")
    assert outcome.code == 0
    structure, collective = outcome.err.splitlines()
    assert structure.startswith(f"commlens: warning: {file}:9: {STAMP}: 'other {{' cannot be understood: expected '}}'")
    place = re.escape(str(file)) + r":5:\d+"
    assert re.match(f"commlens: warning: {place}: {STAMP}: x is left alone: ", collective)
    assert "stamped 1," in outcome.out
    assert "left alone 2" in outcome.out


def test_places_are_in_what_the_pass_before_made(run: Run, file: Path) -> None:
    """A line that came in or went moves those behind it: what is said of them names the pass that did it."""
    again = "  h = f32[16] all-gather(p), replica_groups={{0,1}}, dimensions={0}\n"
    odd = "  o = f32[16] all-gather(p), replica_groups={{0,x}}, dimensions={0}\n"
    root = "  ROOT t = (f32[16], f32[16], f32[16]) tuple(g, h, o)\n"
    file.write_text(TEXT.replace("ROOT g", "g").replace("\n}", f"\n{again}{odd}{root}}}"))
    combiner, said = "all-gather-combiner{tp_group=off}", "o is left alone: replica_groups cannot be read"
    for passes, start in (
        (STAMP, f"{file}:7:45: {STAMP}: {said}"),
        (f"{STAMP},{STAMP}", f"{file}:7:45: {STAMP}, on what {STAMP} made: {said}"),
        (f"{combiner},{STAMP}", f"{file}:8:45: {STAMP}, on what all-gather-combiner made: {said}"),
    ):
        err = run("opt", "--keep-going", "--passes", passes, str(file), "-o", str(file.with_name("out.hlo"))).err
        assert f"warning: {start}" in err


def test_the_help_says_what_is_dumped(run: Run) -> None:
    """Its names depend on the form, and on how many modules the file holds."""
    help_text = " ".join(run("opt", "--help").out.split())
    assert ".pbtxt" in help_text
    assert "the number of the module comes first" in help_text


def test_combiners_say_plainly_what_became_of_how_many(run: Run, file: Path) -> None:
    """Each word once: two are excluded, whatever the number of reasons."""
    lines = "".join(
        f"  {name} = f32[16] all-gather(p, p), replica_groups={{{{0,1}}}}, dimensions={{0}}\n".replace(
            "f32[16]", "(f32[16], f32[16])"
        )
        for name in "ab"
    )
    file.write_text(TEXT.replace("  ROOT", lines + "  ROOT"))
    out = run("opt", "--passes", "all-gather-combiner", str(file), "-o", str(file.with_name("out"))).out
    assert "candidates 3, excluded 2, alone 1" in " ".join(out.split())


def test_combiners_name_what_members_differ_in(run: Run, file: Path) -> None:
    """Attributes in a warning for each set, metadata in one line of the table, however many sets there are."""
    line = '  NAME = f32[16] all-gather(p), replica_groups={{0,1}}, dimensions={0}, metadata={op_name="NAME" source_line=7}, '
    line += 'frontend_attributes={k="NAME"}, backend_config={"n":"NAME"}\n'
    file.write_text(TEXT.replace("  ROOT", line.replace("NAME", "a") + line.replace("NAME", "b") + "  ROOT"))
    outcome = run("opt", "--passes", "all-gather-combiner", str(file), "-o", str(file.with_name("out")), columns=100)
    sentence = (
        'all-gather.1 lacks collective_type (none, "tp_all_gather"), k and backend_config, in which its members differ'
    )
    assert outcome.err == f"commlens: warning: {file}: all-gather-combiner: {sentence}\n"
    assert (
        "candidates 3, combined 3 into 1, attributes that differed left out in 1 set (backend_config, collective_type "
        "and k), metadata that differed left out in 1 set (op_name and source_line)"
    ) in " ".join(outcome.out.split())
