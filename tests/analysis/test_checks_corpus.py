"""What the rules find in real modules: the exact list, and nothing that is not there.

``tests/data/check_corpus.json`` says, file by file, how often each rule finds something. It is short enough to read:
where a rule finds more or less than before, look at the modules before the list is changed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checking import ALL_RULES
from commlens.analysis import check
from commlens.errors import InputError
from commlens.hlo import load_all

if TYPE_CHECKING:
    from commlens.analysis import Problem

TESTS = Path(__file__).parents[1]
EXPECTED: dict[str, dict[str, int]] = json.loads((TESTS / "data" / "check_corpus.json").read_text(encoding="utf-8"))
TEXTS = ("jax-*/*.txt*", "torch_xla-*/*.txt*", "dump_dir/*optimizations.txt", "public/*")
PROGRAMS = ("jax-*/*.txt*", "torch_xla-*/*.txt*")


NEEDS_TABLES = "all-reduce-slice"
"""The rule that works out indices. XLA prints tables of more than ten values as ``{...}``; a proto has them."""


def problems_of(file: Path) -> list[Problem]:
    """Check every module of a file; a page about the files holds none."""
    try:
        modules = load_all(file)
    except InputError:
        assert file.suffix == ".md"
        return []
    return [problem for module in modules for problem in check(module, ALL_RULES)]


def counts_of(problems: list[Problem]) -> dict[str, int]:
    """Count findings by rule and severity."""
    return dict(sorted(Counter(f"{each.rule.id} {each.severity}" for each in problems).items()))


@pytest.mark.corpus(*TEXTS)
def test_findings_are_those_of_the_list(corpus_file: Path) -> None:
    """A real module has the findings that were looked at by hand, and no other."""
    key = f"{corpus_file.parent.name}/{corpus_file.name}"
    assert counts_of(problems_of(corpus_file)) == EXPECTED.get(key, {})


@pytest.mark.corpus(*PROGRAMS)
def test_proto_has_the_findings_of_the_text(corpus_file: Path) -> None:
    """The two files of one program differ in lines alone, and where the text leaves the values of a table out."""
    (proto,) = corpus_file.parent.glob(f"{corpus_file.name.split('.txt')[0]}.pb*")
    [text] = load_all(corpus_file)
    [other] = load_all(proto, replicas=text.replica_count, partitions=text.num_partitions)
    as_text, as_proto = (
        Counter((each.rule.id, each.severity, *sorted(each.instructions)) for each in check(module, ALL_RULES))
        for module in (text, other)
    )
    more = as_proto - as_text
    assert as_text <= as_proto
    assert not more or b"constant({...})" in text.to_bytes()
    assert {rule for rule, *_ in more} <= {NEEDS_TABLES}


def test_rules_that_find_errors_in_real_modules_are_few() -> None:
    """The list has no errors but those that the page on checks explains."""
    errors = {key.split()[0] for counts in EXPECTED.values() for key in counts if key.endswith(" error")}
    assert errors == {"channel-two-opcodes", "id-out-of-range", "shape-mismatch"}


def test_the_page_has_the_list() -> None:
    """docs/reference/checks.md says of every rule in how many of these files it finds something."""
    page = (TESTS.parent / "docs" / "reference" / "checks.md").read_text(encoding="utf-8")
    section = page[page.index("## On real modules") :]
    stated = {
        rule: int(number) for rule, number in re.findall(r"^\| ([\w-]+) \| (\d+) \|", section, flags=re.MULTILINE)
    }
    counted = Counter(rule for counts in EXPECTED.values() for rule in {key.split()[0] for key in counts})
    assert stated == dict(counted)
