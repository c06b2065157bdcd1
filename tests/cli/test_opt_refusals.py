"""``commlens opt``: verifying and dumping, and what it refuses."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import pytest

from opt_command import (
    CHECK,
    CONVERT,
    NUMBER,
    SECOND,
    STAMP,
    TEXT,
    binary,
    folder_of,
    stamped,
    text_form,
)

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import Run


# --- verifying and dumping ------------------------------------------------------------------------------------------


def test_the_module_after_each_pass(run: Run, step_file: Path) -> None:
    """The folder has one file per pass, in order; the last is the product."""
    folder, out = step_file.with_name("steps") / "deep", step_file.with_name("out.hlo")
    arguments = ("--dump-after-each", str(folder), "--verify")
    assert run("opt", "--passes", f"{CHECK},{STAMP},{NUMBER}", str(step_file), "-o", str(out), *arguments).code == 0
    names = [f"01.{CHECK}.txt", f"02.{STAMP}.txt", f"03.{NUMBER}.txt"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert [(folder / name).read_text() for name in names] == [TEXT, stamped(), out.read_text()]


def test_the_modules_of_a_file_are_told_apart(run: Run, step_file: Path) -> None:
    """By number: their names could be anything."""
    step_file.write_text(TEXT + SECOND)
    folder = step_file.with_name("steps")
    assert (
        run("opt", "--passes", STAMP, str(step_file), "-o", str(step_file), "--dump-after-each", str(folder)).code == 0
    )
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        f"01.01.{STAMP}.txt": stamped(),
        f"02.01.{STAMP}.txt": stamped(SECOND),
    }


def test_what_was_dumped_before_a_fault_stays(run: Run, step_file: Path) -> None:
    """That is what one looks at then."""
    step_file.write_text(TEXT.replace("to_apply=add\n}", "to_apply=sub\n}"))
    folder, out = step_file.with_name("steps"), step_file.with_name("out.hlo")
    outcome = run(
        "opt", "--passes", f"{NUMBER},{CONVERT}", str(step_file), "-o", str(out), "--dump-after-each", str(folder)
    )
    assert f"{step_file}:13:8: {CONVERT}, on what {NUMBER} made: r: " in outcome.error
    assert [path.name for path in folder.iterdir()] == [f"01.{NUMBER}.txt"]
    assert not out.exists()


def test_a_broken_module_is_noticed_between_passes(run: Run, step_file: Path) -> None:
    """Verification names the pass; nothing is written. An id gives an all-to-all another group mode."""
    line = "  t = f32[8] all-to-all(s), replica_groups={{0,1,2}}, dimensions={0}\n"
    before = TEXT.replace("replica_count=1, num_partitions=4", "replica_count=3, num_partitions=2")
    groups = before.replace("{{0,1},{2,3}}", "{{0,1,2,3,4,5}}").replace("{{0,1,2,3}}", "{{0,1,2,3,4,5}}")
    step_file.write_text(groups.replace("  ROOT r", line + line.replace("  t", "  u") + "  ROOT r"))
    out = step_file.with_name("out.hlo")
    error = run("opt", "--passes", NUMBER, str(step_file), "-o", str(out), "--verify").error
    assert error.startswith(f"{step_file}:14:3: {NUMBER} broke the module: u: expected partition ids in 0..1")
    assert not out.exists()
    assert run("opt", "--passes", NUMBER, str(step_file), "-o", str(out)).code == 0


# --- what cannot be understood --------------------------------------------------------------------------------------


def test_a_module_that_a_pass_cannot_understand(run: Run, step_file: Path) -> None:
    """It is refused with its place and nothing is written; or what is not understood is left alone, and that is said."""
    bad = TEXT.replace("replica_groups={{0,1,2,3}}", "replica_groups={{0,1,2,3}")
    step_file.write_text(bad)
    out = step_file.with_name("out.hlo")
    out.write_text("old")
    arguments = ("opt", "--passes", CONVERT, str(step_file), "-o", str(out))
    place = re.escape(str(step_file)) + r":13:\d+"
    assert re.match(f"{place}: {CONVERT}: r: ", run(*arguments).error)
    assert (out.read_text(), folder_of(step_file)) == ("old", ["out.hlo", "step.hlo"])
    outcome = run(*arguments, "--keep-going")
    assert outcome.code == 0
    [warning] = outcome.err.splitlines()
    assert re.match(f"commlens: warning: {place}: {CONVERT}: r is left alone: ", warning)
    assert out.read_text().splitlines()[-2] == bad.splitlines()[-2]
    assert out.read_text().count("custom-call(") == 2


REFUSED = {
    "no-output": (["--passes", CHECK, "{in}"], "expected -o OUT (the file to write; - is standard output) (see commlens opt --help)"),
    "no-file": (["--passes", CHECK, "-o", "{out}"], "expected FILE (the module to rewrite)"),
    "no-passes": (["{in}", "-o", "{out}"], "expected one of --passes, --pipeline and --list-passes"),
    "nothing": ([], "expected FILE (the module to rewrite), -o OUT (the file to write; - is standard output) and one of --passes, --pipeline and --list-passes (see"),
    "passes-alone": (["--passes", CHECK], "expected FILE (the module to rewrite) and -o OUT (the file to write; "),
    "two-ways": (["--passes", CHECK, "--pipeline", "neuron", "{in}", "-o", "{out}"], "expected one of --passes, --pipeline"),
    "file-to-list": (["--list-passes", "{in}"], "expected no FILE beside --list-passes, which reads none"),
    "passes-to-list": (["--list-passes", "--passes", CHECK], "expected no --passes and no --pipeline beside --list-passes, which runs none"),
    "pipeline-to-list": (["--list-passes", "--pipeline", "neuron"], "expected no --passes and no --pipeline beside --list-passes, which runs none"),
    "two-outputs": (["--passes", CHECK, "{in}", "-o", "{folder}/one.hlo", "-o", "{out}"], "expected one file to write, found 2"),
    "two-outputs-to-list": (["--list-passes", "-o", "{folder}/one.hlo", "-o", "-"], "expected one file to write, found 2"),
    "two-files": (["--passes", CHECK, "{in}", "{in}", "-o", "{out}"], "unexpected extra argument"),
    "json-and-module": (["--passes", CHECK, "{in}", "-o", "-", "--format", "json"], "beside --format json, for standard output takes only one"),
    "unknown-pass": (["--passes", "all-gather-combine", "{in}", "-o", "{out}"], "SPEC:1:1: expected the name of a pass, found 'all-gather-combine'; the nearest is 'all-gather-combiner'"),
    "unknown-option": (["--passes", f"{CHECK},{NUMBER}{{safer=true}}", "{in}", "-o", "{out}"], f"SPEC:1:64: expected an option of {NUMBER}, found 'safer'; the nearest is 'safe'"),
    "empty-spec": (["--passes", "", "{in}", "-o", "{out}"], "SPEC:1:1: expected the name of a pass, found the end of the text"),
    "unknown-pipeline": (["--pipeline", "neuro", "{in}", "-o", "{out}"], "expected the name of a pipeline, found 'neuro'; the nearest is 'neuron'"),
    "no-such-file": (["--passes", CHECK, "{in}.nowhere", "-o", "{out}"], "{in}.nowhere: cannot be read: No such file or directory"),
    "a-folder": (["--passes", CHECK, "{folder}", "-o", "{out}"], "{folder}: expected one file with one or more modules, found a folder"),
    "a-folder-to-write": (["--passes", CHECK, "{in}", "-o", "{folder}"], "'{folder}' is a directory"),
    "no-such-folder": (["--passes", CHECK, "{in}", "-o", "{folder}/no/out.hlo"], "{folder}/no/out.hlo: the module cannot be written there: no such file or directory"),
    "a-file-to-dump-into": (["--passes", CHECK, "{in}", "-o", "{out}", "--dump-after-each", "{in}"], "'{in}' is a file"),
    "too-large": (["--passes", CHECK, "{in}", "-o", "{out}", "--max-bytes", "100"], "{in}: holds more than the 100 bytes that are taken"),
    "no-count": (["--passes", CHECK, "{in}", "-o", "{out}", "--replicas", "0"], "--replicas"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_unusable_command_lines(name: str, run: Run, step_file: Path) -> None:
    """One line says what is wrong and what would be right; nothing is written."""
    arguments, says = REFUSED[name]
    names = {"{in}": str(step_file), "{out}": str(step_file.with_name("out.hlo")), "{folder}": str(step_file.parent)}
    for mark, path in names.items():
        arguments = [argument.replace(mark, path) for argument in arguments]
        says = says.replace(mark, path)
    assert says in run("opt", *arguments).error
    assert folder_of(step_file) == ["step.hlo"]


def test_a_file_without_a_module(run: Run, tmp_path: Path) -> None:
    """It is refused like everywhere."""
    path = tmp_path / "letter.txt"
    path.write_text("Dear diary,")
    error = run("opt", "--passes", CHECK, str(path), "-o", str(tmp_path / "out.txt")).error
    assert error.startswith(f"{path}:1:1: expected HLO text or a protobuf with an HLO module")


@pytest.mark.parametrize("compression", ["", ".gz"])
@pytest.mark.parametrize(
    ("content", "name", "kind", "right"),
    [
        *((TEXT.encode(), f"out{ending}", "HLO text", "out.txt") for ending in (".pb", ".PB", ".pbtxt", ".textproto")),
        *((binary(), f"out{ending}", "a binary proto", "out.pb") for ending in (".txt", ".hlo", ".pbtxt")),
        *((text_form(), f"out{ending}", "the text form of a proto", "out.pbtxt") for ending in (".txt", ".pb", ".hlo")),
    ],
)
def test_nothing_is_converted(
    content: bytes, name: str, kind: str, right: str, compression: str, run: Run, tmp_path: Path
) -> None:
    """A name that promises another form is refused before anything is done."""
    path = tmp_path / "in"
    path.write_bytes(content)
    error = run("opt", "--passes", STAMP, str(path), "-o", str(tmp_path / (name + compression))).error
    assert error.startswith(
        f"{tmp_path / (name + compression)}: expected a name such as {right}, for {path} holds {kind}"
    )
    assert folder_of(path) == ["in"]


@pytest.mark.parametrize("name", ["out", "out.v2", "out.pb.old", ".txt", "out.json"])
def test_other_names_promise_nothing(name: str, run: Run, tmp_path: Path) -> None:
    """Any form may be called so."""
    path = tmp_path / "in.pb"
    path.write_bytes(binary())
    assert run("opt", "--passes", CHECK, str(path), "-o", str(tmp_path / name)).code == 0
    assert (tmp_path / name).read_bytes() == binary()


def test_zstd_needs_its_package(run: Run, step_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the name is refused before anything is done."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    out = step_file.with_name("out.hlo.zst")
    assert "pip install 'commlens[zstd]'" in run("opt", "--passes", CHECK, str(step_file), "-o", str(out)).error
    assert not out.exists()


def test_a_failed_write_leaves_the_old_file(run: Run, step_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost, and nothing is answered."""

    def fail(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "replace", fail)
    error = run("opt", "--passes", STAMP, str(step_file), "-o", str(step_file)).error
    assert error == f"{step_file}: the module cannot be written there: no space left on device"
    assert (step_file.read_text(), folder_of(step_file)) == (TEXT, ["step.hlo"])
