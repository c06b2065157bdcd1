"""Collectives as the custom calls that the Neuron compiler makes of them."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from commlens.hlo import (
    BecomeCustomCall,
    InstructionSite,
    Pass,
    Refusals,
    Site,
    UnreadableError,
    base_opcode,
    communication_in_list_order,
    discover,
    figures,
    has_attribute,
    pass_result,
    post_order_keys,
    reducer_opcode,
    signature_of,
    to_apply_name,
    uses_before_definition,
)
from commlens.neuron.passes.unread import check_read
from commlens.neuron.places import listed, place_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from commlens.hlo import Computation, Instruction, Json, Listed, Module, PassResult, Shape, Signature

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
            keep_going: whether to leave alone what cannot be read in full, instead of refusing the module.

        Returns:
            ``changed`` where anything was converted; in ``stats`` what became what, and what else communicates and was
            left as it is, with the reason.

        Raises:
            InputError: there is no entry computation, or one of its collectives cannot be read in full, written out or
                edited.
        """
        refusals = Refusals(module, keep_going)
        refusals.check_structure()
        candidates = _candidates(module, refusals)
        wanted = _in_order(candidates, list(_conversions(candidates, module, refusals)), module.entry, refusals)
        order, disorder = _in_post_order(wanted, module.entry)
        made = refusals.apply(order)
        converted = [edit for edit in made.edits if isinstance(edit, BecomeCustomCall)]
        items = {each.instruction: each.item for each in candidates}
        untouched = list(_untouched(module, items))
        stats: dict[str, Json] = {
            "converted": [{**place_of(items[edit.instruction]), "target": edit.target} for edit in converted],
            "untouched": untouched,
        }
        return pass_result(
            self.name,
            refusals,
            made,
            changed=bool(converted),
            stats=stats,
            facts=figures(converted=len(converted), untouched=len(untouched)),
            warnings=(*_warnings(converted), *disorder),
        )


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
    return _spelling(instruction).config(instruction.channel_id)


class _Spelling(NamedTuple):
    """What collectives that are spelled alike have in common.

    Attributes:
        shape: the result.
        groups: the beginning of the configuration.
        rest: its end, behind the channel id.
    """

    shape: Shape
    groups: str
    rest: str

    def config(self, channel_id: int | None) -> str:
        channel = "" if channel_id is None else f',"channel_id":{channel_id}'
        return f"{self.groups}{channel}{self.rest}"


def _spelling(instruction: Instruction) -> _Spelling:
    """Read what collectives that are spelled alike have in common.

    Raises:
        UnreadableError: the groups cannot be read, or are too many to write out.
    """
    groups = instruction.replica_groups
    if groups.num_devices > _MOST_IDS:
        msg = f"expected at most {_MOST_IDS:,} ids in its groups, to write them out, found {groups.num_devices:,}"
        raise UnreadableError(msg)
    dimensions = instruction.dimensions
    rest = {
        "use_global_device_ids": instruction.use_global_device_ids,
        "dimensions": None if dimensions is None else list(dimensions),
        "constrain_layout": instruction.constrain_layout,
    }
    stated = {key: value for key, value in rest.items() if value is not None}
    return _Spelling(
        instruction.shape, _json({"replica_groups": groups.groups()})[:-1], f",{_json(stated).removeprefix('{')}"
    )


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, separators=(",", ":"))


@dataclass(slots=True)
class _Converter:
    """Says what becomes of collectives; looks once at those that are spelled alike, and at each reducer.

    Attributes:
        module: where they are.
        spellings: what those of one signature have in common.
        reductions: the operation of a reducer, by its name.
    """

    module: Module
    spellings: dict[Signature, _Spelling] = field(default_factory=dict["Signature", "_Spelling"])
    reductions: dict[str | None, str | None] = field(default_factory=dict["str | None", "str | None"])

    def conversion(self, site: Site) -> BecomeCustomCall:
        """Return the edit that converts a collective.

        Raises:
            UnreadableError: its groups are too many to write out, or it lacks its reducer.
        """
        signature, instruction = site.signature, site.instruction
        spelling = self.spellings.get(signature)
        if spelling is None:
            spelling = self.spellings[signature] = _spelling(instruction)
        reduction = None if signature.opcode == "all-gather" else self._reduction(instruction)
        target = custom_call_target(signature.opcode, reduction, spelling.shape)
        return BecomeCustomCall(instruction, target or "", spelling.config(site.channel_id))

    def _reduction(self, instruction: Instruction) -> str | None:
        """Return the opcode of the reducer's root, None where that is no operation on the two parameters.

        Raises:
            UnreadableError: there is no reducer.
        """
        name = to_apply_name(instruction)
        if name not in self.reductions:
            self.reductions[name] = self._operation(name)
        return self.reductions[name]

    def _operation(self, name: str | None) -> str | None:
        reducer = None if name is None else self.module.computation(name)
        if reducer is not None:
            with suppress(LookupError):  # it is empty
                return reducer_opcode(reducer)
        found = "none" if name is None else name
        msg = f"expected to_apply= to name a computation of the module with something in it, found {found}"
        raise UnreadableError(msg)


def _candidates(module: Module, refusals: Refusals) -> list[Listed]:
    """Return the collectives of the entry computation that are to be converted, and what may be one, in list order."""
    if module.entry is None:
        refusals.refuse_module("expected an entry computation, whose collectives are converted, found none")
    return [
        each
        for computation, items in communication_in_list_order(module)
        if computation.is_entry
        for each in items
        if not each.opcode or (each.opcode in _STEMS and not _is_start(each))
    ]


def _is_start(each: Listed) -> bool:
    """Whether this starts an operation that stands in a computation of its own, though a text does not show that."""
    if each.site is not None:
        return each.site.signature.is_async
    return base_opcode(each.instruction.opcode)[1] == "start"


def _conversions(candidates: Iterable[Listed], module: Module, refusals: Refusals) -> Iterator[BecomeCustomCall]:
    """Yield the edits that convert collectives."""
    converter = _Converter(module)
    for each in candidates:
        try:
            check_read(each.item)
            yield converter.conversion(each.item if isinstance(each.item, Site) else _site(each.item))
        except UnreadableError as error:
            refusals.refuse(each.instruction, error)


def _site(instruction: Instruction) -> Site:
    return InstructionSite(instruction, signature_of(instruction), instruction.channel_id)


def _in_order(
    candidates: Iterable[Listed],
    converted: Sequence[BecomeCustomCall],
    entry: Computation | None,
    refusals: Refusals,
) -> Sequence[BecomeCustomCall]:
    """Refuse all conversions where something is needed and not defined before: the computation has no post-order.

    Of a collective that was refused already that is no news.
    """
    if len(converted) < 2 or entry is None:
        return converted
    instructions = [edit.instruction for edit in converted]
    refused = {each.instruction for each in candidates}.difference(instructions)
    try:
        unmet = next((each for each in uses_before_definition(entry) if each.user not in refused), None)
    except UnreadableError:  # which says nothing of the order
        return converted
    if unmet is None:
        return converted
    refusals.refuse(unmet.user, unmet.why, instructions)
    return []


def _in_post_order(
    converted: Sequence[BecomeCustomCall], entry: Computation | None
) -> tuple[Sequence[BecomeCustomCall], list[str]]:
    """Sort conversions into the order in which the documented pass makes them, which decides nothing else.

    Returns:
        The conversions, in list order where that other order cannot be made out; then with a sentence that says so.
    """
    if len(converted) < 2 or entry is None:
        return converted, []
    by_key = {edit.instruction.list_key: edit for edit in converted}
    try:
        return [by_key[key] for key in post_order_keys(entry) if key in by_key], []
    except UnreadableError as error:
        return converted, [
            f"the conversions are told in list order, for the post-order of computation {entry.name} cannot be made"
            f" out: {error}"
        ]


def _untouched(module: Module, candidates: Container[Instruction]) -> Iterator[dict[str, Json]]:
    """Yield what communicates and was never to be converted, with the reason."""
    entry = module.entry
    for site in discover(module).sites:
        if entry is None or site.computation_name != entry.name:
            yield _left(site, "only the entry computation is converted")
        elif site.instruction not in candidates:
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
    configured = [edit.instruction for edit in made if has_attribute(edit.instruction, "backend_config")]
    if configured:
        yield f"the groups take the place of the backend_config that {listed(configured)} had"
