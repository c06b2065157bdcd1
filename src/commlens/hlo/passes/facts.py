"""What a pass did in a few words: figures with their names, what is nothing left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def figures(**values: int | str | None) -> Iterator[str]:
    """Yield figures in words; what is nothing is not said.

    Args:
        values: the figures by name, in which ``_`` stands for a blank.

    Example:
        >>> list(figures(stamped=8, as_before=0, tp_exemplar="g.1", fsdp_exemplar=None))
        ['stamped 8', 'tp exemplar g.1']
    """
    for name, value in values.items():
        if value:
            yield f"{name.replace('_', ' ')} {value}"


def shares(name: str, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield in one piece of text how a number of things is divided.

    Example:
        >>> list(shares("streams", {"0": 4, "1": 0, "2": 1}))
        ['streams (0 4, 2 1)']
    """
    parts = [f"{key} {count}" for key, count in counts.items() if count]
    if parts:
        yield f"{name} ({', '.join(parts)})"
