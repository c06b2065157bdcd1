"""Replica groups in the spelling of 2018, ``replica_group_ids``: the number of its group for every replica."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def groups_of_ids(ids: Iterable[int]) -> list[list[int]] | None:
    """Return the groups by their numbers; None where a number is negative.

    Args:
        ids: for each replica in order, the number of its group.

    Example:
        >>> groups_of_ids([0, 1, 0, 1]), groups_of_ids([0, -1])
        ([[0, 2], [1, 3]], None)
    """
    groups: dict[int, list[int]] = {}
    for replica, number in enumerate(ids):
        groups.setdefault(number, []).append(replica)
    return None if min(groups, default=0) < 0 else [groups[number] for number in sorted(groups)]
