"""Combining in protos held against a twin that computes what every instruction means; and ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.hlo import Combine, EditError, SetChannelId, SetFrontendAttribute, load
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from proto_forms import edited
from proto_modules import (
    ENTRY_ID,
    FAR,
    REDUCER_ID,
    all_reduce,
    entry,
    instruction,
    module,
    module_of,
    reducer,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlens import Module
    from commlens.hlo import Edit

Meaning = tuple[object, ...]


def combine(loaded: Module, members: Sequence[str], name: str = "c.1") -> Combine:
    """Return an edit that combines instructions."""
    return Combine(tuple(map(loaded.instruction, members)), name)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[schema.HloModuleProto, list[list[str]]]:
    """A computation with all-reduces among other instructions, ids in any order; and disjoint sets of the all-reduces."""
    size = draw(st.integers(4, 12))
    numbers = draw(st.permutations(range(20, 20 + size)))
    made: list[schema.HloInstructionProto] = []
    reduces: list[str] = []
    for place, number in enumerate(numbers):
        before = [1, *numbers[:place]]
        one = draw(st.booleans())
        operands = draw(st.lists(st.sampled_from(before), min_size=1, max_size=1 if one else 3))
        each = all_reduce(number) if one else instruction("tuple-like", number)
        each.operand_ids[:] = [FAR + operand for operand in operands]
        each.control_predecessor_ids[:] = [
            FAR + other for other in draw(st.lists(st.sampled_from(before), max_size=2, unique=True))
        ]
        made.append(each)
        reduces += [each.name.decode()] if one else []
    message = module(*made)
    message.computations[1].root_id = FAR + draw(st.sampled_from(numbers))
    if draw(st.booleans()):
        message.schedule.sequences[ENTRY_ID].instruction_ids.extend(
            each.id for each in message.computations[1].instructions
        )
    shuffled = draw(st.permutations(reduces))
    cut = draw(st.integers(2, 4))
    return message, [list(shuffled[at : at + cut]) for at in range(0, len(shuffled) - 1, cut)][:2]


def meanings(message: schema.HloModuleProto) -> dict[str, Meaning]:
    """Return by name what the instructions compute and what they wait for; a member of a combination is what it was."""
    instructions = {each.id: each for each in message.computations[1].instructions}
    assert len(instructions) == len(message.computations[1].instructions)
    found: dict[int, Meaning] = {}

    def meaning(number: int) -> Meaning:
        if number not in found:
            found[number] = compute(instructions[number])
        return found[number]

    def compute(each: schema.HloInstructionProto) -> Meaning:
        if each.opcode == b"get-tuple-element":
            whole = instructions[each.operand_ids[0]]
            assert whole.shape.tuple_shapes[each.tuple_index] == each.shape
            return (b"all-reduce", meaning(whole.operand_ids[each.tuple_index]))
        return (each.opcode, *map(meaning, each.operand_ids))

    return {each.name.decode(): meaning(each.id) for each in instructions.values()}


def needs(message: schema.HloModuleProto) -> dict[int, set[int]]:
    """Return by id what must come before each instruction."""
    return {
        each.id: {*each.operand_ids, *each.control_predecessor_ids} for each in message.computations[1].instructions
    }


def slow_combination(message: schema.HloModuleProto, sets: Sequence[Sequence[str]]) -> bool:
    """Whether the sets can be combined one after the other: no member needs another, through whatever it may be."""
    names = {each.name.decode(): each.id for each in message.computations[1].instructions}
    before = needs(message)

    def reaches(start: int, goals: set[int]) -> bool:
        return any(each in goals or reaches(each, goals) for each in before[start])

    for number, members in enumerate(sets):
        ids = {names[member] for member in members}
        if any(reaches(each, ids) for each in ids):
            return False
        before[-1 - number] = set().union(*(before[each] for each in ids))
        before |= {each: {-1 - number} for each in ids}
    return True


@given(graphs())
def test_every_instruction_means_what_it_meant(case: tuple[schema.HloModuleProto, list[list[str]]]) -> None:
    """Ids, file order and schedule are valid; all-reduces that need each other are refused, and only those."""
    message, sets = case
    loaded = load(message.SerializeToString())
    edits = [combine(loaded, members, f"c.{number}") for number, members in enumerate(sets)]
    if not slow_combination(message, sets):
        with pytest.raises(EditError, match="do not depend on each other"):
            loaded.edited(edits)
        return
    again = schema.HloModuleProto.FromString(loaded.edited(edits).to_bytes())
    before, after = meanings(message), meanings(again)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == {f"c.{number}" for number in range(len(sets))}
    names = {each.id: each.name.decode() for each in again.computations[1].instructions}
    old = {each.id: each.name.decode() for each in message.computations[1].instructions}
    assert names[again.computations[1].root_id] == old[message.computations[1].root_id]
    _check_order(again, [each.id for each in again.computations[1].instructions])
    if message.schedule.sequences:
        _check_order(again, list(again.schedule.sequences[ENTRY_ID].instruction_ids))
    firsts = {min(number for number, name in old.items() if name in members): members for members in sets}
    for number, members in firsts.items():
        assert names[number] == f"c.{sets.index(members)}"
    assert all(names[number] == name for number, name in old.items() if number not in firsts)
    waits = {
        each.name: {names[number] for number in each.control_predecessor_ids}
        for each in again.computations[1].instructions
    }
    for number, members in enumerate(sets):
        joined = {old[each] for name in members for each in _named(message, name).control_predecessor_ids}
        assert waits[b"c.%d" % number] == joined


def _named(message: schema.HloModuleProto, name: str) -> schema.HloInstructionProto:
    return next(each for each in message.computations[1].instructions if each.name == name.encode())


def _check_order(message: schema.HloModuleProto, order: list[int]) -> None:
    place = {number: at for at, number in enumerate(order)}
    assert sorted(order) == sorted(each.id for each in message.computations[1].instructions)
    for number, before in needs(message).items():
        assert all(place[each] < place[number] for each in before)


def two_halves(local: Sequence[int], computation: int = ENTRY_ID) -> schema.HloModuleProto:
    """Return a module whose ids are made of a computation's id and a local one."""
    message = module_of(reducer(), entry(all_reduce(2), all_reduce(3), instruction("tuple", 4, [2, 3])))
    message.computations[1].id = message.entry_computation_id = computation
    for outline, numbers in zip(message.computations, ([0, 1, 2], local), strict=True):
        renumber(
            outline,
            {each.id: outline.id << 32 | number for each, number in zip(outline.instructions, numbers, strict=True)},
        )
    return message


def renumber(computation: schema.HloComputationProto, ids: Mapping[int, int]) -> None:
    """Give the instructions of a computation other ids."""
    computation.root_id = ids[computation.root_id]
    for each in computation.instructions:
        each.id = ids[each.id]
        each.operand_ids[:] = [ids[number] for number in each.operand_ids]


def fresh_id(message: schema.HloModuleProto) -> int:
    """Combine and return the id that the first member got."""
    loaded = load(message.SerializeToString())
    return edited(loaded, combine(loaded, ["x2", "x3"])).instruction("x2").list_key


def test_fresh_ids_are_the_next_of_the_computation() -> None:
    """Where all ids are made of two halves; a gap is not filled, and other computations do not matter."""
    assert fresh_id(two_halves([0, 1, 2, 3])) == ENTRY_ID << 32 | 4
    assert fresh_id(two_halves([0, 1, 2, 9])) == ENTRY_ID << 32 | 10
    assert fresh_id(two_halves([9, 1, 2, 3])) == ENTRY_ID << 32 | 10
    assert fresh_id(two_halves([0, 1, 2, 3], computation=0)) == 4


def test_fresh_ids_come_behind_all_others_in_older_modules() -> None:
    """Instructions of all computations are numbered in a row; also where ids need more than 32 bits, or only seem halved."""
    message = two_halves([0, 1, 2, 3])
    for highest in (40, 2**31 - 1, 2**31, 2**40, 2**62):
        renumber(
            message.computations[0],
            dict(zip([each.id for each in message.computations[0].instructions], [5, 6, highest], strict=True)),
        )
        assert fresh_id(message) == max(highest, ENTRY_ID << 32 | 3) + 1
    shared = two_halves([0, 1, 2, 3])
    shared.computations.add(name=b"other", id=ENTRY_ID, instructions=[instruction("parameter", 1)])
    shared.computations[2].instructions[0].id = ENTRY_ID << 32 | 8
    assert fresh_id(shared) == ENTRY_ID << 32 | 9


def test_several_combinations_get_an_id_each() -> None:
    """In modules of both kinds."""
    message = two_halves([0, 1, 2, 3])
    for number in (5, 6):
        message.computations[1].instructions.append(all_reduce(number))
        message.computations[1].instructions[-1].id = ENTRY_ID << 32 | number
        message.computations[1].instructions[-1].operand_ids[:] = [ENTRY_ID << 32]
    for highest, expected in ((2, ENTRY_ID << 32 | 7), (2**40, 2**40 + 1)):
        message.computations[0].instructions[2].id = REDUCER_ID << 32 | highest if highest == 2 else highest
        loaded = load(message.SerializeToString())
        made = edited(loaded, combine(loaded, ["x2", "x3"], "one"), combine(loaded, ["x5", "x6"], "two"))
        assert [made.instruction(name).list_key for name in ("x2", "x5")] == [expected, expected + 1]


@pytest.mark.parametrize("message", [two_halves([0, 1, 2, 2**31 - 1]), two_halves([0, 1, 2, 3])], ids=["local", "all"])
def test_no_id_is_left(message: schema.HloModuleProto) -> None:
    """Then nothing is combined: a number that XLA takes for another one would be worse."""
    if message.computations[1].instructions[3].id == ENTRY_ID << 32 | 3:
        message.computations[0].instructions[0].id = 2**63 - 1
    with pytest.raises(EditError, match=r"^expected an id that no instruction of the module has, found all up to \d+"):
        fresh_id(message)


def test_the_id_0_is_left_out_where_the_new_instruction_gets_it() -> None:
    """A field that is not there says 0, as XLA writes it."""
    message = two_halves([1, 0, 2, 3], computation=0)
    loaded = load(message.SerializeToString())
    made = edited(loaded, combine(loaded, ["x2", "x3"]))
    assert made.instruction("c.1").list_key == 0
    assert [each.name for each in made.instruction("x3").operands] == ["c.1"]


def test_combinations_and_other_edits_at_once() -> None:
    """A combination may need another; users of members get their own edits as well, whichever come first."""
    first, second = [all_reduce(2), all_reduce(3)], [all_reduce(4), all_reduce(5)]
    for each, operand in zip(second, (2, 3), strict=True):
        each.operand_ids[:] = [FAR + operand]
    last = all_reduce(6)
    last.operand_ids[:] = [FAR + 4]
    message = module(*first, *second, last)
    loaded = load(message.SerializeToString())
    edits: list[Edit] = [
        SetChannelId(loaded.instruction("x6"), 9),
        combine(loaded, ["x2", "x3"], "one"),
        SetFrontendAttribute(loaded.instruction("x6"), "k", "v"),
        combine(loaded, ["x4", "x5"], "two"),
    ]
    made = edited(loaded, *edits)
    assert {each.name: each.operand_names for each in made.instruction("x6").computation.instructions} == {
        "x1": (),
        "one": ("x1", "x1"),
        "x2": ("one",),
        "x3": ("one",),
        "two": ("x2", "x3"),
        "x4": ("two",),
        "x5": ("two",),
        "x6": ("x4",),
    }
    assert made.instruction("x6").channel_id == 9
    assert made.instruction("x6").frontend_attributes == {"k": "v"}
    wrong = [combine(loaded, ["x2", "x5"], "one"), combine(loaded, ["x4", "x3"], "two")]
    with pytest.raises(EditError, match="to make two of"):
        loaded.edited(wrong)


def test_combinations_in_two_computations() -> None:
    """Each goes by its own ids."""
    message = two_halves([0, 1, 2, 3])
    other = message.computations.add(name=b"other", id=9, root_id=9 << 32)
    other.MergeFrom(schema.HloComputationProto(instructions=message.computations[1].instructions))
    other.root_id = other.instructions[-1].id
    renumber(other, {each.id: 9 << 32 | number for number, each in enumerate(other.instructions)})
    for each in other.instructions:
        each.name = each.name.replace(b"x", b"y")
    loaded = load(message.SerializeToString())
    made = edited(loaded, combine(loaded, ["x2", "x3"], "c.1"), combine(loaded, ["y2", "y3"], "c.2"))
    assert [each.name for each in made.instruction("y2").computation.instructions] == ["y1", "c.2", "y3", "y4", "y2"]
    assert [each.name for each in made.instruction("x2").computation.instructions] == ["x1", "c.1", "x3", "x4", "x2"]


def test_fresh_names_and_instructions_by_opcode() -> None:
    """Names are those that no instruction has; instructions come by computation, then by id, whatever their fields."""
    message = two_halves([0, 2, 1, 3])
    message.computations[1].instructions[3].name = b"fusion.41"
    message.computations[0].instructions[0].name = b"n" * 128 + b".7"
    message.computations[0].instructions[1].name = b"fusion.x"
    loaded = load(message.SerializeToString())
    names = loaded.fresh_names("fusion")
    assert [next(names), next(names)] == ["fusion.42", "fusion.43"]
    assert next(loaded.fresh_names("n" * 128)) == "n" * 128 + ".8"
    assert next(loaded.fresh_names("fus")) == "fus.1"
    assert [each.name for each in loaded.instructions_of({"all-reduce", "add"})] == ["x13", "x3", "x2"]
    assert [each.name for each in loaded.instructions_of({"parameter"})] == ["n" * 128 + ".7", "fusion.x", "x1"]
    assert list(loaded.instructions_of({"all-gather"})) == []
    assert list(loaded.instructions_of([])) == []
