"""How much the grouping engine looks at: what it asks of the edges is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

import pytest

from commlens.hlo import Graph
from commlens.neuron.combiner_engine import Candidate, Limits, find_sets
from commlens.neuron.combiner_order import Order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LARGE = Limits(1 << 30, 256)
PAIRS = Limits(1 << 30, 2)
Problem = tuple[list[list[int]], list[Candidate], Limits, int]


class Counted(Sequence[Sequence[int]]):
    """Operands that count how often an instruction is asked for its own."""

    def __init__(self, operands: Sequence[Sequence[int]]) -> None:
        self._operands = operands
        self.asked = 0

    def __len__(self) -> int:
        return len(self._operands)

    @overload
    def __getitem__(self, index: int) -> Sequence[int]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Sequence[int]]: ...

    def __getitem__(self, index: int | slice) -> Sequence[int] | Sequence[Sequence[int]]:
        self.asked += 1
        return self._operands[index]

    def __iter__(self) -> Iterator[Sequence[int]]:
        return iter(self._operands)


def flat(size: int) -> list[list[int]]:
    """One parameter, and what takes it."""
    return [[], *([0] for _ in range(size))]


def with_root(operands: list[list[int]]) -> list[list[int]]:
    """All that was is used at the end."""
    return [*operands, [*range(len(operands))]]


def unused(size: int) -> Problem:
    """Pairs that nothing uses: each goes to the end of the list."""
    return flat(size), [Candidate(each, "K", 4) for each in range(1, size + 1)], PAIRS, size // 2


def nested(size: int) -> Problem:
    """The first with the last, the second with the last but one, and so on."""
    return (
        with_root(flat(size)),
        [Candidate(each, min(each, size + 1 - each), 4) for each in range(1, size + 1)],
        LARGE,
        size // 2,
    )


def far(size: int) -> Problem:
    """As many keys as pairs, whose second members come when all the first ones are over."""
    return (
        with_root(flat(size)),
        [Candidate(each, each % (size // 2), 4) for each in range(1, size + 1)],
        LARGE,
        size // 2,
    )


def deep(size: int) -> Problem:
    """The same, and all second members need the end of one long chain."""
    half = size // 2
    chain = [[0], *([half + each] for each in range(1, half))]
    operands = [*flat(half), *chain, *([2 * half] for _ in range(half))]
    candidates = [
        *(Candidate(1 + each, each, 4) for each in range(half)),
        *(Candidate(1 + 2 * half + each, each, 4) for each in range(half)),
    ]
    return with_root(operands), candidates, LARGE, half


def dependent(size: int) -> Problem:
    """A chain of candidates with something between every two: no two can be one."""
    operands = [[], *([each] for each in range(2 * size))]
    return operands, [Candidate(2 * each + 1, "K", 4) for each in range(size)], LARGE, 0


def asked(problem: Problem) -> int:
    """Find the sets of a problem; return how often edges were asked for."""
    operands, candidates, limits, expect = problem
    counted = Counted(operands)
    assert len(find_sets(Graph(counted), candidates, limits)) == expect
    return counted.asked


@pytest.mark.parametrize("made", [unused, nested, far, deep, dependent])
def test_work_grows_with_the_computation(made: Callable[[int], Problem]) -> None:
    """Ten times as many instructions, ten times as many questions, however far apart members stand."""
    small, large = asked(made(200)), asked(made(2000))
    assert small <= 6 * 200
    assert large <= 10.1 * small


@pytest.mark.parametrize(("needed_last", "expect"), [([5, 3], [5, 2]), ([3, 5], [2, 5])])
def test_candidates_below_an_unused_member_are_listed_anew(needed_last: list[int], expect: list[int]) -> None:
    """What an unused member needs is met where something else needs it, once the member is at the end of the list."""
    # 1(0) and 4(3) become one, unused; 2(0) is below 4, and below what is needed last
    graph = Graph([[], [0], [0], [2], [3], [0], needed_last])
    candidates = [*(Candidate(each, "K", 4) for each in (1, 4)), *(Candidate(each, "L", 4) for each in (2, 5))]
    assert find_sets(graph, candidates, LARGE) == [[1, 4], expect]


def test_what_comes_before_a_member_gets_a_place_before_it() -> None:
    """Again and again, between that member and what is there already."""
    # 1(0) with 3(2), 2(0) with 5(4): 2 comes before 1, and 4 before 2
    order = Order(Graph([[], [0], [0], [2], [0], [4], [1, 3, 5]]))
    assert sorted(range(7), key=order.places.__getitem__) == [0, 1, 2, 3, 4, 5, 6]
    assert order.combine([1, 3], {2}, {2, 5}) == [2]
    assert sorted(range(7), key=order.places.__getitem__) == [0, 2, 1, 3, 4, 5, 6]
    assert order.combine([2, 5], {4}, {4}) == [4]
    assert sorted(range(7), key=order.places.__getitem__) == [0, 4, 2, 1, 3, 5, 6]
