"""The table by which the compiler replaces a collective-permute by an all-gather."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlens.neuron.rank_numbers import whole_number
from commlens.topology import SourceTargetPairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def source_table(pairs: SourceTargetPairs | Iterable[Sequence[int]], total: int) -> list[int]:
    """Return where each rank finds its data in the all-gather that replaces a collective-permute.

    Args:
        pairs: the pairs of the permute.
        total: how many ranks there are.

    Returns:
        The source of every rank. A rank that no pair sends to has itself, as the compiler fills the table, and so gets
        its own data, where HLO would give it zeros.

    Raises:
        CommlensError: ``total`` is no count, an id is out of range, or a source or target is in several pairs.

    Source: pass 86, ``collective-permute-to-all-gather``.

    Example:
        >>> source_table([(0, 1), (1, 2), (2, 3), (3, 0)], 4), source_table([(0, 1)], 4)
        ([3, 0, 1, 2], [0, 0, 2, 3])
    """
    ranks = whole_number("total", total)
    listed = SourceTargetPairs(pairs)
    listed.validate(ranks)
    table = np.arange(ranks, dtype=np.int64)
    sources, targets = listed.to_array().T
    table[targets] = sources
    return table.tolist()
