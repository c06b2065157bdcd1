"""Rank layouts: which ranks form the tensor, pipeline, data and expert parallel groups of a job.

Source: ``parallel_state.py`` of neuronx-distributed and its context parallel groups; AWS's documentation for the ranks
on a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from commlens.errors import CommlensError
from commlens.neuron.rank_families import cp_groups, kv_groups, pp_send_recv_groups, token_shuffle_groups
from commlens.neuron.rank_grids import Degrees, logic_of, plain_grid, rank_grid
from commlens.neuron.rank_model import cores_per_lnc
from commlens.neuron.rank_numbers import whole_number
from commlens.topology import CollectiveDeviceList

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlens.neuron.rank_families import RankArray
    from commlens.neuron.rank_grids import Logic
    from commlens.topology import DeviceList

LOCAL_WORLD_SIZES: Final[Mapping[tuple[str, int], int]] = MappingProxyType(
    {("trn1", 1): 32, ("trn2", 1): 128, ("trn2", 2): 64}
)
"""Hardware and LNC -> ranks on one node: the cores of a trn1.32xlarge or trn2.48xlarge divided by the LNC."""

_MEANINGS: Final = MappingProxyType(
    {
        "LOGIC1": "ranks row by row, the tensor coordinate fastest, then data, then stages",
        "LOGIC2": "a tensor parallel group is the outer two or the inner two of the four rows of a node",
        "TP4": "a tensor parallel group takes one rank from each of the four rows of a node",
    }
)

_HOMES: Final = (("kv", "tp"), ("ep_model", "dp"), ("ep_data", "dp"), ("token_shuffle", "dp"))
"""Families whose groups one expects to lie inside groups of another."""

_NOT_WORKING: Final = frozenset({(1, 16), (2, 8)})
"""LNC and tp of trn2 nodes with eight tensor parallel groups that the source notes as not working."""


@dataclass(frozen=True, slots=True)
class RankLayout:
    """The groups of a job.

    Attributes:
        degrees: how the job is split.
        logic: ``"LOGIC1"``, ``"LOGIC2"`` or ``"TP4"``.
        hardware: ``"trn1"`` or ``"trn2"``.
        cores_per_lnc: physical cores to a rank.
        local_world_size: ranks on one node.
        groups: family -> its groups, as an iota wherever there is one. Always tp, dp, pp, ep_model (the ranks whose
            experts differ) and ep_data (those whose experts agree); pp_send_recv and pp_send_recv_odd (pairs of stages
            that begin at even and odd ones) where there are stages; kv, cp_tp and cp, token_shuffle where asked for.
        notes: what to know about this layout, in sentences.
    """

    degrees: Degrees
    logic: Logic
    hardware: str
    cores_per_lnc: int
    local_world_size: int
    groups: Mapping[str, DeviceList]
    notes: tuple[str, ...]

    @property
    def world(self) -> int:
        """Ranks in all."""
        return self.degrees.world

    @property
    def meaning(self) -> str:
        """The logic in words."""
        return _MEANINGS[self.logic]

    @property
    def iota(self) -> dict[str, str | None]:
        """Family -> its groups in iota spelling; None where no iota has them."""
        found = {name: groups.to_iota() for name, groups in self.groups.items()}
        return {name: None if iota is None else str(iota) for name, iota in found.items()}


def rank_layout(
    world: int,
    tp: int,
    *,
    pp: int = 1,
    ep: int = 1,
    hardware: str = "trn1",
    lnc: int | None = None,
    local_world_size: int | None = None,
    kv: int | None = None,
    kv_sequential: bool = False,
    cp: int | None = None,
    token_shuffle: int | None = None,
) -> RankLayout:
    """Work out the groups of a job as neuronx-distributed forms them.

    Args:
        world: ranks in all.
        tp: tensor parallel degree.
        pp: pipeline stages.
        ep: expert parallel degree.
        hardware: ``"trn1"`` or ``"trn2"``.
        lnc: the LNC; None for the compiler's default.
        local_world_size: ranks on one node; None for those of a full node, :data:`LOCAL_WORLD_SIZES`.
        kv: ranks that share a key-value head.
        kv_sequential: whether these are neighbours on trn1 too.
        cp: context parallel degree, for a world of one tensor parallel group.
        token_shuffle: ranks that shuffle tokens among them.

    Returns:
        The layout.

    Raises:
        CommlensError: a degree does not divide what it should, or the layout does not exist on this hardware.

    Example:
        >>> layout = rank_layout(8, tp=2, pp=2)
        >>> layout.logic, str(layout.groups["dp"]), layout.groups["dp"].groups()
        ('LOGIC1', '[4,2]<=[2,2,2]T(0,2,1)', [[0, 2], [1, 3], [4, 6], [5, 7]])
    """
    degrees = Degrees(world, tp, pp, ep)
    cores = _cores_per_rank(hardware, lnc)
    stated = LOCAL_WORLD_SIZES[hardware, cores] if local_world_size is None else local_world_size
    local = whole_number("the local world size", stated, least=1)
    logic = logic_of(degrees, hardware, cores)
    grid = rank_grid(degrees, logic, local)
    experts = plain_grid(degrees) if logic == "LOGIC2" else grid
    families = dict(_families(degrees, grid, experts, transposed=logic == "LOGIC2"))
    if kv is not None:
        families["kv"] = kv_groups(families["tp"], kv, adjacent=kv_sequential or hardware == "trn2")
    if cp is not None:
        _check_one_tp_group(degrees)
        families["cp_tp"], families["cp"] = cp_groups(tp, cp)
    if token_shuffle is not None:
        families["token_shuffle"] = token_shuffle_groups(experts, token_shuffle)
    notes = (*_strays(families), *_warned_of(degrees, hardware, cores, local))
    groups = MappingProxyType({name: _compact(ranks) for name, ranks in families.items()})
    return RankLayout(degrees, logic, hardware, cores, local, groups, notes)


def _families(
    degrees: Degrees, grid: RankArray, experts: RankArray, *, transposed: bool
) -> Iterator[tuple[str, RankArray]]:
    """Cut the grid of shape (pp, dp, tp) along each dimension; groups stand in the order of the source's loops.

    Args:
        degrees: how the job is split.
        grid: the ranks.
        experts: the ranks as the expert parallel groups take them.
        transposed: whether pipeline groups are numbered tensor coordinate first: LOGIC2 zips its data groups.
    """
    pp_groups = grid.transpose((2, 1, 0) if transposed else (1, 2, 0)).reshape(-1, degrees.pp)
    expert_grid = experts.reshape(degrees.pp, -1, degrees.ep, degrees.tp)
    yield "tp", grid.reshape(-1, degrees.tp)
    yield "dp", grid.transpose(0, 2, 1).reshape(-1, degrees.dp)
    yield "pp", pp_groups
    yield "ep_model", expert_grid.transpose(0, 1, 3, 2).reshape(-1, degrees.ep)
    yield "ep_data", expert_grid.transpose(0, 2, 3, 1).reshape(-1, degrees.dp // degrees.ep)
    if degrees.pp > 1:
        yield "pp_send_recv", pp_send_recv_groups(pp_groups, 0)
        yield "pp_send_recv_odd", pp_send_recv_groups(pp_groups, 1)


def _compact(ranks: RankArray) -> DeviceList:
    written = CollectiveDeviceList(ranks)
    return written.to_iota() or written


def _cores_per_rank(hardware: str, lnc: int | None) -> int:
    known = sorted({name for name, _ in LOCAL_WORLD_SIZES})
    if hardware not in known:
        msg = f"expected the hardware {' or '.join(known)}, found {hardware!r}; no layout is known of others"
        raise CommlensError(msg)
    return cores_per_lnc(hardware, lnc)


def _check_one_tp_group(degrees: Degrees) -> None:
    if degrees.world != degrees.tp:
        msg = (
            f"expected a world of one tensor parallel group for context parallel groups, found {degrees.world} ranks "
            f"and tp {degrees.tp}"
        )
        raise CommlensError(msg)


def _strays(families: Mapping[str, RankArray]) -> Iterator[str]:
    for inner, outer in _HOMES:
        stray = _first_stray(families[inner], families[outer]) if inner in families else None
        if stray is not None:
            yield (
                f"{inner} groups do not lie inside {outer} groups in this layout, for one has the ranks {stray[0]} and "
                f"{stray[1]}; neuronx-distributed forms them from the plain order of ranks"
            )


def _warned_of(degrees: Degrees, hardware: str, cores: int, local_world_size: int) -> Iterator[str]:
    eight = min(degrees.world, local_world_size) >= 8 * degrees.tp
    if hardware == "trn2" and (cores, degrees.tp) in _NOT_WORKING and eight:
        yield f"neuronx-distributed notes that eight groups of tp {degrees.tp} on a node do not work at LNC {cores}"


def _first_stray(inner: RankArray, outer: RankArray) -> tuple[int, int] | None:
    """Return two ranks that are in one group of ``inner`` and in two of ``outer``, the first such."""
    home = np.empty(outer.size, dtype=np.int64)
    home[outer] = np.arange(len(outer), dtype=np.int64)[:, None]
    homes = home[inner]
    strays = np.argwhere(homes != homes[:, :1])
    if not len(strays):
        return None
    group, member = strays[0].tolist()
    return int(inner[group, 0]), int(inner[group, member])
