"""The three things that a program says of its workers, as checked plain values.

Source: the loader's view of def.json: ``replica_groups`` is a set of topologies, each a set of groups, each a list of
32-bit ranks; ``src_target_pairs`` is one list of pairs per permute; ``#rank_world_size``, a hint, states a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, SupportsIndex, TypeAlias, TypeGuard

import numpy as np

from commlens.errors import CommlensError
from commlens.neuron.rank_numbers import as_integer

if TYPE_CHECKING:
    import numpy.typing as npt

Topology: TypeAlias = tuple[tuple[int, ...], ...]
"""One set of groups: ``[group][rank]``."""

Groups: TypeAlias = tuple[Topology, ...]
"""``[topology][group][rank]``."""

PairSet: TypeAlias = tuple[tuple[int, int], ...]
"""The pairs of one permute: ``[pair][source or target]``."""

Pairs: TypeAlias = tuple[PairSet, ...]
"""``[set][pair][source or target]``."""

_Ranks: TypeAlias = "npt.NDArray[np.integer] | Sequence[SupportsIndex]"
NestedRanks: TypeAlias = "npt.NDArray[np.integer] | Sequence[npt.NDArray[np.integer] | Sequence[_Ranks]]"
"""Groups or pairs as callers give them: nested three deep, as sequences, arrays, or sequences of arrays."""

REPLICA_GROUPS: Final = "replica_groups"
SRC_TARGET_PAIRS: Final = "src_target_pairs"
RANK_WORLD_SIZE: Final = "#rank_world_size"

MOST_LISTED_TOPOLOGIES: Final = 4096
_LARGEST_RANK: Final = 2**32 - 1
_TEXT_SHOWN: Final = 40


class WrongValueError(CommlensError):
    """A value is something else than it should be.

    Attributes:
        expected: what was expected, as the beginning of a sentence, with the mark behind it.
        found: the value.
    """

    def __init__(self, expected: str, found: object) -> None:
        super().__init__(f"{expected} found {shown(found)}")
        self.expected = expected
        self.found = found


class CCFields(NamedTuple):
    """What a program says of its workers; None for what it does not say.

    Attributes:
        replica_groups: ``[topology][group][rank]``.
        src_target_pairs: ``[set][pair][source or target]``.
        rank_world_size: the number of workers that is stated outright.
        notes: sentences about what had to be left out or chosen on the way.
        incomplete: whether the program has collectives whose groups or pairs are not known, so that they are missing.
    """

    replica_groups: Groups | None = None
    src_target_pairs: Pairs | None = None
    rank_world_size: int | None = None
    notes: tuple[str, ...] = ()
    incomplete: bool = False


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
        commlens.neuron.cc_fields.WrongValueError: expected replica_groups[0][0] to be a group of ranks: ...; found 0
    """
    nesting = f"{name} is nested as [topology][group][rank]"
    topologies = _items(value, name, f"a list of topologies: {nesting}")
    if len(topologies) > MOST_LISTED_TOPOLOGIES:
        found = f"(the runtime takes 12), found {len(topologies)}"
        msg = f"expected at most {MOST_LISTED_TOPOLOGIES} topologies in {name} {found}"
        raise CommlensError(msg)
    return tuple(
        tuple(
            _ranks(_items(group, f"{name}[{t}][{g}]", f"a group of ranks: {nesting}"), f"{name}[{t}][{g}]")
            for g, group in enumerate(_items(topology, f"{name}[{t}]", f"a list of groups: {nesting}"))
        )
        for t, topology in enumerate(topologies)
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
    """Return an integer of Python or numpy that fits the 32 bits which the runtime keeps it in, as an int.

    Raises:
        WrongValueError: (a CommlensError) it is something else; flags are no integers here.
    """
    number = as_integer(value)
    if number is None or not 0 <= number <= _LARGEST_RANK:
        expected = f"expected {name} to be {what}, a whole number from 0 to {_LARGEST_RANK},"
        raise WrongValueError(expected, value)
    return number


def _ranks(group: Sequence[object], name: str) -> tuple[int, ...]:
    if _are_ranks(group):
        return tuple(group)
    return tuple(checked_count(rank, f"{name}[{place}]", "a rank") for place, rank in enumerate(group))


def _are_ranks(group: Sequence[object]) -> TypeGuard[Sequence[int]]:
    """Whether all members are plain ints in range, as those of parsed JSON are."""
    return all(type(rank) is int and 0 <= rank <= _LARGEST_RANK for rank in group)


def _pair(value: object, name: str, nesting: str) -> tuple[int, int]:
    pair = _items(value, name, f"a pair of ranks: {nesting}")
    if len(pair) != 2:
        expected = f"expected {name} to be a pair, [source, target],"
        raise WrongValueError(expected, value)
    return checked_count(pair[0], f"{name}[0]", "a rank"), checked_count(pair[1], f"{name}[1]", "a rank")


def _items(value: object, name: str, what: str) -> Sequence[object]:
    if _is_array(value) and value.ndim:
        value = value.tolist() if value.dtype.kind in "iu" else list(value)
    if not _is_list(value):
        expected = f"expected {name} to be {what};"
        raise WrongValueError(expected, value)
    return value


def _is_array(value: object) -> TypeGuard[npt.NDArray[np.generic]]:
    return isinstance(value, np.ndarray)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def shown(value: object) -> str:
    """Return a short form of a value that may be of any size."""
    if isinstance(value, int) and abs(value) > 1 << 64:
        return f"a number of {value.bit_length()} bits"
    if _is_list(value):
        return f"a list of {len(value)}"
    text = "an object" if isinstance(value, dict) else repr(value)
    return text if len(text) <= _TEXT_SHOWN else text[:_TEXT_SHOWN] + "..."
