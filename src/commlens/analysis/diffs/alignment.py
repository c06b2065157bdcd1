"""Pairing the things of two lists: what is the same, what has changed, what has moved, what is in one list alone.

What is equal and in the same order comes first. What is left lies in gaps between equal things, and the place in a gap,
the name and what two things still have in common say whether one has become the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from commlens.analysis.diffs.subsequences import longest_common_subsequence, longest_increasing_subsequence

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence


class Item(NamedTuple):
    """One thing of a list.

    Attributes:
        kind: what can never change: things of different kinds are never paired.
        key: equal for things that are the same.
        name: what it is called.
        traits: what it may have in common with what it has become, the most telling first.
    """

    kind: Hashable
    key: Hashable
    name: str
    traits: tuple[Hashable, ...] = ()


@dataclass(frozen=True, slots=True)
class Alignment:
    """How two lists belong together.

    Attributes:
        pairs: positions in both lists of things that belong together, rising in the first.
        moved: those of the pairs that stand at another place among the others.
        removed: positions of things that only the first list has.
        added: positions of things that only the second list has.
    """

    pairs: tuple[tuple[int, int], ...]
    moved: frozenset[tuple[int, int]]
    removed: tuple[int, ...]
    added: tuple[int, ...]


def align(before: Sequence[Item], after: Sequence[Item]) -> Alignment:
    """Pair the things of two lists.

    As many equal things as can stand in the same order are paired first, where there is a choice those with the same
    name. Then, in this order: things of one name in one gap; equal things anywhere; things in one gap that share a
    trait, in the same order; things of one name anywhere. Where all that is left has merely moved, names mean nothing.

    Args:
        before: the first list.
        after: the second list.

    Returns:
        The pairs; the same ones every time.

    Example:
        >>> reduce, gather = Item("r", "r[4]", "r.1"), Item("g", "g[4]", "g.1")
        >>> align([reduce, gather], [gather, reduce]).moved
        frozenset({(0, 1)})
        >>> wider = Item("r", "r[8]", "r.1")
        >>> align([reduce, gather], [wider, gather]).pairs
        ((0, 0), (1, 1))
    """
    pairing = _Pairing(before, after)
    pairing.pair_equal()
    if not pairing.has_only_moved:
        pairing.pair_in_gaps(_same_name)
    pairing.pair_anywhere(lambda item: (item.key, item.name))
    pairing.pair_anywhere(lambda item: item.key)
    for level in range(max((len(item.traits) for item in before), default=0)):
        pairing.pair_in_gaps(_same_trait(level))
    pairing.pair_anywhere(_same_name)
    return pairing.alignment()


def _same_name(item: Item) -> Hashable:
    return item.kind, item.name


def _same_trait(level: int) -> Callable[[Item], Hashable]:
    def trait_of(item: Item) -> Hashable:
        return None if level >= len(item.traits) else (item.kind, item.traits[level])

    return trait_of


class _Pairing:
    """Pairs while they are being found.

    ``_anchors`` are pairs that rise in both lists; gaps are what lies between them.
    """

    def __init__(self, before: Sequence[Item], after: Sequence[Item]) -> None:
        self._before = before
        self._after = after
        self._anchors: list[tuple[int, int]] = []
        self._partner: dict[int, int] = {}
        self._taken: set[int] = set()

    def pair_equal(self) -> None:
        """Pair equal things in the same order: as many as possible, by name where that leaves none out."""
        keys = [[item.key for item in items] for items in (self._before, self._after)]
        plain = longest_common_subsequence(*keys)
        named = longest_common_subsequence(
            *([(item.key, item.name) for item in items] for items in (self._before, self._after))
        )
        if len(named) < len(plain):
            between = [
                (i + first, j + second)
                for first, end, second, stop in _gaps(named, len(keys[0]), len(keys[1]))
                for i, j in longest_common_subsequence(keys[0][first:end], keys[1][second:stop])
            ]
            if len(named) + len(between) == len(plain):
                plain = [*named, *between]
        else:
            plain = named
        self._take(plain, anchor=True)

    @property
    def has_only_moved(self) -> bool:
        """Whether everything that is not paired yet has its equal in the other list."""
        left = Counter(item.key for i, item in enumerate(self._before) if i not in self._partner)
        return left == Counter(item.key for j, item in enumerate(self._after) if j not in self._taken)

    def pair_in_gaps(self, value_of: Callable[[Item], Hashable]) -> None:
        """Pair things between the same two anchors that have a value in common, in the same order; None is no value."""
        found: list[tuple[int, int]] = []
        for first, end, second, stop in _gaps(self._anchors, len(self._before), len(self._after)):
            left = self._valued(self._before, range(first, end), self._partner, value_of)
            right = self._valued(self._after, range(second, stop), self._taken, value_of)
            if left and right:
                pairs = longest_common_subsequence([value for _, value in left], [value for _, value in right])
                found += [(left[i][0], right[j][0]) for i, j in pairs]
        self._take(found, anchor=True)

    def pair_anywhere(self, value_of: Callable[[Item], Hashable]) -> None:
        """Pair things that have a value in common wherever they stand, the first with the first."""
        waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for j, value in self._valued(self._after, range(len(self._after)), self._taken, value_of):
            waiting[value].append(j)
        left = self._valued(self._before, range(len(self._before)), self._partner, value_of)
        self._take([(i, waiting[value].popleft()) for i, value in left if waiting.get(value)], anchor=False)

    def alignment(self) -> Alignment:
        """Return what was found."""
        pairs = sorted(self._partner.items())
        kept = longest_increasing_subsequence([j for _, j in pairs])
        return Alignment(
            pairs=tuple(pairs),
            moved=frozenset(pairs) - {pairs[position] for position in kept},
            removed=tuple(i for i in range(len(self._before)) if i not in self._partner),
            added=tuple(j for j in range(len(self._after)) if j not in self._taken),
        )

    def _take(self, pairs: Iterable[tuple[int, int]], *, anchor: bool) -> None:
        pairs = list(pairs)
        self._partner.update(pairs)
        self._taken.update(j for _, j in pairs)
        if anchor and pairs:
            self._anchors = sorted([*self._anchors, *pairs])

    @staticmethod
    def _valued(
        items: Sequence[Item], places: Iterable[int], paired: Iterable[int], value_of: Callable[[Item], Hashable]
    ) -> list[tuple[int, Hashable]]:
        """Return the things at some places that are not paired yet, each with its value."""
        free = (place for place in places if place not in paired)
        valued = ((place, value_of(items[place])) for place in free)
        return [(place, value) for place, value in valued if value is not None]


def _gaps(anchors: Iterable[tuple[int, int]], first: int, second: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield what lies between anchors: where it starts and ends in the first list and in the second."""
    i = j = 0
    for next_i, next_j in (*anchors, (first, second)):
        if next_i > i and next_j > j:
            yield i, next_i, j, next_j
        i, j = next_i + 1, next_j + 1
