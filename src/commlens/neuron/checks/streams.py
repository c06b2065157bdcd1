"""Group lists whose collectives have different stream ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from commlens.hlo import some_of
from commlens.neuron.checks.topologies import topologies_of
from commlens.neuron.frontend_attributes import STREAM_ID

if TYPE_CHECKING:
    from commlens.hlo import Site, Subject
    from commlens.topology import DeviceList


class SplitTopology(NamedTuple):
    """A group list on several streams.

    Attributes:
        groups: the groups.
        sites: its collectives that have a stream id.
        in_words: which of them have which.
    """

    groups: DeviceList
    sites: tuple[Site, ...]
    in_words: str


def split_topologies(subject: Subject) -> tuple[SplitTopology, ...]:
    """Return the group lists of which the collectives that have a stream id have different ones."""
    found: list[SplitTopology] = []
    for groups, sites in subject.ask(topologies_of).items():
        by_stream: dict[str, list[str]] = {}
        stamped = [site for site in sites if STREAM_ID in site.signature.frontend_attributes]
        for site in stamped:
            by_stream.setdefault(site.signature.frontend_attributes[STREAM_ID], []).append(site.name)
        if len(by_stream) > 1:
            words = "; ".join(f"{stream} ({some_of(names)})" for stream, names in sorted(by_stream.items()))
            found.append(SplitTopology(groups, tuple(stamped), words))
    return tuple(found)
