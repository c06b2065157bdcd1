"""The table of ``neff``: how many workers a program needs, and in which groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from commlens.views.columns import Column, Table, laid_out
from commlens.views.lines import BLANK, BOLD, DIM, WARNING, Line, Span, line, paragraph, styled, wrapped
from commlens.views.words import UNKNOWN, counted, cut, pad, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_TEXT: Final = 500
_MOST_ROWS: Final = 32
_LABEL_WIDTH: Final = 13
_LEAST: Final = 24


class TopologyFacts(Protocol):
    """One topology."""

    @property
    def num_groups(self) -> int:
        """Number of groups."""
        ...

    @property
    def group_size(self) -> int | None:
        """Ranks in each group; None where the groups differ in size."""
        ...

    @property
    def num_ranks(self) -> int:
        """Sizes of all groups together."""
        ...

    @property
    def text(self) -> str:
        """The groups."""
        ...


class PairFacts(Protocol):
    """One set of pairs."""

    @property
    def num_pairs(self) -> int:
        """Number of pairs."""
        ...

    @property
    def largest(self) -> int | None:
        """The largest id."""
        ...

    @property
    def groups(self) -> str:
        """The groups that the pairs connect."""
        ...

    @property
    def text(self) -> str:
        """The pairs."""
        ...


class RankFacts(Protocol):
    """One rank."""

    @property
    def rank(self) -> int:
        """The rank."""
        ...

    @property
    def cores(self) -> Sequence[int]:
        """Its physical cores."""
        ...

    @property
    def groups(self) -> Sequence[int | None]:
        """The number of its group in each topology."""
        ...


class CCAnswer(Protocol):
    """The CC info of one program, as far as views need it."""

    @property
    def path(self) -> str:
        """The input as the user named it."""
        ...

    @property
    def kind(self) -> str:
        """What it is."""
        ...

    @property
    def facts(self) -> Sequence[str]:
        """What there is to say of it, a few words each."""
        ...

    @property
    def reading(self) -> str:
        """The reading that was asked for."""
        ...

    @property
    def world_size(self) -> int | None:
        """The number of workers by that reading."""
        ...

    @property
    def world_size_documented(self) -> int | None:
        """The number by the documented reading."""
        ...

    @property
    def world_size_total(self) -> int | None:
        """The number by the other reading."""
        ...

    @property
    def rank_world_size(self) -> int | None:
        """The number that is stated outright."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the groups or pairs of every collective are known; else these numbers are lower bounds."""
        ...

    @property
    def refusals(self) -> Sequence[str]:
        """Why the documented reading has none."""
        ...

    @property
    def cores_per_lnc(self) -> int | None:
        """Physical cores per rank."""
        ...

    @property
    def topologies(self) -> Sequence[TopologyFacts]:
        """The topologies."""
        ...

    @property
    def pair_sets(self) -> Sequence[PairFacts]:
        """The sets of pairs."""
        ...

    @property
    def ranks(self) -> Sequence[RankFacts] | None:
        """The ranks with their cores."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What a reader has to know of the answer."""
        ...

    @property
    def all_notes(self) -> Sequence[str]:
        """The same, with what was wrong in the input."""
        ...

    def as_dict(self) -> dict[str, object]:
        """Return the answer as JSON holds it."""
        ...


def cc_lines(answer: CCAnswer, width: int | None) -> Iterator[Line]:
    """Yield the table view of the CC info of one program.

    Args:
        answer: the answer.
        width: columns of the terminal, None for as many as it takes.
    """
    yield line(styled(cut(printable(answer.path), _MOST_TEXT), BOLD))
    *facts, last = answer.facts
    yield from wrapped([*(styled(f"{fact},", DIM) for fact in facts), styled(last, DIM)], width)
    yield BLANK
    for name, text in cc_facts(answer):
        style = WARNING if name in ("refused", "warnings") else ""
        words = [styled(word, style) for word in cut(printable(text), 2 * _MOST_TEXT).split()]
        for place, one in enumerate(wrapped(words, None if width is None else width - _LABEL_WIDTH)):
            yield (Span(pad("" if place else name, _LABEL_WIDTH, "left"), DIM), *one)
    for table in cc_tables(answer):
        yield BLANK
        yield from laid_out(Table(table.columns, table.rows[:_MOST_ROWS]), width)
        if len(table.rows) > _MOST_ROWS:
            yield (Span(f"... and {len(table.rows) - _MOST_ROWS:,} more (--format json has them all)", DIM),)
    for note in answer.notes:
        yield BLANK
        yield from paragraph(note, DIM, width)


def cc_facts(answer: CCAnswer) -> Iterator[tuple[str, str]]:
    """Yield names and texts of what a program says as a whole."""
    documented, total = answer.world_size_documented, answer.world_size_total
    first, second = (bounded(number, answer.complete) for number in (documented, total))
    how = {
        "documented": f"{first} by the documented reading: a topology counts by its largest group",
        "total": f"{second} by the total reading: a topology counts by all its groups together",
    }
    yield "world size", how.pop(answer.reading, UNKNOWN)
    if documented != total:
        yield from (("", text) for text in how.values())
    yield from (("refused", refusal) for refusal in answer.refusals)
    if answer.rank_world_size is not None:
        yield "stated", f"#rank_world_size {answer.rank_world_size}"
    warnings = len(answer.all_notes) - len(answer.notes)
    if warnings:
        yield "warnings", f"{warnings:,} on standard error, and in --format json"
    if answer.cores_per_lnc is not None:
        yield "cores", f"{counted(answer.cores_per_lnc, 'physical core')} per rank"


def bounded(number: int | None, complete: bool | None) -> str:
    """Return a world size, as a lower bound where something is missing.

    Example:
        >>> bounded(4096, True), bounded(4096, False), bounded(None, False)
        ('4,096', '>= 4,096', '?')
    """
    return f">= {_known(number)}" if number is not None and complete is False else _known(number)


def cc_tables(answer: CCAnswer) -> Iterator[Table]:
    """Yield the tables that are not empty: topologies, pairs, ranks."""
    if answer.topologies:
        yield _topologies(answer.topologies)
    if answer.pair_sets:
        yield _pair_sets(answer.pair_sets)
    if answer.ranks:
        yield _ranks(answer.ranks)


def _topologies(rows: Sequence[TopologyFacts]) -> Table:
    numbers = [Column(title, "right") for title in ("topology", "groups", "group size", "ranks")]
    cells = [
        [
            Span(str(place)),
            Span(f"{row.num_groups:,}"),
            Span(_known(row.group_size)),
            Span(f"{row.num_ranks:,}"),
            _text(row.text),
        ]
        for place, row in enumerate(rows)
    ]
    return Table((*numbers, Column("replica groups", least=_LEAST)), cells)


def _pair_sets(rows: Sequence[PairFacts]) -> Table:
    numbers = [Column(title, "right") for title in ("permute", "pairs", "largest id")]
    texts = [Column("connected", least=_LEAST), Column("source-target pairs", least=_LEAST)]
    cells = [
        [
            Span(str(place)),
            Span(f"{row.num_pairs:,}"),
            Span(_known(row.largest)),
            _text(row.groups),
            _text(row.text),
        ]
        for place, row in enumerate(rows)
    ]
    return Table((*numbers, *texts), cells)


def _ranks(rows: Sequence[RankFacts]) -> Table:
    topologies = range(len(rows[0].groups))
    columns = [Column("rank", "right"), Column("cores", "right")]
    columns += [Column(f"group in topology {number}", "right") for number in topologies]
    cells = [
        [
            Span(str(row.rank)),
            Span(_range(row.cores)),
            *(Span("none" if group is None else str(group)) for group in row.groups),
        ]
        for row in rows
    ]
    return Table(tuple(columns), cells)


def _range(cores: Sequence[int]) -> str:
    return str(cores[0]) if len(cores) == 1 else f"{cores[0]}-{cores[-1]}"


def _known(number: int | None) -> str:
    return UNKNOWN if number is None else f"{number:,}"


def _text(text: str) -> Span:
    return Span(cut(printable(text), _MOST_TEXT))
