"""What is wrong with values that can be read: one sentence each, under the rule it breaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN = 8
"""How many ids a sentence names before it only counts the rest."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a group list or of source-target pairs.

    Attributes:
        rule: id of the rule it breaks, e.g. ``"id-repeated"``.
        message: a full sentence: what was expected, what was found, what would be right.

    Example:
        >>> str(Fault("group-empty", "expected ids in every group, found none in group 1; drop it"))
        'expected ids in every group, found none in group 1; drop it'
    """

    rule: str
    message: str

    def __str__(self) -> str:
        return self.message


def name_ids(ids: Sequence[int], total: int | None = None) -> str:
    """Write ids for a sentence, and no more of them than one wants to read.

    Args:
        ids: the ids, or the first few of them.
        total: how many there are when ``ids`` holds only the first few.

    Example:
        >>> name_ids([3]), name_ids([1, 2, 3]), name_ids(range(100))
        ('3', '1, 2 and 3', '0, 1, 2, 3, 4, 5, 6, 7 and 92 more')
    """
    total = len(ids) if total is None else total
    names = [str(each) for each in ids[:SHOWN]]
    rest = total - len(names)
    last = f"{rest} more" if rest else names.pop()
    return f"{', '.join(names)} and {last}" if names else last
