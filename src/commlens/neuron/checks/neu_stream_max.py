"""A stream that the runtime does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Deployment, Example, Finding, Rule, shortened
from commlens.neuron.checks.topologies import NEURON_TARGETS
from commlens.neuron.frontend_attributes import STREAM_ID

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject


MOST_STREAMS: Final = 4
"""Streams of the runtime."""
_DIGITS: Final = 20


def find(subject: Subject) -> Iterator[Finding]:
    """Name collectives with a stream id beyond the last stream."""
    for site in subject.sites:
        value = site.signature.frontend_attributes.get(STREAM_ID, "")
        if value.isascii() and value.isdecimal() and not 0 <= int(value[:_DIGITS]) < MOST_STREAMS:
            last = MOST_STREAMS - 1
            yield Finding.about(f"expected a stream_id of 0 to {last}, found {shortened(value)}", site)


RULE: Final = Rule(
    id="NEU-STREAM-MAX",
    severity="error",
    title="A stream id above 3",
    documentation=(
        "A collective has a stream_id above 3: the runtime has four streams, 0 to 3. How many of them help depends on "
        "the hardware, two collective cores to each physical core: two streams with LNC 1 and four with LNC 2."
    ),
    source="NEC_MAX_STREAM_N of nec.h, AWS Neuron runtime",
    bad=Example(
        """HloModule example, replica_count=4
ENTRY e {
  a = f32[8] parameter(0)
  ROOT g0 = f32[16] all-gather(a), replica_groups={{0,1},{2,3}}, dimensions={0},
    frontend_attributes={stream_id="4"}
}
""",
        Deployment("trn2"),
    ),
    good=Example(
        """HloModule example, replica_count=4
ENTRY e {
  a = f32[8] parameter(0)
  ROOT g0 = f32[16] all-gather(a), replica_groups={{0,1},{2,3}}, dimensions={0},
    frontend_attributes={stream_id="3"}
}
""",
        Deployment("trn2"),
    ),
    find=find,
    targets=NEURON_TARGETS,
)
