"""CC info: which groups of workers a compiled program needs, as a NEFF carries it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.errors import CommlensError
from commlens.hlo import MAX_BYTES, Module
from commlens.neuron.cc_fields import (
    RANK_WORLD_SIZE,
    REPLICA_GROUPS,
    SRC_TARGET_PAIRS,
    CCFields,
    checked_count,
    checked_groups,
    checked_pairs,
    shown,
)
from commlens.neuron.def_json import def_json_fields
from commlens.neuron.module_cc import module_fields
from commlens.neuron.neff import Neff, neff_fields, read_neff
from commlens.neuron.world_size import READINGS, WorldSizeError, source_of, world_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import SupportsIndex

    from commlens.neuron.cc_fields import NestedRanks
    from commlens.neuron.def_json import DefJson
    from commlens.neuron.neff import NeffSource
    from commlens.neuron.world_size import Reading, Source

_SIZE_KEYS: Final = ("num_groups", "group_size")


@dataclass(frozen=True, slots=True, eq=False)
class TopologySize(Mapping[str, int | None]):
    """The size of one topology; reads as attributes and as a mapping alike.

    Attributes:
        num_groups: number of groups.
        group_size: ranks in each group; None where the groups differ in size.
    """

    num_groups: int
    group_size: int | None

    def __getitem__(self, key: str) -> int | None:
        """Return the value of a key.

        Raises:
            KeyError: there is no such key.
        """
        if key not in _SIZE_KEYS:
            raise KeyError(key)
        return self.num_groups if key == "num_groups" else self.group_size

    def __iter__(self) -> Iterator[str]:
        """Yield the keys in order."""
        return iter(_SIZE_KEYS)

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(_SIZE_KEYS)


class CCInfo:
    """Which groups of workers a program needs: distinct topologies, pairs, and a number stated outright.

    A frozen value; two are equal when they say the same in the same order. Lists are made anew for each caller.

    Args:
        replica_groups: nested sequences or arrays, ``[topology][group][rank]``; None where nothing is said. One entry
            per distinct list of groups: a module that splits its work along two axes has two.
        src_target_pairs: nested sequences or arrays, ``[set][pair][source or target]``, one set per distinct permute;
            None likewise.
        rank_world_size: the number of workers that is stated outright; None likewise.
        notes: sentences about what had to be left out or chosen; no part of the value.

    Raises:
        CommlensError: something is nested otherwise, or is no rank.

    Example:
        >>> info = CCInfo([[[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 4], [1, 5], [2, 6], [3, 7]]])
        >>> [dict(topology) for topology in info.topologies]
        [{'num_groups': 2, 'group_size': 4}, {'num_groups': 4, 'group_size': 2}]
        >>> info.world_size("total")
        8
    """

    __slots__ = ("_fields",)

    def __init__(
        self,
        replica_groups: NestedRanks | None = None,
        src_target_pairs: NestedRanks | None = None,
        rank_world_size: SupportsIndex | None = None,
        *,
        notes: Sequence[str] = (),
    ) -> None:
        self._fields = CCFields(
            None if replica_groups is None else checked_groups(replica_groups),
            None if src_target_pairs is None else checked_pairs(src_target_pairs),
            None if rank_world_size is None else checked_count(rank_world_size, RANK_WORLD_SIZE, "a number of workers"),
            tuple(notes),
        )

    @classmethod
    def of(cls, fields: CCFields) -> CCInfo:
        """Make CC info of fields that have been checked."""
        info = cls.__new__(cls)
        info._fields = fields
        return info

    @classmethod
    def from_module(cls, module: Module) -> CCInfo:
        r"""Collect the CC info of a module that is yet to be compiled for Neuron.

        Args:
            module: a module. Its counts of replicas and partitions are asked only about empty groups.

        Returns:
            Its distinct group lists, compared place by place and in the order in which they first appear, with ids as
            written; its distinct lists of pairs likewise. Empty groups become one group of all ids that the others of
            their group mode list. What could not be read is named in :attr:`notes`.

        Raises:
            CommlensError: it is no module; empty groups in one whose counts nobody states; an id that is no rank.

        Source: ``writeCCInfo`` keeps each group geometry once, as documented.

        Example:
            >>> from commlens.hlo import load
            >>> module = load("ENTRY e {\n p = f32[8] parameter(0)\n ROOT r = f32[8] all-to-all(p),"
            ...               " replica_groups={{0,1}}, dimensions={0}\n}\n")
            >>> CCInfo.from_module(module)
            CCInfo(replica_groups=[[[0, 1]]], src_target_pairs=None, rank_world_size=None)
        """
        _check_module(module)
        return cls.of(module_fields(module))

    @classmethod
    def from_def_json(cls, source: DefJson) -> CCInfo:
        """Read the CC info of a def.json.

        Args:
            source: the path of a file, its content (a string that begins with a brace, or bytes), or the parsed object.

        Raises:
            CommlensError: it cannot be read, or a key holds something else than it should.

        Example:
            >>> CCInfo.from_def_json('{"replica_groups": [[[0, 1]]]}').world_size()
            2
        """
        return cls.of(def_json_fields(source))

    @classmethod
    def from_neff(cls, source: NeffSource | Neff, *, max_bytes: int = MAX_BYTES, validate_hash: bool = False) -> CCInfo:
        """Read the CC info of a NEFF.

        Args:
            source: the path of a .neff file, its content, or one that has been read.
            max_bytes: the largest archive taken, uncompressed.
            validate_hash: refuse an archive that differs from the hash in its header, as the runtime does where
                ``NEURON_RT_VALIDATE_HASH`` is set. Else :attr:`notes` says so.

        Returns:
            The CC info of the subgraph that the documented reader looks at: the first def.json in the order of names.
            Where other subgraphs say something else, :attr:`notes` says so.

        Raises:
            CommlensError: the container, or what is needed of its content, is unusable.
        """
        neff = (
            source if isinstance(source, Neff) else read_neff(source, max_bytes=max_bytes, validate_hash=validate_hash)
        )
        return cls.of(neff_fields(neff))

    @property
    def replica_groups(self) -> list[list[list[int]]] | None:
        """``[topology][group][rank]``; None where nothing is said."""
        groups = self._fields.replica_groups
        return None if groups is None else [[list(group) for group in topology] for topology in groups]

    @property
    def src_target_pairs(self) -> list[list[list[int]]] | None:
        """``[set][pair][source or target]``; None where nothing is said."""
        pairs = self._fields.src_target_pairs
        return None if pairs is None else [[list(pair) for pair in each] for each in pairs]

    @property
    def rank_world_size(self) -> int | None:
        """The number of workers that is stated outright; None where none is."""
        return self._fields.rank_world_size

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what had to be left out or chosen on the way."""
        return self._fields.notes

    @property
    def complete(self) -> bool:
        """Whether the groups or pairs of every collective are known; else some are missing, and notes say which."""
        return not self._fields.incomplete

    @property
    def has_cc(self) -> bool:
        """Whether anything is said of workers at all."""
        return self._fields[:3] != (None, None, None)

    @property
    def topologies(self) -> list[TopologySize]:
        """The size of each topology, in order."""
        return [_size_of(topology) for topology in self._fields.replica_groups or ()]

    def world_size(self, reading: Reading = "documented") -> int:
        """Return how many workers the program needs: the largest of what groups, pairs and the stated number say, or 1.

        Args:
            reading: what a topology says. ``"documented"``: the size of its largest group; ``"total"``: the sizes of
                its groups together. Pairs say one more than their largest id.

        Returns:
            The number; the least that there can be where something is missing, see :attr:`complete`.

        Raises:
            WorldSizeError: (a ValueError) the documented reader refuses, in its words: nothing is said, a list is
                empty, or topologies differ. The total reading takes a program of which nothing is said as one worker.
                Both refuse a program that has collectives of which none could be read.
            CommlensError: there is no such reading.

        Source: ``getCCRankWorldSize``, as documented.

        Example:
            >>> info = CCInfo([[[0, 1, 2, 3], [4, 5, 6, 7]]], [[[0, 9]]], 2)
            >>> info.world_size(), CCInfo([[[0, 1], [2, 3]]]).world_size("total")
            (10, 4)
            >>> CCInfo([[]]).world_size()  # doctest: +ELLIPSIS
            Traceback (most recent call last):
            commlens.neuron.world_size.WorldSizeError: Empty topology found at index 0, possible MPMD neff file: ...
        """
        if reading not in READINGS:
            msg = f"expected a reading, one of {', '.join(READINGS)}, found {reading!r}"
            raise CommlensError(msg)
        return world_size(self._fields, reading)

    def size_or_refusal(self, reading: Reading = "documented") -> tuple[int | None, str | None]:
        """Return the world size by a reading, or why there is none; the other of the two is None."""
        try:
            return self.world_size(reading), None
        except WorldSizeError as error:
            return None, str(error)

    def source_of(self, reading: Reading = "documented") -> Source | None:
        """Return what the world size by a reading comes from; None where nothing says as much as 1.

        Raises:
            WorldSizeError: the reading has no world size.

        Example:
            >>> CCInfo([[[0, 1]]], [[[0, 9]]]).source_of()
            'pairs'
        """
        return source_of(self._fields, reading)

    def to_def_json(self) -> dict[str, object]:
        """Return the keys of def.json that say the same; what is not said has no key.

        Example:
            >>> CCInfo([[[0, 1]]], rank_world_size=2).to_def_json()
            {'replica_groups': [[[0, 1]]], '#rank_world_size': 2}
        """
        keys = (REPLICA_GROUPS, SRC_TARGET_PAIRS, RANK_WORLD_SIZE)
        values = (self.replica_groups, self.src_target_pairs, self.rank_world_size)
        return {key: value for key, value in zip(keys, values, strict=True) if value is not None}

    def __eq__(self, other: object) -> bool:
        return self._fields[:3] == other._fields[:3] if isinstance(other, CCInfo) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._fields[:3])

    def __repr__(self) -> str:
        return (
            f"CCInfo(replica_groups={self.replica_groups}, src_target_pairs={self.src_target_pairs}, "
            f"rank_world_size={self.rank_world_size})"
        )


def _check_module(module: object) -> None:
    if not isinstance(module, Module):
        msg = f"expected a module, such as commlens.load returns, found {shown(module)}"
        raise CommlensError(msg)


def _size_of(topology: Sequence[Sequence[int]]) -> TopologySize:
    sizes = {len(group) for group in topology}
    return TopologySize(len(topology), sizes.pop() if len(sizes) == 1 else None)
