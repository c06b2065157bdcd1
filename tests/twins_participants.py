"""Slow twins of participants, pairs, shardings and the verifier: loops over devices, no numpy, none of our maths."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Groups = list[list[int]]


def participants(mode: str, groups: Sequence[Sequence[int]], replicas: int, partitions: int) -> Groups:
    """Give groups of global ids in the documented order, by the table of the four modes."""
    if mode == "flattened_id":
        return [list(group) for group in groups]
    everybody = range(partitions if mode == "cross_partition" else replicas)
    answer: Groups = []
    for group in groups or [everybody]:
        if mode == "cross_replica":
            answer += [[replica * partitions + partition for replica in group] for partition in range(partitions)]
        elif mode == "cross_partition":
            answer += [[replica * partitions + partition for partition in group] for replica in range(replicas)]
        else:
            answer.append([replica * partitions + partition for replica in group for partition in range(partitions)])
    return answer


def peers(mode: str, groups: Sequence[Sequence[int]], replicas: int, partitions: int, device: int) -> list[int]:
    """Give the peers of one device of an identity assignment, asked from the device's side."""
    replica, partition = device // partitions, device % partitions
    own = {"cross_partition": partition, "flattened_id": device}.get(mode, replica)
    everybody = range(partitions if mode == "cross_partition" else replicas)
    (mine,) = [group for group in (groups or [everybody]) if own in group]
    if mode == "flattened_id":
        return list(mine)
    if mode == "cross_partition":
        return [replica * partitions + each for each in mine]
    if mode == "cross_replica":
        return [each * partitions + partition for each in mine]
    return [each * partitions + inner for each in mine for inner in range(partitions)]


def pairs(mode: str, listed: Sequence[tuple[int, int]], replicas: int, partitions: int) -> list[tuple[int, int]]:
    """Give pairs of global ids, partition (cross_replica) or replica (cross_partition) outermost."""
    if mode == "cross_replica":
        return [(s * partitions + p, t * partitions + p) for p in range(partitions) for s, t in listed]
    return [(r * partitions + s, r * partitions + t) for r in range(replicas) for s, t in listed]


def cycle_type(listed: Sequence[tuple[int, int]]) -> str:
    """Build the two rings of this length and compare."""
    size = len(listed)
    if size > 1 and list(listed) == [(each, (each + 1) % size) for each in range(size)]:
        return "forward"
    if size > 1 and list(listed) == [(each, (each - 1) % size) for each in range(size)]:
        return "backward"
    return "none"


def groups_valid(opcode: str, mode: str, groups: Groups, replicas: int, partitions: int) -> bool:
    """Judge groups by the verifier's rule, word by word."""
    if opcode == "collective-broadcast":
        return True
    if not groups:
        return mode != "flattened_id"
    if any(not group for group in groups):
        return False
    ids = [each for group in groups for each in group]
    if sorted(ids) != list(range(len(ids))):
        return False
    wanted = {"cross_partition": partitions, "flattened_id": replicas * partitions}.get(mode, replicas)
    if wanted not in (1, len(ids)):
        return False
    return opcode in ("all-reduce", "all-reduce-start") or len({len(group) for group in groups}) == 1


def rows(ids: Sequence[int], shape: Sequence[int], sizes: dict[int, int]) -> Groups:
    """Group an array of device ids.

    Args:
        ids: the array, row-major.
        shape: its shape.
        sizes: per dimension how many neighbours along it belong to one group; the others are fixed inside a group.

    Returns:
        Groups by the row-major index of the blocks; members by the row-major index inside the block.
    """
    blocks = [size // sizes.get(dim, 1) for dim, size in enumerate(shape)]
    answer: Groups = []
    for block in product(*map(range, blocks)):
        group: list[int] = []
        for inside in product(*(range(sizes.get(dim, 1)) for dim in range(len(shape)))):
            flat = 0
            for dim, size in enumerate(shape):
                flat = flat * size + block[dim] * sizes.get(dim, 1) + inside[dim]
            group.append(ids[flat])
        answer.append(group)
    return answer


def iota_ids(reshape: Sequence[int], perm: Sequence[int]) -> list[int]:
    """Give 0..n-1 shaped ``reshape``, transposed by ``perm``, row-major."""
    answer: list[int] = []
    for moved in product(*(range(reshape[axis]) for axis in perm)):
        place = dict(zip(perm, moved, strict=True))
        answer.append(sum(place[axis] * prod(reshape[axis + 1 :]) for axis in range(len(reshape))))
    return answer
