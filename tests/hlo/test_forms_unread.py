"""Texts that are cut, broken or wrong: what cannot be read is named, and all else is read.

The numbers are those of the list of syntactic variants that these modules were made from.
"""

from __future__ import annotations

import pytest

from commlens.hlo.discovery import discover
from commlens.hlo.text import read_modules
from forms import HEAD, module


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("x = f32[8]{0} all-reduce(a), replica_groups={{0,1}, to_apply=plus", "replica_groups"),
        ("x = f32[8]{0} all-reduce(a), replica_groups=[2,4]<=[9], to_apply=plus", "replica_groups"),
        ("x = f32[8]{0} all-reduce(a), replica_groups=mesh['dp'=2,'tp'=4] {'nope'}, to_apply=plus", "nope"),
        ("x = f32[8]{0} all-reduce(a), replica_groups={{0,9223372036854775808}}, to_apply=plus", "replica_groups"),
        ("x = f32[8]{0} all-reduce(a), channel_id=9223372036854775808, to_apply=plus", "channel_id"),
        ("x = f32[8]{0} all-reduce(a), channel_id=1, use_global_device_ids=1, to_apply=plus", "true or false"),
        ("x = f32[8]{0} collective-permute(a)", "source_target_pairs"),
        ("x = f32[8]{0} collective-permute(a), source_target_pairs={{0,1,2}}", "source_target_pairs"),
        ("x = f32[8]{0} all-gather(a)", "dimension"),
        ("x = f32[8]{0} all-gather(a), replica_groups={}, dimensions={}", "dimension"),
        ("x = f32[8]{0} all-to-all(a), dimensions={}", "dimension"),
        ("x = f33[8]{0} all-reduce(a), to_apply=plus", "f33"),
        ("x = f32[8]{0} all-reduce(nobody), to_apply=plus", "nobody"),
        ("x = f32[8 all-reduce(a), to_apply=plus", "expected"),
        ('x = f32[8]{0} custom-call(a), custom_call_target="AwsNeuronAllReduce_f32"', "JSON"),
        ('x = f32[8]{0} custom-call(a), custom_call_target="all-gather-start"', "JSON"),
        ("x = ((f32[8]{0}), f32[8]{0}) async-start(a), calls=nowhere", "nowhere"),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_is_read(line: str, fact: str) -> None:
    """A fault costs one instruction: it is unread with a reason, and its neighbour is a row."""
    good = "\n  y = f32[8]{0} all-reduce(a), replica_groups={{0,1}}, to_apply=plus"
    found = discover(module(f"  {line}{good}"))
    assert [site.name for site in found.sites] == ["y"]
    (item,) = found.unread
    assert fact in item.why
    assert item.where == "11"


@pytest.mark.parametrize(
    "attributes",
    [
        "replica_groups={{0,0}}",
        "replica_groups={{0,1},{1,2}}",
        "replica_groups={{0,-1}}",
        "replica_groups={{0,1},{}}",
        "replica_groups={{0,1},{2}}",
        "use_global_device_ids=true",
        "channel_id=0",
        "channel_id=-3",
        "unheard_of={1,2}",
        "mode=flattened_id",
    ],
)
def test_values_are_values_however_wrong(attributes: str) -> None:
    """Whatever can be read is a row; judging it is not the reader's business."""
    found = discover(module(f"  x = f32[8]{{0}} all-reduce(a), {attributes}, to_apply=plus"))
    assert (len(found.sites), found.unread) == (1, ())


def test_33_cut_text_gives_what_it_has() -> None:
    """A row whose metadata is cut is read, and the cut is said."""
    text = """ENTRY %top (a: f32[8]) -> f32[64] {
  %a = f32[8]{0} parameter(0)
  %k = f32[4096]{0} constant({...})
  %g = f32[64]{0} all-gather(%a), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true, metadata={op_name="jit(f)/all_ga"""
    (found,) = read_modules(text.encode())
    result = discover(found)
    assert [(site.name, site.op_name) for site in result.sites] == [("g", "jit(f)/all_ga")]
    assert ["top" in item.why for item in result.unread] == [True]


def test_a_missing_brace_costs_no_computation() -> None:
    """Where a computation is not closed, the next header starts the next one all the same."""
    text = (
        HEAD.replace("}\n", "")
        + "ENTRY top {\n  a = f32[8]{0} parameter(0)\n  x = f32[8]{0} all-reduce(a), to_apply=plus\n}\n"
    )
    (found,) = read_modules(text.encode())
    result = discover(found)
    assert [site.computation_name for site in result.sites] == ["top"]
    assert ["plus" in item.why for item in result.unread] == [True]


def test_loose_lines_are_read() -> None:
    """A fragment without computation and header is read as far as it goes."""
    text = "  x = f32[8]{0} all-reduce(f32[8]{0} a), replica_groups={{0,1}}, to_apply=plus\n  y = f32[8] negate(x)\n"
    (found,) = read_modules(text.encode())
    result = discover(found)
    assert [(site.name, site.computation_name) for site in result.sites] == [("x", "")]
    assert result.call_graph.executions("") is None


@pytest.mark.parametrize(
    "text", ["", "hello\n", "x = 3\n", "int main() {\n  return 0;\n}\n", "{}[]()\n" * 50, '"' * 99, "\0" * 99]
)
def test_text_without_instructions_is_no_module(text: str) -> None:
    """Prose, code and rubbish hold no module, and reading them ends."""
    assert all(not discover(found).sites for found in read_modules(text.encode()))


def test_108_without_stack_frame_tables_there_is_no_source() -> None:
    """A frame id that leads nowhere is no source, and no fault."""
    found = discover(module('  x = f32[8]{0} all-reduce(a), to_apply=plus, metadata={op_name="f" stack_frame_id=3}'))
    assert [(site.op_name, site.source) for site in found.sites] == [("f", None)]


def test_bodies_without_instructions_are_empty() -> None:
    """A pair of braces that looks like a computation may hold nothing."""
    (found,) = read_modules(b"HloModule m\nENTRY e {\n   something else\n}\n")
    assert [computation.instructions for computation in found.computations] == [()]
    assert discover(found).sites == ()
    assert read_modules(b"HloModule m\ne {\n   something else\n}\n") == []
