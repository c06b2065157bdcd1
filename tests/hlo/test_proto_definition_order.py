"""Operands that a proto does not list before their users: XLA's reader refuses them, and combining makes none."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys

import pytest

from combiner_modules import entry, line
from commlens.hlo import load, uses_before_definition
from commlens.hlo.proto import uses_before_definition_in_list
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.neuron import NeuronAllGatherCombiner
from proto_modules import FAR, instruction, module
from proto_twin import proto_twin

ORACLE = """
import base64, json, sys
from jaxlib._hlo import HloModule, hlo_module_from_text

def reads(data):
    try:
        HloModule.from_serialized_hlo_module_proto(data)
    except RuntimeError:
        return False
    return True

text, cases = json.load(sys.stdin)
template = base64.b64encode(hlo_module_from_text(text).as_serialized_hlo_module_proto()).decode()
json.dump([template, [reads(base64.b64decode(case)) for case in cases]], sys.stdout)
"""
TEXT = """HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  a = f32[8] negate(p)
  b = f32[8] add(a, p)
  c = f32[8] copy(p), control-predecessors={a}
  ROOT d = (f32[8], f32[8]) tuple(b, c)
}
"""


def ask_xla(cases: list[bytes]) -> tuple[bytes, list[bool]]:
    """Return the proto of the text, and which of the protos XLA reads, in a process of its own."""
    question = json.dumps([TEXT, [base64.b64encode(case).decode() for case in cases]])
    done = subprocess.run([sys.executable, "-c", ORACLE], input=question, capture_output=True, text=True, check=True)
    template, answers = json.loads(done.stdout)
    return base64.b64decode(template), answers


def reordered(message: schema.HloModuleProto, order: list[int]) -> schema.HloModuleProto:
    """Return a module whose entry lists its instructions in another order."""
    made = schema.HloModuleProto.FromString(message.SerializeToString())
    listed = message.computations[-1].instructions
    del made.computations[-1].instructions[:]
    made.computations[-1].instructions.extend(listed[place] for place in order)
    return made


def late(message: schema.HloModuleProto) -> list[tuple[str, str]]:
    """Return what is not listed before its users in the entry."""
    computation = load(message.SerializeToString()).entry
    assert computation is not None
    return [(each.user.name, each.needed) for each in uses_before_definition(computation)]


@pytest.mark.xla
def test_xla_reads_the_orders_without_late_operands() -> None:
    """And no others, wherever ids rise or fall."""
    template = schema.HloModuleProto.FromString(ask_xla([])[0])
    draw = random.Random(7)
    cases = [template]
    for _ in range(60):
        order = list(range(5))
        for _ in range(draw.randint(0, 2)):
            first, second = draw.randrange(5), draw.randrange(5)
            order[first], order[second] = order[second], order[first]
        cases.append(reordered(template, order))
    nowhere = schema.HloModuleProto.FromString(template.SerializeToString())
    nowhere.computations[0].instructions[1].operand_ids[0] = 99
    itself = schema.HloModuleProto.FromString(template.SerializeToString())
    itself.computations[0].instructions[1].operand_ids[0] = itself.computations[0].instructions[1].id
    cases += [itself, nowhere]
    _, answers = ask_xla([each.SerializeToString() for each in cases])
    assert answers == [not late(each) for each in cases]
    assert set(answers) == {True, False}


def test_what_is_named() -> None:
    """User and operand, in the order of the list, each pair once; beside a stump, which may be it, none is undefined."""
    made = [instruction("add", 2, [4, 4]), instruction("negate", 3, [3]), instruction("negate", 4, [1, 99])]
    made[2].operand_ids.append(0)
    made[1].control_predecessor_ids.extend([FAR + 4, FAR + 2])
    message = module(*made)
    assert late(message) == [("x2", "x4"), ("x3", "x3"), ("x3", "x4"), ("x4", f"id {FAR + 99}"), ("x4", "id 0")]
    outline = schema.HloModuleOutline.FromString(message.SerializeToString())
    outline.computations[1].instructions.append(b"\x0a")
    computation = load(outline.SerializeToString()).entry
    assert computation is not None
    found = [(each.user.name, each.needed, each.whereabouts) for each in uses_before_definition(computation)]
    assert found == [("x2", "x4", "behind"), ("x3", "x3", "itself"), ("x3", "x4", "behind")]


def test_texts_have_none() -> None:
    """Their order is looked at elsewhere."""
    text = load("ENTRY e {\n  a = f32[] negate(b)\n  b = f32[] parameter(0)\n  ROOT c = f32[] copy(a)\n}\n")
    assert text.entry is not None
    assert list(uses_before_definition_in_list(text.entry)) == []


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("scheduled", [False, True])
def test_combining_keeps_operands_in_front(seed: int, scheduled: bool) -> None:
    """Of members along several dimensions too, whose transposes go in front of the new instruction and behind it."""
    draw = random.Random(seed)
    lines, known = [], ["p", "q"]
    for number in range(8):
        along = draw.randrange(2)
        gather = line("all-gather", draw.choice("pq"), dimensions=f"{{{along}}}", shape="f32[16,16]")
        lines += [f"g{number} = {gather}", f"n{number} = f32[8,8] negate({draw.choice(known)})"]
        known.append(f"n{number}")
    text = entry(*lines).replace("f32[8]", "f32[8,8]")
    message = proto_twin(load(text))
    assert late(message) == []
    place = {each.id: position for position, each in enumerate(message.computations[-1].instructions)}
    if scheduled:
        message.schedule.sequences[message.computations[-1].id].instruction_ids.extend(place)
    result = NeuronAllGatherCombiner(tp_group="off", combine_by_dim=False).run(load(message.SerializeToString()))
    assert result.modified
    made = schema.HloModuleProto.FromString(result.module.to_bytes())
    assert late(made) == []
    assert sum(each.opcode == b"transpose" for each in made.computations[-1].instructions) > 0
    if scheduled:
        ids = made.schedule.sequences[made.computations[-1].id].instruction_ids
        places = {each.id: position for position, each in enumerate(made.computations[-1].instructions)}
        assert late(reordered(made, [places[number] for number in ids])) == []
