"""The table of a Neuron compile cache: a row per entry, what is wrong with it below."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Protocol

from commlens.views.columns import Column, Table, laid_out
from commlens.views.lines import BLANK, BOLD, WARNING, Line, Span, line, styled, wrapped
from commlens.views.neff_table import bounded
from commlens.views.words import UNKNOWN, byte_size, counted, cut, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from commlens.views.neff_table import PairFacts, TopologyFacts

_MOST_TEXT: Final = 200
_LEAST: Final = 16
_INDENT: Final = "        "


class ProblemFacts(Protocol):
    """Something that is wrong."""

    @property
    def what(self) -> str:
        """A sentence."""
        ...


class EntryFacts(Protocol):
    """One entry of a cache."""

    @property
    def path(self) -> Path:
        """Its folder."""
        ...

    @property
    def name(self) -> str:
        """The name of its folder."""
        ...

    @property
    def module_name(self) -> str | None:
        """The name of its module."""
        ...

    @property
    def done(self) -> bool:
        """Whether its compilation is marked as finished."""
        ...

    @property
    def neff_size(self) -> int | None:
        """Size of its NEFF in bytes."""
        ...

    @property
    def flags_match(self) -> bool | None:
        """Whether the flags have the hash in the name."""
        ...

    @property
    def lnc(self) -> int | None:
        """Physical cores per rank."""
        ...

    @property
    def world_size_documented(self) -> int | None:
        """Workers by the documented reading."""
        ...

    @property
    def world_size_total(self) -> int | None:
        """Workers by the total reading."""
        ...

    @property
    def complete(self) -> bool | None:
        """Whether nothing is missing that these numbers are made of; None where nothing is known."""
        ...

    @property
    def topologies(self) -> Sequence[TopologyFacts]:
        """Its topologies."""
        ...

    @property
    def pair_sets(self) -> Sequence[PairFacts]:
        """Its sets of pairs."""
        ...

    @property
    def problems(self) -> Sequence[ProblemFacts]:
        """What is wrong with it."""
        ...

    def as_dict(self) -> dict[str, object]:
        """Return the entry as JSON holds it."""
        ...


class CacheAnswer(Protocol):
    """A compile cache, as far as views need it."""

    @property
    def path(self) -> str:
        """Its folder."""
        ...

    @property
    def entries(self) -> Sequence[EntryFacts]:
        """Its entries."""
        ...

    def as_dict(self) -> dict[str, object]:
        """Return the cache as JSON holds it."""
        ...


def cache_lines(answer: CacheAnswer, width: int | None) -> Iterator[Line]:
    """Yield the table view of a cache.

    Args:
        answer: the cache.
        width: columns of the terminal, None for as many as it takes.
    """
    problems = sum(len(entry.problems) for entry in answer.entries)
    yield line(styled(cut(printable(answer.path), _MOST_TEXT), BOLD))
    found = counted(problems, "problem") if problems else "no problems"
    yield (Span(f"{counted(len(answer.entries), 'entry', 'entries')}, "), Span(found, WARNING if problems else ""))
    yield BLANK
    table = cache_table(answer)
    details = [tuple(_problem_lines(entry, width)) for entry in answer.entries]
    yield from laid_out(Table(table.columns, table.rows, details), width)


def cache_table(answer: CacheAnswer) -> Table:
    """Return a row per entry; where these stand in several folders, each says in which."""
    folders = folders_of(answer)
    columns = (
        *(() if folders is None else (Column("folder", least=_LEAST),)),
        Column("entry"),
        Column("module", least=_LEAST),
        Column("done"),
        Column("neff", "right"),
        Column("flags"),
        Column("LNC", "right"),
        Column("world size", "right"),
        Column("total", "right"),
        Column("replica groups", least=_LEAST),
    )
    rows = [_row(entry) for entry in answer.entries]
    if folders is not None:
        rows = [[Span(printable(folder)), *row] for folder, row in zip(folders, rows, strict=True)]
    return Table(columns, rows)


def folders_of(answer: CacheAnswer) -> list[str] | None:
    """Return the folder inside the cache in which each entry stands; None where that is the same for all."""
    folders = [entry.path.parent for entry in answer.entries]
    if len(set(folders)) < 2:
        return None
    return [os.path.relpath(folder, answer.path) for folder in folders]


def _row(entry: EntryFacts) -> list[Span]:
    matches = {True: "match", False: "differ", None: "not checked"}[entry.flags_match]
    lists = [*(row.text for row in entry.topologies), *(f"pairs {row.text}" for row in entry.pair_sets)]
    return [
        Span(printable(entry.name)),
        Span(UNKNOWN if entry.module_name is None else printable(entry.module_name)),
        Span("yes" if entry.done else "no", "" if entry.done else WARNING),
        Span("none" if entry.neff_size is None else byte_size(entry.neff_size)),
        Span(matches, WARNING if entry.flags_match is False else ""),
        Span(_known(entry.lnc)),
        Span(bounded(entry.world_size_documented, entry.complete)),
        Span(bounded(entry.world_size_total, entry.complete)),
        Span(cut(printable(" ".join(lists)), _MOST_TEXT)),
    ]


def _problem_lines(entry: EntryFacts, width: int | None) -> Iterator[Line]:
    for problem in entry.problems:
        words = printable(cut(problem.what, 4 * _MOST_TEXT)).split()
        yield from wrapped([Span(word, WARNING) for word in words], width, indent=_INDENT)


def _known(number: int | None) -> str:
    return UNKNOWN if number is None else str(number)
