"""Who takes part in a collective, as something to compare: equal where the devices exchange the same data.

The spelling of a replica group list, the order of its groups and the order of pairs mean nothing. The order of the
members inside a group decides which part of the data each device gets in some operations, in a broadcast only who comes
first, and nothing where data are summed. Source: the semantics of the operations in
https://openxla.org/xla/operation_semantics.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from commlens.analysis.axis_names import axes_key
from commlens.analysis.limits import FULL_LIMIT
from commlens.errors import CommlensError
from commlens.topology import CollectiveDeviceList, Mesh, axes_of

if TYPE_CHECKING:
    from commlens.analysis.figures import Figures
    from commlens.topology import DeviceList, SourceTargetPairs

Order: TypeAlias = Literal["any", "first", "all"]
"""Which members of a group stand where they do for a reason: none, the first, all."""

Key: TypeAlias = tuple[object, ...]
"""Hashable; equal for equal meanings alone."""

_ORDERED: Final = frozenset({"all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all"})
_ROOTED: Final = frozenset({"collective-broadcast"})

_Ids: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ParticipantKeys:
    """Who takes part.

    Attributes:
        key: what makes them equal to others.
        sets: the same without the order inside groups.
    """

    key: Key
    sets: Key


def participant_keys_of(figures: Figures) -> ParticipantKeys:
    """Return who takes part in a collective.

    Args:
        figures: the collective on its module. Where nobody can tell who takes part, what it says counts as it is
            written: such members are equal only to those that are written the same way.
    """
    participation, signature = figures.participation, figures.signature
    if signature.is_host_transfer:
        return ParticipantKeys(("host",), ("host",))
    order = order_of(signature.opcode)
    groups, pairs = participation.groups, participation.pairs
    known: Key = () if participation.ids is None else (participation.ids, participation.mode)
    if groups is None and pairs is None:
        groups, pairs = signature.groups, signature.pairs
        known = ("unknown", participation.mode, signature.has_channel, signature.use_global_device_ids)
    if pairs is not None:
        key = (*known, "pairs", *pairs_key(pairs))
        return ParticipantKeys(key, key)
    if groups is None:
        return ParticipantKeys(known, known)
    sets = (*known, *groups_key(groups, "any"))
    return ParticipantKeys(sets if order == "any" else (*known, *groups_key(groups, order)), sets)


def order_of(opcode: str) -> Order:
    """Return which members of a group stand where they do for a reason.

    Example:
        >>> order_of("all-gather"), order_of("collective-broadcast"), order_of("all-reduce")
        ('all', 'first', 'any')
    """
    if opcode in _ORDERED:
        return "all"
    return "first" if opcode in _ROOTED else "any"


def groups_key(groups: DeviceList, order: Order) -> Key:
    """Return what is equal for groups that mean the same.

    Args:
        groups: the groups, in any spelling and any order.
        order: which members stand where they do for a reason.

    Returns:
        A key of a few numbers where the groups lie evenly in ``0..n-1``, found in the number of their axes for laid-out
        lists; a digest of the sorted ids where they do not, or where only the first member counts; the text where there
        are too many ids to look at.

    Example:
        >>> from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList
        >>> columns = IotaReplicaGroupList(4, 2, (2, 4), (1, 0))
        >>> listed = CollectiveDeviceList([[5, 1], [4, 0], [6, 2], [7, 3]])
        >>> groups_key(columns, "any") == groups_key(listed, "any")
        True
        >>> groups_key(columns, "all") == groups_key(listed, "all")
        False
    """
    try:
        if order == "first":
            return _listed_key(groups, order)
        return _even_key(groups, order) or _listed_key(groups, order)
    except CommlensError:  # more ids than anybody writes out
        return "text", str(groups)


def pairs_key(pairs: SourceTargetPairs) -> Key:
    """Return what is equal for the same pairs in any order.

    Example:
        >>> from commlens.topology import SourceTargetPairs
        >>> pairs_key(SourceTargetPairs([(0, 1), (1, 0)])) == pairs_key(SourceTargetPairs([(1, 0), (0, 1)]))
        True
    """
    return len(pairs), _digest(_sorted_rows(pairs.to_array()))


def _even_key(groups: DeviceList, order: Order) -> Key | None:
    """Return the parts of the only axis of a mesh that the members run along; None where they are no such parts."""
    number = groups.num_devices
    if not number or groups.num_devices_per_group is None:
        return None
    mesh = Mesh({"device": number})
    refs = axes_of(groups, mesh)
    if refs is None and order == "any" and number <= FULL_LIMIT:
        refs = axes_of(CollectiveDeviceList(np.sort(groups.to_array(), axis=1)), mesh)
    if refs is None:
        return None
    parts = axes_key(refs, mesh).text if order == "any" else ",".join(ref.label for ref in refs)
    return "even", number, groups.num_devices_per_group, parts


def _listed_key(groups: DeviceList, order: Order) -> Key:
    if groups.num_devices > FULL_LIMIT:
        return "text", str(groups)
    if groups.num_devices_per_group is None:
        rows = sorted(_sorted_members(group, order) for group in groups.groups())
        flat = np.fromiter((value for row in rows for value in row), dtype=np.int64)
        sizes = np.fromiter(map(len, rows), dtype=np.int64)
        return "uneven", len(rows), _digest(sizes), _digest(flat)
    ids = groups.to_array()
    if order == "any":
        ids = np.sort(ids, axis=1)
    elif order == "first" and ids.shape[1]:
        ids = np.concatenate([ids[:, :1], np.sort(ids[:, 1:], axis=1)], axis=1)
    return "listed", *ids.shape, _digest(_sorted_rows(ids))


def _sorted_members(group: list[int], order: Order) -> list[int]:
    if order == "all":
        return group
    return sorted(group) if order == "any" else [*group[:1], *sorted(group[1:])]


def _sorted_rows(ids: _Ids) -> _Ids:
    """Sort rows by their members."""
    if len(ids) < 2 or not ids.shape[1]:
        return ids
    order = np.argsort(ids[:, 0], kind="stable")
    firsts = ids[order, 0]
    if (firsts[1:] == firsts[:-1]).any():  # ids that stand in several groups
        order = np.lexsort(ids.T[::-1])
    return ids[order]


def _digest(ids: _Ids) -> bytes:
    return blake2b(np.ascontiguousarray(ids, dtype="<i8").tobytes(), digest_size=16).digest()
