"""Collectives in which nobody has a partner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.analysis.checks.queries import faults_of, figures_of
from commlens.hlo import Example, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis.participation import Participation
    from commlens.hlo import Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Name what exchanges nothing, whatever it is called."""
    faults = subject.ask(faults_of)
    for site in subject.sites:
        alone = None if faults[site.signature] else _alone(figures_of(subject, site).participation)
        if alone is not None:
            yield Finding.about(
                f"expected {site.signature.opcode} to join devices, found {alone}; it moves nothing, so drop it", site
            )


def _alone(participation: Participation) -> str | None:
    """Say how everybody is alone; None where somebody is not, or it is not known."""
    if participation.pairs is not None:
        sources, targets = participation.pairs.to_array().T
        return "pairs from each device to itself" if sources.size and bool((sources == targets).all()) else None
    groups = participation.groups
    return "groups of one device each" if groups is not None and groups.num_devices_per_group == 1 else None


RULE: Final = Rule(
    id="size-one-axis",
    severity="note",
    title="A collective over one device",
    documentation=(
        "Every group has one device, or every pair leads from a device to itself, as it comes about over a mesh axis "
        "of size 1. The collective gives what it got, but it may still cost a launch and a buffer, and keeps its "
        "neighbours from being fused. Drop it, or the axis. Said of the devices that really take part: one replica id "
        "with a channel id and without use_global_device_ids stands for all partitions of that replica, which is no "
        "group of one."
    ),
    source="xla/hlo/transforms/simplifiers/all_reduce_folder.cc and the trivial cases of XLA's collective passes",
    bad=Example("""HloModule example, num_partitions=2
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), channel_id=1, replica_groups={{0},{1}}, use_global_device_ids=true, to_apply=add
}
"""),
    good=Example("""HloModule example, num_partitions=2
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), channel_id=1, replica_groups={{0}}, to_apply=add
}
"""),
    find=find,
)
