"""Collectives as AwsNeuron custom calls: targets, configuration, the product, on text and on proto."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any

import pytest

from commlens import load, report
from commlens.hlo import BecomeCustomCall
from commlens.neuron.passes.convert_collectives_to_custom_call import custom_call_target
from converting import ADD, CONVERT, both, converted, reasons, text_of
from neuron_cases import cases
from proto_twin import load_as

if TYPE_CHECKING:
    from commlens import Row
    from commlens.hlo import Json

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
