"""One set of collectives that become one: the edit that does it, and what is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from commlens.hlo import Combine, metadata_in_words, shortened, some_of
from commlens.neuron.frontend_attributes import COLLECTIVE_TYPE, STREAM_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from commlens.hlo import Json, Site

Value = TypeVar("Value", str, bytes)

_MEANINGFUL: Final = (COLLECTIVE_TYPE, STREAM_ID)
"""Frontend attributes whose loss other passes notice."""
_MOST_NAMED: Final = 8
"""How many attributes are named before the rest is counted."""


@dataclass(frozen=True, slots=True)
class CombinedSet:
    """Several collectives as one.

    Attributes:
        edit: what makes one of them.
        num_bytes: bytes of all results.
        dropped: what the members do not agree on and the new instruction does not have, by frontend attribute, metadata
            field and other attribute: the different values in the order in which they are met, None for absence.
        channel_ids_gone: channel ids of members that the new instruction does not have.
    """

    edit: Combine
    num_bytes: int
    dropped: Mapping[str, Mapping[str, Sequence[str | None]]]
    channel_ids_gone: tuple[int, ...]

    def as_json(self) -> dict[str, Json]:
        """Return it for the statistics."""
        return {
            "name": self.edit.name,
            "computation": self.edit.members[0].computation.name,
            "members": [each.name for each in self.edit.members],
            "bytes": self.num_bytes,
            "dimension": self.edit.dimension,
            "dropped": self.dropped,
            "channel_ids_gone": list(self.channel_ids_gone),
        }

    @property
    def lost(self) -> tuple[str, ...]:
        """The attributes that are lost, without metadata, of which every member keeps its own."""
        return (*self.dropped["frontend_attributes"], *self.dropped["other"])

    @property
    def lost_meaning(self) -> tuple[str, ...]:
        """Those of them that other passes look for."""
        return tuple(key for key in _MEANINGFUL if key in self.dropped["frontend_attributes"])

    def warning(self) -> str:
        """Return a sentence that names what is lost: first what other passes look for, with its values."""
        others = [shortened(key) for key in self.lost if key not in self.lost_meaning]
        names = [*map(self._with_values, self.lost_meaning), *others]
        return f"{self.edit.name} lacks {some_of(names, _MOST_NAMED)}, in which its members differ"

    def _with_values(self, key: str) -> str:
        values = self.dropped["frontend_attributes"][key]
        said = ", ".join("none" if each is None else f'"{shortened(each)}"' for each in values)
        return f"{key} ({said})"


def warnings_of(sets: Sequence[CombinedSet]) -> Iterator[str]:
    """Yield a sentence for every set that lost attributes; those come first that lost what other passes look for."""
    for each in sorted(sets, key=lambda each: not each.lost_meaning):
        if each.lost:
            yield each.warning()


def left_out(sets: Sequence[CombinedSet]) -> Iterator[str]:
    """Say in a few words in how many sets members differ in attributes and in metadata, and in which.

    Source locations differ in nearly every set, so metadata is only counted.
    """
    by_kind = {
        "attributes": [each.lost for each in sets],
        "metadata": [tuple(each.dropped["metadata"]) for each in sets],
    }
    for kind, lost in by_kind.items():
        number, keys = sum(map(bool, lost)), sorted({key for each in lost for key in each})
        if keys:
            where = f"{number} set{'s' if number > 1 else ''}"
            yield f"{kind} that differed left out in {where} ({some_of(list(map(shortened, keys)), _MOST_NAMED)})"


def combined_set(name: str, members: Sequence[Site]) -> CombinedSet:
    """Say how several collectives become one.

    What they agree on is kept; channel id, groups and flags are those of the first.

    Args:
        name: name of the new instruction.
        members: the collectives in operand order, each with one operand and an array as its result.

    Raises:
        UnreadableError: metadata or attributes of one cannot be read.
    """
    instructions = [each.instruction for each in members]
    frontend, lost_frontend = agreement([each.signature.frontend_attributes for each in members])
    metadata, lost_metadata = agreement([each.metadata_fields() for each in instructions])
    others, lost_others = agreement([each.other_attributes() for each in instructions])
    channel_ids = dict.fromkeys(each.channel_id for each in members if each.channel_id is not None)
    return CombinedSet(
        edit=Combine(tuple(instructions), name, frontend, metadata, others, common_dimension(members)),
        num_bytes=sum(shape.num_bytes or 0 for each in members for shape in each.signature.result_shapes),
        dropped={
            "frontend_attributes": lost_frontend,
            "metadata": _in_words(lost_metadata, partial(metadata_in_words, instructions[0].computation.module.format)),
            "other": _in_words(lost_others, _attribute),
        },
        channel_ids_gone=tuple(each for each in channel_ids if each != members[0].channel_id),
    )


def agreement(
    attributes: Sequence[Mapping[str, Value]],
) -> tuple[frozenset[str], dict[str, tuple[Value | None, ...]]]:
    """Compare attributes of several instructions.

    Args:
        attributes: theirs, by key.

    Returns:
        The keys that all have with one value, and the different values of the other keys in the order in which they
        are first met, None for absence.

    Example:
        >>> agreement([{"a": "1", "b": "x"}, {"a": "1", "b": "y"}, {"a": "1"}])
        (frozenset({'a'}), {'b': ('x', 'y', None)})
    """
    keys = dict.fromkeys(key for each in attributes for key in each)
    values = {key: tuple(dict.fromkeys(each.get(key) for each in attributes)) for key in keys}
    differing = {key: found for key, found in values.items() if len(found) > 1}
    return frozenset(values.keys() - differing.keys()), differing


def _in_words(
    lost: Mapping[str, Sequence[bytes | None]], words: Callable[[str, bytes], str]
) -> dict[str, tuple[str | None, ...]]:
    return {key: tuple(each if each is None else words(key, each) for each in found) for key, found in lost.items()}


def _attribute(_: str, value: bytes) -> str:
    return value.decode(errors="backslashreplace")


def common_dimension(members: Sequence[Site]) -> int | None:
    """Return the gather or scatter dimension of collectives that differ in it, None where they do not.

    It is that of most of them, the lowest of several such; 0 where the smallest of the results does not have it.

    Source: ``FindMostFrequentGatherDim``, xla/hlo/transforms/collectives/all_gather_combiner.cc.
    """
    counts = Counter(each.signature.dimensions[0] for each in members if each.signature.dimensions)
    if len(counts) < 2:
        return None
    smallest = min(len(shape.dimensions) for each in members for shape in each.signature.result_shapes)
    most = max(counts.values())
    frequent = min(dimension for dimension, count in counts.items() if count == most)
    return frequent if frequent < smallest else 0
