"""Collectives of one loop that join devices in different ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.analysis.checks.cliques import clashing, cliques_of
from commlens.analysis.checks.queries import figures_of
from commlens.hlo import Example, Finding, Rule, shortened, some_of, trip_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlens.analysis.checks.cliques import Cliques
    from commlens.hlo import CallGraph, Instruction, Site, Subject

_TWICE: Final = 2


def find(subject: Subject) -> Iterator[Finding]:
    """Name, per loop, the collectives whose groups overlap with others."""
    cliques: dict[int, Cliques] = {}
    for loop, sites in _by_loop(subject).items():
        runs = _runs_of(subject.found.call_graph, loop)
        if runs is not None and runs < _TWICE:
            continue
        found: dict[object, Cliques] = {}
        by_groups: dict[object, list[Site]] = {}
        for site in sites:
            groups = figures_of(subject, site).participation.groups
            if groups is not None:
                if id(groups) not in cliques:  # the figures keep the groups, so that the id stays theirs
                    cliques[id(groups)] = cliques_of(groups)
                key = cliques[id(groups)].key
                found[key] = cliques[id(groups)]
                by_groups.setdefault(key, []).append(site)
        parts = [by_groups[each.key] for each in clashing(list(found.values()))]
        if parts:
            yield Finding.about(_message(subject, loop, runs, parts), *(site for part in parts for site in part))


def _runs_of(graph: CallGraph, loop: Instruction) -> int | None:
    """Return how often the body of a loop runs, one of a single round as often as it is reached; None for unknown."""
    trips = trip_count(loop)
    return graph.executions(loop.computation.name) if trips == 1 else trips


def _by_loop(subject: Subject) -> Mapping[Instruction, list[Site]]:
    """Return the loops in whose bodies something communicates, each with that; of nested loops the innermost."""
    loops: dict[str, tuple[Instruction, ...]] = {}
    found: dict[Instruction, list[Site]] = {}
    for site in subject.sites:
        name = site.computation_name
        if name not in loops:
            _find_loops(subject.found.call_graph, name, loops)
        for loop in loops[name]:
            found.setdefault(loop, []).append(site)
    return found


def _find_loops(graph: CallGraph, name: str, known: dict[str, tuple[Instruction, ...]]) -> None:
    """Add the while instructions whose bodies run a computation, by way of calls, conditionals and fusions."""
    stack, entered = [name], set[str]()
    while stack:
        current = stack[-1]
        calls = [(call, call.caller.computation.name) for call in graph.calls_of(current)]
        pending = [] if current in entered else [caller for call, caller in calls if call.role != "body"]
        entered.add(current)
        pending = [caller for caller in pending if caller not in known and caller not in entered]
        if pending:
            stack += pending
            continue
        stack.pop()
        around = [(call.caller,) if call.role == "body" else known.get(caller, ()) for call, caller in calls]
        known[current] = tuple(dict.fromkeys(loop for loops in around for loop in loops))


def _message(subject: Subject, loop: Instruction, runs: int | None, parts: Sequence[Sequence[Site]]) -> str:
    often = "an unknown number of times" if runs is None else f"{runs:,} times"
    kinds = some_of([_kind(subject, part) for part in parts])
    return (
        f"expected the groups of the collectives in the loop {loop.name}, which runs {often}, to be the same or apart, "
        f"found devices that are in several: {kinds}; they must be issued in the same order on every device"
    )


def _kind(subject: Subject, part: Sequence[Site]) -> str:
    """Describe the collectives that share groups."""
    site = part[0]
    axes = figures_of(subject, site).axes
    where = f"along {','.join(axes)}" if axes else f"over {shortened(site.signature.groups)}"
    opcodes = " and ".join(dict.fromkeys(each.signature.opcode for each in part))
    return f"{opcodes} {where} ({some_of([each.name for each in part])})"


RULE: Final = Rule(
    id="overlapping-in-loop",
    severity="warning",
    title="Overlapping groups alternate in a loop",
    documentation=(
        "The body of a loop that runs more than once has collectives over different groups that share devices, as "
        "with fully sharded data parallelism along one mesh axis and tensor parallelism along another. A back end "
        "makes a communicator of each, and a device is in both; where they may be issued in different orders on "
        "different devices, or run at the same time and wait for each other's resources, the loop hangs. Nothing is "
        "wrong with the module. Make sure that the order is fixed (a schedule, control dependencies, one stream), and "
        "ignore the rule if it is. One finding per loop; of nested loops the innermost. Groups of one device, and "
        "permutes, do not count."
    ),
    source="public report NVIDIA/nccl#1772",
    bad=Example("""HloModule example, num_partitions=16
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
body {
  t = (s32[], f32[512]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  a = f32[512] get-tuple-element(t), index=1
  g = f32[4096] all-gather(a), channel_id=1, replica_groups=[2,8]<=[16], dimensions={0}, use_global_device_ids=true
  h = f32[4096] negate(g)
  s = f32[512] slice(h), slice={[0:512]}
  r = f32[512] all-reduce(s), channel_id=2, replica_groups=[8,2]<=[2,8]T(1,0), use_global_device_ids=true, to_apply=add
  ROOT o = (s32[], f32[512]) tuple(i, r)
}
condition {
  t = (s32[], f32[512]) parameter(0)
  ROOT c = pred[] constant(true)
}
ENTRY e {
  t = (s32[], f32[512]) parameter(0)
  ROOT w = (s32[], f32[512]) while(t), condition=condition, body=body, backend_config={"known_trip_count":{"n":"2"}}
}
"""),
    good=Example("""HloModule example, num_partitions=16
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
body {
  t = (s32[], f32[512]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  a = f32[512] get-tuple-element(t), index=1
  g = f32[4096] all-gather(a), channel_id=1, replica_groups=[2,8]<=[16], dimensions={0}, use_global_device_ids=true
  h = f32[4096] negate(g)
  s = f32[512] slice(h), slice={[0:512]}
  r = f32[512] all-reduce(s), channel_id=2, replica_groups=[2,8]<=[16], use_global_device_ids=true, to_apply=add
  ROOT o = (s32[], f32[512]) tuple(i, r)
}
condition {
  t = (s32[], f32[512]) parameter(0)
  ROOT c = pred[] constant(true)
}
ENTRY e {
  t = (s32[], f32[512]) parameter(0)
  ROOT w = (s32[], f32[512]) while(t), condition=condition, body=body, backend_config={"known_trip_count":{"n":"2"}}
}
"""),
    find=find,
)
