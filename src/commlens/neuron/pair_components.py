"""The groups of ranks that source-target pairs connect, as the runtime makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.errors import CommlensError
from commlens.neuron.rank_numbers import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def pair_components(pairs: Iterable[Sequence[int]]) -> list[list[int]]:
    """Return the groups of ranks that pairs connect, in whichever direction.

    Args:
        pairs: ``(source, target)`` pairs of one permute.

    Returns:
        The connected components, each ascending, in the order of their smallest ranks.

    Raises:
        CommlensError: something is no pair, or something in a pair is no rank.

    Source: the runtime joins sources and targets with a union-find over undirected edges, as documented.

    Example:
        >>> pair_components([(0, 1), (5, 6), (1, 2)])
        [[0, 1, 2], [5, 6]]
    """
    parent: dict[int, int] = {}

    def root(rank: int) -> int:
        parent.setdefault(rank, rank)
        while parent[rank] != rank:
            parent[rank] = parent[parent[rank]]
            rank = parent[rank]
        return rank

    for pair in pairs:
        source, target = _pair(pair)
        low, high = sorted((root(source), root(target)))
        parent[high] = low
    components: dict[int, list[int]] = {}
    for rank in sorted(parent):
        components.setdefault(root(rank), []).append(rank)
    return list(components.values())


def _pair(pair: Sequence[int]) -> tuple[int, int]:
    try:
        source, target = pair
    except (TypeError, ValueError) as error:
        msg = f"expected a pair (source, target), found {pair!r}"
        raise CommlensError(msg) from error
    return whole_number("a rank of a pair", source), whole_number("a rank of a pair", target)


def pair_group_of(rank: int, pairs: Iterable[Sequence[int]]) -> list[int]:
    """Return the group in which a rank takes part in a permute.

    Args:
        rank: the rank.
        pairs: the ``(source, target)`` pairs of the permute.

    Raises:
        CommlensError: no pair names the rank.

    Example:
        >>> pair_group_of(2, [(0, 1), (1, 2), (5, 6)])
        [0, 1, 2]
    """
    for component in pair_components(pairs):
        if rank in component:
            return component
    msg = f"expected a rank that some pair names, found {rank}, which is not in any component of the pairs"
    raise CommlensError(msg)
