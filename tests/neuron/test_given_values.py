"""What the functions and values of Neuron take from a program, and how they refuse what is none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pytest

from commlens.errors import CommlensError
from commlens.hlo import load
from commlens.neuron import CCInfo, NeffHeader, pair_components, pair_group_of
from commlens.neuron.rank_families import compressed_groups, kv_groups, pp_send_recv_groups, token_shuffle_groups

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("make", "says"),
    [
        pytest.param(
            lambda: CCInfo.from_module("HloModule m"),  # pyright: ignore[reportArgumentType]
            "expected a module, such as commlens.load returns, found 'HloModule m'",
            id="text-for-a-module",
        ),
        pytest.param(
            lambda: NeffHeader(name=None),  # pyright: ignore[reportArgumentType]
            "expected name of a NEFF header to be text, found None",
            id="no-name",
        ),
        pytest.param(
            lambda: NeffHeader(uuid=b"x" * 17),  # pyright: ignore[reportArgumentType]
            "expected uuid of a NEFF header to be a uuid.UUID, found b'xxxxxxxxxxxxxxxxx'",
            id="no-uuid",
        ),
        pytest.param(
            lambda: NeffHeader(hash="x" * 32),  # pyright: ignore[reportArgumentType]
            "expected hash of a NEFF header to be bytes, found 'xxxxxxxx",
            id="no-bytes",
        ),
        pytest.param(
            lambda: NeffHeader(num_tpb="1"),  # pyright: ignore[reportArgumentType]
            "expected num_tpb of a NEFF header to fit 32 bits without a sign, found '1'",
            id="text-for-a-number",
        ),
        pytest.param(
            lambda: pair_components([(0, 1, 2)]), "expected a pair (source, target), found (0, 1, 2)", id="triple"
        ),
        pytest.param(lambda: pair_components([(0,)]), "expected a pair (source, target), found (0,)", id="single"),
        pytest.param(
            lambda: pair_components([3]),  # pyright: ignore[reportArgumentType]
            "expected a pair (source, target), found 3",
            id="number",
        ),
        pytest.param(lambda: pair_group_of(0, ["01"]), "expected a rank of a pair to be an integer", id="text"),  # pyright: ignore[reportArgumentType]
        pytest.param(
            lambda: kv_groups([0, 1], 1, adjacent=False),  # pyright: ignore[reportArgumentType]
            "expected ranks of shape (groups, members), found 1 dimension",
            id="flat",
        ),
        pytest.param(
            lambda: kv_groups([[0, 1], [2]], 1, adjacent=False),
            "expected ranks of shape (groups, members), found groups that differ in size, or no lists of ranks",
            id="uneven",
        ),
        pytest.param(
            lambda: pp_send_recv_groups([[0.5, 1]], 0),  # pyright: ignore[reportArgumentType]
            "expected ranks of shape (groups, members) that are integers, found float64",
            id="fractions",
        ),
        pytest.param(
            lambda: token_shuffle_groups([[0, 1]], 1),  # pyright: ignore[reportArgumentType]
            "expected ranks of shape (pp, dp, tp), found 2 dimensions",
            id="two-for-three",
        ),
    ],
)
def test_what_is_refused(make: Callable[[], object], says: str) -> None:
    """Every value of a wrong kind is refused in a sentence that says what was expected."""
    with pytest.raises(CommlensError) as caught:
        make()
    assert str(caught.value).startswith(says)


def test_a_module_is_taken() -> None:
    """It is what ``load`` returns."""
    assert not CCInfo.from_module(load("ENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n")).has_cc
    assert NeffHeader(uuid=UUID(int=1), num_tpb=np.int64(3)).to_bytes()  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("make", [list, tuple, np.array], ids=["list", "tuple", "array"])
def test_nested_sequences_are_taken(make: Callable[[Any], Any]) -> None:
    """Groups come as arrays or as nested sequences, as device lists take them."""
    assert kv_groups(make([[0, 1, 2, 3]]), 2, adjacent=False).tolist() == [[0, 2], [1, 3]]
    assert kv_groups(make([[0, 1, 2, 3]]), 2, adjacent=True).tolist() == [[0, 1], [2, 3]]
    assert pp_send_recv_groups(make([[0, 4, 8, 12]]), 0).tolist() == [[0, 4], [8, 12]]
    assert token_shuffle_groups(make([[[0, 1], [2, 3]]]), 2).tolist() == [[0, 2], [1, 3]]
    assert str(compressed_groups(make([[0, 1], [2, 3]]))) == "{{0,1}}"


def test_no_groups_stay_no_groups() -> None:
    """Of nothing there is no first."""
    assert compressed_groups([]).num_replica_groups == 0
