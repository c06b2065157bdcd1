"""``commlens explain-log``."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from command_line import Run

HERE = Path(__file__).parent

MODULE = """HloModule step, num_partitions=8
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[16] parameter(0)
  ar.1 = f32[16] all-reduce(p), channel_id=1, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=add
  ar.2 = f32[16] all-reduce(p), channel_id=2, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=add
  ROOT ag.3 = f32[32] all-gather(p), channel_id=3, replica_groups=[4,2]<=[2,4]T(1,0), dimensions={0}, use_global_device_ids=true
}
"""
LOG = """step 41 took 3.2 s
[host1]: I0000 00:00:1727187733.123456   12345 rendezvous.cc:31] [id=3] This thread may be stuck: waiting for RendezvousKey{run_id=RunId: 1, global_devices=[4, 5, 6, 7], num_local_participants=4, collective_op_kind=cross_module, op_id=2}
E0000 rendezvous.cc:40] Termination timeout for `acquire clique for rank 0; clique=devices=[1,5]; stream=0; run_id=3` of 40 seconds exceeded.
E0000 rendezvous.cc:40] Termination timeout for `acquire clique for rank 1; clique=devices=[1,5]; stream=0; run_id=3` of 40 seconds exceeded.
E0000 RendezvousKey{run_id=RunId: 1, global_devices=[0, 1, 2, 3], num_local_participants=4, collective_op_kind=cross_module, op_id=77}
ERROR TDRV: replica groups (0/2) does not have myself 9
"""


@pytest.fixture
def folder(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a log and a module, which is the current one."""
    (tmp_path / "hang.log").write_text(LOG)
    (tmp_path / "step.hlo").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer_of(run: Run, *arguments: str) -> dict[str, object]:
    """Return the JSON answer."""
    outcome = run("explain-log", *arguments, "--format", "json")
    assert (outcome.code, outcome.err) == (0, "")
    return json.loads(outcome.out)


# --- how it looks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 120])
def test_the_table_as_it_looks(run: Run, folder: Path, columns: int) -> None:
    """The whole table: messages with what they say, candidates with why, what is not found."""
    outcome = run("explain-log", "hang.log", "step.hlo", "--mesh", "data=2,model=4", columns=columns)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (HERE / "golden" / f"explain-log-{columns}.txt").read_text(encoding="utf-8")


def test_the_markdown_as_it_looks(run: Run, folder: Path) -> None:
    """The Markdown form, whole."""
    outcome = run("explain-log", "hang.log", "step.hlo", "--mesh", "data=2,model=4", "--format", "markdown")
    assert outcome.out == (HERE / "golden" / "explain-log.md").read_text(encoding="utf-8")


def test_not_found_is_no_failure(run: Run, folder: Path) -> None:
    """The exit code is 0 whatever was found; the answer says so in its first line."""
    (folder / "calm.log").write_text("step 1\nstep 2 with all-gather\n")
    outcome = run("explain-log", "calm.log", "step.hlo")
    assert (outcome.code, outcome.out) == (0, "not found: the log holds no message about a collective that is known\n")
    (folder / "other.log").write_text("RendezvousKey{global_devices=[0, 7], op_id=1}")
    assert run("explain-log", "other.log", "step.hlo").out.startswith("not found: 1 message about collectives, none")


def test_many_candidates_and_messages_are_not_all_shown(run: Run, folder: Path) -> None:
    """A table shows some; JSON has all that fit, and of what is true in part as many as are listed without --full."""
    line = "  a.{} = f32[16] all-reduce(p), channel_id={}, replica_groups=[2,4]<=[8], use_global_device_ids=true, to_apply=add\n"
    lines = "".join(line.format(number, number) for number in range(1, 301))
    (folder / "many.hlo").write_text(MODULE.replace("  ar.1", lines + "  ar.1"))
    (folder / "many.log").write_text(
        "".join(f"CliqueKey{{devices=[0,1,2,3]; x={n}}} all-reduce.{n}\n" for n in range(150))
    )
    outcome = run("explain-log", "many.log", "many.hlo")
    assert "50 more; --format json lists them all" in outcome.out
    assert "more than these 100 are true in part; --full lists them all." in outcome.out
    assert "50 more messages; --format json lists them all" in outcome.out
    assert len(answer_of(run, "many.log", "many.hlo")["candidates"]) == 150 * 100  # type: ignore[arg-type]
    assert len(answer_of(run, "many.log", "many.hlo", "--full")["candidates"]) == 150 * 302  # type: ignore[arg-type]
    (folder / "many.log").write_text("CliqueKey{devices=[0,1,2,3]}\n")
    assert "252 more; --format json lists them all" in run("explain-log", "many.log", "many.hlo").out


def test_elements_of_a_watchdog_are_shown(run: Run, folder: Path) -> None:
    """The heading names rank, operation, elements and sequence number; JSON has them as facts."""
    (folder / "watchdog.log").write_text(
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=_ALLGATHER_BASE, NumelIn=16, "
        "NumelOut=32, Timeout(ms)=600000) ran for 600100 milliseconds before timing out.\n"
    )
    outcome = run("explain-log", "watchdog.log", "step.hlo", columns=120)
    assert "[line 1] watchdog: rank 3, all-gather, 16 elements in, 32 out, seq_num 12\n" in outcome.out
    assert "its operands have 16 elements, its results have 32 elements; it is an all-gather\n" in outcome.out
    answer = answer_of(run, "watchdog.log", "step.hlo")
    said = {"rank": 3, "opcode": "all-gather", "elements_in": 16, "elements_out": 32, "numbers": {"seq_num": 12}}
    assert answer["messages"][0]["said"] == said  # type: ignore[index]
    assert [each["name"] for each in answer["candidates"]] == ["ag.3"]  # type: ignore[union-attr]


def test_what_was_left_out_is_said(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more messages than are answered some are left out: not found is no answer for those."""
    monkeypatch.setattr("commlens.analysis.logs.explaining.MOST_MESSAGES", 4)
    (folder / "many.log").write_text("".join(f"all-reduce.{number} is slow\n" for number in range(100, 110)))
    outcome = run("explain-log", "many.log", "step.hlo")
    assert outcome.out.startswith("not found among the 4 messages that are answered; 6 more were left out\n")
    said = "6 of 10 messages were left out: the first 2 and the last 2 different ones are answered."
    assert " ".join(outcome.out.split()).endswith(said)
    assert answer_of(run, "many.log", "step.hlo")["found"] is None


# --- JSON and CSV ---------------------------------------------------------------------------------------------------


def test_json_has_the_keys_of_the_contract(run: Run, folder: Path) -> None:
    """Whether something was found, and each candidate with path, name, why, axes, peers and its row."""
    answer = answer_of(run, "hang.log", "step.hlo", "--mesh", "data=2,model=4")
    assert (answer["schema"], answer["found"]) == ("commlens.explain-log/1", True)
    candidates = answer["candidates"]
    assert isinstance(candidates, list)
    short = [{key: each[key] for key in ("message", "match", "path", "name", "axes", "peers")} for each in candidates]
    near = {"message": 2, "match": "partial", "path": "step.hlo", "axes": ["model"], "peers": [0, 1, 2, 3]}
    assert short == [
        {"message": 0, "match": "full", "path": "step.hlo", "name": "ar.2", "axes": ["model"], "peers": [4, 5, 6, 7]},
        {"message": 1, "match": "full", "path": "step.hlo", "name": "ag.3", "axes": ["data"], "peers": [1, 5]},
        {**near, "name": "ar.1"},
        {**near, "name": "ar.2"},
        *(
            {"message": 3, "match": "full", "path": "step.hlo", "name": name, "axes": [axis], "peers": peers}
            for name, axis, peers in (
                ("ar.1", "model", [[0, 1, 2, 3], [4, 5, 6, 7]]),
                ("ar.2", "model", [[0, 1, 2, 3], [4, 5, 6, 7]]),
                ("ag.3", "data", [[0, 4], [1, 5], [2, 6], [3, 7]]),
            )
        ),
    ]
    report = json.loads(run("report", "step.hlo", "--mesh", "data=2,model=4", "--format", "json").out)
    assert candidates[0]["row"] == report["modules"][0]["collectives"][1]
    assert [(each["line"], each["count"], each["found"]) for each in answer["messages"]] == [  # type: ignore[union-attr]
        (2, 1, True),
        (3, 2, True),
        (5, 1, False),
        (6, 1, True),
    ]
    said = {"devices": [4, 5, 6, 7], "num_local_participants": 4, "kind": "cross_module", "op_id": 2}
    assert answer["messages"][0]["said"] == said  # type: ignore[index]


def test_csv_has_a_line_for_each_candidate(run: Run, folder: Path) -> None:
    """And one for a message without any."""
    (folder / "hang.log").write_text(LOG.replace("[1,5]", "[1,6]"))
    rows = list(csv.DictReader(io.StringIO(run("explain-log", "hang.log", "step.hlo", "--format", "csv").out)))
    assert [(row["message"], row["name"], row["peers"]) for row in rows[:3]] == [
        ("0", "ar.2", "4,5,6,7"),
        ("1", "", ""),
        ("2", "ar.1", "0,1,2,3"),
    ]


def test_an_answer_in_a_file(run: Run, folder: Path) -> None:
    """-o writes it."""
    assert run("explain-log", "hang.log", "step.hlo", "--format", "json", "-o", "out.json").out == ""
    assert json.loads((folder / "out.json").read_text())["found"] is True


# --- inputs ---------------------------------------------------------------------------------------------------------


def test_compressed_logs_and_standard_input(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log may be compressed, or come through a pipe; a module may as well, though not both."""
    expected = answer_of(run, "hang.log", "step.hlo")
    packed = gzip.compress(LOG.encode())
    (folder / "hang.log.gz").write_bytes(packed)
    assert answer_of(run, "hang.log.gz", "step.hlo") == expected
    for content in (LOG.encode(), packed):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert answer_of(run, "-", "step.hlo") == expected
    error = run("explain-log", "-", "-").error
    assert error == "expected standard input to be the log or a module, found both (see commlens explain-log --help)"


def test_several_modules_and_none(run: Run, folder: Path) -> None:
    """Each module is searched; without one the messages are read all the same."""
    (folder / "other.hlo").write_text(MODULE.replace("HloModule step", "HloModule other"))
    outcome = run("explain-log", "hang.log", "step.hlo", "other.hlo", columns=120)
    assert "other.hlo" in outcome.out
    outcome = run("explain-log", "hang.log")
    assert (outcome.code, outcome.out.splitlines()[0]) == (
        0,
        "4 messages about collectives; give the module to see which",
    )


def test_what_cannot_be_read(run: Run, folder: Path) -> None:
    """One line, exit code 2, nothing on standard output."""
    assert (
        run("explain-log", "none.log", "step.hlo").error
        == "none.log: the log cannot be read: no such file or directory"
    )
    assert run("explain-log", ".", "step.hlo").error == ".: the log cannot be read: is a directory"
    assert "found another text" in run("explain-log", "hang.log", "hang.log").error
    assert "hang.log: the log is larger than is taken" in run("explain-log", "hang.log", "--max-bytes", "50").error
    (folder / "cut.gz").write_bytes(gzip.compress(LOG.encode())[:-9])
    assert run("explain-log", "cut.gz").error == "cut.gz: the gzip data are cut off"
    assert "expected" in run("explain-log", "hang.log", "step.hlo", "--mesh", "data=").error


def test_hostile_words_are_not_acted_upon(run: Run, folder: Path) -> None:
    """Control characters of a log reach no terminal and no Markdown."""
    (folder / "evil.log").write_bytes(
        b"RendezvousKey{global_devices=[4,5,6,7], x=\x07<b>|\xe2\x80\xae\x9b31m op_id=2}\n"
    )
    for form in ("table", "markdown", "csv", "json"):
        outcome = run("explain-log", "evil.log", "step.hlo", "--format", form)
        assert outcome.out.replace("\n", "").isprintable()
        assert "<b>|" not in outcome.out or form in ("table", "json")
