"""One kind of parallelism over several group lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Example, Finding, Rule, shortened, some_of
from commlens.neuron.checks.topologies import topologies_of
from commlens.neuron.frontend_attributes import COLLECTIVE_TYPE, FSDP_TYPES, TP_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Site, Subject
    from commlens.topology import DeviceList


def find(subject: Subject) -> Iterator[Finding]:
    """Name the tagged collectives of each kind of parallelism that has several group lists."""
    topologies = subject.ask(topologies_of)
    for kind, types in (("tensor parallelism", TP_TYPES), ("fully sharded data parallelism", FSDP_TYPES)):
        found: dict[DeviceList, list[Site]] = {}
        for groups, sites in topologies.items():
            tagged = [site for site in sites if site.signature.frontend_attributes.get(COLLECTIVE_TYPE) in types]
            if tagged:
                found[groups] = tagged
        if len(found) > 1:
            lists = [
                f"{shortened(groups)} ({some_of([site.name for site in sites])})" for groups, sites in found.items()
            ]
            yield Finding.about(
                f"expected the collectives tagged for {kind} to share one group list, found {len(found)}: "
                f"{some_of(lists)}; stream ids follow the list of one of them",
                *(site for sites in found.values() for site in sites),
            )


RULE: Final = Rule(
    id="stream-type-groups",
    severity="warning",
    title="One kind of parallelism has several group lists",
    documentation=(
        "Collectives that are tagged for the same kind of parallelism (tp_all_gather and tp_reduce_scatter, or "
        "fsdp_all_gather and fsdp_reduce_scatter) have different replica groups. The injector of stream ids takes the "
        "groups of one of them, the first in the last computation that has any, and puts all others on stream 0 "
        "unless their groups are those of the other kind."
    ),
    source="aws_neuron_collective_stream_id_injector of neuronx_cc 2.24.5133",
    bad=Example(
        """HloModule example, replica_count=4
ENTRY e {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  g0 = f32[16] all-gather(a), replica_groups={{0,1},{2,3}}, dimensions={0},
    frontend_attributes={collective_type="tp_all_gather"}
  ROOT g1 = f32[16] all-gather(b), replica_groups={{0,2},{1,3}}, dimensions={0},
    frontend_attributes={collective_type="tp_all_gather"}
}
"""
    ),
    good=Example(
        """HloModule example, replica_count=4
ENTRY e {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  g0 = f32[16] all-gather(a), replica_groups={{0,1},{2,3}}, dimensions={0},
    frontend_attributes={collective_type="tp_all_gather"}
  ROOT g1 = f32[16] all-gather(b), replica_groups={{0,2},{1,3}}, dimensions={0},
    frontend_attributes={collective_type="fsdp_all_gather"}
}
"""
    ),
    find=find,
)
