"""An all-gather of which only a part is used."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from commlens.analysis.checks.dataflow import results_of, slices_of, value_of
from commlens.analysis.checks.def_use import Flows
from commlens.analysis.checks.queries import figures_of
from commlens.analysis.wire import in_bytes, ring_bytes
from commlens.hlo import Example, Finding, Rule, UnreadableError, some_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis.checks.dataflow import Value
    from commlens.hlo import Shape, Site, Subject

_BOUNDS: Final = re.compile(r"\[(\d{1,18}):(\d{1,18})(:\d{1,18})?\]")


def find(subject: Subject) -> Iterator[Finding]:
    """Name every result of an all-gather that is only used by slices which together take less than the whole."""
    flows = subject.ask(Flows)
    for site in subject.sites:
        if site.signature.opcode == "all-gather":
            number = figures_of(subject, site).participation.group_size or 0
            for shape, cuts in _sliced(flows, site) if number > 1 else ():
                used = _used(shape, number, cuts)
                if used is not None:
                    message = _message(shape, number, cuts, used)
                    yield Finding.about(message, site, *(cut.instruction for cut in cuts))


def _sliced(flows: Flows, site: Site) -> Iterator[tuple[Shape, Sequence[Value]]]:
    """Yield the shapes of the results that nothing but slices are made of, each with those."""
    shapes = site.signature.result_shapes
    value = value_of(flows, site.instruction)
    results = None if value is None else results_of(value, len(shapes))
    for place, values in (results or {}).items():
        cuts = slices_of(flows, values)
        if cuts and place < len(shapes):
            yield shapes[place], cuts


def _used(shape: Shape, number: int, cuts: Sequence[Value]) -> int | None:
    """Return how many elements some slices take, None where that is as many as are gathered, or cannot be told."""
    whole = shape.num_elements
    by_operand: dict[Value, list[Value]] = {}
    try:
        for cut in cuts:
            by_operand.setdefault(cut.operands[0], []).append(cut)
        sizes = [_taken(operand.instruction.shape, found) for operand, found in by_operand.items()]
        padded = any(_drops_padding(cut, number) for cut in cuts)
    except UnreadableError:
        return None
    used = sum(size or 0 for size in sizes)
    short = whole is not None and used < whole
    return used if short and not padded and None not in sizes and not _is_padding(shape, used, number) else None


def _taken(shape: Shape, cuts: Sequence[Value]) -> int | None:
    """Return how many elements slices of one array take at most: what several take counts once where that shows."""
    sizes = [cut.instruction.shape.num_elements for cut in cuts]
    if None in sizes:
        return None
    added = sum(size or 0 for size in sizes)
    boxes = [_box(cut) for cut in cuts]
    known = [box for box in boxes if box is not None and len(box) == len(shape.dimensions)]
    along = [place for place in range(len(shape.dimensions)) if len({box[place] for box in known}) > 1]
    if len(known) < len(boxes) or len(along) > 1:
        return added
    across = math.prod(stop - start for place, (start, stop) in enumerate(known[0]) if place not in along)
    return min(added, across * (_covered([box[along[0]] for box in known]) if along else 1))


def _box(cut: Value) -> list[tuple[int, int]] | None:
    """Return where a slice begins and ends in each dimension; None of one with strides, or that data decide."""
    written = "".join((cut.instruction.raw_attribute("slice") or "").split())
    bounds = _BOUNDS.findall(written)
    whole = "{" + ",".join(f"[{start}:{stop}{step}]" for start, stop, step in bounds) + "}"
    if cut.instruction.opcode != "slice" or written != whole or any(step not in ("", ":1") for *_, step in bounds):
        return None
    return [(int(start), int(stop)) for start, stop, _ in bounds]


def _covered(intervals: Sequence[tuple[int, int]]) -> int:
    """Return how many numbers are in at least one of some intervals.

    Example:
        >>> _covered([(1, 4), (0, 3), (6, 8)])
        6
    """
    covered = reached = 0
    for start, stop in sorted(intervals):
        covered += max(0, stop - max(start, reached))
        reached = max(reached, stop)
    return covered


def _is_padding(shape: Shape, used: int, number: int) -> bool:
    """Whether what is not used of a gathered row is no more than uneven shards are filled up with."""
    return len(shape.dimensions) == 1 and -(-used // number) * number >= shape.dimensions[0]


def _drops_padding(cut: Value, number: int) -> bool:
    """Whether a slice only takes away what uneven shards were filled up with: all shards are needed for the rest."""
    if cut.instruction.opcode != "slice":
        return False
    before, after = cut.operands[0].instruction.shape.dimensions, cut.instruction.shape.dimensions
    if len(before) != len(after):
        return True
    return all(part == whole or -(-part // number) * number >= whole for whole, part in zip(before, after, strict=True))


def _message(shape: Shape, number: int, cuts: Sequence[Value], used: int) -> str:
    received = ring_bytes("all-gather", number, operand_bytes=None, result_bytes=shape.num_bytes)
    figure = "" if received is None else f"; a device receives {in_bytes(received)} on a ring"
    return (
        f"expected all of {shape}, which is gathered, to be used, found slices of {used:,} of its "
        f"{shape.num_elements or 0:,} elements ({some_of([cut.instruction.name for cut in cuts])}){figure}; slice "
        "before gathering, or send only what is used"
    )


RULE: Final = Rule(
    id="all-gather-slice",
    severity="warning",
    title="An all-gather of which only a part is used",
    documentation=(
        "All that is used of an all-gather are slices, and together they have fewer elements than was gathered: the "
        "rest was moved and held for nothing. It is what is left when a partitioner cannot go from one sharding to "
        "another and copies everything everywhere first. A slice along another dimension can be made before "
        "gathering; one along the gathered dimension is a collective-permute, an all-to-all or a broadcast, or, where "
        "each device takes back what it gave, nothing at all. What several slices with fixed bounds take counts once. "
        "Slices that only take the padding of uneven shards away do not count."
    ),
    source="AllGatherDynamicSliceSimplifier, xla/service/gpu/transforms/all_gather_dynamic_slice_simplifier.cc",
    bad=Example("""HloModule example, replica_count=4
ENTRY e {
  p = f32[8,64] parameter(0)
  g = f32[32,64] all-gather(p), replica_groups={{0,1,2,3}}, dimensions={0}
  ROOT o = f32[32,16] slice(g), slice={[0:32], [0:16]}
}
"""),
    good=Example("""HloModule example, replica_count=4
ENTRY e {
  p = f32[8,64] parameter(0)
  o = f32[8,16] slice(p), slice={[0:8], [0:16]}
  ROOT g = f32[32,16] all-gather(o), replica_groups={{0,1,2,3}}, dimensions={0}
}
"""),
    find=find,
)
