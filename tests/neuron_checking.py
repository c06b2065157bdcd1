"""Lines of modules that the rules about Neuron are held against, and what those rules find."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checking import FLAG, ids_of

if TYPE_CHECKING:
    from commlens.analysis import Problem
    from commlens.hlo import Target

NEURON: tuple[Target, ...] = ("trn1", "trn2", "trn3", "inf2")


def braces(groups: list[list[int]]) -> str:
    """Write groups as HLO does."""
    return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"


def gathered(name: str, groups: str, attributes: str = "", *, channel: int | None = None) -> str:
    """Write an all-gather over groups of replicas, or of devices where it has a channel."""
    more = "" if channel is None else f", channel_id={channel}, {FLAG}"
    stated = f", frontend_attributes={{{attributes}}}" if attributes else ""
    return f"{name} = f32[16] all-gather(p), replica_groups={groups}, dimensions={{0}}{more}{stated}"


def neuron_ids(problems: list[Problem]) -> list[str]:
    """Return the Neuron rules that found something; the stock ones have tests of their own."""
    return [rule for rule in ids_of(problems) if rule.startswith(("NEU", "stream"))]


def distinct_lists(number: int) -> list[str]:
    """Write so many all-gathers over different groups of 16 replicas."""
    found: list[str] = []
    for step in range(1, number + 1):
        rest = [rank for rank in range(1, 16) if rank != step]
        pairs = [[0, step], *(rest[at : at + 2] for at in range(0, 14, 2))]
        found.append(gathered(f"g{step}", braces(pairs)))
    return found


TRANSFERS = {
    "send": [
        "t = token[] after-all()",
        "s = (f32[8], u32[], token[]) send(p, t), channel_id={ch}",
        "sd = token[] send-done(s)",
    ],
    "recv": [
        "u = token[] after-all()",
        "v = (f32[8], u32[], token[]) recv(u), channel_id={ch}",
        "vd = (f32[8], token[]) recv-done(v)",
    ],
}


def lines_of(op: str, channel: int, place: int) -> list[str]:
    """Write an instruction of a case about channels."""
    if op in TRANSFERS:
        return [line.replace("{ch}", str(channel)) for line in TRANSFERS[op]]
    if op == "all-gather":
        return [gathered(f"x{place}", "{{0,1}}", channel=channel)]
    return [f"x{place} = f32[8] {op}(p), channel_id={channel}, replica_groups={{{{0,1}}}}, {FLAG}, to_apply=add"]
