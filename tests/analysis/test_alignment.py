from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from commlens.analysis.diffs.alignment import Alignment, Item, align


def items(text: str) -> list[Item]:
    """Read things such as ``ar.1=f8/tp``: kind, number, shape, groups."""
    found: list[Item] = []
    for word in text.split():
        name, _, what = word.partition("=")
        shape, _, groups = what.partition("/")
        kind = name.split(".")[0]
        found.append(Item(kind, (kind, what), name, (("shape", shape), ("groups", groups))))
    return found


def aligned(before: str, after: str) -> Alignment:
    """Align two lists."""
    return align(items(before), items(after))


def test_what_is_equal_stays_together() -> None:
    """Equal lists are paired one by one whatever things are called."""
    assert aligned("ar.1=f8/tp ag.2=f8/dp", "ar.7=f8/tp ag.9=f8/dp") == Alignment(((0, 0), (1, 1)), frozenset(), (), ())


def test_other_groups_are_one_change() -> None:
    """A thing between the same two others that keeps its shape is the same one, changed."""
    found = aligned("ag.1=f8/dp ar.2=f8/tp ag.3=f9/dp", "ag.1=f8/dp ar.8=f8/dp ag.3=f9/dp")
    assert (found.pairs, found.removed, found.added) == (((0, 0), (1, 1), (2, 2)), (), ())


def test_another_operation_is_no_change() -> None:
    """Things of different kinds are never paired."""
    found = aligned("ar.1=f8/tp", "ag.1=f8/tp")
    assert (found.pairs, found.removed, found.added) == ((), (0,), (0,))


def test_nothing_in_common_is_no_change() -> None:
    """Things that share neither name nor anything else are removed and added."""
    found = aligned("ar.1=f8/tp", "ar.2=f9/dp")
    assert (found.pairs, found.removed, found.added) == ((), (0,), (0,))


def test_a_name_is_enough_to_be_the_same() -> None:
    """A thing that keeps nothing but its name has changed."""
    assert aligned("ar.1=f8/tp", "ar.1=f9/dp").pairs == ((0, 0),)


def test_a_name_is_enough_elsewhere_too() -> None:
    """A thing that has changed and moved is known by its name."""
    found = aligned("ar.1=f8/tp ag.2=f8/dp", "ag.2=f8/dp ar.1=f9/dp")
    assert (found.pairs, len(found.moved)) == (((0, 1), (1, 0)), 1)


def test_names_decide_which_of_several_is_gone() -> None:
    """Of three equal things the one whose name is gone was removed."""
    assert aligned("ar.1=f8/tp ar.2=f8/tp ar.3=f8/tp", "ar.1=f8/tp ar.3=f8/tp").removed == (1,)


def test_names_never_cost_an_equal_pair() -> None:
    """Names that point elsewhere do not pull apart what can stand in the same order."""
    found = aligned("ag.1=f8/tp ar.2=f8/tp ag.3=f8/tp", "ag.3=f8/tp ar.5=f8/tp ag.1=f8/tp")
    assert (found.pairs, found.moved) == (((0, 0), (1, 1), (2, 2)), frozenset())


def test_a_change_goes_before_a_move() -> None:
    """What keeps name and place has changed, though its old self turns up elsewhere."""
    found = aligned("ar.1=f8/tp ag.2=f8/dp ar.3=f9/tp", "ar.1=f8/dp ag.2=f8/dp ar.4=f8/tp")
    assert (found.pairs, found.removed, found.added, found.moved) == (((0, 0), (1, 1), (2, 2)), (), (), frozenset())


def test_where_all_has_merely_moved_names_mean_nothing() -> None:
    """Names by position do not hide that two things have changed places."""
    found = aligned("ar.1=f8/tp ag.2=f7/x ar.3=f8/dp ag.4=f6/y", "ar.1=f8/dp ag.2=f7/x ar.3=f8/tp ag.4=f6/y")
    assert found.pairs == ((0, 2), (1, 1), (2, 0), (3, 3))
    assert len(found.moved) == 2


words = st.lists(
    st.builds(
        lambda kind, number, what: Item(kind, what, f"{kind}.{number}", (what[0], what[1])),
        st.sampled_from(["ar", "ag"]),
        st.integers(0, 5),
        st.tuples(st.integers(0, 1), st.integers(0, 1)),
    ),
    max_size=8,
)


def equals_in_order(before: list[Item], after: list[Item]) -> int:
    """Count how many equal things can stand in the same order, by trying everything."""
    if not before or not after:
        return 0
    first, *rest = before
    best = equals_in_order(rest, after)
    for place, item in enumerate(after):
        if item.key == first.key:
            best = max(best, 1 + equals_in_order(rest, after[place + 1 :]))
            break
    return best


@given(words, words)
def test_alignment_accounts_for_everything_once(before: list[Item], after: list[Item]) -> None:
    """Pairs are of one kind, nothing is in two of them, and as much as possible is equal and in order."""
    keyed = [[item._replace(key=(item.kind, item.key)) for item in each] for each in (before, after)]
    found = align(*keyed)
    assert sorted([*(i for i, _ in found.pairs), *found.removed]) == list(range(len(before)))
    assert sorted([*(j for _, j in found.pairs), *found.added]) == list(range(len(after)))
    assert all(before[i].kind == after[j].kind for i, j in found.pairs)
    kept = [pair for pair in found.pairs if pair not in found.moved]
    assert all(a[1] < b[1] for a, b in pairwise(kept))
    equal = sum(keyed[0][i].key == keyed[1][j].key for i, j in found.pairs)
    assert equal >= equals_in_order(*keyed)
    left = Counter(keyed[0][i].key for i in found.removed) & Counter(keyed[1][j].key for j in found.added)
    assert not left


@given(words)
def test_a_list_is_the_same_as_itself(before: list[Item]) -> None:
    """Nothing is removed, added or moved between a list and itself."""
    assert align(before, before) == Alignment(
        tuple((place, place) for place in range(len(before))), frozenset(), (), ()
    )
