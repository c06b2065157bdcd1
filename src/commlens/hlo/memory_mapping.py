"""Very large text files, without copying them into memory.

A text of a gigabyte and more is mapped: reading it costs the pages that are touched, and those belong to the system's
cache. The price is that the file must stay as it is while its module is in use: where another process cuts it short or
writes over it in place, the system ends ours (SIGBUS), or the module changes under our hands. Replacing it by a new
file of the name, as ``Module.write`` does, is fine. Smaller files are read, and nothing done to them matters later.
"""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path
from typing import Final

from commlens.hlo.compression import compression_of
from commlens.hlo.content_kinds import content_kind

_LARGE: Final = 2**30
"""From which size a file is mapped: below, reading it takes a few hundredths of what is done with it."""
_HEAD: Final = 2**16


def mapped_text(path: str | os.PathLike[str], *, max_bytes: int) -> mmap.mmap | None:
    """Map a file that is very large and plainly HLO text.

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
            head = file.read(_HEAD)
            if compression_of(head) is not None or content_kind(head) != "text":
                return None
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
