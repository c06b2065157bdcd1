"""Which named groups of ranks the collectives of a module are: "this all-gather is the tensor parallel one".

Where the names come from does not matter here: groups of global ids under any names will do.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from commlens.analysis.records import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.analysis.participation import Participation
    from commlens.analysis.reports import Report
    from commlens.analysis.row import Row
    from commlens.topology import DeviceList, SourceTargetPairs

Names: TypeAlias = list[str]

_Ids: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LayoutMatch(Record):
    """What one collective of a module is among named groups.

    Attributes:
        name: the instruction's name.
        axes: the mesh axes it runs along; None where they are not known.
        matches: names of the layouts whose groups are its participants. Groups are compared as sets: neither the order
            of the groups nor that of their members counts. Pairs match a layout when each pair of two devices is inside
            one of its groups, and there is such a pair.
        in_order: those of ``matches`` in which the members of every group stand in the same order too. None for pairs.
        first_group_only: names of the layouts of which it states the first group and no other, as modules do that were
            compiled with compressed replica groups.
        opcode: the operation.
        computation: name of the computation it stands in.
        line: line in the text; None in a proto.
        why: why its participants cannot be told, in a sentence; None where they can.
    """

    name: str
    axes: Names | None
    matches: Names
    in_order: Names | None
    first_group_only: Names
    opcode: str
    computation: str
    line: int | None
    why: str | None

    def as_dict(self) -> dict[str, object]:
        """Return the keys as a plain dict of JSON values."""
        return dict(self)


def match_layouts(report: Report, layouts: Mapping[str, DeviceList]) -> list[LayoutMatch]:
    """Say for each row of a report which of some named layouts it is.

    Args:
        report: the rows of a module.
        layouts: name -> groups of global ids.

    Returns:
        One answer per row, in row order; names in the order of ``layouts``.

    Example:
        >>> from commlens.analysis import report
        >>> from commlens.hlo import load
        >>> from commlens.topology import IotaReplicaGroupList
        >>> module = load('''HloModule m, replica_count=4
        ... ENTRY e {
        ...   p = f32[4] parameter(0)
        ...   ROOT g = f32[8] all-gather(p), replica_groups={{3,2},{0,1}}, dimensions={0}
        ... }''')
        >>> layouts = {"tp": IotaReplicaGroupList(2, 2), "dp": IotaReplicaGroupList(2, 2, (2, 2), (1, 0))}
        >>> [match] = match_layouts(report(module), layouts)
        >>> match.matches, match.in_order
        (['tp'], [])
    """
    named = _NamedLayouts(layouts)
    found: dict[int, _Found] = {}  # rows share participations, and the report keeps these alive
    answers: list[LayoutMatch] = []
    for row in report.collectives:
        participation = row.figures.participation
        known = found.get(id(participation))
        if known is None:
            known = found[id(participation)] = named.find(participation)
        answers.append(_answer(row, participation, known))
    return answers


@dataclass(frozen=True, slots=True)
class _Found:
    """What follows from who takes part."""

    matches: Names
    in_order: Names | None
    first_group_only: Names


def _answer(row: Row, participation: Participation, found: _Found) -> LayoutMatch:
    return LayoutMatch(
        name=row.name,
        axes=row.axes,
        matches=list(found.matches),
        in_order=None if found.in_order is None else list(found.in_order),
        first_group_only=list(found.first_group_only),
        opcode=row.opcode,
        computation=row.computation,
        line=row.line,
        why=participation.unknown_because,
    )


class _NamedLayouts:
    """Layouts, and the canonical forms of those that were compared so far."""

    def __init__(self, layouts: Mapping[str, DeviceList]) -> None:
        self._layouts = layouts
        self._sorted: dict[str, _SortedGroups] = {}

    def find(self, participation: Participation) -> _Found:
        """Compare who takes part with every layout."""
        if participation.pairs is not None:
            return _Found(self._names_of_pairs(participation.pairs), None, [])
        groups = participation.groups
        if groups is None:
            return _Found([], [], [])
        alike = [name for name, layout in self._layouts.items() if _same_shape(groups, layout)]
        found = _sorted_groups(groups) if alike else None
        matches = [name for name in alike if found is not None and found.same_sets(self._layout(name))]
        in_order = [name for name in matches if found is not None and found.same_order(self._layout(name))]
        first = [name for name, layout in self._layouts.items() if _is_first_group(groups, layout)]
        return _Found(matches, in_order, first)

    def _layout(self, name: str) -> _SortedGroups:
        found = self._sorted.get(name)
        if found is None:
            found = self._sorted[name] = _sorted_groups(self._layouts[name])
        return found

    def _names_of_pairs(self, pairs: SourceTargetPairs) -> Names:
        moved = [(source, target) for source, target in pairs if source != target]
        if not moved:
            return []
        ranks = np.unique(np.array(moved, dtype=np.int64))
        return [name for name, layout in self._layouts.items() if _inside(moved, _groups_of(layout, ranks))]


@dataclass(frozen=True, slots=True)
class _SortedGroups:
    """Groups of one size in an order that only their members decide, shape (groups, members).

    Attributes:
        sets: members ascending.
        listed: the same groups, members as they were listed.
    """

    sets: _Ids
    listed: _Ids

    def same_sets(self, other: _SortedGroups) -> bool:
        return np.array_equal(self.sets, other.sets)

    def same_order(self, other: _SortedGroups) -> bool:
        return np.array_equal(self.listed, other.listed)


def _sorted_groups(groups: DeviceList) -> _SortedGroups:
    listed = groups.to_array()
    sets = np.sort(listed, axis=1)
    if len(sets) < 2:
        return _SortedGroups(sets, listed)
    order = np.lexsort(sets.T[::-1])
    return _SortedGroups(sets[order], listed[order])


def _same_shape(groups: DeviceList, layout: DeviceList) -> bool:
    size = groups.num_devices_per_group
    return bool(size) and (groups.num_replica_groups, size) == (layout.num_replica_groups, layout.num_devices_per_group)


def _is_first_group(groups: DeviceList, layout: DeviceList) -> bool:
    if groups.num_replica_groups != 1 or layout.num_replica_groups < 2:
        return False
    return groups.num_devices == layout.num_devices_per_group and sorted(groups.group(0)) == sorted(layout.group(0))


def _groups_of(layout: DeviceList, ranks: _Ids) -> dict[int, set[int]]:
    """Return the numbers of the groups that hold each of some ranks."""
    ids = layout.flattened_replica_groups()
    places = np.flatnonzero(np.isin(ids, ranks))
    groups = np.repeat(np.arange(layout.num_replica_groups), layout.group_sizes())[places]
    groups_of: defaultdict[int, set[int]] = defaultdict(set)
    for rank, group in zip(ids[places].tolist(), groups.tolist(), strict=True):
        groups_of[rank].add(group)
    return groups_of


def _inside(pairs: list[tuple[int, int]], groups_of: Mapping[int, set[int]]) -> bool:
    return all(groups_of.get(source, set()) & groups_of.get(target, set()) for source, target in pairs)
