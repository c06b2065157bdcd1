"""Edited protos before XLA's own reader and printer, as jaxlib has them, beside the same edits of the text.

XLA ends the whole process on some protos, so it works in a process of its own.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from google.protobuf import text_format

from commlens.hlo import BecomeCustomCall, Combine, SetChannelId, SetFrontendAttribute, load
from commlens.hlo.proto.opcode_scan import COMMUNICATING_OPCODES
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema

if TYPE_CHECKING:
    from commlens import Module
    from commlens.hlo import Edit

PROTOS = sorted((Path(__file__).parents[1] / "data" / "protos").glob("jax-0.*.pb"))

ORACLE = """
import base64, json, sys
from jaxlib._hlo import HloModule, hlo_module_from_text
answers = []
for text, proto in json.load(sys.stdin):
    module = hlo_module_from_text(text) if text else HloModule.from_serialized_hlo_module_proto(base64.b64decode(proto))
    made = base64.b64encode(module.as_serialized_hlo_module_proto()).decode()
    answers.append([module.to_string(), made])
json.dump(answers, sys.stdout)
"""

TEXT = """HloModule m, is_scheduled=SCHEDULED, replica_count=2, num_partitions=2

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

ENTRY %e (p: f32[8,4], q: f32[3,8]) -> (f32[16,4], f32[3,16], f32[16,4], f32[8,4], f32[3,8]) {
  %p = f32[8,4]{1,0:T(8,128)} parameter(0), sharding={replicated}
  %q = f32[3,8]{1,0} parameter(1)
  %z = f32[8,4]{1,0} copy(%p)
  %g = f32[16,4]{1,0:T(8,128)} all-gather(%p), channel_id=3, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true, frontend_attributes={a="2",b="1"}, control-predecessors={%z}, metadata={op_name="x" source_file="f" source_line=3}, backend_config={"a":1}
  %u = f32[16,4]{1,0} copy(%g), control-predecessors={%z}
  %q2 = f32[3,8]{1,0} copy(%q)
  %h = f32[3,16]{1,0} all-gather(%q2), channel_id=4, replica_groups={{0,1}}, dimensions={1}, use_global_device_ids=true, metadata={op_name="y" source_file="f" source_line=3}
  %r = f32[8,4]{1,0} all-reduce(%z), channel_id=3, replica_groups=[1,2]<=[2], use_global_device_ids=true, to_apply=%add, sharding={replicated}
  %s = f32[3,8]{1,0} all-reduce(%q), channel_id=9, replica_groups=[1,2]<=[2], use_global_device_ids=true, to_apply=%add
  ROOT %w = (f32[16,4]{1,0}, f32[3,16]{1,0}, f32[16,4]{1,0}, f32[8,4]{1,0}, f32[3,8]{1,0}) tuple(%u, %h, %g, %r, %s), control-predecessors={%r}
}
"""


def ask(*given: str | bytes) -> list[tuple[str, bytes]]:
    """Let XLA read texts and protos; return how it prints each and what proto it makes of it."""
    pairs = [
        [each if isinstance(each, str) else "", "" if isinstance(each, str) else base64.b64encode(each).decode()]
        for each in given
    ]
    done = subprocess.run(
        [sys.executable, "-c", ORACLE], input=json.dumps(pairs), capture_output=True, text=True, check=True
    )
    return [(printed, base64.b64decode(made)) for printed, made in json.loads(done.stdout)]


def edits_of(loaded: Module, name: str) -> list[Edit]:
    """Return one of several sets of edits."""
    x = {each: loaded.instruction(each) for each in "ghrsuw"}
    kept = {"frontend_attributes": frozenset("b"), "metadata": frozenset({"source_file"})}
    match name:
        case "attributes":
            return [
                *(SetChannelId(each, 20 + number) for number, each in enumerate(x.values()) if number < 4),
                *(SetFrontendAttribute(each, "ab", 'x "y" \\ z') for each in x.values()),
                SetFrontendAttribute(x["g"], "b", ""),
            ]
        case "custom calls":
            config = '{"replica_groups":[[0,1]],"channel_id":1}'
            return [BecomeCustomCall(x[each], "AwsNeuronThing_f32", config) for each in "ghrs"]
        case "all-reduces":
            return [Combine((x["r"], x["s"]), "all-reduce.77"), SetFrontendAttribute(x["u"], "k", "v")]
        case "all-reduces the other way":
            return [Combine((x["s"], x["r"]), "all-reduce.77")]
        case "all-gathers along 0":
            return [
                Combine((x["g"], x["h"]), "all.1", **kept, other_attributes=frozenset({"backend_config"}), dimension=0)
            ]
        case _:
            return [Combine((x["g"], x["h"]), "all.1", **kept, dimension=1), Combine((x["r"], x["s"]), "all-reduce.77")]


SETS = [
    "attributes",
    "custom calls",
    "all-reduces",
    "all-reduces the other way",
    "all-gathers along 0",
    "all-gathers along 1",
]


@pytest.fixture(scope="module", params=["true", "false"], ids=["scheduled", "not scheduled"])
def program(request: pytest.FixtureRequest) -> tuple[str, bytes]:
    """Return a program as text and as the proto that XLA makes of it."""
    text = TEXT.replace("SCHEDULED", request.param)
    ((_, proto),) = ask(text)
    return text, proto


def lines(printed: str) -> Counter[str]:
    """Return the lines that XLA printed, without the counts, which no proto has."""
    return Counter(printed.replace(", replica_count=2, num_partitions=2", "").splitlines())


@pytest.mark.parametrize("name", SETS)
def test_text_and_proto_are_the_same_program_afterwards(name: str, program: tuple[str, bytes]) -> None:
    """XLA reads both, and prints the same; also where the proto has ids as they were until 2025."""
    text, proto = program
    made = [each.edited(edits_of(each, name)).to_bytes() for each in map(load, (text, proto, with_small_ids(proto)))]
    (of_text, _), (of_proto, _), (of_older, _) = ask(made[0].decode(), *made[1:])
    assert lines(of_proto) == lines(of_older) == lines(of_text)
    if "is_scheduled=true" in text:
        assert list(lines(of_proto)) == list(lines(of_older)) == list(lines(of_text))


@pytest.mark.parametrize("name", SETS)
def test_the_text_form_of_a_proto_is_the_same_program_as_well(name: str, program: tuple[str, bytes]) -> None:
    """As far as the schema speaks of it."""
    message = schema.HloModuleProto.FromString(program[1])
    message.DiscardUnknownFields()
    form, known = load(text_format.MessageToString(message).encode()), load(message.SerializeToString())
    of_form = form.edited(edits_of(form, name)).to_bytes().decode()
    of_known = schema.HloModuleProto.FromString(known.edited(edits_of(known, name)).to_bytes())
    of_known.DiscardUnknownFields()
    assert text_format.Parse(of_form, schema.HloModuleProto(), allow_unknown_field=True) == of_known


def with_small_ids(proto: bytes) -> bytes:
    """Number all instructions and computations in a row, as XLA did until 2025."""
    message = schema.HloModuleProto.FromString(proto)
    ids: dict[int, int] = {}
    for each in (each for computation in message.computations for each in computation.instructions):
        ids[each.id] = 3 + len(ids)
    for computation in message.computations:
        computation.root_id = ids[computation.root_id]
        for each in computation.instructions:
            each.id = ids[each.id]
            each.operand_ids[:] = [ids[number] for number in each.operand_ids]
            each.control_predecessor_ids[:] = [ids[number] for number in each.control_predecessor_ids]
    for sequence in message.schedule.sequences.values():
        sequence.instruction_ids[:] = [ids[number] for number in sequence.instruction_ids]
    return message.SerializeToString()


@pytest.mark.parametrize("path", PROTOS, ids=[path.stem for path in PROTOS])
def test_xla_prints_the_new_values(path: Path) -> None:
    """Of every collective of a real program: channel and attribute are there, and nothing else has changed."""
    loaded = load(path)
    found = list(loaded.instructions_of(COMMUNICATING_OPCODES))
    edits: list[Edit] = [SetChannelId(each, 700 + number) for number, each in enumerate(found)]
    made = loaded.edited([*edits, *(SetFrontendAttribute(each, "zz", "new") for each in found)])
    (before, _), (after, _) = ask(loaded.to_bytes(), made.to_bytes())
    changed = [(old, new) for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new]
    written = Counter(
        number for _, new in changed for number in range(700, 700 + len(found)) if f"channel_id={number}," in new
    )
    assert written == Counter(range(700, 700 + len(found)))
    assert all('zz="new"' in new for _, new in changed)
