"""Headers of computations as people lay them out: names, marks and braces on lines of their own, comments between."""

from __future__ import annotations

import pytest

from commlens.hlo import load
from commlens.neuron import NeuronCollectiveStreamIdInjector

ADD = "add {\n  u = f32[] parameter(0)\n  v = f32[] parameter(1)\n  ROOT w = f32[] add(u, v)\n}\n\n"
BODY = (
    "{\n  a = f32[8] parameter(0)\n"
    "  ROOT r = f32[8] all-reduce(a), channel_id=1, replica_groups={{0,1}}, to_apply=add\n}\n"
)
ENTRIES = (
    "ENTRY e ",
    "ENTRY\ne ",
    "ENTRY //c\ne ",
    "ENTRY\n\n%e ",
    "ENTRY e\n",
    "ENTRY /*c*/ e ",
    "/*c*/ ENTRY e ",
    "ENTRY e /*c*/ ",
    "ENTRY e (a: f32[8]) /*x*/ -> f32[8] ",
    "ENTRY e (a: f32[8]) //x}\n-> f32[8] ",
)
HELPERS = (
    "helper {\n  ROOT x = f32[] parameter(0)\n}\n",
    "helper\n{\n  ROOT x = f32[] parameter(0)\n}\n",
    "helper /*c*/ {\n  ROOT x = f32[] parameter(0)\n}\n",
    "/*c*/ helper {\n  ROOT x = f32[] parameter(0)\n}\n",
    "helper { y = f32[] parameter(0) ROOT x = f32[] negate(y) }\n",
    "helper {y = f32[] parameter(0)\nROOT x = f32[] negate(y)}\n",
)


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_in_any_layout_is_the_entry(entry: str) -> None:
    """It has its name and its mark, nothing is left over, and a pass edits its line alone."""
    text = f"HloModule m, num_partitions=2\n\n{ADD}{entry}{BODY}"
    module = load(text)
    assert ([each.name for each in module.computations], module.unread) == (["add", "e"], ())
    assert module.entry is not None
    assert module.entry.name == "e"
    product = NeuronCollectiveStreamIdInjector().run(module).module.to_bytes().decode()
    assert product == text.replace("to_apply=add", 'to_apply=add, frontend_attributes={stream_id="0"}')


@pytest.mark.parametrize("helper", HELPERS)
@pytest.mark.parametrize("before", ["", "\n", "// a line\n\n"])
def test_a_computation_in_any_layout_has_its_name(helper: str, before: str) -> None:
    """It stands between others under its own name, with all of its instructions."""
    module = load(f"HloModule m, num_partitions=2\n\n{ADD}{before}{helper}\nENTRY e {BODY}")
    assert ([each.name for each in module.computations], module.unread) == (["add", "helper", "e"], ())
    found = module.computation("helper")
    assert found is not None
    assert found.root.name == "x"
