"""Cores and ranks: which physical core is which rank, and who takes part in a group list.

A *rank* is what the ids of a replica group list mean on Neuron; one rank drives the physical cores of one logical
core, as many as its LNC (logical core configuration) says. The answers are those of the compiler's simulator as it is
documented; what it is documented to refuse is refused here in its words.

Source: the rank model of the reference document on meshes and replica groups, section 6
(``NeuronCoresManager::getRankIdforCore``, ``isInReplicaGroup``, ``numReplicas``, ``GetGlobalRankId``,
``GetCurProcessingRankID``); cores per LNC by AWS's documentation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from commlens.errors import CommlensError
from commlens.hlo import base_opcode
from commlens.neuron.rank_numbers import as_integer, whole_number
from commlens.topology import CollectiveDeviceList, IotaReplicaGroupList, MeshAxesReplicaGroupList

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from commlens.topology import DeviceList

Groups: TypeAlias = "DeviceList | Sequence[Sequence[int]]"
"""Groups of ranks, ``[group][rank]``; without groups, and with an empty first one, every rank takes part."""

ProcessingTable: TypeAlias = "Sequence[Sequence[int]] | npt.NDArray[np.integer]"
"""Whose data is worked on, ``[iteration][position in the group] -> position in the group``; row 0 counts 0..n-1."""

LNCS: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {"inf2": (1,), "trn1": (1,), "trn2": (2, 1), "trn3": (2, 1)}
)
"""Target -> the LNCs that it has, the compiler's default first."""

_ONE_GROUP: Final = frozenset({"recv", "reduce-scatter", "send"})
"""Opcodes for which the simulator asserts a single group."""


@dataclass(frozen=True, slots=True)
class RankModel:
    """How physical cores become ranks.

    Args:
        cores_per_lnc: physical cores to a rank, at least 1.

    Raises:
        CommlensError: ``cores_per_lnc`` is no count.

    Example:
        >>> model = RankModel(2)
        >>> model.rank_of_core(9), model.cores_of_rank(4), model.is_in_replica_group(9, [[0, 4], [1, 5]])
        (4, [8, 9], True)
    """

    cores_per_lnc: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "cores_per_lnc", whole_number("cores per LNC", self.cores_per_lnc, least=1))

    @classmethod
    def for_target(cls, target: str, lnc: int | None = None) -> RankModel:
        """Return the model of a target; arguments and errors as for :func:`cores_per_lnc`.

        Example:
            >>> RankModel.for_target("trn2"), RankModel.for_target("trn1")
            (RankModel(cores_per_lnc=2), RankModel(cores_per_lnc=1))
        """
        return cls(cores_per_lnc(target, lnc))

    def rank_of_core(self, core: int) -> int:
        """Return the rank that a physical core works for.

        Raises:
            CommlensError: ``core`` is negative or no number.

        Source: ``NeuronCoresManager::getRankIdforCore``: the core divided by the cores per LNC, rounded down.
        """
        return whole_number("core", core) // self.cores_per_lnc

    def cores_of_rank(self, rank: int) -> list[int]:
        """Return the physical cores of a rank, ascending.

        Raises:
            CommlensError: ``rank`` is negative or no number.
        """
        first = whole_number("rank", rank) * self.cores_per_lnc
        return list(range(first, first + self.cores_per_lnc))

    def is_in_replica_group(self, core: int, groups: Groups) -> bool:
        """Whether the rank of a core is in the *first* group, the only one that the simulator looks at.

        Args:
            core: a physical core; what is looked up is its rank.
            groups: the groups of an instruction; an empty list means everybody.

        Raises:
            CommlensError: ``core`` is negative or no number, or the groups hold no integers.

        Source: ``isInReplicaGroup``, a linear search of ``replica_groups[0]``.
        """
        rank = self.rank_of_core(core)
        listed = _as_device_list(groups)
        return _first_size(listed) == 0 or _place_in_first(listed, rank) is not None

    def num_replicas(self, groups: Groups, world_size: int | None = None) -> int:
        """Return how many ranks take part: the length of the first group.

        Args:
            groups: the groups of an instruction.
            world_size: how many ranks there are, which an empty list stands for.

        Raises:
            CommlensError: the list is empty and nobody says how many ranks there are.

        Example:
            >>> RankModel(1).num_replicas([[0, 4], [1, 5]]), RankModel(1).num_replicas([], world_size=8)
            (2, 8)
        """
        size = _first_size(_as_device_list(groups))
        if size:
            return size
        if world_size is None:
            msg = "expected a group: an empty replica group list joins all ranks; give world_size to say how many"
            raise CommlensError(msg)
        return whole_number("world_size", world_size, least=1)

    def global_rank_id(self, core: int, world_size: int | None = None) -> int:
        """Return the rank of a core among all ranks.

        Args:
            core: a physical core.
            world_size: how many ranks there are, which the instruction is documented to need; None: not checked.

        Raises:
            CommlensError: the rank does not exist in a world of this size.

        Source: ``GetGlobalRankId``.
        """
        rank = self.rank_of_core(core)
        if world_size is not None and rank >= whole_number("world_size", world_size, least=1):
            msg = f"expected a core of the ranks 0..{world_size - 1}, found core {core}, which is one of rank {rank}"
            raise CommlensError(msg)
        return rank

    def current_processing_rank_id(
        self, core: int, groups: Groups, iteration: int, *, table: ProcessingTable | None = None
    ) -> int:
        """Return the rank whose data a core works on in one iteration of a ring.

        Args:
            core: a physical core; its rank must take part.
            groups: the groups of the instruction, of which the first counts.
            iteration: from 0. Iteration 0 is the own rank, whatever the table; later ones walk back along the ring.
            table: the order, see :data:`ProcessingTable` and :func:`ring_table`. The compiler keeps one for each
                architecture and group size, and their contents are not public: from iteration 1 on there is no answer
                without one.

        Raises:
            CommlensError: the rank does not take part, the iteration does not exist, the order is not known, or the
                table does not go with the group.

        Source: ``GetCurProcessingRankID``; the meaning of the iterations by the NKI programming interface.

        Example:
            >>> model = RankModel(1)
            >>> model.current_processing_rank_id(2, [[0, 1, 2, 3]], 0)
            2
            >>> model.current_processing_rank_id(2, [[0, 1, 2, 3]], 3, table=ring_table(range(4)))
            3
        """
        rank = self.rank_of_core(core)
        listed = _as_device_list(groups)
        size = _first_size(listed)
        position = rank if size == 0 else _place_in_first(listed, rank)
        if position is None:
            msg = f"expected a core that takes part, found core {core}, whose rank {rank} is not in the first group"
            raise CommlensError(msg)
        whole_number("iteration", iteration)
        if size and iteration >= size:
            msg = f"expected an iteration in 0..{size - 1} for a group of {size}, found {iteration}"
            raise CommlensError(msg)
        if iteration == 0:
            return rank
        if table is None:
            msg = (
                f"the rank of iteration {iteration} is not known: the order comes from a table for each architecture "
                "and group size whose contents are not public; give one, or ask for iteration 0"
            )
            raise CommlensError(msg)
        place = _looked_up(table, size, iteration, position)
        return place if size == 0 else listed.group(0)[place]

    def check_simulated(self, opcode: str, groups: Groups) -> None:
        """Refuse what the simulator refuses; see :func:`simulator_refusal`.

        Raises:
            CommlensError: with the simulator's words.
        """
        refusal = simulator_refusal(opcode, groups)
        if refusal is not None:
            raise CommlensError(refusal)


def cores_per_lnc(target: str, lnc: int | None = None) -> int:
    """Return how many physical cores make one rank of a target.

    Args:
        target: ``"trn1"``, ``"inf2"``, ``"trn2"`` or ``"trn3"``.
        lnc: the LNC; None for the compiler's default. It has nothing to do with the module's ``num_partitions``.

    Raises:
        CommlensError: there is no such target, or the target has no such LNC.

    Source: AWS's page on the logical core configuration; trn1 and inf2 have no other LNC than 1.

    Example:
        >>> cores_per_lnc("trn1"), cores_per_lnc("trn2"), cores_per_lnc("trn2", 1)
        (1, 2, 1)
    """
    allowed = LNCS.get(target)
    if allowed is None:
        msg = f"expected a target out of {', '.join(sorted(LNCS))}, found {target!r}"
        raise CommlensError(msg)
    if lnc is None:
        return allowed[0]
    number = as_integer(lnc)
    if number not in allowed:
        msg = f"expected LNC {' or '.join(map(str, sorted(allowed)))} on {target}, found {lnc}"
        raise CommlensError(msg)
    return number


def ring_table(ring: Sequence[int]) -> list[list[int]]:
    """Return the processing table of a ring on which data moves one member ahead in each iteration.

    Args:
        ring: the positions 0..n-1 in the order of the ring. Which order the hardware takes is not public.

    Raises:
        CommlensError: ``ring`` does not hold each position once.

    Example:
        >>> ring_table([0, 1, 2])
        [[0, 1, 2], [2, 0, 1], [1, 2, 0]]
    """
    order = list(ring)
    if sorted(order) != list(range(len(order))):
        msg = f"expected each position 0..{len(order) - 1} once in the order of the ring, found {order}"
        raise CommlensError(msg)
    place = {position: index for index, position in enumerate(order)}
    return [[order[place[position] - back] for position in range(len(order))] for back in range(len(order))]


def simulator_refusal(opcode: str, groups: Groups) -> str | None:
    """Say why the simulator would stop at a collective.

    Args:
        opcode: of the collective, or of its start.
        groups: its replica groups; a collective-permute must have none, for it is routed by its pairs alone.

    Returns:
        The reason, which holds the simulator's words, or None where it goes on.

    Source: the assertions of the simulator, reference document, section 6.

    Example:
        >>> simulator_refusal("all-reduce", [[0, 1], [2, 3]]) is None
        True
        >>> print(simulator_refusal("reduce-scatter", [[0, 1], [2, 3]]))
        Multiple LNCs are not supported yet: reduce-scatter needs replica_groups.size()==1, found 2 groups
    """
    number = _as_device_list(groups).num_replica_groups
    base, _ = base_opcode(opcode)
    found = f"found {number} group{'s' * (number != 1)}"
    if base == "collective-permute" and number:
        return f"Permute should not contain replica_groups: expected source-target pairs alone, {found}"
    if base in _ONE_GROUP and number != 1:
        return f"Multiple LNCs are not supported yet: {base} needs replica_groups.size()==1, {found}"
    return None


def _as_device_list(groups: Groups) -> DeviceList:
    if isinstance(groups, CollectiveDeviceList | IotaReplicaGroupList | MeshAxesReplicaGroupList):
        return groups
    return CollectiveDeviceList(groups)


def _first_size(groups: DeviceList) -> int:
    """Return the length of the first group; 0 where there is none."""
    if not groups.num_replica_groups:
        return 0
    size = groups.num_devices_per_group
    return int(groups.group_sizes()[0]) if size is None else size


def _place_in_first(groups: DeviceList, rank: int) -> int | None:
    found = groups.group_of(rank)
    return found[1] if found is not None and found[0] == 0 else None


def _looked_up(table: ProcessingTable, size: int, iteration: int, position: int) -> int:
    """Read a table of positions that goes with a group of ``size`` members (0: of as many as the table says)."""
    rows = np.array(table)
    members = size or (rows.shape[1] if rows.ndim == 2 else 0)
    wanted = f"expected a processing table with a row per iteration and {members} positions in each"
    fits = rows.ndim == 2 and rows.dtype.kind in "iu" and rows.shape[1] == members
    if not fits or not np.array_equal(np.sort(rows, axis=1), np.broadcast_to(np.arange(members), rows.shape)):
        msg = f"{wanted}, every row the numbers 0..{members - 1} in some order, found another table"
        raise CommlensError(msg)
    if not len(rows) or not np.array_equal(rows[0], np.arange(members)):
        msg = f"{wanted}, of which the first counts 0..{members - 1}: iteration 0 is the own rank"
        raise CommlensError(msg)
    if iteration >= len(rows) or position >= members:
        msg = f"{wanted}, found {len(rows)} rows, which do not say who is at position {position} in row {iteration}"
        raise CommlensError(msg)
    return int(rows[iteration, position])
