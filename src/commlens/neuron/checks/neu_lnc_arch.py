"""An LNC that the machine does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Deployment, Example, Finding, Rule
from commlens.neuron.checks.topologies import NEURON_TARGETS
from commlens.neuron.rank_model import LNCS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Hold the LNC that was named against the machine's."""
    target, lnc = subject.deployment.target, subject.deployment.lnc
    allowed = sorted(LNCS.get(target or "", ()))
    if lnc is not None and allowed and lnc not in allowed:
        yield Finding(f"expected an LNC of {' or '.join(map(str, allowed))} on {target}, found {lnc}")


RULE: Final = Rule(
    id="NEU-LNC-ARCH",
    severity="error",
    title="An LNC that the machine does not have",
    documentation=(
        "The logical core configuration (LNC) named with --lnc does not go with the target: trn1 and inf2 have 1 "
        "only, trn2 and trn3 1 or 2. The compiler refuses others with NCC_EARG001, and at run time "
        "NEURON_LOGICAL_NC_CONFIG must be the same."
    ),
    source="AWS Neuron documentation of logical cores",
    bad=Example(
        """HloModule example, replica_count=2
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={{0,1}}, to_apply=add
}
""",
        Deployment("trn1", lnc=2),
    ),
    good=Example(
        """HloModule example, replica_count=2
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={{0,1}}, to_apply=add
}
""",
        Deployment("trn2", lnc=2),
    ),
    find=find,
    targets=NEURON_TARGETS,
)
