"""Large text files, without copying them into memory.

A text of tens of megabytes is mapped: reading it costs the pages that are touched, and those belong to the system's
cache. A mapped file must not be cut short while its module is in use; replacing it, as ``Module.write`` does, is fine.
"""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path
from typing import Final

from commlens.hlo.containers import compression_of
from commlens.hlo.kinds import kind_of

_LARGE: Final = 16 * 2**20
_GLANCE: Final = 2**16


def mapped_text(path: str | os.PathLike[str], *, max_bytes: int) -> mmap.mmap | None:
    """Map a file that is large and plainly HLO text.

    Args:
        path: the file.
        max_bytes: the largest size taken.

    Returns:
        The mapping; None for every other file, and for one that cannot be opened: whoever reads it says why.
    """
    try:
        with Path(path).open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not _LARGE <= status.st_size <= max_bytes:
                return None
            head = file.read(_GLANCE)
            if compression_of(head) is not None or kind_of(head) != "text":
                return None
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
