"""``commlens prove``."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import twins_runtime
from commlens import load, report
from commlens.integrations.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable

    from command_line import Run

pytestmark = pytest.mark.xla

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TAGGED = str(EXAMPLES / "tagged_2x4.before.txt")
SPEC = ("--spec", "[4,2]<=[2,4]T(1,0)", "--replicas", "2", "--partitions", "4", "--mode", "kFlattenedID")

MODULE = """HloModule step, replica_count=2, num_partitions=4

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  p = f32[4] parameter(0)
  a = f32[4] all-reduce(p), channel_id=1, replica_groups={{0,1},{2,3},{4,5},{6,7}}, use_global_device_ids=true, to_apply=add
  b = f32[8] all-gather(a), replica_groups={{1,0}}, dimensions={0}
  ROOT r = f32[8] collective-broadcast(b), replica_groups={{0,1}}
}
"""

RUNNABLE = MODULE.replace("  b =", "  ROOT b =").replace(
    "  ROOT r = f32[8] collective-broadcast(b), replica_groups={{0,1}}\n", ""
)
"""The part of it that XLA's CPU client runs."""


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what puts the twin, or one that joins others, in the place of XLA."""

    def use(change: Callable[[list[list[int]]], list[list[int]]] = lambda groups: groups) -> None:
        run = twins_runtime.run_otherwise(change)
        monkeypatch.setattr(Runtime, "run", lambda _, programs: run(programs))

    return use


@pytest.fixture
def module(tmp_path: Path) -> str:
    """Write the module to a file."""
    file = tmp_path / "step.hlo"
    file.write_text(MODULE)
    return str(file)


# --- on XLA ---------------------------------------------------------------------------------------------------------


def test_a_module_is_proved(run: Run) -> None:
    """Every distinct collective of a real program is run, and its name leads back to the rows of the report."""
    outcome = run("prove", TAGGED, "--partitions", "8", "--format", "json")
    answer = json.loads(outcome.out)
    assert (outcome.code, outcome.err, answer["schema"], answer["agree"]) == (0, "", "commlens.prove/1", True)
    rows = {row.name: row for row in report(load(TAGGED, partitions=8)).collectives}
    assert sorted(name for proof in answer["collectives"] for name in proof["names"]) == sorted(rows)
    for proof in answer["collectives"]:
        assert proof["observed"] == proof["predicted"] == rows[proof["name"]].participants


def test_two_modules_are_compared(run: Run, tmp_path: Path) -> None:
    """Exit code 1 and the place, where they differ; 0 where they do not."""
    first, second = tmp_path / "first.hlo", tmp_path / "second.hlo"
    first.write_text(RUNNABLE)
    second.write_text(RUNNABLE.replace("{{1,0}}", "{{0,1}}"))
    same = run("prove", str(first), str(first))
    assert (same.code, same.err) == (0, "")
    assert same.out.endswith("the modules agree on 8 devices: 1 result\n")
    other = run("prove", str(first), str(second), "--format", "json")
    answer = json.loads(other.out)
    assert (other.code, answer["agree"], answer["modules"]) == (1, False, [str(first), str(second)])
    assert [output["index"] for output in answer["outputs"]] == [0]
    assert answer["outputs"][0]["differs"].startswith("device ")
    lenient = run("prove", str(first), str(second), "--max-ulp", str(2**31))
    assert lenient.code == 0


def test_what_xla_refuses_names_the_file(run: Run, module: str) -> None:
    """A module that cannot be run is unusable input."""
    assert run("prove", module, module).error.startswith(f"{module}: XLA does not run it: UNIMPLEMENTED")


def test_results_without_a_number_are_no_agreement(run: Run, tmp_path: Path) -> None:
    """There is nothing to compare, which is unusable input; beside other results the line says so."""
    file = tmp_path / "none.hlo"
    text = RUNNABLE.replace("  ROOT b =", "  z = f32[4] subtract(p, p)\n  d = f32[4] divide(z, z)\n  b =").replace(
        "\n}\n", ""
    )
    text = RUNNABLE[: RUNNABLE.index("ENTRY")] + text[text.index("ENTRY") :]
    file.write_text(text + "\n  ROOT r = (f32[4], f32[4]) tuple(d, d)\n}\n")
    assert "expected a finite number in some result" in run("prove", str(file), str(file)).error
    file.write_text(text + "\n  ROOT r = (f32[4], f32[8]) tuple(d, b)\n}\n")
    outcome = run("prove", str(file), str(file))
    assert outcome.code == 0
    assert outcome.out.endswith("the modules agree on 8 devices: 2 results, 1 of which shows nothing\n")


# --- on the twin ----------------------------------------------------------------------------------------------------


def test_the_answer_as_it_looks(run: Run, runtime: Callable[..., None], module: str, tmp_path: Path) -> None:
    """One line for each distinct collective, and below it what does not agree or could not be run."""
    runtime(lambda groups: [group[::-1] for group in groups])
    Path(module).write_text(MODULE.replace("collective-broadcast", "ragged-all-to-all"))
    outcome = run("prove", module, columns=90)
    assert (outcome.code, outcome.err) == (1, "")
    assert outcome.out == (
        "result        collective  opcode             mode           groups\n"
        "agrees        a           all-reduce         kFlattenedID   {{0,1},{2,3},{4,5},{6,7}}\n"
        "differs       b           all-gather         kCrossReplica  {{1,0}}\n"
        "     predicted: {{4,0},{5,1},{6,2},{7,3}}\n"
        "     observed: {{0,4},{1,5},{2,6},{3,7}}\n"
        "not provable  r           ragged-all-to-all  kCrossReplica  {{0,1}}\n"
        "     why: XLA's CPU client does not run ragged-all-to-all\n"
        "\n"
        "3 different collectives: 1 agree, 1 differs, 1 not provable\n"
    )


def test_contract_keys(run: Run, runtime: Callable[..., None], module: str) -> None:
    """Every key that programs rely on is there, and a disagreement is exit code 1."""
    runtime(lambda groups: [[0, 1, *groups[0][2:]], *groups[1:]] if len(groups[0]) > 2 else groups[::-1])
    outcome = run("prove", module, "--format", "json")
    answer = json.loads(outcome.out)
    assert answer.keys() >= {"schema", "collectives", "agree"}
    assert all(
        proof.keys() >= {"name", "predicted", "observed", "agree", "why", "scaled"} for proof in answer["collectives"]
    )
    assert outcome.code == (0 if answer["agree"] else 1)


@pytest.mark.parametrize(
    ("arguments", "code", "agree"),
    [
        (SPEC, 0, True),
        ((*SPEC, "--opcode", "all-reduce"), 0, True),
        ((*SPEC, "--opcode", "ragged-all-to-all"), 2, None),
        (("--spec", "{{0,1}}", "--partitions", "2", "--mode", "cross_partition"), 0, True),
        (
            ("--spec", "{{0,1}}", "--replicas", "2", "--mode", "cross_replica", "--opcode", "collective-permute"),
            0,
            True,
        ),
        (("--spec", "{{0,5}}", "--replicas", "2", "--mode", "cross_replica"), 0, None),
        (("--spec", "{{0,1}}", "--replicas", "2", "--mode", "cross_replica", "--opcode", "recv"), 0, None),
        (("--spec", "[512,512]<=[512,512]T(1,0)", "--partitions", "262144", "--mode", "flattened_id"), 0, True),
    ],
)
def test_one_list(
    run: Run, runtime: Callable[..., None], arguments: tuple[str, ...], code: int, agree: bool | None
) -> None:
    """A list on the command line has one proof; without a runtime for it there is no agreement."""
    runtime()
    outcome = run("prove", *arguments, "--format", "json")
    assert outcome.code == code
    if code == 0:
        answer = json.loads(outcome.out)
        (proof,) = answer["collectives"]
        assert answer["agree"] is proof["agree"] is agree
        assert (proof["observed"] is None) == (agree is None)
        assert (proof["scaled"] is None) == ("262144" not in arguments)


def test_a_list_shows_both_sides(run: Run, runtime: Callable[..., None]) -> None:
    """With a single collective there is room for them even where they agree."""
    runtime()
    out = run("prove", *SPEC).out
    assert "     predicted: {{0,4},{1,5},{2,6},{3,7}}\n     observed: {{0,4},{1,5},{2,6},{3,7}}\n" in out


def test_csv_and_markdown(run: Run, runtime: Callable[..., None], module: str) -> None:
    """The other forms hold the same."""
    runtime(lambda groups: [group[::-1] for group in groups])
    first, second, third = csv.DictReader(io.StringIO(run("prove", module, "--format", "csv").out, newline=""))
    assert (first["name"], first["agree"], first["predicted"]) == ("a", "true", "{{0,1},{2,3},{4,5},{6,7}}")
    assert (second["agree"], second["observed"]) == ("false", "{{0,4},{1,5},{2,6},{3,7}}")
    assert third["opcode"] == "collective-broadcast"
    markdown = run("prove", module, "--format", "markdown").out
    assert "| differs | b | all-gather | kCrossReplica | `{{1,0}}` |\n" in markdown
    assert "- b: observed `{{0,4},{1,5},{2,6},{3,7}}`\n" in markdown


def test_a_module_without_collectives_proves_nothing(run: Run, runtime: Callable[..., None], tmp_path: Path) -> None:
    """Nothing run is no agreement, and no disagreement either."""
    runtime()
    file = tmp_path / "none.hlo"
    file.write_text("HloModule m\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n")
    assert run("prove", str(file)).out == "no collectives: nothing was proved\n"
    answer = json.loads(run("prove", str(file), "--format", "json").out)
    assert (answer["collectives"], answer["agree"]) == ([], None)


def test_what_could_not_be_read_is_warned_of(run: Run, runtime: Callable[..., None], module: str) -> None:
    """An unread collective is not silently left out of the proof."""
    runtime()
    Path(module).write_text(MODULE.replace("replica_groups={{1,0}}", "replica_groups={{1,0}"))
    outcome = run("prove", module)
    assert outcome.code == 0
    assert "1 that may communicate could not be read" in outcome.err


# --- unusable -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        ((), "found 0 files"),
        (("a", "b", "c"), "found 3 files"),
        (("a", "--spec", "{{0}}"), "found both"),
        (("--spec", "{{0,1}}", "--replicas", "2"), "--mode"),
        (("--spec", "{{0,1}}", "--mode", "cross_replica"), "expected --replicas or --partitions (how many"),
        (("--spec", "{{0,1}}"), "expected --mode (what the ids of the groups are) and --replicas or --partitions"),
        (("a", "--mode", "cross_replica"), "only with --spec"),
        (("a", "--opcode", "all-reduce"), "only with --spec"),
        (("--spec", "{{0,1}", "--replicas", "2", "--mode", "cross_replica"), "SPEC:1:7"),
        (("--spec", "{{0}}", "--replicas", "2", "--mode", "cross"), "group mode"),
        (("nowhere.hlo",), "nowhere.hlo"),
        ((TAGGED,), "--replicas and --partitions"),
        ((TAGGED, TAGGED), "--replicas and --partitions"),
        ((TAGGED, str(EXAMPLES / "nowhere.hlo"), "--partitions", "8"), "nowhere.hlo"),
        ((TAGGED, TAGGED, "--partitions", "128"), "at most 64 devices"),
    ],
)
def test_what_is_missing_is_said(run: Run, arguments: tuple[str, ...], fact: str) -> None:
    """One sentence says what was expected."""
    assert fact in run("prove", *arguments).error


def test_two_modules_are_one_each(run: Run, tmp_path: Path) -> None:
    """Of a file with several modules nobody knows which one is meant."""
    file = tmp_path / "two.hlo"
    file.write_text(MODULE + MODULE.replace("HloModule step", "HloModule other"))
    assert "expected one module to compare, found 2" in run("prove", str(file), str(file)).error


def test_without_jax_the_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything else does without jax."""
    monkeypatch.setitem(sys.modules, "jax", None)
    assert "install commlens[jax]" in run("prove", *SPEC).error
