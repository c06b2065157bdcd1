"""Combinations in a text that are refused, and what the sentence says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.hlo import BecomeCustomCall, EditError, SetChannelId
from commlens.hlo.text import TextModule
from text_combinations import HEAD, ROOT, combine, module_of

if TYPE_CHECKING:
    from commlens.hlo import Edit


def refused(text: str, *edits: Edit, module: TextModule) -> str:
    """Return why edits are refused."""
    with pytest.raises(EditError) as caught:
        module.edited(edits)
    assert module.to_bytes() == text.encode()
    return str(caught.value)


def test_combinations_that_are_refused() -> None:
    """What is no set of like, independent collectives with a new name stays as it is, and the sentence says why."""
    text = (
        HEAD
        + "  x = f32[8]{0} all-reduce(a), to_apply=add\n"
        + "  z = f32[8]{0} all-reduce(x), to_apply=add\n"
        + "  y = (f32[8]{0}, f32[4,2]{1,0}) all-reduce(a, b), to_apply=add\n"
        + "  g = f32[32]{0} all-gather(a), dimensions={0}, sharding={devices=[4]<=[4]}\n"
        + "  h = f32[4,8]{1,0} all-gather(b), dimensions={1}, sharding={devices=[4,1]<=[4]}\n"
        + "  i = f32[16,2]{1,0} all-gather(b), dimensions={0}\n"
        + "  j = f32[8]{0} all-reduce-start(a), to_apply=add\n  k = f32[8]{0} all-reduce-start(z), to_apply=add\n"
        + "  l = f32[8]{0} all-to-all(a), dimensions={0}\n  m = f32[8]{0} all-to-all(a), dimensions={0}\n"
        + "  ROOT t = (f32[8]{0}) tuple(z)\n}\n"
    )
    module = module_of(text)
    x = module.instruction("x")

    def why(*edits: Edit) -> str:
        return refused(text, *edits, module=module)

    other = "expected no other edit of x, which becomes another instruction, found one"
    assert why(combine(module, members="xz")) == (
        "expected instructions that do not depend on each other to make c.1 of, found one that needs another"
    )
    assert why(combine(module, members="xg")) == (
        "expected instructions of one opcode and one computation to make c.1 of, found x, g"
    )
    assert why(combine(module, members="x")) == (
        "expected instructions of one opcode and one computation to make c.1 of, found x"
    )
    for members in ("jk", "lm"):
        assert why(combine(module, members=members)) == (
            f"expected all-gathers, all-reduces or reduce-scatters to make c.1 of, found {members[0]}"
        )
    assert why(combine(module, members="xy")) == "expected y, of which c.1 is made, to have one operand, found 2"
    assert why(combine(module, members="xx")) == other
    assert why(combine(module, members="gi"), SetChannelId(module.instruction("i"), 3)) == other.replace("x,", "i,")
    assert why(SetChannelId(x, 3), BecomeCustomCall(x, "T", "{}")) == other
    assert why(BecomeCustomCall(x, "T", "{}"), BecomeCustomCall(x, "T", "{}")) == other
    assert why(BecomeCustomCall(x, "no word", "{}")) == "expected a word as the target that x calls, found 'no word'"
    assert why(combine(module, "t", "hi", dimension=1)) == (
        "expected a new name for what is made of h, found t, which is taken"
    )
    assert why(combine(module, "c d", "gi")) == "expected a word as the name of a new instruction, found 'c d'"
    assert why(combine(module, members="gi", dimension=1)) == (
        "expected dimension 1 in g, and one of its own to gather along, found f32[32]{0}"
    )
    assert why(combine(module, members="hi", dimension=0)) == (
        "expected a sharding of h without dimensions to swap, found {devices=[4,1]<=[4]}"
    )
    assert why(combine(module, "n", "hi", dimension=1), combine(module, "n", "xz")) == (
        "expected a name of its own for each new instruction, found n twice"
    )


def test_undefined_operands_have_no_shape() -> None:
    """The shape of a transposed operand must stand somewhere."""
    text = (
        HEAD
        + "  x = f32[16,2]{1,0} all-gather(b), dimensions={0}\n  y = f32[4,8]{1,0} all-gather(gone), dimensions={1}\n"
        + ROOT
    )
    module = module_of(text)
    assert refused(text, combine(module, dimension=0), module=module) == (
        "expected a shape of gone, the operand of y, found none in the computation"
    )
