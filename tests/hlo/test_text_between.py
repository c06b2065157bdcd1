"""Words that stand in no computation: the rest of a text that was cut or damaged is never taken for nothing."""

from __future__ import annotations

import pytest

from commlens.analysis import report
from commlens.hlo import load, load_all

HELPER = "HloModule a, num_partitions=3\nadd {\n  x = f32[] parameter(0)\n  ROOT r = f32[] negate(x)\n}\n"
ENTRY = "ENTRY e {\n  p = f32[6] parameter(0)\n  ROOT g = f32[6] all-reduce(p), replica_groups={}, to_apply=add\n}\n"
SIGNED = ENTRY.replace("ENTRY e", "ENTRY %e (p: f32[6]) -> f32[6]")


@pytest.mark.parametrize("entry", [ENTRY, SIGNED], ids=["without a signature", "with one"])
@pytest.mark.parametrize("comment", ["", "/* more */\n", "// more\n"])
def test_a_text_that_is_cut_before_its_entry_says_so(entry: str, comment: str) -> None:
    """From the first letter of the entry to its last brace something is unread, and nobody knows how often it runs."""
    for end in range(1, len(entry) - 1):
        module = load(f"{HELPER}\n{comment}{entry[:end]}")
        answer = report(module)
        assert answer.unread, entry[:end]
        assert all(row.trip_count in (None, 1) for row in answer.collectives)
    assert not report(load(f"{HELPER}\n{comment}{entry}")).unread


@pytest.mark.parametrize("stump", ["E", "ENTR", "ENTRY", "%", "%ma", "main", "main (", "main (p: f32[6]) -> f32[6]"])
def test_the_stump_is_named_with_its_line(stump: str) -> None:
    """What is left of the computation is shown, and the last whole one is not taken for the entry."""
    module = load(f"{HELPER}\n\n{stump}")
    [item] = module.unread
    assert (item.where, item.text, item.why) == ("8", stump, "expected '{' and instructions, found the end")
    assert module.entry is None


@pytest.mark.parametrize("word", ["ENTR", "%ma (p: f3", "junk", "}, and more"])
def test_words_between_computations_are_unread(word: str) -> None:
    """Inside a module nothing stands between computations but blank lines and comments."""
    [item] = load(f"{HELPER}\n{word}\n\n{ENTRY}").unread
    assert item.where == "7"
    assert item.why == "expected a computation, found other words"


@pytest.mark.parametrize(
    "between",
    [
        "\n\n\n\n",
        "\n// a comment with words\n\n",
        "\n/* ENTRY\n more */\n",
        "\n/* more */ ",
        "\nI0101 12:00:00.000001 7 file.cc:1] a line of a log\n",
    ],
)
def test_what_may_stand_between_computations(between: str) -> None:
    """Blank lines, comments and the lines of a log say nothing."""
    assert not load(f"{HELPER}{between}{ENTRY}").unread


@pytest.mark.parametrize("behind", [', execution_thread="other"', ', a=b, c="d e"'])
def test_attributes_of_a_computation_are_its_own(behind: str) -> None:
    """The thread of a computation stands behind its brace; a stump behind that is one all the same."""
    helper = HELPER.rstrip() + behind + "\n\n\n"
    assert not load(helper + ENTRY).unread
    assert [item.text for item in load(helper + "ENTR").unread] == ["ENTR"]


@pytest.mark.parametrize(
    "behind", ["\nthe end of it.\n", "\n## END\n\n[Graph]\n  mark_step (/a/b.py:1)\n", "\n\n\n", "\n// ENTR"]
)
def test_prose_behind_a_module_is_no_stump(behind: str) -> None:
    """Logs hold modules, and go on behind them."""
    assert not load(HELPER + ENTRY + behind).unread


def test_each_module_of_a_file_has_its_own_end() -> None:
    """A stump before the header of the next module belongs to the first."""
    first, second = load_all(f"{HELPER}\nENTR\n\n{HELPER}\n{ENTRY}")
    assert [item.text for item in first.unread] == ["ENTR"]
    assert not second.unread
