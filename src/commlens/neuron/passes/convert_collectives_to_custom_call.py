"""Collectives as the custom calls that the Neuron compiler makes of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from commlens.hlo import (
    BecomeCustomCall,
    Pass,
    Refusals,
    Site,
    UnreadableError,
    base_opcode,
    discover,
    finished,
    signature_of,
)
from commlens.neuron.places import listed, place_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.hlo import Computation, Instruction, Json, Module, PassResult, Shape

_STEMS: Final = MappingProxyType(
    {
        "all-gather": "AwsNeuronAllGather",
        "all-reduce": "AwsNeuronAllReduce",
        "reduce-scatter": "AwsNeuronReduceScatter",
    }
)
"""Opcode -> how its target begins: the three that are converted."""

_REDUCTIONS: Final = MappingProxyType({"add": "Add", "maximum": "Max", "minimum": "Min"})
_UNKNOWN_REDUCTION: Final = "UNKNOWNOP"
_DTYPES: Final = frozenset({"f32", "bf16", "f16", "u32", "s64", "s32"})
_UNKNOWN_DTYPE: Final = "UNKNOWNDTYPE"

_MOST_IDS: Final = 1 << 24
"""Most ids that are written out: a compact list can stand for more than any memory holds."""


@dataclass(frozen=True, slots=True)
class ConvertCollectivesToCustomCall(Pass):
    """Turns all-gather, all-reduce and reduce-scatter of the entry computation into ``AwsNeuron*`` custom calls.

    The target names the operation, the reduction (``Add``, ``Max``, ``Min``, else ``UNKNOWNOP``) and the element type
    of the result (``f32 bf16 f16 u32 s64 s32``, else ``UNKNOWNDTYPE``; a tuple has none, so that of every variadic
    collective is unknown). Groups go into ``backend_config``, written out in their order.

    How the Neuron compiler spells that configuration is not known. The JSON here is ours; the readers of this package
    take it back as the collective it was.

    Attributes:
        name: ``"convert-collectives-to-custom-call"``, number 11 of the registry.

    Source: the pass of that name in neuronx_cc 2.24.5133: targets, element types, entry computation, post-order.

    Example:
        >>> from commlens.hlo import load
        >>> module = load('''ENTRY e {
        ...   p = u8[8] parameter(0)
        ...   ROOT g = u8[16] all-gather(p), replica_groups=[2,2]<=[4], dimensions={0}
        ... }''')
        >>> result = ConvertCollectivesToCustomCall().run(module)
        >>> result.changed, [edit.target for edit in result.edits]
        (True, ['AwsNeuronAllGather_UNKNOWNDTYPE'])
        >>> result.edits[0].backend_config
        '{"replica_groups":[[0,1],[2,3]],"use_global_device_ids":false,"dimensions":[0],"constrain_layout":false}'
    """

    name: ClassVar[str] = "convert-collectives-to-custom-call"

    def run(self, module: Module, *, keep_going: bool = False) -> PassResult:
        """Convert what can be converted.

        Args:
            module: the module.
            keep_going: whether to leave alone what cannot be read, instead of refusing the module.

        Returns:
            ``changed`` where anything was converted; in ``stats`` what became what, and what else communicates and was
            left as it is, with the reason.

        Raises:
            InputError: there is no entry computation, or one of its collectives cannot be read or written out.
        """
        refusals = Refusals(module, keep_going)
        refusals.check_structure()
        made = list(_conversions(module, refusals))
        stats: dict[str, Json] = {
            "converted": [{**place_of(edit.instruction), "target": edit.target} for edit in made],
            "untouched": list(_untouched(module, {edit.instruction for edit in made})),
        }
        return finished(self.name, refusals, made, changed=bool(made), stats=stats, warnings=_warnings(made))


def custom_call_target(opcode: str, reduction: str | None, shape: Shape) -> str | None:
    """Return the target that stands for a collective; None for an opcode that is not converted.

    Args:
        opcode: the opcode.
        reduction: opcode of the root of its reducer; None where that is no operation on the two parameters.
        shape: the result.

    Example:
        >>> from commlens.hlo import parse_shape
        >>> custom_call_target("all-reduce", "add", parse_shape("bf16[8]"))
        'AwsNeuronAllReduceAdd_bf16'
        >>> custom_call_target("reduce-scatter", "multiply", parse_shape("(f32[8], f32[4])"))
        'AwsNeuronReduceScatterUNKNOWNOP_UNKNOWNDTYPE'
        >>> custom_call_target("all-to-all", None, parse_shape("f32[8]")) is None
        True
    """
    stem = _STEMS.get(opcode)
    if stem is None:
        return None
    reduced = "" if opcode == "all-gather" else _REDUCTIONS.get(reduction or "", _UNKNOWN_REDUCTION)
    dtype = shape.element_type if shape.element_type in _DTYPES else _UNKNOWN_DTYPE
    return f"{stem}{reduced}_{dtype}"


def backend_config(instruction: Instruction) -> str:
    """Return a collective's groups, channel, flags and dimensions as JSON: ours, see the class.

    Raises:
        UnreadableError: the groups cannot be read, or are too many to write out.
    """
    groups = instruction.replica_groups
    if groups.num_devices > _MOST_IDS:
        msg = f"expected at most {_MOST_IDS:,} ids in its groups, to write them out, found {groups.num_devices:,}"
        raise UnreadableError(msg)
    dimensions = instruction.dimensions
    config = {
        "replica_groups": groups.groups(),
        "channel_id": instruction.channel_id,
        "use_global_device_ids": instruction.use_global_device_ids,
        "dimensions": None if dimensions is None else list(dimensions),
        "constrain_layout": instruction.constrain_layout,
    }
    return json.dumps({key: value for key, value in config.items() if value is not None}, separators=(",", ":"))


def _conversions(module: Module, refusals: Refusals) -> Iterator[BecomeCustomCall]:
    """Yield the conversions of the entry computation in post-order."""
    entry = module.entry
    if entry is None:
        refusals.refuse_module("expected an entry computation, whose collectives are converted, found none")
        return
    for instruction in _in_post_order(_candidates(module, entry), entry, refusals):
        try:
            target = _target(instruction)
            if target is not None:
                yield BecomeCustomCall(instruction, target, backend_config(instruction))
        except UnreadableError as error:
            refusals.refuse(instruction, str(error))


def _candidates(module: Module, entry: Computation) -> list[Instruction]:
    """Return what may communicate in the entry computation, but for what was read already and is of another opcode."""
    return [
        item.instruction if isinstance(item, Site) else item
        for computation, items in module.communication()
        if computation.name == entry.name
        for item in items
        if not isinstance(item, Site) or item.signature.opcode in _STEMS
    ]


def _in_post_order(
    candidates: Sequence[Instruction], computation: Computation, refusals: Refusals
) -> Sequence[Instruction]:
    """Sort instructions into post-order; they keep the list's where it cannot be made out and may be left alone."""
    if len(candidates) < 2:
        return candidates
    keys = {each.list_key for each in candidates}
    try:
        return [each for each in computation.post_order() if each.list_key in keys]
    except UnreadableError as error:
        refusals.refuse_module(f"computation {computation.name} cannot be read: {error}")
        return candidates


def _target(instruction: Instruction) -> str | None:
    """Return the target of what becomes of an instruction, None where it is left as it is.

    Raises:
        UnreadableError: it is a collective and cannot be read in full.
    """
    base, half = base_opcode(instruction.opcode)
    if half or base not in _STEMS:
        return None
    signature_of(instruction)
    return custom_call_target(base, None if base == "all-gather" else _reduction(instruction), instruction.shape)


def _reduction(instruction: Instruction) -> str | None:
    """Return the opcode of the reducer's root, None where an operand of it is no parameter.

    Raises:
        UnreadableError: there is no reducer.
    """
    name = next((name for role, name in instruction.called if role == "apply"), None)
    reducer = None if name is None else instruction.computation.module.computation(name)
    if reducer is None or not reducer.instructions:
        found = "none" if name is None else name
        msg = f"expected to_apply= to name a computation of the module with something in it, found {found}"
        raise UnreadableError(msg)
    root = reducer.root
    return root.opcode if all(operand.opcode == "parameter" for operand in root.operands) else None


def _untouched(module: Module, converted: set[Instruction]) -> Iterator[dict[str, Json]]:
    """Yield what communicates and is not converted, with the reason."""
    entry = module.entry
    for site in discover(module).sites:
        if entry is None or site.computation_name != entry.name:
            yield _left(site, "only the entry computation is converted")
        elif site.instruction not in converted:
            yield _left(site, _why_not(site))


def _left(site: Site, why: str) -> dict[str, Json]:
    return {**place_of(site), "opcode": site.signature.opcode, "why": why}


def _why_not(site: Site) -> str:
    if site.instruction.opcode == "custom-call":
        return "it is a custom call already"
    if site.signature.is_async:
        return "it is asynchronous"
    return f"only {', '.join(_STEMS)} are converted"


def _warnings(made: Sequence[BecomeCustomCall]) -> Iterator[str]:
    for unknown, what in ((_UNKNOWN_REDUCTION, "reduction"), (_UNKNOWN_DTYPE, "element type")):
        instructions = [edit.instruction for edit in made if unknown in edit.target]
        if instructions:
            yield f"the target of {listed(instructions)} has no name for the {what} and says {unknown}"
    configured = [edit.instruction for edit in made if edit.instruction.raw_attribute("backend_config") is not None]
    if configured:
        yield f"the groups take the place of the backend_config that {listed(configured)} had"
