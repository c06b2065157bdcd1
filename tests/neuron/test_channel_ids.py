"""The next free channel id, on text and proto, against upstream's cases and against a count with loops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens import load
from commlens.hlo import UnreadableError
from commlens.neuron import next_channel_id
from commlens.neuron.predicates import CHANNEL_CLASS, NEXT_CHANNEL_ID_LISTING
from neuron_cases import cases
from neuron_modules import BACKENDS, Notation, both, module_of, proto_of
from proto_modules import entry, instruction, reducer
from proto_modules import module_of as protos
from xla_cases import cases as xla_cases

OPCODES = [*sorted(CHANNEL_CLASS), "negate"]
"""What a module may hold; the last has no channel."""

ENTRIES = st.builds(lambda op, ch: {"op": op, "ch": ch}, st.sampled_from(OPCODES), st.none() | st.integers(-3, 9))
NOTATIONS = st.lists(st.lists(ENTRIES, max_size=4), min_size=1, max_size=3)


def slow_next(notation: Notation, lowest: int) -> int:
    """Count with loops, as documented: one above the largest engaged id, starting from 1."""
    result = 1
    for computation in notation:
        for each in computation:
            if each["op"] != "negate" and each["ch"] is not None and each["ch"] >= lowest and each["ch"] + 1 > result:
                result = each["ch"] + 1
    return result


@both
@pytest.mark.parametrize("case", cases("next_channel_id"))
def test_documented_cases(case: dict[str, Any], backend: str) -> None:
    """Starts count, recv-done counts, 0 gives 1, and nothing goes below 1; a proto's 0 or less is no id at all."""
    assert next_channel_id(module_of(case["computations"], backend)) == case["expected"]


@pytest.mark.parametrize(("given_", "expect"), xla_cases("next_channel_id"))
def test_upstreams_cases(given_: dict[str, Any], expect: int) -> None:
    """Upstream's own modules, and protos with the same instructions."""
    module = load(given_["hlo"])
    assert next_channel_id(module) == expect
    notation = [
        [{"op": opcode.removesuffix("-start") if opcode == "all-to-all-start" else opcode, "ch": each.channel_id}]
        for computation in module.computations
        for each in computation.instructions
        if (opcode := each.opcode) in {*CHANNEL_CLASS, "all-to-all-start"}
    ]
    if notation:
        assert next_channel_id(load(proto_of(notation))) == expect


@given(NOTATIONS)
def test_next_id_is_that_of_the_loops(notation: Notation) -> None:
    """Any mixture of opcodes and ids; a proto cannot state ids below 1."""
    assert next_channel_id(module_of(notation, "text")) == slow_next(notation, -9)
    assert next_channel_id(module_of(notation, "proto")) == slow_next(notation, 1)


@st.composite
def transfers(draw: st.DrawFn) -> Notation:
    """Modules in which every recv-done has the channel of its recv."""
    rows: Notation = []
    for _ in range(draw(st.integers(1, 3))):
        row = draw(st.lists(ENTRIES.filter(lambda each: each["op"] not in ("recv", "recv-done")), max_size=3))
        for channel in draw(st.lists(st.none() | st.integers(1, 20), max_size=3)):
            row += [{"op": "recv", "ch": channel}, {"op": "recv-done", "ch": channel}]
        rows.append(row)
    return rows


@given(transfers(), st.sampled_from(BACKENDS))
def test_the_listed_thirteen_give_the_same_id(notation: Notation, backend: str) -> None:
    """With or without recv-done: no difference where every recv-done has the channel of its recv."""
    module = module_of(notation, backend)
    assert next_channel_id(module, NEXT_CHANNEL_ID_LISTING) == next_channel_id(module)


@both
def test_the_listed_thirteen_overlook_a_lone_recv_done(backend: str) -> None:
    """Where a recv-done stands alone, the documented listing and its evidence part."""
    module = module_of([[{"op": "recv-done", "ch": 20}, {"op": "all-reduce", "ch": 3}]], backend)
    assert (next_channel_id(module), next_channel_id(module, NEXT_CHANNEL_ID_LISTING)) == (21, 4)


def test_wrapped_collectives_count_in_a_text() -> None:
    """What an async-start wraps has its id on its own line; a start in short has it itself; its done has none."""
    module = load("""wrapped {
  q = f32[8] parameter(0)
  ROOT t = f32[8] all-to-all(q), channel_id=17, dimensions={0}
}

ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), f32[8], u32[]) async-start(p), calls=wrapped
  d = f32[8] async-done(s)
  b = ((f32[8]), f32[8]) collective-broadcast-start(d), replica_groups={{0,1}}, channel_id=23
  ROOT c = f32[8] collective-broadcast-done(b)
}
""")
    assert next_channel_id(module) == 24


def test_wrapped_collectives_count_in_a_proto() -> None:
    """The wrapped operation is an instruction of its own computation."""
    wrapped = instruction("all-to-all", 21, [20])
    wrapped.channel_id = 17
    inner = reducer()
    inner.name, inner.id = b"wrapped", 5
    inner.ClearField("instructions")
    inner.instructions.extend([instruction("parameter", 20), wrapped])
    start = instruction("async-start", 2, [1])
    start.called_computation_ids.append(5)
    module = load(protos(inner, entry(start, instruction("async-done", 3, [2]))).SerializeToString())
    assert next_channel_id(module) == 18


def test_what_looks_like_a_channel_counts_only_on_channel_opcodes() -> None:
    """An attribute of that name elsewhere, a custom call or a done form, is none of a channel instruction."""
    module = load("""ENTRY e {
  p = f32[8] parameter(0)
  c = f32[8] custom-call(p), custom_call_target="all-gather-start", channel_id=50
  s = (f32[8], f32[8]) all-gather-start(c), channel_id=2, dimensions={0}
  ROOT d = f32[8] all-gather-done(s), channel_id=60
}
""")
    assert next_channel_id(module) == 3


@pytest.mark.parametrize("number", ["x", "9223372036854775808", "{1}"])
def test_an_id_that_cannot_be_read_is_refused(number: str) -> None:
    """No guess: the instruction and the fault are named."""
    module = load(f"ENTRY e {{\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] all-to-all(p), channel_id={number}\n}}\n")
    with pytest.raises(UnreadableError, match="^ROOT r = .*: expected channel_id to be an integer"):
        next_channel_id(module)


def test_an_id_behind_what_cannot_be_read_is_refused() -> None:
    """A value whose bracket does not close swallows what stands behind it, an id perhaps."""
    line = "all-to-all(p), replica_groups={{0,1}, channel_id=90, dimensions={0}"
    with pytest.raises(UnreadableError, match="^ROOT r = .*: replica_groups cannot be read"):
        next_channel_id(load(f"ENTRY e {{\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] {line}\n}}\n"))


def test_the_largest_id_has_a_successor_in_python() -> None:
    """Numbers do not wrap: whoever writes the id finds out that it does not fit."""
    module = module_of([[{"op": "all-to-all", "ch": 2**63 - 1}]], "text")
    assert next_channel_id(module) == 2**63
