from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

import twins
from commlens.topology import IotaTileAssignment
from commlens.topology.digits import Digit, align, count, merge, row_major, split_inner, to_radix
from strategies import factorings, numbers, tiles

any_digits = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)).map(lambda pair: Digit(*pair)), max_size=5)


@given(numbers.flatmap(factorings))
def test_row_major_digits_count_through_everything(sizes: tuple[int, ...]) -> None:
    """The digits of an array count 0, 1, 2, ..."""
    assert twins.digits(row_major(sizes)) == list(range(count(row_major(sizes))))


@given(any_digits)
def test_merging_keeps_the_values(digits: list[Digit]) -> None:
    """Joining and dropping digits does not change what is counted."""
    assert twins.digits(merge(digits)) == twins.digits(digits)


@given(any_digits)
def test_merged_digits_have_nothing_left_to_merge(digits: list[Digit]) -> None:
    """The normal form has no digit of size 1 and no two neighbours that continue each other."""
    normal = merge(digits)
    assert all(digit.size > 1 for digit in normal)
    assert all(outer.stride != inner.end for outer, inner in pairwise(normal))


@given(tiles(), tiles())
def test_normal_form_depends_on_the_values_alone(one: IotaTileAssignment, other: IotaTileAssignment) -> None:
    """Two iotas count alike if and only if their normal forms are the same."""
    alike = twins.digits(one.digits) == twins.digits(other.digits)
    assert alike == (one.digits == other.digits)


@given(tiles(), st.integers(1, 24))
def test_split_keeps_the_values(tile: IotaTileAssignment, inner_count: int) -> None:
    """The parts of a cut count like the whole, and the inner part has the size asked for."""
    parts = split_inner(tile.digits, inner_count)
    if parts is not None:
        outer, inner = parts
        assert count(inner) == inner_count
        assert twins.digits([*outer, *inner]) == twins.digits(tile.digits)


@given(tiles(), st.integers(1, 24))
def test_split_fails_only_where_rows_differ(tile: IotaTileAssignment, inner_count: int) -> None:
    """Where no cut is possible, the values cut into rows of that length are no translates of each other."""
    values = twins.digits(tile.digits)
    if len(values) % inner_count:
        return
    offsets = {tuple(value - row[0] for value in row) for row in twins.rows(values, inner_count)}
    assert (split_inner(tile.digits, inner_count) is not None) == (len(offsets) == 1)


@given(numbers.flatmap(factorings), st.integers(1, 12), st.integers(1, 12))
def test_pieces_are_the_inner_part_of_the_digit(sizes: tuple[int, ...], stride: int, size: int) -> None:
    """Pieces, put back into the radix, count like the beginning of the digit, and each stays inside its place."""
    places = row_major(sizes)
    pieces = align(Digit(stride, size), sizes)
    back = [Digit(part.stride * places[place].stride, part.size) for place, part in pieces]
    assert twins.digits(back) == [stride * step for step in range(count(back))]
    assert all(part.end <= sizes[place] and sizes[place] % part.end == 0 for place, part in pieces)


@given(numbers.flatmap(factorings), st.integers(1, 12), st.integers(2, 12))
def test_a_digit_is_aligned_where_adding_it_never_carries(sizes: tuple[int, ...], stride: int, size: int) -> None:
    """The pieces make up the whole digit if and only if translates of it tile the radix place by place."""
    whole = count(piece.digit for piece in align(Digit(stride, size), sizes)) == size
    parts = [(place.stride * unit, part) for place in row_major(sizes) for unit, part in _inside(place.size)]
    spelt = [stride * step for step in range(size)]
    assert whole == any(twins.digits(chosen) == spelt for chosen in _chains(parts, size))


def test_digits_that_skip_a_value_are_no_radix() -> None:
    """Only digits that count through 0..n-1 have a reshape and a transposition."""
    assert to_radix((Digit(2, 2),)) is None
    assert to_radix((Digit(1, 2), Digit(1, 2))) is None
    assert to_radix(()) == ((), ())


def _inside(size: int) -> list[tuple[int, int]]:
    """Unit and size of every part of a place."""
    return [(unit, part) for unit in range(1, size + 1) for part in range(2, size + 1) if size % (unit * part) == 0]


def _chains(parts: list[tuple[int, int]], size: int) -> list[list[tuple[int, int]]]:
    """All sequences of parts with this many values, outermost first, each continuing the next."""
    if size == 1:
        return [[]]
    return [
        [*rest, (stride, part)]
        for stride, part in parts
        if size % part == 0
        for rest in _chains([each for each in parts if each[0] == stride * part], size // part)
    ]
