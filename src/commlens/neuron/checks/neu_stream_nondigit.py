"""A stream id that is no digit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Deployment, Example, Finding, Rule, shortened
from commlens.neuron.checks.topologies import NEURON_TARGETS
from commlens.neuron.frontend_attributes import STREAM_ID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Name collectives with a stream id that is no number."""
    for site in subject.sites:
        value = site.signature.frontend_attributes.get(STREAM_ID)
        if value is not None and not (value.isascii() and value.isdecimal()):
            yield Finding.about(f"expected a digit as stream_id, found {shortened(repr(value))}", site)


RULE: Final = Rule(
    id="NEU-STREAM-NONDIGIT",
    severity="error",
    title="A stream id that is no digit",
    documentation=(
        "The frontend attribute stream_id of a collective is not made of digits. The compiler writes one ASCII digit, "
        "and what reads it takes it for a number; other texts, an empty one too, have no meaning."
    ),
    source="aws_neuron_collective_stream_id_injector of neuronx_cc 2.24.5133",
    bad=Example(
        """HloModule example, replica_count=4
ENTRY e {
  a = f32[8] parameter(0)
  ROOT g0 = f32[16] all-gather(a), replica_groups={{0,1},{2,3}}, dimensions={0},
    frontend_attributes={stream_id="a"}
}
""",
        Deployment("trn2"),
    ),
    good=Example(
        """HloModule example, replica_count=4
ENTRY e {
  a = f32[8] parameter(0)
  ROOT g0 = f32[16] all-gather(a), replica_groups={{0,1},{2,3}}, dimensions={0},
    frontend_attributes={stream_id="1"}
}
""",
        Deployment("trn2"),
    ),
    find=find,
    targets=NEURON_TARGETS,
)
