"""Group families beside the four degrees: key-value, context parallel, token shuffle, send and receive, NKI.

Ranks of shape (groups, members) go in, as arrays or nested sequences, and come out as arrays. The loops of the source
become reshapes and transpositions, so that a million ranks take no Python loop.

Source: ``parallel_state.py`` and the context parallel groups of neuronx-distributed; ``ReplicaGroup.from_partition_op``
of NKI.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from commlens.errors import CommlensError
from commlens.neuron.rank_numbers import as_integer, check_divides, whole_number
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList, MeshAxesReplicaGroupList

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from commlens.topology import DeviceList

RankArray: TypeAlias = "npt.NDArray[np.int64]"
"""Ranks; groups have the shape (groups, members)."""

RanksLike: TypeAlias = "npt.NDArray[np.integer] | Sequence[object]"
"""Ranks as callers give them: an array, or nested sequences of one size on each level."""

PartitionOp: TypeAlias = Literal["div", "mod", "bitwise_and"]

_DEVICE_LISTS: Final = (CollectiveDeviceList, IotaReplicaGroupList, MeshAxesReplicaGroupList)


def kv_groups(tp_groups: RanksLike, kv: int, *, adjacent: bool) -> RankArray:
    """Return the groups of ranks that share a key-value head.

    Args:
        tp_groups: the tensor parallel groups, which hold the ranks 0..n-1.
        kv: ranks in a group; divides tp.
        adjacent: whether a group is ``kv`` neighbouring rank numbers (trn2, and trn1 with sequential groups), whatever
            the tensor parallel groups are; else every (tp / kv)-th member of a tensor parallel group.

    Raises:
        CommlensError: ``kv`` does not divide tp.

    Example:
        >>> kv_groups(np.arange(8).reshape(1, 8), 2, adjacent=False).tolist()
        [[0, 4], [1, 5], [2, 6], [3, 7]]
    """
    ranks = _ranks(tp_groups, "groups", "members")
    groups, tp = ranks.shape
    check_divides("kv", kv, "tp", tp)
    if adjacent:
        return np.arange(ranks.size, dtype=np.int64).reshape(-1, kv)
    return ranks.reshape(groups, kv, tp // kv).transpose(0, 2, 1).reshape(-1, kv)


def cp_groups(tp: int, cp: int) -> tuple[RankArray, RankArray]:
    """Return the groups of context parallel attention inside the ranks 0..tp-1.

    Args:
        tp: ranks of the tensor parallel group, which is the whole world.
        cp: how many parts of the context there are; divides tp.

    Returns:
        The tensor parallel groups of the attention, blocks of tp / cp ranks, and the context parallel groups, which
        take one rank of each block.

    Raises:
        CommlensError: ``cp`` does not divide tp.

    Example:
        >>> [groups.tolist() for groups in cp_groups(4, 2)]
        [[[0, 1], [2, 3]], [[0, 2], [1, 3]]]
    """
    check_divides("cp", cp, "tp", tp)
    blocks = np.arange(tp, dtype=np.int64).reshape(cp, tp // cp)
    return blocks, blocks.T


def token_shuffle_groups(ranks: RanksLike, size: int) -> RankArray:
    """Return the groups that shuffle tokens: runs of ``size`` neighbours along the data dimension.

    Args:
        ranks: the ranks by stage, data and tensor coordinate, shape (pp, dp, tp).
        size: ranks in a group; divides dp.

    Raises:
        CommlensError: ``size`` does not divide dp.

    Example:
        >>> token_shuffle_groups(np.arange(8).reshape(1, 4, 2), 2).tolist()
        [[0, 2], [1, 3], [4, 6], [5, 7]]
    """
    grid = _ranks(ranks, "pp", "dp", "tp")
    pp, dp, tp = grid.shape
    check_divides("the token shuffle size", size, "dp", dp)
    return grid.reshape(pp, dp // size, size, tp).transpose(0, 1, 3, 2).reshape(-1, size)


def pp_send_recv_groups(pp_groups: RanksLike, parity: int) -> RankArray:
    """Return the pairs of neighbouring stages that exchange data at the same time.

    Args:
        pp_groups: the pipeline groups.
        parity: 0 for the pairs that begin at even stages, 1 for those that begin at odd ones. The last stage's
            neighbour is the first.

    Returns:
        Pairs (sender, receiver), group by group. A single stage has no neighbour.

    Raises:
        CommlensError: ``parity`` is neither 0 nor 1.

    Example:
        >>> pp_send_recv_groups(np.array([[0, 4, 8, 12]]), 1).tolist()
        [[4, 8], [12, 0]]
    """
    if as_integer(parity) not in (0, 1):
        msg = f"expected parity 0 (even stages) or 1 (odd stages), found {parity}"
        raise CommlensError(msg)
    ranks = _ranks(pp_groups, "groups", "members")
    stages = ranks.shape[1]
    senders = np.arange(parity, stages if stages > 1 else 0, 2)
    return np.stack([ranks[:, senders], ranks[:, (senders + 1) % stages]], axis=-1).reshape(-1, 2)


def partition_op_groups(world: int, op: PartitionOp, operand: int) -> DeviceList:
    """Return the groups of ranks that one operation takes to the same number, as NKI kernels write them.

    Args:
        world: how many ranks there are.
        op: ``"div"``, ``"mod"`` or ``"bitwise_and"``: what is done to a rank.
        operand: with which number.

    Returns:
        The groups by ascending result, ranks ascending in each; where ``operand`` does not divide the world they differ
        in size.

    Raises:
        CommlensError: there is no such operation, no rank, or the operand is out of range.

    Source: ``ReplicaGroup.from_partition_op`` of NKI.

    Example:
        >>> str(partition_op_groups(8, "mod", 4)), str(partition_op_groups(4, "bitwise_and", 1))
        ('{{0,4},{1,5},{2,6},{3,7}}', '{{0,2},{1,3}}')
    """
    whole_number("world", world, least=1)
    least = 0 if op == "bitwise_and" else 1
    number = as_integer(operand)
    if number is None or number < least:
        msg = f"expected an operand of at least {least} for {op!r}, found {operand}"
        raise CommlensError(msg)
    ranks = np.arange(world, dtype=np.int64)
    keys = _keys(ranks, op, number)
    order = np.argsort(keys, kind="stable")
    offsets = np.concatenate([[0], np.flatnonzero(np.diff(keys[order])) + 1, [world]])
    return CollectiveDeviceList.from_flat(order, offsets)


def _ranks(ranks: RanksLike, *axes: str) -> RankArray:
    """Return ranks as an array with these axes."""
    shape = f"ranks of shape ({', '.join(axes)})"
    try:
        found = np.asarray(ranks)
    except ValueError as error:
        msg = f"expected {shape}, found groups that differ in size, or no lists of ranks"
        raise CommlensError(msg) from error
    if found.ndim != len(axes):
        msg = f"expected {shape}, found {found.ndim} dimension{'' if found.ndim == 1 else 's'}"
        raise CommlensError(msg)
    if found.dtype.kind not in "iu":
        msg = f"expected {shape} that are integers, found {found.dtype}"
        raise CommlensError(msg)
    return found.astype(np.int64, copy=False)


def _keys(ranks: RankArray, op: PartitionOp, operand: int) -> RankArray:
    match op:
        case "div":
            return ranks // operand
        case "mod":
            return ranks % operand
        case "bitwise_and":
            return ranks & operand
    msg = f"expected the operation div, mod or bitwise_and, found {op!r}"
    raise CommlensError(msg)


def compressed_groups(groups: DeviceList | Sequence[Sequence[int]] | RankArray) -> DeviceList:
    """Return what a module is left with that was compiled with ``NEURON_EXPERIMENTAL_COMPRESS_RG=1``.

    Args:
        groups: the groups of a collective, in any spelling or as nested sequences.

    Returns:
        The first of them alone; the other ranks are not missing, they are not written. No groups stay no groups.

    Example:
        >>> str(compressed_groups(CollectiveDeviceList([[0, 1], [2, 3], [4, 5]])))
        '{{0,1}}'
    """
    listed = groups if isinstance(groups, _DEVICE_LISTS) else CollectiveDeviceList(groups)
    return CollectiveDeviceList([listed.group(0)]) if listed.num_replica_groups else listed
