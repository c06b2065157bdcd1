"""``commlens hosts``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from command_line import Run

HERE = Path(__file__).parent

HEAD = "HloModule {}, num_partitions=4\nENTRY e {{\n  x = f32[4] parameter(0)\n"
REDUCE = "  ar = f32[4] all-reduce(x), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=add\n"
GATHER = "  ag = f32[8] all-gather(x), channel_id=2, replica_groups={{0,1},{2,3}}, dimensions={0}, use_global_device_ids=true\n"


def module(*lines: str, name: str = "step") -> str:
    """Return a module."""
    return HEAD.format(name) + "".join(lines) + "}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of four hosts: two alike, one in another order, one that lacks something."""
    texts = (module(REDUCE, GATHER), module(GATHER, REDUCE), module(REDUCE, GATHER), module(REDUCE))
    for number, text in enumerate(texts):
        (tmp_path / f"host{number}.hlo").write_text(text)
    return tmp_path


def hosts(run: Run, folder: Path, *numbers: int, options: tuple[str, ...] = ()) -> tuple[int, str]:
    """Compare hosts of a folder."""
    outcome = run("hosts", *(str(folder / f"host{number}.hlo") for number in numbers), *options)
    assert outcome.err == ""
    return outcome.code, outcome.out.replace(f"{folder}/", "")


# --- how it looks ---------------------------------------------------------------------------------------------------


def test_the_table_as_it_looks(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole table: who differs, where they part, what each does in another way, who waits for whom."""
    monkeypatch.chdir(folder)
    outcome = run("hosts", "host0.hlo", "host1.hlo", "host2.hlo", "host3.hlo", "--mesh", "data=2,model=2")
    assert (outcome.code, outcome.err) == (1, "")
    assert outcome.out == (HERE / "golden" / "hosts.txt").read_text(encoding="utf-8")


def test_the_markdown_as_it_looks(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Markdown form, whole."""
    monkeypatch.chdir(folder)
    outcome = run("hosts", "host0.hlo", "host1.hlo", "host2.hlo", "host3.hlo", "--format", "markdown")
    assert outcome.out == (HERE / "golden" / "hosts.md").read_text(encoding="utf-8")


def test_hosts_that_agree(run: Run, folder: Path) -> None:
    """Exit code 0, in a few words."""
    assert hosts(run, folder, 0, 2) == (0, "2 hosts agree\n\nstep on 2 hosts: the same collectives in the same order\n")


def test_one_host(run: Run, folder: Path) -> None:
    """There is nothing to compare, and that is no fault."""
    code, text = hosts(run, folder, 1)
    assert (code, text.splitlines()[0]) == (0, "1 host: nothing to compare")
    assert json.loads(hosts(run, folder, 1, options=("--format", "json"))[1])["agree"] is True


@pytest.mark.parametrize("again", ["host1.hlo", "./host1.hlo", "{folder}/host1.hlo"])
def test_a_host_that_is_given_twice(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, again: str) -> None:
    """It is one host, however its path is spelled, and that is said."""
    monkeypatch.chdir(folder)
    outcome = run("hosts", "host1.hlo", again.format(folder=folder))
    assert outcome.code == 0
    assert outcome.out == (
        "1 host: nothing to compare\n\nstep on 1 host\n\nhost1.hlo is given 2 times and counts once.\n"
    )
    answer = json.loads(run("hosts", "host0.hlo", *[again.format(folder=folder)] * 3, "--format", "json").out)
    assert [Path(host).name for host in answer["hosts"]] == ["host0.hlo", "host1.hlo"]
    assert answer["notes"] == [f"{again.format(folder=folder)} is given 3 times and counts once"]


def test_a_folder_that_is_given_twice(run: Run, tmp_path: Path) -> None:
    """It holds the folders of all hosts as if it were given once."""
    for host in ("a", "b"):
        (tmp_path / host).mkdir()
        (tmp_path / host / "m.hlo").write_text(module(REDUCE))
    answer = json.loads(run("hosts", str(tmp_path), f"{tmp_path}/", "--format", "json").out)
    assert answer["hosts"] == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert answer["notes"] == [f"{tmp_path} is given 2 times and counts once"]


def test_equal_contents_under_two_names_are_two_hosts(run: Run, folder: Path) -> None:
    """A copy is another host, and so is a link: a job may keep one file for all."""
    (folder / "host4.hlo").symlink_to(folder / "host0.hlo")
    code, text = hosts(run, folder, 0, 2, 4, options=("--format", "json"))
    answer = json.loads(text)
    assert (code, answer["agree"], answer["notes"]) == (0, True, [])
    assert answer["hosts"] == ["host0.hlo", "host2.hlo", "host4.hlo"]


def test_thousands_of_hosts_are_not_listed_one_by_one(run: Run, tmp_path: Path) -> None:
    """A table names a few of many hosts; JSON has them all."""
    for number in range(300):
        (tmp_path / f"{number:03}").with_suffix(".hlo").write_text(module(REDUCE, *([GATHER] if number != 7 else [])))
    outcome = run("hosts", str(tmp_path))
    assert outcome.code == 1
    assert "and 296 more" in " ".join(outcome.out.split())
    assert len(outcome.out.splitlines()) < 40
    answer = json.loads(run("hosts", str(tmp_path), "--format", "json").out)
    assert len(answer["first_difference"]["members"]) == 300
    assert answer["missing"] == {str(tmp_path / "007.hlo"): ["ag"]}


# --- JSON and CSV ---------------------------------------------------------------------------------------------------


def test_json_has_the_keys_of_the_contract(run: Run, folder: Path) -> None:
    """Whether hosts agree, where they part and what each does there, who lacks what."""
    code, text = hosts(run, folder, 0, 1, 2, 3, options=("--format", "json"))
    answer = json.loads(text)
    assert (code, answer["schema"], answer["agree"]) == (1, "commlens.hosts/1", False)
    first = answer["first_difference"]
    assert (first["position"], first["module"]) == (0, "step")
    assert list(first["members"]) == [f"host{number}.hlo" for number in range(4)]
    assert first["members"]["host1.hlo"].startswith("all-gather ag, channel 2, devices {{0,1},{2,3}}")
    assert answer["missing"] == {"host3.hlo": ["ag"]}
    (module_,) = answer["modules"]
    assert [(each["paths"], each["position"], each["order_only"]) for each in module_["differences"]] == [
        (["host1.hlo"], 0, True),
        (["host3.hlo"], 1, False),
    ]
    assert module_["differences"][0]["deadlocks"][0]["devices"] == [[0, 1], [2, 3]]


def test_json_of_hosts_that_agree(run: Run, folder: Path) -> None:
    """There is no first difference, and nobody lacks anything."""
    answer = json.loads(hosts(run, folder, 0, 2, options=("--format", "json"))[1])
    assert (answer["agree"], answer["first_difference"], answer["missing"]) == (True, None, {})


def test_csv_has_a_line_for_every_difference(run: Run, folder: Path) -> None:
    """A host, what it does in another way, and where that stands in both modules."""
    text = hosts(run, folder, 0, 1, 2, 3, options=("--format", "csv"))[1]
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [(row["path"], row["kind"], row["here"], row["usual"]) for row in rows] == [
        ("host1.hlo", "order", "ar", "ar"),
        ("host3.hlo", "missing", "", "ag"),
    ]


# --- inputs ---------------------------------------------------------------------------------------------------------


def test_a_folder_of_files(run: Run, folder: Path) -> None:
    """Each file of a single folder is a host."""
    answer = json.loads(run("hosts", str(folder), "--format", "json").out)
    assert answer["hosts"] == [str(folder / f"host{number}.hlo") for number in range(4)]


def dump(folder: Path, name: str, text: str, number: int = 1) -> None:
    """Write a module as XLA dumps it."""
    folder.mkdir(exist_ok=True)
    (folder / f"module_{number:04}.{name}.cpu_after_optimizations.txt").write_text(text)
    (folder / f"module_{number:04}.{name}.cpu_after_optimizations-buffer-assignment.txt").write_text("no module")


def test_folders_of_dumps(run: Run, tmp_path: Path) -> None:
    """Modules of the folders of several hosts are compared by name, whatever else lies there."""
    for host, lines in (("a", (REDUCE, GATHER)), ("b", (REDUCE, GATHER)), ("c", (REDUCE,))):
        dump(tmp_path / host, "step", module(*lines), number=ord(host))
        dump(tmp_path / host, "init", module(name="init"), number=1)
    expected = [str(tmp_path / host) for host in "abc"]
    for inputs in (expected, [str(tmp_path)]):
        answer = json.loads(run("hosts", *inputs, "--format", "json").out)
        assert answer["hosts"] == expected
        assert {each["module"]: each["agree"] for each in answer["modules"]} == {"init": True, "step": False}
        assert answer["missing"] == {str(tmp_path / "c" / "module_0099.step.cpu_after_optimizations.txt"): ["ag"]}


def test_a_host_without_a_module(run: Run, tmp_path: Path) -> None:
    """A module that a host did not dump at all is said, and hosts do not agree."""
    for host in "ab":
        dump(tmp_path / host, "step", module(REDUCE))
    dump(tmp_path / "a", "init", module(name="init"), number=2)
    outcome = run("hosts", str(tmp_path / "a"), str(tmp_path / "b"))
    assert outcome.code == 1
    assert f"2 hosts do not agree: {tmp_path / 'b'} has no module init" in " ".join(outcome.out.split())


def test_modules_that_are_named_differently(run: Run, tmp_path: Path) -> None:
    """Two files with a module each are compared whatever those are called, and that is said."""
    for number in range(2):
        (tmp_path / f"{number}.hlo").write_text(module(REDUCE, name=f"step.{number}"))
    outcome = run("hosts", str(tmp_path / "0.hlo"), str(tmp_path / "1.hlo"))
    assert outcome.code == 0
    assert "the modules are named differently, step.0, step.1" in outcome.out


def test_a_file_named_twice_is_one_host(run: Run, folder: Path) -> None:
    """Naming a file again adds no host."""
    assert hosts(run, folder, 0, 0, 2)[1].startswith("2 hosts agree")


def test_unread_items_are_warnings_and_no_claim(run: Run, tmp_path: Path) -> None:
    """Exit code 1 where something is unread, unless all modules are the same byte by byte."""
    broken = REDUCE.replace("ar =", "broken =").replace("{{0,1},{2,3}}", "{{0,1")
    for number, spacing in enumerate((" ", "  ", " ")):
        (tmp_path / f"{number}.hlo").write_text(
            module(REDUCE, broken).replace("all-reduce(x), ", f"all-reduce(x),{spacing}")
        )
    outcome = run("hosts", str(tmp_path / "0.hlo"), str(tmp_path / "1.hlo"))
    assert outcome.code == 1
    assert "whether they agree cannot be said" in " ".join(outcome.out.split())
    assert len(outcome.err.splitlines()) == 2
    assert run("hosts", str(tmp_path / "0.hlo"), str(tmp_path / "2.hlo")).code == 0


def test_inputs_that_cannot_be_read(run: Run, folder: Path) -> None:
    """A missing host ends with 2; with --keep-going the others are compared first, and it still does."""
    good = [str(folder / f"host{number}.hlo") for number in (0, 2)]
    assert run("hosts", *good, "no.hlo").error.startswith("no.hlo: ")
    outcome = run("hosts", *good, "no.hlo", "--keep-going")
    assert outcome.code == 2
    assert outcome.out.startswith("2 hosts agree")
    assert outcome.err.startswith("commlens: error: no.hlo: ")
    alone = run("hosts", "no.hlo", "--keep-going")
    assert (alone.code, alone.out) == (2, "")


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_hostile_names_do_nothing(run: Run, tmp_path: Path, form: str) -> None:
    """Names of modules, computations and files are shown, never acted upon."""
    files = [tmp_path / f"\x1b]0;{number}\x07|<b>=.hlo" for number in range(2)]
    for file, lines in zip(files, ((REDUCE, GATHER), (GATHER, REDUCE)), strict=True):
        file.write_text(module(*lines, name="[red]m\x1b[31m").replace("ENTRY e", "ENTRY =cmd|x"))
    outcome = run("hosts", *map(str, files), "--format", form, columns=300)
    assert outcome.code == 1
    assert all(line.isprintable() for line in outcome.out.splitlines())


# --- deadlocks and counts -------------------------------------------------------------------------------------------


def test_a_ring_is_said_in_words(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for whom in which collective, and on which hosts the devices have to be for that."""
    columns = GATHER.replace("{{0,1},{2,3}}", "{{0,2},{1,3}}")
    for number, lines in enumerate(((REDUCE, columns), (columns, REDUCE))):
        (tmp_path / f"{number}.hlo").write_text(module(*lines))
    monkeypatch.chdir(tmp_path)
    outcome = run("hosts", "0.hlo", "1.hlo")
    assert outcome.code == 1
    assert (
        "deadlock: ar and ag run in different order on 0.hlo and 1.hlo; devices 0, 1, 3, 2 may wait for each other in a "
        "ring, 0 for 1 in ar, 1 for 3 in ag, 3 for 2 in ar, 2 for 0 in ag. They do if 0 and 3 are on hosts of the first "
        "kind and 1 and 2 on hosts of the second; which device is on which host the modules do not say."
    ) in " ".join(outcome.out.split())
    (difference,) = json.loads(run("hosts", "0.hlo", "1.hlo", "--format", "json").out)["modules"][0]["differences"]
    assert difference["deadlocks"][0]["ring"][0] == {"device": 0, "path": "0.hlo", "waits_in": "ar"}
    assert difference["deadlocks_complete"] is True


def test_other_numbers_of_devices(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that is for another number of devices is a difference by itself: exit code 1."""
    for number, partitions in enumerate((4, 4, 8)):
        (tmp_path / f"{number}.hlo").write_text(
            module(REDUCE).replace("num_partitions=4", f"num_partitions={partitions}")
        )
    monkeypatch.chdir(tmp_path)
    outcome = run("hosts", "0.hlo", "1.hlo", "2.hlo")
    assert outcome.code == 1
    assert outcome.out.startswith(
        "3 hosts do not agree\n\nstep on 3 hosts: the same collectives, though not for the same"
    )
    assert "0.hlo and 1.hlo (replicas 1, partitions 4), 2.hlo (replicas 1, partitions 8)" in " ".join(
        outcome.out.split()
    )
