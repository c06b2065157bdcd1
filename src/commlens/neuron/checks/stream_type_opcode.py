"""A tag that names another operation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from commlens.hlo import Example, Finding, Rule, shortened
from commlens.neuron.frontend_attributes import COLLECTIVE_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject


_OPERATION: Final = re.compile(
    r"(?:^|_)(all_gather|reduce_scatter|all_reduce|all_to_all|collective_permute|collective_broadcast)$"
)


def find(subject: Subject) -> Iterator[Finding]:
    """Name collectives whose tag ends in the name of another operation."""
    for site in subject.sites:
        tag = site.signature.frontend_attributes.get(COLLECTIVE_TYPE, "")
        named = _OPERATION.search(tag)
        opcode = site.signature.opcode
        if named is not None and named[1].replace("_", "-") != opcode:
            yield Finding.about(
                f"expected a collective_type that ends in {opcode.replace('-', '_')} on this {opcode}, found "
                f"{shortened(tag)}; the tag may have been copied from another collective",
                site,
            )


RULE: Final = Rule(
    id="stream-type-opcode",
    severity="warning",
    title="A collective_type that contradicts the opcode",
    documentation=(
        "The frontend attribute collective_type names another operation than the collective has it on, for instance "
        "fsdp_all_gather on a reduce-scatter. Differentiation copies the attributes of the forward collective onto "
        "its transpose, which is the other of the two. The injector of stream ids takes any collective with such a "
        "tag as the exemplar of its kind of parallelism, so the wrong one may decide; tools that count by tags count "
        "wrong. Set the tag again on what the backward pass makes."
    ),
    source="AWS Neuron documentation of compute-communication overlap",
    bad=Example(
        """HloModule example, replica_count=4
ENTRY e {
  a = f32[8] parameter(0)
  ROOT g0 = f32[16] all-gather(a), replica_groups={{0,1},{2,3}}, dimensions={0},
    frontend_attributes={collective_type="fsdp_reduce_scatter"}
}
"""
    ),
    good=Example(
        """HloModule example, replica_count=4
ENTRY e {
  a = f32[8] parameter(0)
  ROOT g0 = f32[16] all-gather(a), replica_groups={{0,1},{2,3}}, dimensions={0},
    frontend_attributes={collective_type="fsdp_all_gather"}
}
"""
    ),
    find=find,
)
