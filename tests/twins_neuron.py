"""Slow twins of the Neuron maths: loops over ranks and cores, no numpy, no reshaping."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Groups = list[list[int]]


def rank_of_core(core: int, cores_per_lnc: int) -> int:
    """Give cores to ranks one after the other until this one has its rank."""
    rank, left = 0, cores_per_lnc
    for _ in range(core):
        left -= 1
        if left == 0:
            rank, left = rank + 1, cores_per_lnc
    return rank


# --- layouts ---------------------------------------------------------------------------------------------------------


def plain_ranks(world: int) -> list[int]:
    """List the ranks as they are numbered."""
    return list(range(world))


def tp4_ranks(world: int, local: int) -> list[int]:
    """List the ranks node by node, in each column by column of its four rows."""
    row_length = local // 4
    return [
        node * local + row * row_length + column
        for node in range(world // local)
        for column in range(row_length)
        for row in range(4)
    ]


def logic2_ranks(world: int, local: int) -> list[int]:
    """List the ranks node by node: rows 0 and 3, then rows 1 and 2."""
    ranks: list[int] = []
    for node in range(world // local):
        rows = [[node * local + row * (local // 4) + column for column in range(local // 4)] for row in range(4)]
        ranks += [*rows[0], *rows[3], *rows[1], *rows[2]]
    return ranks


def tp_groups(ranks: Sequence[int], tp: int) -> Groups:
    """Cut a list of ranks into tensor parallel groups."""
    groups: Groups = []
    for place, rank in enumerate(ranks):
        if place % tp == 0:
            groups.append([])
        groups[-1].append(rank)
    return groups


def dp_groups(ranks: Sequence[int], tp: int, pp: int) -> Groups:
    """Take the tensor parallel groups of a stage and join what stands at the same place."""
    tensor = tp_groups(ranks, tp)
    dp = len(tensor) // pp
    groups: Groups = []
    for stage in range(pp):
        for place in range(tp):
            groups.append([tensor[stage * dp + copy][place] for copy in range(dp)])
    return groups


def pp_groups(ranks: Sequence[int], tp: int, pp: int, *, by_place: bool = False) -> Groups:
    """Join the ranks of all stages at the same place, data coordinate outermost or (``by_place``) tensor coordinate."""
    tensor = tp_groups(ranks, tp)
    dp = len(tensor) // pp
    places = [(copy, place) for copy in range(dp) for place in range(tp)]
    if by_place:
        places = [(copy, place) for place in range(tp) for copy in range(dp)]
    return [[tensor[stage * dp + copy][place] for stage in range(pp)] for copy, place in places]


def ep_model_groups(ranks: Sequence[int], tp: int, pp: int, ep: int) -> Groups:
    """Cut data parallel groups into runs of ``ep``, runs outermost."""
    groups: Groups = []
    data = dp_groups(ranks, tp, pp)
    for stage in range(pp):
        of_stage = data[stage * tp : (stage + 1) * tp]
        for start in range(0, len(of_stage[0]), ep):
            groups += [group[start : start + ep] for group in of_stage]
    return groups


def ep_data_groups(ranks: Sequence[int], tp: int, pp: int, ep: int) -> Groups:
    """Take every ``ep``-th member of data parallel groups, the expert outermost."""
    groups: Groups = []
    data = dp_groups(ranks, tp, pp)
    for stage in range(pp):
        for expert in range(ep):
            groups += [group[expert::ep] for group in data[stage * tp : (stage + 1) * tp]]
    return groups


def token_shuffle_groups(ranks: Sequence[int], tp: int, pp: int, size: int) -> Groups:
    """Cut data parallel groups into runs, as expert parallel ones are."""
    return ep_model_groups(ranks, tp, pp, size)


def kv_groups(tensor: Groups, kv: int, *, adjacent: bool) -> Groups:
    """Join neighbouring rank numbers, or members of tensor parallel groups at equal distances."""
    if adjacent:
        return tp_groups(range(sum(map(len, tensor))), kv)
    groups: Groups = []
    for group in tensor:
        step = len(group) // kv
        groups += [[group[first + member * step] for member in range(kv)] for first in range(step)]
    return groups


def pp_send_recv_groups(pipelines: Groups, parity: int) -> Groups:
    """Walk each pipeline in steps of two stages."""
    pairs: Groups = []
    for pipeline in pipelines:
        stage = parity
        while stage < len(pipeline) > 1:
            pairs.append([pipeline[stage], pipeline[(stage + 1) % len(pipeline)]])
            stage += 2
    return pairs


def partition_op_groups(world: int, op: str, operand: int) -> Groups:
    """Sort ranks by what the operation makes of them."""
    groups: dict[int, list[int]] = {}
    for rank in range(world):
        key = {"div": lambda r: r // operand, "mod": lambda r: r % operand, "bitwise_and": lambda r: r & operand}[op]
        groups.setdefault(key(rank), []).append(rank)
    return [groups[key] for key in sorted(groups)]


# --- comparing -------------------------------------------------------------------------------------------------------


def same_sets(a: Groups, b: Groups) -> bool:
    """Cross out the groups of one list in the other, members in any order."""
    left = [sorted(group) for group in b]
    for group in a:
        if sorted(group) not in left:
            return False
        left.remove(sorted(group))
    return not left


def same_order(a: Groups, b: Groups) -> bool:
    """Cross out the groups of one list in the other, members in their order."""
    left = list(b)
    for group in a:
        if group not in left:
            return False
        left.remove(group)
    return not left


def pairs_inside(pairs: Iterable[Sequence[int]], groups: Groups) -> bool:
    """Look for a group of both ends of every pair of two ranks."""
    moved = [pair for pair in pairs if pair[0] != pair[1]]
    return bool(moved) and all(any(set(pair) <= set(group) for group in groups) for pair in moved)
