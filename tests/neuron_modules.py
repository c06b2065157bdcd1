"""Modules made from cases of tests/data/neuron_cases.json, the same one as text and as proto.

A case's ``computations`` are lists of instructions in list order, each a mapping: ``op``; ``rg`` replica groups, ``ch``
channel id or None, ``ct`` collective_type, ``sid`` stream_id, ``dtype`` (bf16 where it is absent), ``id`` a name,
``operands`` names (the parameter where absent), and, ours, ``flag`` for use_global_device_ids and ``attributes`` for more
frontend attributes. Instructions stand on their own, so post-order is list order. The last computation is the entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from commlens import load
from commlens.hlo import parse_shape
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.shapes import ELEMENT_TYPE_NUMBERS
from proto_modules import FAR, REDUCER_ID, attributes, device_list, reducer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlens import Module
    from commlens.hlo import Instruction, PassResult, Shape

Notation = list[list[dict[str, Any]]]

BACKENDS = ("text", "proto")
both = pytest.mark.parametrize("backend", BACKENDS)

_REDUCER = """add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
"""
_REDUCING = frozenset({"all-reduce", "all-reduce-start", "reduce-scatter"})
_WITH_DIMENSION = {"all-gather": 0, "all-gather-start": 0, "reduce-scatter": 0, "all-to-all": 0}
_PERMUTES = frozenset({"collective-permute", "collective-permute-start"})
_GROUPED = frozenset({*_REDUCING, *_WITH_DIMENSION, "collective-broadcast", "ragged-all-to-all"})
_SHAPES = {
    "all-gather": "{t}[{whole}]",
    "all-gather-start": "({t}[8], {t}[{whole}])",
    "reduce-scatter": "{t}[{part}]",
    "collective-permute-start": "({t}[8], {t}[8])",
    "send": "({t}[8], u32[], token[])",
    "recv": "({t}[8], u32[], token[])",
    "send-done": "token[]",
    "recv-done": "({t}[8], token[])",
}
_OPERANDS = {
    "send": ("{}", "tok"),
    "recv": ("tok",),
    "ragged-all-to-all": ("{}", "{}", *("offsets",) * 4),
    "dot": ("{}", "{}"),
}
_TYPES = {name: number for number, name in ELEMENT_TYPE_NUMBERS.items()}


@dataclass(frozen=True)
class Made:
    """An instruction between notation and module."""

    name: str
    opcode: str
    shape: str
    operands: tuple[str, ...]
    given: Mapping[str, Any] = field(default_factory=dict)


def module_of(notation: Notation, backend: str) -> Module:
    """Build a module and load it."""
    return load(text_of(notation) if backend == "text" else proto_of(notation))


def text_of(notation: Notation) -> str:
    """Write a module as text."""
    computations = [_REDUCER] if _reduces(notation) else []
    for number, instructions in enumerate(notation):
        entry = "ENTRY " if number == len(notation) - 1 else ""
        lines = [_line(made) for made in _made(number, instructions)]
        computations.append(f"{entry}{computation_name(number)} {{\n" + "".join(lines) + "}\n")
    return "HloModule made\n\n" + "\n".join(computations)


def proto_of(notation: Notation) -> bytes:
    """Write a module as proto."""
    module = schema.HloModuleProto(name=b"made", computations=[reducer()] if _reduces(notation) else [])
    numbers = iter(range(FAR + 100, FAR + 1_000_000))
    for number, instructions in enumerate(notation):
        made = _made(number, instructions)
        ids = {each.name: next(numbers) for each in made}
        computation = schema.HloComputationProto(
            name=computation_name(number).encode(),
            id=100 + number,
            root_id=ids[made[-1].name],
            instructions=[_message(each, ids) for each in made],
        )
        module.computations.append(computation)
        module.entry_computation_id, module.entry_computation_name = computation.id, computation.name
    return module.SerializeToString()


def computation_name(number: int) -> str:
    """Return the name of a computation by its number."""
    return f"c{number}"


def name_of(number: int, position: int, given: Mapping[str, Any]) -> str:
    """Return the name of an instruction: as the case calls it, else by its place."""
    return given.get("id") or f"{given['op']}.{number}.{position}"


def instructions_of(module: Module, notation: Notation) -> list[list[Instruction]]:
    """Return the instructions that the case lists."""
    return [
        [module.instruction(name_of(number, position, given)) for position, given in enumerate(instructions)]
        for number, instructions in enumerate(notation)
    ]


def stream_ids(module: Module, notation: Notation) -> list[list[str | None]]:
    """Return the stream ids of what the case lists."""
    found = instructions_of(module, notation)
    return [[each.frontend_attributes.get("stream_id") for each in row] for row in found]


def channel_ids(module: Module, notation: Notation) -> list[list[int | None]]:
    """Return the channel ids of what the case lists."""
    return [[each.channel_id for each in row] for row in instructions_of(module, notation)]


def stats_of(result: PassResult) -> Any:
    """Return the statistics of a pass, of whatever type they are."""
    return result.stats


def _reduces(notation: Notation) -> bool:
    return any(given["op"] in _REDUCING for instructions in notation for given in instructions)


def _made(number: int, instructions: Sequence[Mapping[str, Any]]) -> list[Made]:
    """Return the instructions of a computation, with the parameters they need before them."""
    dtypes = list(dict.fromkeys(given.get("dtype", "bf16") for given in instructions)) or ["bf16"]
    opcodes = {given["op"] for given in instructions}
    made = [Made(f"p.{dtype}", "parameter", f"{dtype}[8]", (str(i),)) for i, dtype in enumerate(dtypes)]
    if "ragged-all-to-all" in opcodes:
        made.append(Made("offsets", "parameter", "s32[4]", (str(len(made)),)))
    if opcodes & {"send", "recv"}:
        made.append(Made("tok", "after-all", "token[]", ()))
    for position, given in enumerate(instructions):
        made.append(_one(name_of(number, position, given), given, made))
    return made


def _one(name: str, given: Mapping[str, Any], before: Sequence[Made]) -> Made:
    opcode, dtype = given["op"], given.get("dtype", "bf16")
    members = len((given.get("rg") or [[0, 1]])[0])
    shape = _SHAPES.get(opcode, "{t}[8]").format(t=dtype, whole=8 * members, part=8 // members)
    operands = tuple(each.format(f"p.{dtype}") for each in _OPERANDS.get(opcode, ("{}",)))
    if opcode == "parameter":
        operands = (str(sum(each.opcode == "parameter" for each in before)),)
    elif opcode.endswith("-done"):
        start = opcode.removesuffix("-done")
        operands = (next((each.name for each in reversed(before) if each.opcode == start), operands[0]),)
    return Made(name, opcode, shape, tuple(given.get("operands", operands)), given)


def _attributes(made: Made) -> dict[str, str]:
    given = made.given
    keys = {"collective_type": given.get("ct"), "stream_id": given.get("sid"), **given.get("attributes", {})}
    return {key: value for key, value in keys.items() if value is not None}


def _line(made: Made) -> str:
    given = made.given
    parts = [f"  {made.name} = {made.shape} {made.opcode}({', '.join(made.operands)})"]
    if given.get("ch") is not None:
        parts.append(f"channel_id={given['ch']}")
    if made.opcode in _GROUPED and "rg" in given:
        parts.append(f"replica_groups={_braced(given['rg'])}")
    if given.get("flag"):
        parts.append("use_global_device_ids=true")
    if made.opcode in _PERMUTES:
        parts.append("source_target_pairs={{0,1},{1,0}}")
    if made.opcode in _WITH_DIMENSION:
        parts.append(f"dimensions={{{_WITH_DIMENSION[made.opcode]}}}")
    if made.opcode in _REDUCING:
        parts.append("to_apply=add")
    if _attributes(made):
        pairs = [f'{key}="{value}"' for key, value in _attributes(made).items()]
        parts.append(f"frontend_attributes={{{','.join(pairs)}}}")
    return ", ".join(parts) + "\n"


def _braced(groups: Sequence[Sequence[int]]) -> str:
    return "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in groups) + "}"


def _message(made: Made, ids: Mapping[str, int]) -> schema.HloInstructionProto:
    given = made.given
    message = schema.HloInstructionProto(
        name=made.name.encode(),
        opcode=made.opcode.encode(),
        shape=_shape_message(parse_shape(made.shape)),
        id=ids[made.name],
        channel_id=given.get("ch") or 0,
        use_global_device_ids=bool(given.get("flag")),
    )
    if made.opcode == "parameter":
        message.parameter_number = int(made.operands[0])
    else:
        message.operand_ids.extend(ids[name] for name in made.operands)
    if made.opcode in _GROUPED and "rg" in given:
        message.collective_device_list.CopyFrom(device_list(*given["rg"]))
    if made.opcode in _PERMUTES:
        message.source_target_pairs.extend(schema.SourceTarget(source=a, target=1 - a) for a in (0, 1))
    if made.opcode in _WITH_DIMENSION:
        message.dimensions.append(_WITH_DIMENSION[made.opcode])
    if made.opcode in _REDUCING:
        message.called_computation_ids.append(REDUCER_ID)
    if _attributes(made):
        message.frontend_attributes.CopyFrom(attributes(_attributes(made)))
    return message


def _shape_message(shape: Shape) -> schema.ShapeProto:
    return schema.ShapeProto(
        element_type=cast("Any", _TYPES[shape.element_type]),
        dimensions=shape.dimensions,
        is_dynamic_dimension=[False] * len(shape.dimensions),
        tuple_shapes=[_shape_message(part) for part in shape.elements],
    )
