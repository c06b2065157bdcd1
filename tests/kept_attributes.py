"""Combinations that lose nothing of their first member."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.hlo import Combine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.hlo import Instruction


def keeping_all(members: Sequence[Instruction], name: str, dimension: int | None) -> Combine:
    """Return an edit that combines instructions and keeps every attribute of the first that can be kept."""
    first = members[0]
    return Combine(
        tuple(members),
        name,
        frozenset(first.frontend_attributes),
        frozenset(first.metadata_fields()),
        frozenset(first.other_attributes()),
        dimension,
    )
