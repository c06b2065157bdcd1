"""Combinations in protos that are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.hlo import BecomeCustomCall, Combine, EditError, SetChannelId, load
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.proto.wire import BYTES
from proto_forms import edited
from proto_modules import ENTRY_ID, FAR, all_reduce, instruction, module, shape, tagged, tuple_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlens import Instruction, Module
    from commlens.hlo import Edit


def combine(loaded: Module, members: Sequence[str], name: str = "c.1") -> Combine:
    """Return an edit that combines instructions."""
    return Combine(tuple(map(loaded.instruction, members)), name)


@pytest.mark.parametrize(
    ("change", "members", "expected"),
    [
        pytest.param("", "23", None, id="nothing wrong"),
        pytest.param("", "2", "instructions of one opcode and one computation to make c.1 of, found x2", id="one"),
        pytest.param("", "22", "no other edit of x2, which becomes another instruction, found one", id="twice"),
        pytest.param(
            "", "24", "instructions of one opcode and one computation to make c.1 of, found x2, x4", id="opcodes"
        ),
        pytest.param("two operands", "23", "x3, of which c.1 is made, to have one operand, found 2", id="operands"),
        pytest.param("tuple", "23", "x3 to be an array, found a tuple", id="tuple"),
        pytest.param("no shape", "23", "x3 to be an array, found no shape", id="no shape"),
        pytest.param(
            "dimension", "23", "the dimension of c.1, whose members have different ones, found none", id="dims"
        ),
        pytest.param("ids", "23", "every instruction of the computation main to have an id of its own", id="ids"),
        pytest.param("schedule", "23", "the schedule of the computation main to have each of its", id="schedule"),
        pytest.param(
            "name", "23", "a name for the new instruction that the module does not have, found c.1", id="name"
        ),
    ],
)
def test_combinations_that_are_refused(change: str, members: str, expected: str | None) -> None:
    """In full sentences, and nothing is edited."""
    made = [all_reduce(2), all_reduce(3), instruction("negate", 4, [1]), instruction("negate", 5, [1])]
    message = module(*made)
    edited_one = message.computations[1].instructions[2]
    match change:
        case "two operands":
            edited_one.operand_ids.append(FAR + 1)
        case "tuple":
            edited_one.shape.CopyFrom(tuple_shape(shape(8)))
        case "no shape":
            edited_one.ClearField("shape")
        case "dimension":
            edited_one.dimensions.append(1)
        case "ids":
            message.computations[1].instructions[4].id = FAR + 4
        case "schedule":
            message.schedule.sequences[ENTRY_ID].instruction_ids.extend([FAR + 2, FAR + 3, FAR + 4])
        case "name":
            message.computations[0].instructions[0].name = b"c.1"
        case _:
            pass
    loaded = load(message.SerializeToString())
    edit = combine(loaded, [f"x{number}" for number in members])
    if expected is None:
        assert edited(loaded, edit).instruction("c.1").opcode == "all-reduce"
        return
    with pytest.raises(EditError) as caught:
        loaded.edited([edit])
    assert str(caught.value).startswith(f"expected {expected}")


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param(lambda x: [SetChannelId(x, 3)], "expected no other edit of x2", id="channel"),
        pytest.param(lambda x: [BecomeCustomCall(x, "f", "{}")], "expected no other edit of x2", id="custom call"),
        pytest.param(lambda x: [Combine((x, x), "other")], "expected no other edit of x2", id="member of two"),
    ],
)
def test_members_have_no_other_edits(others: Callable[[Instruction], list[Edit]], expected: str) -> None:
    """Whichever comes first."""
    loaded = load(module(all_reduce(2), all_reduce(3), all_reduce(4)).SerializeToString())
    mine, other = combine(loaded, ["x2", "x3"]), others(loaded.instruction("x2"))
    for edits in ([mine, *other], [*other, mine]):
        with pytest.raises(EditError, match=expected):
            loaded.edited(edits)


def test_new_names_are_words_of_their_own() -> None:
    """Two combinations with one name, or a name that is no word, are refused."""
    loaded = load(module(*map(all_reduce, range(2, 6))).SerializeToString())
    with pytest.raises(EditError, match=r"^expected a name of its own for each new instruction, found c\.1 twice$"):
        loaded.edited([combine(loaded, ["x2", "x3"]), combine(loaded, ["x4", "x5"])])
    with pytest.raises(EditError, match=r"^expected a word as the name of a new instruction, found 'a b'$"):
        loaded.edited([combine(loaded, ["x2", "x3"], "a b")])


@pytest.mark.parametrize(
    ("dimensions", "sizes", "dimension", "expected"),
    [
        pytest.param((0, 1), (4, 4), 2, "dimension 2 in x3, and one of its own", id="beyond the rank"),
        pytest.param((0, 5), (4, 4), 0, "dimension 0 in x3, and one of its own", id="its own beyond the rank"),
        pytest.param((0, None), (4, 4), 0, "dimension 0 in x3, and one of its own", id="none of its own"),
    ],
)
def test_dimensions_that_cannot_be_swapped(
    dimensions: tuple[int | None, ...], sizes: tuple[int, ...], dimension: int, expected: str
) -> None:
    """They must be dimensions of the array."""
    made = [instruction("all-gather", 2 + number, [1], shape(*sizes, *sizes[number:1])) for number in range(2)]
    for each, own in zip(made, dimensions, strict=True):
        each.dimensions.extend([] if own is None else [own])
    loaded = load(module(*made).SerializeToString())
    edit = Combine((loaded.instruction("x2"), loaded.instruction("x3")), "c.1", dimension=dimension)
    with pytest.raises(EditError, match=f"^expected {expected}"):
        loaded.edited([edit])


@pytest.mark.parametrize(
    ("position", "field", "expected"),
    [
        pytest.param(
            2, tagged(40, BYTES, b"\x08\x03\x1a\x02\x02\x01"), "a sharding of x2 without dimensions", id="tiles"
        ),
        pytest.param(2, tagged(40, BYTES, b"\x08\x04"), None, id="a sharding without tiles"),
        pytest.param(3, tagged(40, BYTES, b"\x08\x03\x1a\x02\x02\x01"), None, id="of a member that is not transposed"),
        pytest.param(
            2, tagged(3, BYTES, tagged(5, BYTES, tagged(9, BYTES, b"\x01"))), "a layout of x2 without", id="layout"
        ),
        pytest.param(
            1, tagged(3, BYTES, tagged(5, BYTES, b"\x8a\x01\x00")), "a layout of x1 without", id="of its operand"
        ),
        pytest.param(
            1, tagged(3, BYTES, b"\x1a\x01\x05"), "an array of 2 dimensions to transpose, found x1: f32[", id="rank"
        ),
        pytest.param(
            2,
            tagged(3, BYTES, tagged(5, BYTES, b"\x0a\x02\x00\x05")),
            "a layout of 2 dimensions for x2, found {0,5}",
            id="a layout of others",
        ),
        pytest.param(
            2,
            tagged(3, BYTES, tagged(5, BYTES, b"\x0a\x02\x01\x01")),
            "a layout of 2 dimensions for x2, found {1,1}",
            id="a layout with one twice",
        ),
        pytest.param(
            1,
            tagged(3, BYTES, tagged(5, BYTES, b"\x0a\x01\x00")),
            "a layout of 2 dimensions for x1, found {0}",
            id="a layout of fewer",
        ),
        pytest.param(2, tagged(3, BYTES, tagged(5, BYTES, b"")), None, id="the default layout"),
    ],
)
def test_what_speaks_of_dimensions_is_not_transposed(position: int, field: bytes, expected: str | None) -> None:
    """Unless it is known how, and only of members that are."""
    made = [instruction("all-gather", number, [1], shape(4, 4)) for number in (2, 3)]
    made[0].dimensions.append(1)
    made[1].dimensions.append(0)
    message = module(*made)
    message.computations[1].instructions[0].shape.CopyFrom(shape(4, 2))
    outline = schema.HloModuleOutline.FromString(message.SerializeToString())
    outline.computations[1].instructions[position - 1] += field
    loaded = load(outline.SerializeToString())
    edit = Combine((loaded.instruction("x2"), loaded.instruction("x3")), "c.1", dimension=0)
    if expected is None:
        assert edited(loaded, edit).instruction("x2").opcode == "transpose"
        return
    with pytest.raises(EditError) as caught:
        loaded.edited([edit])
    assert str(caught.value).startswith(f"expected {expected}")


def test_a_schedule_that_has_an_instruction_twice() -> None:
    """Where it would stand cannot be told."""
    message = module(all_reduce(2), all_reduce(3))
    sequence = message.schedule.sequences[ENTRY_ID].instruction_ids
    sequence.extend([FAR + 1, FAR + 2, FAR + 3, FAR + 2])
    loaded = load(message.SerializeToString())
    with pytest.raises(EditError, match="^expected the schedule of the computation main to have each of its"):
        loaded.edited([combine(loaded, ["x2", "x3"])])
