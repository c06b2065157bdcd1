from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens import CommlensError
from commlens.integrations.runtime.plain_hlo import (
    one_by_one,
    partitioner_of,
    plain,
    read_instruction,
    readable,
)

PLAIN = {
    "fusion": (
        "%f = f32[2]{0} fusion(f32[2]{0} %a, f32[2]{0} %b), kind=kLoop, calls=%c, metadata={op_name=\"x, y\"}",
        ["%f = f32[2] call(%a, %b), to_apply=%c"],
    ),
    "attributes": (
        "%g = f32[8]{0} all-gather(f32[2]{0} %a), channel_id=1, replica_groups={{0,1},{2,3}}, dimensions={0}, "
        'use_global_device_ids=true, sharding={devices=[2]<=[2]}, frontend_attributes={k="a)b"}, '
        'control-predecessors={%z}, backend_config={"a":{"b":[]}}',
        ["%g = f32[8] all-gather(%a), channel_id=1, replica_groups={{0,1},{2,3}}, dimensions={0}, use_global_device_ids=true"],
    ),
    "custom-call": (
        'ROOT %c = (f32[2]{0}, s8[0]{0}) custom-call(f32[2]{0} %a), custom_call_target="x", backend_config={"n":1}',
        ['ROOT %c = (f32[2], s8[0]) custom-call(%a), custom_call_target="x", backend_config={"n":1}'],
    ),
    "constant": (
        "%c = f32[2,2]{1,0} constant({ { 1, 2 }, { 3, 4 } })",
        ["%c = f32[2,2] constant({ { 1, 2 }, { 3, 4 } })"],
    ),
    "mesh": (
        "%g = f32[4]{0} all-gather(f32[2]{0} %a), replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}, "
        "dimensions={0}",
        ["%g = f32[4] all-gather(%a), replica_groups={{0,2},{1,3}}, dimensions={0}"],
    ),
    "iota": (
        "%g = f32[4]{0} all-gather(f32[2]{0} %a), replica_groups=[2,2]<=[2,2]T(1,0), dimensions={0}",
        ["%g = f32[4] all-gather(%a), replica_groups=[2,2]<=[2,2]T(1,0), dimensions={0}"],
    ),
    "several-operands": (
        "ROOT %r = (f32[2]{0}, s32[]) all-reduce(f32[2]{0} %a, s32[] %b), replica_groups={}, to_apply=%add",
        [
            "%r--part0 = f32[2] all-reduce(%a), replica_groups={}, to_apply=%add",
            "%r--part1 = s32[] all-reduce(%b), replica_groups={}, to_apply=%add",
            "ROOT %r = (f32[2], s32[]) tuple(%r--part0, %r--part1)",
        ],
    ),
    "all-reduce-start": (
        "%s = f32[2]{0} all-reduce-start(f32[2]{0} %a), replica_groups={}, to_apply=%add",
        ["%s = f32[2] all-reduce(%a), replica_groups={}, to_apply=%add"],
    ),
    "wrapped-all-reduce-start": (
        "%s = ((f32[2]{0}), f32[2]{0}, u32[]) all-reduce-start(f32[2]{0} %a), replica_groups={}, to_apply=%add",
        ["%s = f32[2] all-reduce(%a), replica_groups={}, to_apply=%add"],
    ),
    "all-gather-start": (
        "%s = (f32[2]{0}, f32[4]{0}) all-gather-start(f32[2]{0} %a), replica_groups={}, dimensions={0}",
        ["%s = f32[4] all-gather(%a), replica_groups={}, dimensions={0}"],
    ),
    "wrapped-start": (
        "%s = ((f32[4]{0}), f32[2]{0}, u32[]) reduce-scatter-start(f32[4]{0} %a), replica_groups={}, dimensions={0}",
        ["%s = f32[2] reduce-scatter(%a), replica_groups={}, dimensions={0}"],
    ),
    "update": (
        "%u = ((f32[4]{0}), f32[2]{0}) reduce-scatter-update(((f32[4]{0}), f32[2]{0}) %s)",
        ["%u = f32[2] opt-barrier(%s)"],
    ),
    "done": (
        "%d = f32[4]{0} all-gather-done((f32[2]{0}, f32[4]{0}) %s), metadata={}",
        ["%d = f32[4] opt-barrier(%s)"],
    ),
    "copy-start": (
        "%s = (f32[2]{0:S(1)}, f32[2]{0}, u32[]) copy-start(f32[2]{0} %a)",
        ["%s = f32[2] copy(%a)"],
    ),
    "many-operands": (
        "%t = (f32[]{:T(128)}, f32[], f32[], f32[], f32[], /*index=5*/f32[]) tuple(f32[] %a, f32[] %b, f32[] %c, "
        "f32[] %d, f32[] %e, /*index=5*/f32[] %f)",
        ["%t = (f32[], f32[], f32[], f32[], f32[], f32[]) tuple(%a, %b, %c, %d, %e, %f)"],
    ),
    "reshape": ("%b = f32[6]{0} bitcast(f32[2,3]{1,0} %a)", ["%b = f32[6] reshape(%a)"]),
    "nothing": ("%b = f32[6]{0} bitcast(f32[6]{0} %a)", ["%b = f32[6] reshape(%a)"]),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_plain_form(name: str) -> None:
    """Each form that the way to the client does not know has a plain one."""
    line, expected = PLAIN[name]
    text = plain(f"HloModule m, is_scheduled=true\n\nENTRY %e (a: f32[2]{{0}}) -> f32[2]{{0}} {{\n  {line}\n}}\n\n")
    head, _, entry, *lines, end, _, _ = text.split("\n")
    assert (head, entry, end) == ("HloModule plain", "ENTRY %e (a: f32[2]) -> f32[2] {", "}")
    assert lines == [f"  {each}" for each in expected]


@given(st.data())
def test_a_bitcast_moves_no_byte(data: st.DataObject) -> None:
    """The plain form computes what reading the same bytes with another shape and layout gives."""
    dims = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    size = prod(dims)
    others = data.draw(st.permutations(dims) | st.just([size]) | st.just([1, size]))
    first, second = (data.draw(st.permutations(range(len(each)))) for each in (dims, others))
    line = f"  ROOT %b = s32[{_ints(others)}]{{{_ints(second)}}} bitcast(s32[{_ints(dims)}]{{{_ints(first)}}} %a)"
    steps = [read_instruction(each) for each in plain(line).split("\n")]
    array = np.arange(size).reshape([dims[each] for each in first[::-1]])  # in memory, slowest dimension first
    value = array.transpose([first[::-1].index(each) for each in range(len(dims))])
    for step in steps:
        shape = [int(each) for each in step.shape[4:-1].split(",")]
        if step.opcode == "transpose":
            value = value.transpose([int(each) for each in step.attributes[0][12:-1].split(",")])
            assert list(value.shape) == shape
        else:
            value = value.reshape(shape)
    assert [step.root for step in steps] == [False] * (len(steps) - 1) + [True]
    assert steps[-1].name == "%b"
    assert value.transpose(second[::-1]).reshape(-1).tolist() == list(range(size))


def _ints(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))


@pytest.mark.parametrize(
    "line",
    [
        "  %b = f32[6]{0} bitcast(s32[6]{0} %a)",
        "  %b = (f32[6]{0}) bitcast((f32[6]{0}) %a)",
        "  %b = f32[6]{0}",
        "  %s = f32[2]{0} all-gather-start(f32[2]{0} %a)",
    ],
)
def test_what_has_no_plain_form_is_refused(line: str) -> None:
    """Nothing is dropped in silence."""
    with pytest.raises(CommlensError):
        plain(line)


@pytest.mark.parametrize(
    ("text", "partitioner"),
    [
        ("HloModule m\n x = f32[] parameter(0)", None),
        ("HloModule m\n x = f32[8] parameter(0), sharding={devices=[8]<=[8]}", "gspmd"),
        ('HloModule m\n x = f32[8] custom-call(y), custom_call_target="SPMDFullToShardShape"', "gspmd"),
        ('HloModule m\n x = f32[8] custom-call(y), custom_call_target="xla.sdy.GlobalToLocalShape"', "shardy"),
        ("HloModule m\n x = f32[8] all-gather(y), replica_groups={}, sharding={devices=[8]<=[8]}", None),
        (
            "HloModule m\n x = f32[8] collective-permute(y), source_target_pairs={{0,1}}, sharding={devices=[8]<=[8]}",
            None,
        ),
        ("HloModule m, is_scheduled=true\n x = f32[8] parameter(0), sharding={devices=[8]<=[8]}", None),
        ('HloModule m, is_scheduled=true\n x = f32[8] custom-call(y), custom_call_target="TopK"', None),
    ],
)
def test_who_has_seen_a_module(text: str, partitioner: str | None) -> None:
    """A module that the partitioner has seen runs as it is; leftover shardings of a scheduled one say nothing."""
    assert partitioner_of(text) == partitioner


def test_all_but_several_operands_stays_as_it_is() -> None:
    """What XLA is to partition keeps its shardings; each element of a tuple has its own."""
    kept = (
        "HloModule m, entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n\n"
        "ENTRY %e (a: f32[2]) -> f32[2] {\n  %a = f32[2]{0} parameter(0), sharding={replicated}\n"
    )
    line = (
        "  %r = (f32[2]{0}, s32[]) all-reduce(f32[2]{0} %a, s32[] %b), replica_groups={}, to_apply=%add, "
        'sharding={{manual}, {devices=[2]<=[2]}}, frontend_attributes={k="v, w"}\n'
    )
    attributes = 'replica_groups={}, to_apply=%add, frontend_attributes={k="v, w"}'
    assert one_by_one(kept) == kept
    assert one_by_one(kept + line) == kept + (
        f"  %r--part0 = f32[2] all-reduce(%a), {attributes}, sharding={{manual}}\n"
        f"  %r--part1 = s32[] all-reduce(%b), {attributes}, sharding={{devices=[2]<=[2]}}\n"
        "  %r = (f32[2], s32[]) tuple(%r--part0, %r--part1), sharding={{manual}, {devices=[2]<=[2]}}\n"
    )
    same = one_by_one(line.replace("{{manual}, {devices=[2]<=[2]}}", "{replicated}"))
    assert same.count("sharding={replicated}") == 3


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("replica_groups=@mesh<a=2,b=2> {a}, x", "replica_groups={{0,2},{1,3}}, x"),
        ("replica_groups = @mesh<a=4> {a:(1)2}", "replica_groups = {{0,2},{1,3}}"),
        ("replica_groups=mesh['a'=2] {'a'}", "replica_groups=mesh['a'=2] {'a'}"),
        ("replica_groups=@mesh<a=2> {b}", "replica_groups=@mesh<a=2> {b}"),
        ('op_name="replica_groups=@mesh<a=2> {a}"', 'op_name="replica_groups=@mesh<a=2> {a}"'),
        ("/* replica_groups=@mesh<a=2> {a} */", "/* replica_groups=@mesh<a=2> {a} */"),
    ],
)
def test_spellings_that_xla_does_not_read(text: str, read: str) -> None:
    """Groups by a named mesh are written out, outside strings and comments, where they can be read."""
    assert readable(text) == read
