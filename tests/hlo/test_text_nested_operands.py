"""Instructions that stand as operands of others: each is one of its own, and named as XLA names it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from commlens.hlo import discover
from commlens.hlo.text import TextModule, read_modules
from xla_reader import XlaReader

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def xla() -> Iterator[XlaReader]:
    """Return XLA's own reader."""
    reader = XlaReader()
    yield reader
    reader.close()


def module_of(*lines: str) -> TextModule:
    """Return a module with one computation of these lines."""
    body = "".join(f"  {line}\n" for line in lines)
    (module,) = read_modules(f"HloModule m\n\nENTRY e {{\n  p = f32[] parameter(0)\n{body}}}\n".encode())
    return module


PROGRAMS = {
    "two alike": ["ROOT r = f32[] add(negate(p), negate(p))"],
    "typed": ["ROOT r = f32[] add(f32[] negate(p), f32[] negate(f32[] p))"],
    "in each other": ["ROOT r = f32[] add(negate(p), f32[] negate(f32[] negate(p)))"],
    "of two opcodes": ["ROOT r = f32[] add(negate(p), add(negate(p), cosine(p)))"],
    "on several lines": ["q = f32[] add(negate(p), negate(p))", "ROOT r = f32[] add(negate(q), sine(negate(p)))"],
    "a name is taken before": ["negate.anon = f32[] copy(p)", "ROOT r = f32[] add(negate(p), negate(negate.anon))"],
    "a number is taken": [
        "negate.anon.3 = f32[] copy(p)",
        "q = f32[] add(negate(p), negate(p))",
        "k = f32[] add(negate(p), negate(p))",
        "ROOT r = f32[] add(q, f32[] add(k, negate.anon.3))",
    ],
    "behind a layout with tiles": ["v = f32[8]{0:T(8)} broadcast(p), dimensions={}", "ROOT r = f32[8]{0:T(8)} add(v, f32[8]{0:T(8)} negate(v))"],
    "behind a quote in a comment": ['ROOT r = f32[] /* a " here */ add(negate(p), f32[] negate(p))'],
    "named by others": ["q = f32[] add(negate(p), negate(p))", "ROOT r = f32[] subtract(negate.anon, negate.anon.1)"],
}  # fmt: skip


def edges(module: TextModule) -> dict[str, tuple[str, ...]]:
    """Return the operands of every instruction, by name, as the edges give them."""
    computation = module.computations[0]
    names = [each.name for each in computation.instructions]
    graph = computation.graph()
    assert not graph.broken
    return {name: tuple(names[each] for each in operands) for name, operands in zip(names, graph.operands, strict=True)}


@pytest.mark.parametrize("program", PROGRAMS)
def test_operands_are_named_and_told_apart_as_xla_does(program: str, xla: XlaReader) -> None:
    """Names, operands and their order are those that XLA prints."""
    module = module_of(*PROGRAMS[program])
    printed = xla.printed(module.to_bytes())
    assert printed is not None
    (theirs,) = read_modules(printed.encode())
    assert edges(module) == edges(theirs)
    instructions = module.computations[0].instructions
    assert {each.name: each.operand_names for each in instructions} == edges(module)
    assert {each.name: tuple(operand.name for operand in each.operands) for each in instructions} == edges(module)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_order_is_that_of_the_program_with_a_line_each(program: str, xla: XlaReader) -> None:
    """Post-order does not depend on whether an operand has a line of its own."""
    module = module_of(*PROGRAMS[program])
    printed = xla.printed(module.to_bytes())
    assert printed is not None
    (theirs,) = read_modules(printed.encode())
    orders = [[each.name for each in found.computations[0].post_order()] for found in (module, theirs)]
    assert orders[0] == orders[1]


def test_every_name_finds_its_instruction() -> None:
    """What a name finds has that name, and stands where it was written."""
    computation = module_of(*PROGRAMS["on several lines"]).computations[0]
    for each in computation.instructions:
        found = computation.instruction(each.name)
        assert found == each
        assert found is not None
        assert found.operand_names == each.operand_names
    assert computation.instruction("negate.anon.9") is None
    assert computation.instruction("tan.anon") is None


def test_collectives_that_are_operands_have_names_of_their_own() -> None:
    """Two of one opcode are two rows with two names."""
    module = module_of("ROOT r = f32[] add(f32[] all-reduce(p), to_apply=x, f32[] collective-broadcast(p))")
    assert module.computations[0].instructions
    lines = ["a = f32[] add(f32[] collective-broadcast(p), f32[] collective-broadcast(p))", "ROOT b = f32[] negate(a)"]
    rows = discover(module_of(*lines)).sites
    assert [site.name for site in rows] == ["collective-broadcast.anon", "collective-broadcast.anon.1"]
    assert [[str(shape) for shape in site.signature.operand_shapes] for site in rows] == [["f32[]"], ["f32[]"]]


def test_a_shape_that_is_left_out_is_asked_of_the_operand_itself() -> None:
    """The shape of an operand that is an instruction stands before it, or nowhere; never is it another's."""
    module = module_of("negate.anon = f32[4]{0} broadcast(p)", "ROOT r = f32[] collective-broadcast(negate(p))")
    (unread,) = discover(module).unread
    assert re.fullmatch(r"expected a result shape before negate, found none", unread.why)


def test_an_operand_that_is_broken_spoils_no_other_name() -> None:
    """What nobody can take apart has a name for itself, and those beside it keep theirs."""
    module = module_of("ROOT r = f32[] add(negate(p) x all-reduce(p), sine(p))")
    assert [each.name for each in module.computations[0].instructions] == ["p", "anon", "sine.anon", "r"]
