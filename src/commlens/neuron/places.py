"""Saying where instructions stand: for the statistics and the warnings of passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Site, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.hlo import Instruction, Json

_SHOWN: Final = 20
"""How many instructions a sentence names before it only counts the rest."""


def place_of(item: Site | Instruction) -> dict[str, Json]:
    """Return name, computation and line of something that communicates; what cannot be read is None."""
    if isinstance(item, Site):
        return {"instruction": item.name, "computation": item.computation_name, "line": item.line}
    return {"instruction": name_of(item), "computation": item.computation.name, "line": item.line}


def name_of(item: Site | Instruction) -> str | None:
    """Return the name of something that communicates, None where it cannot be read."""
    try:
        return item.name
    except UnreadableError:
        return None


def listed(items: Sequence[Site | Instruction]) -> str:
    """Name things in a sentence: the first twenty with their lines, then how many more there are."""
    shown = [_in_words(item) for item in items[:_SHOWN]]
    rest = len(items) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _in_words(item: Site | Instruction) -> str:
    name, line = name_of(item) or "an instruction without a readable name", item.line
    return name if line is None else f"{name} (line {line})"
