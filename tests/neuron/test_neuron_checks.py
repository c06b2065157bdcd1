"""The rules about Neuron on the documented cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from checking import ADD, module_of, problems_in
from commlens.hlo import TARGETS
from commlens.neuron import RULES
from neuron_cases import cases, section
from neuron_checking import NEURON, braces, distinct_lists, gathered, lines_of, neuron_ids

if TYPE_CHECKING:
    from commlens.analysis import Problem
    from commlens.hlo import Target


def findings_of(case: dict[str, Any]) -> list[Problem]:
    """Build the module of a case and check it."""
    given: dict[str, Any] | list[dict[str, Any]] = case["input"]
    if isinstance(given, dict):
        return findings_of_one(given)
    if "op" in given[0]:
        lines = [line for place, each in enumerate(given) for line in lines_of(each["op"], each["ch"], place)]
    else:
        lines = [gathered(f"g{n}", braces(each["rg"]), f'stream_id="{each["sid"]}"') for n, each in enumerate(given)]
    return problems_in(module_of(*lines, header="num_partitions=2"), target="trn2")


def findings_of_one(given: dict[str, Any]) -> list[Problem]:
    """Check the module of a case with one thing in it."""
    match given:
        case {"num_topologies": number}:
            lines = distinct_lists(number)
        case {"stream_id": stream}:
            lines = [gathered("g", "{{0,1}}", f'stream_id="{stream}"')]
        case {"cores": cores}:
            return problems_in(module_of(header=f"num_partitions={cores}"), target="trn1")
        case {"arch": arch, "lnc": lnc}:
            return problems_in(module_of(), target=arch, lnc=lnc)
        case {"group_size": size}:
            lines = [gathered("g", braces([[*range(size)]]))]
        case {"reduce": operation}:
            reducer = ADD.replace("add {", "both {").replace("add(", f"{operation}(")
            line = "r = f32[8] all-reduce(p), replica_groups={{0,1}}, to_apply=both"
            return problems_in(module_of(line, before=reducer), target="trn2")
        case _:
            lines = [gathered("g", braces(given["rg"]))]
    return problems_in(module_of(*lines), target="trn2", ranks_per_node=given.get("ranks_per_node"))


@pytest.mark.parametrize("case", cases("lint"))
def test_documented_case(case: dict[str, Any]) -> None:
    """The rule of the case says what the case expects, with its severity; a case that is fine has no finding of it."""
    found = [each.severity for each in findings_of(case) if each.rule.id == case["rule"]]
    assert set(found) == (set() if case["expected"] == "ok" else {case["expected"]})


def test_every_neuron_rule_has_a_case() -> None:
    """The rules with targets are those of the documented cases."""
    assert {rule.id for rule in RULES if rule.targets} == {case["rule"] for case in section("lint")}


@pytest.mark.parametrize("target", [None, "gpu", "tpu"])
@pytest.mark.parametrize("case", cases("lint"))
def test_cases_need_a_neuron_target(case: dict[str, Any], target: Target | None) -> None:
    """Without one of Neuron's machines none of its rules speaks."""
    module = module_of(gathered("g", "{{-1,0},{2}}", 'stream_id="x"'), header="num_partitions=4")
    found = neuron_ids(problems_in(module, target=target, lnc=3))
    assert case["rule"] not in found


def test_targets_are_known() -> None:
    """All machines of Neuron are among the targets that can be named."""
    assert set(NEURON) <= set(TARGETS)
