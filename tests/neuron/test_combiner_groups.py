"""Groups in the keys of the combiners: one number for all spellings, however many lists a module has."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combiner_modules import combined, entry, line, reasons, run
from commlens.hlo import Signature, load, parse_shape
from commlens.neuron import combiner_keys, replica_groups
from commlens.neuron.combiner_keys import KeyReader, KeyRules, StatedKey
from commlens.topology import CollectiveDeviceList, replica_groups_equal
from strategies import iota_groups, mesh_groups

if TYPE_CHECKING:
    from commlens.topology import DeviceList

SHAPE = (parse_shape("f32[8]"),)
MODULE = load(entry("x = f32[8] negate(p)", root="negate(x)"))
EXPLICIT = st.lists(st.lists(st.integers(0, 3), max_size=3), max_size=3).map(CollectiveDeviceList)
LISTS = EXPLICIT | iota_groups(4) | iota_groups(8) | mesh_groups() | iota_groups(8).map(CollectiveDeviceList)


def reader() -> KeyReader:
    """Return one without a filter."""
    return KeyReader(KeyRules("all-gather", combine_by_dim=True, mixed_dtypes=False), MODULE)


def number(keys: KeyReader, groups: DeviceList) -> int:
    """Return the number that a key has for groups."""
    stated = keys.stated(Signature("all-gather", False, SHAPE, SHAPE, groups))
    assert isinstance(stated, StatedKey)
    return stated.groups


@given(st.lists(LISTS, min_size=2, max_size=6), st.randoms(use_true_random=True))
def test_numbers_are_equal_where_the_groups_are(lists: list[DeviceList], random: Random) -> None:
    """Compared in pairs, written out or not, in whatever order they come."""
    lists += [each.to_list() for each in lists if random.random() < 0.5]
    random.shuffle(lists)
    keys = reader()
    numbers = [number(keys, groups) for groups in lists]
    for one, first in zip(numbers, lists, strict=True):
        assert [one == other for other in numbers] == [replica_groups_equal(first, second) for second in lists]


def permuted(count: int) -> list[str]:
    """Return group lists of one size that begin alike."""
    random, members = Random(7), [*range(4, 16)]
    found: dict[str, None] = {}
    while len(found) < count:
        random.shuffle(members)
        found[f"{{{{0,1,2,3,{','.join(map(str, members))}}}}}"] = None
    return [*found]


def test_many_lists_are_not_compared_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a filter no two are compared at all; every pair of equal ones is found."""
    calls: list[int] = []
    monkeypatch.setattr(combiner_keys, "replica_groups_equal", lambda *_: calls.append(1))
    lists = permuted(200)
    lines = [f"x{each} = {line('all-gather', replica_groups=groups)}" for each, groups in enumerate([*lists, *lists])]
    result = run("all-gather", load(entry(*lines)), tp_group="off")
    assert combined(result) == [[f"x{each}", f"x{each + 200}"] for each in range(200)]
    assert not calls


def test_looking_for_tensor_parallelism_compares_each_list_with_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """All reduce a dot, with groups of their own: two that differ are enough to know that the order matters."""
    calls: list[int] = []
    monkeypatch.setattr(
        replica_groups, "replica_groups_equal", lambda a, b: (calls.append(1), replica_groups_equal(a, b))[1]
    )
    lists = permuted(200)
    dot = "d = f32[8,8] dot(p, q), lhs_contracting_dims={}, rhs_contracting_dims={}"
    lines = [
        f"r{each} = {line('reduce-scatter', 'd', shape='f32[4,8]', replica_groups=groups)}"
        for each, groups in enumerate(lists)
    ]
    found = replica_groups.find_tp_groups(load(entry(dot, *lines)))
    assert str(found) == lists[0]
    assert len(calls) <= 2 * len(lists)


def test_other_groups_are_told_in_the_same_words() -> None:
    """The groups that they should have may be long; all that have others have one reason."""
    wanted, *lists = permuted(50)
    dot = "d = f32[8,8] dot(p, q), lhs_contracting_dims={}, rhs_contracting_dims={}"
    scatter = f"r = {line('reduce-scatter', 'd', shape='f32[4,8]', replica_groups=wanted)}"
    lines = [f"x{each} = {line('all-gather', replica_groups=groups)}" for each, groups in enumerate(lists)]
    result = run("all-gather", load(entry(dot, scatter, *lines)))
    assert reasons(result) == {
        f"its groups are not those of tensor parallelism, {wanted}": [f"x{each}" for each in range(49)]
    }
