"""CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeGuard

from commlens.views.words import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What makes a spreadsheet take a cell for a formula, full-width forms included (OWASP, "CSV Injection")."""


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    r"""Yield a CSV document line by line.

    Args:
        columns: the headings.
        rows: values per row; see :func:`csv_cell`.

    Example:
        >>> list(csv_lines(["name", "axes"], [["=1+1", ["data", "model"]]]))
        ['name,axes\n', '\'=1+1,"data,model"\n']
    """
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    for row in chain([columns], rows):
        writer.writerow([csv_cell(value) for value in row])
        yield line.getvalue()
        line.seek(0)
        line.truncate()


def csv_cell(value: object) -> str:
    r"""Return a value as the text of a cell that no spreadsheet takes for a formula.

    None is an empty cell, flags are ``true`` and ``false``, lists of texts and numbers are joined by commas, lists of
    lists are written as HLO writes groups, mappings as ``key=value`` joined by semicolons.

    Example:
        >>> csv_cell(None), csv_cell(True), csv_cell([[0, 1], [2, 3]]), csv_cell({"a": "1"}), csv_cell(-1)
        ('', 'true', '{{0,1},{2,3}}', 'a=1', "'-1")
    """
    text = printable(plain_value(value))
    return "'" + text if text.startswith(_FORMULA_STARTS) else text


def plain_value(value: object) -> str:
    """Return a value as text, see :func:`csv_cell`, without care for spreadsheets."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if _is_mapping(value):
        return ";".join(f"{key}={plain_value(item)}" for key, item in value.items())
    return _joined(value) if _is_list(value) else str(value)


def _is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    return isinstance(value, Mapping)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, (list, tuple))


def _joined(values: Sequence[object]) -> str:
    if any(map(_is_list, values)):
        return "{" + ",".join("{" + plain_value(value) + "}" for value in values) + "}"
    return ",".join(plain_value(value) for value in values)
