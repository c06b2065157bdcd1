"""What a message of a log says about the collective it is about, as values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from commlens.analysis.records import Record

MOST_DEVICES: Final = 1 << 20
"""Most devices that a list in a log may have; a longer one is not read."""

Devices: TypeAlias = tuple[int, ...]
"""Global device ids in the order of the log."""

Kind: TypeAlias = Literal["cross_replica", "cross_module"]
"""What XLA calls a collective: cross_module where it has a channel, cross_replica where it has none."""

_ITEM: Final = re.compile(r"\s*(\d{1,18})\s*(?:(?:\.{2,3}|…|-|:)\s*(\d{1,18})\s*)?(?:,|;|\Z)")
_GROUP: Final = re.compile(r"\[([^\[\]{}]*)\]|\{([^\[\]{}]*)\}")
_BETWEEN: Final = re.compile(r"[\s,;]*\Z")
_SPELLED_OUT: Final = re.compile(r"GlobalDeviceId\((\d{1,18})\)")


@dataclass(frozen=True, slots=True, eq=False)
class Said(Record):
    """The facts of one message; None where it does not speak of something.

    Attributes:
        devices: global ids of the devices that wait for each other.
        groups: all groups of the collective.
        num_participants: how many devices are in the group.
        num_local_participants: how many of the devices belong to the process that speaks.
        num_threads: how many threads of this process are expected; all of the group where there is one process.
        rank: the place in the group of who speaks.
        kind: whether the collective has a channel.
        op_id: with ``cross_module`` the channel; with ``cross_replica`` a number that XLA gives to the module; either
            where it does not speak of ``kind``.
        channel_id: the channel.
        opcode: the operation.
        elements_in: elements that one device puts in, of one array or of all together.
        elements_out: elements that one device gets out, likewise.
        names: names, one of which is that of the collective.
        op_name: ``op_name`` of its metadata.
        module: name of the module.
        numbers: other numbers that a message holds, by name.
    """

    devices: list[int] | None = None
    groups: list[list[int]] | None = None
    num_participants: int | None = None
    num_local_participants: int | None = None
    num_threads: int | None = None
    rank: int | None = None
    kind: Kind | None = None
    op_id: int | None = None
    channel_id: int | None = None
    opcode: str | None = None
    elements_in: int | None = None
    elements_out: int | None = None
    names: list[str] | None = None
    op_name: str | None = None
    module: str | None = None
    numbers: dict[str, int] | None = None

    @property
    def channel(self) -> int | None:
        """The channel that it names in whichever way; 0 is none."""
        named = self.op_id if self.channel_id is None and self.kind == "cross_module" else self.channel_id
        return named or None

    @property
    def key(self) -> tuple[object, ...]:
        """What is equal, and can be kept in a set, where the facts are; whoever prints them."""
        lists = (self.devices, self.groups, self.names, self.numbers)
        numbers = (self.num_participants, self.num_local_participants, self.num_threads, self.op_id, self.channel_id)
        elements = (self.elements_in, self.elements_out)
        return (*map(_hashable, lists), *numbers, *elements, self.kind, self.opcode, self.op_name, self.module)

    @property
    def key_of_devices(self) -> tuple[object, ...]:
        """The part of it that speaks of devices, as :attr:`key` has it, and of the place of who speaks."""
        return (_hashable(self.devices), _hashable(self.groups), self.num_participants, self.num_threads, self.rank)

    @property
    def number(self) -> int | None:
        """The number that it names which need not be a channel; 0 is none."""
        return None if self.kind == "cross_module" else self.op_id or None


def _hashable(value: object) -> object:
    if isinstance(value, list):
        return tuple(map(_hashable, cast("list[object]", value)))
    return tuple(sorted(cast("dict[str, int]", value).items())) if isinstance(value, dict) else value


def read_devices(text: str) -> Devices | None:
    """Read what stands between the brackets of a list of devices.

    Args:
        text: ids with commas between, bare or as ``GlobalDeviceId(3)``; ``0...7`` are those from 0 to 7.

    Returns:
        The ids; None where it is no such list, or too long a one.

    Example:
        >>> read_devices("0, 1, 4"), read_devices("0...3, 8"), read_devices(""), read_devices("0, x")
        ((0, 1, 4), (0, 1, 2, 3, 8), None, None)
        >>> read_devices("GlobalDeviceId(0),GlobalDeviceId(1)"), read_devices("LocalDeviceId(0)")
        ((0, 1), None)
    """
    number = number_of_devices(text)
    if number is None or number > MOST_DEVICES:
        return None
    return tuple(device for first, last in _ranges(text) or () for device in range(first, last + 1))


def number_of_devices(text: str) -> int | None:
    """Return how many ids a list has, however many these are; None where it is no such list.

    Example:
        >>> number_of_devices("0...99999999"), number_of_devices("0, x")
        (100000000, None)
    """
    ranges = _ranges(text)
    return sum(last - first + 1 for first, last in ranges) if ranges else None


def _ranges(text: str) -> list[tuple[int, int]] | None:
    found: list[tuple[int, int]] = []
    text = _SPELLED_OUT.sub(r"\1", text) if "(" in text else text
    position = 0
    while position < len(text):
        match = _ITEM.match(text, position)
        if match is None:
            return None
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        if last < first:
            return None
        found.append((first, last))
        position = match.end()
    return found


def read_groups(text: str) -> tuple[Devices, ...] | None:
    """Read what stands between the outer brackets of a list of groups.

    Returns:
        The groups; None where it is no such list, and for none at all.

    Example:
        >>> read_groups("[0,1],[2,3]"), read_groups("{0...3}, {4...7}"), read_groups("")
        (((0, 1), (2, 3)), ((0, 1, 2, 3), (4, 5, 6, 7)), None)
    """
    groups: list[Devices] = []
    position = 0
    number = 0
    for match in _GROUP.finditer(text):
        devices = read_devices(match[1] or match[2] or "")
        if devices is None or _BETWEEN.fullmatch(text, position, match.start()) is None:
            return None
        number += len(devices)
        if number > MOST_DEVICES:
            return None
        groups.append(devices)
        position = match.end()
    return tuple(groups) if groups and _BETWEEN.fullmatch(text, position) else None
