"""Where ranks stand on the pipeline, data and tensor coordinates of a job: the layouts of neuronx-distributed.

A layout is one array of shape (pp, dp, tp); every family of groups is that array cut along one dimension.

Source: ``parallel_state.py`` of neuronx-distributed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from commlens.errors import CommlensError
from commlens.neuron.rank_numbers import check_divides, whole_number

if TYPE_CHECKING:
    from commlens.neuron.rank_families import RankArray

Logic: TypeAlias = Literal["LOGIC1", "LOGIC2", "TP4"]
"""How ranks are laid out: row by row; in pairs of rows of a node; across the rows of a node."""

LARGEST_WORLD: Final = 1 << 24
"""Most ranks of a job."""

_ROWS: Final = 4
"""Rows in which LOGIC2 and TP4 see the ranks of a node."""


@dataclass(frozen=True, slots=True)
class Degrees:
    """How a job is split.

    Args:
        world: ranks in all.
        tp: tensor parallel degree.
        pp: pipeline stages.
        ep: expert parallel degree.

    Raises:
        CommlensError: a degree is below 1, tp x pp does not divide the world, or ep does not divide dp.

    Example:
        >>> Degrees(16, tp=2, pp=2, ep=2).dp
        4
    """

    world: int
    tp: int = 1
    pp: int = 1
    ep: int = 1

    def __post_init__(self) -> None:
        for name in ("world", "tp", "pp", "ep"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least=1))
        if self.world > LARGEST_WORLD:
            msg = f"expected a world of at most {LARGEST_WORLD:,} ranks, found {self.world:,}"
            raise CommlensError(msg)
        product = self.tp * self.pp
        if self.world % product:
            below = self.world - self.world % product
            nearest = f"{below} or {below + product}" if below else f"{product}"
            msg = (
                f"expected a world size that is divisible by tp x pp, found {self.world} ranks and "
                f"{self.tp} x {self.pp} = {product}; the next such world has {nearest} ranks"
            )
            raise CommlensError(msg)
        check_divides("ep", self.ep, "dp", self.dp)

    @property
    def dp(self) -> int:
        """Data parallel degree: what tp and pp leave."""
        return self.world // (self.tp * self.pp)


def logic_of(degrees: Degrees, hardware: str, lnc: int) -> Logic:
    """Return the layout that neuronx-distributed chooses.

    Args:
        degrees: how the job is split.
        hardware: ``"trn1"`` or ``"trn2"``.
        lnc: the LNC.

    Example:
        >>> logic_of(Degrees(64, tp=32), "trn2", 2), logic_of(Degrees(64, tp=32), "trn1", 1)
        ('LOGIC2', 'LOGIC1')
    """
    if degrees.tp == _ROWS:
        return "TP4"
    ring_of_rows = (lnc, degrees.tp) == (1, 64) or ((lnc, degrees.tp) == (2, 32) and degrees.world >= 64)
    return "LOGIC2" if hardware == "trn2" and ring_of_rows else "LOGIC1"


def rank_grid(degrees: Degrees, logic: Logic, local_world_size: int) -> RankArray:
    """Return the ranks by stage, data and tensor coordinate.

    Args:
        degrees: how the job is split.
        logic: the layout.
        local_world_size: ranks on one node; LOGIC1 does not ask for it.

    Returns:
        An array of shape (pp, dp, tp).

    Raises:
        CommlensError: the job does not fill nodes as the layout needs them.

    Example:
        >>> rank_grid(Degrees(32, tp=4), "TP4", 32)[0, :2].tolist()
        [[0, 8, 16, 24], [1, 9, 17, 25]]
        >>> rank_grid(Degrees(64, tp=32), "LOGIC2", 64)[0, :, [0, 15, 16, 31]].T.tolist()
        [[0, 15, 48, 63], [16, 31, 32, 47]]
    """
    match logic:
        case "LOGIC1":
            return plain_grid(degrees)
        case "LOGIC2":
            return _row_pairs(degrees, local_world_size)
        case "TP4":
            return _across_rows(degrees, local_world_size)


def plain_grid(degrees: Degrees) -> RankArray:
    """Return the ranks row by row, the tensor coordinate fastest: shape (pp, dp, tp)."""
    return np.arange(degrees.world, dtype=np.int64).reshape(degrees.pp, degrees.dp, degrees.tp)


def _row_pairs(degrees: Degrees, local_world_size: int) -> RankArray:
    """Make two tensor parallel groups of a node's four rows: the outer two and the inner two, each ascending."""
    if local_world_size != 2 * degrees.tp:
        msg = (
            f"expected nodes of two tensor parallel groups, {2 * degrees.tp} ranks at tp {degrees.tp}, "
            f"found a local world size of {local_world_size}"
        )
        raise CommlensError(msg)
    _check_whole_nodes(degrees, local_world_size, "LOGIC2 has no part of a node")
    rows = np.arange(degrees.world, dtype=np.int64).reshape(-1, _ROWS, local_world_size // _ROWS)
    return rows[:, [[0, 3], [1, 2]]].reshape(degrees.pp, degrees.dp, degrees.tp)


def _across_rows(degrees: Degrees, local_world_size: int) -> RankArray:
    """Take one rank from each of a node's four rows."""
    if degrees.ep > 1:
        msg = f"expected ep 1 where tp is {_ROWS}: this layout has no expert parallel groups; found ep {degrees.ep}"
        raise CommlensError(msg)
    if local_world_size % _ROWS:
        msg = f"expected a local world size of {_ROWS} equal rows, found {local_world_size}"
        raise CommlensError(msg)
    row = local_world_size // _ROWS
    if degrees.dp % row:
        _check_whole_nodes(degrees, local_world_size, "state a local world size that divides them")
        msg = (
            f"expected stages of whole nodes where tp is {_ROWS}: dp divisible by {row}, a quarter of the local world "
            f"size {local_world_size}; found dp {degrees.dp}"
        )
        raise CommlensError(msg)
    rows = np.arange(degrees.world, dtype=np.int64).reshape(degrees.pp, -1, _ROWS, row)
    return rows.swapaxes(-1, -2).reshape(degrees.pp, degrees.dp, degrees.tp)


def _check_whole_nodes(degrees: Degrees, local_world_size: int, cure: str) -> None:
    if degrees.world % local_world_size:
        msg = f"expected a world of whole nodes of {local_world_size} ranks, found {degrees.world} ranks; {cure}"
        raise CommlensError(msg)
