"""More group lists than the runtime has communicators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Deployment, Example, Finding, Rule
from commlens.neuron.checks.topologies import NEURON_TARGETS, topologies_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject


MOST_TOPOLOGIES: Final = 12
"""Communicators of a NEFF."""


def find(subject: Subject) -> Iterator[Finding]:
    """Count the distinct group lists."""
    found = subject.ask(topologies_of)
    if len(found) > MOST_TOPOLOGIES:
        beyond = [sites[0] for sites in found.values()][MOST_TOPOLOGIES:]
        yield Finding.about(
            f"expected at most {MOST_TOPOLOGIES} distinct group lists in a program, found {len(found)}; let "
            "collectives share lists, or split the program",
            *beyond,
        )


RULE: Final = Rule(
    id="NEU-COMM-MAX",
    severity="error",
    title="More than 12 distinct group lists",
    documentation=(
        "The program has more distinct replica group lists than the 12 communicators that a NEFF may have: the "
        "runtime numbers the lists and refuses numbers from 12 on. Lists are compared place by place, as CC info "
        "lists them, so the same groups in another order count again. The first collective of each list beyond the "
        "twelfth is named."
    ),
    source="NEC_MAX_COMM_N of nec.h, AWS Neuron runtime",
    bad=Example(
        """HloModule example, replica_count=14
ENTRY e {
  p = f32[8] parameter(0)
  g0 = f32[16] all-gather(p), replica_groups={{0,1},{2,3},{4,5},{6,7},{8,9},{10,11},{12,13}}, dimensions={0}
  g1 = f32[16] all-gather(p), replica_groups={{0,2},{1,3},{4,5},{6,7},{8,9},{10,11},{12,13}}, dimensions={0}
  g2 = f32[16] all-gather(p), replica_groups={{0,3},{1,2},{4,5},{6,7},{8,9},{10,11},{12,13}}, dimensions={0}
  g3 = f32[16] all-gather(p), replica_groups={{0,4},{1,2},{3,5},{6,7},{8,9},{10,11},{12,13}}, dimensions={0}
  g4 = f32[16] all-gather(p), replica_groups={{0,5},{1,2},{3,4},{6,7},{8,9},{10,11},{12,13}}, dimensions={0}
  g5 = f32[16] all-gather(p), replica_groups={{0,6},{1,2},{3,4},{5,7},{8,9},{10,11},{12,13}}, dimensions={0}
  g6 = f32[16] all-gather(p), replica_groups={{0,7},{1,2},{3,4},{5,6},{8,9},{10,11},{12,13}}, dimensions={0}
  g7 = f32[16] all-gather(p), replica_groups={{0,8},{1,2},{3,4},{5,6},{7,9},{10,11},{12,13}}, dimensions={0}
  g8 = f32[16] all-gather(p), replica_groups={{0,9},{1,2},{3,4},{5,6},{7,8},{10,11},{12,13}}, dimensions={0}
  g9 = f32[16] all-gather(p), replica_groups={{0,10},{1,2},{3,4},{5,6},{7,8},{9,11},{12,13}}, dimensions={0}
  g10 = f32[16] all-gather(p), replica_groups={{0,11},{1,2},{3,4},{5,6},{7,8},{9,10},{12,13}}, dimensions={0}
  g11 = f32[16] all-gather(p), replica_groups={{0,12},{1,2},{3,4},{5,6},{7,8},{9,10},{11,13}}, dimensions={0}
  ROOT g12 = f32[16] all-gather(p), replica_groups={{0,13},{1,2},{3,4},{5,6},{7,8},{9,10},{11,12}}, dimensions={0}
}
""",
        Deployment("trn2"),
    ),
    good=Example(
        """HloModule example, replica_count=14
ENTRY e {
  p = f32[8] parameter(0)
  g0 = f32[16] all-gather(p), replica_groups={{0,1},{2,3},{4,5},{6,7},{8,9},{10,11},{12,13}}, dimensions={0}
  g1 = f32[16] all-gather(p), replica_groups={{0,2},{1,3},{4,5},{6,7},{8,9},{10,11},{12,13}}, dimensions={0}
  g2 = f32[16] all-gather(p), replica_groups={{0,3},{1,2},{4,5},{6,7},{8,9},{10,11},{12,13}}, dimensions={0}
  g3 = f32[16] all-gather(p), replica_groups={{0,4},{1,2},{3,5},{6,7},{8,9},{10,11},{12,13}}, dimensions={0}
  g4 = f32[16] all-gather(p), replica_groups={{0,5},{1,2},{3,4},{6,7},{8,9},{10,11},{12,13}}, dimensions={0}
  g5 = f32[16] all-gather(p), replica_groups={{0,6},{1,2},{3,4},{5,7},{8,9},{10,11},{12,13}}, dimensions={0}
  g6 = f32[16] all-gather(p), replica_groups={{0,7},{1,2},{3,4},{5,6},{8,9},{10,11},{12,13}}, dimensions={0}
  g7 = f32[16] all-gather(p), replica_groups={{0,8},{1,2},{3,4},{5,6},{7,9},{10,11},{12,13}}, dimensions={0}
  g8 = f32[16] all-gather(p), replica_groups={{0,9},{1,2},{3,4},{5,6},{7,8},{10,11},{12,13}}, dimensions={0}
  g9 = f32[16] all-gather(p), replica_groups={{0,10},{1,2},{3,4},{5,6},{7,8},{9,11},{12,13}}, dimensions={0}
  g10 = f32[16] all-gather(p), replica_groups={{0,11},{1,2},{3,4},{5,6},{7,8},{9,10},{12,13}}, dimensions={0}
  ROOT g11 = f32[16] all-gather(p), replica_groups={{0,12},{1,2},{3,4},{5,6},{7,8},{9,10},{11,13}}, dimensions={0}
}
""",
        Deployment("trn2"),
    ),
    find=find,
    targets=NEURON_TARGETS,
)
