"""How many workers a program needs, in the two readings of ``getCCRankWorldSize``.

The documented reader computes ``max(groups, pairs, explicit, 1)``, where "groups" is the size of the largest group of a
topology and all topologies must agree. Its own words, "worker count" and "world size", speak of all workers of a
topology, which is the sum of its groups. Both readings are here; the documented one is the usual one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from commlens.errors import CommlensError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.neuron.cc_fields import CCFields, Groups, Pairs
    from commlens.neuron.cc_fields import Topology as Groups2D

Reading: TypeAlias = Literal["documented", "total"]
"""What counts as the workers of a topology: its largest group, or all its groups together."""

READINGS: Final[tuple[Reading, ...]] = ("documented", "total")

Source: TypeAlias = Literal["groups", "pairs", "stated"]
"""What says how many workers there are: the replica groups, the source-target pairs, or the number stated outright."""

NO_CC_OP: Final = "NEFF does not have CC op"
EMPTY_GROUPS: Final = "Empty replica_groups found"
EMPTY_PAIRS: Final = "Empty src_target_pairs found"
NOT_READ: Final = (
    "how many workers the program needs is not known: no groups or pairs can be read of it, and some may be missing"
)
_ADVICE: Final = "the documented reader recommends --stopAfter=compile"


class WorldSizeError(CommlensError):
    """No world size can be read; the text begins with the words of the documented reader, or with :data:`NOT_READ`."""


def workers_of(topology: Groups2D, reading: Reading) -> int:
    """Return the number of workers of one topology.

    Args:
        topology: its groups.
        reading: ``"documented"``: the size of the largest group; ``"total"``: the sum of the sizes.

    Example:
        >>> workers_of(((0, 1, 2, 3), (4, 5, 6, 7)), "documented"), workers_of(((0, 1, 2, 3), (4, 5, 6, 7)), "total")
        (4, 8)
    """
    sizes = [len(group) for group in topology]
    return sum(sizes) if reading == "total" else max(sizes, default=0)


def world_size(fields: CCFields, reading: Reading = "documented") -> int:
    """Return how many workers a program needs.

    Args:
        fields: what it says of them.
        reading: what counts as the workers of a topology. Programs without any collective are refused by the documented
            reading alone; in all they need 1 worker.

    Raises:
        WorldSizeError: nothing is said, or nothing of what there is could be read; a list is empty, a topology has no
            ranks, or topologies have different numbers of workers.

    Source: ``getCCRankWorldSize``, as documented; its order of checks within the topologies is by index.

    Example:
        >>> from commlens.neuron.cc_fields import CCFields
        >>> fields = CCFields((((0, 1), (2, 3)),), None, None)
        >>> world_size(fields), world_size(fields, "total")
        (2, 4)
        >>> world_size(CCFields())
        Traceback (most recent call last):
        commlens.neuron.world_size.WorldSizeError: NEFF does not have CC op
    """
    if fields.replica_groups is None and fields.src_target_pairs is None and fields.rank_world_size is None:
        if fields.incomplete:
            raise WorldSizeError(NOT_READ)
        if reading == "documented":
            raise WorldSizeError(NO_CC_OP)
    return max(1, *_numbers(fields, reading).values())


def source_of(fields: CCFields, reading: Reading = "documented") -> Source | None:
    """Return what gives a program its world size, groups before pairs before the stated number where they agree.

    Args:
        fields: what it says of its workers.
        reading: what counts as the workers of a topology.

    Returns:
        The source; None where none says as much as 1.

    Raises:
        WorldSizeError: a list is empty, a topology has no ranks, or topologies have different numbers of workers.

    Example:
        >>> from commlens.neuron.cc_fields import CCFields
        >>> fields = CCFields((((0, 1), (2, 3)),), (((0, 2),),), 3)
        >>> source_of(fields), source_of(fields, "total")
        ('pairs', 'groups')
    """
    numbers = _numbers(fields, reading)
    largest = max(1, *numbers.values())
    return next((source for source, number in numbers.items() if number == largest), None)


def _numbers(fields: CCFields, reading: Reading) -> Mapping[Source, int]:
    """Return how many workers each source speaks of, 0 where it is silent."""
    return {
        "groups": _from_groups(fields.replica_groups, reading),
        "pairs": _from_pairs(fields.src_target_pairs),
        "stated": fields.rank_world_size or 0,
    }


def _from_groups(groups: Groups | None, reading: Reading) -> int:
    """Return the workers of all topologies, which must agree; 0 where there are no groups to ask."""
    if groups is None:
        return 0
    if not groups:
        raise WorldSizeError(EMPTY_GROUPS)
    common: int | None = None
    for index, topology in enumerate(groups):
        workers = workers_of(topology, reading)
        if workers == 0:
            msg = f"Empty topology found at index {index}, possible MPMD neff file: {_ADVICE}"
            raise WorldSizeError(msg)
        if common is not None and workers != common:
            found = f"{common} vs {workers}"
            msg = f"Inconsistent worker count across topologies: {found}. Possible MPMD neff file: {_ADVICE}"
            raise WorldSizeError(msg)
        common = workers
    return common or 0


def _from_pairs(pairs: Pairs | None) -> int:
    """Return one more than the largest id in any pair; 0 where there are no pairs to ask."""
    if pairs is None:
        return 0
    largest = max((rank for each in pairs for pair in each for rank in pair), default=None)
    if largest is None:
        raise WorldSizeError(EMPTY_PAIRS)
    return largest + 1
