"""``diff`` and ``hosts``: computations that run at several places, loops in loops, conditionals side by side."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commlens.analysis import ModuleDiff, diff
from commlens.hlo import load
from hosting import hosts
from program_trees import Op, Program, hlo_of, mutated, random_program, trace_of

A, B, C = (Op("collective", number) for number in range(3))
SILENT = -1


def call(function: int) -> Op:
    """Return a call."""
    return Op("call", functions=(function,))


def loop(function: int, trips: int = 0, condition: int | None = None) -> Op:
    """Return a loop; without trips nobody knows how often it runs."""
    return Op("loop", trips, (function,), condition)


def branches(*functions: int) -> Op:
    """Return a conditional that a number picks from."""
    return Op("conditional", 0, functions)


def compared(before: Program, after: Program) -> ModuleDiff:
    """Compare two programs."""
    return diff(load(hlo_of(before)), load(hlo_of(after)))


def agree(before: Program, after: Program) -> bool | None:
    """Return whether hosts with these programs agree."""
    return hosts({"a": hlo_of(before), "b": hlo_of(after)}).agree


OTHER = {
    "branches-of-one-computation": (((A,), (branches(0, SILENT, 0),)), ((A,), (branches(0, 0, SILENT),))),
    "called-again-in-another-branch": (
        ((A,), (call(0), branches(SILENT, 0, SILENT))),
        ((A,), (call(0), branches(SILENT, SILENT, 0))),
    ),
    "called-again-in-a-branch-of-its-own": (
        ((A,), (B,), (call(0), branches(0, SILENT, 1))),
        ((A,), (B,), (call(0), branches(0, SILENT, SILENT), branches(SILENT, SILENT, 1))),
    ),
    "bodies-of-other-trips": (((A,), (loop(0, 2), B, loop(0, 3))), ((A,), (loop(0, 3), B, loop(0, 2)))),
    "called-again-at-another-place": (((A,), (call(0), B, call(0), C)), ((A,), (call(0), B, C, call(0)))),
    "nested-in-what-is-called-again": (
        ((A,), (B,), (call(0),), (call(1),), (call(2), call(3), call(2), call(3))),
        ((A,), (B,), (call(0),), (call(1),), (call(2), call(3), call(3), call(2))),
    ),
    "another-one-again-in-an-endless-loop": (
        ((A,), (B,), (call(0), call(1), call(0)), (loop(2),)),
        ((A,), (B,), (call(0), call(1), call(1)), (loop(2),)),
    ),
    "alike-but-in-another-order": (
        ((A, B), (B, A), (call(0), call(1), call(0)), (loop(2),)),
        ((A, B), (B, A), (call(0), call(1), call(1)), (loop(2),)),
    ),
    "loop-in-a-loop": (
        ((A,), (B,), (loop(0, 3), loop(1, 3)), (loop(2, 2),)),
        ((A,), (B,), (loop(0, 2), loop(1, 2)), (loop(2, 3),)),
    ),
    "loop-in-an-endless-loop": (((A,), (loop(0, 3),), (loop(1),)), ((A,), (loop(0, 2),), (loop(1),))),
    "two-conditionals-of-one": (
        ((A,), (B,), (branches(0, 1, SILENT),)),
        ((A,), (B,), (branches(0, SILENT, SILENT), branches(SILENT, 1, SILENT))),
    ),
    "two-loops-of-one": (
        ((Op("conditional", 1, (SILENT, SILENT)),), (B,), (loop(1, 2, condition=0),)),
        ((Op("conditional", 1, (SILENT, SILENT)),), (B,), (loop(0, 2, condition=0), loop(1, 2))),
    ),
}


@pytest.mark.parametrize("pair", OTHER.values(), ids=OTHER.keys())
def test_what_is_called_again_is_told_apart(pair: tuple[Program, Program]) -> None:
    """The same rows as often, but at other places: nobody calls that the same, either way round."""
    for before, after in (pair, pair[::-1]):
        assert compared(before, after).same_communication is False
        assert agree(before, after) is False


ALIKE = {
    "shared-branches": ((A,), (branches(0, SILENT, 0),)),
    "shared-bodies": ((A,), (loop(0, 2, 1), B, loop(0, 3))),
    "shared-calls": ((A, B), (call(0),), (call(1), call(1), loop(1, 4), call(0))),
    "endless": ((A,), (loop(0), call(0)), (loop(1),)),
}


@pytest.mark.parametrize("program", ALIKE.values(), ids=ALIKE.keys())
def test_shared_computations_in_other_words(program: Program) -> None:
    """Names, channels and halves mean nothing where a computation runs at several places."""
    before, after = hlo_of(program), hlo_of(program, suffix=".7", channels=90, halves=Random(5))
    assert diff(load(before), load(after)).same_communication is True
    assert hosts({"a": before, "b": after}).agree is True


def test_loops_alone_in_one_another_count_by_their_product() -> None:
    """Two rounds of three are three rounds of two where nothing else runs in between."""
    before, after = ((A,), (loop(0, 3),), (loop(1, 2),)), ((A,), (loop(0, 2),), (loop(1, 3),))
    assert compared(before, after).same_communication is True
    assert agree(before, after) is True


def test_words_for_other_places() -> None:
    """What runs elsewhere is changed, and the words say how: the call, or the loop."""
    again = compared(*OTHER["branches-of-one-computation"])
    assert [change.what for change in again.changes] == ["stands in f0, which is called again at another place"]
    inner = compared(*OTHER["loop-in-a-loop"])
    assert [change.what for change in inner.changes] == ["the loop around it runs 2 times -> 3 times"] * 2


def test_words_for_hosts_that_part_where_nothing_is_new() -> None:
    """A position at which all hosts have the same, or nothing, is said to be one of loops, branches and calls."""
    again = hosts(dict(zip("ab", map(hlo_of, OTHER["branches-of-one-computation"]), strict=True))).first_difference
    assert again is not None
    assert again.members == {
        "a": "nothing new: its 1 collective has run before",
        "b": "nothing new: its 1 collective has run before; what runs again does so at other places than on a",
    }
    moved = hosts(dict(zip("ab", map(hlo_of, OTHER["called-again-at-another-place"]), strict=True))).first_difference
    assert moved is not None
    assert moved.members["a"].startswith("collective-permute r3")
    assert moved.members["b"].startswith("collective-permute r2")
    assert moved.members["b"].endswith("; in other loops, branches or calls than on a")


def test_one_fault_in_a_shared_computation_is_one_change() -> None:
    """What is not touched in a computation that is called again is not said to have changed."""
    before: Program = ((A, B), (call(0), C, call(0), loop(0, 2)))
    answer = compared(before, ((A,), *before[1:]))
    assert [
        (change.kind, change.before and change.before.name) for change in answer.changes if change.kind != "spelling"
    ] == [("removed", "r1")]


def test_a_computation_that_calls_itself_is_no_trap() -> None:
    """XLA refuses such a module; comparing it ends all the same."""
    text = hlo_of(((A,), (call(0), A), (call(1),))).replace("to_apply=f0", "to_apply=f1")
    assert diff(load(text), load(text)).same_communication is True
    assert hosts({"a": text, "b": text}).agree is True


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_no_wrong_answer_on_random_programs(seed: int) -> None:
    """What runs otherwise is never the same, a program in other words always is, and both commands say so."""
    random = Random(seed)
    before = after = random_program(random)
    for _ in range(random.randrange(3)):
        after = mutated(random, after)
    halves = random.choice((None, random))
    texts = [hlo_of(before), hlo_of(after, suffix=random.choice(("", ".7")), channels=50, halves=halves)]
    answers = [
        diff(load(texts[0]), load(texts[1])).same_communication,
        hosts(dict(zip("ab", texts, strict=True))).agree,
    ]
    if before == after:
        assert answers == [True, True]
    elif trace_of(before) != trace_of(after):
        assert answers == [False, False]
