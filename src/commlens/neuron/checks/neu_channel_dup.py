"""Channel ids that the enforcer changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Deployment, Example, Finding, Rule, some_of
from commlens.neuron.checks.channels import users_by_channel
from commlens.neuron.checks.topologies import NEURON_TARGETS
from commlens.neuron.predicates import ENFORCED_OPCODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Site, Subject


_PAIRED: Final = frozenset({"send", "recv"})


def find(subject: Subject) -> Iterator[Finding]:
    """Name, by opcode, collectives that share a channel id, and those whose first id would change what they mean."""
    for channel, sites in subject.ask(users_by_channel).items():
        by_opcode: dict[str, list[Site]] = {}
        for site in sites:
            if site.signature.opcode in ENFORCED_OPCODES - _PAIRED:
                by_opcode.setdefault(site.signature.opcode, []).append(site)
        for opcode, alike in by_opcode.items():
            if len(alike) > 1:
                message = (
                    f"expected a channel id of its own for each {opcode}, found {channel} on {len(alike)}: "
                    f"{some_of([site.name for site in alike])}; neuron_unique_channel_id_enforcer renumbers all but one"
                )
                yield Finding.about(message, *alike)
    yield from _without_id(subject)


def _without_id(subject: Subject) -> Iterator[Finding]:
    """Name collectives without an id behind the first one, where getting an id makes other devices take part."""
    enforced = ENFORCED_OPCODES - _PAIRED
    bare = [site for site in subject.sites if site.channel_id is None and site.signature.opcode in enforced]
    partitions = subject.module.num_partitions
    changed = [site for site in bare[1:] if site.signature.use_global_device_ids is None or (partitions or 1) > 1]
    if changed:
        message = (
            f"expected channel ids or no second collective without one, found {len(bare)} without: "
            f"neuron_unique_channel_id_enforcer gives an id to {some_of([site.name for site in changed])}, which makes "
            "the ids in their groups or pairs mean others (safe=true leaves them alone)"
        )
        yield Finding.about(message, *changed)


RULE: Final = Rule(
    id="NEU-CHANNEL-DUP",
    severity="warning",
    title="Channel ids that the enforcer changes",
    documentation=(
        "Several collectives of one opcode have the same channel id. XLA allows that, and branches of a conditional "
        "rely on it; the pass neuron_unique_channel_id_enforcer gives all but the first a new id. To the pass no id "
        "is an id as well: the second collective without one gets one, which changes the group mode. That is named "
        "too where it makes other devices meet: for all-to-all and collective-permute, whose ids become those of "
        "partitions, and for the others in programs of several partitions."
    ),
    source="neuron_unique_channel_id_enforcer of neuronx_cc 2.24.5133",
    bad=Example(
        """HloModule example, num_partitions=2
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] all-reduce(p), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  ROOT r = f32[8] all-reduce(q), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
}
""",
        Deployment("trn2"),
    ),
    good=Example(
        """HloModule example, num_partitions=2
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  q = f32[8] all-reduce(p), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  ROOT r = f32[8] all-reduce(q), channel_id=2, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
}
""",
        Deployment("trn2"),
    ),
    find=find,
    targets=NEURON_TARGETS,
)
