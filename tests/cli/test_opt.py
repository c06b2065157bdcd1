"""``commlens opt``: what is written, what is answered, what is refused."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import re
import stat
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from commlens import load, load_all
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.neuron import NeuronCollectiveStreamIdInjector
from proto_twin import proto_twin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from command_line import Outcome, Run

TEXT = """HloModule step, replica_count=1, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  p = f32[8] parameter(0)
  g = f32[16] all-gather(p), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, dimensions={0}
  s = f32[8] reduce-scatter(g), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, dimensions={0}, to_apply=add
  ROOT r = f32[8] all-reduce(s), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
}
"""
SECOND = TEXT.replace("HloModule step", "HloModule tail")
QUIET = "HloModule quiet\n\nENTRY main {\n  ROOT p = f32[8] parameter(0)\n}\n"

CHECK = "collective-stream-id-checker"
STAMP = "aws_neuron_collective_stream_id_injector"
NUMBER = "neuron_unique_channel_id_enforcer"
CONVERT = "convert-collectives-to-custom-call"


def zstd(data: bytes) -> bytes:
    """Compress with zstd."""
    return import_module("zstandard").ZstdCompressor().compress(data)


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstd,
}


def binary() -> bytes:
    """Return the module as a binary proto."""
    return proto_twin(load(TEXT)).SerializeToString()


def text_form() -> bytes:
    """Return the module as the text form of a proto."""
    from google.protobuf import text_format

    return text_format.MessageToString(proto_twin(load(TEXT))).encode()


def stamped(text: str = TEXT) -> str:
    """Return a text as the injector leaves it."""
    return NeuronCollectiveStreamIdInjector().run(load(text)).module.to_bytes().decode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file with the text."""
    path = tmp_path / "step.hlo"
    path.write_text(TEXT)
    return path


def folder_of(file: Path) -> list[str]:
    """Return what lies beside a file."""
    return sorted(path.name for path in file.parent.iterdir())


def answered(outcome: Outcome) -> dict[str, Any]:
    """Return the JSON that was printed."""
    assert outcome.code == 0, outcome
    return json.loads(outcome.out)


# --- what is written ------------------------------------------------------------------------------------------------


def test_the_product_is_the_edited_module(run: Run, file: Path) -> None:
    """Only the edits differ from the input, byte by byte; the input stays."""
    out = file.with_name("out.hlo")
    outcome = run("opt", "--passes", STAMP, str(file), "-o", str(out))
    assert (outcome.code, file.read_text()) == (0, TEXT)
    expected = TEXT.replace("dimensions={0}\n", 'dimensions={0}, frontend_attributes={stream_id="0"}\n')
    expected = expected.replace("to_apply=add\n", 'to_apply=add, frontend_attributes={stream_id="0"}\n')
    assert out.read_text() == expected


def test_passes_run_in_the_order_given(run: Run, file: Path) -> None:
    """The checker finds what the injector before it stamped, and not what one behind it will."""
    out = file.with_name("out.hlo")
    for passes, found in ((f"{STAMP},{CHECK}", [True]), (f"{CHECK},{STAMP},{CHECK}", [False, True])):
        answer = answered(run("opt", "--passes", passes, str(file), "-o", str(out), "--format", "json"))
        assert [each["name"] for each in answer["passes"]] == passes.split(",")
        assert [each["found"] for each in answer["passes"] if "found" in each] == found


def test_options_reach_the_pass(run: Run, file: Path) -> None:
    """What is said in braces is what runs, in either spelling."""
    passes = f"{NUMBER}{{safe=true}}, {NUMBER} {{}}"
    answer = answered(run("opt", "--passes", passes, str(file), "-o", str(file), "--format", "json"))
    assert [each["pass"] for each in answer["passes"]] == [f"{NUMBER}{{safe=true}}", NUMBER]


def test_the_product_is_written_even_if_nothing_changed(run: Run, file: Path) -> None:
    """It is the input then."""
    out = file.with_name("out.hlo")
    out.write_text("old")
    assert run("opt", "--passes", CHECK, str(file), "-o", str(out)).code == 0
    assert out.read_bytes() == TEXT.encode()


def test_a_file_may_be_its_own_product(run: Run, file: Path) -> None:
    """It is replaced in one step and keeps its permissions; nothing is left beside it."""
    file.chmod(0o640)
    assert run("opt", "--passes", STAMP, str(file), "-o", str(file)).code == 0
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == (stamped(), 0o640)
    assert folder_of(file) == ["step.hlo"]


@pytest.mark.parametrize("content", [TEXT.encode(), binary(), text_form()], ids=["text", "binary", "text-form"])
@pytest.mark.parametrize("name", ["m.txt", "m.pb", "m.pbtxt", "m"])
def test_a_file_may_be_its_own_product_whatever_its_name(content: bytes, name: str, run: Run, tmp_path: Path) -> None:
    """Names of files lie, and stay what they are."""
    path = tmp_path / name
    path.write_bytes(content)
    assert run("opt", "--passes", CHECK, str(path), "-o", str(path)).code == 0
    assert path.read_bytes() == content
    assert run("opt", "--passes", STAMP, str(path), "-o", str(path)).code == 0
    assert load(path).format == load(content).format
    assert load(path).instruction("g").frontend_attributes == {"stream_id": "0"}


@pytest.mark.parametrize("ending", COMPRESSIONS)
def test_the_name_of_the_product_says_how_it_is_compressed(ending: str, run: Run, file: Path) -> None:
    """The same content always gives the same bytes."""
    out = file.with_name("out.hlo" + ending)
    for _ in range(2):
        assert run("opt", "--passes", STAMP, str(file), "-o", str(out)).code == 0
        assert out.read_bytes() == COMPRESSIONS[ending](stamped().encode())


@pytest.mark.parametrize("before", COMPRESSIONS)
@pytest.mark.parametrize("after", COMPRESSIONS)
def test_what_no_pass_modified_keeps_its_bytes(before: str, after: str, run: Run, tmp_path: Path) -> None:
    """Compressed alike, the very bytes of the input come out; else the content is compressed anew."""
    unusual = gzip.compress(TEXT.encode(), 1, mtime=7) if before == ".gz" else COMPRESSIONS[before](TEXT.encode())
    path, out = tmp_path / f"in.hlo{before}", tmp_path / f"out.hlo{after}"
    path.write_bytes(unusual)
    assert run("opt", "--passes", CHECK, str(path), "-o", str(out)).code == 0
    assert out.read_bytes() == (unusual if before == after else COMPRESSIONS[after](TEXT.encode()))


@pytest.mark.parametrize(("content", "ending"), [(binary(), ".pb"), (text_form(), ".pbtxt")], ids=["binary", "text"])
def test_a_proto_stays_the_proto_it_is(content: bytes, ending: str, run: Run, tmp_path: Path) -> None:
    """Unmodified it has the input's bytes; modified it has the new fields, the same bytes for the same input."""
    path, out = tmp_path / f"in{ending}", tmp_path / f"out{ending}"
    path.write_bytes(content)
    assert run("opt", "--passes", CHECK, str(path), "-o", str(out)).code == 0
    assert out.read_bytes() == content
    assert run("opt", "--passes", STAMP, str(path), "-o", str(out)).code == 0
    first = out.read_bytes()
    assert run("opt", "--passes", STAMP, str(path), "-o", str(out)).code == 0
    assert out.read_bytes() == first != content
    assert load(first).instruction("r").frontend_attributes == {"stream_id": "0"}


def test_counts_may_be_stated(run: Run, tmp_path: Path) -> None:
    """They are for the passes; the product does not state them."""
    path, out = tmp_path / "in.hlo", tmp_path / "out.hlo"
    path.write_text(TEXT.replace(", replica_count=1, num_partitions=4", ""))
    arguments = ("--verify", "--passes", CONVERT, str(path), "-o", str(out))
    assert run("opt", "--replicas", "1", "--partitions", "4", *arguments).code == 0
    assert out.read_text().startswith("HloModule step\n")


# --- several modules in a file --------------------------------------------------------------------------------------


def test_every_module_of_a_text_is_rewritten(run: Run, file: Path) -> None:
    """What stands between and around them stays, a header without a module too."""
    between = "\n// next\nHloModule left_empty\n\n"
    file.write_text("// first\n" + TEXT + between + QUIET + SECOND + "// end")
    outcome = run("opt", "--passes", f"{CHECK},{STAMP}", str(file), "-o", str(file), "--format", "json")
    expected = "// first\n" + stamped() + between + QUIET + stamped(SECOND) + "// end"
    assert file.read_text() == expected
    passes = answered(outcome)["passes"]
    assert [(each["hlo_module"], each["modified"]) for each in passes] == [
        *(("step", False), ("step", True)),
        *(("quiet", False), ("quiet", False)),
        *(("tail", False), ("tail", True)),
    ]


def test_every_module_of_a_group_is_rewritten(run: Run, tmp_path: Path) -> None:
    """One after the other, in the one message they share; the others' fields stay."""
    modules = [proto_twin(load(text)) for text in (TEXT, QUIET, SECOND)]
    group = schema.HloModuleGroupProto(name=b"group", hlo_modules=modules).SerializeToString()
    path, out = tmp_path / "in.pb", tmp_path / "out.pb"
    path.write_bytes(group)
    assert run("opt", "--passes", f"{STAMP},{NUMBER}", str(path), "-o", str(out)).code == 0
    written = schema.HloModuleGroupProto.FromString(out.read_bytes())
    assert written.hlo_modules[1] == modules[1]
    assert [module.name for module in load_all(out)] == ["step", "quiet", "tail"]
    for module in (load_all(out)[0], load_all(out)[2]):
        assert [module.instruction(name).channel_id for name in "gsr"] == [1, 2, 3]
        assert [module.instruction(name).frontend_attributes["stream_id"] for name in "gsr"] == ["0", "0", "0"]
    assert run("opt", "--passes", CHECK, str(path), "-o", str(out)).code == 0
    assert out.read_bytes() == group


# --- standard input and output --------------------------------------------------------------------------------------


def test_the_product_may_go_to_standard_output(run: Run, file: Path) -> None:
    """Nothing else is printed there."""
    outcome = run("opt", "--passes", NUMBER, str(file), "-o", "-")
    numbered = TEXT.replace("s), channel_id=1", "s), channel_id=3").replace("g), channel_id=1", "g), channel_id=2")
    assert (outcome.code, outcome.out, outcome.err) == (0, numbered, "")


def test_a_proto_goes_through_a_pipe(tmp_path: Path) -> None:
    """Bytes in, bytes out, uncompressed."""
    command = [sys.executable, "-m", "commlens", "opt", "--passes", CHECK, "-", "-o", "-"]
    done = subprocess.run(command, input=gzip.compress(binary()), capture_output=True, check=True, cwd=tmp_path)
    assert (done.stdout, done.stderr) == (binary(), b"")


def test_a_closed_pipe_is_no_fault(file: Path) -> None:
    """Who reads only the beginning gets no complaint."""
    file.write_text(TEXT + "//" + "x" * 2**20)
    command = f"{sys.executable} -m commlens opt --passes {CHECK} {file} -o - | head -c 9"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"HloModule", b"")


# --- the answer -----------------------------------------------------------------------------------------------------


def test_the_json_answer(run: Run, file: Path) -> None:
    """The keys of the outside contract, and a few more."""
    out = file.with_name("out.hlo")
    outcome = run("opt", "--passes", f"{CHECK},{STAMP},{NUMBER}", str(file), "-o", str(out), "--format", "json")
    answer = answered(outcome)
    assert (answer["schema"], answer["module"], answer["modified"]) == ("commlens.opt/1", str(out), True)
    wanted = {"name", "changed", "modified", "stats", "warnings", "pass", "hlo_module"}
    assert [set(each) - wanted for each in answer["passes"]] == [{"found"}, set(), set()]
    # without an exemplar the injector stamps and says that it changed nothing
    assert [(each["changed"], each["modified"]) for each in answer["passes"]] == [
        *((False, False), (False, True), (True, True)),
    ]


@pytest.mark.parametrize("form", ["table", "csv", "markdown"])
def test_the_other_forms(form: str, run: Run, file: Path) -> None:
    """Each names every pass and what it did; the table fits the terminal."""
    outcome = run("opt", "--passes", f"{CHECK},{NUMBER}", str(file), "-o", str(file), "--format", form, columns=72)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.count(CHECK) >= 1
    assert outcome.out.count(NUMBER) >= 1
    assert "looked at 3" in outcome.out or '""looked_at"": 3' in outcome.out
    if form == "table":
        assert max(map(len, outcome.out.splitlines())) <= 72


def test_what_may_break_is_a_warning(run: Run, file: Path) -> None:
    """It stands on standard error, with the pass; the JSON has it too."""
    file.write_text(TEXT.replace(" add(a, b)", " multiply(a, b)"))
    outcome = run("opt", "--passes", CONVERT, str(file), "-o", str(file), "--format", "json")
    [sentence] = answered(outcome)["passes"][0]["warnings"]
    assert outcome.err == f"commlens: warning: {file}: {CONVERT}: {sentence}\n"
    assert "UNKNOWNOP" in sentence


def test_hostile_names_are_shown_harmlessly(run: Run, tmp_path: Path) -> None:
    """Names of modules come from strangers."""
    path = tmp_path / "in.pb"
    modules = [proto_twin(load(QUIET)) for _ in range(2)]
    for module in modules:
        module.name = b"\x1b[31m|=1+1"
    path.write_bytes(schema.HloModuleGroupProto(name=b"group", hlo_modules=modules).SerializeToString())
    for form in ("table", "csv", "markdown", "json"):
        outcome = run("opt", "--passes", CHECK, str(path), "-o", str(path), "--format", form)
        assert (outcome.code, "\x1b" in outcome.out) == (0, False)


# --- verifying and dumping ------------------------------------------------------------------------------------------


def test_the_module_after_each_pass(run: Run, file: Path) -> None:
    """The folder has one file per pass, in order; the last is the product."""
    folder, out = file.with_name("steps") / "deep", file.with_name("out.hlo")
    arguments = ("--dump-after-each", str(folder), "--verify")
    assert run("opt", "--passes", f"{CHECK},{STAMP},{NUMBER}", str(file), "-o", str(out), *arguments).code == 0
    names = [f"01.{CHECK}.txt", f"02.{STAMP}.txt", f"03.{NUMBER}.txt"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert [(folder / name).read_text() for name in names] == [TEXT, stamped(), out.read_text()]


def test_the_modules_of_a_file_are_told_apart(run: Run, file: Path) -> None:
    """By number: their names could be anything."""
    file.write_text(TEXT + SECOND)
    folder = file.with_name("steps")
    assert run("opt", "--passes", STAMP, str(file), "-o", str(file), "--dump-after-each", str(folder)).code == 0
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        f"01.01.{STAMP}.txt": stamped(),
        f"02.01.{STAMP}.txt": stamped(SECOND),
    }


def test_what_was_dumped_before_a_fault_stays(run: Run, file: Path) -> None:
    """That is what one looks at then."""
    file.write_text(TEXT.replace("to_apply=add\n}", "to_apply=sub\n}"))
    folder, out = file.with_name("steps"), file.with_name("out.hlo")
    outcome = run("opt", "--passes", f"{NUMBER},{CONVERT}", str(file), "-o", str(out), "--dump-after-each", str(folder))
    assert f"{file}:13:8: {CONVERT}: r: " in outcome.error
    assert [path.name for path in folder.iterdir()] == [f"01.{NUMBER}.txt"]
    assert not out.exists()


def test_a_broken_module_is_noticed_between_passes(run: Run, file: Path) -> None:
    """Verification names the pass; nothing is written. An id gives an all-to-all another group mode."""
    line = "  t = f32[8] all-to-all(s), replica_groups={{0,1,2}}, dimensions={0}\n"
    before = TEXT.replace("replica_count=1, num_partitions=4", "replica_count=3, num_partitions=2")
    groups = before.replace("{{0,1},{2,3}}", "{{0,1,2,3,4,5}}").replace("{{0,1,2,3}}", "{{0,1,2,3,4,5}}")
    file.write_text(groups.replace("  ROOT r", line + line.replace("  t", "  u") + "  ROOT r"))
    out = file.with_name("out.hlo")
    error = run("opt", "--passes", NUMBER, str(file), "-o", str(out), "--verify").error
    assert error.startswith(f"{file}:14:3: {NUMBER} broke the module: u: expected partition ids in 0..1")
    assert not out.exists()
    assert run("opt", "--passes", NUMBER, str(file), "-o", str(out)).code == 0


# --- what cannot be understood --------------------------------------------------------------------------------------


def test_a_module_that_a_pass_cannot_understand(run: Run, file: Path) -> None:
    """It is refused with its place and nothing is written; or what is not understood is left alone, and that is said."""
    bad = TEXT.replace("replica_groups={{0,1,2,3}}", "replica_groups={{0,1,2,3}")
    file.write_text(bad)
    out = file.with_name("out.hlo")
    out.write_text("old")
    arguments = ("opt", "--passes", CONVERT, str(file), "-o", str(out))
    place = re.escape(str(file)) + r":13:\d+"
    assert re.match(f"{place}: {CONVERT}: r: ", run(*arguments).error)
    assert (out.read_text(), folder_of(file)) == ("old", ["out.hlo", "step.hlo"])
    outcome = run(*arguments, "--keep-going")
    assert outcome.code == 0
    [warning] = outcome.err.splitlines()
    assert re.match(f"commlens: warning: {place}: {CONVERT}: r is left alone: ", warning)
    assert out.read_text().splitlines()[-2] == bad.splitlines()[-2]
    assert out.read_text().count("custom-call(") == 2


REFUSED = {
    "no-output": (["--passes", CHECK, "{in}"], "expected -o OUT, the file to write; - is standard output (see commlens opt --help)"),
    "no-file": (["--passes", CHECK, "-o", "{out}"], "expected FILE, the module to rewrite"),
    "no-passes": (["{in}", "-o", "{out}"], "expected one of --passes, --pipeline and --list-passes"),
    "two-ways": (["--passes", CHECK, "--pipeline", "neuron", "{in}", "-o", "{out}"], "expected one of --passes, --pipeline"),
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
def test_unusable_command_lines(name: str, run: Run, file: Path) -> None:
    """One line says what is wrong and what would be right; nothing is written."""
    arguments, says = REFUSED[name]
    names = {"{in}": str(file), "{out}": str(file.with_name("out.hlo")), "{folder}": str(file.parent)}
    for mark, path in names.items():
        arguments = [argument.replace(mark, path) for argument in arguments]
        says = says.replace(mark, path)
    assert says in run("opt", *arguments).error
    assert folder_of(file) == ["step.hlo"]


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


def test_zstd_needs_its_package(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the name is refused before anything is done."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    out = file.with_name("out.hlo.zst")
    assert "pip install 'commlens[zstd]'" in run("opt", "--passes", CHECK, str(file), "-o", str(out)).error
    assert not out.exists()


def test_a_failed_write_leaves_the_old_file(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost, and nothing is answered."""

    def fail(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "replace", fail)
    error = run("opt", "--passes", STAMP, str(file), "-o", str(file)).error
    assert error == f"{file}: the module cannot be written there: no space left on device"
    assert (file.read_text(), folder_of(file)) == (TEXT, ["step.hlo"])


# --- passes and pipelines -------------------------------------------------------------------------------------------


def test_the_list_of_passes(run: Run) -> None:
    """Number, name, what it does and options of each, and the pipeline."""
    outcome = run("opt", "--list-passes")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert [line.split() for line in lines if line[:4].strip().isdigit()] == [
        ["11", CONVERT],
        ["58", CHECK],
        ["77", "all-gather-combiner"],
        ["78", "reduce-scatter-combiner"],
        ["79", "all-reduce-combiner"],
        ["81", STAMP],
        ["82", NUMBER],
    ]
    assert "    safe=false" in lines
    assert "--pipeline neuron" in lines
    assert max(map(len, lines)) <= 80


def test_the_list_of_passes_for_programs(run: Run, tmp_path: Path) -> None:
    """JSON has names, numbers, options with their defaults, and the pipelines; it can go into a file."""
    path = tmp_path / "passes.json"
    assert run("opt", "--list-passes", "--format", "json", "-o", str(path)).out == ""
    answer = json.loads(path.read_text())
    assert answer["schema"] == "commlens.opt/1"
    assert answer["pipelines"] == {
        "neuron": [each["name"] for each in answer["passes"] if each["registry_number"] > 11]
    }
    options = {each["name"]: each["options"] for each in answer["passes"]}
    assert options[NUMBER] == [{"name": "safe", "kind": "bool", "default": False, "words": []}]
    assert {"name": "tp_group", "kind": "word", "default": "auto", "words": ["auto", "off"]} in options[
        "all-gather-combiner"
    ]
    for form in ("csv", "markdown"):
        assert run("opt", "--list-passes", "--format", form).out.count("combiner") >= 3


def test_the_neuron_pipeline(run: Run, file: Path) -> None:
    """The six passes run in their order, and a pipeline is the same as its passes named."""
    out, named = file.with_name("out.hlo"), file.with_name("named.hlo")
    answer = answered(run("opt", "--pipeline", "neuron", str(file), "-o", str(out), "--format", "json"))
    passes = [CHECK, "all-gather-combiner", "reduce-scatter-combiner", "all-reduce-combiner", STAMP, NUMBER]
    assert [each["name"] for each in answer["passes"]] == passes
    assert run("opt", "--passes", ",".join(passes), str(file), "-o", str(named)).code == 0
    assert named.read_bytes() == out.read_bytes()
    module = load(out)
    assert [module.instruction(name).channel_id for name in "gsr"] == [1, 2, 3]


def test_passes_given_twice_are_one_list(run: Run, tmp_path: Path) -> None:
    """No --passes is dropped: they run in the order given."""
    source = tmp_path / "a.txt"
    source.write_text("HloModule m\n\nENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n")
    chosen = ["--passes", "neuron_unique_channel_id_enforcer", "--passes", "collective-stream-id-checker"]
    outcome = run("opt", *chosen, str(source), "-o", str(tmp_path / "b.txt"), "--format", "json")
    assert [each["name"] for each in json.loads(outcome.out)["passes"]] == chosen[1::2]
