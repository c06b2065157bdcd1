"""An id that no replica, partition or device has."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.analysis.checks.queries import context_of, range_of, sites_with
from commlens.hlo import Example, Rule
from commlens.topology import CollectiveOpGroupMode as Mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlens.hlo import Finding, Signature, Site, Subject
    from commlens.topology import Fault

_COUNTED: Final[Mapping[Mode, str]] = MappingProxyType(
    {
        Mode.CROSS_REPLICA: "replicas",
        Mode.CROSS_PARTITION: "partitions",
        Mode.CROSS_REPLICA_AND_PARTITION: "replicas",
        Mode.FLATTENED_ID: "devices",
    }
)


def find(subject: Subject) -> Iterator[Finding]:
    """Name the ids, and what would make them right."""
    return sites_with(subject, "id-out-of-range", partial(_message, subject))


def _message(subject: Subject, site: Site, fault: Fault) -> str:
    """Return the fault with the cures that this module has, where there are any."""
    cures = list(_cures(subject, site.signature))
    return f"{fault.message.partition('; ')[0]}; {', or '.join(cures)}" if cures else fault.message


def _cures(subject: Subject, signature: Signature) -> Iterator[str]:
    """Yield what would make these ids ids of something: another mode, or more of what they count."""
    joined = signature.pairs if signature.groups is None else signature.groups
    smallest, largest = (None if joined is None else range_of(joined)) or (-1, -1)
    if smallest < 0:
        return
    number = largest + 1
    yield from _other_modes(subject, signature, number)
    mode = subject.ask(context_of).figures_of(signature).mode
    if mode is not None:
        yield f"run the program on {number} {_COUNTED[mode]}"


def _other_modes(subject: Subject, signature: Signature, number: int) -> Iterator[str]:
    """Yield the group modes in which ids below a number are ids of something, as changes to the instruction."""
    module, flag = subject.module, signature.use_global_device_ids
    replicas, partitions, devices = module.replica_count, module.num_partitions, subject.num_devices
    if signature.has_channel and replicas is not None and number <= replicas:
        yield f"drop channel_id, for the ids are those of the {replicas} replicas"
    if not signature.has_channel and flag is None and partitions is not None and number <= partitions:
        yield f"add a channel_id, for the ids are those of the {partitions} partitions"
    if flag is False and number == devices:
        needed = "" if signature.has_channel else "a channel_id and "
        yield f"add {needed}use_global_device_ids=true, for the ids are those of the {devices} devices"


RULE: Final = Rule(
    id="id-out-of-range",
    severity="error",
    title="An id that nothing has",
    documentation=(
        "Groups or source-target pairs name an id that no replica, partition or device of the program has. What the "
        "ids count follows from the channel id and the flag: without a channel id replicas; with one and "
        "use_global_device_ids=true all devices; with one and the flag false replicas, each with all its partitions; "
        "and in collectives that have no such flag (all-to-all, collective-permute, collective-broadcast, "
        "ragged-all-to-all) partitions. The usual fault is a channel id that came or went and so changed what the ids "
        "mean. Apart from negative ids this fires only where the counts are known; unlike XLA's verifier it takes a "
        "count of 1 at its word."
    ),
    source="CheckReplicaGroups and CheckSourceTargetPairs, xla/service/hlo_verifier.cc",
    bad=Example("""HloModule example, replica_count=4, num_partitions=1
ENTRY e {
  p = f32[4,4] parameter(0)
  ROOT t = f32[4,4] all-to-all(p), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}
}
"""),
    good=Example("""HloModule example, replica_count=4, num_partitions=1
ENTRY e {
  p = f32[4,4] parameter(0)
  ROOT t = f32[4,4] all-to-all(p), replica_groups={{0,1,2,3}}, dimensions={0}
}
"""),
    find=find,
)
