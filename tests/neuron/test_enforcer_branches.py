"""What the enforcer tells of conditionals whose branches shared a channel id, held against loops."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens import load
from commlens.hlo import CallGraph
from commlens.neuron import NeuronUniqueChannelIdEnforcer

if TYPE_CHECKING:
    from commlens.hlo import PassResult

_SENTENCE = re.compile(r"branches of the conditional (\S+) shared channel id 1 in (.*), which XLA allows")
_NAME = re.compile(r"(g\d+) \(line")


class Home(NamedTuple):
    """A computation: whether something communicates in it, and which computations of lower numbers it runs how."""

    communicates: bool
    calls: tuple[int, ...]
    branches: tuple[int, ...]


def text_of(homes: list[Home]) -> str:
    """Return a module with the computations ``c0``, ``c1`` ... the last of which is the entry."""
    lines = ["HloModule m, num_partitions=2\n"]
    for number, home in enumerate(homes):
        lines.append(f"\n{'ENTRY ' if number == len(homes) - 1 else ''}c{number} {{\n  p = f32[8] parameter(0)\n")
        if home.communicates:
            lines.append(
                f"  g{number} = f32[8] all-to-all(p), channel_id=1, replica_groups={{{{0,1}}}}, dimensions={{0}}\n"
            )
        for place, callee in enumerate(home.calls):
            lines.append(f"  k{number}.{place} = f32[8] call(p), to_apply=c{callee}\n")
        if home.branches:
            names = ",".join(f"c{callee}" for callee in home.branches)
            operands = ", ".join("p" for _ in home.branches)
            lines.append(f"  s{number} = s32[] constant(0)\n")
            lines.append(f"  d{number} = f32[8] conditional(s{number}, {operands}), branch_computations={{{names}}}\n")
        lines.append("}\n")
    return "".join(lines)


def slow_sharing(homes: list[Home]) -> dict[str, set[str]]:
    """Follow every branch of every conditional down; the collectives behind those of which several lead to any."""

    def below(number: int) -> set[str]:
        found = {f"g{number}"} if homes[number].communicates else set[str]()
        for callee in (*homes[number].calls, *homes[number].branches):
            found |= below(callee)
        return found

    sharing: dict[str, set[str]] = {}
    for number, home in enumerate(homes):
        leading = [found for callee in dict.fromkeys(home.branches) if (found := below(callee))]
        if len(leading) > 1:
            sharing[f"d{number}"] = set[str]().union(*leading)
    return sharing


def told_by(result: PassResult) -> dict[str, set[str]]:
    """Return by conditional the collectives that the warnings name."""
    return {match[1]: set(_NAME.findall(match[2])) for each in result.warnings if (match := _SENTENCE.match(each))}


@st.composite
def modules(draw: st.DrawFn) -> list[Home]:
    """Draw computations that run others of lower numbers."""
    homes: list[Home] = []
    for number in range(draw(st.integers(2, 7))):
        lower = st.lists(st.integers(0, number - 1), max_size=3 if number else 0) if number else st.just(list[int]())
        homes.append(Home(draw(st.booleans()), tuple(draw(lower)), tuple(draw(lower))))
    return homes


@given(modules())
def test_conditionals_are_those_of_the_loops(homes: list[Home]) -> None:
    """Whatever calls what: every conditional of which several branches lead to what shared the id, and all of that."""
    result = NeuronUniqueChannelIdEnforcer().run(load(text_of(homes)))
    told = told_by(result)
    communicating = [home for home in homes if home.communicates]
    assert told == (slow_sharing(homes) if len(communicating) > 1 else {})


THROUGH_CALLS = [
    *(Home(communicates=True, calls=(), branches=()) for _ in range(2)),  # c0, c1
    *(Home(communicates=False, calls=(callee,), branches=()) for callee in (0, 1)),  # c2, c3
    Home(communicates=False, calls=(), branches=(2, 3)),  # c4
    Home(communicates=False, calls=(4,), branches=(4, 2)),
]


def test_branches_lead_through_calls() -> None:
    """What a branch calls is behind it, and so is what stands in a conditional within."""
    expected = {"d4": {"g0", "g1"}, "d5": {"g0", "g1"}}
    assert slow_sharing(THROUGH_CALLS) == expected
    result = NeuronUniqueChannelIdEnforcer().run(load(text_of(THROUGH_CALLS)))
    assert told_by(result) == expected


def test_a_chain_of_calls_is_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of computations that call each other, each of which communicates, every call is looked at a few times at most."""
    asked: list[str] = []
    real = CallGraph.calls_of
    monkeypatch.setattr(CallGraph, "calls_of", lambda self, name: (asked.append(name), real(self, name))[1])
    deep = 200
    homes = [Home(communicates=True, calls=(number - 1,) if number else (), branches=()) for number in range(deep)]
    assert NeuronUniqueChannelIdEnforcer().run(load(text_of(homes))).changed
    assert deep <= len(asked) <= 5 * deep
