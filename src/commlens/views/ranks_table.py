"""The table view of ``ranks``: the groups of a job, what a module's collectives are among them, and its cores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.views.columns import Column, Table, laid_out
from commlens.views.lines import BLANK, BOLD, DIM, WARNING, Line, Span, line, paragraph, styled, wrapped
from commlens.views.words import UNKNOWN, counted, cut, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.analysis import LayoutMatch
    from commlens.topology import DeviceList
    from commlens.views.ranks_answers import Core, Cores, Layout, ModuleOnRanks, Peers

_CORES_SHOWN: Final = 128
_GROUPS_SHOWN: Final = 4
_MEMBERS_SHOWN: Final = 16
_NAME_WIDTH: Final = 40


def ranks_lines(layout: Layout, modules: Sequence[ModuleOnRanks] | None, width: int | None) -> Iterator[Line]:
    """Yield the table view.

    Args:
        layout: the groups.
        modules: the modules that were compared with it; None where none was asked for.
        width: columns of the terminal, None for as many as it takes.
    """
    first, *facts = facts_of(layout)
    *others, last = (f"{fact}," for fact in facts)
    yield from wrapped([styled(f"{first},", BOLD), *map(Span, others), Span(last.removesuffix(","))], width)
    yield from paragraph(f"{layout.logic}: {layout.meaning}.", DIM, width)
    yield BLANK
    yield from laid_out(group_table(layout), width)
    for note in notes_of(layout):
        yield BLANK
        yield from paragraph(note, WARNING, width)
    for module in modules or ():
        yield BLANK
        yield from _module_lines(module, width)


def facts_of(layout: Layout) -> list[str]:
    """Return what there is to say of a layout as a whole, in a few words each."""
    degrees = layout.degrees
    return [
        counted(layout.world, "rank"),
        f"tp {degrees.tp} x dp {degrees.dp} x pp {degrees.pp}",
        f"ep {degrees.ep}",
        layout.logic,
        f"{layout.hardware} with LNC {layout.cores_per_lnc}",
        f"{counted(layout.local_world_size, 'rank')} to a node",
    ]


def notes_of(layout: Layout) -> Iterator[str]:
    """Yield what to know about a layout, as sentences."""
    return (f"{note}." for note in layout.notes)


def group_table(layout: Layout) -> Table:
    """Return a table with a line for each family of groups."""
    columns = (
        Column("layout"),
        Column("groups", "right"),
        Column("of", "right"),
        Column("iota"),
        Column("first groups", least=24),
    )
    rows = [
        [
            Span(name, BOLD),
            Span(f"{groups.num_replica_groups:,}"),
            Span(f"{groups.num_devices_per_group or 0:,}"),
            Span(layout.iota[name] or "none"),
            Span(_beginning(groups)),
        ]
        for name, groups in layout.groups.items()
    ]
    return Table(columns, rows)


def match_table(matches: Sequence[LayoutMatch]) -> Table:
    """Return a table of collectives, those that say the same in one row."""
    alike: dict[tuple[str, str, str], list[LayoutMatch]] = {}
    for match in matches:
        alike.setdefault((match.opcode, _axes(match), _named(match)), []).append(match)
    columns = (Column("rows", "right"), Column("opcode"), Column("layout", least=12), Column("axes"), Column("where"))
    rows = [
        [
            Span(f"{len(group):,}"),
            Span(opcode),
            Span(named, BOLD if group[0].matches else WARNING),
            Span(axes, WARNING if axes == UNKNOWN else ""),
            Span(_where(group), DIM),
        ]
        for (opcode, axes, named), group in alike.items()
    ]
    return Table(columns, rows)


def core_table(cores: Cores) -> Table:
    """Return a table with a line for each core and a column for collectives that join the same ranks."""
    numbers = range(min(cores.num_cores, _CORES_SHOWN))
    known = [collective.unknown_because is None for collective in cores.collectives]
    rows = [_core_cells(cores.core(number), known) for number in numbers]  # only texts stay: peers may be many
    columns: dict[tuple[str, ...], list[str]] = {}
    for collective, cells in zip(cores.collectives, zip(*(texts for _, texts in rows), strict=True), strict=True):
        columns.setdefault(cells, []).append(cut(printable(collective.name), _NAME_WIDTH))
    titles = [names[0] + (f" +{len(names) - 1:,}" if len(names) > 1 else "") for names in columns.values()]
    return Table(
        (Column("core", "right"), Column("rank", "right"), *(Column(title, least=10) for title in titles)),
        [
            [Span(str(number)), Span(str(rows[number][0]), BOLD), *(Span(cells[number]) for cells in columns)]
            for number in numbers
        ],
    )


def _core_cells(core: Core, known: Sequence[bool]) -> tuple[int, list[str]]:
    """Return the rank of a core, and whom it meets in each collective."""
    texts = {id(peers): _peers(peers) for peers in {id(each): each for each in core.peers}.values()}
    told = zip(core.peers, known, strict=True)
    return core.rank, [texts[id(peers)] if is_known else UNKNOWN for peers, is_known in told]


def reasons_of(module: ModuleOnRanks) -> Iterator[str]:
    """Yield why participants could not be told, and what the simulator would refuse, as sentences."""
    collectives = () if module.cores is None else module.cores.collectives
    told = {match.name for match in module.matches if match.why is not None}
    unknown = [(match.why, match.name) for match in module.matches]
    unknown += [(each.unknown_because, each.name) for each in collectives if each.name not in told]
    yield from _named_together("", unknown)
    yield from _named_together("the simulator would refuse it: ", ((each.refusal, each.name) for each in collectives))


def _named_together(before: str, found: Iterable[tuple[str | None, str]]) -> Iterator[str]:
    """Yield a sentence for each reason, with those it holds of."""
    names: dict[str, list[str]] = {}
    for reason, name in found:
        if reason is not None:
            names.setdefault(reason, []).append(name)
    return (f"{_first_of(each)}: {before}{reason}." for reason, each in names.items())


def _module_lines(module: ModuleOnRanks, width: int | None) -> Iterator[Line]:
    yield from wrapped([styled(cut(module.name, _NAME_WIDTH), BOLD), styled(f" {module.path}", DIM)], width)
    if module.matches:
        yield from laid_out(match_table(module.matches), width)
    else:
        yield line("no collectives")
    for reason in reasons_of(module):
        yield BLANK
        yield from paragraph(reason, WARNING, width)
    if module.cores is not None:
        yield BLANK
        yield from laid_out(core_table(module.cores), width)
        left_out = module.cores.num_cores - _CORES_SHOWN
        if left_out > 0:
            yield (Span(f"... and {counted(left_out, 'more core', 'more cores')} (--format json lists all)", DIM),)


def _beginning(groups: DeviceList) -> str:
    """Write the first groups as HLO writes them."""
    size = groups.num_devices_per_group or 0
    number = min(groups.num_replica_groups, max(1, min(_GROUPS_SHOWN, _MEMBERS_SHOWN // max(1, size))))
    written = ",".join(_braced(groups.group(index)) for index in range(number))
    return written + (",…" if number < groups.num_replica_groups else "")


def _braced(ranks: Sequence[int]) -> str:
    if len(ranks) <= _MEMBERS_SHOWN:
        return "{" + ",".join(map(str, ranks)) + "}"
    half = _MEMBERS_SHOWN // 2
    return "{" + ",".join([*map(str, ranks[:half]), "...", *map(str, ranks[-half:])]) + "}"


def _axes(match: LayoutMatch) -> str:
    return UNKNOWN if match.axes is None else ",".join(match.axes) or "none"


def _named(match: LayoutMatch) -> str:
    """Name the layouts of a collective, those with another order of members as such."""
    if match.why is not None:
        return UNKNOWN
    in_order = match.matches if match.in_order is None else match.in_order
    names = [name if name in in_order else f"{name} (other order)" for name in match.matches]
    if match.first_group_only:
        names.append(f"only the first of {', '.join(match.first_group_only)}")
    return ", ".join(names) or "none"


def _where(group: Sequence[LayoutMatch]) -> str:
    first = group[0]
    place = "" if first.line is None else f" line {first.line}"
    others = f" and {len(group) - 1:,} more" if len(group) > 1 else ""
    return f"{cut(printable(first.name), _NAME_WIDTH)}{place}{others}"


def _first_of(names: Sequence[str]) -> str:
    others = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return f"{cut(printable(names[0]), _NAME_WIDTH)}{others}"


def _peers(peers: Peers | None) -> str:
    if peers is None:
        return "not in it"
    if peers.position is not None:
        return _in_row(peers.peers) or "alone"
    if not peers.peers:
        return "itself"
    ways = [("to", peers.sends_to), ("from", peers.receives_from)]
    return ", ".join(f"{way} {_in_row(ranks)}" for way, ranks in ways if ranks)


def _in_row(ranks: Sequence[int]) -> str:
    """Write ranks, of many only the first and last."""
    if len(ranks) <= _MEMBERS_SHOWN:
        return " ".join(map(str, ranks))
    half = _MEMBERS_SHOWN // 2
    return " ".join([*map(str, ranks[:half]), "...", *map(str, ranks[-half:])])
