"""Rings of devices that wait for each other, where two kinds of hosts run collectives in different order.

A device waits in a collective until all members of its group have come to it. So each group of each collective is over
only when its members have left all groups that come before it on their hosts: a device ``d`` that runs X before Y makes
its group of Y wait for its group of X. Devices never move on if and only if these demands close a ring. Which device is
on which kind of host is not known to modules; a ring is possible if it can be closed by devices each of which stands in
it once, for then each may be on a host of the kind that the ring needs. (A ring in which a device stands twice, on a
host of the same kind, can be cut short.)

Between two collectives a device demands something in one direction or in the other, whichever host it is on. So they
deadlock on some placement if and only if the graph that has their groups as nodes and each device as an edge between
its two groups has a cycle, for the ways around it alternate between the two.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Groups: TypeAlias = "Sequence[Sequence[int]]"
"""Groups of devices, or pairs of them: each waits for its own members alone."""

_Node: TypeAlias = tuple[int, int]
"""A collective, and which of its groups."""

_MOST_STATES: Final = 20_000
"""Most ways that are tried in the search for one ring."""

_MOST_TURNS: Final = 1 << 20
"""Most pairs of collectives with a common device that are looked at to begin one."""


class Wait(NamedTuple):
    """A device of a ring.

    Attributes:
        device: the device.
        kind: the kind of hosts that it has to be on, 0 or 1.
        collective: the collective in which it waits for the next device of the ring, the last one for the first.
    """

    device: int
    kind: int
    collective: int


def ring_of_two(devices: Sequence[int], groups: Sequence[int], others: Sequence[int]) -> tuple[Wait, ...] | None:
    """Return a ring of devices through the groups of two collectives; None where no placement of them makes one.

    Hosts of kind 0 run the first collective before the second one, hosts of kind 1 the other way round. Takes time in
    proportion to the devices.

    Args:
        devices: the devices that are in a group of both, each once.
        groups: beside each the number of its group in the first collective, counted from 0.
        others: the number of its group in the second one.

    Example:
        Two axes of a mesh, {{0,1},{2,3}} and {{0,2},{1,3}}: 0 waits for 1, 1 for 3, 3 for 2 and 2 for 0.

        >>> [(wait.device, wait.kind) for wait in ring_of_two([0, 1, 2, 3], [0, 0, 1, 1], [0, 1, 0, 1])]
        [(0, 0), (1, 1), (3, 0), (2, 1)]
    """
    shift = max(groups, default=-1) + 1
    ends = [*zip(groups, (shift + other for other in others), strict=True)]
    cycle = _cycle(ends, shift + max(others, default=-1) + 1)
    if cycle is None:
        return None
    start = min(range(len(cycle)), key=lambda place: devices[cycle[place]])
    first, *rest = [*cycle[start:], *cycle[:start]]
    if groups[first] != groups[rest[0]]:
        rest.reverse()  # who waits in the first collective waits for a member of its group there
    turned = [first, *rest]
    return tuple(Wait(devices[edge], place % 2, place % 2) for place, edge in enumerate(turned))


def _cycle(ends: Sequence[tuple[int, int]], nodes: int) -> list[int] | None:
    """Return the edges of a cycle of a graph in turn; None in a forest."""
    flat = np.array(ends, dtype=np.int64).reshape(-1)
    order = np.argsort(flat, kind="stable")
    starts = np.searchsorted(flat[order], np.arange(nodes + 1)).tolist()
    edges: list[int] = (order // 2).tolist()
    above: dict[int, tuple[int, int]] = {}  # node -> the edge by which it was reached, and the node at its other end
    for root in range(nodes):
        queue = deque([] if root in above else [root])
        above.setdefault(root, (-1, -1))
        while queue:
            node = queue.popleft()
            for edge in edges[starts[node] : starts[node + 1]]:
                if edge == above[node][0]:
                    continue
                other = ends[edge][0] + ends[edge][1] - node
                if other in above:
                    return [*_between(above, node, other), edge]
                above[other] = (edge, node)
                queue.append(other)
    return None


def _between(above: Mapping[int, tuple[int, int]], node: int, other: int) -> list[int]:
    """Return the edges of a tree that lead from one node to another one."""
    up, down = _way_up(above, node), _way_up(above, other)
    while up and down and up[-1] == down[-1]:
        up.pop()
        down.pop()
    return [*up, *reversed(down)]


def _way_up(above: Mapping[int, tuple[int, int]], node: int) -> list[int]:
    way: list[int] = []
    while above[node][0] >= 0:
        edge, node = above[node]
        way.append(edge)
    return way


def ring_of_many(collectives: Sequence[Groups], ranks: Sequence[int]) -> tuple[tuple[Wait, ...] | None, bool]:
    """Return a ring of devices through the groups of some collectives, and whether all ways were tried.

    The ways to close a ring are tried one by one, the short ones first, up to a limit: this is for permutes, in which a
    device has several pairs, and for rings through three collectives and more.

    Args:
        collectives: the groups or pairs of each, in the order in which hosts of kind 0 run them.
        ranks: beside each its place in the order in which hosts of kind 1 do.

    Returns:
        A ring, None where there is none; and False where the limit was met before one was found.

    Example:
        One kind of hosts runs three collectives in turn, the other one the last of them first.

        >>> ring, _ = ring_of_many([[(0, 1)], [(1, 2)], [(2, 0)]], [1, 2, 0])
        >>> [(wait.device, wait.kind, wait.collective) for wait in ring]
        [(2, 0, 1), (1, 0, 0), (0, 1, 2)]
    """
    search = _Search(collectives, ranks)
    for turn in search.turns():
        ring = search.closing(turn)
        if ring is not None:
            return ring, True
        if search.states_left <= 0:
            break
    return None, search.states_left > 0 and search.turns_left >= 0


class _Turn(NamedTuple):
    """A device that goes back to a collective which hosts of kind 0 run earlier.

    Attributes:
        device: the device.
        later: its group in the later collective.
        earlier: its group in the earlier one.
    """

    device: int
    later: _Node
    earlier: _Node


class _Search:
    """A search for rings, the shortest first.

    Args:
        collectives: as above.
        ranks: as above.
    """

    def __init__(self, collectives: Sequence[Groups], ranks: Sequence[int]) -> None:
        self.states_left = _MOST_STATES
        self.turns_left = _MOST_TURNS
        self._collectives = collectives
        self._ranks = ranks
        self._nodes: dict[int, list[_Node]] = {}
        for number, groups in enumerate(collectives):
            for place, group in enumerate(groups):
                for device in dict.fromkeys(group):
                    self._nodes.setdefault(device, []).append((number, place))

    def turns(self) -> Iterator[_Turn]:
        """Yield what every ring has: a device of kind 1 that goes from one collective to one which kind 0 runs earlier.

        By the earlier collective, then by the later one; ends where more would have to be looked at than are.
        """
        places = {device: place for place, device in enumerate(self._nodes)}
        for earlier, groups in enumerate(self._collectives):
            found: list[tuple[int, int, _Turn]] = []
            for place, group in enumerate(groups):
                for device in dict.fromkeys(group):
                    nodes = self._nodes[device]
                    later = nodes[bisect_right(nodes, earlier, key=itemgetter(0)) :]
                    self.turns_left -= len(later)
                    found += [
                        (start[0], places[device], _Turn(device, start, (earlier, place)))
                        for start in later
                        if self._ranks[start[0]] < self._ranks[earlier]
                    ]
            if self.turns_left < 0:
                return
            yield from (turn for _, _, turn in sorted(found))

    def closing(self, turn: _Turn) -> tuple[Wait, ...] | None:
        """Return a ring with a turn in it; None where there is none, or the limit is met."""
        ring = self._way(turn.earlier, turn.later, Wait(turn.device, 1, turn.later[0]))
        return None if ring is None else tuple(reversed(ring))

    def _way(self, node: _Node, goal: _Node, first: Wait) -> tuple[Wait, ...] | None:
        """Return who leads from a node to another one, each device once."""
        queue: deque[tuple[_Node, tuple[Wait, ...]]] = deque([(node, (first,))])
        seen: set[tuple[_Node, frozenset[int]]] = set()
        while queue and self.states_left > 0:
            place, way = queue.popleft()
            for wait, following in self._steps(place, way):
                if following == goal:
                    return (*way, wait)
                state = (following, frozenset(each.device for each in (*way, wait)))
                if state not in seen:
                    seen.add(state)
                    self.states_left -= 1
                    queue.append((following, (*way, wait)))
        return None

    def _steps(self, node: _Node, way: tuple[Wait, ...]) -> Iterator[tuple[Wait, _Node]]:
        """Yield the devices that lead on from a node, with where to."""
        number, place = node
        used = {wait.device for wait in way}
        for device in dict.fromkeys(self._collectives[number][place]):
            for following in self._nodes[device] if device not in used else ():
                if number < following[0]:
                    yield Wait(device, 0, number), following
                elif following[0] < number and self._ranks[number] < self._ranks[following[0]]:
                    yield Wait(device, 1, number), following
