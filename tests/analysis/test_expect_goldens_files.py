"""Golden files: claims against them, when they are written, and what is said of others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from string import ascii_lowercase
from typing import TYPE_CHECKING

import pytest

from commlens.analysis import ExpectationError, expect, renewing_goldens
from commlens.errors import InputError
from golden_texts import DATA_MODEL, GATHER, REDUCE, text_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from commlens.analysis import Report


def test_a_missing_file_says_what_to_do(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """The failure names the file, the option, and what would be written; nothing is written."""
    path = tmp_path / "golden" / "step.comm.txt"
    report = report_of(GATHER.format("g", "[2,4]<=[8]"), header="num_partitions=8", mesh=DATA_MODEL)
    with pytest.raises(ExpectationError) as caught:
        expect(report).golden(path)
    assert str(path) in str(caught.value)
    assert "pytest --commlens-update" in str(caught.value)
    assert text_of(report) in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_written_once_and_then_holds(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """update=True writes, with the folder; afterwards the claim holds and chains, and update leaves the file alone."""
    path = tmp_path / "golden" / "step.comm.txt"
    report = report_of(GATHER.format("g", "[2,4]<=[8]"), header="num_partitions=8", mesh=DATA_MODEL)
    expect(report).golden(str(path), update=True).golden(path).count("all-gather", 1)
    assert path.read_text(encoding="utf-8") == text_of(report)
    path.write_text(path.read_text(encoding="utf-8").replace("mesh:", "# kept\nmesh:"), encoding="utf-8")
    expect(report).golden(path, update=True)
    assert "# kept" in path.read_text(encoding="utf-8")
    assert [each.name for each in path.parent.iterdir()] == ["step.comm.txt"]


def test_a_stale_file_fails_with_what_differs_and_the_rows(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """Lines that went and came, and where what is new stands in the module; the file stays."""
    path = tmp_path / "step.comm.txt"
    lines = (GATHER.format("g1", "[2,4]<=[8]"), REDUCE.format("r1", "[2,4]<=[8]"))
    expect(report_of(*lines, header="num_partitions=8", mesh=DATA_MODEL)).golden(path, update=True)
    before = path.read_bytes()
    changed = (lines[0], GATHER.format("g2", "[2,4]<=[8]"), REDUCE.format("r1", "[4,2]<=[2,4]T(1,0)"))
    with pytest.raises(ExpectationError) as caught:
        expect(report_of(*changed, header="num_partitions=8", mesh=DATA_MODEL)).golden(path, update=False)
    assert str(caught.value).splitlines() == [
        f"{path}: expected what the golden file (-) says, found other communication (+)",
        "  - 1  all-gather  model  2 of 4  f32  64 -> 256  1",
        "  + 2  all-gather  model  2 of 4  f32  64 -> 256  1",
        "  + 1  all-reduce  data  4 of 2  f32  64 -> 64  1",
        "  - 1  all-reduce  model  2 of 4  f32  64 -> 64  1",
        "where there is more:",
        "  g1 (line 13) in e: f32[64], axes model, runs 1 x",
        "  g2 (line 14) in e: f32[64], axes model, runs 1 x",
        "  r1 (line 15) in e: f32[16], axes data, runs 1 x",
        "if that is meant, renew the file with pytest --commlens-update, or golden(path, update=True)",
    ]
    assert path.read_bytes() == before


def test_another_mesh_is_another_program(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """The axes of the mesh are part of what is recorded."""
    path = tmp_path / "step.comm.txt"
    expect(report_of(mesh=DATA_MODEL)).golden(path, update=True)
    with pytest.raises(ExpectationError, match=r"- mesh: data=2, model=4\n  \+ mesh: none\nif"):
        expect(report_of()).golden(path)


def test_what_could_not_be_read_is_never_recorded(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """Something unread fails, with an update as without, and leaves the file alone."""
    path = tmp_path / "step.comm.txt"
    broken = report_of(GATHER.format("bad", "[2,2]<=[8]"))
    for update in (True, False):
        with pytest.raises(
            ExpectationError, match="everything can be read, found 0 rows\nand 1 that could not be read\n  13: bad"
        ):
            expect(broken, allow_unread=True).golden(path, update=update)
    assert not path.exists()


def test_inside_a_renewal_files_are_written_and_named(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """What was written is said once; what says the same already is not; update=False still compares."""
    said: list[Path] = []
    report = report_of(GATHER.format("g", "[2,4]<=[8]"))
    path = tmp_path / "a" / "b" / "step.comm.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xff no golden file")
    with renewing_goldens(said.append):
        expect(report).golden(path).golden(path)
        with pytest.raises(ExpectationError):
            expect(report_of()).golden(path, update=False)
    assert said == [path]
    with pytest.raises(ExpectationError):
        expect(report_of()).golden(path)


def test_a_renewal_is_over_where_it_ends(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """An error inside ends it too."""

    def fail(path: Path) -> None:
        raise RuntimeError(path.name)

    with pytest.raises(RuntimeError, match="step"), renewing_goldens(fail):
        expect(report_of()).golden(tmp_path / "step.comm.txt")
    with pytest.raises(ExpectationError):
        expect(report_of()).golden(tmp_path / "other.comm.txt")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\xfe", "cannot be read"), (b"", "found an empty file"), (b"hello\n", "found 'hello'")],
)
def test_a_file_that_is_none_is_no_failed_claim(
    report_of: Callable[..., Report], tmp_path: Path, content: bytes, message: str
) -> None:
    """Something else under that name is an error with the file's name."""
    path = tmp_path / "step.comm.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        expect(report_of()).golden(path)
    assert caught.value.path == str(path)


def test_a_file_that_cannot_be_written_is_named(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """A folder that is a file, and a file that is a folder."""
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file" / "step.comm.txt", tmp_path):
        with pytest.raises(InputError, match="cannot be"):
            expect(report_of()).golden(path, update=True)


def test_many_writers_at_once_leave_whole_files(report_of: Callable[..., Report], tmp_path: Path) -> None:
    """Whoever reads while others write sees a whole text."""
    reports = [report_of(GATHER.format(name, "[2,4]<=[8]"), mesh=DATA_MODEL) for name in ascii_lowercase[:8]]
    path = tmp_path / "golden" / "step.comm.txt"

    def write_and_read(report: Report) -> str:
        path.unlink(missing_ok=True)
        expect(report).golden(path, update=True)
        return text_of(report)

    with ThreadPoolExecutor(8) as pool:
        texts = set(pool.map(write_and_read, reports))
    assert texts == {text_of(reports[0])}
    assert [each.name for each in path.parent.iterdir()] == ["step.comm.txt"]
