"""Collectives as AwsNeuron custom calls: targets, configuration, what is left alone, on text and on proto."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any

import pytest

from commlens import load, report
from commlens.errors import InputError
from commlens.hlo import BecomeCustomCall
from commlens.neuron import ConvertCollectivesToCustomCall
from commlens.neuron.passes.convert_collectives_to_custom_call import custom_call_target
from neuron_cases import cases
from proto_twin import load_as

if TYPE_CHECKING:
    from commlens import Module, Row
    from commlens.hlo import Json, PassResult

CONVERT = ConvertCollectivesToCustomCall()
both = pytest.mark.parametrize("backend", ["text", "proto"])

ADD = """add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"""


def text_of(*lines: str, parameter: str = "f32[8]", reducer: str = ADD) -> str:
    """Write a module with an entry of a parameter and some lines; the last is the root."""
    *others, last = (f"p = {parameter} parameter(0)", *lines)
    body = "".join(f"  {line}\n" for line in (*others, f"ROOT {last}"))
    return f"HloModule m, replica_count=2, num_partitions=2\n\n{reducer}\nENTRY e {{\n{body}}}\n"


def converted(result: PassResult) -> dict[str, tuple[str, str]]:
    """Return targets and configurations in the new module, read from its bytes again, by name."""
    module = load(result.module.to_bytes())
    assert module.entry is not None
    calls = [each for each in module.entry.instructions if each.opcode == "custom-call"]
    return {
        each.name: (each.raw_attribute("custom_call_target") or "", each.raw_attribute("backend_config") or "")
        for each in calls
    }


# --- targets --------------------------------------------------------------------------------------------------------

ATTRIBUTES = {
    "all-gather": "replica_groups={{0,1}}, dimensions={0}",
    "all-reduce": "replica_groups={{0,1}}, to_apply=add",
    "reduce-scatter": "replica_groups={{0,1}}, dimensions={0}, to_apply=add",
    "all-to-all": "replica_groups={{0,1}}, dimensions={0}",
    "collective-permute": "source_target_pairs={{0,1},{1,0}}",
    "collective-broadcast": "replica_groups={{0,1}}",
}
SIZES = {"all-gather": 16, "reduce-scatter": 4}


@both
@pytest.mark.parametrize("case", cases("custom_call_target"))
def test_documented_targets(case: dict[str, Any], backend: str) -> None:
    """The target as documented; what is not among the three opcodes stays as it is."""
    opcode, dtype = case["op"], case["result_type"]
    line = f"r = {dtype}[{SIZES.get(opcode, 8)}] {opcode}(p), {ATTRIBUTES[opcode]}"
    reducer = ADD.replace(" add(", f" {case['reduce_root'] or 'add'}(")
    module = load_as(text_of(line, parameter=f"{dtype}[8]", reducer=reducer), backend)
    result = CONVERT.run(module)
    targets = [target for target, _ in converted(result).values()]
    assert targets == ([] if case["expected"] is None else [case["expected"]])
    assert result.changed is result.modified is (case["expected"] is not None)
    assert custom_call_target(opcode, case["reduce_root"], module.instruction("r").shape) == case["expected"]


@both
@pytest.mark.parametrize(
    ("reducer", "expected"),
    [
        pytest.param(ADD, "Add", id="add"),
        pytest.param(ADD.replace("add(a, b)", "add(b, a)"), "Add", id="the-other-way-round"),
        pytest.param(ADD.replace("add(a, b)", "maximum(a, b)"), "Max", id="max"),
        pytest.param(ADD.replace("add(a, b)", "and(a, b)"), "UNKNOWNOP", id="and"),
        pytest.param(ADD.replace("add(a, b)", "add(a, a)"), "UNKNOWNOP", id="one-parameter-twice"),
        pytest.param(ADD.replace("add(a, b)", "maximum(b, b)"), "UNKNOWNOP", id="the-other-twice"),
        pytest.param(ADD.replace("add(a, b)", "subtract(a, b)"), "UNKNOWNOP", id="subtract"),
        pytest.param(
            ADD.replace("  ROOT c = f32[] add(a, b)", "  n = f32[] negate(b)\n  ROOT c = f32[] add(a, n)"),
            "UNKNOWNOP",
            id="an-operand-is-no-parameter",
        ),
        pytest.param(
            ADD.replace("  ROOT c = f32[] add(a, b)", "  s = f32[] add(a, b)\n  ROOT c = f32[] convert(s)"),
            "UNKNOWNOP",
            id="the-root-is-something-else",
        ),
    ],
)
def test_the_reduction_is_the_root_of_two_parameters(reducer: str, expected: str, backend: str) -> None:
    """Add, Max or Min where the reducer's root is one of them over its parameters, else UNKNOWNOP and a warning."""
    module = load_as(text_of("r = f32[8] all-reduce(p), replica_groups={}, to_apply=add", reducer=reducer), backend)
    result = CONVERT.run(module)
    assert converted(result)["r"][0] == f"AwsNeuronAllReduce{expected}_f32"
    assert [("for the reduction" in each, "UNKNOWNOP" in each) for each in result.warnings] == (
        [(True, True)] if expected == "UNKNOWNOP" else []
    )


@both
@pytest.mark.parametrize(
    ("line", "target"),
    [
        pytest.param(
            "r = (f32[8], f32[8]) all-reduce(p, p), replica_groups={}, to_apply=add",
            "AwsNeuronAllReduceAdd_UNKNOWNDTYPE",
            id="variadic",
        ),
        pytest.param(
            "r = (f32[16], f32[16]) all-gather(p, p), replica_groups={{0,1}}, dimensions={0}",
            "AwsNeuronAllGather_UNKNOWNDTYPE",
            id="variadic-all-gather",
        ),
        pytest.param(
            "r = (f32[8]) all-reduce(p), replica_groups={}, to_apply=add",
            "AwsNeuronAllReduceAdd_UNKNOWNDTYPE",
            id="tuple-of-one",
        ),
        pytest.param(
            "r = f32[8] cross-replica-sum(p), replica_groups={}, to_apply=add",
            "AwsNeuronAllReduceAdd_f32",
            id="old-name",
        ),
    ],
)
def test_tuples_have_no_element_type(line: str, target: str, backend: str) -> None:
    """A variadic collective is UNKNOWNDTYPE whatever its parts are; an old name counts as today's."""
    result = CONVERT.run(load_as(text_of(line), backend))
    assert converted(result)["r"][0] == target
    assert any("element type" in each for each in result.warnings) is ("UNKNOWNDTYPE" in target)


# --- configuration --------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("line", "config"),
    [
        pytest.param(
            "r = f32[16] all-gather(p), channel_id=1, replica_groups={{0,1},{2,3}}, dimensions={0}, use_global_device_ids=true",
            '{"replica_groups":[[0,1],[2,3]],"channel_id":1,"use_global_device_ids":true,"dimensions":[0],"constrain_layout":false}',
            id="everything",
        ),
        pytest.param(
            "r = f32[8] all-reduce(p), replica_groups={{1,0}}, to_apply=add",
            '{"replica_groups":[[1,0]],"use_global_device_ids":false,"constrain_layout":false}',
            id="what-is-not-there-is-left-out",
        ),
        pytest.param(
            "r = f32[4] reduce-scatter(p), channel_id=9, replica_groups=[2,2]<=[2,2]T(1,0), constrain_layout=true, dimensions={0}, to_apply=add",
            '{"replica_groups":[[0,2],[1,3]],"channel_id":9,"use_global_device_ids":false,"dimensions":[0],"constrain_layout":true}',
            id="iota-is-written-out",
        ),
        pytest.param(
            "r = f32[8] all-reduce(p), replica_groups=mesh['x'=2,'y'=2] {'y'}, to_apply=add",
            '{"replica_groups":[[0,1],[2,3]],"use_global_device_ids":false,"constrain_layout":false}',
            id="mesh-axes-are-written-out",
        ),
        pytest.param(
            "r = f32[8] all-reduce(p), replica_groups={{3,2},{0,1}}, to_apply=add",
            '{"replica_groups":[[3,2],[0,1]],"use_global_device_ids":false,"constrain_layout":false}',
            id="groups-and-members-keep-their-order",
        ),
        pytest.param(
            "r = f32[8] all-reduce(p), channel_id=2, to_apply=add",
            '{"replica_groups":[],"channel_id":2,"use_global_device_ids":false,"constrain_layout":false}',
            id="no-groups",
        ),
        pytest.param(
            "r = f32[8] all-reduce(p), replica_groups={{0},{2,1},{3,3,9}}, to_apply=add",
            '{"replica_groups":[[0],[2,1],[3,3,9]],"use_global_device_ids":false,"constrain_layout":false}',
            id="wrong-groups-are-values",
        ),
    ],
)
def test_the_configuration_to_the_byte(line: str, config: str, backend: str) -> None:
    """Keys in their order, no blanks, groups verbatim."""
    assert converted(CONVERT.run(load_as(text_of(line), backend)))["r"][1] == config


@pytest.mark.parametrize("channel", [0, -3])
def test_odd_channels_of_a_text_stay(channel: int) -> None:
    """A text can state ids that a proto cannot."""
    line = f"r = f32[8] all-reduce(p), channel_id={channel}, replica_groups={{}}, to_apply=add"
    result = CONVERT.run(load(text_of(line)))
    assert json.loads(converted(result)["r"][1])["channel_id"] == channel
    assert report(result.module).collectives[0].channel_id == channel


# --- what it is afterwards ------------------------------------------------------------------------------------------

MANY = text_of(
    'g = f32[16] all-gather(p), channel_id=1, replica_groups={{0,1},{2,3}}, dimensions={0}, use_global_device_ids=true, frontend_attributes={collective_type="tp_all_gather",stream_id="0"}',
    'h = f32[8] reduce-scatter(g), channel_id=2, replica_groups={{0,2},{1,3}}, use_global_device_ids=true, dimensions={0}, to_apply=add, metadata={op_name="a/b"}',
    "i = f32[8] all-reduce(h), replica_groups={{0,1}}, to_apply=add, control-predecessors={g}",
    "j = (f32[8], f32[8]) all-reduce(i, h), channel_id=4, replica_groups={}, to_apply=add",
    "k = f32[8] get-tuple-element(j), index=1",
    'l = (f32[16], f32[]) all-gather(k, s), replica_groups={{0,1}}, dimensions={0}, frontend_attributes={has_token="1"}',
    "m = f32[8] all-to-all(k), replica_groups={{0,1}}, dimensions={0}",
).replace("  g = ", "  s = f32[] constant(0)\n  g = ")


def meaning(row: Row) -> dict[str, Any]:
    """Return what a row says but for the spelling of its groups."""
    said: dict[str, Any] = row.as_dict()
    groups = said.pop("replica_groups")
    return {**said, "groups": groups and groups["groups"]}


@both
def test_the_product_reads_back_as_the_same_rows(backend: str) -> None:
    """Names, shapes, bytes, groups, participants, channel, attributes, tokens: all as before."""
    module = load_as(MANY, backend)
    result = CONVERT.run(module)
    before, after = report(module), report(load(result.module.to_bytes(), replicas=2, partitions=2))
    if backend == "proto":
        before = report(load(module.to_bytes(), replicas=2, partitions=2))
    assert len(converted(result)) == 5
    assert [meaning(row) for row in after.collectives] == [meaning(row) for row in before.collectives]
    assert (after.unread, before.unread) == ((), ())


def test_other_lines_of_a_text_stay_as_they_are() -> None:
    """Byte by byte, but for the lines of the collectives themselves, and of those only what the conversion is about."""
    result = CONVERT.run(load(MANY))
    before, after = MANY.splitlines(), result.module.to_bytes().decode().splitlines()
    opcodes = ("all-gather(", "reduce-scatter(", "all-reduce(")
    assert [new for old, new in zip(before, after, strict=True) if not any(each in old for each in opcodes)] == [
        old for old in before if not any(each in old for each in opcodes)
    ]
    [removed, added] = [line for line in difflib.ndiff(before, after) if "h = " in line and line[0] in "-+"]
    assert removed.startswith("-   h = f32[8] reduce-scatter(g), ")
    config = '{"replica_groups":[[0,2],[1,3]],"channel_id":2,"use_global_device_ids":true,"dimensions":[0],"constrain_layout":false}'
    assert added.rstrip() == (
        '+   h = f32[8] custom-call(g), custom_call_target="AwsNeuronReduceScatterAdd_f32", '
        f'backend_config={config}, metadata={{op_name="a/b"}}'
    )


@both
def test_a_second_run_changes_nothing(backend: str) -> None:
    """What is converted is no collective any more, and is named as what it is."""
    first = CONVERT.run(load_as(MANY, backend))
    second = CONVERT.run(load(first.module.to_bytes()))
    assert (second.changed, second.modified, second.edits) == (False, False, ())
    assert reasons(second) == {
        **dict.fromkeys("ghijl", "it is a custom call already"),
        "m": "only all-gather, all-reduce, reduce-scatter are converted",
    }


@both
def test_the_given_module_stays(backend: str) -> None:
    """The argument is left as it was, and the same run gives the same bytes."""
    module = load_as(MANY, backend)
    before = module.to_bytes()
    first, second = CONVERT.run(module), CONVERT.run(module)
    assert module.to_bytes() == before
    assert first.module.to_bytes() == second.module.to_bytes() != before


def test_conversions_are_listed_in_post_order() -> None:
    """As the walk from the root meets them, operand 0 first, whatever the order of the list."""
    lines = (
        "y = f32[8] all-reduce(p), to_apply=add",
        "z = f32[8] all-reduce(p), to_apply=add",
        "r = f32[8] add(z, y)",
    )
    result = CONVERT.run(load(text_of(*lines)))
    assert [edit.instruction.name for edit in result.edits if isinstance(edit, BecomeCustomCall)] == ["z", "y"]
    listed: Json = result.stats["converted"]
    assert listed == [
        {"instruction": "z", "computation": "e", "line": 12, "target": "AwsNeuronAllReduceAdd_f32"},
        {"instruction": "y", "computation": "e", "line": 11, "target": "AwsNeuronAllReduceAdd_f32"},
    ]


# --- what is left alone ---------------------------------------------------------------------------------------------


def reasons(result: PassResult) -> dict[str, str]:
    """Return why what was left alone, by name."""
    untouched: Any = result.stats["untouched"]
    return {each["instruction"]: each["why"] for each in untouched}


ELSEWHERE = """HloModule m

body {
  q = f32[8] parameter(0)
  ROOT inner = f32[16] all-gather(q), replica_groups={{0,1}}, dimensions={0}
}

ENTRY e {
  p = f32[8] parameter(0)
  ROOT c = f32[16] call(p), to_apply=body
}
"""
SUGAR = text_of(
    "s = ((f32[8]), f32[4]) reduce-scatter-start(p), replica_groups={{0,1}}, dimensions={0}, to_apply=add",
    "d = f32[4] reduce-scatter-done(s)",
)
STARTED = text_of(
    "s = f32[8] all-reduce-start(p), replica_groups={{0,1}}, to_apply=add", "d = f32[8] all-reduce-done(s)"
)
JAX = text_of(
    'j = f32[16] custom-call(p), custom_call_target="all-gather-start", frontend_attributes={async_collective_config={"replica_groups":[[0,1]],"all_gather_dimension":0}}'
)


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        pytest.param(ELSEWHERE, "inner", "only the entry computation is converted", id="other-computation"),
        pytest.param(STARTED, "s", "it is asynchronous", id="start"),
        pytest.param(SUGAR, "s", "it is asynchronous", id="start-of-a-wrapped-one"),
        pytest.param(
            text_of("t = f32[8] all-to-all(p), replica_groups={{0,1}}, dimensions={0}"),
            "t",
            "only all-gather, all-reduce, reduce-scatter are converted",
            id="other-opcode",
        ),
        pytest.param(JAX, "j", "it is a custom call already", id="custom-call-of-jax"),
    ],
)
def test_what_is_left_alone_is_named(text: str, name: str, why: str) -> None:
    """The module stays as it is, and the reason is told."""
    result = CONVERT.run(load(text))
    assert (result.changed, result.modified, result.module.to_bytes().decode()) == (False, False, text)
    assert reasons(result) == {name: why}


def test_a_module_without_communication_stays() -> None:
    """There is nothing to say then."""
    result = CONVERT.run(load(text_of("n = f32[8] negate(p)")))
    assert (result.modified, result.stats) == (False, {"converted": [], "untouched": [], "left_alone": []})


@both
def test_a_configuration_that_was_there_is_told(backend: str) -> None:
    """What the collective had as its backend_config gives way to the groups; a warning says so."""
    line = 'r = f32[8] all-reduce(p), replica_groups={}, to_apply=add, backend_config={"is_sync":true}'
    result = CONVERT.run(load_as(text_of(line), backend))
    assert "is_sync" not in converted(result)["r"][1]
    place = " (line 11)" if backend == "text" else ""
    assert result.warnings == (f"the groups take the place of the backend_config that r{place} had",)


# --- what cannot be understood --------------------------------------------------------------------------------------

GOOD = "g = f32[8] all-reduce(p), replica_groups={}, to_apply=add"
EMPTY = "none {\n}\n"
BAD = {
    "groups": ("r = f32[8] all-reduce(p), replica_groups={{0,1}, to_apply=add", "m.hlo:12:COLUMN: r: "),
    "reducer": (
        "r = f32[8] all-reduce(p), replica_groups={}",
        "m.hlo:12:8: r: expected to_apply= to name a computation",
    ),
    "other-reducer": (
        "r = f32[8] all-reduce(p), to_apply=sub",
        "m.hlo:12:8: r: expected to_apply= to name a computation",
    ),
    "empty-reducer": (
        "r = f32[8] all-reduce(p), to_apply=none",
        "m.hlo:12:8: r: expected to_apply= to name a computation of the module with something in it, found none",
    ),
    "dimension": (
        "r = f32[16] all-gather(p), replica_groups={}",
        "m.hlo:12:8: r: expected all-gather to state its dim",
    ),
    "too-many-ids": (
        "r = f32[8] all-reduce(p), replica_groups=[100000,100000]<=[10000000000], to_apply=add",
        "m.hlo:12:8: r: expected at most 16,777,216 ids in its groups, to write them out, found 10,000,000,000",
    ),
}


def loaded(text: str) -> Module:
    """Load a text as if it stood in a file."""
    module = load(text)
    module.path = "m.hlo"
    return module


@pytest.mark.parametrize("name", BAD)
def test_a_collective_that_cannot_be_read_is_refused_with_its_place(name: str) -> None:
    """The module is not half converted."""
    line, says = BAD[name]
    with pytest.raises(InputError) as caught:
        CONVERT.run(loaded(text_of(GOOD, line) + EMPTY))
    assert str(caught.value).startswith(says.replace("COLUMN", str(caught.value.column)))


@pytest.mark.parametrize("name", BAD)
def test_going_on_leaves_it_alone_and_says_so(name: str) -> None:
    """The others are converted."""
    line, says = BAD[name]
    text = text_of(GOOD, line) + EMPTY
    result = CONVERT.run(loaded(text), keep_going=True)
    left: Any = result.stats["left_alone"]
    assert [(each["instruction"], each["line"]) for each in left] == [("r", 12)]
    column = "" if left[0]["column"] is None else f":{left[0]['column']}"
    assert f"m.hlo:12{column}: r: {left[0]['why']}".startswith(says.replace(":COLUMN", column))
    assert list(converted(result)) == ["g"]
    assert line in result.module.to_bytes().decode()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(ELSEWHERE[: ELSEWHERE.index("ENTRY")].replace("body {", "body (q: f32[8]) -> f32[16] {"), "module m: expected an entry computation", id="no-entry"),
        pytest.param(ELSEWHERE.rstrip("}\n"), "m.hlo:8: expected '}' at the end of the computation e", id="cut"),
    ],
)  # fmt: skip
def test_a_module_without_a_whole_entry_is_refused(text: str, says: str) -> None:
    """Nobody knows what else would stand there."""
    with pytest.raises(InputError) as caught:
        CONVERT.run(loaded(text))
    assert says in str(caught.value)
    result = CONVERT.run(loaded(text), keep_going=True)
    assert (result.modified, len(list(result.stats))) == (False, 3)
    assert result.stats["left_alone"]
