"""Indices that are summed, where the values they belong to are compared."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.analysis.checks.dataflow import Origin, origin_of, value_of
from commlens.analysis.checks.def_use import Flows
from commlens.analysis.checks.queries import Spellings, figures_of
from commlens.hlo import Example, Finding, Rule, UnreadableError, reducer_of, reduction_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.hlo import Instruction, ReductionKind, Shape, Site, Subject
    from commlens.topology import DeviceList

_INDEX_TYPES: Final = frozenset({"s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"})
_PICKS: Final = frozenset({"compare", "select"})
_NAMED_INDEX: Final = re.compile(r"(?<!axis[_-])(?<![a-z])(?:arg_?(?:max|min)|ind(?:ex|ices)|idx)(?![a-z])")
_PAIR: Final = 2


class _Operand(NamedTuple):
    """One operand of an all-reduce.

    Attributes:
        site: the all-reduce.
        instruction: the operand.
        shape: its shape.
        origin: where it comes from.
        elements: the shapes of the tuple that it comes from; none where it comes from no tuple.
        groups: who reduces, in one spelling.
    """

    site: Site
    instruction: Instruction
    shape: Shape
    origin: Origin
    elements: tuple[Shape, ...]
    groups: DeviceList

    @property
    def kind(self) -> object:
        """Equal for arrays of the same sizes that are reduced over the same groups."""
        return self.shape.dimensions, self.groups


def find(subject: Subject) -> Iterator[Finding]:
    """Name every sum of whole numbers that stand beside values of which the largest or smallest is taken."""
    by_computation: dict[str, tuple[list[Site], list[Site]]] = {}
    for site in subject.sites:
        if site.signature.opcode == "all-reduce":
            kind = _reduction_of(subject, site)
            sums, extremes = by_computation.setdefault(site.computation_name, ([], []))
            if kind == "sum" and any(each.element_type in _INDEX_TYPES for each in site.signature.operand_shapes):
                sums.append(site)
            elif kind in ("max", "min"):
                extremes.append(site)
    for sums, extremes in by_computation.values():
        if sums:
            yield from _compare(subject, sums, extremes)


def _reduction_of(subject: Subject, site: Site) -> ReductionKind | None:
    """Return what a collective reduces with, None where that is none of XLA's reductions or cannot be made out."""
    try:
        reducer = reducer_of(site.instruction)
        if reducer is None:
            return None
        known = subject.ask(_kinds)
        if reducer.name not in known:
            known[reducer.name] = reduction_kind(reducer)
        return known[reducer.name]
    except (UnreadableError, LookupError):
        return None


def _kinds(_: Subject) -> dict[str, ReductionKind | None]:
    """Return where reductions are kept by the name of their reducer: many collectives share a few."""
    return {}


def _compare(subject: Subject, sums: Sequence[Site], extremes: Sequence[Site]) -> Iterator[Finding]:
    """Look for sums of indices among the all-reduces of one computation."""
    by_maker: dict[Instruction, list[_Operand]] = {}
    by_kind: dict[object, _Operand] = {}
    for value in (operand for site in extremes for operand in _operands(subject, site)):
        by_maker.setdefault(value.origin.value.instruction, []).append(value)
        by_kind.setdefault(value.kind, value)
    for index in (operand for site in sums for operand in _operands(subject, site)):
        if index.shape.element_type in _INDEX_TYPES:
            maker, picked = index.origin.value.instruction, _picks(subject, index)
            partner = next((each for each in by_maker.get(maker, ()) if _are_pair(index, each)), None)
            if partner is None and not picked and _is_called_index(index):
                partner = by_kind.get(index.kind)
            if partner is not None or picked:
                yield _finding(subject, index, partner)


def _operands(subject: Subject, site: Site) -> Iterator[_Operand]:
    """Yield the operands of an all-reduce with their origins, none where they cannot be made out."""
    flows, groups = subject.ask(Flows), figures_of(subject, site).participation.groups
    value = value_of(flows, site.instruction)
    if groups is None or value is None:
        return
    try:
        operands = value.operands
        for operand in operands if len(operands) == len(site.signature.operand_shapes) else ():
            instruction, origin = operand.instruction, origin_of(flows, operand)
            elements = origin.value.instruction.shape.elements
            yield _Operand(site, instruction, instruction.shape, origin, elements, subject.ask(Spellings).of(groups))
    except (UnreadableError, LookupError):
        return


def _are_pair(index: _Operand, value: _Operand) -> bool:
    """Whether two operands of one origin are the elements of a pair, as a local argmax gives, and reduced alike."""
    places = {index.origin.element, value.origin.element}
    return len(index.elements) == _PAIR and places == {0, 1} and index.kind == value.kind


def _picks(subject: Subject, operand: _Operand) -> bool:
    """Whether an operand is the index that a local argmax or argmin gives beside its value."""
    maker, position = operand.origin.value.instruction, operand.origin.element
    if maker.opcode != "reduce" or position is None:
        return False
    try:
        others = [each for place, each in enumerate(operand.elements) if place != position]
        names = [name for role, name in maker.called if role == "apply"]
        reducer = subject.module.computation(names[0]) if names else None
        opcodes = {each.opcode for each in reducer.instructions} if reducer is not None else set[str]()
    except (UnreadableError, LookupError):
        return False
    return any(each.element_type not in _INDEX_TYPES for each in others) and opcodes >= _PICKS


def _is_called_index(operand: _Operand) -> bool:
    """Whether the name of the operand, or of the operation that made it, says that it is an index."""
    made_by = (operand.instruction.op_name or "").rpartition("/")[2]
    return any(_NAMED_INDEX.search(name.lower()) for name in (operand.instruction.name, made_by))


def _finding(subject: Subject, operand: _Operand, partner: _Operand | None) -> Finding:
    name = operand.instruction.name
    if partner is None:
        maker = operand.origin.value.instruction.name
        beside = f"{maker} picked it together with a value"
    else:
        beside = f"{partner.site.name} takes the {_reduction_of(subject, partner.site)} of the values it belongs to"
    message = (
        f"expected the index {name} to be taken from the device with the picked value, found a sum over the devices, "
        f"while {beside}; sum it only where that value is, and 0 elsewhere"
    )
    return Finding.about(message, operand.site, *(() if partner is None else (partner.site,)))


_LOCAL_ARGMAX: Final = """HloModule example, num_partitions=2
largest {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  more = pred[] compare(a, b), direction=GT
  v = f32[] select(more, a, b)
  k = s32[] select(more, i, j)
  ROOT both = (f32[], s32[]) tuple(v, k)
}
max {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT m = f32[] maximum(x, y)
}
add {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  ROOT s = s32[] add(x, y)
}
ENTRY e {
  values = f32[8] parameter(0)
  places = s32[8] iota(), iota_dimension=0
  least = f32[] constant(-inf)
  zero = s32[] constant(0)
  local = (f32[], s32[]) reduce(values, places, least, zero), dimensions={0}, to_apply=largest
  value = f32[] get-tuple-element(local), index=0
  index = s32[] get-tuple-element(local), index=1
  top = f32[] all-reduce(value), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=max
"""

RULE: Final = Rule(
    id="index-sum",
    severity="warning",
    title="An index is summed beside a maximum",
    documentation=(
        "An all-reduce adds whole numbers up that are indices: a local argmax or argmin gives them as the partner of "
        "a value, or they are the second half of a pair whose first half goes into an all-reduce with maximum or "
        "minimum, or they bear the name of an index beside such an all-reduce over the same groups. The sum of the "
        "devices' indices is the index of nothing: 7 and 5 give 12. Reduce value and index together, or sum the index "
        "only where the value is the one that was picked and zero elsewhere; an operand that is selected that way is "
        "no finding."
    ),
    source="public report tenstorrent/tt-mlir#8623",
    bad=Example(
        _LOCAL_ARGMAX
        + """\
  where = s32[] all-reduce(index), channel_id=2, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  ROOT o = (f32[], s32[]) tuple(top, where)
}
"""
    ),
    good=Example(
        _LOCAL_ARGMAX
        + """\
  is-here = pred[] compare(value, top), direction=EQ
  mine = s32[] select(is-here, index, zero)
  where = s32[] all-reduce(mine), channel_id=2, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  ROOT o = (f32[], s32[]) tuple(top, where)
}
"""
    ),
    find=find,
)
