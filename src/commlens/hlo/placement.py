"""Where a combined instruction stands in the list of its computation, and what has to follow it.

Both backends keep the order of a list, which is the schedule where the module has one, as far as the operands of the
new instruction allow.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from commlens.hlo.edits import EditError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Key = TypeVar("Key", bound=Hashable)
Predecessors: TypeAlias = Callable[[Key], Iterable[Key]]
"""Gives what must come before an instruction: operands and control predecessors."""


class Combination(NamedTuple, Generic[Key]):
    """Instructions that become one.

    Attributes:
        members: their keys, in operand order.
        new: the key of the new instruction.
        name: its name, for messages.
    """

    members: Sequence[Key]
    new: Key
    name: str


@dataclass(frozen=True, slots=True)
class Placement(Generic[Key]):
    """Where new and moved instructions stand.

    Attributes:
        places: by position in the old order, what stands there now: none, one or several instructions. A place that
            holds what it held before is left out.
        moved: the instructions of the old order that stand elsewhere now.
        predecessors: what must come before each new instruction and each member now.
    """

    places: Mapping[int, Sequence[Key]]
    moved: frozenset[Key]
    predecessors: Mapping[Key, Sequence[Key]]

    def order(self, old: Sequence[Key]) -> list[Key]:
        """Return the new order of the whole list."""
        return [key for position, stood in enumerate(old) for key in self.places.get(position, (stood,))]


def place(
    order: Sequence[Key], predecessors: Predecessors[Key], combinations: Iterable[Combination[Key]]
) -> Placement[Key]:
    """Find places for new instructions, each of which does what its members did.

    A new instruction goes where the first of its members stood. If a predecessor of a member stands behind that, it
    goes directly behind the last such one, and what stands between and needs a member, the members themselves too,
    moves directly behind it and keeps its order. A member then needs only the new instruction. The combinations are
    made one after the other.

    Args:
        order: the keys of all instructions of a computation.
        predecessors: the predecessors of a key of ``order``; keys that do not stand in it are passed over.
        combinations: what becomes one.

    Returns:
        The places. Time beside one look at every key: what stands between the first member and its last predecessor.

    Raises:
        EditError: members of a combination depend on each other.

    Example:
        >>> needs = {"a": (), "x": ("a",), "use": ("x",), "b": (), "y": ("b",)}
        >>> list_ = ["a", "x", "use", "b", "y"]
        >>> place(list_, needs.__getitem__, [Combination(["x", "y"], "xy", "xy")]).order(list_)
        ['a', 'b', 'xy', 'x', 'use', 'y']
    """
    rows = _Rows(order, predecessors)
    for combination in combinations:
        rows.combine(combination)
    places = {place: row for place, row in rows.changed.items() if row != [order[place]]}
    moved = frozenset(key for place, row in places.items() for key in row if rows.old.get(key, place) != place)
    return Placement(places, moved, rows.needs)


class _Rows(Generic[Key]):
    """The list as a row of keys at every place of the old order, so that nothing else shifts when one row changes."""

    def __init__(self, order: Sequence[Key], predecessors: Predecessors[Key]) -> None:
        self.old = {key: place for place, key in enumerate(order)}
        self.changed: dict[int, list[Key]] = {}
        self.needs: dict[Key, tuple[Key, ...]] = {}
        self._now: dict[Key, int] = {}
        self._order = order
        self._predecessors = predecessors

    def combine(self, combination: Combination[Key]) -> None:
        """Put a new instruction in its place and move what has to follow it."""
        members = frozenset(combination.members)
        needed = tuple(dict.fromkeys(each for member in combination.members for each in self._needed(member)))
        first, last = min(map(self._position, members)), max(map(self._position, needed), default=(-1, -1))
        if last < first:
            self._row(first[0]).insert(first[1], combination.new)
            self._now[combination.new] = first[0]
        else:
            followers = self._followers(members, first, last)
            if not members.isdisjoint(needed) or not followers.keys().isdisjoint(needed):
                msg = (
                    f"expected instructions that do not depend on each other to make {combination.name} of, "
                    "found one that needs another"
                )
                raise EditError(msg)
            self._move(combination.new, followers, self._row(last[0])[last[1]], last[0])
        self.needs[combination.new] = needed
        self.needs.update(dict.fromkeys(members, (combination.new,)))

    def _needed(self, key: Key) -> Sequence[Key]:
        found = self.needs.get(key)
        return found if found is not None else [each for each in self._predecessors(key) if each in self.old]

    def _row(self, place: int) -> list[Key]:
        return self.changed.setdefault(place, [self._order[place]])

    def _position(self, key: Key) -> tuple[int, int]:
        """Return the place of a key and its position in the row there."""
        place = self._now.get(key)
        if place is None:
            place = self.old[key]
        row = self.changed.get(place)
        return place, 0 if row is None else row.index(key)

    def _followers(self, members: frozenset[Key], first: tuple[int, int], last: tuple[int, int]) -> dict[Key, int]:
        """Return what stands between two positions and is a member or needs one, in order, with its place."""
        found: dict[Key, int] = {}  # what does not stand in the list follows nothing
        follows = found.keys()
        for place, key in self._between(first, last):
            needs = self.needs[key] if key in self.needs else self._predecessors(key)
            if key in members or not follows.isdisjoint(needs):
                found[key] = place
        return found

    def _between(self, first: tuple[int, int], last: tuple[int, int]) -> Iterator[tuple[int, Key]]:
        """Yield what stands between two positions, both included, with its place."""
        for place in range(first[0], last[0] + 1):
            row = self.changed.get(place)
            if row is None:
                yield place, self._order[place]
                continue
            begin = first[1] if place == first[0] else 0
            end = last[1] + 1 if place == last[0] else len(row)  # what else stands in the last row is behind already
            for key in row[begin:end]:
                yield place, key

    def _move(self, new: Key, followers: Mapping[Key, int], behind: Key, place: int) -> None:
        """Put the new instruction and its followers directly behind a key of a place."""
        for left in dict.fromkeys(followers.values()):  # each row once: it may have grown long
            self.changed[left] = [each for each in self._row(left) if each not in followers]
        target = self._row(place)
        at = target.index(behind) + 1
        target[at:at] = [new, *followers]
        self._now.update(dict.fromkeys((new, *followers), place))
