"""Who uses whom in a printed computation: one pattern per line must say what taking every line apart says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.hlo import UnreadableError, load_all
from commlens.hlo.graphs import Graph, graph_of
from commlens.hlo.text import TextModule, read_modules

if TYPE_CHECKING:
    from pathlib import Path

    from commlens.hlo.text.computation import TextComputation


def computation(lines: str, *, indent: str = "  ") -> TextComputation:
    """Return a computation of these lines."""
    body = "\n".join(indent + line for line in lines.strip().splitlines())
    (module,) = read_modules(f"HloModule m\n\nENTRY main {{\n{body}\n}}\n".encode())
    (found,) = module.computations
    return found


def plain(graph: Graph) -> object:
    """Return a graph as lists and sets."""
    control = {position: [*each] for position, each in graph.control_predecessors.items()}
    return [[*each] for each in graph.operands], control, graph.broken


@pytest.mark.parametrize(
    ("lines", "operands", "control", "broken"),
    [
        pytest.param(
            "%a = f32[] parameter(0)\nROOT %b = f32[] add(%a, %a)", [[], [0, 0]], {}, set(), id="marked names"
        ),
        pytest.param(
            "a = f32[] parameter(0)\nb = f32[] add(a, c)\nc = f32[] copy(a)", [[], [0, 2], [0]], {}, set(), id="order"
        ),
        pytest.param(
            "a = bf16[8,4]{1,0:T(8,128)(2,1)} parameter(0)\nb = (bf16[8,4]{1,0:T(8,128)(2,1)}, (u32[], token[])) tuple(bf16[8,4]{1,0:T(8,128)(2,1)} %a, a)\n"
            "c = u32[] get-tuple-element((bf16[8,4]{1,0:T(8,128)(2,1)}, (u32[], token[])) %b), index=1",
            [[], [0, 0], [1]],
            {},
            set(),
            id="types beside operands",
        ),
        pytest.param(
            "a = f32[] parameter(0)\nb = (f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[]) tuple(a, a, a, a, a, /*index=5*/a)",
            [[], [0] * 6],
            {},
            set(),
            id="index comments",
        ),
        pytest.param(
            'a = f32[2] constant({1, 2})\nb = pred[] constant(false)\nc = s8[3] constant("a(b")\nd = f32[4] iota(), iota_dimension=0\n'
            "e = () tuple()\nf = token[] after-all()",
            [[], [], [], [], [], []],
            {},
            set(),
            id="no operands",
        ),
        pytest.param(
            "a = f32[] parameter(0)\nb = f32[] copy(a), control-predecessors={%a, c}\nc = f32[] copy(a), control-predecessors={}\n"
            'd = f32[] copy(a), metadata={op_name=", control-predecessors={a}"}',
            [[], [0], [0], [0]],
            {1: [0, 2]},
            set(),
            id="control predecessors",
        ),
        pytest.param(
            "a = f32[] parameter(0)\nb = f32[] add(x, a)\nc = f32[] copy(a), control-predecessors={x, b}\nd = f32[] add(f32[] a, f32[] x)",
            [[], [0], [0], [0]],
            {2: [1]},
            {1, 2, 3},
            id="names that stand nowhere",
        ),
        pytest.param(
            "a = f32[] parameter(0)\nb = add(a,a)\nc = f32[] negate( a )", [[], [0, 0], [0]], {}, set(), id="odd lines"
        ),
        pytest.param(
            "a = f32[] parameter(0)\na = f32[] copy(a)\nb = f32[] copy(a)",
            [[], [1], [1]],
            {},
            set(),
            id="a name twice: the last",
        ),
    ],
)
def test_printed(lines: str, operands: list[list[int]], control: dict[int, list[int]], broken: set[int]) -> None:
    """The edges are these, found quickly or carefully, in a printed computation or in another."""
    printed, other = computation(lines), computation(lines, indent=" ")
    expected = (operands, control, broken)
    assert plain(printed.graph()) == expected
    assert printed.starts is None
    assert plain(graph_of(printed.instructions)) == expected
    assert plain(other.graph()) == expected
    assert other.starts is not None


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("a = f32[] parameter(0)\nb = f32[] add(negate(a), a)", id="an instruction as operand"),
        pytest.param("a = f32[] parameter(0)\nb = f32[] add(a,\na)", id="two lines"),
        pytest.param('a = f32[] parameter(0)\nb = f32[] add(a, a),\nmetadata={op_name="b"}', id="attributes below"),
        pytest.param(
            "a = f32[] parameter(0)\nb = f32[] copy(a) c = f32[] copy(b)\nd = f32[] copy(c)", id="two on a line"
        ),
        pytest.param("a = f32[] parameter(0)\nb = f32[]\ncopy(a)", id="the opcode below"),
    ],
)
def test_lines_that_only_seem_printed(lines: str) -> None:
    """Where a line is not one instruction, all are found token by token, and earlier views stay valid."""
    seeming, other = computation(lines), computation(lines, indent=" ")
    first = seeming.instructions[0]
    assert plain(seeming.graph()) == plain(other.graph())
    assert seeming.starts is not None
    assert [each.name for each in seeming.instructions] == [each.name for each in other.instructions]
    assert first in seeming.instructions


def test_empty() -> None:
    """A computation without instructions has no edges."""
    (module,) = read_modules(b"HloModule m\n\nENTRY main (a: f32[]) -> f32[] {\n")
    assert plain(module.computations[0].graph()) == ([], {}, set())


def test_lists_of_printed_lines() -> None:
    """The instructions of a printed computation are a sequence like any other."""
    found = computation("a = f32[] parameter(0)\nb = f32[] copy(a)\nROOT c = f32[] copy(b)").instructions
    names = [each.name for each in found]
    assert (names, len(found), found[-1].name, [each.name for each in found[1:]]) == (
        ["a", "b", "c"],
        3,
        "c",
        ["b", "c"],
    )
    assert [each.name for each in reversed(found)] == names[::-1]
    assert found[1] in found
    assert found[2].is_root
    assert [each.line for each in found] == [4, 5, 6]
    assert [each.list_key for each in found] == sorted(each.start for each in found)
    with pytest.raises(IndexError):
        found[3]


SHAPES = ("f32[]", "f32[8,4]{1,0}", "bf16[8]{0:T(8,128)(2,1)S(1)}", "(f32[8]{0:T(8)}, (u32[], token[]))", "()")
TAILS = ("", ", dimensions={0}", ', metadata={op_name="a = f32[] add(b)" source_line=3}', ", calls=%fused.1")


@st.composite
def printed_lines(draw: st.DrawFn) -> str:
    """Lines as compilers print them, with operands that are defined or not."""
    names = [
        f"{draw(st.sampled_from(['x', 'add', 'all-reduce']))}.{number}" for number in range(draw(st.integers(1, 7)))
    ]
    lines: list[str] = []
    for name in names:
        types = draw(st.booleans())
        used = draw(st.lists(st.sampled_from([*names, "gone"]), max_size=7))
        operands = [
            f"{'/*index=5*/' if number == 5 else ''}{draw(st.sampled_from(SHAPES)) + ' ' if types else ''}%{each}"
            for number, each in enumerate(used)
        ]
        control = draw(st.lists(st.sampled_from([*names, "gone"]), max_size=2))
        behind = f", control-predecessors={{{', '.join('%' + each for each in control)}}}" if control else ""
        head = f"%{name} = {draw(st.sampled_from(SHAPES))} "
        lines.append(
            f"{head}{draw(st.sampled_from(['fusion', 'all-reduce-start']))}({', '.join(operands)}){behind}{draw(st.sampled_from(TAILS))}"
        )
    return "\n".join(lines)


@given(printed_lines())
def test_generated_lines(lines: str) -> None:
    """The pattern says what taking every line apart says."""
    printed = computation(lines)
    assert plain(printed.graph()) == plain(graph_of(printed.instructions))
    assert printed.starts is None


@pytest.mark.corpus("public/*.hlo*", "public/*.txt*", "jax-*/*.txt*", "torch_xla-*/*.txt*")
def test_real_modules(corpus_file: Path) -> None:
    """Every computation of a real module has the edges that taking every line apart gives."""
    for module in load_all(corpus_file):
        if not isinstance(module, TextModule):
            continue
        for each in module.computations[:40]:
            if each.end - each.body > 100_000:
                continue
            try:
                expected = graph_of(each.instructions)
            except UnreadableError:
                continue
            assert plain(each.graph()) == plain(expected)
