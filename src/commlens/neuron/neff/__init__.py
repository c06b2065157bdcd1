"""NEFF, the container of a program compiled for Neuron: a header of 1,024 bytes and a tar archive.

Archives come from strangers. They are read from end to end without anything being unpacked to a place that they name.
"""

from commlens.neuron.neff.archive import looks_like_archive
from commlens.neuron.neff.container import Neff, NeffSource, Subgraph, looks_like_neff, read_neff
from commlens.neuron.neff.header import FEATURES, HEADER_SIZE, NeffHeader
from commlens.neuron.neff.subgraphs import neff_fields, subgraph_fields

__all__ = [
    "FEATURES",
    "HEADER_SIZE",
    "Neff",
    "NeffHeader",
    "NeffSource",
    "Subgraph",
    "looks_like_archive",
    "looks_like_neff",
    "neff_fields",
    "read_neff",
    "subgraph_fields",
]
