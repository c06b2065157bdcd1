"""A number of cores that trn1 does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Deployment, Example, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject


_FEW: Final = frozenset({1, 2, 8, 16})
_NODE: Final = 32


def find(subject: Subject) -> Iterator[Finding]:
    """Look at how many devices the program has."""
    cores = subject.num_devices
    if cores is not None and cores not in _FEW and cores % _NODE:
        allowed = ", ".join(str(each) for each in sorted(_FEW))
        yield Finding(f"expected a program for {allowed} cores or a multiple of {_NODE} on trn1, found one for {cores}")


RULE: Final = Rule(
    id="NEU-TRN1-CORES",
    severity="error",
    title="A number of cores that trn1 does not run",
    documentation=(
        "The program is for a number of devices that trn1 cannot run: allowed are 1, 2, 8, 16 and multiples of 32 "
        "cores. The module itself is in order, and other machines may run it; the runtime says Unsupported topology. "
        "Looked at only where the counts of replicas and partitions are known. Inf2 allows other even numbers."
    ),
    source="error text of the Neuron runtime, public report huggingface/optimum-neuron#619",
    bad=Example(
        """HloModule example, replica_count=4
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={{0,1,2,3}}, to_apply=add
}
""",
        Deployment("trn1"),
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
        Deployment("trn1"),
    ),
    find=find,
    targets=frozenset({"trn1"}),
)
