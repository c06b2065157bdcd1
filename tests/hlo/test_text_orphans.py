"""Calls of collectives that damage hides in something else: each is a row or an unread item, whatever stands around."""

from __future__ import annotations

import pytest

import commlens
from commlens.errors import CommlensError
from commlens.neuron import NeuronAllReduceCombiner
from independent_counter import calls_of_collectives

HEADER = "HloModule m, num_partitions=8\n\n"
ADD = "%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  ROOT %b = f32[] parameter(1)\n}\n\n"
REDUCE = "all-reduce(%p), replica_groups={}, to_apply=%add"
HIDDEN = {
    "behind two signs of equality, before another damaged line": (
        "ENTRY main {\n"
        "  s == (f32[8]{0}, f32[8]{0}) collective-permute-start(p), source_target_pairs={{0,1},{1,0}}\n"
        "  ROOT r = f32[8]{0} all=to-all(d), replica_groups={{0,1,2,3,4,5,6,7}}, dimensions={0}\n}\n"
    ),
    "in metadata that lost their end, before another damaged line": (
        "ENTRY main {\n  p = f32[8]{0} parameter(0)\n"
        '  x = f32[8]{0} negate(p), metadata={op_name="a"  s = f32[8]{0} all-reduce(p), replica_groups={}\n'
        "  ROOT r = f32[8]{0} neg=ate(p)\n}\n"
    ),
    "behind quotes that make strings of code and code of strings": (
        '3 "run\n  m = f32[] parameter(0), metadata={op_name="j"}\n1 x"\n'
        "ENTRY e {\n  p = f32[8]{0} parameter(0)\n"
        '  ROOT a = f32[8]{0} all-reduce(p), replica_groups={}, to_apply=add, metadata={op_name="x"}\n}\n'
    ),
    "in a fusion whose attribute lost its value": (
        "ENTRY %main () -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n"
        f"  ROOT %f = f32[8]{{0}} fusion(%p), kind=kLoop, calls=%add, frontend_attributes{{0}} {REDUCE}\n}}\n"
    ),
    "in the head of a computation": (
        f"%other (a: f32[]) all-reduce(-> f32[] {{\n  ROOT %a = f32[] parameter(0)\n}}\n\n{ADD}"
        "ENTRY %main () -> f32[8] {\n  ROOT %p = f32[8]{0} parameter(0)\n}\n"
    ),
    "not right before its parenthesis, behind a brace too many": (
        f"{ADD[:-1]} }} body {{ p = f32[8] parameter(0) x = f32[8]  all-reduce\t (p), replica_groups={{}} }}\n"
    ),
    "right behind a string": (
        f'"stray" ENTRY e {{\n  %p = f32[8] parameter(0), metadata={{op_name="x"}}\n  ROOT %r = f32[8] "x"{REDUCE}\n}}\n'
    ),
}
CLEAR = {
    "in a string": f'ENTRY e {{\n  ROOT %p = f32[8] parameter(0), metadata={{op_name="x {REDUCE}"}}\n}}\n',
    "in a comment": f"ENTRY e {{\n  /* f32[8] {REDUCE} */ ROOT %p = f32[8] parameter(0)\n}}\n",
    "in a name": "%all-reduce (a: f32[]) -> f32[] {\n  ROOT %a = f32[] parameter(0)\n}\n\n" + ADD,
    "in a name without a mark": ADD + "all-gather (a: f32[]) -> f32[] {\n  ROOT %a = f32[] parameter(0)\n}\n",
    "in a name behind its mark": ADD + "ENTRY all-gather /* */ (a: f32[]) -> f32[] { ROOT %a = f32[] parameter(0) }\n",
    "in a sentence": ADD + "I0000 main.cc:1] the last all-reduce (of three) took 2 s, no all-gather (none) did\n",
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN.keys())
def test_a_hidden_call_is_an_unread_item(text: str) -> None:
    """What a simple counter sees is never more than the rows and unread items."""
    data = (HEADER + text).encode()
    report = commlens.report(commlens.load(data))
    assert calls_of_collectives(data) == 1
    assert [*report.collectives] == []
    assert len(report.unread) >= 1


@pytest.mark.parametrize("text", CLEAR.values(), ids=CLEAR.keys())
def test_what_is_no_call_is_no_item(text: str) -> None:
    """Strings, comments and names of computations may hold what looks like a call."""
    report = commlens.report(commlens.load(HEADER + text))
    assert ([*report.collectives], [*report.unread]) == ([], [])


def test_a_computation_that_wraps_itself_does_not_vanish() -> None:
    """XLA has no such module: the collective is a row all the same, and the start an unread item."""
    text = (
        "c {\n  p = f32[1] parameter(0)\n  a = f32[1] all-gather(p), replica_groups={}, dimensions={0}\n"
        "  s = ((f32[1]), f32[1]) async-start(p), calls=c\n  ROOT d = f32[1] async-done(s)\n}\n\n"
        "ENTRY e {\n  ROOT p = f32[1] parameter(0)\n}\n"
    )
    report = commlens.report(commlens.load(HEADER + text))
    assert [each.name for each in report.collectives] == ["a"]
    assert [each.name for each in report.unread] == ["s"]


@pytest.mark.parametrize(
    "block", ["{\n  x = f32[8] parameter(0)\n  ROOT q = f32[8] negate(x)\n}", "{ ROOT q = f32[8] parameter(0) }"]
)
def test_a_computation_in_the_place_of_its_name_is_unread(block: str) -> None:
    """Its instructions are no others' affair: that is said, and no pass edits such a module."""
    text = (
        f"{HEADER}{ADD}ENTRY e {{\n  p = f32[8] parameter(0)\n  a = f32[8] {REDUCE}\n"
        f"  c = f32[8] call(p), to_apply={block}\n  ROOT z = f32[8] negate(c)\n}}\n"
    )
    module = commlens.load(text)
    assert [each.why for each in module.unread] == [
        "expected to_apply= to name a computation, found one that stands in its place"
    ]
    with pytest.raises(CommlensError, match="stands in its place"):
        NeuronAllReduceCombiner().run(module)
    named = text.replace(block, "%add")
    assert commlens.load(named).unread == ()
