"""Tiny programs that show who takes part in a collective, and how to read what they give.

Every device has one vector of numbers that tells it from all others. The vector goes through the collective alone, and
what a device gets says who it heard from: element i of a sum counts how often device i took part, a gathered vector
lists the members in their order, a permuted number names its sender.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from commlens.topology import CollectiveOpGroupMode as Mode
from commlens.topology import MeshAxesReplicaGroupList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.analysis.scaling import Layout

Numbers: TypeAlias = list[int]
IdLists: TypeAlias = list[list[int]]

UNORDERED: Final = frozenset({"all-reduce", "collective-broadcast"})
"""Operations whose results do not show the order inside a group."""

EVEN_ONLY: Final = frozenset({"all-gather", "all-to-all", "reduce-scatter"})
"""Operations that XLA compiles only with groups of one size (xla/service/hlo_verifier.cc)."""

RUNNABLE: Final = UNORDERED | EVEN_ONLY | {"collective-permute"}
"""Operations for which there is a program; the CPU client has no others at all."""


_ONE: Final = 1 << 16
"""One part of one device in the sum of a reduce-scatter; the number of the part stands below it."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run, and what to run it on.

    Attributes:
        texts: HLO texts that mean the same, one ``s32`` vector in and one out; the first that XLA takes is run.
        replicas: replicas to compile for.
        partitions: partitions to compile for.
        arguments: the vector of each device, by global id.
    """

    texts: tuple[str, ...]
    replicas: int
    partitions: int
    arguments: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a program.

    Attributes:
        results: the vector of each device, by global id; None where it did not run.
        text: which of the program's texts ran.
        refused: why it did not run, in a sentence; None where it did.
    """

    results: tuple[tuple[int, ...], ...] | None
    text: int = 0
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What results say.

    Attributes:
        groups: the groups of devices that heard from each other, or the pairs of them.
        faults: what does not fit any groups, in sentences.
    """

    groups: IdLists
    faults: tuple[str, ...] = ()


def elements(opcode: str, layout: Layout, size: int) -> int:
    """Return how many numbers the arguments of :func:`program_for` hold, of all devices together."""
    devices = layout.devices
    width = {"all-reduce": devices, "reduce-scatter": size * devices, "all-to-all": size}.get(opcode, 1)
    return width * devices


def spellings(layout: Layout) -> tuple[str, ...]:
    """Return the spellings of a layout to try, its own first, then the list that every XLA reads.

    A mesh with a device order of its own is written out at once: jaxlib loses that order on the way from HLO to its
    client and would run other groups.
    """
    groups = layout.groups
    if groups is None or groups.num_replica_groups == 0:
        return (layout.text,)
    loses_order = isinstance(groups, MeshAxesReplicaGroupList) and groups.mesh.device_ids is not None
    own = () if loses_order else (layout.text,)
    return tuple(dict.fromkeys((*own, str(groups.to_list()))))


def program_for(opcode: str, layout: Layout, size: int) -> Program:
    """Build the program that runs one collective.

    Args:
        opcode: one of :data:`RUNNABLE`.
        layout: its groups or pairs, and the counts.
        size: devices in a group of participants; without meaning where they differ.

    Example:
        >>> from commlens.analysis.participation import Counts
        >>> from commlens.analysis.scaling import Layout
        >>> from commlens.topology import IotaReplicaGroupList
        >>> layout = Layout(Mode.CROSS_REPLICA, Counts(2, 1), IotaReplicaGroupList(1, 2))
        >>> program = program_for("all-gather", layout, 2)
        >>> print(program.texts[0])
        HloModule experiment, replica_count=2
        <BLANKLINE>
        ENTRY main {
          own = s32[1] parameter(0)
          ROOT heard = s32[2] all-gather(own), replica_groups=[1,2]<=[2], dimensions={0}
        }
        <BLANKLINE>
        >>> program.arguments
        ((0,), (1,))
    """
    devices = layout.devices
    return Program(
        tuple(_text(opcode, layout, size, spelling) for spelling in spellings(layout)),
        layout.counts.replicas,
        layout.counts.partitions,
        tuple(tuple(_operand(opcode, device, devices, size)) for device in range(devices)),
    )


def _text(opcode: str, layout: Layout, size: int, spelling: str) -> str:
    counts = layout.counts
    stated = "".join(
        f", {key}={count}"
        for key, count in (("replica_count", counts.replicas), ("num_partitions", counts.partitions))
        if count > 1
    )
    width = len(_operand(opcode, 0, layout.devices, size))
    adder = opcode in ("all-reduce", "reduce-scatter")
    lines = [
        f"HloModule experiment{stated}",
        "",
        *(_ADDER if adder else ()),
        "ENTRY main {",
        f"  own = s32[{width}] parameter(0)",
        *_body(opcode, layout, size, spelling, width),
        "}",
        "",
    ]
    return "\n".join(lines)


_ADDER: Final = (
    "add {",
    "  left = s32[] parameter(0)",
    "  right = s32[] parameter(1)",
    "  ROOT sum = s32[] add(left, right)",
    "}",
    "",
)


def _body(opcode: str, layout: Layout, size: int, spelling: str, width: int) -> list[str]:
    channel = "" if layout.mode is Mode.CROSS_REPLICA else "channel_id=1, "
    flag = ", use_global_device_ids=true" if layout.mode is Mode.FLATTENED_ID else ""
    key = "replica_groups" if layout.pairs is None else "source_target_pairs"
    attributes = f"{channel}{key}={spelling}{flag}"
    match opcode:
        case "all-reduce":
            attributes += ", to_apply=add"
            out = width
        case "reduce-scatter":
            attributes += ", dimensions={0}, to_apply=add"
            out = width // size
        case "all-gather":
            attributes += ", dimensions={0}"
            out = size
        case "all-to-all" if spelling == "{}":
            return _tuple_all_to_all(attributes, size)
        case "all-to-all":
            attributes += ", dimensions={0}"
            out = size
        case _:
            out = width
    return [f"  ROOT heard = s32[{out}] {opcode}(own), {attributes}"]


def _tuple_all_to_all(attributes: str, size: int) -> list[str]:
    """Write an all-to-all with one operand per member: without groups XLA has no other form."""
    parts = [f"  part.{slot} = s32[1] slice(own), slice={{[{slot}:{slot + 1}]}}" for slot in range(size)]
    shape = ", ".join(["s32[1]"] * size)
    operands = ", ".join(f"part.{slot}" for slot in range(size))
    got = [f"  got.{slot} = s32[1] get-tuple-element(all), index={slot}" for slot in range(size)]
    results = ", ".join(f"got.{slot}" for slot in range(size))
    return [
        *parts,
        f"  all = ({shape}) all-to-all({operands}), {attributes}",
        *got,
        f"  ROOT heard = s32[{size}] concatenate({results}), dimensions={{0}}",
    ]


def _operand(opcode: str, device: int, devices: int, size: int) -> Numbers:
    """Return the vector of a device.

    all-reduce: 1 in its own place. reduce-scatter: for each part the same with the part's number beside it. all-gather:
    its id. all-to-all: for each part its id and the part's number as one number. The others, which give zeros where
    nobody sends: its id and one.
    """
    own = [int(each == device) for each in range(devices)]
    match opcode:
        case "all-reduce":
            return own
        case "reduce-scatter":
            return [(_ONE + part) * each for part in range(size) for each in own]
        case "all-gather":
            return [device]
        case "all-to-all":
            return [device * size + part for part in range(size)]
        case _:
            return [device + 1]


def reading_of(opcode: str, results: Sequence[Sequence[int]], size: int) -> Reading:
    """Read from the results of :func:`program_for` who took part; ``size`` as there.

    Example:
        >>> reading_of("all-gather", [[1, 0], [1, 0]], 2).groups
        [[1, 0]]
        >>> reading_of("all-reduce", [[1, 1, 0], [0, 1, 0], [0, 0, 1]], 2).faults
        ('device 0 heard from 0, 1, and device 1 heard from 1',)
    """
    match opcode:
        case "collective-permute":
            return Reading([[got - 1, device] for device, (got,) in enumerate(results) if got])
        case "collective-broadcast":
            return _broadcast([got - 1 for (got,) in results])
        case "all-reduce":
            return _mutual([_counted(got) for got in results])
        case "reduce-scatter":
            return _scattered(results)
        case "all-to-all":
            return _exchanged([[divmod(number, size) for number in got] for got in results])
        case _:
            return _mutual([list(got) for got in results])


def _counted(counts: Sequence[int]) -> Numbers:
    return [device for device, times in enumerate(counts) for _ in range(times)]


def _mutual(heard: Sequence[Numbers], faults: Sequence[str] = ()) -> Reading:
    """Group devices that heard the same; each must be among those that it heard from."""
    found = dict.fromkeys(map(tuple, heard))
    unequal = [
        f"device {device} heard from {_ids(members)}, and device {other} heard from {_ids(heard[other])}"
        for device, members in enumerate(heard)
        for other in members
        if device not in members or list(heard[other]) != list(members)
    ]
    return Reading([list(members) for members in found if members], (*faults, *unequal))


def _scattered(results: Sequence[Sequence[int]]) -> Reading:
    """Order the members of each group by the part that each of them got."""
    heard = [_counted([number // _ONE for number in got]) for got in results]
    parts = [{got[each] % _ONE for each in members} for got, members in zip(results, heard, strict=True)]
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


def _exchanged(got: Sequence[Sequence[tuple[int, int]]]) -> Reading:
    """Read pairs of (sender, part): a device gets the part that is its own place among the senders."""
    heard = [[sender for sender, _ in each] for each in got]
    faults = [
        f"device {device} got part {part} of device {sender}, where it is member {members.index(device)}"
        for device, (each, members) in enumerate(zip(got, heard, strict=True))
        for sender, part in each
        if device in members and part != members.index(device)
    ]
    return _mutual(heard, faults)


def _broadcast(sources: Sequence[int]) -> Reading:
    """Group devices by the one they heard from, who comes first."""
    roots = [device for device, source in enumerate(sources) if source == device]
    faults = [
        f"device {device} heard from {source}, which heard from {sources[source]}"
        for device, source in enumerate(sources)
        if source >= 0 and source not in roots
    ]
    others = {root: [each for each, source in enumerate(sources) if source == root != each] for root in roots}
    return Reading([[root, *members] for root, members in others.items()], tuple(faults))


def _ids(members: Sequence[int]) -> str:
    return ", ".join(map(str, members)) or "nobody"
