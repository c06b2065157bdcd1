"""The collectives of a module by everything that a message can say of them.

A log can hold thousands of different messages, and a module thousands of collectives: each message is held against
those alone that bear one of its facts, the rarest. Rows over the same groups share one :class:`Join`, so that devices
are compared once for all of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from commlens.analysis.limits import FULL_LIMIT
from commlens.analysis.logs.fitting import connected
from commlens.analysis.logs.payloads import Payload, Side, payload_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.analysis.figures import Figures
    from commlens.analysis.logs.said import Kind
    from commlens.analysis.participation import Participation
    from commlens.analysis.row import Row
    from commlens.hlo import Signature
    from commlens.topology import DeviceList, SourceTargetPairs

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

_NUMBERED: Final = re.compile(r"\.(\d{1,18})\Z")


@dataclass(frozen=True, slots=True, eq=False)
class Join:
    """Who takes part in some rows, all of which write the same groups or pairs and join the same devices.

    Attributes:
        figures: those of one of the rows; what they say of devices holds for all.
        positions: where the rows stand, ascending.
    """

    figures: Figures
    positions: list[int] = field(default_factory=list[int])

    @property
    def participation(self) -> Participation:
        """Who takes part."""
        return self.figures.participation

    @property
    def joined(self) -> DeviceList | SourceTargetPairs | None:
        """The groups or pairs of global ids; None where they cannot be told."""
        participation = self.participation
        return participation.groups if participation.pairs is None else participation.pairs


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """Rows that are alike in operation, channel and participants.

    Attributes:
        signature: that of one of the rows.
        join: who takes part.
        positions: where the rows stand, ascending.
    """

    signature: Signature
    join: Join
    positions: list[int] = field(default_factory=list[int])


class Index:
    """The rows of a module by what a message can say; every part of it is made when it is first asked for.

    Args:
        rows: the rows.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    @cached_property
    def by_channel(self) -> dict[int, list[int]]:
        """Channel -> positions of the rows that have it."""
        return _grouped((row.channel_id, position) for position, row in enumerate(self._rows))

    @cached_property
    def by_opcode(self) -> dict[str, list[int]]:
        """Opcode -> positions of its rows."""
        return _grouped((row.opcode, position) for position, row in enumerate(self._rows))

    @cached_property
    def by_kind(self) -> dict[Kind, list[int]]:
        """What XLA calls a collective with or without a channel -> positions of such rows."""
        return _grouped(
            ("cross_module" if row.figures.signature.has_channel else "cross_replica", position)
            for position, row in enumerate(self._rows)
        )

    @cached_property
    def by_op_name(self) -> dict[str, list[int]]:
        """``op_name`` -> positions of the rows whose metadata have it."""
        return _grouped((row.op_name, position) for position, row in enumerate(self._rows))

    @cached_property
    def by_name(self) -> dict[str, list[int]]:
        """Name of an instruction -> positions of its rows."""
        return _grouped((row.name, position) for position, row in enumerate(self._rows))

    @cached_property
    def by_number(self) -> dict[int, set[int]]:
        """Number at the end of a name, as in ``all-reduce.534`` -> positions of such rows."""
        found: dict[int, set[int]] = {}
        for name, positions in self.by_name.items():
            match = _NUMBERED.search(name)
            if match is not None:
                found.setdefault(int(match[1]), set()).update(positions)
        return found

    @cached_property
    def has_written_ids(self) -> bool:
        """Whether the ids of some row are as they are written, for nobody states the counts."""
        return any(row.ids for row in self._rows)

    def with_elements(self, side: Side, number: int) -> list[int]:
        """Return the positions of the rows that can have so many elements on one side."""
        known = self._by_elements[side]
        return sorted({*known.get(number, ()), *known.get(None, ())})

    def payload(self, figures: Figures, side: Side) -> Payload:
        """Return what a row with such figures puts in or gets out."""
        key = (figures, side)
        payload = self._payloads.get(key)
        if payload is None:
            payload = self._payloads[key] = payload_of(figures.signature, side)
        return payload

    @cached_property
    def joins(self) -> list[Join]:
        """Who takes part in the rows, each way once."""
        return list(dict.fromkeys(self.join_of))

    @cached_property
    def join_of(self) -> list[Join]:
        """The join of each row."""
        seen: dict[tuple[int, int, bool], Join] = {}  # by identity: much is shared, and rows keep it alive
        joins: dict[tuple[Participation, DeviceList | None, bool], Join] = {}
        found: list[Join] = []
        for position, row in enumerate(self._rows):
            figures = row.figures
            participation, groups = figures.participation, figures.signature.groups
            is_transfer = bool(figures.signature.is_host_transfer)
            identity = (id(participation), id(groups), is_transfer)
            join = seen.get(identity)
            if join is None:
                join = seen[identity] = joins.setdefault((participation, groups, is_transfer), Join(figures))
            join.positions.append(position)
            found.append(join)
        return found

    @cached_property
    def alike_of(self) -> dict[Join, list[Alike]]:
        """Who takes part -> the rows of that join by operation and channel."""
        return _grouped((each.join, each) for each in self.alike)

    @cached_property
    def alike(self) -> list[Alike]:
        """The rows by operation, channel and participants."""
        found: dict[tuple[str, bool, Join], Alike] = {}
        for position, (row, join) in enumerate(zip(self._rows, self.join_of, strict=True)):
            signature = row.figures.signature
            key = (signature.opcode, signature.has_channel, join)
            found.setdefault(key, Alike(signature, join)).positions.append(position)
        return list(found.values())

    def joins_with(self, devices: Sequence[int], num_devices: int | None) -> list[Join]:
        """Return the joins that may have these devices as a group, or may connect them: all that do and some more.

        Args:
            devices: global ids.
            num_devices: devices of the module, on all of which a permute runs; None where nobody states them.
        """
        wanted = frozenset(devices)
        found = [*self._members.get(wanted, ()), *self._sized.get(len(wanted), ()), *self._untold]
        is_all = len(wanted) == num_devices and wanted == frozenset(range(len(wanted)))
        return [*found, *self._pairs] if is_all else found

    @cached_property
    def _payloads(self) -> dict[tuple[Figures, Side], Payload]:
        return {}

    @cached_property
    def _by_elements(self) -> dict[Side, dict[int | None, list[int]]]:
        found: dict[Side, dict[int | None, list[int]]] = {"in": {}, "out": {}}
        for side, known in found.items():
            for position, row in enumerate(self._rows):
                for number in self.payload(row.figures, side).keys():  # noqa: SIM118 - no mapping
                    known.setdefault(number, []).append(position)
        return found

    @cached_property
    def _members(self) -> dict[frozenset[int], list[Join]]:
        """Devices -> the joins of which they are a group that is written out, or which connect them."""
        found: dict[frozenset[int], list[Join]] = {}
        for join in self.joins:
            for devices in set(_written(join.participation)):
                found.setdefault(devices, []).append(join)
        return found

    @cached_property
    def _sized(self) -> dict[int, list[Join]]:
        """Size -> the joins over groups of so many devices each that are not written out."""
        return _grouped(
            (join.participation.groups.num_devices_per_group, join)
            for join in self.joins
            if join.participation.groups is not None and not _is_written(join.participation)
        )

    @cached_property
    def _untold(self) -> list[Join]:
        """The joins of which the members cannot be told, or not by a size."""
        return [
            join
            for join in self.joins
            if join.participation.pairs is None
            and not _is_written(join.participation)
            and (join.participation.groups is None or join.participation.groups.num_devices_per_group is None)
        ]

    @cached_property
    def _pairs(self) -> list[Join]:
        return [join for join in self.joins if join.participation.pairs is not None]


def _grouped(pairs: Iterable[tuple[KeyT | None, ValueT]]) -> dict[KeyT, list[ValueT]]:
    found: dict[KeyT, list[ValueT]] = {}
    for key, value in pairs:
        if key is not None:
            found.setdefault(key, []).append(value)
    return found


def _is_written(participation: Participation) -> bool:
    groups = participation.groups
    return groups is not None and groups.is_written_out and groups.num_devices <= FULL_LIMIT


def _written(participation: Participation) -> Iterator[frozenset[int]]:
    """Yield the sets of devices that a message can name, of what is written out one by one."""
    pairs, groups = participation.pairs, participation.groups
    if pairs is not None:
        yield from map(frozenset, connected(pairs))
        yield from map(frozenset, pairs)
        yield frozenset(pairs.to_array().reshape(-1).tolist())
    elif groups is not None and _is_written(participation):
        yield from map(frozenset, groups.groups())
