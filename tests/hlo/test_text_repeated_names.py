"""Names that several instructions of a computation bear: none of them is edited, and all others are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.errors import InputError
from commlens.hlo import EditError, Pipeline, SetChannelId, SetFrontendAttribute, load
from commlens.hlo.text import TextModule, read_modules
from commlens.neuron import NeuronCollectiveStreamIdInjector

STEMS = (
    "x",
    "ab",
    "abcdefg",
    "abcdefgh",
    "abcdefghi",
    "all-reduce.1",
    "a" * 15,
    "a" * 16,
    "a" * 31,
    "a" * 32,
    "a" * 40,
)
"""Names around the lengths at which they are compared by eight bytes at a time."""
PADDING = "".join(f"  padding.{number} = f32[8]{{0}} negate(p)\n" for number in range(400))


def text_of(lines: list[str], padding: str) -> str:
    """Return a module whose entry has these lines; with the padding it is large."""
    return "HloModule m\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n" + padding + "".join(lines) + "}\n"


def line_of(name: str, mark: str = "", shape: str = "f32[8]{0}") -> str:
    """Return an instruction of a name."""
    return f"  {mark}{name} = {shape} copy(p)\n"


def twice(names: list[str]) -> set[str]:
    """Return the names that stand there more than once, by looking at every pair."""
    return {one for number, one in enumerate(names) for other in names[number + 1 :] if one == other}


@given(
    st.lists(st.tuples(st.sampled_from(STEMS), st.sampled_from(["", "a", ".2"])).map("".join), min_size=1, max_size=12),
    st.lists(st.sampled_from(["", "%", "ROOT ", "ROOT %"]), min_size=12, max_size=12),
    st.lists(st.sampled_from(["f32[8]{0}", "(f32[8], s32[])"]), min_size=12, max_size=12),
    st.sampled_from(["", PADDING]),
)
def test_an_instruction_is_edited_where_no_other_has_its_name(
    names: list[str], marks: list[str], shapes: list[str], padding: str
) -> None:
    """Whatever stands before a name or behind it, and however large the computation is."""
    text = text_of([line_of(*each) for each in zip(names, marks, shapes, strict=False)], padding)
    (module,) = read_modules(text.encode())
    assert module.computations[0].starts is None
    bad = twice(names)
    first = 5 + padding.count("\n")
    for number, instruction in enumerate(module.computations[0].instructions[-len(names) :]):
        if names[number] not in bad:
            assert module.edited([SetFrontendAttribute(instruction, "a", "1")]) is not module
            continue
        with pytest.raises(EditError) as caught:
            module.edited([SetFrontendAttribute(instruction, "a", "1")])
        lines = [first + place for place, name in enumerate(names) if name == names[number]]
        why = f"expected each instruction of e to have a name of its own, found {names[number]} in the lines"
        assert str(caught.value) == f"{why} {lines[0]} and {lines[1]}"
        column = 3 + marks[number].count("ROOT ") * 0
        assert (caught.value.line, caught.value.column) == (first + number, column)


@pytest.mark.parametrize("indent", ["  ", "   "])
@pytest.mark.parametrize("padding", ["", PADDING])
def test_passes_name_one_of_them(indent: str, padding: str) -> None:
    """The error has a place; who goes on leaves both alone and stamps the others. Other computations do not matter."""
    lines = [f"  {name} = f32[8]{{0}} all-reduce(p), to_apply=add\n" for name in ("x", "y", "x")]
    other = "other {\n  p = f32[8]{0} parameter(0)\n  y = f32[8]{0} negate(p)\n}\n\nENTRY"
    text = text_of(lines, padding).replace("ENTRY", other).replace("\n  ", "\n" + indent)
    module = load(text)
    with pytest.raises(InputError, match=r": x: expected each instruction of e to have a name of its own, found x in"):
        NeuronCollectiveStreamIdInjector().run(module)
    result = NeuronCollectiveStreamIdInjector().run(module, keep_going=True)
    changed = [line for line in result.module.to_bytes().decode().splitlines() if "stream_id" in line]
    assert changed == [f'{indent}y = f32[8]{{0}} all-reduce(p), to_apply=add, frontend_attributes={{stream_id="0"}}']
    assert [left.instruction for left in result.left_alone] == ["x", "x"]


def test_a_pipeline_that_verifies_says_so_before() -> None:
    """No pass runs on a text in which two instructions cannot be told apart, wherever they stand."""
    text = text_of([line_of("x"), line_of("x"), "  y = f32[8]{0} all-reduce(p), to_apply=add\n"], "")
    passes = (NeuronCollectiveStreamIdInjector(),)
    with pytest.raises(
        InputError, match=r"^<text>:6:3: the module cannot be verified: computation e has two instructions named x$"
    ):
        Pipeline(passes, verify=True).run(load(text))
    assert Pipeline(passes).run(load(text))[0].modified
    assert Pipeline(passes, verify=True).run(load(text), keep_going=True)[0].modified


def test_names_in_other_places_are_no_names() -> None:
    """A string, an operand and a longer name say nothing."""
    lines = [
        "  x = f32[8]{0} all-reduce(p), to_apply=add\n",
        '  xx = f32[8]{0} negate(x), metadata={op_name="\\n  x = f32"}\n',
        "  y.x = f32[8]{0} add(x, x)\n",
    ]
    module = load(text_of(lines, PADDING))
    assert isinstance(module, TextModule)
    assert module.edited([SetChannelId(module.instruction("x"), 5)]) is not module
