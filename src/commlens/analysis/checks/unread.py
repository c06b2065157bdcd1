"""What may communicate and could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.analysis.checks.def_use import Flows
from commlens.hlo import Example, Finding, Place, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject, Unread


def find(subject: Subject) -> Iterator[Finding]:
    """Name everything unread, and the computations in which nobody can tell who uses whom."""
    for item in subject.found.unread:
        yield Finding(item.why, (_place(item),))
    if subject.module.structure_faults:
        return  # what is missing there has been named
    for site, why in subject.ask(Flows).broken(subject.sites):
        message = (
            f"expected every instruction of the computation {site.computation_name} to state its operands, found one "
            f"that does not: {why}; what becomes of the results there is not checked"
        )
        yield Finding.about(message, site)


def _place(item: Unread) -> Place:
    line = item.where.partition(":")[0]
    where = ("", int(line)) if line.isdecimal() else (item.where.removeprefix("computation "), None)
    return Place(item.name or "", *where)


RULE: Final = Rule(
    id="unread",
    severity="warning",
    title="Something that may communicate cannot be read",
    documentation=(
        "An instruction that looks like a collective, or a part of the module that may hold some, cannot be read: an "
        "attribute breaks its grammar, an iota list is no bijection, a collective-permute states no pairs, an "
        "all-gather no dimension, a type is unknown, or the text is cut. Nothing else is checked of it, so the "
        "absence of other findings means little until this one is gone. Mend the module, or read it in the form in "
        "which the compiler dumped it."
    ),
    source="the grammar of xla/hlo/parser/hlo_parser.cc",
    bad=Example("""HloModule example, replica_count=4
ENTRY e {
  p = f32[8] parameter(0)
  ROOT g = f32[32] all-gather(p), replica_groups={{0,1,2,3}}, dimensions={}
}
"""),
    good=Example("""HloModule example, replica_count=4
ENTRY e {
  p = f32[8] parameter(0)
  ROOT g = f32[32] all-gather(p), replica_groups={{0,1,2,3}}, dimensions={0}
}
"""),
    find=find,
)
