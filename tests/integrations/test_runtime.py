"""XLA in child processes: what becomes of the answers when it breaks, and of those of several processes."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING

import pytest

from commlens import CommlensError, load
from commlens.analysis import Counts, Program
from commlens.errors import InputError
from commlens.integrations.runtime import Runtime
from commlens.integrations.runtime.children import joined

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.xla

SUM = "HloModule m\nENTRY e {\n  p = s32[2] parameter(0)\n  ROOT r = s32[2] add(p, p)\n}\n"
ABORTING = SUM.replace("add(p, p)", "all-gather(p), replica_groups=mesh['a'=2], device_ids=(0,1) {'a'}, dimensions={0}")
ENDLESS = """HloModule m
more {
  t = s32[2] parameter(0)
  e = s32[1] slice(t), slice={[0:1]}
  x = s32[] reshape(e)
  z = s32[] constant(0)
  ROOT k = pred[] compare(x, z), direction=GE
}
next {
  t = s32[2] parameter(0)
  o = s32[2] constant({1, 1})
  u = s32[2] add(t, o)
  m = s32[2] constant({100, 100})
  ROOT r = s32[2] remainder(u, m)
}
ENTRY e {
  p = s32[2] parameter(0)
  ROOT w = s32[2] while(p), condition=more, body=next
}
"""


def program(text: str) -> Program:
    """Return a program for one device."""
    return Program((text,), 1, 1, ((1, 2),))


def test_a_lost_process_costs_one_program() -> None:
    """XLA ends the process in the second program, never ends in the fourth, and all others are run."""
    outcomes = Runtime(timeout_s=1.5).run([program(text) for text in (SUM, ABORTING, SUM, ENDLESS, SUM)])
    assert [outcome.results for outcome in outcomes] == [((2, 4),), None, ((2, 4),), None, ((2, 4),)]
    assert "XLA ended its process" in str(outcomes[1].refused)
    assert outcomes[3].refused == "it was ended after 1.5 seconds without an answer"


def test_the_first_text_that_xla_takes_is_run() -> None:
    """Spellings that a release does not read are passed over, and the one that ran is told."""
    texts = (SUM.replace("add", "nothing"), SUM, SUM.replace("add", "subtract"))
    first, second = Runtime().run([Program(texts[1:], 1, 1, ((1, 2),)), Program(texts, 1, 1, ((1, 2),))])
    assert (first.text, first.results) == (0, ((2, 4),))
    assert (second.text, second.results) == (1, ((2, 4),))


def test_after_some_losses_the_rest_is_given_up() -> None:
    """A module full of what ends XLA does not start a process for each."""
    *lost, given_up, also = Runtime().run([program(ABORTING)] * 6)
    assert all("XLA ended its process" in str(outcome.refused) for outcome in lost)
    assert given_up == also
    assert given_up.refused == "it was not run: XLA had been lost 4 times before"


def test_a_comparison_that_never_ends_is_ended() -> None:
    """The time limit holds for modules too, and the sentence names them."""
    module = load(ENDLESS, replicas=1)
    runtime = dataclasses.replace(Runtime(), timeout_s=1.5)
    with pytest.raises(InputError, match="ended after 1.5 seconds"):
        runtime.compare(module, module, Counts(1, 1), max_ulp=0)


def test_a_process_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a child there is no answer."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(CommlensError, match="cannot be started"):
        Runtime().run([program(SUM)])


@pytest.mark.parametrize("missing", ["jax", "jaxlib"])
def test_without_jax_the_extra_is_named(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package does without jax; proving does not."""
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(CommlensError, match=r"install commlens\[jax\]"):
        Runtime()


def test_nothing_to_run_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No programs, no process."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert Runtime().run([]) == []


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        ([{"refused": "no"}], {"refused": "no"}),
        ([{"text": 0, "results": {"0": [1]}}, {"refused": "no"}], {"refused": "no"}),
        ([{"outputs": [{"index": 0, "max_ulp": 1}]}, {"outputs": [{"index": 0, "differs": "x"}]}], {"outputs": [{"index": 0, "differs": "x"}]}),
        ([{"outputs": [{"index": 0, "max_ulp": 0, "finite": False}]}, {"outputs": [{"index": 0, "max_ulp": 0}]}], {"outputs": [{"index": 0, "max_ulp": 0}]}),
        ([{"outputs": [{"index": 0, "max_ulp": 0, "finite": False}]}] * 2, {"outputs": [{"index": 0, "max_ulp": 0, "finite": False}]}),
        ([{"outputs": [{"index": 0, "max_ulp": 9, "differs": "x"}]}, {"outputs": [{"index": 0, "max_ulp": 3}]}], {"outputs": [{"index": 0, "max_ulp": 9, "differs": "x"}]}),
    ],
)  # fmt: skip
def test_answers_of_several_processes_are_joined(parts: Sequence[dict], whole: dict) -> None:
    """What one process refuses is refused, and of two results the worse one counts."""
    assert joined(parts) == whole
