"""The same data gathered more than once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.analysis.checks.dataflow import origin_of, value_of
from commlens.analysis.checks.def_use import Flows
from commlens.analysis.checks.queries import Spellings, figures_of
from commlens.analysis.wire import in_bytes
from commlens.hlo import Example, Finding, Rule, UnreadableError, some_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.hlo import Shape, Site, Subject
    from commlens.topology import DeviceList

_LOOKED_THROUGH: Final = frozenset({"copy"})


class _Gathered(NamedTuple):
    """What is gathered, and by whom.

    Attributes:
        computation: where.
        operands: which values: positions, and which element of a tuple.
        dimension: along which dimension.
        results: the shapes of the results.
        groups: the devices that exchange.
    """

    computation: str
    operands: tuple[tuple[int, int | None], ...]
    dimension: tuple[int, ...] | None
    results: tuple[Shape, ...]
    groups: DeviceList


def find(subject: Subject) -> Iterator[Finding]:
    """Name all-gathers of one computation that have the same operands, dimension and groups."""
    alike: dict[_Gathered, list[Site]] = {}
    for site in subject.sites:
        if site.signature.opcode == "all-gather" and (data := _gathered(subject, site)) is not None:
            alike.setdefault(data, []).append(site)
    for sites in alike.values():
        if len(sites) > 1:
            yield Finding.about(_message(subject, sites), *sites)


def _gathered(subject: Subject, site: Site) -> _Gathered | None:
    """Return what a site gathers; None where that cannot be told."""
    flows, signature = subject.ask(Flows), site.signature
    groups, value = figures_of(subject, site).participation.groups, value_of(flows, site.instruction)
    if groups is None or value is None or value.position in value.frame.uses.graph.broken:
        return None
    try:
        origins = [origin_of(flows, operand, _LOOKED_THROUGH) for operand in value.operands]
        if not origins or any(origin.value.frame is not value.frame for origin in origins):
            return None
        operands = tuple((origin.value.position, origin.element) for origin in origins)
        spelled = subject.ask(Spellings).of(groups)
    except (UnreadableError, LookupError):
        return None
    return _Gathered(site.computation_name, operands, signature.dimensions, signature.result_shapes, spelled)


def _message(subject: Subject, sites: Sequence[Site]) -> str:
    figures = figures_of(subject, sites[0])
    again = "" if figures.largest_wire is None else f", {in_bytes(figures.largest_wire)} a device each"
    return (
        f"expected the data of {sites[0].name} to be gathered once, found it gathered {len(sites)} times in one "
        f"computation: {some_of([site.name for site in sites])}{again}; use the first result, unless memory is short"
    )


RULE: Final = Rule(
    id="gathered-twice",
    severity="note",
    title="The same data is gathered twice",
    documentation=(
        "Several all-gathers of one computation have the same operands (copies looked through), the same dimension "
        "and the same groups, so that they give the same result. XLA would merge them if their channel ids did not "
        "differ. It is often meant: fully sharded training gathers weights once for the forward and once for the "
        "backward pass, in order not to hold them in between. Where it is not, use the first result."
    ),
    source="xla/service/hlo_cse.cc, which compares channel ids",
    bad=Example("""HloModule example, num_partitions=2
ENTRY e {
  p = f32[8] parameter(0)
  g = f32[16] all-gather(p), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  h = f32[16] all-gather(p), channel_id=2, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  ROOT s = f32[16] add(g, h)
}
"""),
    good=Example("""HloModule example, num_partitions=2
ENTRY e {
  p = f32[8] parameter(0)
  g = f32[16] all-gather(p), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  ROOT s = f32[16] add(g, g)
}
"""),
    find=find,
)
