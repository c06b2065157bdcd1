"""The table of ``hosts``: where the schedules of hosts part, at a glance."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.views.alike import SHOWN
from commlens.views.columns import Column, Table, laid_out
from commlens.views.lines import BLANK, BOLD, DIM, WARNING, Line, Span, line, paragraph, styled, wrapped
from commlens.views.sentence_rows import MOST_SHOWN, SentenceRow, below, sentence_table, shortened_sentence
from commlens.views.words import counted, cut, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlens.analysis import Deadlock, FirstDifference, HostChange, HostDifference, HostPlace, Hosts, ModuleOnHosts

_STYLES: Final[Mapping[str, str]] = MappingProxyType(
    {"changed": "yellow", "missing": "red", "extra": "green", "order": "magenta"}
)
_MOST_PATHS: Final = 3
_MOST_CHANGES: Final = 200
_MOST_NAMES: Final = 6
_MOST_KINDS: Final = 4


def hosts_lines(hosts: Hosts, width: int | None) -> Iterator[Line]:
    """Yield the table view of a comparison of hosts.

    Args:
        hosts: the comparison.
        width: columns of the terminal, None for as many as it takes.
    """
    yield from paragraph(summary_of(hosts), BOLD, width)
    for module in hosts.modules:
        yield BLANK
        words = (Span(word) for word in verdict_of(module).split(" "))
        yield from wrapped([Span(cut(printable(module.module), SHOWN), BOLD), *words], width)
        yield from _module_lines(module, width)
    for note in hosts.notes:
        yield BLANK
        yield from paragraph(f"{note}.", DIM, width)


def summary_of(hosts: Hosts) -> str:
    """Say in one sentence how hosts compare."""
    number = counted(len(hosts.hosts), "host")
    if len(hosts.hosts) == 1:
        return f"{number}: nothing to compare"
    absent = "; ".join(f"{_some(lacking)} {_have(lacking)} no module {name}" for name, lacking in hosts.absent.items())
    if hosts.agree:
        return f"{number} agree"
    if hosts.agree is None:
        return f"{number}: nothing differs in what could be read; whether they agree cannot be said"
    return f"{number} do not agree" + (f": {absent}" if absent else "")


def _have(hosts: Sequence[str]) -> str:
    return "has" if len(hosts) == 1 else "have"


def verdict_of(module: ModuleOnHosts) -> str:
    """Say in a few words how the hosts of one module compare."""
    number = counted(len(module.paths), "host")
    if len(module.paths) == 1:
        return f"on {number}"
    if module.agree is None:
        return f"on {number}: something could not be read"
    if module.agree:
        return f"on {number}: the same collectives in the same order"
    different = sum(len(difference.paths) for difference in module.differences)
    if not different:
        return f"on {number}: the same collectives, though not for the same numbers of replicas and partitions"
    return f"on {number}: {different:,} of them {'differs' if different == 1 else 'differ'} from the others"


def position_table(first: FirstDifference) -> Table:
    """Return what the hosts do where their schedules part, those that do the same together."""
    columns = (Column("host"), Column(f"at position {first.position:,}"))
    return Table(
        columns, [[Span(_some(paths)), Span(shortened_sentence(what))] for what, paths in _at_position(first).items()]
    )


def _position_lines(first: FirstDifference, width: int | None) -> Iterator[Line]:
    running = " of what runs" if first.order == "running" else ""
    if first.order == "listed" and first.running_position != first.position:
        running = f" of the list; as they run, at position {first.running_position:,} already"
    yield line(styled(f"they part at position {first.position:,}{running}", BOLD))
    for what, paths in _at_position(first).items():
        yield from wrapped([Span(word) for word in _some(paths).split(" ")], width, indent="    ")
        yield from below(what, width)


def _at_position(first: FirstDifference) -> dict[str, list[str]]:
    """Return what hosts do where their schedules part, and which of them do that."""
    alike: dict[str, list[str]] = {}
    for path, what in first.members.items():
        alike.setdefault(what, []).append(path)
    return alike


def change_table(difference: HostDifference, width: int | None, *, in_one_line: bool = False) -> Table:
    """Return the table of what some hosts do in another way.

    Args:
        difference: what differs.
        width: where the lines below rows are wrapped.
        in_one_line: whether what differs stands in a column of its own, instead of below.
    """
    rows = [
        SentenceRow(_cells(each), [Span(_name(each.here)), Span(_name(each.usual))], _names(each), each.what)
        for each in difference.changes[:_MOST_CHANGES]
    ]
    columns, names = (Column("kind"), Column("opcode")), (Column("here"), Column("others"))
    return sentence_table(columns, names, rows, width, in_one_line=in_one_line)


def _names(change: HostChange) -> str:
    sides = (("here", change.here), ("others", change.usual))
    return ", ".join(f"{word} {_name(place)}" for word, place in sides if place is not None)


def notes_of(module: ModuleOnHosts) -> Iterator[tuple[str, str]]:
    """Yield what else there is to say of a module, each with its style."""
    for difference in module.differences:
        for deadlock in difference.deadlocks[:_MOST_CHANGES]:
            names, paths = _listed(deadlock.collectives), " and ".join(deadlock.paths)
            how = _blocks(deadlock) if deadlock.num_blocks else _ring(deadlock)
            yield f"deadlock: {names} run in different order on {paths}; {how}.", WARNING
    yield from ((f"{note}.", DIM) for note in _rest_notes(module))
    yield from ((f"{note}.", DIM) for note in module.notes)


def _blocks(deadlock: Deadlock) -> str:
    """Say which devices wait for each other in two collectives that both of them are in."""
    blocks = ", ".join("{" + ",".join(map(str, block)) + "}" for block in deadlock.devices)
    more = deadlock.num_blocks - len(deadlock.devices)
    others = f" and {more:,} blocks more" if more else ""
    return (
        f"any two devices of {cut(blocks, MOST_SHOWN)}{others} wait for each other if one is on a host of the first "
        "kind and one on a host of the second"
    )


def _ring(deadlock: Deadlock) -> str:
    """Say how some devices can wait for each other in a ring."""
    ring = deadlock.ring
    following = [*ring[1:], ring[0]]
    steps = ", ".join(
        f"{wait.device} for {other.device} in {wait.waits_in}" for wait, other in zip(ring, following, strict=True)
    )
    hosts = [_listed([str(wait.device) for wait in ring if wait.path == path]) for path in deadlock.paths]
    devices = ", ".join(str(wait.device) for wait in ring)
    return (
        f"devices {cut(devices, MOST_SHOWN)} may wait for each other in a ring, {cut(steps, MOST_SHOWN)}. They do if "
        f"{cut(hosts[0], MOST_SHOWN)} are on hosts of the first kind and {cut(hosts[1], MOST_SHOWN)} on hosts of the "
        "second; which device is on which host the modules do not say"
    )


def _listed(words: Sequence[str]) -> str:
    """Name some things, with an "and" before the last one."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def _rest_notes(module: ModuleOnHosts) -> Iterator[str]:
    """Say who differs in what does not communicate."""
    formats = {each.format for each in module.rest}
    for form in sorted(formats):
        first, *others = [each for each in module.rest if each.format == form]
        unknown = [path for each in (first, *others) if each.fingerprint is None for path in each.paths]
        if others and unknown:
            yield f"what does not communicate cannot be compared for {_some(unknown)}: something is unreadable"
            continue
        for each in others[:_MOST_KINDS]:
            names = ", ".join(each.differs_in[:_MOST_NAMES])
            more = len(each.differs_in) - _MOST_NAMES
            where = f", in {names}{f' and {more:,} more' if more > 0 else ''}" if names else ""
            yield f"apart from communication {_some(each.paths)} {_differ(each.paths)} from {first.paths[0]}{where}"
        if len(others) > _MOST_KINDS:
            yield f"apart from communication hosts are of {len(others) + 1:,} kinds; --format json lists them all"
    if len(formats) > 1:
        yield "what does not communicate is compared among texts and among protos apart"


def _differ(paths: Sequence[str]) -> str:
    return "differs" if len(paths) == 1 else "differ"


def _module_lines(module: ModuleOnHosts, width: int | None) -> Iterator[Line]:
    if module.first_difference is not None:
        yield BLANK
        yield from _position_lines(module.first_difference, width)
    for difference in module.differences:
        yield BLANK
        only = ": the same collectives in another order" if difference.order_only else ""
        parting = f"{_some(difference.paths)} against {difference.usual}, from position {difference.position:,} on"
        yield from wrapped([Span(printable(word), BOLD) for word in f"{parting}{only}".split(" ")], width)
        yield from laid_out(change_table(difference, width), width)
        if len(difference.changes) > _MOST_CHANGES:
            yield line(styled(f"{len(difference.changes) - _MOST_CHANGES:,} more; --format json lists them all", DIM))
    for note, style in notes_of(module):
        yield BLANK
        yield from paragraph(printable(note), style, width)


def _cells(change: HostChange) -> list[Span]:
    return [
        Span(change.kind, _STYLES[change.kind]),
        Span(change.opcode),
    ]


def _name(place: HostPlace | None) -> str:
    if place is None:
        return "-"
    where = "" if place.line is None else f" line {place.line}"
    return f"{cut(printable(place.name), SHOWN)}{where}"


def _some(paths: Sequence[str]) -> str:
    """Name a few hosts, and say how many more there are."""
    shown = [cut(printable(path), SHOWN) for path in paths[:_MOST_PATHS]]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
