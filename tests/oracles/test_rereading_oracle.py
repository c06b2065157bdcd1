"""Modules that XLA reads, writes and reads again say the same: a sample of the collection, on every XLA that is at hand.

All of the collection is in ``soak``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens import load
from rereading import SPECS, changed_by_passes, changed_by_reading, collected, one_file_per_program, reread, rows

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "HloModule m, num_partitions=2\n\nENTRY e {\n  p = s32[2] parameter(0)\n"
GOOD = HEAD + "  ROOT r = s32[4] all-gather(p), replica_groups={{0,1}}, dimensions={0}\n}\n"
KILLING = GOOD.replace("{{0,1}}", "mesh['a'=2], device_ids=(0,1) {'a'}")
BAD = GOOD.replace("all-gather", "all-gathering")


def test_a_module_that_ends_xla_costs_one_answer(xla_python: str) -> None:
    """It is named, with the last words of its process; those beside it are read, and what is refused is no death."""
    texts = {"first": GOOD, "killing": KILLING, "bad": BAD, "also killing": KILLING, "last": GOOD}
    answers = reread({name: load(text) for name, text in texts.items()}, xla_python)
    assert list(answers) == list(texts)
    assert [name for name, answer in answers.items() if answer.died] == ["killing", "also killing"]
    assert "exit status -" in str(answers["killing"].refused)
    assert [name for name, answer in answers.items() if answer.refused is None] == ["first", "last"]
    assert "all-gathering" in str(answers["bad"].refused)
    assert answers["first"].text == answers["last"].text


def test_what_reading_changes_is_named(xla_python: str) -> None:
    """A module whose rows XLA does not keep, or that it dies of, is named; a channel of 0 is none in a proto."""
    modules = {
        name: load(text)
        for name, text in {
            "kept": GOOD,
            "channel 0": GOOD.replace("gather(p)", "gather(p), channel_id=0"),
            "killing": KILLING,
            "bad": BAD,
        }.items()
    }
    changed, read = changed_by_reading(modules, xla_python)
    assert [each.split(":")[0] for each in changed] == ["channel 0", "killing"]
    assert read == 2


def test_rows_are_what_is_compared() -> None:
    """Other groups, other attributes and another opcode are other rows; names, places and the order of attributes are not."""
    tagged = GOOD.replace("={0}", '={0}, frontend_attributes={a="1",b="2"}')
    same = tagged.replace('a="1",b="2"', 'b="2",a="1"').replace("ROOT r", "ROOT other").replace("\n\n", "\n\n\n")
    assert rows(load(tagged)) == rows(load(same))
    for old, new in (("{{0,1}}", "{{1,0}}"), ('a="1"', 'a="2"'), ("={0}, fr", "={0}, channel_id=1, fr")):
        assert rows(load(tagged)) != rows(load(tagged.replace(old, new)))
    assert rows(load(tagged.replace("{{0,1}}", "{{0,1}"))) != rows(load(tagged))


@pytest.mark.corpus
def test_every_program_reads_the_same_after_xla(corpus: Path, xla_python: str) -> None:
    """Load and write is the identity; rows of the module, of XLA's proto and of XLA's text are the same."""
    modules = collected(one_file_per_program(corpus), corpus)
    changed, read = changed_by_reading(modules, xla_python)
    assert changed == []
    assert read > 10
    assert all(load(module.to_bytes()).to_bytes() == module.to_bytes() for module in modules.values())


@pytest.mark.corpus
@pytest.mark.parametrize("spec", SPECS)
def test_ten_modules_are_read_after_every_pass(spec: str, corpus: Path, xla_python: str) -> None:
    """XLA reads what it read before, and prints the rows that the pass made."""
    files = one_file_per_program(corpus)
    ten = collected(files[:: len(files) // 10][:10], corpus)
    changed, _ = changed_by_passes(ten, SPECS[spec], xla_python)
    assert changed == []
    assert len(ten) == 10
