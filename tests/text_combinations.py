"""Collectives of a text that are combined or made custom calls: the lines before and after, and the edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.hlo.text import TextModule, read_modules
from kept_attributes import keeping_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.hlo import Combine

HEAD = """HloModule m, replica_count=4

add {
  u = f32[] parameter(0)
  v = f32[] parameter(1)
  ROOT w = f32[] add(u, v)
}

ENTRY main {
  a = f32[8]{0} parameter(0)
  b = f32[4,2]{1,0} parameter(1)
"""
NOTHING: frozenset[str] = frozenset()
ROOT = "  ROOT t = (f32[8]{0}, f32[4,2]{1,0}) tuple(x, y)\n}\n"


def module_of(text: str) -> TextModule:
    """Read one module."""
    (module,) = read_modules(text.encode())
    return module


def combine(
    module: TextModule, name: str = "c.1", members: Iterable[str] = "xy", *, dimension: int | None = None
) -> Combine:
    """Return an edit that combines instructions and keeps every attribute of the first that can be kept."""
    return keeping_all([module.instruction(member) for member in members], name, dimension)


def combined(body: str, *, head: str = HEAD, root: str = ROOT, dimension: int | None = None) -> str:
    """Return the lines of a body in which ``x`` and ``y`` are combined."""
    module = module_of(head + body + root)
    after = module.edited([combine(module, dimension=dimension)]).to_bytes().decode()
    assert after.startswith(head)
    assert after.endswith(root)
    return after[len(head) : len(after) - len(root)]


CASES = [
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add\n  y = f32[4,2]{1,0} all-reduce(b), to_apply=add\n",
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, b), to_apply=add\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n",
        id="plain",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(f32[8]{0} %a), channel_id=3, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%add\n"
        "  y = f32[4,2]{1,0} all-reduce(f32[4,2]{1,0} %b), channel_id=4, replica_groups=[2,2]<=[4], use_global_device_ids=true, to_apply=%add\n",
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(f32[8]{0} %a, f32[4,2]{1,0} %b), channel_id=3, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%add\n"
        "  x = f32[8]{0} get-tuple-element((f32[8]{0}, f32[4,2]{1,0}) %c.1), index=0\n"
        "  y = f32[4,2]{1,0} get-tuple-element((f32[8]{0}, f32[4,2]{1,0}) %c.1), index=1\n",
        id="operands with types; groups and channel of the first",
    ),
    pytest.param(
        "  %x = f32[8]{0:T(8)S(1)} all-reduce(%a), constrain_layout=true, to_apply=%add\n"
        "  %n = f32[8]{0} negate(%a)\n"
        "  %y = f32[4,2]{1,0} all-reduce(%b), to_apply=%add\n",
        "  %c.1 = (f32[8]{0:T(8)S(1)}, f32[4,2]{1,0}) all-reduce(%a, %b), to_apply=%add\n"
        "  %x = f32[8]{0:T(8)S(1)} get-tuple-element(%c.1), index=0\n"
        "  %n = f32[8]{0} negate(%a)\n"
        "  %y = f32[4,2]{1,0} get-tuple-element(%c.1), index=1\n",
        id="names with a mark; layouts stay, constrain_layout goes; others stay where they are",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add\n"
        "  n = f32[8]{0} negate(x)\n"
        "  k = f32[4,2]{1,0} copy(b)\n"
        "  y = f32[4,2]{1,0} all-reduce(k), to_apply=add\n"
        "  o = f32[8]{0} negate(n)\n",
        "  k = f32[4,2]{1,0} copy(b)\n"
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, k), to_apply=add\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  n = f32[8]{0} negate(x)\n"
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n"
        "  o = f32[8]{0} negate(n)\n",
        id="a late operand: the first member and its users follow it",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add\n"
        "  k = f32[8]{0} negate(a), control-predecessors={x}\n"
        "  l = f32[8]{0} negate(a)\n"
        '  y = f32[4,2]{1,0} all-reduce(b), to_apply=add, control-predecessors={l, a}, metadata={op_name="y"}\n',
        "  l = f32[8]{0} negate(a)\n"
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, b), to_apply=add, control-predecessors={l, a}\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  k = f32[8]{0} negate(a), control-predecessors={x}\n"
        '  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1, metadata={op_name="y"}\n',
        id="control predecessors are united, and hold the order",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, control-predecessors={a}, metadata={op_name="f"}\n'
        "  y = f32[4,2]{1,0} all-reduce(b), to_apply=add, control-predecessors={b, a}\n",
        '  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, b), to_apply=add, control-predecessors={a, b}, metadata={op_name="f"}\n'
        '  x = f32[8]{0} get-tuple-element(c.1), index=0, metadata={op_name="f"}\n'
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n",
        id="each control predecessor once, in the place of the first member's",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1"}, backend_config={"k":{"n":"}"}}\n'
        "  y = f32[4,2]{1,0} all-reduce(b), to_apply=add, sharding={devices=[4,1]<=[4]}\n",
        '  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, b), to_apply=add, sharding={{replicated}, {devices=[4,1]<=[4]}}, frontend_attributes={a="1"}, backend_config={"k":{"n":"}"}}\n'
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1, sharding={devices=[4,1]<=[4]}\n",
        id="shardings become a tuple; other attributes of the first are kept",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(negate(a)), to_apply=add\n"
        "  y = f32[4,2]{1,0} all-reduce(b), to_apply=add // the last\n",
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(negate(a), b), to_apply=add\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1 // the last\n",
        id="an instruction as operand; a comment behind a member",
    ),
    pytest.param(
        "  x =\n    f32[8]{0} all-reduce(a),\n    replica_groups={},\n    to_apply=add\n"
        "  k = f32[4,2]{1,0}\n    copy(b)\n"
        "  y = f32[4,2]{1,0} all-reduce(k), /* all */ to_apply=add\n",
        "  k = f32[4,2]{1,0}\n    copy(b)\n"
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, k), replica_groups={}, to_apply=add\n"
        "  x =\n    f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n",
        id="instructions over several lines",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add k = f32[4,2]{1,0} copy(b) // one line\n"
        "  y = f32[4,2]{1,0} all-reduce(k), to_apply=add\n",
        "  k = f32[4,2]{1,0} copy(b) // one line\n"
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, k), to_apply=add\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n",
        id="several instructions on a line",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add // sum\n"
        "  k = f32[4,2]{1,0} copy(b) y = f32[4,2]{1,0} all-reduce(k), to_apply=add\n",
        "  k = f32[4,2]{1,0} copy(b)\n"
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, k), to_apply=add\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0 // sum\n"
        "   y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n",
        id="a comment that moves swallows nothing",
    ),
    pytest.param(
        "  x = f32[8]{0} cross-replica-sum(a), to_apply=add\n  y = f32[4,2]{1,0} all-reduce(b), to_apply=add\n",
        "  c.1 = (f32[8]{0}, f32[4,2]{1,0}) cross-replica-sum(a, b), to_apply=add\n"
        "  x = f32[8]{0} get-tuple-element(c.1), index=0\n"
        "  y = f32[4,2]{1,0} get-tuple-element(c.1), index=1\n",
        id="the opcode as the first spells it",
    ),
]
DIMENSIONS = [
    pytest.param(
        "  x = f32[16,2]{1,0} all-gather(b), dimensions={0}\n  y = f32[4,8]{1,0} all-gather(b), dimensions={1}\n",
        0,
        "  transpose.1 = f32[2,4]{0,1} transpose(b), dimensions={1,0}\n"
        "  c.1 = (f32[16,2]{1,0}, f32[8,4]{0,1}) all-gather(b, transpose.1), dimensions={0}\n"
        "  x = f32[16,2]{1,0} get-tuple-element(c.1), index=0\n"
        "  get-tuple-element.1 = f32[8,4]{0,1} get-tuple-element(c.1), index=1\n"
        "  y = f32[4,8]{1,0} transpose(get-tuple-element.1), dimensions={1,0}\n",
        id="the second is transposed",
    ),
    pytest.param(
        "  %q = bf16[3,4,<=2,5]{3,1,0,2:T(8,128)(2,1)} convert(b)\n"
        "  transpose.7 = f32[2,4]{0,1} transpose(b), dimensions={1,0}\n"
        "  %x = bf16[3,16,<=2,5]{3,1,0,2:T(8,128)(2,1)S(1)} all-gather(bf16[3,4,<=2,5]{3,1,0,2:T(8,128)(2,1)} %q), dimensions={1}, sharding={replicated}\n"
        "  %y = f32[4,2,20] all-gather(b), dimensions={2}\n",
        2,
        "  %q = bf16[3,4,<=2,5]{3,1,0,2:T(8,128)(2,1)} convert(b)\n"
        "  transpose.7 = f32[2,4]{0,1} transpose(b), dimensions={1,0}\n"
        "  %transpose.8 = bf16[3,<=2,4,5]{3,2,0,1:T(8,128)(2,1)} transpose(bf16[3,4,<=2,5]{3,1,0,2:T(8,128)(2,1)} %q), dimensions={0,2,1,3}\n"
        "  %c.1 = (bf16[3,<=2,16,5]{3,2,0,1:T(8,128)(2,1)S(1)}, f32[4,2,20]) all-gather(bf16[3,<=2,4,5]{3,2,0,1:T(8,128)(2,1)} %transpose.8, b), dimensions={2}, sharding={{replicated}, {replicated}}\n"
        "  %get-tuple-element.1 = bf16[3,<=2,16,5]{3,2,0,1:T(8,128)(2,1)S(1)} get-tuple-element((bf16[3,<=2,16,5]{3,2,0,1:T(8,128)(2,1)S(1)}, f32[4,2,20]) %c.1), index=0\n"
        "  %x = bf16[3,16,<=2,5]{3,1,0,2:T(8,128)(2,1)S(1)} transpose(bf16[3,<=2,16,5]{3,2,0,1:T(8,128)(2,1)S(1)} %get-tuple-element.1), dimensions={0,2,1,3}, sharding={replicated}\n"
        "  %y = f32[4,2,20] get-tuple-element(c.1), index=1\n",
        id="the first is transposed: types, tiles, dynamic sizes, names that are taken",
    ),
]
CUSTOM_CALLS = [
    pytest.param(
        "x = f32[8]{0} all-reduce(a), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add",
        'x = f32[8]{0} custom-call(a), custom_call_target="T_f32", backend_config={"a":[1]}',
        id="what a collective says goes",
    ),
    pytest.param(
        "x = f32[8]{0} all-reduce(f32[8]{0} %a), constrain_layout=true, to_apply=add, sharding={replicated}, "
        'frontend_attributes={a="1"}, control-predecessors={a}, metadata={op_name="f"}, barrier="b", backend_config={"x":{}}',
        'x = f32[8]{0} custom-call(f32[8]{0} %a), custom_call_target="T_f32", backend_config={"a":[1]}, sharding={replicated}, '
        'frontend_attributes={a="1"}, control-predecessors={a}, metadata={op_name="f"}, barrier="b"',
        id="what others say stays in its order",
    ),
    pytest.param(
        'ROOT %x =\n f32[32]{0} all-gather ( a /* one */ ),\n dimensions={0}, // gather\n metadata={op_name="f"} // end',
        'ROOT %x =\n f32[32]{0} custom-call ( a /* one */ ), custom_call_target="T_f32", backend_config={"a":[1]}, // gather\n metadata={op_name="f"} // end',
        id="over several lines",
    ),
    pytest.param(
        "x = (f32[32]{0}, f32[16,2]{1,0}) all-gather(a, b), replica_groups=mesh['a'=4], device_ids=(3,2,1,0) {'a'}, dimensions={0}",
        'x = (f32[32]{0}, f32[16,2]{1,0}) custom-call(a, b), custom_call_target="T_f32", backend_config={"a":[1]}',
        id="several operands",
    ),
]
