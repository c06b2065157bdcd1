"""Edges and orders: quick readings against slow ones, and how often an instruction is decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.hlo import Graph, UnreadableError, load, post_order_keys
from commlens.hlo.graphs import graph_of
from commlens.hlo.proto import graphs
from commlens.hlo.proto.decoding import decode
from proto_modules import FAR, all_reduce, instruction, module
from proto_twin import load_as

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlens import Computation
    from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema


# --- post-order -------------------------------------------------------------------------------------------------------


def slow_post_order(operands: Sequence[Sequence[int]], control: dict[int, list[int]]) -> list[int]:
    """Walk by recursion: control predecessors, the last listed first, then operands, then the instruction itself."""
    entered: set[int] = set()
    found: list[int] = []

    def walk(position: int) -> None:
        if position not in entered:
            entered.add(position)
            for each in (*reversed(control.get(position, [])), *operands[position]):
                walk(each)
            found.append(position)

    used = {each for row in operands for each in row}
    for start in range(len(operands)):
        if start not in used:
            walk(start)
    return found + [position for position in range(len(operands)) if position not in found]


@st.composite
def edges(draw: st.DrawFn) -> tuple[list[list[int]], dict[int, list[int]]]:
    """Operands and control predecessors: mostly without cycles, in any list order."""
    size = draw(st.integers(0, 9))
    order = draw(st.permutations(range(size)))
    wild = draw(st.integers(0, 3)) == 0
    operands: list[list[int]] = [[] for _ in order]
    control: dict[int, list[int]] = {}
    for rank, position in enumerate(order):
        before = list(order) if wild else order[:rank]
        if before:
            operands[position] = draw(st.lists(st.sampled_from(before), max_size=3))
            control[position] = draw(st.lists(st.sampled_from(before), max_size=2))
    return operands, {position: row for position, row in control.items() if row}


@given(edges())
def test_post_order_is_that_of_the_recursive_walk(case: tuple[list[list[int]], dict[int, list[int]]]) -> None:
    """Whatever was seen twice, and on cycles too where the walk comes to each instruction once."""
    operands, control = case
    assert sorted(Graph(operands, control).post_order()) == list(range(len(operands)))
    assert Graph(operands, control).post_order() == slow_post_order(operands, control)


@given(edges())
def test_order_is_that_of_every_single_edge(case: tuple[list[list[int]], dict[int, list[int]]]) -> None:
    """One operand or control predecessor that does not stand before its user is enough; then there may be a cycle."""
    operands, control = case
    pairs = [(each, user) for user, row in [*enumerate(operands), *control.items()] for each in row]
    expected = all(used < user for used, user in pairs)
    assert Graph(operands, control).is_in_order() == expected
    if expected:
        places = {position: place for place, position in enumerate(Graph(operands, control).post_order())}
        assert all(places[used] < places[user] for used, user in pairs)


TEXT = """HloModule m

ENTRY e {
  p = f32[8] parameter(0)
  y = f32[8] negate(p)
  z = f32[8] negate(p), control-predecessors={y}
  ROOT r = f32[8] add(z, y)
}
"""


@pytest.mark.parametrize(
    "source", [pytest.param(TEXT, id="printed"), pytest.param(TEXT.replace("\n  z", "\n   z"), id="by people")]
)
@pytest.mark.parametrize("backend", ["text", "proto"])
def test_keys_in_post_order(source: str, backend: str) -> None:
    """They are those of the instructions in that order."""
    entry = load_as(source, backend).entry
    assert entry is not None
    assert post_order_keys(entry) == [each.list_key for each in entry.post_order()]
    assert [each.name for each in entry.post_order()] == ["p", "y", "z", "r"]


def test_no_instruction_is_made_for_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be a million lines."""
    entry = load(TEXT.replace("  y", "".join(f"  x{each} = f32[8] negate(p)\n" for each in range(40)) + "  y")).entry
    assert entry is not None
    expect = [each.list_key for each in entry.post_order()]

    def refuse(*_: object) -> None:
        msg = "this instruction was made"
        raise AssertionError(msg)

    monkeypatch.setattr("commlens.hlo.text.printed_lines.TextInstruction", refuse)
    assert post_order_keys(entry) == expect


# --- protos -----------------------------------------------------------------------------------------------------------


@st.composite
def instructions(draw: st.DrawFn) -> list[schema.HloInstructionProto]:
    """Instructions with operands and control predecessors, some of which are not there; ids and names may repeat."""
    odd = draw(st.integers(0, 2)) == 0
    numbers = draw(st.lists(st.integers(2, 9), unique=not odd, min_size=1, max_size=6))
    known = [1, *numbers, *([77] if odd else [])]
    made: list[schema.HloInstructionProto] = []
    for number in numbers:
        made.append(instruction("add", number, draw(st.lists(st.sampled_from(known), max_size=3))))
        before = draw(st.lists(st.sampled_from(known), max_size=2))
        made[-1].control_predecessor_ids.extend(FAR + each for each in before)
        if odd and draw(st.booleans()):
            made[-1].name = b"x1"
    return made


def outcome(read: Callable[[], Graph]) -> object:
    """Return edges as lists and sets, or why there are none."""
    try:
        graph = read()
    except UnreadableError as error:
        return str(error)
    control = {position: [*each] for position, each in graph.control_predecessors.items()}
    return [[*each] for each in graph.operands], control, graph.broken, graph.distinct


def main_of(made: Sequence[schema.HloInstructionProto]) -> Computation:
    """Return the entry of a module with these instructions."""
    entry = load(module(*made).SerializeToString()).entry
    assert entry is not None
    return entry


@given(instructions())
def test_edges_of_a_proto(made: list[schema.HloInstructionProto]) -> None:
    """They are those that are found instruction by instruction, as is the reason where there are none."""
    entry = main_of(made)
    assert outcome(entry.graph) == outcome(lambda: graph_of(entry.instructions))


@pytest.mark.parametrize("number", [5, 50])
def test_each_instruction_of_a_proto_is_decoded_once(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the edges nothing is looked at."""
    entry = main_of([all_reduce(2 + each) for each in range(number)])
    decoded: list[bytes] = []

    def counted(kind: type[schema.HloInstructionProto], data: bytes) -> schema.HloInstructionProto:
        decoded.append(data)
        return decode(kind, data)

    monkeypatch.setattr(graphs, "decode", counted)
    assert len(entry.graph().operands) == number + 1
    assert len(decoded) == number + 1
