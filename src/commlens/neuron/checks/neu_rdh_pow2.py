"""Groups whose size is no power of two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Deployment, Example, Finding, Rule, shortened
from commlens.neuron.checks.topologies import NEURON_TARGETS, group_sizes_of, topologies_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Name group lists, with all their collectives, that one algorithm cannot take."""
    for groups, sites in subject.ask(topologies_of).items():
        odd = sorted(size for size in group_sizes_of(groups) if size & (size - 1))
        if odd:
            yield Finding.about(
                "expected groups of a power of two, which recursive doubling and halving needs, found groups of "
                f"{odd[0]} in {shortened(groups)}; another algorithm will be chosen",
                *sites,
            )


RULE: Final = Rule(
    id="NEU-RDH-POW2",
    severity="note",
    title="A group size that is no power of two",
    documentation=(
        "The size of the groups is no power of two, so that recursive doubling and halving (RDH), which suits "
        "messages of about 1 to 56 MB within a node, cannot be used and another algorithm is taken. Nothing is wrong; "
        "it is good to know when a collective is slower than expected."
    ),
    source="AWS Neuron documentation of intra-node and inter-node collectives",
    bad=Example(
        """HloModule example, replica_count=12
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={{0,1,2,3,4,5,6,7,8,9,10,11}}, to_apply=add
}
""",
        Deployment("trn2"),
    ),
    good=Example(
        """HloModule example, replica_count=8
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=add
}
""",
        Deployment("trn2"),
    ),
    find=find,
    targets=NEURON_TARGETS,
)
