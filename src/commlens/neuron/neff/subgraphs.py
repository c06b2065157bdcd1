"""What the subgraphs of a NEFF say of their workers, and where they disagree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.neuron.cc_fields import CCFields
from commlens.neuron.def_json import content_fields
from commlens.neuron.neff.kelf import is_usual

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.neuron.neff.container import Neff, Subgraph

KNOWN_LNC: Final = (1, 2)
"""How many physical cores the ranks of known hardware have."""


def subgraph_fields(neff: Neff) -> list[tuple[Subgraph, CCFields]]:
    """Return what each subgraph says, in the order of the names of their descriptions.

    Raises:
        InputError: a description is no JSON, or a key holds something else than it should.
    """
    return [(graph, content_fields(graph.definition, f"{neff.path}: {graph.member}")) for graph in neff.subgraphs]


def neff_fields(neff: Neff) -> CCFields:
    r"""Return what a NEFF says: its first subgraph, in the order of names, with notes on what differs from that.

    Raises:
        InputError: a description is no JSON, or a key holds something else than it should.

    Source: the documented reader takes one subgraph only, the first match of ``sg\d+/def.json`` in the sorted names.
    """
    found = subgraph_fields(neff)
    _, fields = found[0]
    return fields._replace(notes=tuple(_notes(neff, found)))


def _notes(neff: Neff, found: list[tuple[Subgraph, CCFields]]) -> Iterator[str]:
    if not neff.hash_matches:
        yield "the archive does not have the hash that the header states: the file was changed or damaged"
    if neff.header.lnc_size not in (0, *KNOWN_LNC):
        known = " or ".join(map(str, KNOWN_LNC))
        yield f"the header states LNC {neff.header.lnc_size}, and Neuron hardware has {known} physical cores per rank"
    first, fields = found[0]
    others = [graph.member for graph, each in found[1:] if each[:3] != fields[:3]]
    if others:
        known = ", as it does for the documented reader" if is_usual(first.member) else ""
        yield (
            f"the subgraphs say different things of their workers: {first.member} counts here{known}; "
            f"different from it: {', '.join(others)}"
        )
