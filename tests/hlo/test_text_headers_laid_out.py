"""Headers of computations as people lay them out: names, marks and braces on lines of their own, comments between."""

from __future__ import annotations

import re

import pytest

from commlens.analysis import report
from commlens.errors import InputError
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


DAMAGED = (
    "HloModule m, num_partitions=2, a={b\n",
    'HloModule m, num_partitions=2, a={{"o"} : {"p"}, "x\nENTRY %not (p: f32[]) -> f32[] {\n"\n\n',
    "HloModule m, num_partitions=2, entry_computation_layout={(f32[8]{0)->f32[8]{0}}\r\n",
    "HloModule m, num_partitions=2, input_output_alias={{0}: (0, {}, may-alias),\n{1}: (1, {}\n",
)


@pytest.mark.parametrize("header", DAMAGED)
@pytest.mark.parametrize(
    "add", [ADD, "add { u = f32[] parameter(0)\n v = f32[] parameter(1)\n ROOT w = f32[] add(u, v) }\n"]
)
def test_a_brace_of_a_module_header_that_nothing_closes_hides_no_computation(header: str, add: str) -> None:
    """Such a value ends where a computation begins, in a text that no compiler laid out too; strings hide none."""
    module = load(f"{header}{add}ENTRY e /*c*/ {BODY}")
    assert [each.name for each in module.computations] == ["add", "e"]
    assert module.num_partitions == 2
    assert len(report(module).collectives) == 1
    [unread] = module.unread
    assert unread.why.startswith("the module's header: expected brackets and strings that are closed, found '")


def test_a_value_of_a_module_header_may_hold_anything_in_braces_and_strings() -> None:
    """One that is closed ends at its own brace, over as many lines as it takes."""
    header = (
        'HloModule m, origin_recovery_table={\n"o" : {"p"}, "\nENTRY %rec (p: f32[2]) -> f32[4] {\n'
        '  ROOT %ag = f32[4] all-gather(%p), dimensions={0}\n}\n"\n}, num_partitions=2\n\n'
    )
    module = load(f"{header}{ADD}ENTRY e /*c*/ {BODY}")
    assert ([each.name for each in module.computations], module.num_partitions, module.unread) == (["add", "e"], 2, ())


@pytest.mark.parametrize(
    ("header", "where", "why"),
    [
        pytest.param("HloModule m, layout={(f32[8]{0)}, num_partitions=4", "1:29", "expected brackets", id="bracket"),
        pytest.param("HloModule m, a={}, b, num_partitions=4", "1:18", "expected ', attribute=value'", id="no-value"),
        pytest.param('HloModule m,\n  a="x, num_partitions=4', "1:12", "expected ', attribute=value'", id="string"),
        pytest.param(f"HloModule m /*{'c' * 200}*/, =", "1:217", "expected ', attribute=value'", id="behind-a-comment"),
        pytest.param("HloModule m, num_partitions=abc", "1:29", "expected num_partitions to be", id="word"),
        pytest.param("HloModule m, num_partitions={8}", "1:29", "expected num_partitions to be", id="braces"),
        pytest.param("HloModule m, num_partitions=99999999999999999999999", "1:29", "expected num_partitions to be", id="large"),
        pytest.param("HloModule m, num_partitions=-4", "1:29", "expected num_partitions to be", id="negative"),
        pytest.param("HloModule m, replica_count=0, num_partitions=8", "1:28", "expected replica_count to be", id="zero"),
        pytest.param("HloModule m num_partitions=8", "1:13", "expected ', attribute=value'", id="no-comma"),
        pytest.param("HloModule m, num_partitions=8.5", "1:30", "expected ', attribute=value'", id="fraction"),
        pytest.param("HloModule m, num_partitions=8 }", "1:31", "expected ', attribute=value'", id="brace"),
        pytest.param("HloModule m, num_partitions=4, num_partitions=2", "1:32", "the attribute num_partitions is", id="twice"),
    ],
)  # fmt: skip
def test_what_is_damaged_in_a_module_header_is_an_unread_item(header: str, where: str, why: str) -> None:
    """Counts or a mesh may stand behind it, so nobody may take silence for an answer; no pass edits such a module."""
    text = f"{header}\n\n{ADD}ENTRY e {BODY}"
    module = load(text)
    [unread] = module.unread
    assert (unread.where, unread.why.partition(why)[0]) == (where, "the module's header: ")
    with pytest.raises(InputError, match=re.escape(why)):
        NeuronCollectiveStreamIdInjector().run(module)
    assert not load(text.replace(header, "HloModule m, layout={(f32[8]{0})}, num_partitions=4")).unread


@pytest.mark.parametrize(
    "comment", ["/*\n*/", "/* a {\n * b\n **/", "/*" + " x\n" * 190 + "*/"], ids=["empty", "stars", "long"]
)
@pytest.mark.parametrize(
    "text",
    [
        "ENTRY C e {", "ENTRY e C {", "ENTRY %e C (p: f32[8]) -> f32[8] {", "ENTRY %e (p: f32[8])C -> f32[8] {",
        "ENTRY %e (p: f32[8]) ->C f32[8] {", "ENTRY %e (p: f32[8]) -> f32[8] C{", "ENTRY %e (p: C f32[8]) -> f32[8] {",
    ],
)  # fmt: skip
def test_a_comment_of_several_lines_in_a_header(text: str, comment: str) -> None:
    """It stands between any two words, and the computation keeps its name and its place."""
    module = load(f"HloModule m, num_partitions=2\n\n{ADD}{text.replace('C', comment)}{BODY[1:]}")
    assert ([each.name for each in module.computations], module.unread) == (["add", "e"], ())
    assert module.entry is not None
    assert [row.trip_count for row in report(module).collectives] == [1]
