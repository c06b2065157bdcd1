"""``diff`` over generated programs in their many spellings, held against a slow twin."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from commlens.topology import CollectiveDeviceList
from communicating import (
    FLAT,
    compare,
    kinds,
    text_of,
)
from strategies import iota_groups


@dataclass(frozen=True)
class Operation:
    """A collective of a generated program: what it does, apart from its spelling."""

    opcode: str
    groups: tuple[tuple[int, ...], ...]
    size: int
    reducer: str = ""

    @property
    def meaning(self) -> object:
        """What the slow twin compares: groups as sets of sets, or of tuples where the order of members counts."""
        members = frozenset if self.opcode == "all-reduce" else tuple
        return self.opcode, frozenset(members(group) for group in self.groups), self.size, self.reducer


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    """Collectives over eight devices."""
    opcode = draw(st.sampled_from(["all-reduce", "all-gather"]))
    groups = draw(iota_groups(8)).groups()
    reducer = draw(st.sampled_from(["add", "larger"])) if opcode == "all-reduce" else ""
    return Operation(opcode, tuple(map(tuple, groups)), draw(st.integers(1, 2)), reducer)


@st.composite
def spelled(draw: st.DrawFn, program: list[Operation]) -> str:
    """Write a program down in one of its many spellings."""
    lines = ["x1 = f32[8] parameter(2)", "x2 = f32[16] parameter(3)"]
    for number, operation in enumerate(program):
        groups = [list(group) for group in draw(st.permutations(operation.groups))]
        if operation.opcode == "all-reduce":
            groups = [draw(st.permutations(group)) for group in groups]
        listed = CollectiveDeviceList(groups)
        iota = CollectiveDeviceList(operation.groups).to_iota()
        text = str(iota if iota is not None and draw(st.booleans()) else listed)
        result = f"f32[{8 * operation.size * (len(groups[0]) if operation.opcode == 'all-gather' else 1)}]"
        reducer = draw(st.sampled_from(["add", "sum.2"])) if operation.reducer == "add" else operation.reducer
        what = f", to_apply={reducer}" if reducer else ", dimensions={0}"
        channel = draw(st.integers(1, 99))
        attributes = f"(x{operation.size}), channel_id={channel}, replica_groups={text}, {FLAT}{what}"
        name = f"{draw(st.sampled_from('abc'))}.{number}"
        if draw(st.booleans()):
            lines.append(f"{name} = {result} {operation.opcode}{attributes}")
        else:
            operand = f"f32[{8 * operation.size}]"
            start = f"({operand}, {result})" if operation.opcode == "all-gather" else result
            lines.append(f"{name} = {start} {operation.opcode}-start{attributes}")
            lines.append(f"d{name} = {result} {operation.opcode}-done({name})")
    return text_of(*lines, header="num_partitions=8")


programs = st.lists(operations(), max_size=5)


@settings(max_examples=60, deadline=None)
@given(programs, st.data())
def test_every_spelling_of_a_program_is_the_same(program: list[Operation], data: st.DataObject) -> None:
    """Two spellings of one program never differ."""
    before, after = data.draw(spelled(program)), data.draw(spelled(program))
    answer = compare(before, after)
    assert (kinds(answer), answer.same_communication) == ([], True)


@settings(max_examples=60, deadline=None)
@given(programs, programs, st.data())
def test_programs_are_the_same_where_the_twin_says_so(
    first: list[Operation], second: list[Operation], data: st.DataObject
) -> None:
    """The answer is that of comparing meanings one by one, and what is left over adds up."""
    second = data.draw(st.sampled_from([second, [*first[1:], *first[:1]], [*first, *second], first[1:]]))
    answer = compare(data.draw(spelled(first)), data.draw(spelled(second)))
    mine, theirs = ([operation.meaning for operation in program] for program in (first, second))
    assert answer.same_communication is (mine == theirs)
    numbers = Counter(kinds(answer))
    assert len(first) - numbers["removed"] == len(second) - numbers["added"]
    if Counter(mine) == Counter(theirs):
        assert set(numbers) <= {"order"}
    assert numbers["removed"] + numbers["changed"] >= sum((Counter(mine) - Counter(theirs)).values())


@settings(max_examples=40, deadline=None)
@given(programs.filter(bool), st.data())
def test_one_edit_is_one_change(program: list[Operation], data: st.DataObject) -> None:
    """Other groups for one collective of a program, whatever the rest is called: one change, or none."""
    place = data.draw(st.integers(0, len(program) - 1))
    groups = tuple(map(tuple, data.draw(iota_groups(8)).groups()))
    edited = [*program[:place], replace(program[place], groups=groups), *program[place + 1 :]]
    text = data.draw(spelled(program))
    answer = compare(text, data.draw(spelled(edited)))
    same = program[place].meaning == edited[place].meaning
    assert kinds(answer) == ([] if same else ["changed"])
