"""Damage on an edited line: what makes a collective unread, what only forbids its edits, and what is no damage at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.errors import InputError
from commlens.hlo import BecomeCustomCall, EditError, SetChannelId, SetFrontendAttribute, discover, load
from commlens.neuron import NeuronAllReduceCombiner, NeuronCollectiveStreamIdInjector
from text_edits import source
from xla_reader import XlaReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Edit, Module

REDUCE = "  x = f32[8]{0} all-reduce(a), channel_id=1, to_apply=add"
SHAPED = "  x = SHAPE all-reduce(a), channel_id=1, to_apply=add"
NAMED = " = f32[8]{0} all-reduce(a), channel_id=1, to_apply=add"

DAMAGED = [
    (f"{REDUCE}, sharding=", 69, "a sharding such as {replicated} as the value of sharding, found nothing"),
    (f"{REDUCE}, metadata=", 69, 'fields such as {op_name="f"} as the value of metadata, found nothing'),
    (f"{REDUCE}, metadata=zzz", 69, "fields such as {op_name=\"f\"} as the value of metadata, found 'zzz'"),
    (f'{REDUCE}, metadata={{op_name="x" source_line=abc}}', 82, "fields such as op_name=\"f\" as the value of metadata, found 'source_line=abc'"),
    (f'{REDUCE}, metadata={{op_name="x" source_line="3"}}', 94, "an integer as the value of source_line of metadata"),
    (f"{REDUCE}, metadata={{op_name=x}}", 70, "fields such as"),
    (f'{REDUCE}, metadata={{op_name="x",}}', 82, "fields such as op_name=\"f\" as the value of metadata, found nothing"),
    (f'{REDUCE}, metadata={{op_name="x" op_name="y"}}', 82, "the field op_name of metadata once, found it again"),
    (f"{REDUCE}, backend_config=", 75, "a quoted string or a block in braces as the value of backend_config, found nothing"),
    (f"{REDUCE}, backend_config=word", 75, "a quoted string or a block in braces as the value of backend_config"),
    (f"{REDUCE}, control-predecessors=", 81, "names of instructions such as {a,b} as the value of control-predecessors, found nothing"),
    (f"{REDUCE}, control-predecessors={{}}", 81, "names of instructions such as {a,b}"),
    (f"{REDUCE}, control-predecessors={{a,}}", 81, "names of instructions such as {a,b}"),
    (f"{REDUCE}, control-predecessors={{nope}}", 81, "the control predecessor nope among the instructions before x, found none of that name"),
    (f"{REDUCE}, control-predecessors={{x}}", 81, "the control predecessor x among the instructions before x, found itself"),
    (f"{REDUCE}, control-predecessors={{a,z}}", 81, "the control predecessor z among the instructions before x, found it behind"),
    (f"{REDUCE}, zzz=", 64, "a value as the value of zzz, found nothing"),
    (REDUCE[:-3], 55, "the name of a computation as the value of to_apply, found nothing"),
    (f"{REDUCE[:-3]}{{add}}", 55, "the name of a computation as the value of to_apply, found '{add}'"),
    (SHAPED.replace("SHAPE", "f32[8]{zz}"), 13, "a layout such as {1,0} or {1,0:T(8,128)}, found '{zz}'"),
    (SHAPED.replace("SHAPE", "f32[8]{/0}"), 13, "a layout such as"),
    (SHAPED.replace("SHAPE", "f32[8]{0:X(9)}"), 13, "a layout such as"),
    (SHAPED.replace("SHAPE", "f32[8]{0:S(1)T(8)}"), 13, "a layout such as"),
    (SHAPED.replace("SHAPE", "f32[8]{0:T(8,)}"), 13, "a layout such as"),
    (SHAPED.replace("SHAPE", "f32[8]{0:S()}"), 13, "a layout such as"),
    (SHAPED.replace("SHAPE", "f32[8]{0:TS(1)}"), 13, "a layout such as"),
    (SHAPED.replace("SHAPE", "f32[8]{0:SC(0)}"), 13, "a layout such as"),
    (SHAPED.replace("SHAPE", "f32[8]{0,1}"), 13, "a layout that orders 1 dimension, found '{0,1}'"),
    (SHAPED.replace("SHAPE", "f32[8]{}"), 13, "a layout that orders 1 dimension, found '{}'"),
    (REDUCE.replace("(a)", "(f32[8]{zz} a)"), 34, "a layout such as"),
    (f"  %all-to-{{}}all.9{NAMED}", 3, "a name such as %x.1 alone before '=', found '%all-to-{}' before it"),
    (f"  %_/t-1{NAMED}", 3, "a name such as %x.1 alone before '=', found '%_/' before it"),
    (f"  %/*{{*/_t{NAMED}", 3, "a name such as %x.1 alone before '=', found '%' before it"),
    (f"  %%x{NAMED}", 3, "a name such as %x.1 alone"),
    (f"  w x{NAMED}", 3, "a name such as %x.1 alone before '=', found 'w' before it"),
]  # fmt: skip

WHOLE = [
    REDUCE,
    f'{REDUCE}, metadata={{op_name="x",source_line=3}}',
    f'{REDUCE}, metadata={{op_name="x" , source_line=3 }}',
    f'{REDUCE}, metadata={{source_line=3 op_name="x"}}',
    f'{REDUCE}, metadata={{op_name="x"source_line=-3}}',
    f'{REDUCE}, metadata={{op_type="t" op_name="}}" source_file="f" source_line=3 source_end_line=4 source_column=5}}',
    f'{REDUCE}, metadata={{profile_type={{1,2}} op_name="f"}}',
    f"{REDUCE}, metadata={{}}",
    f"{REDUCE}, control-predecessors={{a}}",
    f"{REDUCE}, control-predecessors={{%a, a}}",
    f'{REDUCE}, backend_config="{{"',
    f'{REDUCE}, backend_config={{"a":[1]}}',
    f"{REDUCE}, sharding={{{{replicated}},{{manual}}}}".replace("f32[8]{0} all", "(f32[8]{0}, f32[8]{0}) all").replace("(a)", "(a, a)"),
    SHAPED.replace("SHAPE", "f32[8]"),
    SHAPED.replace("SHAPE", "f32[8]{ 0 }"),
    SHAPED.replace("SHAPE", "f32[8] {0}"),
    SHAPED.replace("SHAPE", "f32[8]{0:}"),
    SHAPED.replace("SHAPE", "f32[8]{0:T(8)(2,1)L(4)E(32)S(1)}"),
    SHAPED.replace("SHAPE", "f32[8]{0:D(C+~)S(-1)SC(0:4,5)}"),
    SHAPED.replace("SHAPE", "f32[8]{/*c*/0}"),
    SHAPED.replace("SHAPE", "f32[8]{0:T(8)S (1)}"),
    SHAPED.replace("SHAPE", "f32[8]{0:T()}"),
    SHAPED.replace("SHAPE", "f32[8]{0:D T L # * E S SC M}"),
    SHAPED.replace("SHAPE", "f32[8]{0 : T (8) ( ) L\n(4) #() E (4)SC (0 : )(1:-2) M( 8 )}"),
    SHAPED.replace("SHAPE", "f32[8]{5}"),
    REDUCE.replace("(a)", "(f32[8]{1} a)"),
    REDUCE.replace("(a)", "(f32[8]{0:T(8)} a)"),
    REDUCE.replace("(a)", "(a, )"),
    REDUCE.replace("(a)", "(, a)"),
    REDUCE.replace("(a)", "(a,)"),
    f"  /*c*/%x{NAMED}",
    f"  x./**/{NAMED}",
    REDUCE.replace("=add", "= add"),
    REDUCE.replace("=add", "=\n    add"),
    f'{REDUCE}, frontend_attributes=\n{{\n a="1"\n}}',
    f"  w = f32[8]{{0}} copy(a), sharding={{replicated}}x{NAMED}",
]  # fmt: skip


@pytest.fixture(scope="module")
def xla() -> Iterator[XlaReader]:
    """Return XLA's reader."""
    reader = XlaReader()
    yield reader
    reader.close()


def module_of(lines: str) -> Module:
    """Return a module with these lines in its entry, the first of which is line 11, and more behind them."""
    return load(text_of(lines))


def text_of(lines: str) -> bytes:
    """Return its text."""
    return source(f"{lines}\n  ROOT z = f32[8]{{0}} copy(a)")


def edits_of(module: Module) -> list[Edit]:
    """Return an edit of each kind of the only collective."""
    (site,) = discover(module).sites
    x = site.instruction
    return [SetChannelId(x, 5), SetFrontendAttribute(x, "stream_id", "0"), BecomeCustomCall(x, "T", "{}")]


@pytest.mark.parametrize(("line", "column", "expected"), DAMAGED)
def test_a_damaged_line_takes_no_edit(line: str, column: int, expected: str) -> None:
    """Its row stays, for no row is made of what is damaged; edits are refused with the place, or it is left alone."""
    module = module_of(line)
    for edit in edits_of(module):
        with pytest.raises(EditError) as caught:
            module.edited([edit])
        assert f"cannot be edited: expected {expected}" in str(caught.value)
        assert (caught.value.line, caught.value.column) == (11, column)
    with pytest.raises(InputError, match=rf"^<bytes>:11:{column}: "):
        NeuronCollectiveStreamIdInjector().run(module)
    result = NeuronCollectiveStreamIdInjector().run(module, keep_going=True)
    assert result.module is module
    assert len(result.left_alone) == 1


@pytest.mark.parametrize("line", WHOLE)
def test_a_line_that_xla_reads_takes_every_edit(line: str) -> None:
    """What looks odd and is none has its row, and is edited."""
    module = module_of(line)
    assert discover(module).unread == ()
    for edit in edits_of(module):
        assert module.edited([edit]) is not module


def test_xla_draws_the_same_line(xla: XlaReader) -> None:
    """It takes what is edited, before and after, and refuses what is not."""
    for line in WHOLE:
        assert xla.reads(text_of(line)), line
        module = module_of(line)
        assert xla.reads(module.edited(edits_of(module)[:2]).to_bytes()), line
    for line, _, _ in DAMAGED:
        assert not xla.reads(text_of(line)), line


@pytest.mark.parametrize("value", ["+3", "", "0x3", "3_0", '"3"'])
def test_a_channel_that_is_no_integer_makes_its_collective_unread(value: str) -> None:
    """A row has the channel, so it cannot do without."""
    found = discover(module_of(REDUCE.replace("channel_id=1", f"channel_id={value}")))
    assert found.sites == ()
    assert found.unread[0].why == f"expected channel_id to be an integer of 64 bits, found {value!r}"


def test_a_line_without_a_name_is_not_taken_for_the_value_before_it() -> None:
    """``to_apply=add`` before it names a computation, and no instruction: both collectives are unread items."""
    lines = f"{REDUCE}\n{NAMED[1:]}".replace("\n=", "\n  =")
    module = module_of(lines)
    found = discover(module)
    assert found.sites == ()
    assert [item.where for item in found.unread] == ["11", "12"]
    assert NeuronCollectiveStreamIdInjector().run(module, keep_going=True).module is module


def test_an_empty_value_does_not_swallow_the_next_line() -> None:
    """The instruction below stays one."""
    module = module_of(f"{REDUCE[:-3]}\n  y = f32[8]{{0}} copy(a)")
    entry = module.entry
    assert entry is not None
    assert [each.name for each in entry.instructions] == ["a", "x", "y", "z"]


@pytest.mark.parametrize("end", ["metadata=", "metadata={op_na", "metadata", "sharding=", "frontend_attributes={a="])
def test_a_cut_line_is_left_alone_wherever_it_was_cut(end: str) -> None:
    """Of a text that ends in mid-line the last instruction is not edited; what stands before it is."""
    text = text_of(f"{REDUCE.replace('x =', 'y =')}\n{REDUCE}, {end}")
    cut = text[: text.rindex(end.encode()) + len(end)]
    result = NeuronCollectiveStreamIdInjector().run(load(cut), keep_going=True)
    assert result.module.to_bytes().count(b"stream_id") == 1
    assert result.module.to_bytes().endswith(end.encode())
    assert "x" in [left.instruction for left in result.left_alone]


COMBINED = [
    ("f32[8]{0} a", True),
    ("f32[8] a", True),
    ("f32[8]{0:T(8)} %a", True),
    ("f32[<=8] a", True),
    ("f32[4]{0} a", False),
    ("s32[8]{0} a", False),
    ("f32[4,2] a", False),
]


@pytest.mark.parametrize(("operand", "agrees"), COMBINED)
def test_an_operand_whose_type_contradicts_its_definition_is_not_combined(operand: str, *, agrees: bool) -> None:
    """The new collective would have the wrong shape; layouts and dynamic dimensions may differ."""
    line = REDUCE.replace("x =", "y =").replace("(a)", f"({operand})")
    module = module_of(f"{REDUCE}\n{line}")
    if agrees:
        assert NeuronAllReduceCombiner().run(module).modified
        return
    with pytest.raises(InputError, match="y cannot be combined: expected its operand a to be f32") as caught:
        NeuronAllReduceCombiner().run(module)
    assert (caught.value.line, caught.value.column) == (12, 28)
    assert NeuronAllReduceCombiner().run(module, keep_going=True).module is module


def test_commas_around_operands_are_not_combined() -> None:
    """They stand for nothing, and the list of the new collective has none."""
    module = module_of(f"{REDUCE.replace('(a)', '(a, )')}\n{REDUCE.replace('x =', 'y =').replace('(a)', '(, a)')}")
    assert b"all-reduce(a, a)" in NeuronAllReduceCombiner().run(module).module.to_bytes()
