from __future__ import annotations

import copy
import tracemalloc
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import twins
from commlens.topology import IotaTileAssignment
from commlens.topology.digits import Digit
from commlens.topology.iota import EXPANSION_LIMIT
from strategies import factorings, iota_orders, numbers, tiles
from xla_cases import cases


def tile_of(given: dict[str, Any]) -> IotaTileAssignment:
    """The iota of a case."""
    return IotaTileAssignment(given["dims"], given["reshape_dims"], given["transpose_perm"])


@pytest.mark.parametrize(("given_", "expect"), cases("iota_value_at"))
def test_value_at(given_: dict[str, Any], expect: int) -> None:
    """An index leads to the device that upstream finds there."""
    assert tile_of(given_).value_at(given_["index"]) == expect


@pytest.mark.parametrize(("given_", "expect"), cases("iota_to_array"))
def test_to_array(given_: dict[str, Any], expect: dict[str, Any]) -> None:
    """The array is upstream's."""
    assert tile_of(given_).to_array().tolist() == expect["array"]


@pytest.mark.parametrize(("given_", "expect"), cases("iota_canonicalize"))
def test_canonical_form(given_: dict[str, Any], expect: dict[str, Any]) -> None:
    """The constructor brings sizes and permutation into upstream's canonical form."""
    tile = tile_of(given_)
    assert tile.reshape_dims == tuple(expect["reshape_dims"])
    assert tile.transpose_perm == tuple(expect["transpose_perm"])
    assert str(tile) == "devices=" + expect["text"]
    assert tile.canonical() is tile


@pytest.mark.parametrize(("given_", "expect"), cases("iota_transpose"))
def test_transpose(given_: dict[str, Any], expect: dict[str, Any]) -> None:
    """Transposing gives upstream's iota, or none where upstream falls back to an array."""
    turned = tile_of(given_).transpose(given_["permutation"])
    assert (turned and turned.text) == (expect["iota"] and expect["iota"]["text"])


@given(numbers.flatmap(lambda n: st.tuples(factorings(n), iota_orders(n))))
def test_values_are_the_twins(given_: tuple[tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
    """Array, value_at and index_of are those of a loop over the ids, whatever form was given."""
    dims, (reshape, perm) = given_
    tile = IotaTileAssignment(dims, reshape, perm)
    expected = twins.iota(reshape, perm)
    indices = list(product(*map(range, dims)))
    assert tile.to_array().shape == dims
    assert tile.to_array().dtype == np.int64
    assert tile.to_array().reshape(-1).tolist() == expected
    assert [tile.value_at(index) for index in indices] == expected
    assert [tile.index_of(device) for device in expected] == indices
    assert tile.flat_values(np.arange(len(expected))).tolist() == expected
    assert tile.flat_indices(np.array(expected)).tolist() == list(range(len(expected)))


@given(tiles(), tiles())
def test_equal_exactly_when_the_arrays_are(one: IotaTileAssignment, other: IotaTileAssignment) -> None:
    """The canonical form tells two iotas apart exactly when their shapes or ids differ."""
    alike = one.dims == other.dims and one.to_array().tolist() == other.to_array().tolist()
    assert (one == other) == alike
    assert not alike or hash(one) == hash(other)


@given(tiles(), st.data())
def test_transposed_values_are_the_twins(tile: IotaTileAssignment, data: st.DataObject) -> None:
    """A transposed iota holds the ids a loop finds, and there always is one when only sizes of 1 move."""
    perm = data.draw(st.permutations(range(tile.ndim)))
    moved = [axis for axis in perm if tile.dims[axis] > 1]
    turned = tile.transpose(perm)
    if turned is None:
        assert moved != sorted(moved)
    else:
        assert turned.dims == tuple(tile.dims[axis] for axis in perm)
        assert turned.to_array().reshape(-1).tolist() == twins.transpose(
            tile.to_array().reshape(-1).tolist(), tile.dims, perm
        )


@pytest.mark.parametrize("number", [6, 12, 16])
def test_a_matrix_has_no_transpose_only_where_no_iota_has_its_ids(number: int) -> None:
    """Of all matrices of this size, exactly those have a transpose whose transposed ids are those of some iota."""
    every = {
        tuple(twins.iota(sizes, perm)) for sizes in _factorings(number) for perm in permutations(range(len(sizes)))
    }
    for sizes in _factorings(number):
        for perm, rows in product(permutations(range(len(sizes))), _divisors(number)):
            dims = (rows, number // rows)
            turned = tuple(twins.transpose(twins.iota(sizes, perm), dims, (1, 0)))
            assert (IotaTileAssignment(dims, sizes, perm).transpose((1, 0)) is not None) == (turned in every)


@pytest.mark.parametrize("number", [8, 12, 18])
def test_an_iota_has_no_transpose_only_where_no_iota_has_its_ids(number: int) -> None:
    """Of all iotas of three dimensions and more, too, dimensions that stay neighbours being cut out together."""
    every = _every_iota(number)
    for ids, dims in product(every, filter(lambda dims: len(dims) > 2, _factorings(number))):
        tile = every[ids].reshape(dims)
        for perm in permutations(range(len(dims))):
            turned = tile.transpose(perm)
            expected = every.get(tuple(twins.transpose(list(ids), dims, perm)))
            assert (None if turned is None else turned.reshape((number,))) == expected
            assert turned is None or turned.dims == tuple(dims[axis] for axis in perm)


@pytest.mark.parametrize("number", [6, 8, 12, 16])
def test_iotas_compose_exactly_where_the_ids_do(number: int) -> None:
    """Of all pairs of iotas, exactly those compose whose looked-up ids are those of some iota."""
    every = _every_iota(number)
    for (ids, tile), (devices, order) in product(every.items(), repeat=2):
        assert order.compose(tile) == every.get(tuple(devices[position] for position in ids))


@given(tiles(), st.integers(1, 8), st.integers(2, 8))
def test_digits_of_positions_and_ids_lead_back(tile: IotaTileAssignment, stride: int, size: int) -> None:
    """Ids at a digit of positions stand where they were looked up, and the other way round."""
    ids = twins.digits(tile.values_of(Digit(stride, size)))
    assert [tile.flat_index(device) for device in ids] == [stride * step for step in range(len(ids))]
    positions = twins.digits(tile.positions_of(Digit(stride, size)))
    assert [tile.flat_value(position) for position in positions] == [stride * step for step in range(len(positions))]


def test_sizes_of_1_move_freely() -> None:
    """Moving sizes of 1 keeps an iota whose dimensions cannot be cut out of it."""
    tile = IotaTileAssignment((2, 1, 3), (2, 3), (1, 0))
    assert tile.transpose((1, 0, 2)) == tile.reshape((1, 2, 3))
    assert tile.transpose((2, 1, 0)) is None


def test_reshape_keeps_the_order() -> None:
    """Another shape of as many places has the same ids in row-major order; any other is refused."""
    tile = IotaTileAssignment((4, 2), (2, 4), (1, 0))
    assert tile.reshape((8,)).to_array().tolist() == tile.to_array().reshape(-1).tolist()
    with pytest.raises(ValueError, match="as many ids as places"):
        tile.reshape((3, 3))


def test_one_device() -> None:
    """The smallest iota keeps a reshape of one size."""
    tile = IotaTileAssignment((1, 1), (1, 1), (1, 0))
    assert (tile.reshape_dims, tile.transpose_perm, tile.digits) == ((1,), (0,), ())
    assert tile.value_at((0, 0)) == 0


def test_numbers_may_be_numpy_s() -> None:
    """Sizes from an array are plain ints afterwards, and floats are refused."""
    assert repr(IotaTileAssignment(np.array([2, 4]))) == repr(IotaTileAssignment((2, 4)))
    with pytest.raises(ValueError, match="must be integers"):
        IotaTileAssignment((2.0, 4))  # pyright: ignore[reportArgumentType]


def test_survives_copying() -> None:
    """A copy, made by the protocol that also carries values to other processes, is equal."""
    tile = IotaTileAssignment((4, 2), (2, 4), (1, 0))
    assert copy.deepcopy(tile) == tile


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        pytest.param(((),), "one size at least", id="no-dims"),
        pytest.param(((0, 4), (0,)), "at least 1", id="size-0"),
        pytest.param(((-2, -4), (8,)), "at least 1", id="negative"),
        pytest.param(((2, 4), (9,)), "as many ids as places", id="product"),
        pytest.param(((2, 4), (4, 2), (1,)), "permutation of the axes 0..1", id="short-permutation"),
        pytest.param(((2, 4), (4, 2), (0, 0)), "permutation of the axes 0..1", id="repeated-axis"),
        pytest.param(((2, 4), (4, 2), (0, 2)), "permutation of the axes 0..1", id="axis-out-of-range"),
        pytest.param(((1 << 40, 1 << 40),), "64 bits", id="too-many-devices"),
        pytest.param(((1 << 62, 2),), "64 bits", id="one-too-many"),
        pytest.param(((4,), (1 << 62,) * 300, range(300)), "64 bits", id="long-product"),
    ],
)
def test_refused(given_: tuple[Any, ...], words: str) -> None:
    """What is no bijection between ids and places is refused in words."""
    with pytest.raises(ValueError, match=words):
        IotaTileAssignment(*given_)


@pytest.mark.parametrize("index", [(4, 0), (0, -1), (0,), (0, 0, 0)])
def test_index_outside(index: tuple[int, ...]) -> None:
    """An index that is not inside the array is refused, never wrapped around."""
    with pytest.raises(ValueError, match="inside an array"):
        IotaTileAssignment((4, 2)).value_at(index)


@pytest.mark.parametrize("device", [-1, 8])
def test_device_outside(device: int) -> None:
    """A device that the iota does not hold has no index."""
    with pytest.raises(ValueError, match=r"0\.\.7"):
        IotaTileAssignment((4, 2)).index_of(device)


@pytest.mark.parametrize("perm", [(0,), (0, 0), (1, 2)])
def test_no_transposition(perm: tuple[int, ...]) -> None:
    """Only a permutation of the dimensions transposes."""
    with pytest.raises(ValueError, match="permutation"):
        IotaTileAssignment((4, 2)).transpose(perm)


def test_questions_about_2_to_the_40_devices_build_nothing() -> None:
    """Single values, inverses, transposes and shapes cost the number of axes."""
    tracemalloc.start()
    tile = IotaTileAssignment((1 << 20, 1 << 20), (1 << 10, 1 << 20, 1 << 10), (1, 2, 0))
    device = tile.value_at((123_456, 654_321))
    assert tile.index_of(device) == (123_456, 654_321)
    turned = tile.transpose((1, 0))
    assert turned is not None
    assert turned.value_at((654_321, 123_456)) == device
    assert tile.reshape((1 << 40,)).num_elements == 1 << 40
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


def test_the_most_devices() -> None:
    """Single and many values are right, nothing overflows, up to the largest number of devices."""
    largest = (1 << 63) - 1
    for tile in (IotaTileAssignment((largest,)), IotaTileAssignment((7, largest // 7), (largest // 7, 7), (1, 0))):
        positions = [0, 1, largest // 2, largest - 1]
        values = [tile.flat_value(position) for position in positions]
        assert tile.flat_values(np.array(positions)).tolist() == values
        assert [tile.flat_index(value) for value in values] == positions
        assert tile.flat_indices(np.array(values)).tolist() == positions


def test_too_many_ids_are_not_written_out() -> None:
    """An untrusted count is refused before anything is allocated."""
    with pytest.raises(ValueError, match="not written out"):
        IotaTileAssignment((EXPANSION_LIMIT + 1,)).to_array()


def test_the_array_is_copied_once() -> None:
    """Building costs numpy's two arrays, 0..n-1 and its transposed copy."""
    number = 1 << 16
    tile = IotaTileAssignment((256, 256), (16, 16, 16, 16), (2, 0, 3, 1))
    tracemalloc.start()
    tile.to_array()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * 8 * number + 10_000


def _every_iota(number: int) -> dict[tuple[int, ...], IotaTileAssignment]:
    """All iotas with this many devices, by their ids."""
    return {
        tuple(twins.iota(sizes, perm)): IotaTileAssignment((number,), sizes, perm)
        for sizes in _factorings(number)
        for perm in permutations(range(len(sizes)))
    }


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


def _factorings(number: int) -> list[tuple[int, ...]]:
    return [(size, *rest) for size in _divisors(number)[1:] for rest in _factorings(number // size)] or [()]
