"""Combinations in generated texts, and what XLA's own reader says of combined ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.hlo import EditError
from text_combinations import CASES, CUSTOM_CALLS, DIMENSIONS, HEAD, combine, combined, module_of
from xla_reader import XlaReader

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def xla() -> Iterator[XlaReader]:
    """Return XLA's reader."""
    reader = XlaReader()
    yield reader
    reader.close()


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[list[str]]]:
    """Bodies in which some all-reduces are to be combined."""
    size = draw(st.integers(3, 12))
    lines = ["a = f32[8]{0} parameter(0)"]
    reduces: list[str] = []
    for number in range(size):
        names = [line.partition(" ")[0] for line in lines]
        operand = draw(st.sampled_from(names))
        control = draw(st.sampled_from(["", "", f", control-predecessors={{{draw(st.sampled_from(names))}}}"]))
        if draw(st.booleans()):
            reduces.append(f"r{number}")
            lines.append(f"r{number} = f32[8]{{0}} all-reduce({operand}), to_apply=add{control}")
        else:
            lines.append(f"n{number} = f32[8]{{0}} negate({operand}){control}")
    shuffled = draw(st.permutations(reduces))
    cut = draw(st.integers(0, len(shuffled)))
    groups = [group for group in (shuffled[:cut], shuffled[cut:]) if len(group) > 1]
    indent = draw(st.sampled_from(["  ", " "]))
    return "\n".join(indent + line for line in lines), groups


@given(programs())
def test_generated_programs(case: tuple[str, list[list[str]]]) -> None:
    """Every user keeps its operands, everything stands behind what it needs, and members ask for their own index."""
    body, groups = case
    module = module_of(f"{HEAD.partition('ENTRY')[0]}ENTRY main {{\n{body}\n}}\n")
    edits = [combine(module, f"c.{number}", group) for number, group in enumerate(groups)]
    try:
        after = module.edited(edits)
    except EditError:
        return
    before, now = ({each.name: each for each in found.computations[1].instructions} for found in (module, after))
    assert now.keys() == before.keys() | {edit.name for edit in edits}
    graph = after.computations[1].graph()
    assert not graph.broken
    assert all(each < position for position in range(len(now)) for each in graph.predecessors(position))
    members = {member: (edit, index) for edit in edits for index, member in enumerate(edit.members)}
    by_name = {member.name: found for member, found in members.items()}
    for name, instruction in before.items():
        if name not in by_name:
            assert now[name].excerpt == instruction.excerpt
            continue
        edit, index = by_name[name]
        assert now[name].opcode == "get-tuple-element"
        assert (now[name].operand_names, now[name].raw_attribute("index")) == ((edit.name,), str(index))
        assert now[edit.name].operand_names[index] == instruction.operand_names[0]
        assert set(instruction.control_predecessors) <= set(now[edit.name].control_predecessors)


def test_xla_reads_what_is_combined(xla: XlaReader) -> None:
    """XLA takes every text from above that it took before, combined or made a custom call."""
    read = 0
    for case in (*CASES, *DIMENSIONS):
        body, dimension = str(case.values[0]), case.values[1]
        root = "  ROOT t = (f32[8]{0}, f32[4,2]{1,0}) tuple(a, b)\n}\n"
        if xla.reads((HEAD + body + root).encode()):
            read += 1
            after = combined(body, root=root, dimension=dimension if isinstance(dimension, int) else None)
            assert xla.reads((HEAD + after + root).encode()), after
    for case in CUSTOM_CALLS:
        if xla.reads(f"{HEAD}  {case.values[0]}\n}}\n".encode()):
            read += 1
            assert xla.reads(f"{HEAD}  {case.values[1]}\n}}\n".encode()), case.values[1]
    assert read > 10
