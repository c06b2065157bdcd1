"""CSV that spreadsheets and programs read alike."""

from __future__ import annotations

import csv
import io
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.views.csv_cells import csv_cell, csv_lines
from commlens.views.words import printable

FORMULA_STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


@given(st.text() | st.integers() | st.lists(st.text()) | st.dictionaries(st.text(), st.text()))
def test_no_cell_starts_a_formula(value: object) -> None:
    """Whatever stands in a module, no cell begins like a formula or holds a control character."""
    cell = csv_cell(value)
    assert not cell.startswith(FORMULA_STARTS)
    assert cell.isprintable()


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), max_size=5))
def test_any_reader_gets_the_cells_back(rows: list[list[str]]) -> None:
    """The standard reader finds the same cells, however many quotes and commas they hold."""
    document = "".join(csv_lines(["a", "b"], rows))
    read = list(csv.reader(io.StringIO(document, newline="")))
    assert read == [["a", "b"], *([csv_cell(text) for text in row] for row in rows)]


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        pytest.param(None, "", id="unknown"),
        pytest.param(False, "false", id="flag"),
        pytest.param(0, "0", id="zero-is-no-unknown"),
        pytest.param(2**70, "1180591620717411303424", id="large"),
        pytest.param([], "", id="empty-list"),
        pytest.param([1, None, 2.5], "1,,2.5", id="figures"),
        pytest.param([[0, 1], [2]], "{{0,1},{2}}", id="groups"),
        pytest.param(MappingProxyType({"stream": "1", "x": "=2"}), "stream=1;x==2", id="attributes"),
        pytest.param("=HYPERLINK(1)", "'=HYPERLINK(1)", id="formula"),
        pytest.param("-1", "'-1", id="minus"),
        pytest.param("\x1b[0m", "\\x1b[0m", id="control-characters"),
    ],
)
def test_values_as_cells(value: object, cell: str) -> None:
    """Every kind of value has one spelling."""
    assert csv_cell(value) == cell


def test_cells_are_plain_printable_text() -> None:
    """A text without formula and control characters is its own cell."""
    assert csv_cell("all-gather.1") == printable("all-gather.1")
