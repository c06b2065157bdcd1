"""The grouping engine: held against a twin that rewrites the computation in every round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commlens.errors import CommlensError
from commlens.hlo import Graph
from commlens.neuron.combiner_engine import Candidate, Limits, find_sets
from commlens.neuron.combiner_order import CycleError
from neuron_cases import cases
from twins_combiner import Op, sets

if TYPE_CHECKING:
    from random import Random

Problem = tuple[Graph, list[Candidate], Limits]

LARGE = Limits(1 << 30, 256)


def problem_of(random: Random) -> Problem:
    """A computation whose list need not be in a valid order, with control edges, unused and variadic instructions."""
    order = list(range(random.randint(2, 16)))
    if random.random() < 0.5:
        random.shuffle(order)
    operands: list[list[int]] = [[] for _ in order]
    control: dict[int, list[int]] = {}
    candidates: list[Candidate] = []
    for place, position in enumerate(order):
        before = order[:place]
        is_candidate = place > 0 and random.random() < 0.65
        if before:
            number = random.choice([1] * 9 + [2] if is_candidate else [0, 1, 2, 3])
            near = before[:3] if is_candidate and random.random() < 0.5 else before
            operands[position] = random.choices(near, k=number)
            if random.random() < 0.15:
                control[position] = random.choices(before, k=random.randint(1, 2))
        if is_candidate:
            candidates.append(Candidate(position, random.choice("KKKKLLL-").strip("-") or None, random.randint(0, 6)))
    limits = Limits(random.choice([5, 12, 100]), random.choice([2, 2, 3, 256]))
    return Graph(operands, control), candidates, limits


PROBLEMS = st.builds(problem_of, st.randoms(use_true_random=True))
MANY = settings(max_examples=max(1500, settings().max_examples))


def slow_sets(problem: Problem) -> list[list[int]]:
    """Ask the twin."""
    graph, candidates, limits = problem
    by_position = {each.position: each for each in candidates}
    ops = [
        Op(
            str(position),
            list(map(str, operands)),
            list(map(str, graph.control_predecessors.get(position, ()))),
            by_position[position].key if position in by_position else None,
            by_position[position].num_bytes if position in by_position else 0,
        )
        for position, operands in enumerate(graph.operands)
    ]
    return [list(map(int, found)) for found in sets(ops, limits.num_bytes, limits.count)]


@MANY
@given(PROBLEMS)
def test_sets_are_those_of_the_twin(problem: Problem) -> None:
    """The order that is mended in part gives the sets, and the order in them, of one that is made anew every time."""
    assert find_sets(*problem) == slow_sets(problem)


@given(PROBLEMS)
def test_order_of_the_candidates_does_not_matter(problem: Problem) -> None:
    """Only the post-order decides."""
    graph, candidates, limits = problem
    assert find_sets(graph, candidates[::-1], limits) == find_sets(graph, candidates, limits)


@pytest.mark.parametrize("case", cases("combiner_grouping"))
def test_sets_of_cases(case: dict[str, Any]) -> None:
    """The documented examples; dependence is the operand, all others have a parameter."""
    names = ["p", *(each["id"] for each in case["instructions"])]
    sources = {user: source for source, user in case["deps"]}
    graph = Graph([[], *([names.index(sources.get(name, "p"))] for name in names[1:])])
    candidates = [Candidate(names.index(each["id"]), each["key"], each["bytes"]) for each in case["instructions"]]
    found = find_sets(graph, candidates, Limits(case["threshold_bytes"], case["threshold_count"]))
    assert [[names[position] for position in members] for members in found] == case["expected_groups"]
    assert {*names[1:]} - {name for members in case["expected_groups"] for name in members} == {*case["left_alone"]}


# --- the rules one by one -------------------------------------------------------------------------------------------


def candidates(*positions: int, key: str = "K", num_bytes: int = 4) -> list[Candidate]:
    """Return candidates that share all."""
    return [Candidate(position, key, num_bytes) for position in positions]


FLAT = Graph([[], [0], [0], [0], [0]])


@pytest.mark.parametrize(
    ("limits", "expect"),
    [
        (Limits(8, 256), [[1, 2], [3, 4]]),
        (Limits(7, 256), []),
        (Limits(15, 3), [[1, 2, 3]]),
        (LARGE, [[1, 2, 3, 4]]),
        (Limits(16, 1), []),
        (Limits(-1, 256), []),
        (Limits(16, -5), []),
        (Limits(16, 0), []),
    ],
)
def test_limits_are_inclusive(limits: Limits, expect: list[list[int]]) -> None:
    """A set may have as many bytes and members as the limits say; 0 and less forbid everything."""
    assert find_sets(FLAT, candidates(1, 2, 3, 4), limits) == expect


def test_what_does_not_fit_ends_the_set_though_a_later_one_would_fit() -> None:
    """There is no look ahead for a smaller one."""
    mixed = [Candidate(1, "K", 24), Candidate(2, "K", 16), Candidate(3, "K", 8)]
    assert find_sets(FLAT, mixed, Limits(32, 256)) == [[2, 3]]


def test_a_dependent_one_ends_the_set() -> None:
    """Newer XLA would pass over number 2 and take number 3."""
    graph = Graph([[], [0], [1], [0], [2, 3]])
    assert find_sets(graph, candidates(1, 2, 3), LARGE) == [[2, 3]]


def test_control_edges_are_dependence() -> None:
    """What must wait for a member does not join it."""
    graph = Graph([[], [0], [0], [1, 2]], {2: [1]})
    assert find_sets(graph, candidates(1, 2), LARGE) == []


def test_a_set_can_make_others_depend_on_each_other() -> None:
    """When 1 and 2 are one, number 3 needs number 4 through it."""
    graph = Graph([[], [0], [4], [1], [0], [3, 2]])
    assert find_sets(graph, candidates(3, 4, key="L"), LARGE) == [[3, 4]]
    assert find_sets(graph, candidates(1, 2) + candidates(3, 4, key="L"), LARGE) == [[1, 2]]


def test_keys_are_taken_by_turns() -> None:
    """The first one left fixes the key of each round."""
    mixed = candidates(1, 3) + candidates(2, 4, key="L")
    assert find_sets(FLAT, mixed, LARGE) == [[1, 3], [2, 4]]


@pytest.mark.parametrize(
    ("operand", "control", "expect"),
    [(0, [], [6, 7]), (2, [], [6, 7]), (3, [], [7, 6]), (0, [2, 3], [7, 6]), (0, [3, 2], [6, 7]), (2, [3], [7, 6])],
)
def test_what_a_combined_one_needs_comes_before_it(operand: int, control: list[int], expect: list[int]) -> None:
    """Its control predecessors first, the last one first of all; then its operands in their order."""
    # 4(0) and 5(operand) become one; 2(6) and 3(7) lead to two of another key, which the root uses as well
    graph = Graph([[], [], [6], [7], [0], [operand], [0], [1], [4, 5, 2, 3]], {5: control})
    assert find_sets(graph, candidates(4, 5) + candidates(6, 7, key="L"), LARGE) == [[4, 5], expect]


def test_several_operands_and_no_key_take_part_in_nothing() -> None:
    """They neither join nor end a set."""
    graph = Graph([[], [0], [0, 0], [0], [0]])
    given_ = [*candidates(1, 2, 4), Candidate(3, None, 4)]
    assert find_sets(graph, given_, LARGE) == [[1, 4]]


@pytest.mark.parametrize(
    "graph",
    [
        Graph([[1], [0]]),
        Graph([[], [0], [0], [4], [3, 1, 2]]),
        Graph([[], [0], [0], [1, 2]], {1: [3]}),
        Graph([[0], [0]]),
    ],
)
def test_cycles_are_refused(graph: Graph) -> None:
    """The error names an instruction that needs itself."""
    with pytest.raises(CycleError, match="needs itself") as caught:
        find_sets(graph, candidates(0, 1) if len(graph.operands) == 2 else candidates(1, 2), LARGE)
    assert isinstance(caught.value, CommlensError)
    assert needs(graph, caught.value.position, caught.value.position)


def needs(graph: Graph, position: int, wanted: int) -> bool:
    """Whether one instruction leads to another in one step or more."""
    seen: set[int] = set()
    pending = [*graph.predecessors(position)]
    while pending:
        each = pending.pop()
        if each == wanted:
            return True
        if each not in seen:
            seen.add(each)
            pending += graph.predecessors(each)
    return False


def test_many_rounds_over_a_large_computation() -> None:
    """A chain of pairs, each dependent on the one before, and unused members: hundreds of sets from one order."""
    operands: list[list[int]] = [[]]
    pairs: list[list[int]] = []
    last = 0
    for _ in range(300):
        first, second = len(operands), len(operands) + 1
        operands += [[last], [last], [first, second]]
        pairs.append([first, second])
        last = second + 1
    found = find_sets(Graph(operands), candidates(*(each for pair in pairs for each in pair)), LARGE)
    assert found == pairs
