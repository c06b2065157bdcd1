"""One channel id on different opcodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Deployment, Example, Finding, Rule, some_of
from commlens.neuron.checks.channels import users_by_channel
from commlens.neuron.checks.topologies import NEURON_TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Name channels that instructions of different kinds share, with all of them."""
    for channel, sites in subject.ask(users_by_channel).items():
        kinds: dict[str, list[str]] = {}
        for site in sites:
            opcode = site.signature.opcode
            kinds.setdefault("send and recv" if opcode in ("send", "recv") else opcode, []).append(site.name)
        if len(kinds) > 1:
            found = "; ".join(f"{kind} ({some_of(names)})" for kind, names in kinds.items())
            message = f"expected one opcode on channel {channel}, found {found}; give each an id of its own"
            yield Finding.about(message, *sites)


RULE: Final = Rule(
    id="NEU-CHANNEL-MIXED-OPCODES",
    severity="error",
    title="One channel id on different opcodes",
    documentation=(
        "A channel id is used by collectives of different opcodes. XLA's verifier refuses that; on Neuron it is an "
        "error also where all ids are the 1 that JAX writes since 0.8, which the rule channel-two-opcodes only notes. "
        "The pass neuron_unique_channel_id_enforcer gives new ids to the opcodes that it looks at, never to starts "
        "with an opcode of their own, collective-broadcast and ragged-all-to-all."
    ),
    source="VerifyChannels, xla/service/hlo_verifier.cc",
    bad=Example(
        """HloModule example, num_partitions=2
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  g = f32[16] all-gather(p), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  ROOT r = f32[16] all-reduce(g), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
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
  g = f32[16] all-gather(p), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  ROOT r = f32[16] all-reduce(g), channel_id=2, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
}
""",
        Deployment("trn2"),
    ),
    find=find,
    targets=NEURON_TARGETS,
)
