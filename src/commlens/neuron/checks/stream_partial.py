"""Some collectives with a stream id and some without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Example, Finding, Rule, some_of
from commlens.neuron.frontend_attributes import STREAM_ID
from commlens.neuron.predicates import COLLECTIVE_CLASS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Name the collectives without a stream id, where others have one."""
    stampable = [site for site in subject.sites if site.signature.opcode in COLLECTIVE_CLASS]
    bare = [site for site in stampable if STREAM_ID not in site.signature.frontend_attributes]
    stamped = len(stampable) - len(bare)
    if bare and stamped:
        yield Finding.about(
            f"expected a stream_id on all {len(stampable)} collectives or on none, found it on {stamped} and not on "
            f"{some_of([site.name for site in bare])}; run aws_neuron_collective_stream_id_injector behind the passes "
            "that make collectives",
            *bare,
        )


RULE: Final = Rule(
    id="stream-partial",
    severity="warning",
    title="Some collectives have a stream id and others none",
    documentation=(
        "Some collectives have the frontend attribute stream_id and others have none. The Neuron compiler's injector "
        "stamps all of them in one go, so the others were made behind it: passes with higher numbers rewrite and "
        "clone collectives without the attribute, and those run on stream 0 whatever their groups. Permutes, sends "
        "and recvs are never stamped and do not count. All that lack it are listed."
    ),
    source="registry order of neuronx_cc 2.24.5133",
    bad=Example(
        """HloModule example, replica_count=4
ENTRY e {
  a = f32[8] parameter(0)
  b = f32[8] parameter(1)
  g0 = f32[16] all-gather(a), replica_groups={{0,1},{2,3}}, dimensions={0},
    frontend_attributes={stream_id="0"}
  ROOT g1 = f32[16] all-gather(b), replica_groups={{0,2},{1,3}}, dimensions={0}
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
