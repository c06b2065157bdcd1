"""The answers of ``neff`` in every form: the CC info of one program, and the entries of a compile cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from commlens.views.cache_table import cache_lines, cache_table, folders_of
from commlens.views.csv_cells import csv_lines
from commlens.views.json_text import to_json
from commlens.views.markdown import markdown_prose, markdown_table, markdown_text
from commlens.views.neff_table import cc_facts, cc_lines, cc_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.views.cache_table import CacheAnswer
    from commlens.views.lines import Line
    from commlens.views.neff_table import CCAnswer

_SCHEMA: Final = "commlens.neff/1"

CC_COLUMNS: Final = (
    "path",
    "kind",
    "list",
    "index",
    "num_groups",
    "group_size",
    "num_ranks",
    "groups",
    "reading",
    "world_size",
    "world_size_documented",
    "world_size_total",
    "rank_world_size",
    "complete",
)
"""Columns of the CSV form: a line per topology and set of pairs."""

CACHE_COLUMNS: Final = (
    "path",
    "compiler",
    "module_hash",
    "flags_hash",
    "module",
    "done",
    "neff_size",
    "flags",
    "flags_match",
    "lnc",
    "cc_from",
    "replica_groups",
    "src_target_pairs",
    "world_size_documented",
    "world_size_total",
    "complete",
    "problems",
)
"""Columns of the CSV form of a cache: a line per entry."""


@dataclass(frozen=True, slots=True)
class CCInfoView:
    """The CC info of one program.

    Attributes:
        answer: the answer.
    """

    answer: CCAnswer

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield the lines of the table view."""
        return cc_lines(self.answer, width)

    def json(self) -> Iterator[str]:
        """Yield one JSON object on one line."""
        yield to_json({"schema": _SCHEMA, **self.answer.as_dict()}) + "\n"

    def csv(self) -> Iterator[str]:
        """Yield a heading and a line per topology and set of pairs; one line where there is neither."""
        answer = self.answer
        sizes = [
            answer.reading,
            answer.world_size,
            answer.world_size_documented,
            answer.world_size_total,
            answer.rank_world_size,
            answer.complete,
        ]
        rows: list[Sequence[object]] = [
            ("replica_groups", place, row.num_groups, row.group_size, row.num_ranks, row.text)
            for place, row in enumerate(answer.topologies)
        ]
        rows += [
            ("src_target_pairs", place, row.num_pairs, None, None, row.text)
            for place, row in enumerate(answer.pair_sets)
        ]
        return csv_lines(CC_COLUMNS, ([answer.path, answer.kind, *row, *sizes] for row in rows or [[None] * 6]))

    def markdown(self) -> Iterator[str]:
        """Yield what is known of the program, then its tables and notes."""
        answer = self.answer
        yield f"### {markdown_text(answer.path)}\n\n"
        yield ", ".join(markdown_prose(fact) for fact in answer.facts) + "\n\n"
        yield "| key | value |\n| --- | --- |\n"
        for key, value in cc_facts(answer):
            yield f"| {markdown_text(key)} | {markdown_prose(value)} |\n"
        for table in cc_tables(answer):
            yield "\n"
            yield from markdown_table(table)
        for note in answer.all_notes:
            yield f"\n{markdown_prose(note)}\n"


@dataclass(frozen=True, slots=True)
class CompileCacheView:
    """The entries of a compile cache.

    Attributes:
        answer: the answer.
    """

    answer: CacheAnswer

    def table(self, width: int | None) -> Iterator[Line]:
        """Yield a row per entry, its problems below it."""
        return cache_lines(self.answer, width)

    def json(self) -> Iterator[str]:
        """Yield one JSON object on one line."""
        yield to_json({"schema": _SCHEMA, **self.answer.as_dict()}) + "\n"

    def csv(self) -> Iterator[str]:
        """Yield a heading and a line per entry."""
        rows: list[list[object]] = []
        for entry in self.answer.entries:
            values = {**entry.as_dict(), "problems": "; ".join(problem.what for problem in entry.problems)}
            groups, pairs = ([row.text for row in rows] for rows in (entry.topologies, entry.pair_sets))
            values |= {"replica_groups": " ".join(groups), "src_target_pairs": " ".join(pairs)}
            rows.append([values[column] for column in CACHE_COLUMNS])
        return csv_lines(CACHE_COLUMNS, rows)

    def markdown(self) -> Iterator[str]:
        """Yield the table as Markdown, then the problems."""
        yield from markdown_table(cache_table(self.answer))
        entries = self.answer.entries
        folders = folders_of(self.answer) or [""] * len(entries)
        for folder, entry in zip(folders, entries, strict=True):
            name = f"{folder}/{entry.name}" if folder else entry.name
            for problem in entry.problems:
                yield f"\n{markdown_text(name)}: {markdown_prose(problem.what)}\n"
