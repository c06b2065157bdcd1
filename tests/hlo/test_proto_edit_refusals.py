"""Edits of protos that are refused, and what of a damaged module is edited all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.hlo import BecomeCustomCall, EditError, SetChannelId, SetFrontendAttribute, load
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from proto_forms import edited, encoded, in_form
from proto_modules import all_reduce, attributes, module

if TYPE_CHECKING:
    from collections.abc import Callable

    from commlens import Instruction
    from commlens.hlo import Edit


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        pytest.param(
            lambda x: [SetChannelId(x, 1), SetChannelId(x, 2)],
            "expected one new channel id for x2, found two",
            id="ids",
        ),
        pytest.param(
            lambda x: [SetFrontendAttribute(x, "k", "1"), SetFrontendAttribute(x, "k", "1")],
            "expected one new value for the frontend attribute k of x2, found two",
            id="values",
        ),
        pytest.param(
            lambda x: [SetChannelId(x, 0)],
            "expected a channel id from 1 to 9223372036854775807 for x2, found 0",
            id="0",
        ),
        pytest.param(
            lambda x: [SetChannelId(x, 2**63)],
            "expected a channel id from 1 to 9223372036854775807 for x2, found 9223372036854775808",
            id="too large",
        ),
        pytest.param(
            lambda x: [SetFrontendAttribute(x, "a b", "1")],
            "expected a word as the key of a frontend attribute of x2, found 'a b'",
            id="key",
        ),
        pytest.param(
            lambda x: [BecomeCustomCall(x, "", "{}")],
            "expected a word as the target that x2 calls, found ''",
            id="target",
        ),
        pytest.param(
            lambda x: [BecomeCustomCall(x, "f", "{}"), SetChannelId(x, 2)],
            "expected no other edit of x2, which becomes another instruction, found one",
            id="custom call and id",
        ),
        pytest.param(
            lambda x: [SetFrontendAttribute(x, "k", "1"), BecomeCustomCall(x, "f", "{}")],
            "expected no other edit of x2, which becomes another instruction, found one",
            id="attribute and custom call",
        ),
        pytest.param(
            lambda x: [BecomeCustomCall(x, "f", "{}"), BecomeCustomCall(x, "f", "{}")],
            "expected no other edit of x2, which becomes another instruction, found one",
            id="two custom calls",
        ),
    ],
)
def test_edits_that_contradict_each_other(edits: Callable[[Instruction], list[Edit]], expected: str) -> None:
    """They are refused in full sentences; the module stays as it is, and either edit alone can be made."""
    loaded = load(module(all_reduce()).SerializeToString())
    with pytest.raises(EditError) as caught:
        loaded.edited(edits(loaded.instruction("x2")))
    assert str(caught.value) == expected


def test_an_instruction_of_another_module() -> None:
    """Equal or not: positions of one module say nothing about another, an edited one included."""
    loaded, other = (load(module(all_reduce()).SerializeToString()) for _ in range(2))
    text = load("HloModule t\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n")
    made = edited(loaded, SetChannelId(loaded.instruction("x2"), 5))
    for each in (other.instruction("x2"), made.instruction("x2"), text.instruction("p")):
        with pytest.raises(EditError, match=r"^expected an instruction of the module hand_made, found .* of another$"):
            loaded.edited([SetChannelId(each, 5)])


def test_a_damaged_instruction_is_not_edited() -> None:
    """Its neighbours are, and it stays as it is."""
    outline = schema.HloModuleOutline.FromString(module(all_reduce(2), all_reduce(3)).SerializeToString())
    outline.computations[1].instructions[1] = damaged = b"\x12\x0aall-reduce\x1a\xff"
    loaded = load(outline.SerializeToString())
    broken = next(loaded.instructions_of({"all-reduce"}), None)
    assert broken is not None
    made = edited(loaded, SetChannelId(loaded.instruction("x3"), 5))
    assert encoded(made, 1) == damaged
    entered = loaded.entry
    assert entered is not None
    with pytest.raises(EditError, match="^instruction 1 of the computation main cannot be edited: expected a Hlo"):
        loaded.edited([SetChannelId(entered.instructions[-1], 5)])


def test_a_list_of_messages_in_a_text_form() -> None:
    """No writer makes one; what stands in it is edited like fields of their own."""
    message = all_reduce()
    message.frontend_attributes.CopyFrom(attributes({"a": "1"}))
    text = in_form(module(message), "one line").replace(
        b'map { key: "a" value: "1" }', b'map: [{ key: "a" value: "1" }]'
    )
    loaded = load(text)
    found = loaded.instruction("x2")
    assert dict(edited(loaded, SetChannelId(found, 5)).instruction("x2").frontend_attributes) == {"a": "1"}
    made = edited(loaded, SetFrontendAttribute(found, "k", "2")).instruction("x2")
    assert dict(made.frontend_attributes) == {"a": "1", "k": "2"}
