"""Custom calls made of printed lines: a line that is looked up gives the bytes that taking it apart gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.hlo import BecomeCustomCall, EditError
from commlens.hlo.text import TextModule, read_modules
from commlens.hlo.text.fast_edits import FastEditor
from commlens.hlo.text.splices import spliced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.hlo.text.instruction import TextInstruction

NEW: Final = ', custom_call_target="F", backend_config={"a":"b"}'


def module_of(lines: Sequence[str], *, indent: str = "  ") -> TextModule:
    """Return a module whose entry has these lines behind a parameter."""
    body = "".join(f"{indent}{line}\n" for line in ("a = f32[8]{0} parameter(0)", *lines, "end = f32[8]{0} copy(a)"))
    (module,) = read_modules(f"HloModule m\n\nENTRY main {{\n{body}}}\n".encode())
    return module


def edits(module: TextModule) -> list[BecomeCustomCall]:
    """Return the edits that turn all lines but the first and the last into custom calls."""
    return [BecomeCustomCall(each, "F", '{"a":"b"}') for each in written(module)]


def written(module: TextModule) -> list[TextInstruction]:
    """Return the instructions of all lines but the first and the last."""
    return list(module.computations[0].instructions[1:-1])


def carefully(line: str) -> str:
    """Return what a line becomes that people indented, so that it is taken apart; or why it cannot be edited."""
    module = module_of([line], indent="   ")
    try:
        after = module.edited(edits(module)).to_bytes().decode()
    except EditError as error:
        return f"refused: {error}"
    return after.partition("parameter(0)\n   ")[2].partition("\n   end = ")[0]


def quickly(editor: FastEditor, instruction: TextInstruction) -> str | None:
    """Return what a printed line becomes, None where it is left to the slow path."""
    found = editor.custom_call(instruction, BecomeCustomCall(instruction, "F", '{"a":"b"}'))
    if found is None:
        return None
    return spliced(instruction.computation.text, found, instruction.start, instruction.end).decode()


def quick(line: str) -> str | None:
    """Return what a line alone becomes, None where it is left to the slow path, or seems to be no printed line."""
    (instruction,) = written(module_of([line]))
    return quickly(FastEditor(), instruction)


@pytest.mark.parametrize(
    ("line", "expect"),
    [
        pytest.param("x = f32[8]{0} all-reduce(a)", f"x = f32[8]{{0}} custom-call(a){NEW}", id="nothing else"),
        pytest.param(
            "ROOT %x = f32[8]{0} all-reduce(%a), channel_id=3, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%add",
            f"ROOT %x = f32[8]{{0}} custom-call(%a){NEW}",
            id="all goes",
        ),
        pytest.param(
            "x = (f32[8]{0:T(8,128)}, (f32[8]{0}, f32[])) all-reduce(f32[8]{0:T(8,128)} %a, /*index=1*/a), replica_groups=[1,2]<=[2]",
            f"x = (f32[8]{{0:T(8,128)}}, (f32[8]{{0}}, f32[])) custom-call(f32[8]{{0:T(8,128)}} %a, /*index=1*/a){NEW}",
            id="the head stays",
        ),
        pytest.param(
            'x = f32[8]{0} all-gather(a), channel_id=1, sharding={replicated}, dimensions={0}, frontend_attributes={k="v, to_apply=x"}, metadata={op_name="f(g)"}',
            f'x = f32[8]{{0}} custom-call(a){NEW}, sharding={{replicated}}, frontend_attributes={{k="v, to_apply=x"}}, metadata={{op_name="f(g)"}}',
            id="what stays",
        ),
        pytest.param(
            'x = f32[8]{0} all-reduce(a), to_apply=add, metadata={op_name="f"}, backend_config={"k":"v"}, new_thing=1',
            f'x = f32[8]{{0}} custom-call(a){NEW}, metadata={{op_name="f"}}, new_thing=1',
            id="behind the metadata",
        ),
        pytest.param(
            "x = f32[8]{0} all-reduce(a), new={1,2}, to_apply=add, other=3",
            f"x = f32[8]{{0}} custom-call(a){NEW}, new={{1,2}}, other=3",
            id="on both sides of the reducer",
        ),
    ],
)
def test_what_printed_lines_become(line: str, expect: str) -> None:
    """Groups, channel, flags and reducer go; all other bytes stay."""
    assert (quick(line), carefully(line)) == (expect, expect)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("x = f32[8]{0} all-reduce(a), to_apply=add y", id="two things in one value"),
        pytest.param("x = f32[8]{0} all-reduce(a), new={1, to_apply=add", id="not closed"),
        pytest.param("x = f32[8]{0} all-reduce(a), new=1, new=2", id="given twice"),
    ],
)
def test_damaged_lines_are_left_to_the_slow_path(line: str) -> None:
    """It says what is wrong with them."""
    assert quick(line) is None
    assert carefully(line).startswith("refused: ")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("x = f32[8]{0} all-reduce(a /* ) */), to_apply=add", id="a comment among the operands"),
        pytest.param("x = f32[8]{0} all-reduce(a), to_apply=add // , new=1", id="a comment behind"),
        pytest.param("x = f32[8]{0} all-reduce(a), all_reduce_id=3, to_apply=add", id="the old channel"),
        pytest.param('x = f32[8]{0} all-reduce(a), new=", to_apply=b, "', id="a reducer in a string"),
        pytest.param('x = f32[8]{0} all-reduce(a), metadata={op_name="f" deduplicated={1}}', id="metadata with braces"),
    ],
)
def test_odd_lines_are_left_to_the_slow_path(line: str) -> None:
    """It takes them apart."""
    assert quick(line) is None
    assert carefully(line).startswith("x = f32[8]{0} custom-call(a")


ATTRIBUTES: Final = (
    *("channel_id=3", "channel_id=-1", "replica_groups={{0,1},{2,3}}", "replica_groups=[2,2]<=[4]"),
    *("to_apply=%add", "to_apply=add.7", "dimensions={0}", "use_global_device_ids=true", "constrain_layout=false"),
    *("sharding={replicated}", "control-predecessors={%a}", "new=word", 'new={"k":"}, to_apply=b"}', "new='x'"),
    *(
        'new=", to_apply=b, "',
        'frontend_attributes={k="v",l={1}}',
        'frontend_attributes={k=", metadata={}"}',
        "backend_config={}",
    ),
    *('metadata={op_name="f/g" source_line=3}', 'metadata={op_name="}, metadata={ channel_id=9"}', "all_reduce_id=4"),
    *("new={", "new=1 2", "new=1}", 'new="', "metadata={op_name=", "to_apply=add b"),
)
HEADS: Final = (
    *("x = f32[8]{0} all-reduce(a)", "ROOT %x = (f32[8]{0:T(8)}) all-reduce(f32[8]{0:T(8)} %a)"),
    *("x = f32[8]{0} all-gather(a, /*index=1*/%a)", "x = (f32[8], (s8[])) reduce-scatter()"),
    *("x = f32[8]{0:T(8} all-reduce(a)", "x = f32[(8] all-reduce(a)", "x = f32[8] all-reduce(a // )"),
)
LINES: Final = st.builds(
    lambda head, attributes, ends: "".join([head, *map("".join, zip(ends, attributes, strict=False))]),
    st.sampled_from(HEADS),
    st.lists(st.sampled_from(ATTRIBUTES), max_size=7, unique_by=lambda each: each.partition("=")[0]),
    st.lists(st.sampled_from([", ", ", ", ", ", ",", " , "]), min_size=7, max_size=7),
)


@given(st.lists(LINES, min_size=1, max_size=4))
def test_the_fast_path_gives_what_the_careful_one_does(lines: list[str]) -> None:
    """Lines that are looked up among others become what taking them apart makes of them."""
    module = module_of([line.replace("x =", f"x{number} =", 1) for number, line in enumerate(lines)])
    instructions = written(module)
    if module.computations[0].starts is not None or len(instructions) != len(lines):
        return
    editor = FastEditor()
    for number, (instruction, line) in enumerate(zip(instructions, lines, strict=True)):
        found = quickly(editor, instruction)
        if found is not None:
            assert found.replace(f"x{number} =", "x =", 1) == carefully(line)


def test_a_spelling_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, channels, reducers and metadata do not make another spelling."""
    lines = [
        f'x{each} = f32[8]{{0}} all-reduce(a), channel_id={each + 1}, to_apply=add.{each}, new=1, metadata={{op_name="{each}"}}'
        for each in range(40)
    ]
    module, editor = module_of(lines), FastEditor()
    instructions = written(module)
    first = quickly(editor, instructions[0]) or ""

    def refuse(_: bytes) -> None:
        msg = "this line was taken apart"
        raise AssertionError(msg)

    monkeypatch.setattr("commlens.hlo.text.fast_edits.parse_line", refuse)
    assert first == f'x0 = f32[8]{{0}} custom-call(a){NEW}, new=1, metadata={{op_name="0"}}'
    assert [quickly(editor, each) for each in instructions] == [
        first.replace("x0", f"x{each}").replace('"0"', f'"{each}"') for each in range(40)
    ]
