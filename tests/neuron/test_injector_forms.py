"""The stream id injector on asynchronous forms, disguises, and what cannot be read."""

from __future__ import annotations

import pytest

from commlens import load
from commlens.errors import InputError
from commlens.hlo import Computation, SetFrontendAttribute
from commlens.neuron import NeuronCollectiveStreamIdInjector
from neuron_modules import stats_of
from proto_modules import attributes, instruction, module
from proto_twin import load_as
from stamping import DP, INJECTOR, TP, gather, stamped

# --- asynchronous forms and disguises -------------------------------------------------------------------------------


def test_a_start_in_short_counts_where_its_line_stands() -> None:
    """It makes an exemplar by what it wraps, and its line is stamped; update and done are not."""
    module = load("""ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), f32[4]) reduce-scatter-start(p), replica_groups={{0,2},{1,3}}, dimensions={0}, to_apply=add, frontend_attributes={collective_type="fsdp_reduce_scatter"}
  u = ((f32[8]), f32[4]) reduce-scatter-update(s)
  d = f32[4] reduce-scatter-done(u)
  i = ((s32[8]), s32[8]) all-to-all-start(p), replica_groups={{0,1},{2,3}}, dimensions={0}, frontend_attributes={collective_type="tp_all_gather"}
}
""")
    result = INJECTOR.run(module)
    assert stats_of(result)["fsdp_exemplar"]["instruction"] == "s"
    assert stats_of(result)["tp_exemplar"] is None
    assert {each.name: each.frontend_attributes.get("stream_id") for each in result.module.computations[-1].instructions} == {
        "p": None, "s": "1", "u": None, "d": None, "i": "0",
    }  # fmt: skip


def test_of_a_start_in_short_the_wrapped_result_is_integer_or_not() -> None:
    """Its operands, the first part of what the line states, do not count (which only a made-up line can show)."""
    module = load("""ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), s32[8]) all-to-all-start(p), dimensions={0}, frontend_attributes={collective_type="tp_all_gather"}
}
""")
    assert INJECTOR.run(module).changed is False


def test_an_explicit_start_is_stamped_on_what_it_wraps() -> None:
    """In place, in its own computation, and on the async-start, whose attributes XLA puts in the place of its own."""
    text = """w {
  q = f32[8] parameter(0)
  ROOT r = f32[4] reduce-scatter(q), replica_groups={{0,2},{1,3}}, dimensions={0}, to_apply=add, frontend_attributes={collective_type="fsdp_reduce_scatter"}
}

ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), f32[4], u32[]) async-start(p), calls=w, frontend_attributes={collective_type="tp_all_gather"}
  ROOT d = f32[4] async-done(s)
}
"""
    result = INJECTOR.run(load(text))
    stamped = text.replace('_scatter"}', '_scatter",stream_id="0"}').replace('_gather"}', '_gather",stream_id="0"}')
    assert result.module.to_bytes().decode() == stamped
    assert stats_of(result)["tp_exemplar"]["instruction"] == "r"
    assert stats_of(result)["fsdp_exemplar"] is None
    bare = text.replace(', frontend_attributes={collective_type="tp_all_gather"}', "")
    own = INJECTOR.run(load(bare))
    assert own.module.to_bytes().decode() == bare.replace('reduce_scatter"}', 'reduce_scatter",stream_id="1"}')


def test_custom_calls_are_named_and_left_alone() -> None:
    """What JAX 0.12 and our own conversion write is no collective in XLA's memory; other custom calls are no matter."""
    text = """ENTRY e {
  p = f32[8] parameter(0)
  a = f32[16] custom-call(p), custom_call_target="all-gather-start", frontend_attributes={async_collective_config={"replica_groups":[[0,1]],"all_gather_dimension":0},collective_type="tp_all_gather"}
  b = f32[8] custom-call(p), custom_call_target="AwsNeuronAllReduceAdd_f32", backend_config={"replica_groups":[[0,1]]}
  ROOT c = f32[8] custom-call(p), custom_call_target="gemm"
}
"""
    module = load(text)
    result = INJECTOR.run(module)
    assert result.module is module
    assert [(each["opcode"], each["instructions"]) for each in stats_of(result)["untouched"]] == [
        ("custom-call all-gather-start", ["a"]),
        ("custom-call AwsNeuronAllReduceAdd_f32", ["b"]),
    ]


def test_cross_replica_sum_is_all_reduce() -> None:
    """The name of 2018 counts."""
    text = "ENTRY e {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] cross-replica-sum(p), replica_group_ids={0,0,1,1}, to_apply=add\n}\n"
    assert INJECTOR.run(load(text)).module.instruction("r").frontend_attributes == {"stream_id": "0"}


# --- what cannot be read --------------------------------------------------------------------------------------------


BROKEN = """ENTRY e {
  p = f32[8] parameter(0)
  g = f32[16] all-gather(p), replica_groups=[2,2]<=[5], dimensions={0}
  ROOT t = f32[8] all-to-all(p), replica_groups={{0,1}}, dimensions={0}
}
"""


def test_unreadable_groups_are_refused_with_their_place() -> None:
    """Nothing is half-edited; with keep_going that one is left, and named, and the others are stamped."""
    with pytest.raises(InputError, match=r"^<text>:3:\d+: g: "):
        INJECTOR.run(load(BROKEN))
    result = INJECTOR.run(load(BROKEN), keep_going=True)
    assert [(each["instruction"], each["line"]) for each in stats_of(result)["left_alone"]] == [("g", 3)]
    assert result.module.to_bytes().decode() == BROKEN.replace(
        "{{0,1}}, dimensions={0}", '{{0,1}}, dimensions={0}, frontend_attributes={stream_id="0"}'
    )


def test_an_order_that_cannot_be_made_out_is_refused() -> None:
    """Two marked collectives with different groups, and an instruction between them that cannot be taken apart."""
    text = """ENTRY e {
  p = f32[8] parameter(0)
  a = f32[16] all-gather(p), replica_groups={{0,1}}, dimensions={0}, frontend_attributes={collective_type="tp_all_gather"}
  x = f32[8] negate p
  b = f32[16] all-gather(p), replica_groups={{1,0}}, dimensions={0}, frontend_attributes={collective_type="tp_all_gather"}
}
"""
    for keep_going in (False, True):
        with pytest.raises(
            InputError, match=r"^<text>:4:\d+: computation e: 2 marked collectives with different groups compete"
        ):
            INJECTOR.run(load(text), keep_going=keep_going)
    assert INJECTOR.run(load(text.replace("{{1,0}}", "{{0,1}}"))).changed


@pytest.mark.parametrize("backend", ["text", "proto"])
def test_an_order_in_which_something_is_needed_too_early_is_refused(backend: str) -> None:
    """XLA reads no such module, so there is no post-order to go by; where none is needed nothing is looked at."""
    text = """HloModule m
ENTRY e {
  p = f32[8] parameter(0)
  a = f32[16] all-gather(p), replica_groups={{0,1}}, dimensions={0}, frontend_attributes={collective_type="tp_all_gather"}
  x = f32[8] negate(y)
  y = f32[8] negate(p)
  ROOT b = f32[16] all-gather(p), replica_groups={{1,0}}, dimensions={0}, frontend_attributes={collective_type="tp_all_gather"}
}
"""
    for keep_going in (False, True):
        with pytest.raises(
            InputError, match="compete .*: x: expected all that it needs .*, found y behind it"
        ) as caught:
            INJECTOR.run(load_as(text, backend), keep_going=keep_going)
        assert (caught.value.line, caught.value.column) == ((5, 3) if backend == "text" else (None, None))
    assert INJECTOR.run(load_as(text.replace("{{1,0}}", "{{0,1}}"), backend)).changed


def test_a_cut_module_is_refused() -> None:
    """Nobody knows which exemplar stood behind the cut."""
    with pytest.raises(InputError, match="expected '}' at the end of the computation e"):
        INJECTOR.run(load("ENTRY e {\n  p = f32[8] parameter(0)\n  t = f32[8] all-to-all(p), dimensions={0}\n"))


def test_order_is_not_made_out_where_it_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """One marked collective, or several with equal groups, need no post-order; only the last computation's can."""
    calls: list[str] = []
    real = Computation.post_order
    monkeypatch.setattr(Computation, "post_order", lambda self: (calls.append(self.name), real(self))[1])
    same, other = gather(TP, ct="tp_all_gather"), gather(DP, ct="tp_all_gather")
    stamped([[same, other], [same, same, gather(DP, ct="fsdp_all_gather")]], "text")
    assert calls == []
    stamped([[same, other], [same, other]], "text")
    assert calls == ["c1"]


DAMAGED_MAP = """HloModule m, num_partitions=2

ENTRY e {
  p = f32[8] parameter(0)
  x = f32[16] all-gather(p), dimensions={0}, replica_groups={{0,1}}, frontend_attributes={"stream_id"="0"}
  ROOT y = f32[16] all-gather(p), dimensions={0}, replica_groups={{0,1}}
}
"""


def test_a_map_that_cannot_be_added_to_is_refused_with_its_place() -> None:
    """Nothing can be put into it, so that is said with its place."""
    with pytest.raises(InputError, match="x: frontend_attributes cannot be read") as caught:
        NeuronCollectiveStreamIdInjector().run(load(DAMAGED_MAP))
    assert (caught.value.line, caught.value.column) == (5, 91)


def test_a_map_that_cannot_be_added_to_can_be_left_alone() -> None:
    """The others are stamped, and it is said which is not."""
    result = NeuronCollectiveStreamIdInjector().run(load(DAMAGED_MAP), keep_going=True)
    assert [edit.instruction.name for edit in result.edits if isinstance(edit, SetFrontendAttribute)] == ["y"]
    assert result.module.to_bytes().count(b'stream_id="0"') == 1
    assert [left["instruction"] for left in stats_of(result)["left_alone"]] == ["x"]


MARKED = ', frontend_attributes={collective_type="tp_all_gather"}'


@pytest.mark.parametrize("damage", ["{{0,x}}", "[2,2]<=[5]"])
def test_a_marked_collective_that_is_left_out_is_said(damage: str) -> None:
    """It would have been the exemplar, so it would be untrue that none is marked."""
    text = BROKEN.replace("[2,2]<=[5], dimensions={0}", f"{damage}, dimensions={{0}}{MARKED}")
    result = INJECTOR.run(load(text), keep_going=True)
    assert result.warnings == (
        "no collective that could be read in full is marked as one of TP or FSDP by collective_type: all 1 get stream_id"
        ' "0", and `changed` is false all the same, as documented',
        "collective_type marks g (line 3), left out because not all of it can be read: its groups stand for no stream,"
        " so others may get another stream_id than with it",
    )


def test_a_left_out_exemplar_is_said_beside_another_one() -> None:
    """Its kind of parallelism has no groups then, whatever the other kind has."""
    text = BROKEN.replace("[2,2]<=[5], dimensions={0}", f"[2,2]<=[5], dimensions={{0}}{MARKED}").replace(
        "{{0,1}}, dimensions={0}", '{{0,1}}, dimensions={0}, frontend_attributes={collective_type="fsdp_all_gather"}'
    )
    result = INJECTOR.run(load(text), keep_going=True)
    [warning] = [each for each in result.warnings if "left out" in each]
    assert warning.startswith("collective_type marks g (line 3), left out")


def test_a_left_out_collective_without_a_mark_is_only_left_out() -> None:
    """Nothing is known of marks but what was read."""
    [warning] = INJECTOR.run(load(BROKEN), keep_going=True).warnings
    assert warning.startswith("no collective that could be read in full is marked")


def test_a_marked_proto_instruction_that_is_left_out_is_said() -> None:
    """A proto keeps the mark of an all-gather that states no dimension."""
    plain, marked = instruction("all-gather", 2, [1]), instruction("all-gather", 3, [1])
    plain.dimensions[:] = [0]
    marked.frontend_attributes.CopyFrom(attributes({"collective_type": "fsdp_all_gather"}))
    result = INJECTOR.run(load(module(plain, marked).SerializeToString()), keep_going=True)
    assert [each.instruction for each in result.left_alone] == ["x3"]
    assert result.warnings[1].startswith("collective_type marks x3, left out because")
