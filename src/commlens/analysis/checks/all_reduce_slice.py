"""An all-reduce of which each device keeps one part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.analysis.checks.dataflow import results_of, slices_of, value_of
from commlens.analysis.checks.def_use import Flows
from commlens.analysis.checks.member_slices import assumption, parts_of_group
from commlens.analysis.checks.queries import figures_of
from commlens.analysis.wire import in_bytes, ring_bytes
from commlens.hlo import Example, Finding, Rule, UnreadableError, some_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from commlens.analysis.checks.dataflow import Value
    from commlens.analysis.figures import Figures
    from commlens.hlo import Signature, Site, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Name every all-reduce with a result of which each member of a group uses its own part alone."""
    for site in subject.sites:
        if site.signature.opcode == "all-reduce" and site.signature.groups is not None:
            figures = figures_of(subject, site)
            number = figures.participation.group_size or 0
            if number > 1 and (parts := _parts(subject, site, figures)):
                cuts = [cut for cuts in parts.values() for cut in cuts]
                message = _message(site.signature, parts.keys(), number, cuts) + assumption(subject, figures)
                yield Finding.about(message, site, *(cut.instruction for cut in cuts))


def _parts(subject: Subject, site: Site, figures: Figures) -> Mapping[int, Sequence[Value]]:
    """Return the results, by their places, of which devices only use their own parts, with the slices."""
    flows, number = subject.ask(Flows), len(site.signature.result_shapes)
    found: dict[int, Sequence[Value]] = {}
    value = value_of(flows, site.instruction)
    results = None if value is None else results_of(value, number)
    for place, values in (results or {}).items():
        cuts = slices_of(flows, values)
        try:
            if cuts and place < number and all(parts_of_group(subject, figures, cut) for cut in cuts):
                found[place] = cuts
        except UnreadableError:
            continue
    return found


def _message(signature: Signature, places: Iterable[int], number: int, cuts: Sequence[Value]) -> str:
    results = signature.result_shapes
    which = "" if len(results) == 1 else f" with {some_of([str(results[place]) for place in places])},"
    sizes = [results[place].num_bytes for place in places]
    names = some_of([cut.instruction.name for cut in cuts])
    message = (
        f"expected a reduce-scatter, found an all-reduce{which} of which each of the {number} devices of a group keeps "
        f"another 1/{number} ({names})"
    )
    payload = sum(size or 0 for size in sizes)
    whole, part = (
        ring_bytes(opcode, number, operand_bytes=payload, result_bytes=payload)
        for opcode in ("all-reduce", "reduce-scatter")
    )
    if None in sizes or whole is None or part is None:
        return message
    return (
        f"{message}; of a payload of {in_bytes(payload)} a device receives {in_bytes(whole)} on a ring, and "
        f"{in_bytes(part)} as a reduce-scatter"
    )


RULE: Final = Rule(
    id="all-reduce-slice",
    severity="warning",
    title="An all-reduce followed by a slice is a reduce-scatter",
    documentation=(
        "All that is used of an all-reduce are dynamic-slices, of which each device of a group takes another part of "
        "the same size. That is a reduce-scatter, which moves half as much. The start of the slice is worked out for "
        "every device from partition-id and replica-id, through arithmetic, clamps, constant tables and fusions; "
        "where it depends on data, or several devices take the same part, nothing is said. Where nobody states the "
        "counts, the ids are taken for those of partitions (of replicas without a channel id), and the message says "
        "so. Tables that a text leaves out as {...}, and those of a proto that have two dimensions or more, are not "
        "known and stop it there, and so does arithmetic that is more than some 50 steps deep; programs take a dozen. "
        "Copies, conversions, reshapes and transposes in between are seen through. GPU and TPU back ends make this "
        "rewrite themselves, XLA:CPU does not, so there the finding is about the back end; on Neuron it is what "
        "aws_neuron_rewrite_all_reduce_dynamic_slice is for."
    ),
    source="MatchReduceScatter, xla/service/collective_opt_utils.cc",
    bad=Example("""HloModule example, replica_count=4
add {
  x = bf16[] parameter(0)
  y = bf16[] parameter(1)
  ROOT s = bf16[] add(x, y)
}
ENTRY e {
  d = bf16[1024,512] parameter(0)
  r = bf16[1024,512] all-reduce(d), replica_groups={{0,1,2,3}}, to_apply=add
  id = u32[] replica-id()
  rows = u32[] constant(256)
  start = u32[] multiply(id, rows)
  zero = u32[] constant(0)
  ROOT o = bf16[256,512] dynamic-slice(r, start, zero), dynamic_slice_sizes={256,512}
}
"""),
    good=Example("""HloModule example, replica_count=4
add {
  x = bf16[] parameter(0)
  y = bf16[] parameter(1)
  ROOT s = bf16[] add(x, y)
}
ENTRY e {
  d = bf16[1024,512] parameter(0)
  ROOT o = bf16[256,512] reduce-scatter(d), replica_groups={{0,1,2,3}}, dimensions={0}, to_apply=add
}
"""),
    find=find,
)
