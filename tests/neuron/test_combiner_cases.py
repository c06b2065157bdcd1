"""The combiners on the cases: what upstream XLA does, and what the Neuron documents say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from combiner_modules import WIDE, both, combined, entries, entry, line, options_of, run, with_domains
from commlens.hlo import load
from neuron_cases import cases as neuron_cases
from proto_twin import load_as
from twins_combiner import Op, sets
from xla_cases import cases as xla_cases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@both
@pytest.mark.parametrize(("given", "expect"), xla_cases("combiner"))
def test_sets_of_upstream_cases(given: dict[str, Any], expect: dict[str, Any], backend: str) -> None:
    """The older engine, so a dependent collective ends a set; everything else is as upstream has it today."""
    load_case = with_domains if " domain(" in given["hlo"] else load_as
    result = run(given["kind"], load_case(given["hlo"], backend), **options_of(given))
    assert combined(result) == expect.get("combined_older_break_variant", expect["combined"])
    assert result.changed == result.modified == bool(combined(result))
    for each in entries(result, "combined"):
        new = result.module.instruction(each["name"])
        assert new.operand_names != ()
        opcodes = {name: result.module.instruction(name).opcode for name in each["members"]}
        assert set(opcodes.values()) <= {"get-tuple-element", "transpose"}
        if "gather_dimension" in expect:
            assert new.dimensions == (expect["gather_dimension"],)
            turned = [name for name in each["members"] if opcodes[name] == "transpose"]
            assert turned == expect.get("bitcast_members", [])
        if "channel_id" in expect:
            assert new.channel_id == expect["channel_id"]
        if "combined_sharding" in expect and backend == "text":
            assert new.raw_attribute("sharding") == expect["combined_sharding"]


def test_newest_upstream_differs_in_one_case() -> None:
    """It passes over what depends on a member; the twin shows that this is all the difference."""
    both_sides: list[Any] = [case.values for case in xla_cases("combiner")]
    ((given, expect),) = [case for case in both_sides if "combined_older_break_variant" in case[1]]
    computation = load(given["hlo"]).computations[-1]
    ops = [
        Op(each.name, [*each.operand_names], key="K" if each.opcode == "all-reduce" else None, num_bytes=512)
        for each in computation.instructions
    ]
    limits = (given["options"]["max_bytes"], given["options"]["max_count"])
    assert sets(ops, *limits, skip_reachable=True) == expect["combined"]
    assert sets(ops, *limits) == expect["combined_older_break_variant"]


@both
@pytest.mark.parametrize("case", neuron_cases("combiner_grouping"))
def test_sets_of_documented_cases(case: dict[str, Any], backend: str) -> None:
    """The grouping examples as modules: sizes are bytes, dependence is the operand, no key is a wide reducer."""
    kind = case["kind"]
    sources = {user: source for source, user in case["deps"]}
    lines: list[str] = []
    for each in case["instructions"]:
        changes = {"shape": f"u8[{each['bytes']}]"}
        if each["key"] is None:
            changes["to_apply"] = "wide"
        lines.append(f"{each['id']} = {line(kind, sources.get(each['id'], 'p'), **changes)}")
    module = load_as(entry(*lines, before=WIDE), backend)
    result = run(kind, module, threshold_bytes=case["threshold_bytes"], threshold_count=case["threshold_count"])
    assert combined(result) == case["expected_groups"]
    assert {result.module.instruction(name).opcode for name in case["left_alone"]} <= {kind}


DIFFERENCES: Mapping[str, dict[str, str]] = {
    "element type": {"shape": "bf16[8]"},
    "channel id value (both have one)": {"channel_id": "2"},
    "one has a channel, one has none": {"channel_id": "2"},
    "to_apply multiplies vs adds": {"to_apply": "times"},
    "scatter dimension, by_dim=true": {"dimensions": "{1}"},
    "gather dimension, by_dim=true": {"dimensions": "{1}"},
    "gather dimension, by_dim=false": {"dimensions": "{1}"},
    "one has a control dependency": {"control_predecessors": "{p}"},
}


@both
@pytest.mark.parametrize("case", neuron_cases("combiner_keys_differ"))
def test_differences_of_documented_cases(case: dict[str, Any], backend: str) -> None:
    """What two collectives may differ in, and what keeps them apart."""
    different = DIFFERENCES[case["differs_in"]]
    for kind in case["kind"].split(" or "):
        first = {"channel_id": "1"} if case["differs_in"].startswith("channel id") else {}
        if "dimension" in case["differs_in"]:
            first["shape"], different = "f32[8,8]", {**different, "shape": "f32[8,8]"}
        text = entry(f"x = {line(kind, **first)}", f"y = {line(kind, 'q', **different)}")
        if "dimension" in case["differs_in"]:
            text = text.replace("f32[8] parameter", "f32[8,4] parameter")
        options = {} if kind == "all-reduce" else {"combine_by_dim": "by_dim=false" not in case["differs_in"]}
        result = run(kind, load_as(text, backend), **options)
        assert combined(result) == ([["x", "y"]] if case["combine"] else [])


@pytest.mark.parametrize(("given", "expect"), xla_cases("combiner_merge"))
def test_differing_attributes_are_listed_not_merged(given: dict[str, Any], expect: dict[str, Any]) -> None:
    """Newest upstream merges metadata and frontend attributes, older copies the first; here what differs is told."""
    if "op_names" in given:
        metadata = [f'{{op_name="{name}"}}' for name in given["op_names"]]
        result = run("all-gather", load(two("metadata", metadata)))
        (each,) = entries(result, "combined")
        assert each["dropped"] == {"frontend_attributes": {}, "metadata": {"op_name": given["op_names"]}, "other": {}}
        new = result.module.instruction(each["name"])
        assert new.op_name is None != expect["op_name"]
        assert [result.module.instruction(name).op_name for name in "xy"] == given["op_names"]
    else:
        written = [
            json.dumps(each).replace('": ', "=").replace('{"', "{").replace(', "', ",")
            for each in given["frontend_attributes"]
        ]
        result = run("all-gather", load(two("frontend_attributes", written)))
        (each,) = entries(result, "combined")
        assert each["dropped"]["frontend_attributes"] == {"c": ["red", "blue"]}
        new = result.module.instruction(each["name"])
        assert new.frontend_attributes == {"k": "true"} != expect["frontend_attributes"]


def two(key: str, values: Sequence[str]) -> str:
    """Return a module with two all-gathers that have an attribute each."""
    names = ("x", "y")
    return entry(*(f"{name} = {line('all-gather')}, {key}={value}" for name, value in zip(names, values, strict=True)))
