"""What of a text is not edited: values without an end, two things in a value, names that are given twice; and where."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from commlens.errors import InputError
from commlens.hlo import (
    BecomeCustomCall,
    Combine,
    EditError,
    Pipeline,
    SetChannelId,
    SetFrontendAttribute,
    UnreadableError,
    load,
)
from commlens.neuron import (
    CollectiveStreamIdChecker,
    ConvertCollectivesToCustomCall,
    NeuronAllGatherCombiner,
    NeuronCollectiveStreamIdInjector,
    NeuronUniqueChannelIdEnforcer,
)

if TYPE_CHECKING:
    from commlens.hlo import Edit, Module, Pass

HEAD = """HloModule m, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

"""
GROUPS = "replica_groups={{0,1},{2,3}}"


def module_of(lines: str) -> Module:
    """Return a module with an entry of these lines, the first of which is line 10."""
    return load(f"{HEAD}ENTRY e {{\n  p = f32[8]{{0}} parameter(0)\n{lines}\n}}\n")


def edits_of(module: Module) -> list[Edit]:
    """Return one edit of each kind that touches the attributes of x."""
    x = module.instruction("x")
    return [SetChannelId(x, 5), SetFrontendAttribute(x, "stream_id", "0"), BecomeCustomCall(x, "T", "{}")]


UNCLOSED = [
    ("use_global_device_ids={", "{", "use_global_device_ids"),
    ("constrain_layout={true", "{", "constrain_layout"),
    ("zzz={ q", "{", "zzz"),
    ("zzz=[1,2", "[", "zzz"),
    ("zzz=(1", "(", "zzz"),
    ('zzz="q', '"', "zzz"),
    ("zzz={1]", "{", "zzz"),
    ("zzz={1}}", "}", "zzz"),
    ("zzz=1}, yyy={2", "}", "zzz"),
]


@pytest.mark.parametrize(("value", "found", "key"), UNCLOSED)
@pytest.mark.parametrize("last", ["", ', frontend_attributes={stream_id="1"}', ', metadata={op_name="f(x)"}'])
@pytest.mark.parametrize("indent", ["  ", "    "])
def test_a_value_without_an_end_takes_no_edit(value: str, found: str, key: str, last: str, indent: str) -> None:
    """Nothing is put into a value that has no end, or behind it: the bracket is named with its line and column."""
    line = f"{indent}ROOT x = f32[16]{{0}} all-gather(p), {GROUPS}, dimensions={{0}}, {value}{last}"
    column = line.index(value) + value.index(found) + 1 + (value == "zzz={1}}")
    if (value, last, indent) == ("zzz={1}}", "", "    "):
        assert module_of(line).instruction("x").raw_attribute("zzz") == "{1}"
        return  # the computation ends on the line, and the brace behind belongs to nobody
    module = module_of(line)
    for edit in edits_of(module):
        with pytest.raises(EditError) as caught:
            module.edited([edit])
        where = "" if found == "}" and indent == "    " else f" in the value of {key}"
        why = f"the attributes of x cannot be edited: expected the other half of {found!r}{where}, found none"
        if not (value == 'zzz="q' and last):  # then the string ends where the next one begins
            assert str(caught.value) == why
            assert (caught.value.line, caught.value.column) == (11, column)


@pytest.mark.parametrize("value", ["use_global_device_ids={", "constrain_layout={true", "zzz={ q"])
def test_passes_refuse_it_with_its_place(value: str) -> None:
    """Passes say the same, with the place; where they go on, the collective is left alone and named."""
    line = f"  x = f32[16]{{0}} all-gather(p), {GROUPS}, dimensions={{0}}"
    module = module_of(f"{line}, {value}\n{line.replace('x =', 'y =')}")
    column = f"{line}, {value}".index(value) + value.index("{") + 1
    passes: list[Pass] = [
        CollectiveStreamIdChecker(),
        NeuronCollectiveStreamIdInjector(),
        ConvertCollectivesToCustomCall(),
        NeuronUniqueChannelIdEnforcer(),
    ]
    for each in passes:
        with pytest.raises(InputError, match=r"x: .*expected") as caught:
            each.run(module)
        assert (caught.value.line, caught.value.column) == (11, column)
    result = NeuronCollectiveStreamIdInjector().run(module, keep_going=True)
    lines = result.module.to_bytes().decode().split("\n")
    assert lines[10] == f"{line}, {value}"
    assert 'stream_id="0"' in lines[11]
    (left,) = result.left_alone
    assert (left.instruction, left.line, left.column) == ("x", 11, column)


@pytest.mark.parametrize(
    "value",
    [
        "zzz={\"}\",a='{'}",
        "zzz={ q , r }",
        'zzz="a ) b"',
        "sharding={devices=[2,2]<=[4] last_tile_dims={manual}}",
        "zzz=f32[8]{0:T(8,128)(2,1)}",
        "zzz=mesh['a'=2, 'b'=2] {'a'}",
    ],
)
def test_values_with_an_end_take_edits(value: str) -> None:
    """Brackets in strings, blanks in brackets and meshes are no faults."""
    groups = "replica_groups = " if value.startswith("zzz=mesh") else "replica_groups="
    line = f"  ROOT x = f32[16]{{0}} all-gather(p), {groups.replace(' ', '')}[2,2]<=[2,2] T(1,0), dimensions={{0}}, {value} "
    module = module_of(line)
    for edit in edits_of(module)[:2]:
        assert value in module.edited([edit]).to_bytes().decode()


@pytest.mark.parametrize(
    "damaged",
    [
        'cons"7"nt.11 = f32[] constant(4)',
        "cons/nt.11 = f32[] constant(4)",
        "foo bar = f32[] constant(4)",
        "{x} = f32[] constant(4)",
        "(x)",
    ],
)
@pytest.mark.parametrize("joined", ["\n  k = f32[] constant(4)  q = f32[] constant(5)", ""])
def test_a_damaged_line_is_not_swallowed(damaged: str, joined: str) -> None:
    """What follows an instruction and is none is never taken for a part of its last attribute, and never lost."""
    module = module_of(f"  x = f32[8]{{0}} all-reduce(p), {GROUPS}, to_apply=add\n  {damaged}{joined}")
    kept = ConvertCollectivesToCustomCall().run(module, keep_going=True).module.to_bytes().decode()
    assert damaged in kept
    with_two = module_of(f"   x = f32[8]{{0}} all-reduce(p), {GROUPS}, to_apply=add\n  {damaged}{joined}")
    with pytest.raises(EditError, match=r"^the attributes of x cannot be edited: expected ") as caught:
        with_two.edited([BecomeCustomCall(with_two.instruction("x"), "T", "{}")])
    assert caught.value.line in (11, 12)


def test_a_brace_is_not_swallowed_at_the_end() -> None:
    """Where a value may have taken the computation's own brace for its end, it has none."""
    for last in ("zzz={ q", 'zzz={ q, metadata={op_name="f"}'):
        module = module_of(f"   x = f32[8]{{0}} all-reduce(p), {GROUPS}, to_apply=add, {last}")
        with pytest.raises(EditError, match=r"expected the other half of '\{' in the value of zzz, found none"):
            module.edited([SetChannelId(module.instruction("x"), 5)])


GATHERS = """  x = f32[16]{0} all-gather(p), replica_groups={}, dimensions={0}
  %x.1 = f32[16]{0} all-gather(p), replica_groups={}, dimensions={0}
  y = f32[16]{0} add(x, x.1)"""


@pytest.mark.parametrize("indent", ["  ", "   "])
def test_names_that_are_given_twice(indent: str) -> None:
    """In a computation with a name that is given twice nothing is combined: name, lines and column are said."""
    again = f"{GATHERS}\n  %y = f32[16]{{0}} negate(x)\n  z = f32[16]{{0}} negate(y)".replace("\n  ", "\n" + indent)
    module = module_of(again)
    x, other = (module.instruction(name) for name in ("x", "x.1"))
    with pytest.raises(EditError) as caught:
        module.edited([Combine((x, other), "both")])
    assert str(caught.value) == (
        "expected each instruction of e to have a name of its own, found y in the lines 13 and 14: nothing can be combined"
        " there"
    )
    assert (caught.value.line, caught.value.column) == (14, len(indent) + 2)
    with pytest.raises(
        InputError, match=r"^<text>:14:\d+: .*: expected each instruction of e to have a name of its own"
    ):
        Pipeline((NeuronAllGatherCombiner(),)).run(module)
    edited = module.edited([SetChannelId(x, 5), SetFrontendAttribute(other, "a", "b")])
    assert edited.to_bytes().count(b"channel_id=5") == 1


def test_names_are_told_apart_by_computation() -> None:
    """The same name in two computations, or in a string, is no name given twice."""
    text = GATHERS.replace("  y =", '  a = f32[8]{0} copy(p), metadata={op_name="\\n  x = f32[]"}\n  y =')
    module = module_of(text)
    assert module.edited([Combine((module.instruction("x"), module.instruction("x.1")), "both")]) is not module


PLACES = [
    ("  ROOT %x = f32[8]{0} all-reduce(q), to_apply=add", 8, "operand q of x is not defined"),
    ("    x = f32[8]{0} all-reduce(q), to_apply=add", 5, "operand q of x is not defined"),
    ("  x = f32[8]{0} all-reduce(p), replica_groups={{0}, to_apply=add", 47, "replica_groups cannot be read"),
    ("  x = f32[8]{0} all-reduce(p), channel_id=w, to_apply=add", 43, "channel_id to be an integer"),
    ("  x = f32[8]{0} all-reduce(p), replica_groups={{0},x}, to_apply=add", 47, "replica_groups cannot be read"),
    ("  x = f32[8]{0} all-reduce(p), to_apply=add, use_global_device_ids=1", 68, "to be true or false"),
    ("  x = f32[8]{0} all-reduce(p), to_apply=add, what?", 46, "expected attribute=value behind the comma"),
    ("  x = q32[8]{0} all-reduce(p), to_apply=add", 7, "q32"),
]


@pytest.mark.parametrize(("line", "column", "says"), PLACES)
def test_errors_of_edits_have_a_line_and_a_column(line: str, column: int, says: str) -> None:
    """A pass that cannot read a collective says line and column, of the fault or of the name."""
    with pytest.raises(InputError, match=re.escape(says)) as caught:
        NeuronCollectiveStreamIdInjector().run(module_of(line))
    assert (caught.value.line, caught.value.column) == (11, column)
    assert str(caught.value).startswith(f"<text>:11:{column}: x: ")


def test_operands_that_are_collectives_are_refused_with_their_place() -> None:
    """A collective that stands as an operand has a line and a column too."""
    module = module_of(
        "  n = f32[8]{0} negate(p)\n    ROOT y = f32[8]{0} negate(f32[8]{0} all-reduce(p), to_apply=add)"
    )
    nested = next(each for each in module.computations[1].instructions if each.opcode == "all-reduce")
    with pytest.raises(EditError, match=r"^all-reduce\.anon cannot be edited where it stands as an operand") as caught:
        module.edited([SetChannelId(nested, 3)])
    assert (caught.value.line, caught.value.column) == (12, 31)
    with pytest.raises(InputError, match=r"^<text>:12:31: all-reduce\.anon: "):
        NeuronCollectiveStreamIdInjector().run(module)


def test_unreadable_parts_say_where_they_are() -> None:
    """The place stands in the error itself, whoever asks."""
    module = module_of("  x = f32[8]{0} all-reduce(p), dimensions={a}, to_apply=add")
    with pytest.raises(UnreadableError) as caught:
        _ = module.instruction("x").dimensions
    assert (caught.value.line, caught.value.column) == (11, 43)
