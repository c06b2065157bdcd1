"""Edits of one instruction of a text: lines, what becomes of them, and how to make and check edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.hlo import SetChannelId, SetFrontendAttribute, Site
from commlens.hlo.text import read_modules
from commlens.hlo.text.editing import splices_of

if TYPE_CHECKING:
    from commlens.hlo import Edit
    from commlens.hlo.edit_plan import AttributeChange
    from commlens.hlo.text import TextModule
    from commlens.hlo.text.instruction import TextInstruction

HEAD = """HloModule m, replica_count=4

add {
  u = f32[] parameter(0)
  v = f32[] parameter(1)
  ROOT w = f32[] add(u, v)
}

"""


def source(line: str) -> bytes:
    """Return a module whose entry holds a parameter ``a`` and one more instruction."""
    return f"{HEAD}ENTRY main {{\n  a = f32[8]{{0}} parameter(0)\n{line}\n}}\n".encode()


def module_of(data: bytes) -> TextModule:
    """Read one module."""
    (module,) = read_modules(data)
    return module


def edited(line: str, *, stream: str | None = None, channel: int | None = None, name: str = "x") -> str:
    """Return the lines with attributes of ``x`` set."""
    before = source(line)
    module = module_of(before)
    instruction = module.instruction(name)
    edits: list[Edit] = []
    if stream is not None:
        edits.append(SetFrontendAttribute(instruction, "stream_id", stream))
    if channel is not None:
        edits.append(SetChannelId(instruction, channel))
    after = module.edited(edits).to_bytes()
    head, tail = before.partition(line.encode())[::2]
    assert after.startswith(head)
    assert after.endswith(tail)
    assert module.to_bytes() == before
    return after[len(head) : len(after) - len(tail)].decode()


def edits_for(instruction: TextInstruction, change: AttributeChange) -> list[Edit]:
    """Return the edits that say so."""
    found: list[Edit] = [SetFrontendAttribute(instruction, *pair) for pair in change.frontend_attributes.items()]
    return found if change.channel_id is None else [SetChannelId(instruction, change.channel_id), *found]


def outside_is_equal(module: TextModule, after: TextModule, edits: list[Edit]) -> bool:
    """Whether nothing changed but what the splices of the edits replace."""
    splices = sorted(splices_of(module, edits))
    start = module.part[0]
    before, now, shift = module.to_bytes(), after.to_bytes(), 0
    borders = [(start, start), *[(splice.start, splice.end) for splice in splices]]
    borders.append((start + len(before), start + len(before)))
    for (_, begin), (stop, _), splice in zip(borders, borders[1:], [*splices, None], strict=False):
        if before[begin - start : stop - start] != now[begin - start + shift : stop - start + shift]:
            return False
        if splice is not None:
            shift += len(splice.replacement) - (splice.end - splice.start)
    return len(now) == len(before) + shift


def communicating(module: TextModule) -> list[TextInstruction]:
    """Return the instructions that may communicate."""
    return [
        each.instruction if isinstance(each, Site) else each  # pyright: ignore[reportReturnType]
        for _, items in module.communication()
        for each in items
    ]


STREAM = [
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add",
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"}',
        id="none yet: last",
    ),
    pytest.param(
        "  ROOT %x = f32[8]{0} all-reduce(f32[8]{0} %a), to_apply=%add, sharding={replicated}",
        '  ROOT %x = f32[8]{0} all-reduce(f32[8]{0} %a), to_apply=%add, sharding={replicated}, frontend_attributes={stream_id="0"}',
        id="behind the sharding",
    ),
    pytest.param(
        "  x = f32[32]{0} all-gather(a)",
        '  x = f32[32]{0} all-gather(a), frontend_attributes={stream_id="0"}',
        id="no attributes",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, metadata={op_name="f, metadata={"}, backend_config={"a":[1]}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"}, metadata={op_name="f, metadata={"}, backend_config={"a":[1]}',
        id="before the metadata",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, backend_config="c"',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"}, backend_config="c"',
        id="before the configuration",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), control-predecessors={a}, to_apply=add, metadata={op_name="f"}',
        '  x = f32[8]{0} all-reduce(a), frontend_attributes={stream_id="0"}, control-predecessors={a}, to_apply=add, metadata={op_name="f"}',
        id="before the first of them in the line as written",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), metadata={op_name="f"}, to_apply=add',
        '  x = f32[8]{0} all-reduce(a), frontend_attributes={stream_id="0"}, metadata={op_name="f"}, to_apply=add',
        id="metadata before others",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1",z="2"}, metadata={op_name="f"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1",stream_id="0",z="2"}, metadata={op_name="f"}',
        id="into a map in key order",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1",b="2"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1",b="2",stream_id="0"}',
        id="at the end of a map",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={z="1"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0",z="1"}',
        id="first in a map",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={z="1",a="2"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0",z="1",a="2"}',
        id="before the first greater key of a map without order",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={Z="1",stream="2",stream_idx="3"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={Z="1",stream="2",stream_id="0",stream_idx="3"}',
        id="keys are compared by bytes",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={}",
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"}',
        id="into an empty map",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={ /* none */ }",
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0" /* none */ }',
        id="into an empty map with a comment",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="x,}\\"{", c={"n":[1,2]}, z="1"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="x,}\\"{", c={"n":[1,2]}, stream_id="0", z="1"}',
        id="braces, quotes and blanks in a map",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={\n    a="1",\n    b="2"\n  }',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={\n    a="1",\n    b="2",\n    stream_id="0"\n  }',
        id="a map over several lines",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1", /* b */ b="2"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1", /* b */ b="2", stream_id="0"}',
        id="a comment in a map",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1",stream_id="7",z="2"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1",stream_id="0",z="2"}',
        id="replaced",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={z="1",stream_id= \'4\' ,a="2"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={z="1",stream_id= "0" ,a="2"}',
        id="in single quotes, between blanks",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id={"a":[0,1]}}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"}',
        id="a block is replaced",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="1",stream_id="2"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="1",stream_id="0"}',
        id="of two, the one that counts",
    ),
    pytest.param(
        '  x =\n    f32[8]{0} // the sum\n    all-reduce(a),\n    to_apply=add // add\n    , metadata={op_name="f"}',
        '  x =\n    f32[8]{0} // the sum\n    all-reduce(a),\n    to_apply=add // add\n    , frontend_attributes={stream_id="0"}, metadata={op_name="f"}',
        id="over several lines",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add // last\n  ROOT y = f32[8]{0} copy(x)",
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"} // last\n  ROOT y = f32[8]{0} copy(x)',
        id="a comment behind the line",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a),\r\n   to_apply=add  \r\n  ROOT y = f32[8]{0} copy(x)",
        '  x = f32[8]{0} all-reduce(a),\r\n   to_apply=add, frontend_attributes={stream_id="0"}  \r\n  ROOT y = f32[8]{0} copy(x)',
        id="carriage returns",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add y = f32[8]{0} copy(x) }",
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"} y = f32[8]{0} copy(x) }',
        id="two on a line",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(negate(a)), to_apply=add",
        '  x = f32[8]{0} all-reduce(negate(a)), to_apply=add, frontend_attributes={stream_id="0"}',
        id="an instruction as operand",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="x, metadata={b="},c={"}"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="x, metadata={b=",stream_id="0"},c={"}"}',
        id="what looks like metadata in a string",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), replica_groups=mesh['a'=4], device_ids=(3,2,1,0) {'a'}, to_apply=add",
        "  x = f32[8]{0} all-reduce(a), replica_groups=mesh['a'=4], device_ids=(3,2,1,0) {'a'}, to_apply=add, frontend_attributes={stream_id=\"0\"}",
        id="groups with commas of their own",
    ),
    pytest.param(
        '  x = ((f32[8]{0:T(8)}), f32[2]{0:T(2)}, u32[]{:S(2)}) reduce-scatter-start(a), to_apply=add, dimensions={0}, metadata={op_name="f"}',
        '  x = ((f32[8]{0:T(8)}), f32[2]{0:T(2)}, u32[]{:S(2)}) reduce-scatter-start(a), to_apply=add, dimensions={0}, frontend_attributes={stream_id="0"}, metadata={op_name="f"}',
        id="a start in short",
    ),
]

CHANNEL = [
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add",
        "  x = f32[8]{0} all-reduce(a), channel_id=12, to_apply=add",
        id="none yet",
    ),
    pytest.param("  x = f32[32]{0} all-gather(a)", "  x = f32[32]{0} all-gather(a), channel_id=12", id="no attributes"),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), channel_id=1, to_apply=add",
        "  x = f32[8]{0} all-reduce(a), channel_id=12, to_apply=add",
        id="replaced",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add, channel_id=-7",
        "  x = f32[8]{0} all-reduce(a), to_apply=add, channel_id=12",
        id="replaced with its sign, where it stands",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add, channel_id= /* one */ 1 // two",
        "  x = f32[8]{0} all-reduce(a), to_apply=add, channel_id= /* one */ 12 // two",
        id="comments",
    ),
    pytest.param(
        "  x = f32[8]{0} cross-replica-sum(a), all_reduce_id=3, to_apply=add",
        "  x = f32[8]{0} cross-replica-sum(a), all_reduce_id=12, to_apply=add",
        id="the old spelling",
    ),
    pytest.param(
        "  x = f32[32]{0} all-gather(a), all_reduce_id=3",
        "  x = f32[32]{0} all-gather(a), channel_id=12, all_reduce_id=3",
        id="the old spelling means nothing elsewhere",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, metadata={op_name=", channel_id=3"}',
        '  x = f32[8]{0} all-reduce(a), channel_id=12, to_apply=add, metadata={op_name=", channel_id=3"}',
        id="not what strings say",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={channel_id="3"}',
        '  x = f32[8]{0} all-reduce(a), channel_id=12, to_apply=add, frontend_attributes={channel_id="3"}',
        id="not what maps say",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce( /* ) */ a\n  )\n  , to_apply=add",
        "  x = f32[8]{0} all-reduce( /* ) */ a\n  ), channel_id=12\n  , to_apply=add",
        id="directly behind the operands",
    ),
]
