"""Topologies and pairs as tables show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commlens.neuron.pair_components import pair_components
from commlens.topology import CollectiveDeviceList, SourceTargetPairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.neuron.cc_info import CCInfo


class TopologyRow(NamedTuple):
    """One topology as a table shows it.

    Attributes:
        num_groups: number of groups.
        group_size: ranks in each group; None where the groups differ in size.
        num_ranks: sizes of all groups together.
        text: the groups, as an iota where one says them, else as a list.
    """

    num_groups: int
    group_size: int | None
    num_ranks: int
    text: str


class PairRow(NamedTuple):
    """One set of pairs as a table shows it.

    Attributes:
        num_pairs: number of pairs.
        largest: the largest id; None where there are no pairs.
        groups: the groups that the runtime makes of the pairs.
        text: the pairs.
    """

    num_pairs: int
    largest: int | None
    groups: str
    text: str


def topology_rows(info: CCInfo) -> Iterator[TopologyRow]:
    """Yield a row per topology."""
    for groups, size in zip(info.replica_groups or [], info.topologies, strict=True):
        yield TopologyRow(size.num_groups, size.group_size, sum(map(len, groups)), groups_text(groups))


def pair_rows(info: CCInfo) -> Iterator[PairRow]:
    """Yield a row per set of pairs."""
    for pairs in info.src_target_pairs or []:
        largest = max((rank for pair in pairs for rank in pair), default=None)
        yield PairRow(len(pairs), largest, groups_text(pair_components(pairs)), str(SourceTargetPairs(pairs)))


def groups_text(groups: list[list[int]]) -> str:
    """Write groups as an iota where one says them, else as a list."""
    listed = CollectiveDeviceList(groups or None)
    return str(listed.to_iota() or listed)
