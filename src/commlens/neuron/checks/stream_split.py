"""One group list on several streams, whatever the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Example, Finding, Rule, shortened
from commlens.neuron.checks.streams import split_topologies
from commlens.neuron.checks.topologies import NEURON_TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Name group lists whose collectives have different stream ids, where no rule of a target does."""
    if subject.deployment.target in NEURON_TARGETS:
        return
    for split in subject.ask(split_topologies):
        yield Finding.about(
            f"expected one stream_id for the groups {shortened(split.groups)}, found {split.in_words}; give equal "
            "groups equal ids",
            *split.sites,
        )


RULE: Final = Rule(
    id="stream-split",
    severity="warning",
    title="Equal groups have different stream ids",
    documentation=(
        "Collectives with the same replica groups have different stream ids, the frontend attribute by which the "
        "Neuron compiler puts collectives on streams. A stream belongs to a group list, so one of the ids is wrong. "
        "With a Neuron target the rule is silent, for NEU-STREAM-PER-GROUP says it as an error."
    ),
    source="stream_id_map of the Neuron runtime: one entry for each group id",
    bad=Example(
        """HloModule example, replica_count=4
ENTRY e {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  g0 = f32[16] all-gather(a), replica_groups={{0,1},{2,3}}, dimensions={0},
    frontend_attributes={stream_id="0"}
  ROOT g1 = f32[16] all-gather(b), replica_groups={{0,1},{2,3}}, dimensions={0},
    frontend_attributes={stream_id="1"}
}
"""
    ),
    good=Example(
        """HloModule example, replica_count=4
ENTRY e {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  g0 = f32[16] all-gather(a), replica_groups={{0,1},{2,3}}, dimensions={0},
    frontend_attributes={stream_id="0"}
  ROOT g1 = f32[16] all-gather(b), replica_groups={{0,2},{1,3}}, dimensions={0},
    frontend_attributes={stream_id="1"}
}
"""
    ),
    find=find,
)
