"""``commlens opt``: what is written and what is answered; passes and pipelines."""

from __future__ import annotations

import gzip
import json
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from commlens import load, load_all
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from opt_command import (
    CHECK,
    COMPRESSIONS,
    CONVERT,
    NUMBER,
    QUIET,
    SECOND,
    STAMP,
    TEXT,
    answered,
    binary,
    folder_of,
    stamped,
    text_form,
)
from proto_twin import proto_twin

if TYPE_CHECKING:
    from pathlib import Path

    from command_line import Run


# --- what is written ------------------------------------------------------------------------------------------------


def test_the_product_is_the_edited_module(run: Run, step_file: Path) -> None:
    """Only the edits differ from the input, byte by byte; the input stays."""
    out = step_file.with_name("out.hlo")
    outcome = run("opt", "--passes", STAMP, str(step_file), "-o", str(out))
    assert (outcome.code, step_file.read_text()) == (0, TEXT)
    expected = TEXT.replace("dimensions={0}\n", 'dimensions={0}, frontend_attributes={stream_id="0"}\n')
    expected = expected.replace("to_apply=add\n", 'to_apply=add, frontend_attributes={stream_id="0"}\n')
    assert out.read_text() == expected


def test_passes_run_in_the_order_given(run: Run, step_file: Path) -> None:
    """The checker finds what the injector before it stamped, and not what one behind it will."""
    out = step_file.with_name("out.hlo")
    for passes, found in ((f"{STAMP},{CHECK}", [True]), (f"{CHECK},{STAMP},{CHECK}", [False, True])):
        answer = answered(run("opt", "--passes", passes, str(step_file), "-o", str(out), "--format", "json"))
        assert [each["name"] for each in answer["passes"]] == passes.split(",")
        assert [each["found"] for each in answer["passes"] if "found" in each] == found


def test_options_reach_the_pass(run: Run, step_file: Path) -> None:
    """What is said in braces is what runs, in either spelling."""
    passes = f"{NUMBER}{{safe=true}}, {NUMBER} {{}}"
    answer = answered(run("opt", "--passes", passes, str(step_file), "-o", str(step_file), "--format", "json"))
    assert [each["pass"] for each in answer["passes"]] == [f"{NUMBER}{{safe=true}}", NUMBER]


def test_the_product_is_written_even_if_nothing_changed(run: Run, step_file: Path) -> None:
    """It is the input then."""
    out = step_file.with_name("out.hlo")
    out.write_text("old")
    assert run("opt", "--passes", CHECK, str(step_file), "-o", str(out)).code == 0
    assert out.read_bytes() == TEXT.encode()


def test_a_file_may_be_its_own_product(run: Run, step_file: Path) -> None:
    """It is replaced in one step and keeps its permissions; nothing is left beside it."""
    step_file.chmod(0o640)
    assert run("opt", "--passes", STAMP, str(step_file), "-o", str(step_file)).code == 0
    assert (step_file.read_text(), stat.S_IMODE(step_file.stat().st_mode)) == (stamped(), 0o640)
    assert folder_of(step_file) == ["step.hlo"]


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
def test_the_name_of_the_product_says_how_it_is_compressed(ending: str, run: Run, step_file: Path) -> None:
    """The same content always gives the same bytes."""
    out = step_file.with_name("out.hlo" + ending)
    for _ in range(2):
        assert run("opt", "--passes", STAMP, str(step_file), "-o", str(out)).code == 0
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


def test_every_module_of_a_text_is_rewritten(run: Run, step_file: Path) -> None:
    """What stands between and around them stays, a header without a module too."""
    between = "\n// next\nHloModule left_empty\n\n"
    step_file.write_text("// first\n" + TEXT + between + QUIET + SECOND + "// end")
    outcome = run("opt", "--passes", f"{CHECK},{STAMP}", str(step_file), "-o", str(step_file), "--format", "json")
    expected = "// first\n" + stamped() + between + QUIET + stamped(SECOND) + "// end"
    assert step_file.read_text() == expected
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


def test_the_product_may_go_to_standard_output(run: Run, step_file: Path) -> None:
    """Nothing else is printed there."""
    outcome = run("opt", "--passes", NUMBER, str(step_file), "-o", "-")
    numbered = TEXT.replace("s), channel_id=1", "s), channel_id=3").replace("g), channel_id=1", "g), channel_id=2")
    assert (outcome.code, outcome.out, outcome.err) == (0, numbered, "")


def test_a_proto_goes_through_a_pipe(tmp_path: Path) -> None:
    """Bytes in, bytes out, uncompressed."""
    command = [sys.executable, "-m", "commlens", "opt", "--passes", CHECK, "-", "-o", "-"]
    done = subprocess.run(command, input=gzip.compress(binary()), capture_output=True, check=True, cwd=tmp_path)
    assert (done.stdout, done.stderr) == (binary(), b"")


def test_a_closed_pipe_is_no_fault(step_file: Path) -> None:
    """Who reads only the beginning gets no complaint."""
    step_file.write_text(TEXT + "//" + "x" * 2**20)
    command = f"{sys.executable} -m commlens opt --passes {CHECK} {step_file} -o - | head -c 9"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"HloModule", b"")


# --- the answer -----------------------------------------------------------------------------------------------------


def test_the_json_answer(run: Run, step_file: Path) -> None:
    """The keys of the outside contract, and a few more."""
    out = step_file.with_name("out.hlo")
    outcome = run("opt", "--passes", f"{CHECK},{STAMP},{NUMBER}", str(step_file), "-o", str(out), "--format", "json")
    answer = answered(outcome)
    assert (answer["schema"], answer["module"], answer["modified"]) == ("commlens.opt/1", str(out), True)
    wanted = {"name", "changed", "modified", "stats", "warnings", "pass", "hlo_module"}
    assert [set(each) - wanted for each in answer["passes"]] == [{"found"}, set(), set()]
    # without an exemplar the injector stamps and says that it changed nothing
    assert [(each["changed"], each["modified"]) for each in answer["passes"]] == [
        *((False, False), (False, True), (True, True)),
    ]


@pytest.mark.parametrize("form", ["table", "csv", "markdown"])
def test_the_other_forms(form: str, run: Run, step_file: Path) -> None:
    """Each names every pass and what it did; the table fits the terminal."""
    outcome = run(
        "opt", "--passes", f"{CHECK},{NUMBER}", str(step_file), "-o", str(step_file), "--format", form, columns=72
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.count(CHECK) >= 1
    assert outcome.out.count(NUMBER) >= 1
    assert "looked at 3" in outcome.out or '""looked_at"": 3' in outcome.out
    if form == "table":
        assert max(map(len, outcome.out.splitlines())) <= 72


def test_what_may_break_is_a_warning(run: Run, step_file: Path) -> None:
    """It stands on standard error, with the pass; the JSON has it too."""
    step_file.write_text(TEXT.replace(" add(a, b)", " multiply(a, b)"))
    outcome = run("opt", "--passes", CONVERT, str(step_file), "-o", str(step_file), "--format", "json")
    [sentence] = answered(outcome)["passes"][0]["warnings"]
    assert outcome.err == f"commlens: warning: {step_file}: {CONVERT}: {sentence}\n"
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


def test_the_neuron_pipeline(run: Run, step_file: Path) -> None:
    """The six passes run in their order, and a pipeline is the same as its passes named."""
    out, named = step_file.with_name("out.hlo"), step_file.with_name("named.hlo")
    answer = answered(run("opt", "--pipeline", "neuron", str(step_file), "-o", str(out), "--format", "json"))
    passes = [CHECK, "all-gather-combiner", "reduce-scatter-combiner", "all-reduce-combiner", STAMP, NUMBER]
    assert [each["name"] for each in answer["passes"]] == passes
    assert run("opt", "--passes", ",".join(passes), str(step_file), "-o", str(named)).code == 0
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
