"""What every rule must be: documented, with an example of each kind, the same for text and proto."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import commlens.analysis.checks
import commlens.neuron.checks
from checking import ALL_RULES, ids_of
from commlens.analysis import RULES, check
from commlens.hlo import SEVERITIES, TARGETS, Rule, Subject, load
from commlens.neuron import RULES as NEURON_RULES
from proto_twin import proto_twin

if TYPE_CHECKING:
    from types import ModuleType

    from commlens.analysis import Problem
    from commlens.hlo import Example

each_rule = pytest.mark.parametrize("rule", ALL_RULES, ids=[rule.id for rule in ALL_RULES])

FIXED = """
unread used-before-defined id-out-of-range id-repeated group-empty groups-uneven groups-incomplete groups-off-mesh flag-without-channel
flattened-without-groups channel-two-opcodes send-recv-unpaired start-done-unpaired pair-repeated shape-mismatch
overlapping-in-loop all-reduce-slice all-gather-slice index-sum size-one-axis gathered-twice
"""
BESIDE = {
    "NEU-RANK-NEG": {"id-out-of-range", "groups-incomplete"},
    "NEU-SEND-RECV-CHANNEL": {"send-recv-unpaired"},
    "NEU-CHANNEL-MIXED-OPCODES": {"channel-two-opcodes"},
}
"""What other rules find in a bad example as well, because it is another side of the same fault."""

NOT_IN_A_TWIN = {"all-reduce-slice", "unread"}
"""Rules whose examples the proto twins of tests cannot hold: they have no constants, and all their attributes are whole."""

COMPARED = [rule for rule in ALL_RULES if rule.id not in NOT_IN_A_TWIN]

SOURCES = sorted(
    Path(file)
    for package in (commlens.analysis.checks, commlens.neuron.checks)
    for file in Path(package.__path__[0]).glob("*.py")
)


def found_in(example: Example) -> list[Problem]:
    """Run all rules on an example."""
    return check(load(example.text), ALL_RULES, deployment=example.deployment)


def test_ids_are_those_that_scripts_rely_on() -> None:
    """The stock rules are the documented ones; all others are about streams or Neuron."""
    assert [rule.id for rule in RULES] == FIXED.split()
    assert all(re.fullmatch(r"stream-[a-z-]+|NEU-[A-Z0-9-]+", rule.id) for rule in NEURON_RULES)
    assert len({rule.id for rule in ALL_RULES}) == len(ALL_RULES)


@pytest.mark.parametrize("package", [commlens.analysis.checks, commlens.neuron.checks])
def test_every_rule_file_is_in_the_tuple(package: ModuleType) -> None:
    """A file that defines a rule is named after it, and its rule is among those that run."""
    modules = [
        importlib.import_module(f"{package.__name__}.{each.name}") for each in pkgutil.iter_modules(package.__path__)
    ]
    defined = {module.__name__.rpartition(".")[2]: module.RULE for module in modules if hasattr(module, "RULE")}
    assert {name: rule.id.lower().replace("-", "_") for name, rule in defined.items()} == {
        name: name for name in defined
    }
    assert sorted(rule.id for rule in defined.values()) == sorted(rule.id for rule in package.RULES)


@each_rule
def test_rule_is_documented(rule: Rule) -> None:
    """A rule has a severity, a short title, one paragraph that is worth reading, and a source."""
    assert rule.severity in SEVERITIES
    assert 5 <= len(rule.title) <= 70
    assert not rule.title.endswith(".")
    assert "\n" not in rule.documentation
    assert "  " not in rule.documentation
    assert len(rule.documentation.split()) >= 30
    assert rule.documentation.endswith(".")
    assert rule.source
    assert not rule.source.endswith(".")
    assert set("*<>[]`|\\").isdisjoint(rule.title + rule.documentation + rule.source)  # plain text in Markdown as well
    assert rule.targets is None or rule.targets <= set(TARGETS)
    assert (rule.targets is not None) == rule.id.startswith("NEU-")


@each_rule
def test_bad_example_is_found(rule: Rule) -> None:
    """In the bad example the rule finds something, and no other rule finds a fault that is not part of it."""
    found = found_in(rule.bad)
    assert rule.id in ids_of(found)
    assert {problem.rule.id for problem in found} - {rule.id} <= BESIDE.get(rule.id, set())


@each_rule
def test_good_example_is_clean(rule: Rule) -> None:
    """In the good example the rule finds nothing, nor does any other but for a note."""
    assert [problem for problem in found_in(rule.good) if problem.severity != "note" or problem.rule is rule] == []


@each_rule
def test_rules_of_other_machines_are_silent(rule: Rule) -> None:
    """A rule with targets is not run without one."""
    found = check(load(rule.bad.text), ALL_RULES)
    assert rule.targets is None or rule.id not in ids_of(found)


@each_rule
def test_messages_are_sentences_without_places(rule: Rule) -> None:
    """A message says what was expected and what was found, and states no lines, which would spoil a baseline."""
    for problem in found_in(rule.bad):
        assert problem.message.startswith("expected ")
        assert problem.message.isprintable()
        assert not problem.message.endswith(".")
        assert "line" not in problem.message.split()
        if problem.rule.id != "unread":
            assert "found" in problem.message


@pytest.mark.parametrize("rule", COMPARED, ids=[rule.id for rule in COMPARED])
def test_text_and_proto_agree(rule: Rule) -> None:
    """The proto of an example has the same findings, apart from lines and from how its groups are spelled."""
    for example in (rule.bad, rule.good):
        text = load(example.text)
        counts = {"replicas": text.replica_count, "partitions": text.num_partitions}
        proto = load(proto_twin(text).SerializeToString(), **counts)
        mesh = "data=2,model=4" if rule.id == "groups-off-mesh" else None  # a twin writes groups out, without a mesh
        as_text, as_proto = (
            sorted(
                (each.rule.id, each.severity, *sorted(each.instructions))
                for each in check(module, ALL_RULES, mesh=mesh, deployment=example.deployment)
            )
            for module in (text, proto)
        )
        assert as_text == as_proto


@each_rule
def test_rule_gives_the_same_again(rule: Rule) -> None:
    """Running a rule twice on one prepared module gives the same: it keeps nothing but answers."""
    subject = Subject.of(load(rule.bad.text), None, rule.bad.deployment)
    first = list(rule.find(subject))
    assert first
    assert first == list(rule.find(subject))


@pytest.mark.parametrize("path", SOURCES, ids=[path.stem for path in SOURCES])
def test_rule_files_keep_no_state(path: Path) -> None:
    """What a rule file assigns to a name of its own is Final, and no function changes such a name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not any(isinstance(node, ast.Global) for node in ast.walk(tree))
    assigned = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    assert all(isinstance(node, ast.AnnAssign) for node in assigned)
    assert all(
        "Final" in ast.unparse(node.annotation) or "TypeAlias" in ast.unparse(node.annotation)
        for node in assigned
        if isinstance(node, ast.AnnAssign)
    )
