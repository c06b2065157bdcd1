"""What passes leave alone, which of their edits are made, and what is told of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens import load
from commlens.errors import InputError
from commlens.hlo import (
    BecomeCustomCall,
    Edit,
    EditError,
    LeftAlone,
    Refusals,
    SetChannelId,
    SetFrontendAttribute,
    UnreadableError,
    figures,
    pass_result,
    shares,
)

if TYPE_CHECKING:
    from commlens.hlo import Module

GOOD = "all-to-all(p), dimensions={0}, replica_groups={{0,1}}"
BAD = GOOD + ', frontend_attributes={"a"="1"}'


def module_with(*bodies: str) -> Module:
    """Return a module with instructions ``x0``, ``x1`` ..."""
    lines = [f"  x{number} = f32[8] {body}\n" for number, body in enumerate(bodies)]
    return load("HloModule m\n\nENTRY e {\n  p = f32[8] parameter(0)\n" + "".join(lines) + "}\n")


def stamps(module: Module) -> list[Edit]:
    """Return an edit for every instruction but the parameter; those of BAD cannot be made."""
    found = [each for computation in module.computations for each in computation.instructions if each.name != "p"]
    return [SetFrontendAttribute(each, "stream_id", "0") for each in found]


def names(left: list[LeftAlone]) -> list[str | None]:
    """Return the names of what was left alone."""
    return [each.instruction for each in left]


# --- making edits ---------------------------------------------------------------------------------------------------


def test_edits_that_can_be_made_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module is edited once; nothing is refused."""
    module = module_with(GOOD, GOOD)
    calls: list[int] = []
    real = type(module).edited
    monkeypatch.setattr(type(module), "edited", lambda self, edits: (calls.append(1), real(self, edits))[1])
    refusals = Refusals(module, keep_going=False)
    edits = stamps(module)
    made = refusals.apply(edits)
    assert (made.edits, calls, refusals.left) == (tuple(edits), [1], [])
    assert made.module.to_bytes().count(b"stream_id") == 2
    assert made.missing(edits) == frozenset()


def test_an_edit_that_cannot_be_made_is_refused_with_its_place() -> None:
    """The line is that of the instruction, the column that of the fault."""
    module = module_with(GOOD, BAD, GOOD)
    with pytest.raises(
        InputError, match=r"^<text>:6:\d+: x1: the attributes of x1 cannot be edited: frontend_attributes cannot"
    ):
        Refusals(module, keep_going=False).apply(stamps(module))


@given(st.lists(st.booleans(), max_size=12))
def test_all_others_are_made(good: list[bool]) -> None:
    """Whatever edits cannot be made: those are left out and named, in order, and no other."""
    module = module_with(*(GOOD if each else BAD for each in good))
    refusals = Refusals(module, keep_going=True)
    edits = stamps(module)
    made = refusals.apply(edits)
    bad = [f"x{number}" for number, each in enumerate(good) if not each]
    assert names(refusals.left) == bad
    assert {each.name for each in made.missing(edits)} == set(bad)
    expected = module.to_bytes().decode().splitlines(keepends=True)
    stamp = ', frontend_attributes={stream_id="0"}\n'
    written = [line if line[:3] != "  x" or '"a"' in line else line[:-1] + stamp for line in expected]
    assert made.module.to_bytes().decode() == "".join(written)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=10))
def test_what_belongs_together_is_made_together(parts: list[tuple[bool, int]]) -> None:
    """A group with one edit that cannot be made is left out whole, and every member is named."""
    module = module_with(*(GOOD if good else BAD for good, _ in parts))
    edits = stamps(module)
    group_of = {id(edit): group for edit, (_, group) in zip(edits, parts, strict=True)}
    refusals = Refusals(module, keep_going=True)
    made = refusals.apply(edits, lambda edit: group_of[id(edit)])
    broken = {group for good, group in parts if not good}
    left = {f"x{number}" for number, (_, group) in enumerate(parts) if group in broken}
    assert set(names(refusals.left)) == left
    assert len(made.edits) == len(parts) - len(left)


def test_the_one_at_fault_is_named_first() -> None:
    """The others of its group say because of whom they are left alone."""
    module = module_with(GOOD, BAD, GOOD)
    refusals = Refusals(module, keep_going=True)
    refusals.apply(stamps(module), lambda _: "all")
    assert names(refusals.left) == ["x1", "x0", "x2"]
    assert refusals.left[0].why.startswith("the attributes of x1 cannot be edited: frontend_attributes cannot be read")
    assert {each.why for each in refusals.left[1:]} == {
        "it is left alone along with x1, which cannot be understood or changed"
    }


def test_edits_that_only_contradict_each_other_leave_one_out() -> None:
    """Each can be made alone: the first is, the second is refused."""
    module = module_with(GOOD)
    one = module.instruction("x0")
    refusals = Refusals(module, keep_going=True)
    made = refusals.apply([SetChannelId(one, 7), BecomeCustomCall(one, "target", "{}"), SetChannelId(one, 8)])
    assert [type(edit) for edit in made.edits] == [SetChannelId]
    assert made.module.instruction("x0").channel_id == 7
    assert names(refusals.left) == ["x0", "x0"]


def test_no_edits_make_the_same_module() -> None:
    """Nothing is asked of the module then."""
    module = module_with(GOOD)
    assert Refusals(module, keep_going=False).apply([]).module is module


# --- what is told ---------------------------------------------------------------------------------------------------


def test_an_error_knows_its_place_better_than_the_instruction() -> None:
    """Where it knows none, the place of the instruction's name is told."""
    module = module_with(GOOD)
    refusals = Refusals(module, keep_going=True)
    refusals.refuse(module.instruction("x0"), UnreadableError("no", line=9, column=4))
    refusals.refuse(module.instruction("x0"), EditError("no"))
    refusals.refuse(module.instruction("x0"), "no")
    assert [(each.line, each.column) for each in refusals.left] == [(9, 4), (5, 3), (5, 3)]
    with pytest.raises(InputError, match="^<text>:9:4: x0: no$"):
        Refusals(module, keep_going=False).refuse(module.instruction("x0"), UnreadableError("no", line=9, column=4))


CUT = "HloModule m\n\nENTRY e {\n  p = f32[8] parameter(0)\n"


def test_a_fault_of_the_structure_has_a_place_and_a_reason() -> None:
    """What stands there is shown in place of a name, and it is not said to be left alone, for it may be changed."""
    refusals = Refusals(load(CUT), keep_going=True)
    refusals.check_structure()
    [left] = refusals.left
    assert (left.instruction, left.line, left.where, left.text) == (None, 3, "module m", "ENTRY e {")
    assert left.sentence().startswith("'ENTRY e {' cannot be understood: expected '}' at the end of the computation e")
    with pytest.raises(InputError, match="^<text>:3: expected '}' at the end of the computation e"):
        Refusals(load(CUT), keep_going=False).check_structure()


def test_what_concerns_the_module_says_so() -> None:
    """There is no line then."""
    refusals = Refusals(module_with(GOOD), keep_going=True)
    refusals.refuse_module("expected an entry, found none")
    [left] = refusals.left
    assert left.sentence() == "module m: expected an entry, found none"
    with pytest.raises(InputError, match="^<text>: module m: expected an entry, found none$"):
        Refusals(module_with(GOOD), keep_going=False).refuse_module("expected an entry, found none")


def test_a_result_lists_what_was_left_alone() -> None:
    """As values, and in the statistics as JSON has it."""
    module = module_with(GOOD, BAD)
    refusals = Refusals(module, keep_going=True)
    made = refusals.apply(stamps(module))
    result = pass_result("pass", refusals, made, changed=True, stats={"n": 1}, facts=figures(n=1))
    assert (result.facts, result.modified, names(list(result.left_alone))) == (("n 1",), True, ["x1"])
    assert result.stats["left_alone"] == [result.left_alone[0].as_json()]
    assert set(result.left_alone[0].as_json()) == {"instruction", "line", "column", "where", "text", "why"}


def test_a_result_without_edits_keeps_the_module() -> None:
    """As of a pass that only looks for something."""
    module = module_with(GOOD)
    result = pass_result("pass", Refusals(module, keep_going=False), changed=False, stats={}, found=True)
    assert (result.module is module, result.modified, result.edits, result.found) == (True, False, (), True)


def test_what_is_nothing_is_not_said() -> None:
    """Neither figures nor shares of 0."""
    assert list(figures(a=0, b="", c=None, d_e=2, f="x")) == ["d e 2", "f x"]
    assert list(shares("s", {"0": 0})) == []
    assert list(shares("s", {"0": 0, "1": 3})) == ["s (1 3)"]
