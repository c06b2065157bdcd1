"""The three things that a program says of its workers, as checked plain values.

Source: the loader's view of def.json: ``replica_groups`` is a set of topologies, each a set of groups, each a list of
32-bit ranks; ``src_target_pairs`` is one list of pairs per permute; ``#rank_world_size``, a hint, states a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias, TypeGuard

from commlens.errors import CommlensError

Topology: TypeAlias = tuple[tuple[int, ...], ...]
"""One set of groups: ``[group][rank]``."""

Groups: TypeAlias = tuple[Topology, ...]
"""``[topology][group][rank]``."""

PairSet: TypeAlias = tuple[tuple[int, int], ...]
"""The pairs of one permute: ``[pair][source or target]``."""

Pairs: TypeAlias = tuple[PairSet, ...]
"""``[set][pair][source or target]``."""

REPLICA_GROUPS: Final = "replica_groups"
SRC_TARGET_PAIRS: Final = "src_target_pairs"
RANK_WORLD_SIZE: Final = "#rank_world_size"

MOST_TOPOLOGIES: Final = 4096
_MOST: Final = 2**32 - 1
_SHOWN: Final = 40


class CCFields(NamedTuple):
    """What a program says of its workers; None for what it does not say.

    Attributes:
        replica_groups: ``[topology][group][rank]``.
        src_target_pairs: ``[set][pair][source or target]``.
        rank_world_size: the number of workers that is stated outright.
        notes: sentences about what had to be left out or chosen on the way.
    """

    replica_groups: Groups | None = None
    src_target_pairs: Pairs | None = None
    rank_world_size: int | None = None
    notes: tuple[str, ...] = ()


def checked_groups(value: object, name: str = REPLICA_GROUPS) -> Groups:
    """Return groups as nested tuples.

    Args:
        value: nested sequences, ``[topology][group][rank]``.
        name: what to call them in messages.

    Raises:
        CommlensError: the nesting is another, or something in it is no rank.

    Example:
        >>> checked_groups([[[0, 1], [2, 3]]])
        (((0, 1), (2, 3)),)
        >>> checked_groups([[0, 1]])  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        commlens.errors.CommlensError: expected replica_groups[0][0] to be a group of ranks: ...; found 0
    """
    nesting = f"{name} is nested as [topology][group][rank]"
    if _is_list(value) and len(value) > MOST_TOPOLOGIES:
        msg = f"expected at most {MOST_TOPOLOGIES} topologies in {name} (the runtime takes 12), found {len(value)}"
        raise CommlensError(msg)
    return tuple(
        tuple(
            tuple(
                checked_count(rank, f"{name}[{t}][{g}][{r}]", "a rank")
                for r, rank in enumerate(_items(group, f"{name}[{t}][{g}]", f"a group of ranks: {nesting}"))
            )
            for g, group in enumerate(_items(topology, f"{name}[{t}]", f"a list of groups: {nesting}"))
        )
        for t, topology in enumerate(_items(value, name, f"a list of topologies: {nesting}"))
    )


def checked_pairs(value: object, name: str = SRC_TARGET_PAIRS) -> Pairs:
    """Return source-target pairs as nested tuples.

    Args:
        value: nested sequences, ``[set][pair][source or target]``.
        name: what to call them in messages.

    Raises:
        CommlensError: the nesting is another, something is no pair, or no pair of ranks.

    Example:
        >>> checked_pairs([[[0, 1], [1, 0]]])
        (((0, 1), (1, 0)),)
    """
    nesting = f"{name} is nested as [set][pair][source or target]"
    return tuple(
        tuple(
            _pair(pair, f"{name}[{s}][{p}]", nesting)
            for p, pair in enumerate(_items(pairs, f"{name}[{s}]", f"a list of pairs: {nesting}"))
        )
        for s, pairs in enumerate(_items(value, name, f"a list of sets of pairs: {nesting}"))
    )


def checked_count(value: object, name: str, what: str) -> int:
    """Return an int that fits the 32 bits which the runtime keeps it in.

    Raises:
        CommlensError: it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
        msg = f"expected {name} to be {what}, an int from 0 to {_MOST}, found {_shown(value)}"
        raise CommlensError(msg)
    return value


def _pair(value: object, name: str, nesting: str) -> tuple[int, int]:
    pair = _items(value, name, f"a pair of ranks: {nesting}")
    if len(pair) != 2:
        msg = f"expected {name} to be a pair, [source, target], found {_shown(value)}"
        raise CommlensError(msg)
    return checked_count(pair[0], f"{name}[0]", "a rank"), checked_count(pair[1], f"{name}[1]", "a rank")


def _items(value: object, name: str, what: str) -> Sequence[object]:
    if not _is_list(value):
        msg = f"expected {name} to be {what}; found {_shown(value)}"
        raise CommlensError(msg)
    return value


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, (list, tuple))


def _shown(value: object) -> str:
    """Return a short form of a value that may be of any size."""
    if isinstance(value, int) and abs(value) > 1 << 64:
        return f"a number of {value.bit_length()} bits"
    if _is_list(value):
        return f"a list of {len(value)}"
    text = "an object" if isinstance(value, dict) else repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
