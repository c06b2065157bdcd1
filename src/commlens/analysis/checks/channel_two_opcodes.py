"""One channel id on collectives of different kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Example, Finding, Rule, some_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.hlo import Severity, Site, Subject

_PAIRED: Final = frozenset({"send", "recv"})
_MARK: Final = 1
"""The id that JAX gives to every collective."""
_SEVERAL: Final = 3
"""From so many users on, an id of 1 is taken for JAX's mark: two may be a slip."""


def find(subject: Subject) -> Iterator[Finding]:
    """Name every channel that instructions of different kinds share, with all of them."""
    users: dict[int, list[Site]] = {}
    for site in subject.sites:
        if site.channel_id is not None:
            users.setdefault(site.channel_id, []).append(site)
    numbered = {site.channel_id for sites in users.values() for site in sites if site.signature.opcode not in _PAIRED}
    only_mark = numbered == {_MARK}
    for channel, sites in users.items():
        kinds: dict[str, list[str]] = {}
        for site in sites:
            kinds.setdefault(_kind(site), []).append(site.name)
        if len(kinds) > 1:
            yield _finding(channel, kinds, sites, only_mark=only_mark)


def _kind(site: Site) -> str:
    """Return what shares a channel by right: a send and its recv, and collectives of one opcode."""
    opcode = site.signature.opcode
    return "send and recv" if opcode in _PAIRED else opcode


def _finding(channel: int, kinds: dict[str, list[str]], sites: Sequence[Site], *, only_mark: bool) -> Finding:
    found = "; ".join(f"{kind} ({some_of(names)})" for kind, names in kinds.items())
    message = f"expected instructions of one kind on channel {channel}, found {found}"
    is_mark = only_mark and len(sites) >= _SEVERAL and "send and recv" not in kinds
    if is_mark:
        severity: Severity | None = "note"
        message += (
            ". As JAX does since 0.8, every collective with a channel id has the id 1, which then only says that the "
            "groups hold global ids; a compiler that tells collectives apart by their channel needs new ids"
        )
    else:
        severity = None
        message += "; give each an id of its own"
    return Finding.about(message, *sites, severity=severity)


RULE: Final = Rule(
    id="channel-two-opcodes",
    severity="error",
    title="One channel id on instructions of different kinds",
    documentation=(
        "A channel id is used by collectives with different opcodes, or by a collective and a send or recv. XLA's "
        "verifier allows several instructions of one opcode on a channel, as branches of a conditional have them, and "
        "a send with its recv; anything else is refused, because back ends key communication by the channel. It "
        "happens when a computation is inlined whose ids started again at 1. Give each kind an id of its own: the "
        "pass neuron_unique_channel_id_enforcer{safe=true} does. JAX since 0.8 writes the id 1 on every collective, "
        "where it is a mark and no number: where no collective of the module has another id, and three or more have "
        "that one, it is a note. All users are listed."
    ),
    source="VerifyChannels, xla/service/hlo_verifier.cc",
    bad=Example("""HloModule example, num_partitions=2
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
"""),
    good=Example("""HloModule example, num_partitions=2
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
"""),
    find=find,
)
