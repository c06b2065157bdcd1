"""Iotas against XLA's own, as jaxlib has it."""

from __future__ import annotations

import re
from importlib import import_module

from hypothesis import given
from hypothesis import strategies as st

from commlens.topology import IotaTileAssignment
from strategies import factorings, iota_orders, numbers


@given(numbers.flatmap(lambda n: st.tuples(factorings(n), iota_orders(n))))
def test_ids_and_text_are_xlas(given_: tuple[tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]]]) -> None:
    """XLA's HloSharding builds the same ids from the same numbers and prints the same canonical form."""
    dims, (reshape, perm) = given_
    sharding = import_module("jaxlib._hlo").HloSharding.iota_tile(dims, reshape_dims=reshape, transpose_perm=perm)
    tile = IotaTileAssignment(dims, reshape, perm)
    assert tile.to_array().reshape(-1).tolist() == list(sharding.tile_assignment_devices())
    printed = re.fullmatch(r"\{(devices=\S+).*\}", str(sharding))
    assert (printed[1] if printed else str(sharding)) == str(tile)
