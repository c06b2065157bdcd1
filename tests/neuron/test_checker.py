"""The stream id checker: a presence test and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from commlens import load
from commlens.errors import InputError
from commlens.neuron import CollectiveStreamIdChecker
from commlens.neuron.predicates import CHANNEL_CLASS, COLLECTIVE_CLASS
from neuron_cases import cases
from neuron_modules import both, module_of, stats_of

CHECKER = CollectiveStreamIdChecker()


@both
@pytest.mark.parametrize("case", cases("stream_id_checker"))
def test_documented_cases(case: dict[str, Any], backend: str) -> None:
    """Found or not; never changed, never modified, and the module that comes out is the one that went in."""
    module = module_of(case["computations"], backend)
    result = CHECKER.run(module)
    assert (result.found, result.changed, result.modified) == (case["found"], case["changed"], False)
    assert result.module is module
    assert result.edits == ()


@both
@pytest.mark.parametrize("opcode", sorted(CHANNEL_CLASS))
def test_only_the_class_counts(opcode: str, backend: str) -> None:
    """Every opcode with a channel, alone with a stream id: found for the eight of the class; the others are named."""
    result = CHECKER.run(module_of([[{"op": opcode, "sid": "1", "id": "i"}]], backend))
    assert result.found is (opcode in COLLECTIVE_CLASS)
    assert stats_of(result)["looked_at"] == int(opcode in COLLECTIVE_CLASS)
    outside = [each["opcode"] for each in stats_of(result)["outside"]]
    assert outside == ([] if opcode in COLLECTIVE_CLASS or opcode.endswith("-done") else [opcode])


@both
def test_found_is_only_ever_set(backend: str) -> None:
    """One collective with the attribute is enough, wherever it stands among others without."""
    with_id, without = {"op": "all-gather", "sid": "x"}, {"op": "all-gather", "ct": "tp_all_gather"}
    for rows in ([[with_id, without], [without]], [[without], [without, with_id]]):
        assert CHECKER.run(module_of(rows, backend)).found
    assert CHECKER.run(module_of([[without], [without]], backend)).found is False


@both
def test_stats_say_what_was_seen(backend: str) -> None:
    """How many carry which value, and the first that does."""
    rows = [[{"op": "all-reduce"}, {"op": "all-reduce", "sid": "1", "id": "x"}, {"op": "all-to-all", "sid": ""}]]
    stats = stats_of(CHECKER.run(module_of(rows, backend)))
    assert stats["looked_at"] == 3
    assert stats["with_stream_id"] == 2
    assert stats["values"] == {"": 1, "1": 1}
    assert (stats["first"]["instruction"], stats["first"]["computation"]) == ("x", "c0")


def test_empty_and_absent_maps_are_passed_over() -> None:
    """So is an attribute of that name that is no frontend attribute, and a key that only begins so."""
    module = load("""ENTRY e {
  p = f32[8] parameter(0)
  a = f32[8] all-to-all(p), dimensions={0}, frontend_attributes={}
  b = f32[8] all-to-all(a), dimensions={0}, stream_id=1, metadata={op_name="stream_id=0"}
  ROOT c = f32[8] all-to-all(b), dimensions={0}, frontend_attributes={stream_id_x="1",x_stream_id="1",note="stream_id"}
}
""")
    assert CHECKER.run(module).found is False


def test_of_a_start_the_wrapped_operation_counts() -> None:
    """A start in short is one line; an async-start has attributes of its own, which nobody looks at."""
    short = """ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), f32[4]) reduce-scatter-start(p), dimensions={0}, to_apply=add, frontend_attributes={stream_id="1"}
  ROOT d = f32[4] reduce-scatter-done(s)
}
"""
    assert CHECKER.run(load(short)).found
    long = """w {
  q = f32[8] parameter(0)
  ROOT r = f32[4] reduce-scatter(q), dimensions={0}, to_apply=addINNER
}
ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), f32[4], u32[]) async-start(p), calls=wOUTER
  ROOT d = f32[4] async-done(s)
}
"""
    attribute = ', frontend_attributes={stream_id="1"}'
    assert CHECKER.run(load(long.replace("INNER", attribute).replace("OUTER", ""))).found
    assert CHECKER.run(load(long.replace("INNER", "").replace("OUTER", attribute))).found
    other = ', frontend_attributes={a="1"}'
    assert CHECKER.run(load(long.replace("INNER", attribute).replace("OUTER", other))).found is False


def test_a_custom_call_is_no_collective() -> None:
    """What JAX 0.12 writes before optimisation does not count."""
    module = load("""ENTRY e {
  p = f32[8] parameter(0)
  ROOT c = f32[8] custom-call(p), custom_call_target="all-gather-start", frontend_attributes={stream_id="1"}
}
""")
    result = CHECKER.run(module)
    assert result.found is False
    assert [each["instruction"] for each in stats_of(result)["outside"]] == ["c"]


BROKEN = """ENTRY e {
  p = f32[8] parameter(0)
  g = f32[16] all-gather(p), replica_groups={{0,1}, dimensions={0}, frontend_attributes={stream_id="1"}
  ROOT t = f99[8] all-gather(q), replica_groups={{0,1}}, frontend_attributes={stream_id="0"}
}
"""


def test_what_cannot_be_read_in_full_is_refused_with_its_place() -> None:
    """The first may hide a stream id; the second has one, and lacks type, operand and dimension."""
    with pytest.raises(InputError, match="^<text>:3:[0-9]+: g: ") as caught:
        CHECKER.run(load(BROKEN))
    assert caught.value.line == 3
    result = CHECKER.run(load(BROKEN), keep_going=True)
    assert (result.found, stats_of(result)["looked_at"]) == (False, 0)
    assert [(each["instruction"], each["line"]) for each in stats_of(result)["left_alone"]] == [("g", 3), ("t", 4)]


def test_a_cut_module_is_refused() -> None:
    """Nobody knows what stood behind the cut."""
    cut = "ENTRY e {\n  p = f32[8] parameter(0)\n  t = f32[8] all-to-all(p), dimensions={0}\n"
    with pytest.raises(InputError, match="expected '}' at the end of the computation e"):
        CHECKER.run(load(cut))
    assert CHECKER.run(load(cut), keep_going=True).found is False
