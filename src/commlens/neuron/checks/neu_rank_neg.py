"""A negative rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Deployment, Example, Finding, Rule, some_of
from commlens.neuron.checks.topologies import NEURON_TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Name collectives whose groups or pairs have negative ids."""
    for site in subject.sites:
        listed = site.signature.groups, site.signature.pairs
        ids = listed[0].flattened_replica_groups() if listed[0] is not None and listed[0].is_written_out else None
        ids = listed[1].to_array() if listed[1] is not None else ids
        negative = [] if ids is None else sorted(set(ids[ids < 0].tolist()))
        if negative:
            yield Finding.about(f"expected ranks of 0 or more, found {some_of([str(each) for each in negative])}", site)


RULE: Final = Rule(
    id="NEU-RANK-NEG",
    severity="error",
    title="A negative rank",
    documentation=(
        "Groups or source-target pairs name a negative id. Ranks are unsigned 32-bit numbers in a NEFF, so a negative "
        "one becomes another rank or none. -1 is what some frameworks fill uneven groups up with."
    ),
    source="loader of def.json, AWS Neuron runtime",
    bad=Example(
        """HloModule example, replica_count=2
ENTRY e {
  a = f32[8] parameter(0)
  ROOT g0 = f32[16] all-gather(a), replica_groups={{-1,0}}, dimensions={0}
}
""",
        Deployment("trn2"),
    ),
    good=Example(
        """HloModule example, replica_count=2
ENTRY e {
  a = f32[8] parameter(0)
  ROOT g0 = f32[16] all-gather(a), replica_groups={{0,1}}, dimensions={0}
}
""",
        Deployment("trn2"),
    ),
    find=find,
    targets=NEURON_TARGETS,
)
