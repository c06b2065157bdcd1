"""Words that stand in no computation: the rest of a text that was cut or damaged is never taken for nothing."""

from __future__ import annotations

import pytest

from commlens.analysis import report
from commlens.hlo import load, load_all
from commlens.hlo.text.scanner import BLOCK

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


@pytest.mark.parametrize(
    "between", ["/*\n more\n*/ ", "\n/* more */ // and more\n /* one\n*/", "\n/*\n" + ENTRY + "*/\n"]
)
@pytest.mark.parametrize("lines", [1, HELPER.count("\n")], ids=["header", "computation"])
def test_a_comment_over_several_lines_hides_what_it_holds_and_nothing_behind_it(lines: int, between: str) -> None:
    """A computation is found right behind a comment of several lines, and one inside of it is none."""
    written = (HELPER + ENTRY).splitlines(keepends=True)
    module = load("".join(written[:lines]).rstrip() + between + "".join(written[lines:]))
    assert [each.name for each in module.computations] == ["add", "e"]
    assert [(row.computation, row.trip_count) for row in report(module).collectives] == [("e", 1)]
    assert not module.unread


@pytest.mark.parametrize("behind", ["*/\n", "*/ "], ids=["on its own line", "before the entry"])
def test_a_comment_may_go_on_behind_what_is_scanned_at_once(behind: str) -> None:
    """Where the next block of lines begins in a comment, no computation is found in there, and lines are counted on."""
    hidden = ENTRY * 100
    filler = HELPER.partition("\n")[2].replace("add", "other")
    before = HELPER + filler * ((BLOCK - len(hidden) // 2) // len(filler))
    text = f"{before}/*\n{hidden}{behind}{ENTRY}"
    assert len(before) < BLOCK < len(before + hidden)
    module = load(text)
    assert [each.name for each in module.computations if each.name != "other"] == ["add", "e"]
    [row] = report(module).collectives
    assert (row.trip_count, row.line) == (1, text[: text.rindex("ROOT g")].count("\n") + 1)


@pytest.mark.parametrize("number", [1, 40, 1600])
def test_a_comment_hides_what_it_holds_however_long_it_is(number: int) -> None:
    """Computations that somebody commented out run nowhere; behind a comment without an end all of them do."""
    module = load(f"{HELPER}/*\n{ENTRY * number}*/\n{ENTRY}")
    assert ([each.name for each in module.computations], module.unread) == (["add", "e"], ())
    assert len(load(f"{HELPER}/*\n{ENTRY * number}{ENTRY}").computations) == 2 + number


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
