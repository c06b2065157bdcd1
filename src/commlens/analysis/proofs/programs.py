"""Tiny programs that show who takes part in a collective.

Every device has one vector of numbers that tells it from all others. The vector goes through the collective alone, and
what a device gets says who it heard from (:mod:`~commlens.analysis.proofs.observations`): element i of a sum counts
how often device i took part, a gathered vector lists the members in their order, a permuted number names its sender.

A program states what the instruction states, its channel and its flag among it, and no shape that follows from what is
predicted: a runtime that refuses a shape would hide that the prediction is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from commlens.topology import MeshAxesReplicaGroupList

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis.proofs.scaling import Layout

Numbers: TypeAlias = list[int]

UNORDERED: Final = frozenset({"all-reduce", "collective-broadcast"})
"""Operations whose results do not show the order inside a group."""

SIZED: Final = frozenset({"all-gather", "reduce-scatter"})
"""Operations whose shapes tell how large a group is: that has to be seen before they can be run."""

EVEN_ONLY: Final = SIZED | {"all-to-all"}
"""Operations that XLA compiles only with groups of one size (xla/service/hlo_verifier.cc)."""

RUNNABLE: Final = UNORDERED | EVEN_ONLY | {"collective-permute"}
"""Operations for which there is a program; the CPU client has no others at all."""

PART: Final = 1 << 16
"""One part of one device in the sum of a reduce-scatter; the number of the part stands below it."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run, and what to run it on.

    Attributes:
        texts: HLO texts to try, one ``s32`` vector in and one out; the first that XLA takes is run.
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


def elements(opcode: str, layout: Layout, size: int | None = None) -> int:
    """Return how many numbers the arguments of :func:`program_for` hold, of all devices together."""
    return layout.devices * _width(opcode, layout.devices, size)


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


def spelling_of(layout: Layout, text: int) -> str:
    """Return how the layout is spelled in one of the texts of :func:`program_for`."""
    tried = spellings(layout)
    return tried[min(text, len(tried) - 1)]


def program_for(opcode: str, layout: Layout, size: int | None = None) -> Program:
    """Build the program that runs one collective.

    Args:
        opcode: one of :data:`RUNNABLE`.
        layout: its groups or pairs, the counts, and what it states beside them.
        size: devices in a group as an all-reduce over the same groups has shown; only :data:`SIZED` ones need it.

    Example:
        >>> from commlens.analysis.participation import Counts
        >>> from commlens.analysis.proofs.scaling import Layout
        >>> from commlens.topology import CollectiveOpGroupMode, IotaReplicaGroupList
        >>> layout = Layout(CollectiveOpGroupMode.CROSS_REPLICA, Counts(2, 1), IotaReplicaGroupList(1, 2))
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
        tuple(_texts(opcode, layout, size)),
        layout.counts.replicas,
        layout.counts.partitions,
        tuple(tuple(_operand(opcode, device, devices, size)) for device in range(devices)),
    )


def _texts(opcode: str, layout: Layout, size: int | None) -> Iterator[str]:
    """Yield a text for each spelling; where an all-to-all lists no groups, one for each size that "all" may mean."""
    counts = layout.counts
    for spelling in spellings(layout):
        if opcode == "all-to-all" and spelling == "{}":
            everybody = {counts.partitions, counts.replicas, layout.devices}
            sizes = sorted(everybody, key=lambda each: (each == 1, each != layout.ids))  # a wrong 1 ends XLA's process
        else:
            sizes = [size]
        yield from (_text(opcode, layout, each, spelling) for each in sizes)


def _text(opcode: str, layout: Layout, size: int | None, spelling: str) -> str:
    counts = layout.counts
    stated = "".join(
        f", {key}={count}"
        for key, count in (("replica_count", counts.replicas), ("num_partitions", counts.partitions))
        if count > 1
    )
    width = _width(opcode, layout.devices, size)
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


def _body(opcode: str, layout: Layout, size: int | None, spelling: str, width: int) -> list[str]:
    key = "replica_groups" if layout.pairs is None else "source_target_pairs"
    channel = "channel_id=1, " if layout.flags.has_channel else ""
    flag = ", use_global_device_ids=true" if layout.flags.use_global_device_ids else ""
    attributes = f"{channel}{key}={spelling}{flag}"
    match opcode:
        case "all-reduce":
            return [f"  ROOT heard = s32[{width}] all-reduce(own), {attributes}, to_apply=add"]
        case "reduce-scatter":
            out = layout.devices
            return [f"  ROOT heard = s32[{out}] reduce-scatter(own), {attributes}, dimensions={{0}}, to_apply=add"]
        case "all-gather":
            return [f"  ROOT heard = s32[{size}] all-gather(own), {attributes}, dimensions={{0}}"]
        case "all-to-all" if size is not None:
            return _tuple_all_to_all(attributes, size, width)
        case "all-to-all":
            return [f"  ROOT heard = s32[{width}] all-to-all(own), {attributes}, dimensions={{0}}"]
        case _:
            return [f"  ROOT heard = s32[{width}] {opcode}(own), {attributes}"]


def _tuple_all_to_all(attributes: str, size: int, width: int) -> list[str]:
    """Write an all-to-all with one operand per member: without groups XLA has no other form."""
    part = width // size
    parts = [
        f"  part.{slot} = s32[{part}] slice(own), slice={{[{slot * part}:{(slot + 1) * part}]}}" for slot in range(size)
    ]
    shape = ", ".join([f"s32[{part}]"] * size)
    operands = ", ".join(f"part.{slot}" for slot in range(size))
    got = [f"  got.{slot} = s32[{part}] get-tuple-element(all), index={slot}" for slot in range(size)]
    results = ", ".join(f"got.{slot}" for slot in range(size))
    return [
        *parts,
        f"  all = ({shape}) all-to-all({operands}), {attributes}",
        *got,
        f"  ROOT heard = s32[{width}] concatenate({results}), dimensions={{0}}",
    ]


def _width(opcode: str, devices: int, size: int | None) -> int:
    match opcode:
        case "all-reduce" | "all-to-all":
            return devices
        case "reduce-scatter":
            return devices * (size or 1)
        case _:
            return 1


def _operand(opcode: str, device: int, devices: int, size: int | None) -> Numbers:
    """Return the vector of a device.

    all-reduce: 1 in its own place. reduce-scatter: for each part the same with the part's number beside it. all-gather:
    its id. all-to-all: as many numbers as there are devices, which any size of a group divides, each of them nobody
    else's. The others, which give zeros where nobody sends: its id and one.
    """
    own = [int(each == device) for each in range(devices)]
    match opcode:
        case "all-reduce":
            return own
        case "reduce-scatter":
            return [(PART + part) * each for part in range(size or 1) for each in own]
        case "all-gather":
            return [device]
        case "all-to-all":
            return [device * devices + place for place in range(devices)]
        case _:
            return [device + 1]
