"""Sends and recvs without a channel in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Deployment, Example, Finding, Rule
from commlens.neuron.checks.topologies import NEURON_TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Site, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Name sends and recvs that have no channel id, or one that the other end does not have."""
    ends: dict[str, list[Site]] = {"send": [], "recv": []}
    for site in subject.sites:
        if site.signature.opcode in ends and not site.signature.is_host_transfer:
            ends[site.signature.opcode].append(site)
    for opcode, other in (("send", "recv"), ("recv", "send")):
        channels = {site.channel_id for site in ends[other]}
        for site in ends[opcode]:
            if site.channel_id is None:
                yield Finding.about(
                    f"expected a channel_id on this {opcode}, found none; give it that of its {other}", site
                )
            elif site.channel_id not in channels:
                message = (
                    f"expected a {other} with the channel id {site.channel_id} of this {opcode}, found none; give both "
                    "the same id"
                )
                yield Finding.about(message, site)


RULE: Final = Rule(
    id="NEU-SEND-RECV-CHANNEL",
    severity="error",
    title="A send and a recv without a channel in common",
    documentation=(
        "The Neuron compiler fuses a send and a recv by their channel id, anchored at the done forms: both must have "
        "one (Send and Recv must have channel_id), and the same one. The pass neuron_unique_channel_id_enforcer, run "
        "as documented, gives the second of a pair a new id and so tears it; with safe=true it leaves pairs alone."
    ),
    source="fuse-send-recv of neuronx_cc 2.24.5133; VerifyChannels, xla/service/hlo_verifier.cc",
    bad=Example(
        """HloModule example, num_partitions=2
ENTRY e {
  x = f32[8] parameter(0)
  t = token[] after-all()
  s = (f32[8], u32[], token[]) send(x, t), channel_id=7
  d = token[] send-done(s), channel_id=7
  v = (f32[8], u32[], token[]) recv(t), channel_id=8
  ROOT w = (f32[8], token[]) recv-done(v), channel_id=8
}
""",
        Deployment("trn2"),
    ),
    good=Example(
        """HloModule example, num_partitions=2
ENTRY e {
  x = f32[8] parameter(0)
  t = token[] after-all()
  s = (f32[8], u32[], token[]) send(x, t), channel_id=7
  d = token[] send-done(s), channel_id=7
  v = (f32[8], u32[], token[]) recv(t), channel_id=7
  ROOT w = (f32[8], token[]) recv-done(v), channel_id=7
}
""",
        Deployment("trn2"),
    ),
    find=find,
    targets=NEURON_TARGETS,
)
