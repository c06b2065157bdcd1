"""What the combiners make of a module: attributes, dimensions, second runs, and what cannot be understood."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from combiner_modules import KINDS, PASSES, both, combined, entries, entry, line, pair, reasons, run, stats
from commlens.errors import InputError
from commlens.hlo import EditError, Graph, load
from commlens.hlo.text import TextModule
from commlens.hlo.text.computation import TextComputation
from commlens.neuron import NeuronAllGatherCombiner, NeuronAllReduceCombiner, parse_passes
from proto_twin import load_as, proto_twin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from commlens import Module
    from commlens.hlo import Pass


# --- what becomes of attributes --------------------------------------------------------------------------------------


@both
def test_first_channel_stays_and_the_others_are_told(backend: str) -> None:
    """An id that a member shares with the first is not gone."""
    lines = [f"{name} = {line('all-reduce', channel_id=number)}" for name, number in zip("xyzw", "7375", strict=True)]
    result = run("all-reduce", load_as(entry(*lines), backend))
    (each,) = entries(result, "combined")
    assert each["channel_ids_gone"] == [3, 5]
    assert each["bytes"] == 4 * 32
    assert result.module.instruction(each["name"]).channel_id == 7


@both
def test_attributes_that_agree_are_kept(backend: str) -> None:
    """All others are listed with their values, absent ones as None; a lost stream is warned of."""
    same = '{collective_type="tp_all_gather",stream_id="0"}'
    other = '{collective_type="tp_all_gather",stream_id="1",extra="e"}'
    metadata = [
        '{op_type="t" op_name="a"}',
        '{op_type="t" op_name="b"}',
    ]
    lines = [
        f"x = {line('all-gather')}, frontend_attributes={same}, metadata={metadata[0]}",
        f"y = {line('all-gather')}, frontend_attributes={other}, metadata={metadata[1]}",
    ]
    result = run("all-gather", load_as(entry(*lines), backend))
    (each,) = entries(result, "combined")
    assert each["dropped"]["frontend_attributes"] == {"stream_id": ["0", "1"], "extra": [None, "e"]}
    assert each["dropped"]["metadata"] == {"op_name": ["a", "b"]}
    new = result.module.instruction(each["name"])
    assert new.frontend_attributes == {"collective_type": "tp_all_gather"}
    assert new.op_name is None
    assert [result.module.instruction(name).op_name for name in "xy"] == ["a", "b"]
    assert result.warnings == ('all-gather.1 lacks stream_id ("0", "1") and extra, in which its members differ',)


def test_metadata_is_told_alike_of_text_and_proto() -> None:
    """A proto encodes numbers and repeats no keys; what is said is the same."""
    lines = [
        f'x = {line("all-gather")}, metadata={{op_name="a" source_line=65}}',
        f'y = {line("all-gather")}, metadata={{op_name="a" source_line=1234}}',
    ]
    text = load(entry(*lines))
    proto = proto_with_lines(text, {"x": 65, "y": 1234})
    for module in (text, proto):
        (each,) = entries(run("all-gather", module), "combined")
        assert each["dropped"]["metadata"] == {"source_line": ["65", "1234"]}


def proto_with_lines(module: Module, lines: Mapping[str, int]) -> Module:
    """Return the proto of a module with source lines."""
    made = proto_twin(module)
    for instruction in made.computations[-1].instructions:
        instruction.metadata.source_line = lines.get(instruction.name.decode(), 0)
    return load(made.SerializeToString())


@both
def test_backend_configs_stay_only_where_all_have_one(backend: str) -> None:
    """What the face does not speak of is kept or listed like the rest."""
    same, other = (f'backend_config={{"a":{number}}}' for number in (1, 2))
    for second, kept, dropped in ((same, '{"a":1}', {}), (other, None, {"backend_config": ['{"a":1}', '{"a":2}']})):
        lines = [f"x = {line('all-gather')}, {same}", f"y = {line('all-gather')}, {second}"]
        result = run("all-gather", load_as(entry(*lines), backend))
        (each,) = entries(result, "combined")
        assert each["dropped"]["other"] == dropped
        assert result.module.instruction(each["name"]).raw_attribute("backend_config") == kept


@both
@pytest.mark.parametrize(
    ("dimensions", "expect"),
    [("01", 0), ("011", 1), ("0011", 0), ("110", 1), ("11", None), ("00", None), ("221", 2)],
)
@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
def test_dimension_of_most_members(kind: str, dimensions: str, expect: int | None, backend: str) -> None:
    """The lowest of several; none is given where all agree."""
    shape = {"all-gather": "f32[4,4,4]", "reduce-scatter": "f32[2,2,2]"}[kind]
    lines = [
        f"x{number} = {line(kind, shape=shape, dimensions=f'{{{each}}}')}" for number, each in enumerate(dimensions)
    ]
    text = entry(*lines).replace("f32[8] parameter", "f32[4,4,4] parameter")
    result = run(kind, load_as(text, backend), combine_by_dim=False)
    (each,) = entries(result, "combined")
    assert each["dimension"] == expect
    new = result.module.instruction(each["name"])
    assert new.dimensions == (int(dimensions[0]) if expect is None else expect,)


@both
def test_dimension_that_the_smallest_result_does_not_have(backend: str) -> None:
    """Then it is 0."""
    lines = [f"{name} = {line('all-gather', shape='f32[4,4]', dimensions='{1}')}" for name in "xy"]
    lines.append(f"z = {line('all-gather', 'q')}")
    text = entry(*lines).replace("p = f32[8] parameter", "p = f32[4,2] parameter")
    result = run("all-gather", load_as(text, backend), combine_by_dim=False)
    (each,) = entries(result, "combined")
    assert each["dimension"] == 0


# --- again -----------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("kind", KINDS)
def test_a_second_run_finds_nothing_where_all_were_combined(kind: str, backend: str) -> None:
    """The new collective has several operands, and those are left alone."""
    first = run(kind, load_as(pair(kind), backend))
    second = run(kind, first.module)
    assert not second.changed
    assert second.module is first.module
    assert stats(second)["counts"]["candidates"] == 1


@both
def test_a_second_run_can_combine_what_a_large_one_kept_apart(backend: str) -> None:
    """One was alone because the next did not fit, one because the set was full; without those they meet."""
    lines = [
        f"{name} = {line('all-reduce', shape=f'f32[{size}]')}"
        for name, size in (("x", 5), ("y", 7), ("z", 1), ("w", 3))
    ]
    first = run("all-reduce", load_as(entry(*lines), backend), threshold_bytes=32)
    assert combined(first) == [["y", "z"]]
    second = run("all-reduce", first.module, threshold_bytes=32)
    assert combined(second) == [["x", "w"]]
    assert not run("all-reduce", second.module, threshold_bytes=32).changed


@both
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_input_gives_the_same_bytes(kind: str, backend: str) -> None:
    """Two readings, two runs."""
    outputs = {run(kind, load_as(pair(kind), backend)).module.to_bytes() for _ in range(2)}
    assert len(outputs) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_set_is_written_anew(kind: str) -> None:
    """All other lines of a text are there, in their order, byte for byte."""
    text = pair(kind)
    after = run(kind, load(text)).module.to_bytes().decode().split("\n")
    new = [each for each in after if "get-tuple-element" in each or f"{kind}.1 =" in each]
    assert len(new) == 3
    assert [each for each in after if each not in new] == [
        each for each in text.split("\n") if not each.startswith(("  x = ", "  y = "))
    ]


def test_passes_as_text() -> None:
    """Every option can be said, and reads back as the same pass."""
    spec = (
        "all-gather-combiner{threshold_bytes=1,threshold_count=2,combine_by_dim=false,skip_while_bodies=true,"
        "mixed_dtypes=true,tp_group=off},reduce-scatter-combiner{tp_group=off},all-reduce-combiner{mixed_dtypes=true}"
    )
    passes: Sequence[Pass] = parse_passes(spec)
    assert ",".join(map(str, passes)) == spec
    assert passes[0] == NeuronAllGatherCombiner(1, 2, False, True, True, "off")
    defaults = NeuronAllGatherCombiner(1073741824, 256, True, False, False, "auto")
    assert NeuronAllGatherCombiner() == defaults


# --- what cannot be understood ---------------------------------------------------------------------------------------

BROKEN: list[tuple[str, str, str]] = [
    ("all-gather", line("all-gather", replica_groups="{{0,x}}"), "replica_groups cannot be read"),
    ("all-gather", line("all-gather", shape="q7[16]"), "q7"),
    ("all-gather", line("all-gather").replace(", dimensions={0}", ""), "dimension"),
    ("all-gather", line("all-gather", "nobody"), "nobody"),
    ("all-gather", line("all-gather", control_predecessors="{nobody}"), "nobody"),
    ("all-reduce", line("all-reduce", to_apply="nothing"), "expected to_apply= to name a computation"),
    ("all-reduce", line("all-reduce").replace(", to_apply=add", ""), "found none"),
    ("reduce-scatter", line("reduce-scatter", channel_id="one"), "channel_id"),
]


@pytest.mark.parametrize(("kind", "broken", "why"), BROKEN)
def test_what_cannot_be_read_is_refused_with_its_place(kind: str, broken: str, why: str) -> None:
    """Or left alone, and named, with all that hangs on it."""
    text = entry(f"x = {line(kind)}", f"y = {broken}", f"z = {line(kind)}")
    number = 1 + text.split("\n").index(f"  y = {broken}")
    module = load(text)
    with pytest.raises(InputError, match=why.replace("=", ".")) as caught:
        PASSES[kind]().run(module)
    assert (caught.value.line, caught.value.path) == (number, module.path)
    result = PASSES[kind]().run(module, keep_going=True)
    assert {each["instruction"] for each in entries(result, "left_alone")} == {"y"}
    assert not {"y"} & {name for members in combined(result) for name in members}


def test_one_that_shares_nothing_is_not_looked_at_more_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    """No edges of a computation are made out unless two collectives may share a key."""

    def refuse(_: TextComputation) -> Graph:
        msg = "this computation has no two that could be combined"
        raise AssertionError(msg)

    monkeypatch.setattr(TextComputation, "graph", refuse)
    module = load(pair("all-gather", channel_id="1"))
    assert not run("all-gather", module).changed
    with pytest.raises(AssertionError):
        run("all-gather", load(pair("all-gather")))


def test_cut_modules_are_refused() -> None:
    """Nobody knows what else they hold."""
    text = pair("all-reduce").rsplit("}", 1)[0]
    with pytest.raises(InputError):
        run("all-reduce", load(text))


@both
def test_instructions_that_need_themselves_are_refused(backend: str) -> None:
    """The place is that of the first: what it needs stands behind it."""
    lines = ("a = f32[8] negate(b)", "b = f32[8] negate(a)", f"x = {line('all-reduce')}", f"y = {line('all-reduce')}")
    module = load_as(entry(*lines), backend)
    with pytest.raises(InputError, match=r"\ba: expected all that it needs .*, found b behind it$"):
        run("all-reduce", module)
    result = NeuronAllReduceCombiner().run(module, keep_going=True)
    assert not result.changed
    assert len(entries(result, "left_alone")) == 1


@both
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("early", "says"),
    [
        pytest.param("negate(b)", "found b behind it", id="operand"),
        pytest.param("negate(p), control-predecessors={b}", "found b behind it", id="predecessor"),
    ],
)
def test_a_computation_that_needs_something_too_early_is_refused(
    early: str, says: str, kind: str, backend: str
) -> None:
    """The place is that of the user; going on, nothing of that computation is combined. Chains are not looked into."""
    lines = (f"a = f32[8] {early}", "b = f32[8] negate(p)", f"x = {line(kind)}", f"y = {line(kind)}")
    module = load_as(entry(*lines), backend)
    with pytest.raises(InputError, match=rf"\ba: expected all that it needs .*, {says}$") as caught:
        run(kind, module)
    assert (caught.value.line is None) == (backend == "proto")
    result = PASSES[kind]().run(module, keep_going=True)
    assert (result.changed, result.module) == (False, module)
    assert [each["instruction"] for each in entries(result, "left_alone")] == ["a"]
    fine = (lines[1], lines[0], *lines[2:])
    assert PASSES[kind]().run(load_as(entry(*fine), backend)).changed


def test_an_operand_that_is_no_name_is_refused() -> None:
    """An element of a tuple is not followed, so nobody can tell who needs whom."""
    lines = (
        "t = (f32[8], f32[8]) tuple(p, p)",
        "a = f32[8] negate(%t#1)",
        f"x = {line('all-reduce')}",
        f"y = {line('all-reduce')}",
    )
    with pytest.raises(
        InputError, match=r"\ba: expected its operands to be names of instructions, found one in another"
    ):
        run("all-reduce", load(entry(*lines)))


@both
def test_sets_that_cannot_be_written_are_refused(backend: str) -> None:
    """A shape that does not fit its operand cannot be transposed: all members are named, and the other set is made."""
    lines = [
        f"{name} = {line('all-gather', shape='f32[4,4]', dimensions=each)}"
        for name, each in zip("xy", ("{0}", "{1}"), strict=True)
    ]
    lines += [f"{name} = {line('all-gather', shape='s32[16]')}" for name in "vw"]
    module = load_as(entry(*lines), backend)
    combiner = NeuronAllGatherCombiner(combine_by_dim=False)
    with pytest.raises(InputError, match="transpose"):
        combiner.run(module)
    result = combiner.run(module, keep_going=True)
    assert combined(result) == [["v", "w"]]
    first, other = entries(result, "left_alone")
    assert (first["instruction"], other["instruction"]) == ("x", "y")
    assert "transpose" in first["why"]
    assert "left alone along with x" in other["why"]
    assert reasons(result) == {"it, or what it depends on, cannot be understood: see left_alone": ["x", "y"]}


def test_edits_that_only_fail_together_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every set could be made alone, the error stands."""

    def fail_together(_: TextModule, edits: Sequence[object]) -> None:
        if len(edits) > 1:
            msg = "they contradict each other"
            raise EditError(msg)

    monkeypatch.setattr(TextModule, "edited", fail_together)
    lines = [
        f"{name} = {line('all-gather', shape=f'{kind}[16]')}"
        for name, kind in zip("xyvw", ("f32", "f32", "s32", "s32"), strict=True)
    ]
    with pytest.raises(InputError, match="contradict"):
        run("all-gather", load(entry(*lines)))
