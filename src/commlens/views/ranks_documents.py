"""The answer of ``ranks`` in every form."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final

from commlens.views.csv_cells import csv_lines
from commlens.views.json_text import to_json
from commlens.views.markdown import markdown_prose, markdown_table, markdown_text
from commlens.views.ranks_table import (
    core_table,
    facts_of,
    group_table,
    match_table,
    notes_of,
    ranks_lines,
    reasons_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlens.topology import DeviceList
    from commlens.views.lines import Line
    from commlens.views.ranks_answers import CollectiveOnCores, Cores, Layout, ModuleOnRanks, Peers

MATCH_COLUMNS: Final = (
    "path",
    "module",
    "name",
    "opcode",
    "computation",
    "line",
    "axes",
    "matches",
    "in_order",
    "first_group_only",
    "why",
)
"""Columns of the CSV form where modules are compared with the layout."""

CORE_COLUMNS: Final = (
    "path",
    "module",
    "core",
    "rank",
    "name",
    "opcode",
    "position",
    "peers",
    "sends_to",
    "receives_from",
    "why",
    "refusal",
)
"""Columns of the CSV form where cores are asked for."""

_IDS_IN_A_PIECE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class RanksView:
    """The answer of ``ranks``.

    Attributes:
        layout: the groups.
        modules: the modules that were compared with it; None where none was asked for.
        warnings: what was odd about these modules, in sentences; tables leave them to standard error.
    """

    layout: Layout
    modules: Sequence[ModuleOnRanks] | None = None
    warnings: Sequence[str] = ()

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield the lines of the table."""
        return ranks_lines(self.layout, self.modules, width)

    def json(self) -> Iterator[str]:
        """Yield one JSON object; lists of ranks never stand in memory as a whole."""
        layout = self.layout
        head: dict[str, object] = {
            "schema": "commlens.ranks/1",
            "world": layout.world,
            "degrees": _degrees(layout),
            "logic": layout.logic,
            "hardware": layout.hardware,
            "lnc": layout.cores_per_lnc,
            "local_world_size": layout.local_world_size,
        }
        yield to_json(head)[:-1]
        yield ', "groups": {'
        for place, (name, groups) in enumerate(layout.groups.items()):
            yield f"{', ' if place else ''}{to_json(name)}: "
            yield from _groups_json(groups)
        tail: dict[str, object] = {
            "iota": dict(layout.iota),
            "against": [_match_dict(module, match) for module, match in _matches(self.modules)],
            "notes": list(layout.notes),
            "warnings": list(self.warnings),
        }
        yield f"}}, {to_json(tail)[1:-1]}"
        yield from _cores_json(self.modules)
        yield "}\n"

    def csv(self) -> Iterator[str]:
        """Yield one table: the cores where they were asked for, else the compared collectives, else the groups."""
        if self.modules is None:
            return _groups_csv(self.layout.groups)
        if any(module.cores is not None for module in self.modules):
            return csv_lines(CORE_COLUMNS, _core_rows(self.modules))
        matches = (_match_dict(module, match) for module, match in _matches(self.modules))
        return csv_lines(MATCH_COLUMNS, ([_none_said(match, key) for key in MATCH_COLUMNS] for match in matches))

    def markdown(self) -> Iterator[str]:
        """Yield the tables as Markdown."""
        yield ", ".join(markdown_text(fact) for fact in facts_of(self.layout)) + "\n\n"
        yield from markdown_table(group_table(self.layout))
        for note in notes_of(self.layout):
            yield f"\n{markdown_prose(note)}\n"
        for module in self.modules or ():
            yield f"\n### {markdown_text(module.name)} ({markdown_text(module.path)})\n\n"
            yield from markdown_table(match_table(module.matches))
            for reason in reasons_of(module):
                yield f"\n{markdown_prose(reason)}\n"
            if module.cores is not None:
                yield "\n"
                yield from markdown_table(core_table(module.cores))


def _degrees(layout: Layout) -> dict[str, int]:
    degrees = layout.degrees
    return {"tp": degrees.tp, "pp": degrees.pp, "dp": degrees.dp, "ep": degrees.ep}


def _matches(modules: Sequence[ModuleOnRanks] | None) -> Iterator[tuple[ModuleOnRanks, Mapping[str, object]]]:
    return ((module, match) for module in modules or () for match in module.matches)


def _match_dict(module: ModuleOnRanks, match: Mapping[str, object]) -> dict[str, object]:
    return {**match, "module": module.name, "path": module.path}


def _none_said(match: Mapping[str, object], key: str) -> object:
    return "none" if match[key] == [] else match[key]  # an empty cell means "not known"


def _groups_json(groups: DeviceList) -> Iterator[str]:
    """Yield the groups, all of one size, in pieces."""
    yield "["
    for start, rows in _in_pieces(groups):
        yield f"{', ' if start else ''}{to_json(rows)[1:-1]}"
    yield "]"


def _groups_csv(families: Mapping[str, DeviceList]) -> Iterator[str]:
    """Yield a heading and a line for each group, many at a time: there may be millions, and all cells are numbers."""
    yield "layout,group,ranks\n"
    for name, groups in families.items():
        quote = '"' if (groups.num_devices_per_group or 0) > 1 else ""
        for start, rows in _in_pieces(groups):
            numbered = enumerate((",".join(map(str, row)) for row in rows), start)
            yield "".join(f"{name},{number},{quote}{ranks}{quote}\n" for number, ranks in numbered)


def _in_pieces(groups: DeviceList) -> Iterator[tuple[int, list[list[int]]]]:
    """Yield some groups at a time, with the number of the first; all are of one size."""
    ranks = groups.to_array()
    step = max(1, _IDS_IN_A_PIECE // max(1, ranks.shape[1]))
    return ((start, ranks[start : start + step].tolist()) for start in range(0, len(ranks), step))


def _cores_json(modules: Sequence[ModuleOnRanks] | None) -> Iterator[str]:
    asked = [(module, module.cores) for module in modules or () if module.cores is not None]
    if not asked:
        return
    yield ', "cores": ['
    for place, (module, cores) in enumerate(asked):
        head: dict[str, object] = {
            "path": module.path,
            "module": module.name,
            "collectives": [_collective_dict(collective) for collective in cores.collectives],
        }
        yield f'{", " if place else ""}{to_json(head)[:-1]}, "cores": ['
        for number, core in enumerate(cores.cores()):
            peers = [None if each is None else _peers_dict(each) for each in core.peers]
            yield ("," if number else "") + "\n" + to_json({"core": core.core, "rank": core.rank, "peers": peers})
        yield "]}"
    yield "]"


def _collective_dict(collective: CollectiveOnCores) -> dict[str, object]:
    return {
        "name": collective.name,
        "opcode": collective.opcode,
        "why": collective.unknown_because,
        "refusal": collective.refusal,
    }


def _peers_dict(peers: Peers) -> dict[str, object]:
    return {
        "peers": list(peers.peers),
        "position": peers.position,
        "sends_to": list(peers.sends_to),
        "receives_from": list(peers.receives_from),
    }


def _core_rows(modules: Sequence[ModuleOnRanks]) -> Iterator[list[object]]:
    return chain.from_iterable(_rows_of_cores(module, module.cores) for module in modules if module.cores is not None)


def _rows_of_cores(module: ModuleOnRanks, cores: Cores) -> Iterator[list[object]]:
    for core in cores.cores():
        for collective, peers in zip(cores.collectives, core.peers, strict=True):
            values: dict[str, object] = {
                **_collective_dict(collective),
                **({} if peers is None else _peers_dict(peers)),
                "path": module.path,
                "module": module.name,
                "core": core.core,
                "rank": core.rank,
            }
            yield [values.get(column) for column in CORE_COLUMNS]
