"""Smaller layouts with the same digits: what can be run in the place of groups that join too many devices.

A strided list of groups is a number in mixed radix read with its digits in another order: which digits vary inside a
group, and where they stand, is what the list means, and their sizes are not. So the sizes may shrink. The border
between replica and partition and the border between group and rank must lie between digits; a digit is cut in two where
they do not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING, Final

from commlens.analysis.participation import Counts
from commlens.topology import CollectiveOpGroupMode as Mode
from commlens.topology import IotaReplicaGroupList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.topology import DeviceList, SourceTargetPairs

_LARGEST_DIGIT: Final = 4
"""Largest size of a digit that has shrunk: three sizes are enough to tell most digits apart."""

_MOST_DIGITS: Final = 8


@dataclass(frozen=True, slots=True)
class Flags:
    """What an instruction states of its ids; its group mode follows from that.

    Attributes:
        has_channel: whether it has a channel id.
        use_global_device_ids: the flag; False for operations without one.
    """

    has_channel: bool
    use_global_device_ids: bool = False

    @classmethod
    def meaning(cls, mode: Mode) -> Flags:
        """Return the flags with which an operation that can have a mode has it."""
        return cls(mode is not Mode.CROSS_REPLICA, mode is Mode.FLATTENED_ID)


@dataclass(frozen=True, slots=True)
class Layout:
    """Groups or pairs, and the counts they are run with.

    Attributes:
        mode: what the ids are.
        counts: replicas and partitions.
        groups: the groups; None where there are pairs.
        pairs: the pairs; None where there are groups.
        stated: what the instruction states, from which ``mode`` was worked out; None where only the mode was given.
    """

    mode: Mode
    counts: Counts
    groups: DeviceList | None = None
    pairs: SourceTargetPairs | None = None
    stated: Flags | None = None

    @property
    def flags(self) -> Flags:
        """What to state in a program: the instruction's own flags, not those that would mean what was worked out."""
        return Flags.meaning(self.mode) if self.stated is None else self.stated

    @property
    def devices(self) -> int:
        """How many devices run it."""
        return self.counts.replicas * self.counts.partitions

    @property
    def text(self) -> str:
        """The groups or pairs in their canonical spelling."""
        return str(self.pairs if self.groups is None else self.groups)

    @property
    def ids(self) -> int:
        """How many different ids the groups or pairs may hold."""
        match self.mode:
            case Mode.CROSS_PARTITION:
                return self.counts.partitions
            case Mode.FLATTENED_ID:
                return self.devices
            case _:
                return self.counts.replicas

    def with_ids(self, number: int, others: int) -> Counts:
        """Return counts with other numbers of ids and of copies of each; not for flattened ids, which have no copies.

        Example:
            >>> Layout(Mode.CROSS_PARTITION, Counts(16, 8)).with_ids(4, 2)
            Counts(replicas=2, partitions=4)
        """
        return Counts(others, number) if self.mode is Mode.CROSS_PARTITION else Counts(number, others)


def scaled_down(layout: Layout, most_devices: int) -> Layout | None:
    """Return the same layout on fewer devices.

    Args:
        layout: the layout.
        most_devices: how many devices the answer may have.

    Returns:
        The layout itself where it is small enough; one whose digits have the same order and smaller sizes, different
        ones where there is room for that; None where there is none: the groups have no digits or too many.

    Example:
        >>> large = Layout(Mode.FLATTENED_ID, Counts(1, 512), IotaReplicaGroupList(16, 32, (32, 16), (1, 0)))
        >>> small = scaled_down(large, 64)
        >>> small.text, small.counts
        ('[2,3]<=[3,2]T(1,0)', Counts(replicas=1, partitions=6))
    """
    if layout.devices <= most_devices:
        return layout
    if layout.mode is not Mode.FLATTENED_ID and 2 * layout.ids <= most_devices:
        counts = layout.with_ids(layout.ids, min(3, most_devices // layout.ids))
        return replace(layout, counts=counts)
    if layout.groups is None:
        return None
    if layout.mode is Mode.FLATTENED_ID:
        return _with_flattened_ids(layout, layout.groups, most_devices)
    return _with_copies(layout, layout.groups, most_devices)


def _with_flattened_ids(layout: Layout, groups: DeviceList, most_devices: int) -> Layout | None:
    digits = _Digits.of(groups, layout.ids)
    split = None if digits is None else digits.cut_ids_at(layout.counts.replicas)
    if split is None:
        return None
    sizes = _smaller(split.sizes, most_devices)
    if sizes is None:
        return None
    outer = split.leading(split.sizes, layout.counts.replicas)
    counts = Counts(prod(sizes[:outer]), prod(sizes[outer:]))
    return replace(layout, counts=counts, groups=split.groups_with(sizes))


def _with_copies(layout: Layout, groups: DeviceList, most_devices: int) -> Layout | None:
    """Shrink groups of replica or partition ids, and the number of their copies as one more digit."""
    copies = layout.devices // layout.ids
    if groups.num_replica_groups == 0:
        sizes = _smaller((layout.ids, copies), most_devices)
        return None if sizes is None else replace(layout, counts=layout.with_ids(*sizes))
    digits = _Digits.of(groups, layout.ids)
    if digits is None:
        return None
    sizes = _smaller((*digits.sizes, copies), most_devices)
    if sizes is None:
        return None
    counts = layout.with_ids(prod(sizes[:-1]), sizes[-1])
    return replace(layout, counts=counts, groups=digits.groups_with(sizes[:-1]))


@dataclass(frozen=True, slots=True)
class _Digits:
    """The digits of a strided list of groups.

    Attributes:
        sizes: the digits' sizes in the order in which they make an id, outermost first.
        order: their numbers in the order in which they make a place in the list, outermost first.
        outer: how many of ``order`` tell the group; the others tell the rank.
    """

    sizes: tuple[int, ...]
    order: tuple[int, ...]
    outer: int

    @classmethod
    def of(cls, groups: DeviceList, ids: int) -> _Digits | None:
        """Take groups of all ids apart; None where they are not strided, or a digit cannot be cut where it must."""
        iota = groups.to_iota()
        if iota is None or iota.num_devices != ids:
            return None
        whole = cls(iota.reshape_dims, iota.transpose_perm, 0)
        sizes = [whole.sizes[digit] for digit in whole.order]
        found = _cut(sizes, iota.num_replica_groups)
        if found is None:
            return None
        place, outer_part = found
        cut = whole if outer_part == 1 else whole._with_cut(whole.order[place], outer_part)
        return cls(cut.sizes, cut.order, place + (outer_part > 1))

    def cut_ids_at(self, number: int) -> _Digits | None:
        """Return digits of which the first together count ``number``; None where that digit cannot be cut."""
        found = _cut(self.sizes, number)
        if found is None:
            return None
        place, outer_part = found
        return self if outer_part == 1 else self._with_cut(place, outer_part)

    def leading(self, sizes: Sequence[int], number: int) -> int:
        """Return how many of the first sizes together count ``number``."""
        return next(place for place in range(len(sizes) + 1) if prod(sizes[:place]) == number)

    def groups_with(self, sizes: Sequence[int]) -> IotaReplicaGroupList:
        """Return the groups that these digits mean with other sizes."""
        ordered = [sizes[digit] for digit in self.order]
        number = prod(ordered[: self.outer])
        return IotaReplicaGroupList(number, prod(ordered[self.outer :]), tuple(sizes), self.order)

    def _with_cut(self, digit: int, outer_part: int) -> _Digits:
        """Cut a digit in two that stand side by side in both orders."""
        size = self.sizes[digit]
        sizes = (*self.sizes[:digit], outer_part, size // outer_part, *self.sizes[digit + 1 :])
        order: list[int] = []
        outer = self.outer
        for place, each in enumerate(self.order):
            order.append(each + (each > digit))
            if each == digit:
                order.append(digit + 1)
                outer += place < self.outer
        return _Digits(sizes, tuple(order), outer)


def _cut(sizes: Sequence[int], number: int) -> tuple[int, int] | None:
    """Find where the first digits together count ``number``.

    Returns:
        How many whole digits come before, and the part of the next one that belongs to them, 1 for none of it; None
        where no cut makes that number.
    """
    before = 1
    for place, size in enumerate(sizes):
        if before == number:
            return place, 1
        if before * size > number:
            part, rest = divmod(number, before)
            return (place, part) if rest == 0 and size % part == 0 else None
        before *= size
    return (len(sizes), 1) if before == number else None


def _smaller(sizes: Sequence[int], most: int) -> tuple[int, ...] | None:
    """Choose smaller sizes with a product of at most ``most``; a digit keeps at least two values.

    As many different sizes as possible, larger ones where they were larger, and as few devices as that takes: equal
    digits could be exchanged unnoticed.
    """
    if sum(size > 1 for size in sizes) > _MOST_DIGITS:
        return None
    ranges = [range(min(size, 2), min(size, _LARGEST_DIGIT) + 1) for size in sizes]
    fitting = (chosen for chosen in product(*ranges) if prod(chosen) <= most)

    def worth(chosen: tuple[int, ...]) -> tuple[int, int, int]:
        both = combinations(list(zip(sizes, chosen, strict=True)), 2)
        alike = sum((a - b) * (c - d) > 0 for (a, c), (b, d) in both)
        return len({size for size in chosen if size > 1}), alike, -prod(chosen)

    return max(fitting, key=worth, default=None)
