"""Groups of different sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Deployment, Example, Finding, Rule, some_of
from commlens.neuron.checks.topologies import NEURON_TARGETS, group_sizes_of, topologies_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Name the collectives whose groups differ in size."""
    for groups, sites in subject.ask(topologies_of).items():
        sizes = sorted(group_sizes_of(groups))
        if len(sizes) > 1:
            names = some_of([str(size) for size in sizes])
            for site in sites:
                yield Finding.about(f"expected groups of one size on Neuron, found sizes {names}; even them out", site)


RULE: Final = Rule(
    id="NEU-GROUP-UNEVEN",
    severity="error",
    title="Groups differ in size",
    documentation=(
        "The replica groups differ in size. XLA allows that in an all-reduce; Neuron's runtime keeps a group list as "
        "so many groups of so many ranks, and CC info of such a program is refused as inconsistent."
    ),
    source="getCCRankWorldSize of the reference document on meshes",
    bad=Example(
        """HloModule example, replica_count=3
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={{0,1},{2}}, to_apply=add
}
""",
        Deployment("trn2"),
    ),
    good=Example(
        """HloModule example, replica_count=3
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={{0,1,2}}, to_apply=add
}
""",
        Deployment("trn2"),
    ),
    find=find,
    targets=NEURON_TARGETS,
)
