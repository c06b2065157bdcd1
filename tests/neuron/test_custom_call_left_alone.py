"""Collectives that do not become AwsNeuron custom calls: what is left alone, and what cannot be understood."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from commlens import load
from commlens.errors import InputError
from converting import CONVERT, ELSEWHERE, both, converted, reasons, text_of
from proto_twin import load_as

if TYPE_CHECKING:
    from commlens import Module

SUGAR = text_of(
    "s = ((f32[8]), f32[4]) reduce-scatter-start(p), replica_groups={{0,1}}, dimensions={0}, to_apply=add",
    "d = f32[4] reduce-scatter-done(s)",
)
STARTED = text_of(
    "s = f32[8] all-reduce-start(p), replica_groups={{0,1}}, to_apply=add", "d = f32[8] all-reduce-done(s)"
)
JAX = text_of(
    'j = f32[16] custom-call(p), custom_call_target="all-gather-start", frontend_attributes={async_collective_config={"replica_groups":[[0,1]],"all_gather_dimension":0}}'
)


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        pytest.param(ELSEWHERE, "inner", "only the entry computation is converted", id="other-computation"),
        pytest.param(STARTED, "s", "it is asynchronous", id="start"),
        pytest.param(SUGAR, "s", "it is asynchronous", id="start-of-a-wrapped-one"),
        pytest.param(
            text_of("t = f32[8] all-to-all(p), replica_groups={{0,1}}, dimensions={0}"),
            "t",
            "only all-gather, all-reduce, reduce-scatter are converted",
            id="other-opcode",
        ),
        pytest.param(JAX, "j", "it is a custom call already", id="custom-call-of-jax"),
    ],
)
def test_what_is_left_alone_is_named(text: str, name: str, why: str) -> None:
    """The module stays as it is, and the reason is told."""
    result = CONVERT.run(load(text))
    assert (result.changed, result.modified, result.module.to_bytes().decode()) == (False, False, text)
    assert reasons(result) == {name: why}


def test_a_module_without_communication_stays() -> None:
    """There is nothing to say then."""
    result = CONVERT.run(load(text_of("n = f32[8] negate(p)")))
    assert (result.modified, result.stats) == (False, {"converted": [], "untouched": [], "left_alone": []})


@both
def test_a_configuration_that_was_there_is_told(backend: str) -> None:
    """What the collective had as its backend_config gives way to the groups; a warning says so."""
    line = 'r = f32[8] all-reduce(p), replica_groups={}, to_apply=add, backend_config={"is_sync":true}'
    result = CONVERT.run(load_as(text_of(line), backend))
    assert "is_sync" not in converted(result)["r"][1]
    place = " (line 11)" if backend == "text" else ""
    assert result.warnings == (f"the groups take the place of the backend_config that r{place} had",)


# --- what cannot be understood --------------------------------------------------------------------------------------

GOOD = "g = f32[8] all-reduce(p), replica_groups={}, to_apply=add"
EMPTY = "none {\n}\n"
BAD = {
    "groups": ("r = f32[8] all-reduce(p), replica_groups={{0,1}, to_apply=add", "m.hlo:12:COLUMN: r: "),
    "reducer": (
        "r = f32[8] all-reduce(p), replica_groups={}",
        "m.hlo:12:8: r: expected to_apply= to name a computation",
    ),
    "other-reducer": (
        "r = f32[8] all-reduce(p), to_apply=sub",
        "m.hlo:12:8: r: expected to_apply= to name a computation",
    ),
    "empty-reducer": (
        "r = f32[8] all-reduce(p), to_apply=none",
        "m.hlo:12:8: r: expected to_apply= to name a computation of the module with something in it, found none",
    ),
    "dimension": (
        "r = f32[16] all-gather(p), replica_groups={}",
        "m.hlo:12:8: r: expected all-gather to state its dim",
    ),
    "too-many-ids": (
        "r = f32[8] all-reduce(p), replica_groups=[100000,100000]<=[10000000000], to_apply=add",
        "m.hlo:12:8: r: expected at most 16,777,216 ids in its groups, to write them out, found 10,000,000,000",
    ),
}


def loaded(text: str) -> Module:
    """Load a text as if it stood in a file."""
    module = load(text)
    module.path = "m.hlo"
    return module


@pytest.mark.parametrize("name", BAD)
def test_a_collective_that_cannot_be_read_is_refused_with_its_place(name: str) -> None:
    """The module is not half converted."""
    line, says = BAD[name]
    with pytest.raises(InputError) as caught:
        CONVERT.run(loaded(text_of(GOOD, line) + EMPTY))
    assert str(caught.value).startswith(says.replace("COLUMN", str(caught.value.column)))


@pytest.mark.parametrize("name", BAD)
def test_going_on_leaves_it_alone_and_says_so(name: str) -> None:
    """The others are converted."""
    line, says = BAD[name]
    text = text_of(GOOD, line) + EMPTY
    result = CONVERT.run(loaded(text), keep_going=True)
    left: Any = result.stats["left_alone"]
    assert [(each["instruction"], each["line"]) for each in left] == [("r", 12)]
    column = "" if left[0]["column"] is None else f":{left[0]['column']}"
    assert f"m.hlo:12{column}: r: {left[0]['why']}".startswith(says.replace(":COLUMN", column))
    assert list(converted(result)) == ["g"]
    assert line in result.module.to_bytes().decode()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(ELSEWHERE[: ELSEWHERE.index("ENTRY")].replace("body {", "body (q: f32[8]) -> f32[16] {"), "module m: expected an entry computation", id="no-entry"),
        pytest.param(ELSEWHERE.rstrip("}\n"), "m.hlo:8: expected '}' at the end of the computation e", id="cut"),
    ],
)  # fmt: skip
def test_a_module_without_a_whole_entry_is_refused(text: str, says: str) -> None:
    """Nobody knows what else would stand there."""
    with pytest.raises(InputError) as caught:
        CONVERT.run(loaded(text))
    assert says in str(caught.value)
    result = CONVERT.run(loaded(text), keep_going=True)
    assert (result.modified, len(list(result.stats))) == (False, 3)
    assert result.stats["left_alone"]


@both
@pytest.mark.parametrize(
    ("operand", "says"),
    [
        pytest.param("b", "found b behind it", id="behind"),
        pytest.param("a", "found itself", id="itself"),
        pytest.param('p), control-predecessors={b}, metadata={op_name="x"', "found b behind it", id="predecessor"),
    ],
)
def test_a_computation_that_needs_something_too_early_is_refused(operand: str, says: str, backend: str) -> None:
    """There is no post-order in which to convert; with one collective alone no order is made out."""
    early = f"a = f32[8] negate({operand})".replace('"x")', '"x"')
    gathers = [f"{name} = f32[16] all-gather(p), replica_groups={{{{0,1}}}}, dimensions={{0}}" for name in "gh"]
    module = load_as(text_of(early, "b = f32[8] negate(p)", *gathers), backend)
    with pytest.raises(InputError, match=f"a: expected all that it needs .*, {says}$") as caught:
        CONVERT.run(module)
    assert (caught.value.line, caught.value.column) == ((11, 3) if backend == "text" else (None, None))
    result = CONVERT.run(module, keep_going=True)
    left: Any = result.stats["left_alone"]
    assert (result.changed, result.modified, result.module) == (False, False, module)
    assert [each["instruction"] for each in left] == ["a", "g", "h"]
    alone = load_as(text_of(early, "b = f32[8] negate(p)", gathers[0]), backend)
    assert list(converted(CONVERT.run(alone))) == ["g"]
