"""Setting attributes of generated lines: what was set is read again, and nothing else changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from commlens.hlo.edit_plan import AttributeChange
from commlens.hlo.text.editing import splices_of
from commlens.hlo.text.fast_edits import FastEditor
from commlens.hlo.text.splices import Splice
from text_edits import CHANNEL, STREAM, edits_for, module_of, outside_is_equal, source

if TYPE_CHECKING:
    from commlens.hlo.text.instruction import TextInstruction

KEYS = ("a", "stream_id", "stream", "zz", "B")
VALUES = ('"1"', '"a, b={\\"}"', "'word'", '{"n":[1,{}]}', '""')
ATTRIBUTES = {
    "channel_id": ("3", "-1"),
    "replica_groups": ("{{0,1},{2,3}}", "[2,2]<=[4]", "mesh['a'=2,'b'=2] {'a'}", "{}"),
    "to_apply": ("%add", "add", "%add.7"),
    "use_global_device_ids": ("true",),
    "sharding": ("{replicated}", "{devices=[4]<=[4]}"),
    "control-predecessors": ("{%a}",),
    "metadata": ('{op_name="f/g" source_line=3}', '{op_name="}, metadata={ channel_id=9"}'),
    "backend_config": ('{"a":{"b":"}"}}', '"raw"'),
}
PRINTED_SEPARATORS = (", ",)
SEPARATORS = (", ", ",", " ,  ", ",\n    ", " /* c, */ , ", ", // c\n   ")


@st.composite
def maps(draw: st.DrawFn, separators: tuple[str, ...]) -> list[str]:
    """Pieces of a map: keys and values, and what stands between them."""
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=4))
    pieces = [f"{key}={draw(st.sampled_from(VALUES))}" for key in keys]
    between = draw(st.sampled_from(separators))
    return [each for piece in pieces for each in (piece, between)][:-1]


@st.composite
def lines(draw: st.DrawFn, separators: tuple[str, ...]) -> str:
    """Instructions named ``x`` with attributes in any order."""
    names = draw(st.lists(st.sampled_from([*ATTRIBUTES, "frontend_attributes"]), unique=True))
    head = draw(
        st.sampled_from(["x = f32[8]{0} all-reduce(a)", "ROOT %x = (f32[8]{0:T(8)}) all-reduce(f32[8]{0:T(8)} %a)"])
    )
    text = head
    for name in names:
        if name == "frontend_attributes":
            value = "{" + "".join(draw(maps(separators))) + "}"
        else:
            value = draw(st.sampled_from(ATTRIBUTES[name]))
        text += f"{draw(st.sampled_from(separators))}{name}={value}"
    return text


def changes() -> st.SearchStrategy[AttributeChange]:
    """What is to become of an instruction."""
    values = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["0", "1", "a, b", 'x"}{', ""]), max_size=3)
    return st.builds(AttributeChange, st.none() | st.sampled_from([3, 77]), values)


@given(lines(SEPARATORS), changes())
def test_any_spelling(line: str, change: AttributeChange) -> None:
    """Reading an edited text again gives the new values, the other attributes as they were, and the same bytes outside."""
    module = module_of(source(f" {line}"))
    instruction = next(each for each in module.computations[1].instructions if each.name == "x")
    splices = sorted(splices_of(module, edits_for(instruction, change)))
    after = module.edited(edits_for(instruction, change))
    again = after.computations[1].instruction("x")
    assert again is not None
    assert again.frontend_attributes == {**instruction.frontend_attributes, **change.frontend_attributes}
    assert again.channel_id == (instruction.channel_id if change.channel_id is None else change.channel_id)
    others = [key for key in instruction.parts.attributes if key not in ("channel_id", "frontend_attributes")]
    assert others == [key for key in again.parts.attributes if key not in ("channel_id", "frontend_attributes")]
    assert all(again.parts.value(key) == instruction.parts.value(key) for key in others)
    assert (after is module) == (not splices)
    assert outside_is_equal(module, after, edits_for(instruction, change))


@given(lines(SEPARATORS), changes())
def test_twice_is_once(line: str, change: AttributeChange) -> None:
    """Making the same edits again changes nothing."""
    module = module_of(source(f" {line}"))
    after = module.edited(edits_for(module.computations[1].instructions[1], change))
    assert after.edited(edits_for(after.computations[1].instructions[1], change)) is after


@given(st.lists(lines(PRINTED_SEPARATORS), min_size=1, max_size=4), changes())
def test_the_fast_path_gives_what_the_careful_one_does(found: list[str], change: AttributeChange) -> None:
    """Printed lines that are looked up among others give the splices that taking them apart gives."""
    body = "\n".join(f"  {line.replace('x', f'x.{number}', 1)}" for number, line in enumerate(found))
    module = module_of(source(body))
    assert module.computations[1].starts is None
    editor = FastEditor()
    for instruction in module.computations[1].instructions[1:]:
        quick = editor.splices(instruction, change)
        if quick is not None:
            assert quick == careful(instruction, change)


def careful(instruction: TextInstruction, change: AttributeChange) -> list[Splice]:
    """Return what the slow path gives: one blank less before a line is enough to lead there."""
    text = instruction.computation.text
    alone = text[: instruction.start - 1] + text[instruction.start :]
    module = module_of(bytes(alone))
    assert module.computations[1].starts is not None
    again = module.computations[1].instruction(instruction.name)
    assert again is not None
    return [Splice(start + 1, end + 1, put) for start, end, put in sorted(splices_of(module, edits_for(again, change)))]


def test_the_fast_path_takes_what_is_printed() -> None:
    """Of the lines above it takes most of those that compilers print, and agrees on each of them."""
    change = AttributeChange(12, {"stream_id": "0"})
    taken = 0
    for case in (*STREAM, *CHANNEL):
        module = module_of(source(str(case.values[0])))
        instruction = module.computations[1].instructions[1]
        quick = FastEditor().splices(instruction, change) if module.computations[1].starts is None else None
        if quick is not None:
            assert quick == careful(instruction, change)
            taken += 1
    assert taken >= 17
