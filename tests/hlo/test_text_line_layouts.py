"""Several instructions on a line, and operands that are instructions: all answers are those of a text with a line each.

What is read of a computation is settled before anybody is told of it, so that no answer depends on another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commlens.hlo import BecomeCustomCall, Combine, Pipeline, discover
from commlens.hlo.text import TextModule, index, read_modules
from commlens.neuron import (
    CollectiveStreamIdChecker,
    ConvertCollectivesToCustomCall,
    NeuronAllGatherCombiner,
    NeuronAllReduceCombiner,
    NeuronCollectiveStreamIdInjector,
    NeuronUniqueChannelIdEnforcer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from commlens.hlo import Json, Pass

BODIES: dict[str, list[str]] = {
    "add": [
        "a = f32[] parameter(0)",
        "b = f32[] parameter(1)",
        "ROOT c = f32[] add(a, b)",
    ],
    "e": [
        "p = f32[8]{0} parameter(0)",
        'n = f32[8]{0} negate(p), metadata={op_name="f(x) = g(y)" source_line=3}',
        "x = f32[8]{0} all-reduce(p), channel_id=1, replica_groups={{0,1}}, to_apply=add",
        'y = f32[8]{0} all-reduce(n), channel_id=1, replica_groups={{0,1}}, to_apply=add, metadata={op_name="jit(f)/y"}',
        "g = f32[16]{0} all-gather(x), replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=false",
        "h = f32[16]{0} all-gather(y), replica_groups={{0,1}}, dimensions={0}",
        's = f32[16]{0} add(g, h), control-predecessors={n}, frontend_attributes={a="b(c) = d(e)"}',
        "ROOT r = (f32[16]{0}, f32[8]{0}) tuple(s, x)",
    ],
}
PASSES: list[Pass] = [
    CollectiveStreamIdChecker(),
    ConvertCollectivesToCustomCall(),
    NeuronAllGatherCombiner(),
    NeuronAllReduceCombiner(),
    NeuronCollectiveStreamIdInjector(),
    NeuronUniqueChannelIdEnforcer(),
]


def laid_out(breaks: Mapping[str, Sequence[str]]) -> bytes:
    """Return the module, given what stands before each instruction of a computation."""
    parts = ["HloModule m, num_partitions=2\n\n"]
    for name, lines in BODIES.items():
        parts.append("ENTRY e {" if name == "e" else f"{name} {{")
        parts += [before + line for before, line in zip(breaks[name], lines, strict=True)]
        parts.append("\n}\n\n")
    return "".join(parts).encode()


PRINTED = laid_out({name: ["\n  "] * len(lines) for name, lines in BODIES.items()})
BREAKS = st.fixed_dictionaries(
    {
        name: st.lists(
            st.sampled_from(["\n  ", " ", "   ", "\t"]), min_size=len(lines) - 1, max_size=len(lines) - 1
        ).map(lambda found: ["\n  ", *found])
        for name, lines in BODIES.items()
    }
)


def module_of(text: bytes) -> TextModule:
    """Return the only module of a text."""
    (module,) = read_modules(text)
    return module


def without_lines(value: Json) -> object:
    """Return statistics without the numbers of lines."""
    if isinstance(value, dict):
        return {key: without_lines(each) for key, each in value.items() if key not in ("line", "column")}
    return [without_lines(each) for each in value] if isinstance(value, list | tuple) else value


def rows(module: TextModule) -> object:
    """Return what communicates."""
    found = discover(module)
    described = [(site.name, site.channel_id, site.op_name, str(site.signature.groups)) for site in found.sites]
    return described, [str(shape) for site in found.sites for shape in site.signature.operand_shapes], found.unread


def graphs(module: TextModule) -> object:
    """Return the edges of all computations, and the order that follows from them."""
    edges = [(list(map(list, each.graph().operands)), each.graph().broken) for each in module.computations]
    return edges, [[each.name for each in computation.post_order()] for computation in module.computations]


def members(module: TextModule) -> object:
    """Return instructions, roots and look-ups of all computations."""
    return [
        [
            (each.name, each.opcode, each.operand_names, each.is_root, each.channel_id)
            for each in computation.instructions
        ]
        + [computation.root.name, computation.instruction("b") is None, computation.instruction("s") is None]
        for computation in module.computations
    ]


def some_opcodes(module: TextModule) -> object:
    """Return the instructions of a few opcodes."""
    return [(each.name, each.operand_names) for each in module.instructions_of({"add", "parameter", "all-gather"})]


def passed(each: Pass) -> Callable[[TextModule], object]:
    """Return the answer of a pass: what it says, and what it makes of the module, which is sound."""

    def answer(module: TextModule) -> object:
        (result,) = Pipeline((each,), verify=True).run(module)
        return without_lines(result.stats), result.changed, members(module_of(result.module.to_bytes()))

    return answer


ANSWERS: list[Callable[[TextModule], object]] = [rows, graphs, members, some_opcodes, *map(passed, PASSES)]
WANTED = [answer(module_of(PRINTED)) for answer in ANSWERS]


def test_the_printed_module_is_what_is_compared_with() -> None:
    """The module with a line each is printed: it takes the fast path, and the passes do something to it."""
    assert not index.make_index(PRINTED).irregular
    assert [each.run(module_of(PRINTED)).modified for each in PASSES] == [False, *[True] * 5]


@settings(max_examples=60)
@given(BREAKS, st.permutations(range(len(ANSWERS))))
def test_answers_do_not_depend_on_each_other_or_on_the_lines(
    breaks: Mapping[str, Sequence[str]], order: Sequence[int]
) -> None:
    """Whatever stands on one line, and whatever was asked before, the answers are those of the printed module."""
    module = module_of(laid_out(breaks))
    for number in order:
        assert ANSWERS[number](module) == WANTED[number]


REDUCERS = [
    "  a = f32[] parameter(0)   b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)",
    "  a = f32[] parameter(0)\n  b = f32[] parameter(1)   ROOT c = f32[] add(a, b)",
    "  b = f32[] parameter(1)\n  ROOT c = f32[] add(f32[] parameter(0), b)",
    "  ROOT c = f32[] add(f32[] parameter(0), f32[] parameter(1))",
    '  a = f32[] parameter(0), metadata={op_name="q"}   b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)',
    "  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[]\n  add(a, b)",
    "  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a,\n  b)",
    "  a = f32[] parameter(0)\n  b /*z*/ = f32[] parameter(1)\n  ROOT c /* = */ = /**/ f32[] add(a, b)",
    "  a = f32[] parameter(0)\n  b // one\n   = f32[] parameter(1)\n  ROOT/*r*/c = f32[] add(a, b)",
]


@pytest.mark.parametrize("asked", [rows, graphs, members], ids=lambda each: each.__name__)
@pytest.mark.parametrize("reducer", REDUCERS)
def test_reducers_are_read_however_they_stand(reducer: str, asked: Callable[[TextModule], object]) -> None:
    """A reduction is known however its computation is laid out, before and after other questions."""
    printed = "\n  ".join(["", *BODIES["add"]]).encode() + b"\n}"
    module = module_of(PRINTED.replace(printed, b"\n" + reducer.encode() + b"\n}", 1))
    assert len(module.computations[0].instructions) == 3
    asked(module)
    result = ConvertCollectivesToCustomCall().run(module)
    targets = [edit.target for edit in result.edits if isinstance(edit, BecomeCustomCall) and "Reduce" in edit.target]
    assert targets == ["AwsNeuronAllReduceAdd_f32"] * 2
    assert NeuronAllReduceCombiner().run(module).modified


@pytest.mark.parametrize(
    "line",
    [
        "  x = f32[8]{0:T(8,128)(2,1)} add(p, p), sharding={devices=[2]<=[2]}",
        '  x = (f32[8]{0}, (f32[8]{0}, s32[])) tuple(p, p), origin={(({"f(x)"}))}',
        '  x = f32[8]{0} atan2(p, p), metadata={op_name="a(b) = c(d(e))"}, backend_config={"a":"f(x) = g(y)"}',
        "  x = f32[8]{0} all-gather(p), replica_groups=[2,2]<=[2,2]T(1,0), dimensions={0}",
        "  x = f32[8]{0} all-gather(p), replica_groups=mesh['a'=2,'b'=2], device_ids=([4]T(0)) {'a'}, dimensions={0}",
    ],
)
def test_what_is_printed_stays_on_the_fast_path(line: str) -> None:
    """Parentheses of layouts, groups and strings are no calls, and tables outside computations no instructions."""
    text = f"HloModule m\n\nStackFrames\n1 {{f(x)}}\ng(h)\n\n\nENTRY e (p: f32[8]) -> f32[8] {{\n  p = f32[8]{{0}} parameter(0)\n{line}\n}}\n"
    assert not index.make_index(text.encode()).irregular


@pytest.mark.parametrize(
    "line",
    [
        "  x = f32[8]{0} add(p, p)  y = f32[8]{0} negate(p)",
        '  x = f32[8]{0} add(p, p), metadata={op_name="f(x)"}  y = f32[8]{0} negate(p)',
        "  x = f32[8]{0} add(negate(p), p)",
        "  x = f32[8]{0} add(f32[8]{0:T(8)} negate(p), p)",
        "  x = f32[8]{0} add (p, p)",
        "  x = f32[8]{0} add(p,\n  p)",
        "  x = f32[8]{0} add(p, p),\n  metadata={}",
        "  x = f32[8]{0}\n  add(p, p)",
        "  x = f32[8]{0} add(p, p) // negate(p)",
    ],
)
def test_what_is_not_one_instruction_is_not_printed(line: str) -> None:
    """A line with two calls or none, or one that goes on, sends its computation down the slow path at once."""
    text = f"HloModule m\n\nENTRY e (p: f32[8]) -> f32[8] {{\n  p = f32[8]{{0}} parameter(0)\n{line}\n}}\n"
    assert list(index.make_index(text.encode()).irregular) == [0]


def test_damage_is_the_same_whoever_asks_first() -> None:
    """A line that is no instruction makes no other one out of its neighbours, before the edges were asked for or after."""
    text = PRINTED.replace(b"  g = f32", b"  broken line = f32[] constant(4)\n  g = f32")
    for asked_before in ([], [graphs]):
        module = module_of(text)
        for ask in asked_before:
            with pytest.raises(ValueError, match="expected an instruction such as"):
                ask(module)
        y = module.instruction("y")
        assert y.raw_attribute("to_apply") == "add"
        assert rows(module) == rows(module_of(text))


def test_combinations_on_one_line() -> None:
    """Members that share a line are combined as they are on lines of their own."""
    breaks = {name: ["\n  ", *["  "] * (len(lines) - 1)] for name, lines in BODIES.items()}
    module, printed = module_of(laid_out(breaks)), module_of(PRINTED)
    made = [
        each.edited([Combine((each.instruction("x"), each.instruction("y")), "both")]).computations[1]
        for each in (module, printed)
    ]
    outlines = [
        [(each.name, each.opcode, each.operand_names) for each in computation.instructions] for computation in made
    ]
    assert outlines[0] == outlines[1]
    assert "both" in [name for name, _, _ in outlines[0]]
