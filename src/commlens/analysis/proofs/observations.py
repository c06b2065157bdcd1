"""Who took part in a collective, as what each device got shows (:mod:`~commlens.analysis.proofs.programs`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from commlens.analysis.proofs.programs import PART, Numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

IdLists: TypeAlias = list[list[int]]


@dataclass(frozen=True, slots=True)
class Observation:
    """What results say.

    Attributes:
        groups: the groups of devices that heard from each other, or the pairs of them.
        faults: what does not fit any groups, in sentences.
    """

    groups: IdLists
    faults: tuple[str, ...] = ()


def observation_of(opcode: str, results: Sequence[Sequence[int]]) -> Observation:
    """Read from the results of :func:`~commlens.analysis.proofs.programs.program_for` who took part.

    Example:
        >>> observation_of("all-gather", [[1, 0], [1, 0]]).groups
        [[1, 0]]
        >>> observation_of("all-reduce", [[1, 1, 0], [0, 1, 0], [0, 0, 1]]).faults
        ('device 0 heard from 0, 1, and device 1 heard from 1',)
    """
    match opcode:
        case "collective-permute":
            return Observation([[got - 1, device] for device, (got,) in enumerate(results) if got])
        case "collective-broadcast":
            return _broadcast([got - 1 for (got,) in results])
        case "all-reduce":
            return _mutual([_counted(got) for got in results])
        case "reduce-scatter":
            return _scattered(results)
        case "all-to-all":
            return _exchanged(results)
        case _:
            return _mutual([list(got) for got in results])


def _counted(counts: Sequence[int]) -> Numbers:
    return [device for device, times in enumerate(counts) for _ in range(times)]


def _mutual(heard: Sequence[Numbers], faults: Sequence[str] = ()) -> Observation:
    """Group devices that heard the same; each must be among those that it heard from."""
    found: dict[tuple[int, ...], int] = {}
    kinds = [found.setdefault(tuple(members), len(found)) for members in heard]
    itself = [device in members for device, members in enumerate(heard)]
    unequal = [
        f"device {device} heard from {_ids(members)}, and device {other} heard from {_ids(heard[other])}"
        for device, members in enumerate(heard)
        for other in members
        if not itself[device] or kinds[other] != kinds[device]
    ]
    return Observation([list(members) for members in found if members], (*faults, *unequal))


def _scattered(results: Sequence[Sequence[int]]) -> Observation:
    """Order the members of each group by the part that each of them got."""
    heard = [_counted([number // PART for number in got]) for got in results]
    parts = [{got[each] % PART for each in members} for got, members in zip(results, heard, strict=True)]
    faults = [
        f"device {device} got parts {_ids(sorted(got))} of its members' operands, where one part was expected"
        for device, got in enumerate(parts)
        if len(got) > 1
    ]
    faults += [
        f"devices {device} and {other} both got part {min(parts[device])}"
        for device, members in enumerate(heard)
        for other in members
        if device < other and parts[device] == parts[other]
    ]
    ordered = [sorted(members, key=lambda each: min(parts[each], default=0)) for members in heard]
    return _mutual(ordered, faults)


def _exchanged(results: Sequence[Sequence[int]]) -> Observation:
    """Read equal parts of the members' vectors: a device gets those at its own place among the senders."""
    devices = len(results)
    heard = [list(dict.fromkeys(number // devices for number in got)) for got in results]
    return _mutual(heard, list(_misplaced(results, heard)))


def _misplaced(results: Sequence[Sequence[int]], heard: Sequence[Numbers]) -> Iterator[str]:
    """Yield for each device the first number that is not the one which belongs there."""
    devices = len(results)
    for device, (got, members) in enumerate(zip(results, heard, strict=True)):
        if device not in members:
            continue
        if devices % len(members):
            yield f"device {device} heard from {len(members)} of {devices} devices, which makes no equal parts"
            continue
        share, place = devices // len(members), members.index(device)
        right = [sender * devices + place * share + each for sender in members for each in range(share)]
        for number, expected in zip(got, right, strict=True):
            if number != expected:
                sender, element = divmod(number, devices)
                yield (
                    f"device {device} got element {element} of device {sender}, where element {expected % devices} of "
                    f"device {expected // devices} belongs to member {place}"
                )
                break


def _broadcast(sources: Sequence[int]) -> Observation:
    """Group devices by the one they heard from, who comes first."""
    roots = [device for device, source in enumerate(sources) if source == device]
    faults = [
        f"device {device} heard from {source}, which heard from {sources[source]}"
        for device, source in enumerate(sources)
        if source >= 0 and source not in roots
    ]
    others = {root: [each for each, source in enumerate(sources) if source == root != each] for root in roots}
    return Observation([[root, *members] for root, members in others.items()], tuple(faults))


def _ids(members: Sequence[int]) -> str:
    return ", ".join(map(str, members)) or "nobody"
