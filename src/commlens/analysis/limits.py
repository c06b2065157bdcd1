"""How many ids an answer lists one by one."""

from __future__ import annotations

from typing import Final

LISTED_LIMIT: Final = 4096
"""Most ids of one list that an answer holds unless all are asked for."""

FULL_LIMIT: Final = 1 << 24
"""Most ids of one list that an answer ever holds."""


def id_limit(*, full: bool) -> int:
    """Return the limit that holds.

    Example:
        >>> id_limit(full=False), id_limit(full=True)
        (4096, 16777216)
    """
    return FULL_LIMIT if full else LISTED_LIMIT
