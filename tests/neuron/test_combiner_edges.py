"""When a computation is taken apart for its collectives: only where two of them could really become one."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combiner_modules import KINDS, both, combined, entries, entry, line, reasons, run, stats
from commlens.errors import InputError
from commlens.hlo import Computation, Instruction, UnreadableError, load
from commlens.hlo.proto.computation import ProtoComputation
from commlens.hlo.proto.instruction import ProtoInstruction
from commlens.hlo.text.computation import TextComputation
from commlens.hlo.text.instruction import TextInstruction
from commlens.neuron import NeuronAllGatherCombiner
from commlens.neuron.passes import combiner_work
from proto_twin import load_as

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.hlo import Graph


def chain(kind: str, number: int, last: str = "") -> str:
    """Return a module of collectives, each of which takes the one before, with a slice or pad between; then one more."""
    lines: list[str] = []
    operand = "p"
    for each in range(number):
        lines += [f"x{each} = {line(kind, operand)}", f"s{each} = f32[8] {between(kind, f'x{each}')}"]
        operand = f"s{each}"
    return entry(*lines, *([f"y = {last}"] if last else []))


def between(kind: str, name: str) -> str:
    """Return what makes the operand of the next collective out of a result."""
    return {
        "all-gather": f"slice({name}), slice={{[0:8]}}",
        "all-reduce": f"negate({name})",
        "reduce-scatter": f"concatenate({name}, {name}), dimensions={{0}}",
    }[kind]


@pytest.fixture
def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """No computation may be taken apart."""

    def refuse(_: Computation) -> Graph:
        msg = "this computation has no two that could be combined"
        raise AssertionError(msg)

    monkeypatch.setattr(TextComputation, "graph", refuse)
    monkeypatch.setattr(ProtoComputation, "graph", refuse, raising=False)


@both
@pytest.mark.usefixtures("unseen")
@pytest.mark.parametrize("kind", KINDS)
def test_a_chain_of_collectives_is_not_taken_apart(kind: str, backend: str) -> None:
    """As in a model, where every layer needs the one before it: all are alone."""
    result = run(kind, load_as(chain(kind, 5), backend))
    assert not result.changed
    assert stats(result)["counts"] == {"candidates": 5, "sets": 0, "combined": 0, "excluded": 0, "alone": 5}


@both
@pytest.mark.parametrize("kind", KINDS)
def test_one_that_is_in_no_chain_has_it_taken_apart(kind: str, backend: str) -> None:
    """It finds the partner that it has by the order of all instructions."""
    result = run(kind, load_as(chain(kind, 4, line(kind, "q")), backend))
    assert combined(result) == [["x3", "y"]]


@both
@pytest.mark.parametrize("kind", KINDS)
def test_in_a_chain_nobody_asks_why_one_could_not_be_combined(kind: str, backend: str) -> None:
    """There is nothing that it may have joined."""
    text = chain(kind, 3).replace("x1 = " + line(kind, "s0"), "x1 = " + line(kind, "s0", control_predecessors="{p}"))
    result = run(kind, load_as(text, backend))
    assert reasons(result) == {}
    assert stats(result)["counts"]["alone"] == 3


def random_module(random: Random, kind: str) -> str:
    """Return a module of collectives with two keys; many are chains, a few lines lead elsewhere."""
    lines: list[str] = []
    operands = ["p", "q"]
    stray = random.choice([0.0, 0.1, 0.5])
    for each in range(random.randint(2, 9)):
        operand = random.choice(operands) if random.random() < stray else operands[-1]
        channel: Mapping[str, str] = random.choice([{}, {"channel_id": "7"}])
        lines += [f"x{each} = {line(kind, operand, **channel)}", f"s{each} = f32[8] {between(kind, f'x{each}')}"]
        operands.append(f"s{each}")
    return entry(*lines)


@given(st.randoms(use_true_random=True), st.sampled_from(KINDS), st.sampled_from(["text", "proto"]))
def test_a_look_ahead_changes_nothing(random: Random, kind: str, backend: str) -> None:
    """The module and what is said of it are the same as without it."""
    text = random_module(random, kind)
    given_ = run(kind, load_as(text, backend))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combiner_work, "are_provably_chained", lambda *_: False)
        expected = run(kind, load_as(text, backend))
    assert given_.module.to_bytes() == expected.module.to_bytes()
    assert given_.stats == expected.stats


@both
def test_a_member_that_cannot_be_read_is_named_with_its_partners(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bad one first, with the reason; the others, because they stay alone with it; the other set is made."""

    def none_for_y(self: Instruction) -> Mapping[str, bytes]:
        if self.name == "y":
            msg = "its metadata cannot be read"
            raise UnreadableError(msg)
        return {}

    for cls in (TextInstruction, ProtoInstruction):
        monkeypatch.setattr(cls, "metadata_fields", none_for_y)
    lines = [f"{name} = {line('all-gather')}" for name in "xyz"]
    lines += [f"{name} = {line('all-gather', shape='s32[16]')}" for name in "vw"]
    module = load_as(entry(*lines), backend)
    with pytest.raises(InputError, match="y: its metadata cannot be read"):
        run("all-gather", module)
    result = NeuronAllGatherCombiner().run(module, keep_going=True)
    assert combined(result) == [["v", "w"]]
    left = [(each["instruction"], each["why"]) for each in entries(result, "left_alone")]
    assert left[0] == ("y", "its metadata cannot be read")
    assert [name for name, why in left[1:] if "along with y" in why] == ["x", "z"]
    assert list(reasons(result).values()) == [["x", "y", "z"]]


def test_a_broken_line_beside_a_chain_is_no_affair_of_its_collectives() -> None:
    """They cannot become one, whatever is missing elsewhere; where two might, the line is refused."""
    broken = chain("all-gather", 3).replace("  ROOT", "  n = f32[8] negate(nobody)\n  ROOT")
    assert not run("all-gather", load(broken)).changed
    broken = chain("all-gather", 3, line("all-gather", "q")).replace("  ROOT", "  n = f32[8] negate(nobody)\n  ROOT")
    with pytest.raises(InputError, match="nobody"):
        run("all-gather", load(broken))
