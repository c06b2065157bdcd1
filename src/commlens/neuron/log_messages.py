"""Messages of the Neuron runtime and compiler that are about collectives, and which collectives each can be about.

Source: the runtime's and the compiler's error texts as documented publicly; what each is about follows from the checks
that print it. A rank of the runtime is a global device id of XLA.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from commlens.topology import SourceTargetPairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from commlens.hlo import Signature
    from commlens.topology import DeviceList

Joined: TypeAlias = "DeviceList | SourceTargetPairs | None"
"""The groups or pairs of global ids that a collective joins; None where they cannot be told."""

Collective: TypeAlias = "tuple[Signature, Joined]"
"""A collective and who takes part in it."""

_FEW: Final = (1, 2, 8, 16)
_NODE: Final = 32
_MOST_TOPOLOGIES: Final = 12
_HANDLED: Final = frozenset({"all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute"})
_ALL_TO_ALL: Final = frozenset({"all-to-all", "ragged-all-to-all"})


@dataclass(frozen=True, slots=True)
class Job:
    """What a message is held against.

    Attributes:
        collectives: the collectives of a module, those that are alike once.
        devices: devices of the module; None where nobody states them.
        numbers: the numbers in the message, by name.
    """

    collectives: Sequence[Collective]
    devices: int | None
    numbers: Mapping[str, int]

    def where(self, why: str, holds: Callable[[Signature, Joined], bool]) -> Iterator[tuple[int, str]]:
        """Yield the collectives of which something holds, all for the same reason."""
        for position, (signature, joined) in enumerate(self.collectives):
            if holds(signature, joined):
                yield position, why


@dataclass(frozen=True, slots=True)
class LogMessageKind:
    """A message of the Neuron runtime or compiler.

    Attributes:
        name: what to call it.
        words: pieces of text of which it holds one.
        pattern: its text; named groups are whole numbers.
        means: what it means, in a sentence.
    """

    name: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    means: str
    find: Callable[[Job], Iterator[tuple[int, str]]]

    def candidates(
        self, collectives: Sequence[Collective], devices: int | None, numbers: Mapping[str, int]
    ) -> Iterator[tuple[int, str]]:
        """Yield the positions of the collectives that it can be about, each with why.

        Args:
            collectives: the collectives of a module and who takes part, those that are alike once.
            devices: devices of the module; None where nobody states them.
            numbers: the numbers in the message, by the names of the pattern's groups.

        Example:
            >>> from commlens.hlo import Signature
            >>> from commlens.topology import CollectiveDeviceList
            >>> groups = CollectiveDeviceList([[0]])
            >>> kind = next(each for each in LOG_MESSAGES if each.name == "neuron-not-in-group")
            >>> list(kind.candidates([(Signature("all-reduce", False, (), (), groups), groups)], 4, {"rank": 2}))
            [(0, 'rank 2 is in none of its groups')]
        """
        return self.find(Job(collectives, devices, numbers))


def _ids(joined: Joined) -> set[int] | None:
    if joined is None:
        return None
    ids = joined.to_array().reshape(-1) if isinstance(joined, SourceTargetPairs) else joined.flattened_replica_groups()
    return set(ids.tolist())


def _sizes(joined: Joined) -> tuple[int, int] | None:
    """Return the largest group and the sum of all groups."""
    if joined is None or isinstance(joined, SourceTargetPairs):
        return None
    sizes = joined.group_sizes()
    return (int(sizes.max()), int(sizes.sum())) if sizes.size else None


def _not_in_group(job: Job) -> Iterator[tuple[int, str]]:
    """Collectives in whose groups a rank is not; without its number those that leave out any device."""
    rank = job.numbers.get("rank")
    for position, (signature, joined) in enumerate(job.collectives):
        if signature.groups is None or joined is None or isinstance(joined, SourceTargetPairs):
            continue
        if rank is not None:
            if joined.group_of(rank) is None:
                yield position, f"rank {rank} is in none of its groups"
        elif job.devices is not None:
            present = _ids(joined) or set()
            absent = [device for device in range(job.devices) if device not in present]
            if absent:
                shown = ", ".join(map(str, absent[:8])) + (" and others" if len(absent) > 8 else "")
                yield position, f"its groups leave out {'rank' if len(absent) == 1 else 'ranks'} {shown}"


def _unsupported_topology(job: Job) -> Iterator[tuple[int, str]]:
    """All collectives of a program for a number of cores that trn1 does not run; groups of such sizes otherwise."""
    if job.devices is not None:
        if job.devices not in _FEW and job.devices % _NODE:
            yield from job.where(
                f"its program is for {job.devices} devices; trn1 runs {', '.join(map(str, _FEW))} cores or a multiple "
                f"of {_NODE}",
                lambda _signature, _joined: True,
            )
        return
    for position, (_, joined) in enumerate(job.collectives):
        sizes = _sizes(joined)
        if sizes is not None and sizes[1] not in _FEW and sizes[1] % _NODE:
            yield position, f"its groups have {sizes[1]} devices; trn1 runs {', '.join(map(str, _FEW))} or {_NODE} x n"


def _no_cc(_job: Job) -> Iterator[tuple[int, str]]:
    """No collective: the message says that there is none."""
    return iter(())


def _group_id(job: Job) -> Iterator[tuple[int, str]]:
    """Collectives with groups, where there are more topologies than the runtime takes."""
    topologies = {str(joined) for _, joined in job.collectives if joined is not None}
    if len(topologies) > _MOST_TOPOLOGIES:
        yield from job.where(
            f"the module has {len(topologies)} topologies, the runtime takes {_MOST_TOPOLOGIES}",
            lambda signature, joined: signature.groups is not None and joined is not None,
        )


def _worker_counts(job: Job) -> Iterator[tuple[int, str]]:
    """Collectives whose topology has one of two numbers of workers, by either reading of the documents."""
    wanted = [job.numbers[name] for name in ("first", "second") if name in job.numbers]
    for position, (_, joined) in enumerate(job.collectives):
        sizes = _sizes(joined)
        if sizes is None:
            continue
        number = next((each for each in wanted if each in sizes), None)
        if number is not None:
            what = "the largest of its groups has" if sizes[0] == number else "its groups together have"
            yield position, f"{what} {number} workers"


def _of_one_device(job: Job) -> Iterator[tuple[int, str]]:
    """Collectives over groups of one device each."""
    for position, (_, joined) in enumerate(job.collectives):
        sizes = _sizes(joined)
        if sizes is not None and sizes[0] == 1:
            yield position, "its groups are of one device each"


def _of(opcodes: frozenset[str], why: str) -> Callable[[Job], Iterator[tuple[int, str]]]:
    return lambda job: job.where(why, lambda signature, _joined: signature.opcode in opcodes)


LOG_MESSAGES: Final = (
    LogMessageKind(
        "neuron-not-in-group",
        ("have myself",),
        re.compile(
            r"(?:replica[ _]groups?\s{0,2}\(\d{1,9}/\d{1,9}\)\s{1,2})?does\s{1,2}not\s{1,2}have\s{1,2}myself"
            r"(?:\s{0,2}[:(]?\s{0,2}(?P<rank>\d{1,9})\b)?"
        ),
        "this rank runs a collective that has no group with the rank in it: its groups do not cover all devices.",
        _not_in_group,
    ),
    LogMessageKind(
        "neuron-unsupported-topology",
        ("nsupported topology", "nsupported Topology"),
        re.compile(r"[Uu]nsupported [Tt]opology"),
        "the runtime has no way to connect the ranks: on trn1 a program runs on 1, 2, 8, 16 cores or a multiple of 32.",
        _unsupported_topology,
    ),
    LogMessageKind(
        "neuron-no-cc",
        ("does not have CC op",),
        re.compile(r"NEFF does not have CC op"),
        "the compiled program has no collective at all.",
        _no_cc,
    ),
    LogMessageKind(
        "neuron-empty-groups",
        ("Empty replica_groups found",),
        re.compile(r"Empty replica_groups found"),
        "a collective states no replica groups.",
        lambda job: job.where(
            "it states no groups",
            lambda signature, _joined: signature.groups is not None and not signature.groups.num_replica_groups,
        ),
    ),
    LogMessageKind(
        "neuron-empty-pairs",
        ("Empty src_target_pairs found",),
        re.compile(r"Empty src_target_pairs found"),
        "a permute states no pairs.",
        lambda job: job.where(
            "it states no pairs", lambda signature, _joined: signature.pairs is not None and not len(signature.pairs)
        ),
    ),
    LogMessageKind(
        "neuron-empty-topology",
        ("Empty topology found",),
        re.compile(r"Empty topology found at index (?P<index>\d{1,9})"),
        "one of the program's topologies has no groups, as in programs that are not the same for all workers (MPMD).",
        lambda job: job.where(
            "it states no groups",
            lambda signature, _joined: signature.groups is not None and not signature.groups.num_devices,
        ),
    ),
    LogMessageKind(
        "neuron-worker-counts",
        ("Inconsistent worker count",),
        re.compile(
            r"Inconsistent worker count across topologies"
            r"(?:\s{0,2}:\s{0,2}(?P<first>\d{1,9})\s{1,2}vs\.?\s{1,2}(?P<second>\d{1,9}))?"
        ),
        "the program's topologies have different numbers of workers, as in programs that are not the same for all "
        "workers (MPMD).",
        _worker_counts,
    ),
    LogMessageKind(
        "neuron-group-id",
        ("Invalid group id",),
        re.compile(r"Invalid group id"),
        "a topology has a number that the runtime does not take: it takes 12 of them.",
        _group_id,
    ),
    LogMessageKind(
        "neuron-all-to-all",
        ("without Mesh algorithm",),
        re.compile(r"alltoall cannot be supported without Mesh algorithm"),
        "an all-to-all needs the mesh algorithm, which does not work on the ranks of its groups.",
        _of(_ALL_TO_ALL, "it is an all-to-all"),
    ),
    LogMessageKind(
        "neuron-pairs-to-groups",
        ("generated from source_target_pairs",),
        re.compile(r"Failed to parse replica group generated from source_target_pairs"),
        "the pairs of a permute make no groups.",
        lambda job: job.where("it has pairs", lambda signature, _joined: signature.opcode == "collective-permute"),
    ),
    LogMessageKind(
        "neuron-no-communicator",
        ("Global communicator was not created",),
        re.compile(r"Global communicator was not created"),
        "the runtime was not set up to communicate: any collective meets this, none in particular.",
        lambda job: job.where("any collective meets this", lambda _signature, _joined: True),
    ),
    LogMessageKind(
        "neuron-collectives-hang",
        ("suspected hang in collectives",),
        re.compile(
            r"suspected hang in collectives op(?:eration)?(?:\s{1,2}(?P<operation>\d{1,9})\b"
            r"(?:\s{1,2}out of\s{1,2}(?P<operations>\d{1,9})\b)?)?"
        ),
        "a collective did not end; the runtime counts those of its program, in an order that it does not state.",
        lambda job: job.where("any collective can be the one", lambda _signature, _joined: True),
    ),
    LogMessageKind(
        "neuron-stuck-collective",
        ("NRT_EXEC_HW_ERR_COLLECTIVES",),
        re.compile(r"\bNRT_EXEC_HW_ERR_COLLECTIVES\b"),
        "a collective did not end: the hardware failed, or one of those who take part is gone.",
        lambda job: job.where("any collective can be the one", lambda _signature, _joined: True),
    ),
    LogMessageKind(
        "neuron-unhandled-collective",
        ("Unhandled Collective instruction",),
        re.compile(r"Unhandled Collective instruction"),
        "the compiler met a collective that it does not place on devices.",
        lambda job: job.where(
            "the compiler places all-gather, all-reduce, reduce-scatter, all-to-all and collective-permute alone",
            lambda signature, _joined: signature.opcode not in _HANDLED,
        ),
    ),
    LogMessageKind(
        "neuron-iare001",
        ("NCC_IARE001",),
        re.compile(r"NCC_IARE001\b"),
        "the compiler failed in the pass that drops collectives over groups of one device; what exactly it met it does "
        "not say.",
        _of_one_device,
    ),
    LogMessageKind(
        "neuron-send-recv-channel",
        ("must have channel_id",),
        re.compile(r"Send and Recv must have channel_id"),
        "a send or recv has no channel.",
        lambda job: job.where(
            "it has no channel",
            lambda signature, _joined: signature.opcode in ("send", "recv") and not signature.has_channel,
        ),
    ),
)
"""The messages, in no particular order."""
