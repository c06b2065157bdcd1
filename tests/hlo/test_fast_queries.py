"""The fast queries answer what parsing all answers, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.hlo import (
    UnreadableError,
    are_provably_chained,
    first_operand,
    has_attribute,
    load,
    opcode_of,
    reducer_opcode,
    to_apply_name,
)
from commlens.hlo.proto.instruction import ProtoInstruction
from commlens.hlo.text import fast_queries
from commlens.hlo.text.instruction import TextInstruction
from proto_twin import load_as, proto_twin

if TYPE_CHECKING:
    from commlens import Computation, Instruction, Module

LINES = """
  %p.0 = f32[8]{0} parameter(0)
  q = f32[8]{0:T(8,128)} parameter(1)
  %c = f32[] constant(1)
  true = pred[] constant(true)
  %i-1 = s32[8]{0} iota(), iota_dimension=0
  %t = (f32[8]{0:T(8,128)}, (f32[8]{0}, s32[8]{0})) tuple(%p.0, q, %i-1)
  %g = f32[8]{0} get-tuple-element(%t), index=0, metadata={op_name="n = f32[] dot(p, q)"}
  n = f32[8]{0} negate(f32[8]{0} %g)
  %a.b = f32[8]{0} add(n, q), control-predecessors={%c}
  ROOT %r = (f32[8]{0}, f32[8]{0}) tuple(%a.b, /*index=1*/n)
"""
MODULE = f"HloModule m\n\nENTRY e {{{LINES}}}\n"
BACKENDS = pytest.mark.parametrize("backend", ["text", "proto"])


def instructions(module: Module) -> list[Instruction]:
    """Return those of the entry."""
    assert module.entry is not None
    return list(module.entry.instructions)


@BACKENDS
def test_a_query_says_what_all_of_a_line_says(backend: str) -> None:
    """Opcode and operand 0 of every instruction, however it is written."""
    for instruction in instructions(load_as(MODULE, backend)):
        operands = instruction.operands
        assert opcode_of(instruction) == instruction.opcode
        assert first_operand(instruction) == (operands[0] if operands else None)


def test_plain_lines_are_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is what makes a query fast."""
    add = load(MODULE).instruction("a.b")

    def refuse(_: TextInstruction) -> None:
        msg = "this line was taken apart"
        raise AssertionError(msg)

    monkeypatch.setattr(TextInstruction, "parts", property(refuse))
    assert opcode_of(add) == "add"
    operand = first_operand(add)
    assert operand is not None
    assert operand.name == "n"
    with pytest.raises(AssertionError):
        opcode_of(operand)


def test_an_operand_that_is_not_defined_is_refused() -> None:
    """As elsewhere."""
    module = load(MODULE.replace("add(n, q)", "add(nobody, q)"))
    with pytest.raises(UnreadableError, match="nobody"):
        first_operand(module.instruction("a.b"))


# --- chains ----------------------------------------------------------------------------------------------------------


def chained(module: Module, *names: str) -> bool:
    """Whether instructions are seen as a chain."""
    computation = entry_of(module)
    return are_provably_chained(computation, [[module.instruction(name) for name in names]])


def entry_of(module: Module) -> Computation:
    """Return the entry."""
    assert module.entry is not None
    return module.entry


STEPS = """HloModule m

ENTRY e {
  p = f32[8] parameter(0)
  a = f32[8] negate(p)
  b = f32[8] add(p, a)
  c = f32[8] add(p, a)
  d = f32[8] add(c, p)
  e = f32[8] negate(p), control-predecessors={d}
  ROOT t = (f32[8], f32[8], f32[8]) tuple(b, d, e)
}
"""


@BACKENDS
@pytest.mark.parametrize(
    ("names", "expect"),
    [
        ("pa", True),
        ("pabt", True),
        ("acd", True),
        ("pdt", True),
        ("abc", False),
        ("bd", False),
        ("a", True),
        ("", True),
        ("de", False),
        ("ba", False),
    ],
)
def test_chains(names: str, expect: bool, backend: str) -> None:
    """Ways go through operands in any place; control dependencies are not looked at, and nothing goes backwards."""
    assert chained(load_as(STEPS, backend), *names) == expect


@BACKENDS
def test_every_chain_has_to_be_one(backend: str) -> None:
    """One that is none is enough."""
    module = load_as(STEPS, backend)
    a, b, c, d = (module.instruction(name) for name in "abcd")
    assert are_provably_chained(entry_of(module), [[a, b], [c, d]])
    assert not are_provably_chained(entry_of(module), [[a, b], [b, d]])
    assert are_provably_chained(entry_of(module), [])


def test_lines_that_people_wrote_say_nothing() -> None:
    """Only what compilers print is looked at so."""
    assert not chained(load(STEPS.replace("a = f32[8] negate(p)", "a = f32[8]\n    negate(p)")), "p", "a", "b")


def test_what_is_not_defined_leads_nowhere() -> None:
    """Whoever takes the computation apart says so."""
    assert not chained(load(STEPS.replace("add(c, p)", "add(nobody, p)")), "c", "d")


def ladder(rungs: int) -> Module:
    """Return a module in which everything needs the two before it, and nothing the first of all but a parameter."""
    lines = ["  x = f32[8] parameter(0)", "  s0 = f32[8] parameter(1)", "  s1 = f32[8] parameter(2)"]
    lines += [f"  s{each} = f32[8] add(s{each - 2}, s{each - 1})" for each in range(2, rungs)]
    return load("\n".join(["HloModule m", "ENTRY e {", *lines, f"  ROOT r = f32[8] negate(s{rungs - 1})", "}", ""]))


def test_a_look_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends where a graph would cost less: looks are fewer than lines, however many sequences there are."""
    looks: list[int] = []
    real = fast_queries.operands_behind
    monkeypatch.setattr(
        fast_queries, "operands_behind", lambda each, user, first: (looks.append(user), real(each, user, first))[1]
    )
    module = ladder(1000)
    x, r = (module.instruction(name) for name in "xr")
    assert not are_provably_chained(entry_of(module), [[x, r]] * 50)
    assert 10 < len(looks) <= 1000
    looks.clear()
    s = [module.instruction(f"s{each}") for each in range(2, 1000)]
    assert are_provably_chained(entry_of(module), [s[:100]])
    assert len(looks) < 150


def test_a_look_stays_between_the_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes before the one that is looked for is not looked at, though it may be operand 0."""
    looks: list[object] = []
    real = ProtoInstruction.operands
    assert isinstance(real, property)
    monkeypatch.setattr(
        ProtoInstruction, "operands", property(lambda each: (looks.append(each), real.__get__(each))[1])
    )
    module = load(proto_twin(ladder(100)).SerializeToString())
    assert chained(module, "s98", "s99")
    assert len(looks) == 1


# --- what collectives apply ------------------------------------------------------------------------------------------

REDUCED = """HloModule m

{reducer}

ENTRY e {{
  p = f32[8] parameter(0)
  ROOT r = f32[8] {line}
}}
"""
ADD = """add {
  a = f32[] parameter(0)
  %b = f32[]{} parameter(1), metadata={op_name="(b"}
  ROOT c = f32[] add(%b, a), frontend_attributes={k="{"}, metadata={op_name="x\\"}" source_line=3}
}"""


@BACKENDS
@pytest.mark.parametrize(
    ("line", "expect"),
    [
        ("all-reduce(p), to_apply=add", "add"),
        ("all-reduce(p), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%add", "add"),
        ("reduce-scatter(p), replica_groups=[2,2]<=[2,2]T(1,0), dimensions={0}, to_apply=add, sharding={x}", "add"),
        ('all-reduce(p), frontend_attributes={k=", to_apply=b, "}, to_apply=add', "add"),
        ("all-gather(p), dimensions={0}", None),
        ('all-gather(p), dimensions={0}, frontend_attributes={k=", to_apply=add"}', None),
    ],
)
def test_the_name_of_a_reducer(line: str, expect: str | None, backend: str) -> None:
    """It is what all of the line says."""
    if backend == "proto":
        line = line.replace(", sharding={x}", "")
    instruction = load_as(REDUCED.format(reducer=ADD, line=line), backend).instruction("r")
    assert to_apply_name(instruction) == dict(instruction.called).get("apply") == expect


@BACKENDS
@pytest.mark.parametrize(
    ("old", "new", "expect"),
    [
        ("", "", "add"),
        ("add(%b, a)", "add(a, b)", "add"),
        ("add(%b, a)", "maximum(a, a)", None),
        ("add(%b, a)", "add(b, b)", None),
        ("add(%b, a)", "negate(a)", None),
        ("add(%b, a)", "clamp(a, b, a)", None),
        ("  ROOT", "  d = f32[] negate(a)\n  ROOT", "add"),
        ("ROOT c = f32[] add(%b, a)", "d = f32[] negate(a)\n  ROOT c = f32[] add(%b, d)", None),
        ("f32[] parameter(1)", "f32[] negate(a)", None),
        ("ROOT c", "c", "add"),
    ],
)
def test_the_operation_of_a_reducer(old: str, new: str, expect: str | None, backend: str) -> None:
    """It is the opcode of the root, where that is an operation on the two parameters."""
    reducer = ADD.replace("f32[]{}", "f32[]").replace(old, new, 1)
    module = load_as(REDUCED.format(reducer=reducer, line="all-reduce(p), to_apply=add"), backend)
    found = module.computation("add")
    assert found is not None
    assert reducer_opcode(found) == expect


def test_an_empty_reducer_does_nothing() -> None:
    """Nothing is made up."""
    found = load("HloModule m\n\nadd {\n}\n\nENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n").computation("add")
    assert found is not None
    with pytest.raises(LookupError):
        reducer_opcode(found)


def test_printed_reducers_are_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs have one for each collective."""
    line = "all-reduce(p), channel_id=1, replica_groups={{0,1}}, to_apply=add, metadata={}"
    module = load(REDUCED.format(reducer=ADD, line=line))
    found, instruction = module.computation("add"), module.instruction("r")
    assert found is not None

    def refuse(_: TextInstruction) -> None:
        msg = "this line was taken apart"
        raise AssertionError(msg)

    monkeypatch.setattr(TextInstruction, "parts", property(refuse))
    assert (to_apply_name(instruction), reducer_opcode(found)) == ("add", "add")
    assert not has_attribute(instruction, "backend_config")


@BACKENDS
@pytest.mark.parametrize(
    ("line", "expect"),
    [
        ("all-reduce(p), to_apply=add", False),
        ('all-reduce(p), to_apply=add, backend_config="x"', True),
        ('all-reduce(p), to_apply=add, metadata={op_name="backend_config=x"}', False),
    ],
)
def test_whether_an_attribute_is_stated(line: str, expect: bool, backend: str) -> None:
    """The name alone does not make one."""
    instruction = load_as(REDUCED.format(reducer=ADD, line=line), backend).instruction("r")
    assert has_attribute(instruction, "backend_config") == expect
