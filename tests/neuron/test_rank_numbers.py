"""Numbers that callers give: integers of Python and numpy, and what is none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from commlens.errors import CommlensError
from commlens.neuron import (
    Degrees,
    NeffHeader,
    RankModel,
    cores_per_lnc,
    cp_groups,
    kv_groups,
    pair_components,
    partition_op_groups,
    pp_send_recv_groups,
    rank_layout,
    source_table,
    token_shuffle_groups,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ROW = np.arange(8)

TAKERS: dict[str, Callable[[Any], object]] = {
    "cores per LNC": RankModel,
    "LNC": lambda number: cores_per_lnc("trn2", number),
    "core": lambda number: RankModel(1).rank_of_core(number),
    "rank": lambda number: RankModel(1).cores_of_rank(number),
    "world size": lambda number: RankModel(1).num_replicas([], number),
    "iteration": lambda number: RankModel(1).current_processing_rank_id(
        0, [[0, 1, 2]], number, table=[[0, 1, 2], [2, 0, 1], [1, 2, 0]]
    ),
    "world": lambda number: rank_layout(number, 1).world,
    "tp": lambda number: rank_layout(8, number).degrees,
    "pp": lambda number: rank_layout(8, 1, pp=number).degrees,
    "ep": lambda number: rank_layout(8, 1, ep=number).degrees,
    "lnc": lambda number: rank_layout(8, 1, hardware="trn2", lnc=number).cores_per_lnc,
    "local world size": lambda number: rank_layout(8, 1, local_world_size=number).local_world_size,
    "kv": lambda number: rank_layout(8, 2, kv=number).groups["kv"].groups(),
    "cp": lambda number: rank_layout(8, 8, cp=number).groups["cp"].groups(),
    "token shuffle": lambda number: rank_layout(8, 2, token_shuffle=number).groups["token_shuffle"].groups(),
    "degrees": lambda number: Degrees(8, tp=number),
    "kv groups": lambda number: kv_groups(ROW.reshape(1, 8), number, adjacent=False).tolist(),
    "cp groups": lambda number: [groups.tolist() for groups in cp_groups(8, number)],
    "shuffle groups": lambda number: token_shuffle_groups(ROW.reshape(1, 4, 2), number).tolist(),
    "operand": lambda number: partition_op_groups(8, "mod", number).groups(),
    "partition world": lambda number: partition_op_groups(number, "mod", 2).groups(),
    "total": lambda number: source_table([(0, 1)], number),
    "pairs": lambda number: pair_components([(0, number)]),
    "header": lambda number: NeffHeader(data_size=number).to_bytes(),
}


@pytest.mark.parametrize("taker", TAKERS.values(), ids=TAKERS.keys())
def test_numbers_of_numpy_are_numbers(taker: Callable[[Any], object]) -> None:
    """They give what Python's numbers give."""
    for number in (np.int64(2), np.uint8(2)):
        assert str(taker(number)) == str(taker(2))


@pytest.mark.parametrize("number", [True, 2.0, "2", [2], np.bool_(True), np.float64(2), np.arange(2)], ids=repr)
@pytest.mark.parametrize("taker", TAKERS.values(), ids=TAKERS.keys())
def test_what_is_no_integer_is_refused(taker: Callable[[Any], object], number: object) -> None:
    """Flags, fractions, texts and lists are refused in a sentence, never taken for 1 or rounded."""
    with pytest.raises(CommlensError, match="expected "):
        taker(number)


def test_what_is_kept_is_plain() -> None:
    """Numbers of numpy become Python's, which JSON can hold."""
    degrees = Degrees(np.int64(8), tp=np.int32(2))  # pyright: ignore[reportArgumentType]
    model = RankModel(np.int64(2))  # pyright: ignore[reportArgumentType]
    assert json.dumps([degrees.world, degrees.tp, model.cores_per_lnc, model.rank_of_core(9)]) == "[8, 2, 2, 4]"


def test_a_parity_is_a_number() -> None:
    """False is no parity, though it equals one."""
    with pytest.raises(CommlensError, match="expected parity 0"):
        pp_send_recv_groups(ROW.reshape(2, 4), parity=False)
