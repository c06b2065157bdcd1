"""Who is combined with whom, and who is left alone."""

from __future__ import annotations

import pytest

from combiner_modules import KINDS, REDUCING, WIDE, both, combined, entries, entry, line, pair, reasons, run, stats
from commlens.hlo import load
from proto_twin import load_as

# --- who shares a key ------------------------------------------------------------------------------------------------


SAME: list[tuple[str, dict[str, str]]] = [
    *((kind, {}) for kind in KINDS),
    *((kind, {"replica_groups": "[1,2]<=[2]"}) for kind in ("all-gather", "reduce-scatter")),
    *((kind, {"to_apply": "plus"}) for kind in REDUCING),
    *((kind, {"metadata": '{op_name="b"}'}) for kind in KINDS),
    *((kind, {"frontend_attributes": '{stream_id="1"}'}) for kind in KINDS),
    *((kind, {"backend_config": '{"a":1}'}) for kind in KINDS),
    ("all-reduce", {"shape": "f32[2,4]{0,1}"}),
    ("all-gather", {"control_predecessors": "{p}"}),
    ("all-gather", {"shape": "f32[16]{0:T(8)}"}),
]
DIFFERENT: list[tuple[str, dict[str, str]]] = [
    *((kind, {"replica_groups": "{{1,0}}"}) for kind in KINDS),
    *((kind, {"replica_groups": "{{0},{1}}"}) for kind in KINDS),
    *((kind, {"channel_id": "1"}) for kind in KINDS),
    *((kind, {"channel_id": "1", "use_global_device_ids": "true"}) for kind in KINDS),
    *((kind, {"frontend_attributes": '{collective_group_key="b"}'}) for kind in KINDS),
    *((kind, {"shape": "s32[8]"}) for kind in KINDS),
    *((kind, {"to_apply": "times"}) for kind in REDUCING),
    *((kind, {"to_apply": "minus"}) for kind in REDUCING),
    *((kind, {"to_apply": "add_bf16"}) for kind in REDUCING),
    *((kind, {"control_predecessors": "{x}"}) for kind in KINDS),
]


@both
@pytest.mark.parametrize(("kind", "changes"), SAME, ids=str)
def test_differences_that_do_not_matter(kind: str, changes: dict[str, str], backend: str) -> None:
    """Spelling of groups, layouts, metadata and all other attributes, another computation with the same root."""
    module = load_as(pair(kind, **changes), backend)
    assert combined(run(kind, module)) == [["x", "y"]]


@both
@pytest.mark.parametrize(("kind", "changes"), DIFFERENT, ids=str)
def test_differences_that_matter(kind: str, changes: dict[str, str], backend: str) -> None:
    """Nothing is combined, and the module that comes back is the one that was given."""
    module = load_as(pair(kind, **changes), backend)
    result = run(kind, module)
    assert combined(result) == []
    assert not result.changed
    assert not result.modified
    assert result.module is module
    assert stats(result)["disabled"] is None


@both
@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_compared_to_the_end(kind: str, backend: str) -> None:
    """Two lists may differ in their last members only."""
    groups = ("{{0,1,2,3,4,5}}", "{{0,1,2,3,5,4}}", "[1,6]<=[6]", "{{0,1,2,3,4,5}}")
    lines = [f"{name} = {line(kind, replica_groups=each)}" for name, each in zip("xyzw", groups, strict=True)]
    assert combined(run(kind, load_as(entry(*lines), backend))) == [["x", "z", "w"]]


@both
@pytest.mark.parametrize("kind", KINDS)
def test_equal_group_keys_combine(kind: str, backend: str) -> None:
    """A collective_group_key keeps apart only what has another one."""
    key = {"frontend_attributes": '{collective_group_key="7"}'}
    lines = [f"{name} = {line(kind, **key)}" for name in "xyz"]
    lines[1] = lines[1].replace('"7"', '"8"')
    assert combined(run(kind, load_as(entry(*lines), backend))) == [["x", "z"]]


@both
@pytest.mark.parametrize("kind", KINDS)
def test_element_types_mix_only_when_they_may(kind: str, backend: str) -> None:
    """The reducer's type is part of the key all the same."""
    text = pair(kind, shape="s32[8]")
    assert combined(run(kind, load_as(text, backend))) == []
    assert combined(run(kind, load_as(text, backend), mixed_dtypes=True)) == [["x", "y"]]
    if kind in REDUCING:
        other = pair(kind, shape="bf16[8]", to_apply="add_bf16")
        assert combined(run(kind, load_as(other, backend), mixed_dtypes=True)) == []


# --- what is left alone ----------------------------------------------------------------------------------------------


def exclusions() -> list[tuple[str, str, str]]:
    """Return kinds, modules whose ``x`` and ``z`` are combined and whose ``y`` is excluded, and the reason."""
    found: list[tuple[str, str, str]] = []

    def add(kind: str, y: str, why: str, before: str = "") -> None:
        found.append((kind, entry(f"x = {line(kind)}", f"y = {y}", f"z = {line(kind, 'q')}", before=before), why))

    for kind in KINDS:
        shape = line(kind).split(" ")[0]
        add(kind, line(kind, shape=f"({shape}, {shape})").replace("(p)", "(p, q)"), "its result is no array")
        add(kind, line(kind, shape=f"({shape})"), "its result is no array")
        add(kind, line(kind).replace("(p)", "(p, q)"), "it has 2 operands")
        add(kind, line(kind, shape="f32[268435457]"), "its result alone is larger than threshold_bytes")
    for kind in REDUCING:
        add(kind, line(kind, to_apply="wide"), "its reducer is not two parameters and one operation", WIDE)
        add(kind, line(kind, control_predecessors="{p}"), "it has control dependencies")
        later = entry(
            f"x = {line(kind)}",
            f"y = {line(kind)}",
            f"z = {line(kind, 'q')}",
            "n = f32[8] negate(p), control-predecessors={y}",
        )
        found.append((kind, later, "it has control dependencies"))
    return found


@both
@pytest.mark.parametrize(("kind", "text", "why"), exclusions())
def test_exclusions(kind: str, text: str, why: str, backend: str) -> None:
    """One that cannot be combined is named with the reason and does not keep the others apart."""
    result = run(kind, load_as(text, backend))
    assert combined(result) == [["x", "z"]]
    assert reasons(result) == {why: ["y"]}
    counts = {"candidates": 3, "sets": 1, "combined": 2, "excluded": 1, "alone": 0}
    assert stats(result)["counts"] == counts


@both
def test_unknown_reductions_are_no_reduce_scatters(backend: str) -> None:
    """An all-reduce asks only for the shape of its reducer, a reduce-scatter for a reduction that XLA knows."""
    for kind, expect in (("all-reduce", [["x", "y"]]), ("reduce-scatter", [])):
        lines = [f"{name} = {line(kind, to_apply='minus')}" for name in "xy"]
        result = run(kind, load_as(entry(*lines), backend))
        assert combined(result) == expect
    assert reasons(result) == {"its reducer is no reduction that XLA recognises": ["x", "y"]}


def test_a_result_without_a_bound_has_no_size() -> None:
    """Its bytes cannot be counted, so it stays alone."""
    result = run("all-gather", load(pair("all-gather", shape="f32[?]")))
    assert list(reasons(result)) == ["its result has a dimension without a bound, so its size is not known"]


@both
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option", ["threshold_bytes", "threshold_count"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_threshold_that_is_not_positive_disables(kind: str, option: str, value: int, backend: str) -> None:
    """Signed, on either."""
    result = run(kind, load_as(pair(kind), backend), **{option: value})
    assert not result.changed
    assert stats(result)["disabled"] == {"why": f"{option} is {value}"}


@both
@pytest.mark.parametrize("kind", KINDS)
def test_one_layout_constrained_collective_disables(kind: str, backend: str) -> None:
    """Wherever in the module it stands, in a computation that nobody calls too; of this opcode only."""
    other = "all-reduce" if kind == "all-gather" else "all-gather"
    for constrained, expect in ((kind, []), (other, [["x", "y"]])):
        before = f"apart {{\n  p = f32[8] parameter(0)\n  ROOT s = {line(constrained, constrain_layout='true')}\n}}\n"
        result = run(kind, load_as(entry(f"x = {line(kind)}", f"y = {line(kind)}", before=before), backend))
        assert combined(result) == expect
        assert result.changed == bool(expect)
        if not expect:
            disabled = stats(result)["disabled"]
            assert (disabled["instruction"], disabled["computation"]) == ("s", "apart")
            assert disabled["why"] == f"a layout-constrained {kind} disables the pass for the whole module"
            (warning,) = result.warnings
            assert "because s" in warning


FUSED = """fused {{
  p = f32[8] parameter(0)
  q = f32[8] parameter(1)
  x = {x}
  y = {y}
  ROOT t = ({shape}, {shape}) tuple(x, y)
}}
"""


@both
@pytest.mark.parametrize("kind", KINDS)
def test_fusions_are_passed_over(kind: str, backend: str) -> None:
    """The same computation under a call is not."""
    shape = line(kind).split(" ")[0]
    before = FUSED.format(x=line(kind), y=line(kind, "q"), shape=shape)
    for caller, expect in (("fusion(p, q), kind=kLoop, calls=fused", []), ("call(p, q), to_apply=fused", [["x", "y"]])):
        result = run(kind, load_as(entry(f"f = ({shape}, {shape}) {caller}", before=before, root="negate(p)"), backend))
        assert combined(result) == expect
    assert reasons(
        run(
            kind,
            load_as(
                entry(f"f = ({shape}, {shape}) fusion(p, q), kind=kLoop, calls=fused", before=before, root="negate(p)"),
                backend,
            ),
        )
    ) == {"it stands in a fusion": ["x", "y"]}


LOOP = """body {{
  s = (f32[8], f32[8]) parameter(0)
  p = f32[8] get-tuple-element(s), index=0
  q = f32[8] get-tuple-element(s), index=1
  x = {x}
  y = {y}
  ROOT t = (f32[8], f32[8]) tuple(p, q)
}}
condition {{
  s = (f32[8], f32[8]) parameter(0)
  ROOT c = pred[] constant(true)
}}
"""


@both
@pytest.mark.parametrize("kind", KINDS)
def test_while_bodies_are_skipped_on_demand(kind: str, backend: str) -> None:
    """They are combined like all others unless the option says so."""
    before = LOOP.format(x=line(kind), y=line(kind, "q"))
    lines = ("s = (f32[8], f32[8]) tuple(p, q)", "w = (f32[8], f32[8]) while(s), body=body, condition=condition")
    module = load_as(entry(*lines, before=before, root="negate(p)"), backend)
    assert combined(run(kind, module)) == [["x", "y"]]
    result = run(kind, module, skip_while_bodies=True)
    assert result.module is module
    assert reasons(result) == {"it stands in the body of a while loop": ["x", "y"]}


@both
def test_computations_are_not_mixed(backend: str) -> None:
    """Sets stand in one computation; new names are unique in the module."""
    before = LOOP.format(x=line("all-gather"), y=line("all-gather", "q"))
    lines = [f"{name} = {line('all-gather')}" for name in ("g", "h")]
    result = run("all-gather", load_as(entry(*lines, before=before), backend))
    assert [(each["name"], each["computation"], each["members"]) for each in entries(result, "combined")] == [
        ("all-gather.1", "body", ["x", "y"]),
        ("all-gather.2", "e", ["g", "h"]),
    ]


@both
@pytest.mark.parametrize(
    ("kind", "start", "done"),
    [
        ("all-gather", "(f32[8], f32[16]) all-gather-start(p), replica_groups={{0,1}}, dimensions={0}", "f32[16]"),
        ("all-reduce", "f32[8] all-reduce-start(p), to_apply=add", "f32[8]"),
    ],
)
def test_asynchronous_collectives_have_another_opcode(kind: str, start: str, done: str, backend: str) -> None:
    """They are no candidates; layout-constrained ones do not disable the pass either."""
    lines = [f"{name} = {start}, constrain_layout=true" for name in "ab"] + [
        f"c = {done} {kind}-done(a)",
        f"d = {done} {kind}-done(b)",
    ]
    lines += [f"x = {line(kind)}", f"y = {line(kind)}"]
    result = run(kind, load_as(entry(*lines), backend))
    assert combined(result) == [["x", "y"]]
    assert stats(result)["counts"]["candidates"] == 2


def test_a_start_in_short_is_no_candidate_but_counts_for_layouts() -> None:
    """In XLA's memory it is a collective of this opcode, in a computation of its own."""
    start = "s = ((f32[8]), f32[4]) reduce-scatter-start(p), replica_groups={{0,1}}, dimensions={0}, to_apply=add"
    lines = [f"{name} = {line('reduce-scatter')}" for name in "xy"]
    result = run("reduce-scatter", load(entry(start, *lines)))
    assert combined(result) == [["x", "y"]]
    assert stats(result)["counts"]["candidates"] == 2
    result = run("reduce-scatter", load(entry(f"{start}, constrain_layout=true", *lines)))
    assert combined(result) == []
    assert stats(result)["disabled"]["instruction"] == "s"


# --- tensor parallelism ----------------------------------------------------------------------------------------------

DOT = "d = f32[8,8] dot(p, q), lhs_contracting_dims={}, rhs_contracting_dims={}"
TP = "r = f32[4,8] reduce-scatter(d), replica_groups={groups}, dimensions={{0}}, to_apply=add"


@both
@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
@pytest.mark.parametrize("groups", ["{{0,1},{2,3}}", "{{0,2},{1,3}}"])
def test_groups_of_tensor_parallelism_are_the_only_ones(kind: str, groups: str, backend: str) -> None:
    """When a reduce-scatter of a dot shows them, other groups are left alone, unless the filter is off."""
    lines = [f"{name} = {line(kind, replica_groups='{{0,1},{2,3}}')}" for name in "xy"]
    lines += [f"{name} = {line(kind, replica_groups='[2,2]<=[2,2]T(1,0)')}" for name in "vw"]
    module = load_as(entry(DOT, TP.format(groups=groups), *lines), backend)
    matching = [["x", "y"]] if groups == "{{0,1},{2,3}}" else [["v", "w"]]
    result = run(kind, module)
    got = [[name for name in members if name != "r"] for members in combined(result)]
    assert got == matching
    assert stats(result)["tp_group"] == groups
    (why,) = [each for each in reasons(result) if "tensor parallelism" in each]
    assert reasons(result)[why] == (["v", "w"] if matching == [["x", "y"]] else ["x", "y"])
    off = run(kind, module, tp_group="off")
    assert sorted([name for name in members if name != "r"] for members in combined(off)) == [["v", "w"], ["x", "y"]]
    assert stats(off)["tp_group"] is None


@both
def test_without_such_a_reduce_scatter_there_is_no_filter(backend: str) -> None:
    """So it is for one that reduces no dot; and all-reduces are never filtered."""
    lines = [f"{name} = {line('all-gather', replica_groups='{{0,2},{1,3}}')}" for name in "xy"]
    module = load_as(entry(f"r = {line('reduce-scatter')}", *lines), backend)
    assert combined(run("all-gather", module)) == [["x", "y"]]
    lines = [f"{name} = {line('all-reduce', replica_groups='{{0,2},{1,3}}')}" for name in "xy"]
    module = load_as(entry(DOT, TP.format(groups="{{0,1},{2,3}}"), *lines), backend)
    assert combined(run("all-reduce", module)) == [["x", "y"]]
