"""Writing files so that nothing is ever lost."""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_DESCRIPTOR: Final = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,9})")
_NAMED_DESCRIPTORS: Final = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file in one step: whoever looks sees the old content or the new, never a part.

    What is no regular file cannot be replaced and is written straight: a pipe, a device, an open file of the process
    such as ``/dev/stdout`` or ``/dev/fd/63``, which is written where it stands.

    Args:
        path: where to; an existing file is replaced and its permissions are kept. A symbolic link is followed.
        content: all of the new content.

    Raises:
        OSError: the folder does not exist or cannot be written to; an older file is then untouched.
    """
    number = descriptor_named(path)
    if number is not None:
        _write_all(os.dup(number), content)
        return
    try:
        known = path.stat()
    except FileNotFoundError:
        known = None
    if known is None or stat.S_ISREG(known.st_mode):
        _replace(real_path(path), content, None if known is None else stat.S_IMODE(known.st_mode))
    else:
        _write_all(os.open(path, os.O_WRONLY), content)


def descriptor_named(path: Path) -> int | None:
    """Return the number of the open file that a path stands for, None where it stands for none.

    Example:
        >>> descriptor_named(Path("/dev/stdout")), descriptor_named(Path("/dev/fd/63")), descriptor_named(Path("out"))
        (1, 63, None)
    """
    match = _DESCRIPTOR.fullmatch(str(path))
    return _NAMED_DESCRIPTORS.get(str(path)) if match is None else int(match[1])


def real_path(path: str | os.PathLike[str]) -> Path:
    """Return a path without symbolic links; links that lead to themselves stay, and are refused by who opens them."""
    return Path(os.path.realpath(path))


def _replace(target: Path, content: bytes, mode: int | None) -> None:
    """Write a file beside the target and put it in its place.

    Args:
        target: the file, which may exist.
        content: all of the new content.
        mode: its permissions; None for those of a new file, which the system cuts down to what the user grants.
    """
    temporary = target.parent / f".commlens-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    handle = os.open(temporary, flags, 0o666 if mode is None else 0o600)
    try:
        _write_all(handle, content, before_closing=lambda: _settle(handle, mode))
        os.replace(temporary, target)  # noqa: PTH105 - in one step, also where the target exists
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _settle(handle: int, mode: int | None) -> None:
    """Give a new file its permissions and make sure that its content is on the disk."""
    if mode is not None:
        os.fchmod(handle, mode)
    os.fsync(handle)


def _write_all(handle: int, content: bytes, before_closing: Callable[[], None] | None = None) -> None:
    """Write into an open file and close it."""
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        if before_closing is not None:
            before_closing()
