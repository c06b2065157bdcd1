"""Flags that no group mode goes with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Example, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Name the collectives that have the flag and no channel id."""
    for site in subject.sites:
        signature = site.signature
        if signature.use_global_device_ids and not signature.has_channel:
            yield Finding.about(
                f"expected a channel_id in an {signature.opcode} with use_global_device_ids=true, found none; add one, "
                "or drop the flag if the ids in its groups are those of replicas",
                site,
            )


RULE: Final = Rule(
    id="flag-without-channel",
    severity="error",
    title="use_global_device_ids without a channel id",
    documentation=(
        "use_global_device_ids=true says that the ids in the groups are global device ids, which only a collective "
        "with a channel id can have: without one they are replica ids. The two contradict each other, so nobody can "
        "tell who takes part, and XLA's reader refuses the module. Add a channel id, or drop the flag."
    ),
    source="GetCollectiveOpGroupMode, xla/hlo/ir/collective_op_group_mode.cc",
    bad=Example("""HloModule example, num_partitions=4
ENTRY e {
  p = f32[8] parameter(0)
  ROOT g = f32[16] all-gather(p), replica_groups={{0,1},{2,3}}, dimensions={0}, use_global_device_ids=true
}
"""),
    good=Example("""HloModule example, num_partitions=4
ENTRY e {
  p = f32[8] parameter(0)
  ROOT g = f32[16] all-gather(p), channel_id=1, replica_groups={{0,1},{2,3}}, dimensions={0}, use_global_device_ids=true
}
"""),
    find=find,
)
