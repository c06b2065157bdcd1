"""Source-target pairs: who sends to whom in a collective-permute, a send or a recv.

Source: xla/hlo/ir/source_target_pairs.h and xla/service/collective_permute_cycle.cc; the rules of
:meth:`SourceTargetPairs.faults` are those of ``CheckSourceTargetPairs`` in xla/service/hlo_verifier.cc.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from commlens.errors import CommlensError, GrammarError
from commlens.topology.faults import Fault, name_ids
from commlens.topology.id_lists import parse_id_lists
from commlens.topology.tokens import Cursor
from commlens.topology.validation import fits_int64

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.topology.iota import IntArray

PairsLike: TypeAlias = Iterable[Sequence[int]] | npt.NDArray[np.integer]
"""Pairs as they may be given: a nested sequence, or an array of shape (n, 2)."""

Direction: TypeAlias = Literal["forward", "backward"]
"""Which way round a ring of devices a permutation goes."""

_HLO_BRACKETS = str.maketrans("[]", "{}", " ")


class SourceTargetPairs:
    """A list of ``(source, target)`` pairs, kept as one array of shape (number of pairs, 2).

    Order counts: two lists are equal when they hold the same pairs in the same places. Any int64 values are accepted,
    because a module may hold wrong ones; :meth:`validate` is what judges them.

    Args:
        pairs: pairs of ints, as a nested sequence or an integer array of shape (n, 2).

    Raises:
        CommlensError: something in ``pairs`` is no pair of ints that fit int64.

    Example:
        >>> ring = SourceTargetPairs([(0, 1), (1, 2), (2, 0)])
        >>> str(ring), ring.max_id, ring.cycle_type()
        ('{{0,1},{1,2},{2,0}}', 2, 'forward')
    """

    __slots__ = ("_pairs",)

    def __init__(self, pairs: PairsLike = ()) -> None:
        self._pairs = _pair_array(pairs)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs as tuples of Python ints."""
        return tuple(self)

    @property
    def max_id(self) -> int:
        """The largest id among sources and targets; -1 for an empty list."""
        return int(self._pairs.max()) if len(self) else -1

    def to_array(self) -> IntArray:
        """The pairs as a read-only int64 array of shape (number of pairs, 2): sources, then targets."""
        return self._pairs

    def groups(self) -> list[list[int]]:
        """One group of two members per pair, in order; chains and cycles are not merged.

        Source: ``GetAsyncReplicaGroups`` for collective-permute-start, xla/service/collective_ops_utils.cc.
        """
        return self._pairs.tolist()

    def cycle_type(self) -> Literal["forward", "backward", "none"]:
        """Tell whether the pairs are one ring over all ids 0..n-1, written the way the SPMD partitioner writes it.

        Returns:
            ``"forward"`` for i -> i+1 with the closing pair last, ``"backward"`` for i -> i-1 with the closing pair
            first, else ``"none"``. The ring of two is both and counts as forward; a single pair is no ring.

        Source: ``GetCycleType``, xla/service/collective_permute_cycle.cc.

        Example:
            >>> SourceTargetPairs([(0, 2), (1, 0), (2, 1)]).cycle_type()
            'backward'
        """
        ids = np.arange(len(self), dtype=np.int64)
        if len(ids) < 2 or not np.array_equal(self._pairs[:, 0], ids):
            return "none"
        if np.array_equal(self._pairs[:, 1], np.roll(ids, -1)):
            return "forward"
        return "backward" if np.array_equal(self._pairs[:, 1], np.roll(ids, 1)) else "none"

    def cycle_indices(self) -> tuple[Direction, tuple[int, ...]]:
        """Find the pairs that close cycles, by the older rule that accepts several cycles in any order.

        The direction is forward when strictly more pairs go to a larger id than do not. The closing pairs are those
        that go the other way; a pair from an id to itself goes neither.

        Returns:
            The direction and the positions of the closing pairs, ascending.

        Source: ``GetCycleTypeAndIndicesArray`` of older versions of xla/service/collective_permute_cycle.cc.

        Example:
            >>> SourceTargetPairs([(0, 1), (1, 2), (2, 0)]).cycle_indices()
            ('forward', (2,))
        """
        sources, targets = self._pairs[:, 0], self._pairs[:, 1]
        up = sources < targets
        forward = 2 * int(np.count_nonzero(up)) > len(self)
        closing = np.flatnonzero(sources > targets if forward else up)
        return ("forward" if forward else "backward"), tuple(closing.tolist())

    def faults(self, limit: int | None) -> tuple[Fault, ...]:
        r"""List what is wrong with the pairs.

        Args:
            limit: how many ids there are: replicas without a channel id, partitions with one. None where that is
                unknown; then only negative ids are out of range.

        Returns:
            Faults of the rules ``id-out-of-range`` and ``pair-repeated``; empty for valid pairs.

        Example:
            >>> print(*SourceTargetPairs([(0, 4), (0, 1)]).faults(4), sep="\n")
            expected ids in 0..3 in source-target pairs, found 4; name only devices that exist
            expected every source in one pair only, found source 0 in several; let each device send to one target
        """
        allowed = "of 0 or more" if limit is None else f"in 0..{limit - 1}"
        outside = self._pairs < 0 if limit is None else (self._pairs < 0) | (self._pairs >= limit)
        faults: list[Fault] = []
        if outside.any():
            wrong = np.unique(self._pairs[outside]).tolist()
            faults.append(
                Fault(
                    "id-out-of-range",
                    f"expected ids {allowed} in source-target pairs, found {name_ids(wrong)};"
                    " name only devices that exist",
                )
            )
        for column, role, cure in (
            (0, "source", "let each device send to one target"),
            (1, "target", "let each device receive from one source"),
        ):
            ids, counts = np.unique(self._pairs[:, column], return_counts=True)
            if (counts > 1).any():
                repeated = name_ids(ids[counts > 1].tolist())
                message = f"expected every {role} in one pair only, found {role} {repeated} in several; {cure}"
                faults.append(Fault("pair-repeated", message))
        return tuple(faults)

    def validate(self, limit: int | None) -> None:
        """Check that ids are in range, that each source sends once and that each target receives once.

        Args:
            limit: as for :meth:`faults`, which lists all faults instead of raising.

        Raises:
            CommlensError: the pairs are not valid; the text names every fault.
        """
        faults = self.faults(limit)
        if faults:
            msg = "; ".join(fault.message for fault in faults)
            raise CommlensError(msg)

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((source, target) for source, target in self._pairs.tolist())

    def __getitem__(self, index: int) -> tuple[int, int]:
        source, target = self._pairs[index].tolist()
        return source, target

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SourceTargetPairs):
            return NotImplemented
        return np.array_equal(self._pairs, other._pairs)

    def __hash__(self) -> int:
        return hash(self._pairs.tobytes())

    def __str__(self) -> str:
        # The text of nested lists needs only other brackets, and Python writes it faster than a loop here could.
        return str(self._pairs.tolist()).translate(_HLO_BRACKETS)

    def __repr__(self) -> str:
        return f"SourceTargetPairs({self._pairs.tolist()})"


def parse_source_target_pairs(text: str) -> SourceTargetPairs:
    """Read ``source_target_pairs`` as HLO text has them.

    Args:
        text: the list and nothing else; white space and comments may stand between tokens.

    Raises:
        GrammarError: where the text breaks the grammar, an id does not fit in 64 bits, or an item is no pair.

    Source: ``HloParserImpl`` in xla/hlo/parser/hlo_parser.cc.

    Example:
        >>> str(parse_source_target_pairs("{ {0,1}, /* back */ {1,0} }"))
        '{{0,1},{1,0}}'
    """
    ids, offsets = parse_id_lists(text)
    if ids.size == 2 * (offsets.size - 1) and bool((np.diff(offsets) == 2).all()):
        return SourceTargetPairs(ids.reshape(-1, 2))
    cursor = Cursor(text)
    return SourceTargetPairs(cursor.items("{", "}", lambda: _read_pair(cursor)))


def _read_pair(cursor: Cursor) -> list[int]:
    start = cursor.token.start
    pair = cursor.integers("{", "}", "an id")
    if len(pair) != 2:
        msg = f"expected a pair '{{source,target}}', found {len(pair)} ids"
        raise GrammarError(msg, position=start)
    return pair


def _pair_array(pairs: PairsLike) -> IntArray:
    if isinstance(pairs, SourceTargetPairs):
        return pairs.to_array()
    wanted = "expected pairs of two ints that fit in 64 bits, such as [(0, 1), (1, 0)]"
    try:
        values = np.array(pairs if isinstance(pairs, np.ndarray) else [tuple(pair) for pair in pairs])
    except (TypeError, ValueError):
        msg = f"{wanted}, found items that are not all pairs"
        raise CommlensError(msg) from None
    if values.shape[:1] == (0,):
        values = np.empty((0, 2), dtype=np.int64)
    if values.shape[1:] != (2,) or not fits_int64(values):
        msg = f"{wanted}, found an array of shape {values.shape} with elements of type {values.dtype}"
        raise CommlensError(msg)
    array = values.astype(np.int64)
    array.flags.writeable = False
    return array
