"""Where combined instructions stand: held against a twin that sorts with loops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.hlo.edits import EditError
from commlens.hlo.placement import Combination, place

Case = tuple[list[int], dict[int, list[int]], list[Combination[int]]]


@st.composite
def cases(draw: st.DrawFn, combinations: int = 6) -> Case:
    """A list in an order that is valid, and disjoint sets of its instructions, dependent or not."""
    size = draw(st.integers(2, 12) | st.integers(13, 40))
    order = draw(st.permutations(range(size)))
    most = st.sampled_from([0, 1, 1, 3])  # few edges, so that several combinations are possible
    needs = {
        key: draw(st.lists(st.sampled_from(order[:at]), max_size=draw(most))) if at else []
        for at, key in enumerate(order)
    }
    shuffled = draw(st.permutations(range(size)))
    found: list[Combination[int]] = []
    start = 0
    for number in range(draw(st.integers(1, combinations))):
        stop = start + draw(st.integers(2, 4))
        if stop <= size:
            found.append(Combination(shuffled[start:stop], size + number, f"c.{number}"))
        start = stop
    return order, needs, found


def slow_place(order: list[int], needs: dict[int, list[int]], combination: Combination[int]) -> list[int] | None:
    """Place one combination with nothing but loops; None where its members depend on each other. Updates ``needs``."""
    members, new = list(combination.members), combination.new
    needs_all = [each for member in members for each in needs[member]]

    def depends(key: int) -> bool:
        return key in members or any(depends(each) for each in needs[key])

    if any(depends(each) for each in needs_all):
        return None
    first = min(order.index(member) for member in members)
    last = max([order.index(each) for each in needs_all], default=-1)
    if last < first:
        placed = [*order[:first], new, *order[first:]]
    else:
        between = order[first : last + 1]
        stay = [key for key in between if not depends(key)]
        placed = [*order[:first], *stay, new, *[key for key in between if depends(key)], *order[last + 1 :]]
    needs[new] = needs_all
    for member in members:
        needs[member] = [new]
    return placed


@given(cases())
def test_places_are_those_of_the_twin(case: Case) -> None:
    """One combination after the other gives the order of the loops, or is refused like there."""
    order, needs, combinations = case
    expected: list[int] | None = list(order)
    updated = {key: list(each) for key, each in needs.items()}
    for combination in combinations:
        expected = None if expected is None else slow_place(expected, updated, combination)
    if expected is None:
        with pytest.raises(EditError, match=r"to make c\.\d of"):
            place(order, needs.__getitem__, combinations)
        return
    assert place(order, needs.__getitem__, combinations).order(order) == expected


@given(cases())
def test_nothing_is_lost_and_the_order_stays_valid(case: Case) -> None:
    """All old and new instructions stand once, each behind what it needs; what did not move keeps its order."""
    order, needs, combinations = case
    try:
        placement = place(order, needs.__getitem__, combinations)
    except EditError:
        return
    now = placement.order(order)
    assert sorted(now) == sorted([*order, *[each.new for each in combinations]])
    position = {key: at for at, key in enumerate(now)}
    for key in now:
        assert all(position[each] < position[key] for each in placement.predecessors.get(key, needs.get(key, [])))
    for combination in combinations:
        assert all(position[combination.new] < position[member] for member in combination.members)
        assert set(placement.predecessors[combination.new]).isdisjoint(combination.members)
    stayed = [key for key in now if key in needs and key not in placement.moved]
    assert stayed == [key for key in order if key not in placement.moved]
    assert all(row != [order[at]] for at, row in placement.places.items())


@pytest.mark.parametrize(
    ("order", "members", "expected"),
    [
        pytest.param("abxyu", "xy", "abNxyu", id="nothing forced: where the first stood"),
        pytest.param("abxyu", "yx", "abNxyu", id="first in the list, whatever the order of the members"),
        pytest.param("axubyv", "xy", "abNxuyv", id="users of a member follow an operand that comes late"),
        pytest.param("axbyuv", "xy", "abNxyuv", id="only what stands before the late operand moves"),
        pytest.param("axkuby", "xy", "akbNxuy", id="what needs no member stays before it"),
        pytest.param("axuwby", "xy", "abNxuwy", id="users of users move as well"),
    ],
)
def test_cases_by_hand(order: str, members: str, expected: str) -> None:
    """New instructions stand as early as their operands allow."""
    needs = {"a": "", "b": "", "k": "a", "x": "a", "y": "b", "u": "x", "v": "y", "w": "ku"}
    assert "".join(place(order, needs.__getitem__, [Combination(members, "N", "n")]).order(order)) == expected


def test_two_that_wait_for_the_same() -> None:
    """Each goes directly behind what it waits for, the later one before what the earlier one has put there."""
    needs = {"a": "", "x": "a", "y": "a", "b": "", "p": "b", "q": "b"}
    combinations = [Combination("xp", "M", "m"), Combination("yq", "N", "n")]
    assert "".join(place("axybpq", needs.__getitem__, combinations).order("axybpq")) == "abNyMxpq"


def test_two_that_depend_on_each_other() -> None:
    """A member that needs another, even through others, is refused with the name of the new instruction."""
    needs = {"a": "", "x": "a", "u": "x", "y": "u"}
    expected = (
        r"^expected instructions that do not depend on each other to make all\.1 of, found one that needs another$"
    )
    with pytest.raises(EditError, match=expected):
        place("axuy", needs.__getitem__, [Combination("xy", "N", "all.1")])


def test_predecessors_that_stand_nowhere() -> None:
    """What is not in the list is passed over."""
    assert place("xy", lambda _: "?", [Combination("xy", "N", "n")]).order("xy") == ["N", "x", "y"]


def test_long_lists_cost_little() -> None:
    """A thousand combinations in a list of a hundred thousand look only at what stands between their members."""
    asked: list[int] = []

    def needs(key: int) -> tuple[int, ...]:
        asked.append(key)
        return (key - 1,) if key % 100 in (1, 3) else ()

    combinations = [Combination((base + 1, base + 3), -base - 1, "n") for base in range(0, 100_000, 100)]
    placement = place(range(100_000), needs, combinations)
    assert len(placement.places) == 2_000
    assert len(asked) < 10_000


def test_what_stands_behind_the_last_operand_stays_there() -> None:
    """Where an earlier combination has moved things into the row of the last operand, those behind it stay behind."""
    order = [5, 0, 1, 6, 2, 4, 7, 3]
    needs: dict[int, list[int]] = {5: [], 0: [5], 1: [5], 6: [], 2: [], 4: [], 7: [], 3: [4]}
    combinations = [Combination([5, 3], 8, "c.0"), Combination([1, 2], 10, "c.2")]
    assert place(order, needs.__getitem__, combinations).order(order) == [6, 4, 8, 5, 10, 2, 0, 1, 7, 3]


class Counted:
    """A key that counts how often it is compared with another one."""

    compared = 0

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        type(self).compared += 1
        return self is other

    def __hash__(self) -> int:
        return hash(self.name)


def comparisons(number: int) -> int:
    """Count the comparisons of moving so many instructions twice, the second time out of one place."""
    x, b, y, c, z, both, more = map(Counted, ("x", "b", "y", "c", "z", "both", "more"))
    users = [Counted(f"u{each}") for each in range(number)]
    order = [x, *users, b, y, c, z]
    needs = {x: [], b: [], c: [], y: [b], z: [c]} | dict(zip(users, ([each] for each in (x, *users)), strict=False))
    Counted.compared = 0
    placement = place(
        order, needs.__getitem__, [Combination([x, y], both, "both"), Combination([users[0], z], more, "more")]
    )
    assert [each.name for each in placement.order(order)] == [
        "b",
        "both",
        "x",
        "y",
        "c",
        "more",
        *(u.name for u in users),
        "z",
    ]
    return Counted.compared


def test_what_moves_is_compared_a_few_times() -> None:
    """However much stands in one place."""
    assert comparisons(400) <= 4.2 * comparisons(100)
