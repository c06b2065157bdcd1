"""CC info as the answer to a question: which world size, by which reading, on which cores."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.neuron.cc_info import CCInfo
from commlens.neuron.cc_rows import PairRow, TopologyRow, pair_rows, topology_rows
from commlens.neuron.lone_surrogates import with_escapes
from commlens.neuron.neff import subgraph_fields
from commlens.neuron.rank_model import RankModel
from commlens.neuron.world_size import READINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlens.neuron.cc_source import CCSource
    from commlens.neuron.neff import Neff
    from commlens.neuron.world_size import Reading, Source

MOST_RANK_ROWS: Final = 4096
"""How many ranks are listed one by one."""

MOST_CORES_PER_RANK: Final = 64
"""How many cores a rank may have to have them listed; known hardware has 2 at most."""

_TOO_MANY: Final = (f"the cores of more than {MOST_RANK_ROWS:,} ranks are not listed",)

_SAID_BY: Final[Mapping[Source | None, str]] = MappingProxyType(
    {
        None: "the least that there is, as documented",
        "groups": "the size of the largest group, as documented",
        "pairs": "one more than the largest id of the source-target pairs, as documented, and more than any group has",
        "stated": "the stated #rank_world_size, as documented, and more than any group or pair needs",
    }
)


class RankRow(NamedTuple):
    """One rank: its cores and its groups.

    Attributes:
        rank: the rank.
        cores: the physical cores that it runs on.
        groups: the number of its group in each topology; None where it is in none.
    """

    rank: int
    cores: tuple[int, ...]
    groups: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class CCSummary:
    """Everything that is answered about the CC info of one program.

    Attributes:
        path: the input as the user named it.
        kind: ``"neff"``, ``"def.json"`` or ``"module"``.
        facts: what there is to say of the input, a few words each.
        info: the CC info.
        reading: the reading that was asked for.
        world_size: the number of workers by that reading; None where it refuses.
        world_size_documented: by the documented reading.
        world_size_total: by the other one.
        refusals: why the documented reading refuses, in its words; empty where it does not.
        refusals_total: why the other reading refuses.
        cores_per_lnc: physical cores per rank; None where nobody says.
        topologies: one row per topology.
        pair_sets: one row per set of pairs.
        ranks: one row per rank, of the larger of both world sizes and of whatever a group or pair names beyond it; None
            where nobody asked for its cores, and above :data:`MOST_RANK_ROWS` ranks or :data:`MOST_CORES_PER_RANK`
            cores to each.
        notes: what a reader has to know of the answer.
        header: the header of the NEFF, by field; None where it is none.
        subgraphs: what each subgraph of the NEFF says; None where it is none.
    """

    path: str
    kind: str
    facts: tuple[str, ...]
    info: CCInfo
    reading: Reading
    world_size: int | None
    world_size_documented: int | None
    world_size_total: int | None
    refusals: tuple[str, ...]
    refusals_total: tuple[str, ...]
    cores_per_lnc: int | None
    topologies: tuple[TopologyRow, ...]
    pair_sets: tuple[PairRow, ...]
    ranks: tuple[RankRow, ...] | None
    notes: tuple[str, ...]
    header: dict[str, object] | None
    subgraphs: list[dict[str, object]] | None

    @property
    def rank_world_size(self) -> int | None:
        """The number of workers that is stated outright."""
        return self.info.rank_world_size

    @property
    def complete(self) -> bool:
        """Whether the groups or pairs of every collective are known; else world sizes are lower bounds."""
        return self.info.complete

    @property
    def all_notes(self) -> tuple[str, ...]:
        """What was wrong in the input, then :attr:`notes`."""
        return (*self.info.notes, *self.notes)

    def as_dict(self) -> dict[str, object]:
        """Return the answer as JSON holds it."""
        info = self.info
        ranks = self.ranks
        return {
            "path": self.path,
            "kind": self.kind,
            **_lists(info),
            "reading": self.reading,
            "world_size": self.world_size,
            "world_size_documented": self.world_size_documented,
            "world_size_total": self.world_size_total,
            "refusals": list(self.refusals),
            "refusals_total": list(self.refusals_total),
            "topologies": [dict(topology) for topology in info.topologies],
            "has_cc": info.has_cc,
            "complete": info.complete,
            "cores_per_lnc": self.cores_per_lnc,
            "ranks": None
            if ranks is None
            else [{**each._asdict(), "cores": list(each.cores), "groups": list(each.groups)} for each in ranks],
            "notes": [with_escapes(note) for note in self.all_notes],
            "header": self.header,
            "subgraphs": self.subgraphs,
        }


def summarise(source: CCSource, *, reading: Reading = "documented", cores_per_lnc: int | None = None) -> CCSummary:
    """Answer about the CC info of a program.

    Args:
        source: the program.
        reading: which world size is asked for.
        cores_per_lnc: physical cores per rank, whatever the header of a NEFF says; asks for the cores of every rank.
    """
    info = source.info
    documented, refusal = info.size_or_refusal("documented")
    total, refusal_total = info.size_or_refusal("total")
    ranks = None if cores_per_lnc is None else _rank_rows(info, cores_per_lnc)
    stated = source.neff.header.lnc_size or None if source.neff is not None else None
    cores = stated if cores_per_lnc is None else cores_per_lnc
    return CCSummary(
        path=source.path,
        kind=source.kind,
        facts=tuple(_facts(source)),
        info=info,
        reading=reading,
        world_size=documented if reading == "documented" else total,
        world_size_documented=documented,
        world_size_total=total,
        refusals=() if refusal is None else (refusal,),
        refusals_total=() if refusal_total is None else (refusal_total,),
        cores_per_lnc=cores,
        topologies=tuple(topology_rows(info)),
        pair_sets=tuple(pair_rows(info)),
        ranks=ranks,
        notes=(*_notes(info, stated, cores), *(_TOO_MANY if ranks is None and cores_per_lnc is not None else ())),
        header=None if source.neff is None else _header(source.neff),
        subgraphs=None if source.neff is None else _subgraphs(source.neff),
    )


def _facts(source: CCSource) -> Iterator[str]:
    if source.neff is not None:
        header = source.neff.header
        yield f"NEFF {header.neff_version_major}.{header.neff_version_minor}"
        if header.name:
            yield f"name {with_escapes(header.name)}"
        if header.neff_build_version:
            yield f"built by {with_escapes(header.neff_build_version)}"
        yield f"LNC {header.lnc_size}" if header.lnc_size else "LNC not stated"
        if header.features:
            yield f"features {', '.join(header.features)}"
        yield f"subgraphs {', '.join(with_escapes(graph.member) for graph in source.neff.subgraphs)}"
    elif source.module is not None:
        module = source.module
        yield f"module {module.name}"
        yield f"HLO {module.format}"
    else:
        yield "definition of a subgraph"


def _rank_rows(info: CCInfo, cores: int) -> tuple[RankRow, ...] | None:
    """Return a row per rank, None where there are too many of them, or of cores to each."""
    if cores > MOST_CORES_PER_RANK:
        return None
    places = [
        {rank: number for number, group in reversed(list(enumerate(topology))) for rank in group}
        for topology in info.replica_groups or []
    ]
    world = max(info.size_or_refusal(reading)[0] or 0 for reading in READINGS)
    ranks = {rank for place in places for rank in place}
    ranks.update(rank for pairs in info.src_target_pairs or [] for pair in pairs for rank in pair)
    ranks.update(range(min(world, MOST_RANK_ROWS + 1)))
    if len(ranks) > MOST_RANK_ROWS:
        return None
    model = RankModel(cores)
    return tuple(
        RankRow(rank, tuple(model.cores_of_rank(rank)), tuple(place.get(rank) for place in places))
        for rank in sorted(ranks)
    )


def _notes(info: CCInfo, stated: int | None, cores: int | None) -> Iterator[str]:
    documented, _ = info.size_or_refusal("documented")
    total, refusal_total = info.size_or_refusal("total")
    if not info.complete and (documented, total) != (None, None):
        yield "the groups or pairs of some collectives are missing here: the program needs at least so many workers"
    if documented is not None and total is not None and documented != total:
        yield (
            f"the readings differ: {documented} is {_SAID_BY[info.source_of('documented')]}; all groups of a "
            f"topology together have {total} workers (--reading total)"
        )
    if documented is not None and total is None:
        yield f"the other reading has no world size: {refusal_total}"
    if info.rank_world_size is not None and documented is not None and info.rank_world_size < documented:
        lists = info.replica_groups is not None or info.src_target_pairs is not None
        least = "the lists need" if lists else "the 1 worker of any program"
        yield f"the stated #rank_world_size, {info.rank_world_size}, is less than {least}, and does not count"
    if stated is not None and stated != cores:
        yield (
            f"the header of the NEFF states LNC {stated}: it was compiled for {stated} physical cores per rank, and "
            "the runtime must be set to the same (NEURON_LOGICAL_NC_CONFIG)"
        )


def _header(neff: Neff) -> dict[str, object]:
    header = neff.header
    return {
        "pkg_version": header.pkg_version,
        "header_size": header.header_size,
        "data_size": header.data_size,
        "neff_version_major": header.neff_version_major,
        "neff_version_minor": header.neff_version_minor,
        "neff_build_version": with_escapes(header.neff_build_version),
        "num_tpb": header.num_tpb,
        "hash": header.hash.hex(),
        "hash_matches": neff.hash_matches,
        "uuid": str(header.uuid),
        "name": with_escapes(header.name),
        "requested_tpb_count": header.requested_tpb_count,
        "tpb_per_node": header.tpb_per_node.hex(),
        "feature_bits": header.feature_bits,
        "features": list(header.features),
        "lnc_size": header.lnc_size,
    }


def _subgraphs(neff: Neff) -> list[dict[str, object]]:
    return [
        {"name": with_escapes(graph.name), "member": with_escapes(graph.member), **_lists(CCInfo.of(fields))}
        for graph, fields in subgraph_fields(neff)
    ]


def _lists(info: CCInfo) -> dict[str, object]:
    return {
        "replica_groups": info.replica_groups,
        "src_target_pairs": info.src_target_pairs,
        "rank_world_size": info.rank_world_size,
    }
