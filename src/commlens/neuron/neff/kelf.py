"""From the members of a NEFF to its subgraphs.

``neff.json`` has one node whose ``attrs.func_name`` is ``__kelf``; its ``attrs.kelf`` names the member with the graphs,
usually ``kelf-0.json`` or, in old files, ``kelf-a.json``. Each graph there has a name and the name of its def.json.
Files lack one or the other of these, and name members that are not there; so what cannot be followed is passed over.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.errors import InputError
from commlens.neuron.def_json import is_list, is_object, json_object

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_USUAL: Final = ("kelf-0.json", "kelf-a.json")
_DESCRIPTION: Final = re.compile(r"(?:.*/)?(?:neff|kelf[^/]*|def)\.json", re.DOTALL)
_DEFINITION: Final = re.compile(r"(?:.*/)?(sg\d+)/def\.json", re.DOTALL)


class Graph(NamedTuple):
    """A graph of a kelf.

    Attributes:
        name: its name.
        definition: the member that describes it.
    """

    name: str
    definition: str


def is_description(name: str) -> bool:
    """Whether a member may tell something of subgraphs: neff.json, kelf-*.json and every def.json.

    Example:
        >>> is_description("sg00/def.json"), is_description("kelf-0.json"), is_description("sg00/wavegraph-bin.json")
        (True, True, False)
    """
    return _DESCRIPTION.fullmatch(name) is not None


def graphs_of(contents: Mapping[str, bytes], names: Collection[str]) -> list[Graph]:
    """Return the graphs of a NEFF whose descriptions are there, in the order of the names of those.

    Args:
        contents: the contents that have been kept.
        names: the names of all members.

    Returns:
        Every member called ``sgNN/def.json`` in whatever folder, of which the documented reader takes the first without
        a look at the kelf. Then what else the kelf names.

    Example:
        >>> graphs_of({}, ["sg01/def.json", "sgLnk/sg00/def.json", "info.json"])
        [Graph(name='sg00', definition='sgLnk/sg00/def.json'), Graph(name='sg01', definition='sg01/def.json')]
    """
    found = [(name, _DEFINITION.fullmatch(name)) for name in names]
    usual = {name: Graph(match[1], name) for name, match in found if match is not None}
    named = usual | {graph.definition: graph for graph in _kelf_graphs(contents, names)}
    return [named[definition] for definition in sorted(named, key=_place)]


def is_usual(definition: str) -> bool:
    """Whether the documented reader would find a description of this name."""
    return _DEFINITION.fullmatch(definition) is not None


def _place(definition: str) -> tuple[bool, str, str]:
    """Return what descriptions are sorted by: the part of the name that the documented reader looks for comes first."""
    match = _DEFINITION.fullmatch(definition)
    return (match is None, definition if match is None else definition[match.start(1) :], definition)


def _kelf_graphs(contents: Mapping[str, bytes], names: Collection[str]) -> Iterator[Graph]:
    member = next((name for name in (*_kelf_names(contents), *_USUAL) if name in contents), None)
    graphs = None if member is None else _read(contents[member]).get("graphs")
    for graph in _objects(graphs):
        name, definition = graph.get("name"), graph.get("definition")
        if isinstance(definition, str):
            plain = definition.removeprefix("./")
            candidates = (plain, f"{name}/{plain}")
            yield from (Graph(str(name), candidate) for candidate in candidates if candidate in names)


def _kelf_names(contents: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the members that neff.json names as its kelf."""
    nodes = _read(contents.get("neff.json", b"{}")).get("nodes")
    for node in _objects(nodes):
        attributes = node.get("attrs")
        if is_object(attributes) and attributes.get("func_name") == "__kelf":
            kelf = attributes.get("kelf")
            if isinstance(kelf, str):
                yield kelf.removeprefix("./")


def _objects(value: object) -> Iterator[Mapping[str, object]]:
    """Yield the objects in a parsed JSON list; nothing where it is no list."""
    if is_list(value):
        yield from filter(is_object, value)


def _read(content: bytes) -> Mapping[str, object]:
    try:
        return json_object(content, "")
    except InputError:
        return {}
