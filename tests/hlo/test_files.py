"""Writing files: in one step where they can be replaced, straight where they cannot."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from commlens.hlo import write_atomically
from commlens.hlo.files import descriptor_named


def mode_of(path: Path) -> int:
    """Return the permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077, 0])
def test_a_new_file_gets_what_the_user_grants(umask: int, tmp_path: Path) -> None:
    """As any other program would make it."""
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "out", b"new")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "out") == 0o666 & ~umask


def test_the_umask_is_never_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to the whole process: files that another thread makes meanwhile would get other permissions."""

    def refuse(_: int) -> int:
        raise AssertionError

    monkeypatch.setattr(os, "umask", refuse)
    write_atomically(tmp_path / "out", b"new")
    assert (tmp_path / "out").read_bytes() == b"new"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o200])
def test_an_old_file_keeps_its_permissions(mode: int, tmp_path: Path) -> None:
    """One that may be written and not read as well; nothing is left beside it."""
    path = tmp_path / "out"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert mode_of(path) == mode
    path.chmod(0o600)
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("length", [1, 246, 247, 255])
def test_names_may_be_as_long_as_the_system_allows(length: int, tmp_path: Path) -> None:
    """The file in between has a short name of its own."""
    path = tmp_path / ("n" * length)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    with pytest.raises(OSError, match="too long"):
        write_atomically(tmp_path / ("n" * 256), b"new")


def test_a_link_is_followed(tmp_path: Path) -> None:
    """The file it names is replaced, and it stays a link."""
    path, link = tmp_path / "out", tmp_path / "link"
    path.write_bytes(b"old")
    link.symlink_to(path)
    write_atomically(link, b"new")
    assert (path.read_bytes(), link.is_symlink()) == (b"new", True)
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "made")
    write_atomically(dangling, b"new")
    assert (tmp_path / "made").read_bytes() == b"new"


def test_a_link_to_itself_is_an_error_of_the_system(tmp_path: Path) -> None:
    """Like everywhere."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(loop, b"new")


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file stays, and nothing lies beside it."""

    def fail(_: int) -> None:
        raise OSError(28, os.strerror(28))

    path = tmp_path / "out"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"old", [path])


def test_a_device_is_written_straight() -> None:
    """It is not replaced."""
    write_atomically(Path(os.devnull), b"new")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    with pytest.raises(OSError, match="No space"):
        write_atomically(Path("/dev/full"), b"new")


def test_a_pipe_with_a_name_is_written_straight(tmp_path: Path) -> None:
    """Who reads from it gets everything."""
    path, found = tmp_path / "pipe", list[bytes]()
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    write_atomically(path, b"new" * 100_000)
    reader.join()
    assert found == [b"new" * 100_000]
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_an_open_file_is_written_where_it_stands(folder: str, tmp_path: Path) -> None:
    """What was written there before stays, and it stays open."""
    with (tmp_path / "log").open("wb", buffering=0) as log:
        log.write(b"first ")
        write_atomically(Path(f"{folder}/{log.fileno()}"), b"second ")
        log.write(b"third")
    assert (tmp_path / "log").read_bytes() == b"first second third"


def test_what_is_not_open_is_an_error() -> None:
    """The system says so."""
    with pytest.raises(OSError, match="Bad file descriptor"):
        write_atomically(Path("/dev/fd/999999"), b"new")


@pytest.mark.parametrize("path", ["out", "/dev/null", "/dev/fd", "/dev/fd/x", "/dev/fd/1/2", "/tmp/dev/fd/1", "-"])
def test_other_paths_are_no_open_files(path: str) -> None:
    """Only the names that the system gives them are."""
    assert descriptor_named(Path(path)) is None
