"""A reduction that Neuron does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Deployment, Example, Finding, Rule, UnreadableError, reducer_of, reduction_kind
from commlens.neuron.checks.topologies import NEURON_TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Site, Subject


_REDUCING: Final = frozenset({"all-reduce", "reduce-scatter"})
_KNOWN: Final = frozenset({"sum", "max", "min"})
_ROOTS: Final = frozenset({"add", "maximum", "minimum"})


def find(subject: Subject) -> Iterator[Finding]:
    """Name collectives that reduce with something else than a sum, a maximum or a minimum."""
    for site in subject.sites:
        if site.signature.opcode in _REDUCING:
            operation = _unknown_operation(site)
            if operation is not None:
                yield Finding.about(
                    f"expected {site.signature.opcode} to reduce with add, maximum or minimum, found {operation}", site
                )


def _unknown_operation(site: Site) -> str | None:
    """Return what a reducer does that is none of Neuron's reductions; None where it is one, or cannot be made out."""
    try:
        reducer = reducer_of(site.instruction)
        if reducer is None or reduction_kind(reducer) in _KNOWN:
            return None
        operation = reducer.root
        while operation.opcode == "convert":  # sums are often worked out in a wider type
            operation = operation.operands[0]
    except (UnreadableError, LookupError):
        return None
    return None if operation.opcode in _ROOTS else f"{operation.opcode} in {reducer.name}"


RULE: Final = Rule(
    id="NEU-REDUCE-OP",
    severity="error",
    title="A reduction that Neuron does not have",
    documentation=(
        "An all-reduce or reduce-scatter reduces with another operation than add, maximum or minimum, the three that "
        "Neuron's collectives have. (and and or of booleans are a minimum and a maximum.) A product, for instance, "
        "has to be written as an all-gather and a local reduction, or in logarithms."
    ),
    source="reduce operations of the Neuron Kernel Interface and of BIR",
    bad=Example(
        """HloModule example, replica_count=2
both {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] multiply(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={{0,1}}, to_apply=both
}
""",
        Deployment("trn2"),
    ),
    good=Example(
        """HloModule example, replica_count=2
both {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] maximum(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={{0,1}}, to_apply=both
}
""",
        Deployment("trn2"),
    ),
    find=find,
    targets=NEURON_TARGETS,
)
