"""One group list on several streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Deployment, Example, Finding, Rule, shortened
from commlens.neuron.checks.streams import split_topologies
from commlens.neuron.checks.topologies import NEURON_TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Name group lists whose collectives have different stream ids."""
    for split in subject.ask(split_topologies):
        yield Finding.about(
            f"expected one stream for the groups {shortened(split.groups)}, found {split.in_words}; the runtime keeps "
            "one stream for each group list",
            *split.sites,
        )


RULE: Final = Rule(
    id="NEU-STREAM-PER-GROUP",
    severity="error",
    title="One group list on two streams",
    documentation=(
        "Collectives with the same replica groups have different stream ids. The runtime looks the stream up by the "
        "number of the group list, so a list has one stream and the other ids cannot be honoured. The pass "
        "aws_neuron_collective_stream_id_injector gives equal groups equal ids; ids that were written by hand or by "
        "another tool may differ. Without a Neuron target stream-split says the same."
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
""",
        Deployment("trn2"),
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
""",
        Deployment("trn2"),
    ),
    find=find,
    targets=NEURON_TARGETS,
)
