"""Writing files so that nothing is ever lost."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file in one step: whoever looks sees the old content or the new, never a part.

    Args:
        path: where to; an existing file is replaced and its permissions are kept. A symbolic link is followed.
        content: all of the new content.

    Raises:
        OSError: the folder does not exist or cannot be written to; an older file is then untouched.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        with target.open("wb") as device:  # /dev/stdout and the like cannot be replaced
            device.write(content)
        return
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~umask)  # noqa: PTH101
        os.replace(temporary, target)  # noqa: PTH105 - the name of a temporary file, not a path that anybody holds
    except BaseException:
        os.unlink(temporary)  # noqa: PTH108
        raise
