"""Shapes that do not go with the size of the groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.analysis.checks.dataflow import value_of
from commlens.analysis.checks.def_use import Flows
from commlens.analysis.checks.queries import figures_of
from commlens.analysis.checks.start_done_unpaired import ends_of, go_together
from commlens.hlo import Example, Finding, Rule, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Shape, Signature, Site, Subject

_KEEPS: Final = frozenset({"all-reduce", "collective-permute", "collective-broadcast"})
"""Collectives of which every result has the shape of its operand."""


def find(subject: Subject) -> Iterator[Finding]:
    """Compare the shapes of every collective that states its own."""
    for site in subject.sites:
        if site.signature.via is None:  # other forms have shapes of their own, such as those of a fusion
            size = figures_of(subject, site).participation.group_size
            for message in _mismatches(site.signature, size if size is not None and size > 1 else None):
                yield Finding.about(message, site)
            if site.signature.is_async:
                yield from _done(subject.ask(Flows), site)


def _done(flows: Flows, site: Site) -> Iterator[Finding]:
    """Compare what the done of a start gives with the results that the start states."""
    stated = [str(shape) for shape in site.signature.result_shapes]
    value = value_of(flows, site.instruction)
    if value is None:
        return
    try:
        dones, _ = ends_of(value)
        shapes = [[str(leaf) for leaf in done.shape.leaves()] for done in dones]
    except UnreadableError:  # a rule of its own says so
        return
    for done, found in zip(dones, shapes, strict=True):
        if found != stated and go_together(site.instruction, done):
            message = (
                f"expected the done to have the results of its start, {', '.join(stated)}, found {', '.join(found)}"
            )
            yield Finding.about(message, site, done)


def _mismatches(signature: Signature, size: int | None) -> Iterator[str]:
    """Yield what is wrong with the shapes.

    ``size`` devices are in each group; None where that is not known, or is 1, of which XLA says nothing either.
    """
    opcode, operands, results = signature.opcode, signature.operand_shapes, signature.result_shapes
    if opcode == "all-to-all" and signature.dimensions is None:
        yield from _tuple_exchange(operands, results, size)
        return
    keeps = opcode in _KEEPS
    if not keeps and opcode not in ("all-gather", "reduce-scatter", "all-to-all"):
        return
    if keeps and opcode == "collective-permute" and len(operands) != len(results):
        return  # the in-place form has operands that are places
    if len(operands) != len(results):
        yield f"expected as many results as operands of {opcode}, found {len(results)} for {len(operands)}"
        return
    for place, (before, after) in enumerate(zip(operands, results, strict=True)):
        is_token = place in signature.token_operands or (before == after and not before.dimensions)
        if not (is_token or before.dynamic or after.dynamic):
            yield from _array(signature, before, after, size)


def _array(signature: Signature, before: Shape, after: Shape, size: int | None) -> Iterator[str]:
    """Compare one operand and its result."""
    opcode = signature.opcode
    if before.element_type != after.element_type:
        yield f"expected {opcode} to keep the type of {before}, found the result {after}; convert before or after it"
        return
    along = None if signature.dimensions is None or opcode in _KEEPS else signature.dimensions[0]
    if along is not None and not 0 <= along < len(before.dimensions):
        yield f"expected a dimension of {before} in dimensions={{{along}}}, found one that it does not have"
        return
    if opcode == "all-to-all":
        if size is not None and along is not None and before.dimensions[along] % size:
            yield (
                f"expected dimension {along} of {before} to divide by the {size} devices of a group, found "
                f"{before.dimensions[along]}; pad it"
            )
        along = None
    if len(before.dimensions) != len(after.dimensions) or _others(before, along) != _others(after, along):
        kept = "the shape" if along is None else f"all dimensions but {along}"
        yield f"expected {opcode} to keep {kept} of {before}, found the result {after}"
    elif along is not None and size is not None:
        yield from _ratio(opcode, before, after, along, size)


def _ratio(opcode: str, before: Shape, after: Shape, along: int, size: int) -> Iterator[str]:
    """Compare the sizes along the gathered or scattered dimension."""
    small, large = (before, after) if opcode == "all-gather" else (after, before)
    if small.dimensions[along] * size != large.dimensions[along]:
        what = f"{size} times as large" if opcode == "all-gather" else f"1/{size} as large"
        yield (
            f"expected the result of {opcode} over groups of {size} to be {what} along dimension {along} as the "
            f"operand {before}, found {after}"
        )


def _tuple_exchange(operands: tuple[Shape, ...], results: tuple[Shape, ...], size: int | None) -> Iterator[str]:
    """Compare an all-to-all in its tuple form: one operand for each member of a group."""
    if size is not None and len(operands) != size:
        yield f"expected an operand for each of the {size} devices of a group in all-to-all, found {len(operands)}"
    elif operands != results:
        yield "expected the results of all-to-all to have the shapes of its operands, found others"


def _others(shape: Shape, along: int | None) -> list[int]:
    return [size for dimension, size in enumerate(shape.dimensions) if dimension != along]


RULE: Final = Rule(
    id="shape-mismatch",
    severity="error",
    title="Shapes do not go with the groups",
    documentation=(
        "The result of an all-gather must be as many times as large as its operand, along its dimension, as a group "
        "has devices; that of a reduce-scatter that many times smaller; an all-to-all splits a dimension that many "
        "times, or has that many operands; all-reduce, collective-permute and collective-broadcast keep shapes; and "
        "all of them keep types; and the done of a start gives the results that the start states. A group has the "
        "devices that really take part: with a channel id and without use_global_device_ids each replica brings all "
        "its partitions. Where the counts that this needs are not known, and for groups of one device, only what does "
        "not depend on them is compared. It happens when groups were changed without the shapes, or the flag without "
        "the groups."
    ),
    source="CheckShape and CheckReplicaGroups, xla/service/hlo_verifier.cc; xla/service/shape_inference.cc",
    bad=Example("""HloModule example, replica_count=4
ENTRY e {
  p = f32[8] parameter(0)
  ROOT g = f32[32] all-gather(p), replica_groups={{0,1},{2,3}}, dimensions={0}
}
"""),
    good=Example("""HloModule example, replica_count=4
ENTRY e {
  p = f32[8] parameter(0)
  ROOT g = f32[16] all-gather(p), replica_groups={{0,1},{2,3}}, dimensions={0}
}
"""),
    find=find,
)
