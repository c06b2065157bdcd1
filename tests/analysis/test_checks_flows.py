"""The rules that follow values: what becomes of an all-reduce or all-gather, through fusions and other disguises."""

from __future__ import annotations

import pytest

from checking import FLAG, ids_of, module_of, one_of, problems_in
from commlens.analysis import check
from commlens.analysis.checks import all_gather_slice, all_reduce_slice
from commlens.hlo import load
from proto_twin import load_as

FOUR = "num_partitions=4"
REDUCE = f"r = f32[64] all-reduce(q), channel_id=1, replica_groups={{{{0,1,2,3}}}}, {FLAG}, to_apply=add"
BY_ID = ("id = u32[] partition-id()", "n = u32[] constant(16)", "at = u32[] multiply(id, n)")
CUT = "o = f32[16] dynamic-slice(r, at), dynamic_slice_sizes={16}"
GATHER = f"g = f32[32] all-gather(p), channel_id=1, replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}, {FLAG}"


def reduce_scatters(*lines: str, before: str = "", header: str = FOUR) -> list[list[str]]:
    """Return the instructions of every all-reduce that should be a reduce-scatter."""
    module = module_of(*lines, "z = f32[8] negate(p)", before=before, header=header)
    return [found.instructions for found in check(module, [all_reduce_slice.RULE])]


# --- all-reduce and slice -------------------------------------------------------------------------------------------


def test_plain_slice_by_partition() -> None:
    """The pattern itself."""
    assert reduce_scatters(REDUCE, *BY_ID, CUT) == [["r", "o"]]


@pytest.mark.parametrize(
    "user",
    ["w = f32[64] negate(r)", "w = (f32[64]) tuple(r)", "ROOT w = f32[64] copy(r)", "w = f32[] dynamic-slice(q, r)"],
)
def test_another_use_needs_the_whole(user: str) -> None:
    """As soon as anything else uses the result, or it leaves the computation, the all-reduce is needed."""
    module = module_of(REDUCE, *BY_ID, CUT, user, header=FOUR)
    assert check(module, [all_reduce_slice.RULE]) == []


def test_as_the_root() -> None:
    """A result that the computation returns is used."""
    module = module_of(*BY_ID, f"ROOT {REDUCE}", CUT, header=FOUR)
    assert check(module, [all_reduce_slice.RULE]) == []


def test_unused_results_are_not_meant() -> None:
    """An all-reduce that nothing uses is no reduce-scatter."""
    assert reduce_scatters(REDUCE) == []


@pytest.mark.parametrize(
    ("between", "cut"),
    [
        ("b = bf16[64] convert(r)", "o = bf16[16] dynamic-slice(b, at), dynamic_slice_sizes={16}"),
        ("b = f32[64] copy(r)", "o = f32[16] dynamic-slice(b, at), dynamic_slice_sizes={16}"),
        ("b = f32[64,1] reshape(r)", "o = f32[16,1] dynamic-slice(b, at, zero), dynamic_slice_sizes={16,1}"),
        ("b = f32[1,64] bitcast(r)", "o = f32[1,16] dynamic-slice(b, zero, at), dynamic_slice_sizes={1,16}"),
    ],
)
def test_relayouts_are_seen_through(between: str, cut: str) -> None:
    """What keeps every element does not hide the slice."""
    assert reduce_scatters(REDUCE, *BY_ID, "zero = u32[] constant(0)", between, cut) == [["r", "o"]]


def test_arithmetic_in_between_is_not() -> None:
    """A sum with something else is another use."""
    cut = "o = f32[16] dynamic-slice(b, at), dynamic_slice_sizes={16}"
    assert reduce_scatters(REDUCE, *BY_ID, "b = f32[64] add(r, q)", cut) == []


def test_start_and_done() -> None:
    """Of an asynchronous all-reduce the done's result is followed."""
    lines = [
        REDUCE.replace("r = f32[64] all-reduce(", "s = f32[64] all-reduce-start("),
        "r = f32[64] all-reduce-done(s)",
    ]
    assert reduce_scatters(*lines, *BY_ID, CUT) == [["s", "o"]]


def test_wrapped_all_reduce() -> None:
    """An async-start around an all-reduce is no other thing."""
    before = (
        "wrapped {\n  w = f32[64] parameter(0)\n"
        f"  ROOT x = f32[64] all-reduce(w), channel_id=1, replica_groups={{{{0,1,2,3}}}}, {FLAG}, to_apply=add\n}}"
    )
    lines = ["s = ((f32[64]), f32[64]) async-start(q), calls=wrapped", "r = f32[64] async-done(s)"]
    assert reduce_scatters(*lines, *BY_ID, CUT, before=before) == [["s", "o"]]


FUSED = """
fused {
  a = f32[64] parameter(0)
  t = s32[4] parameter(1)
  i = u32[] parameter(2)
  e.1 = s32[1] dynamic-slice(t, i), dynamic_slice_sizes={1}
  at = s32[] reshape(e.1)
  ROOT o = f32[16] dynamic-slice(a, at), dynamic_slice_sizes={16}
}
"""


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ("{0, 16, 32, 48}", True),
        ("{48, 0, 16, 32}", True),
        ("{ 0,16,32,48 }", True),
        ("{0, 0, 16, 16}", False),
        ("{0, 8, 16, 24}", False),
        ("{0, 16, 32, 99}", True),
        ("{...}", False),
        ("{0, 16, 32}", False),
        ("{0, 16, 32, 48, 64}", False),
    ],
)
def test_tables_in_fusions(table: str, found: bool) -> None:
    """Compilers keep the starts in a constant and slice in a fusion; a start beyond the end is clamped, as HLO has it."""
    lines = [REDUCE, f"t = s32[4] constant({table})", BY_ID[0], "f = f32[16] fusion(r, t, id), kind=kLoop, calls=fused"]
    assert reduce_scatters(*lines, before=FUSED) == [["r", "o"]] * found


def test_fusions_that_hand_the_value_on() -> None:
    """A fusion whose root is only another layout of the value is followed to its users."""
    before = "fused {\n  a = f32[64] parameter(0)\n  ROOT b = f32[64,1] bitcast(a)\n}"
    lines = [REDUCE, *BY_ID, "zero = u32[] constant(0)", "f = f32[64,1] fusion(r), kind=kLoop, calls=fused"]
    cut = "o = f32[16,1] dynamic-slice(f, at, zero), dynamic_slice_sizes={16,1}"
    assert reduce_scatters(*lines, cut, before=before) == [["r", "o"]]
    assert reduce_scatters(*lines, cut, "w = f32[64,1] negate(f)", before=before) == []


def test_values_used_twice_by_a_fusion() -> None:
    """A fusion that slices one operand and adds up the other, both the same value, needs the whole."""
    before = FUSED.replace("i = u32[] parameter(2)", "i = u32[] parameter(2)\n  b = f32[64] parameter(3)")
    used = before.replace("ROOT o", "o").replace(
        "sizes={16}\n}", "sizes={16}\n  n = f32[64] negate(b)\n  ROOT w = (f32[16], f32[64]) tuple(o, n)\n}"
    )
    lines = [REDUCE, "t = s32[4] constant({0, 16, 32, 48})", BY_ID[0]]
    assert reduce_scatters(*lines, "f = f32[16] fusion(r, t, id, r), kind=kLoop, calls=fused", before=before) == [
        ["r", "o"]
    ]
    assert (
        reduce_scatters(*lines, "f = (f32[16], f32[64]) fusion(r, t, id, r), kind=kLoop, calls=fused", before=used)
        == []
    )


@pytest.mark.parametrize(
    ("index", "found"),
    [
        ("shift-left(k, four)", True),
        ("multiply(k, sixteen)", True),
        ("subtract(last, at)", True),
        ("select(even, at, at)", True),
        ("divide(big, sixteen)", True),
        ("remainder(at, big)", True),
        ("minimum(at, last)", True),
        ("maximum(at, zero)", True),
        ("or(at, zero)", True),
        ("and(at, last)", True),
        ("select(even, at, zero)", False),
        ("select(all, at, zero)", True),
        ("subtract(zero, fourth)", True),
        ("xor(at, zero)", False),
        ("remainder(at, sixteen)", False),
        ("divide(at, zero)", False),
    ],
)
def test_arithmetic_on_the_id(index: str, found: bool) -> None:
    """Every operation that an index is made of is worked out as HLO defines it; one that is not known says nothing."""
    lines = [
        REDUCE,
        BY_ID[0],
        *(
            f"{name} = s32[] constant({value})"
            for name, value in (("zero", 0), ("four", 4), ("sixteen", 16), ("last", 48))
        ),
        "k = s32[] convert(id)",
        "at = s32[] multiply(k, sixteen)",
        "big = s32[] multiply(at, sixteen)",
        "two = s32[] constant(2)",
        "odd = s32[] remainder(k, two)",
        "even = pred[] compare(odd, zero), direction=EQ",
        "all = pred[] compare(odd, two), direction=LT",
        "more = s32[] add(at, four)",
        "less = s32[] subtract(zero, more)",
        "third = s32[] divide(less, sixteen)",
        "fourth = s32[] multiply(third, sixteen)",
        f"start = s32[] {index}",
        "o = f32[16] dynamic-slice(r, start), dynamic_slice_sizes={16}",
    ]
    assert reduce_scatters(*lines) == [["r", "o"]] * found


def test_replicas() -> None:
    """Without a channel the groups are of replicas, and so is the index."""
    reduce = "r = f32[64] all-reduce(q), replica_groups={{0,1,2,3}}, to_apply=add"
    by_replica = [BY_ID[0].replace("partition", "replica"), *BY_ID[1:], CUT]
    assert reduce_scatters(reduce, *by_replica, header="replica_count=4") == [["r", "o"]]
    assert reduce_scatters(reduce, *by_replica, header="") == [["r", "o"]]
    assert reduce_scatters(reduce, *BY_ID, CUT, header="replica_count=4") == []


def test_groups_that_do_not_go_with_the_index() -> None:
    """Two groups of two along the other axis: every member of a group takes the same half."""
    reduce = REDUCE.replace("{{0,1,2,3}}", "{{0,2},{1,3}}")
    halves = [BY_ID[0], "two = u32[] constant(2)", "k = u32[] remainder(id, two)", "n = u32[] constant(32)"]
    cut = ["at = u32[] multiply(k, n)", "o = f32[32] dynamic-slice(r, at), dynamic_slice_sizes={32}"]
    assert reduce_scatters(reduce, *halves, *cut) == []
    assert reduce_scatters(reduce.replace("{{0,2},{1,3}}", "{{0,1},{2,3}}"), *halves, *cut) == [["r", "o"]]


def test_parts_that_leave_something_out() -> None:
    """Four devices that take four of eight parts need half of the result alone: that is no reduce-scatter of it."""
    lines = [
        REDUCE,
        BY_ID[0],
        "n = u32[] constant(8)",
        BY_ID[2],
        "o = f32[8] dynamic-slice(r, at), dynamic_slice_sizes={8}",
    ]
    assert reduce_scatters(*lines) == []


def test_some_results_of_several() -> None:
    """Of an all-reduce with several results those are named of which parts are used, with their bytes."""
    lines = [
        f"a = (f32[64], f32[8]) all-reduce(q, p), channel_id=1, replica_groups={{{{0,1,2,3}}}}, {FLAG}, to_apply=add",
        "r = f32[64] get-tuple-element(a), index=0",
        "w = f32[8] get-tuple-element(a), index=1",
        "u = f32[8] negate(w)",
    ]
    found = one_of(problems_in(module_of(*lines, *BY_ID, CUT, header=FOUR)), "all-reduce-slice")
    assert found.instructions == ["a", "o"]
    assert "an all-reduce with f32[64], of which" in found.message
    assert "of a payload of 256 B a device receives 384 B on a ring, and 192 B" in found.message


# --- all-gather and slice -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "used"),
    [
        (["o = f32[8] slice(g), slice={[0:8]}"], 8),
        (["o = f32[16] slice(g), slice={[0:16]}", "v = f32[16] slice(g), slice={[4:20]}"], 20),
        (["o = f32[16] slice(g), slice={[0:16]}", "v = f32[16] slice(g), slice={[0:16]}"], 16),
        (
            [
                "o = f32[4] slice(g), slice={[20:24]}",
                "v = f32[20] slice(g), slice={[4:24:1]}",
                "w = f32[8] slice(g), slice={[8:16]}",
            ],
            20,
        ),
        (["o = f32[8] slice(g), slice={[0:16:2]}", "v = f32[16] slice(g), slice={[0:16]}"], 24),
        (
            [
                "b = f32[4,8] bitcast(g)",
                "o = f32[3,4] slice(b), slice={[0:3], [0:4]}",
                "v = f32[3,4] slice(b), slice={[0:3], [1:5]}",
            ],
            15,
        ),
        (
            [
                "b = f32[4,8] bitcast(g)",
                "o = f32[3,4] slice(b), slice={[0:3], [0:4]}",
                "v = f32[2,4] slice(b), slice={[0:2], [1:5]}",
            ],
            20,
        ),
        (["o = f32[8] slice(g), slice={[0:8]}", "v = f32[16] slice(g), slice={[8:24]}"], 24),
        (["i = s32[] parameter(2)", "o = f32[8] dynamic-slice(g, i), dynamic_slice_sizes={8}"], 8),
        (["b = f32[4,8] bitcast(g)", "o = f32[4,2] slice(b), slice={[0:4], [0:2]}"], 8),
    ],
)
@pytest.mark.parametrize("backend", ["text", "proto"])
def test_parts_of_a_gathered_array(lines: list[str], used: int, backend: str) -> None:
    """Slices that together take less than the whole, wherever they are; what two of them take counts once."""
    module = load_as(module_of(GATHER, *lines, header=FOUR).to_bytes().decode(), backend)
    found = one_of(problems_in(module), "all-gather-slice")
    assert f"found slices of {used} of its 32 elements" in found.message
    assert "a device receives 96 B on a ring" in found.message


@pytest.mark.parametrize(
    "lines",
    [
        ["o = f32[16] slice(g), slice={[0:16]}", "v = f32[16] slice(g), slice={[16:32]}"],
        ["o = f32[29] slice(g), slice={[0:29]}"],
        ["o = f32[20] slice(g), slice={[0:20]}", "v = f32[20] slice(g), slice={[10:30]}"],
        ["o = f32[8] slice(g), slice={[0:8]}", "w = f32[32] negate(g)"],
        ["ROOT o = f32[32] copy(g)"],
        ["o = f32[8] dynamic-slice(q, g), dynamic_slice_sizes={8}"],
    ],
    ids=["all of it", "padding", "padding in parts", "another use", "the result", "an index"],
)
def test_gathered_arrays_that_are_needed(lines: list[str]) -> None:
    """Everything is used, or only the padding of uneven shards is cut away."""
    assert ids_of(problems_in(module_of(GATHER, *lines, header=FOUR))) == []


def test_one_result_of_several_gathered() -> None:
    """Of an all-gather with several results each is looked at alone."""
    lines = [
        f"a = (f32[32], f32[256]) all-gather(p, q), channel_id=1, replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}, {FLAG}",
        "g = f32[32] get-tuple-element(a), index=0",
        "h = f32[256] get-tuple-element(a), index=1",
        "o = f32[8] slice(g), slice={[0:8]}",
        "w = f32[256] negate(h)",
    ]
    assert one_of(problems_in(module_of(*lines, header=FOUR)), "all-gather-slice").instructions == ["a", "o"]
    assert ids_of(problems_in(module_of(*lines, "t = ((f32[32], f32[256])) tuple(a)", header=FOUR))) == []


# --- modules that nobody should write -------------------------------------------------------------------------------


def test_fusions_without_end() -> None:
    """A computation that fuses itself is given up, not followed for ever."""
    before = "fused {\n  a = f32[64] parameter(0)\n  ROOT b = f32[64] fusion(a), kind=kLoop, calls=fused\n}"
    assert reduce_scatters(REDUCE, "f = f32[64] fusion(r), kind=kLoop, calls=fused", before=before) == []


def test_fusions_that_multiply() -> None:
    """A computation that fuses itself twice over doubles the paths at every step: they are not all taken."""
    twice = "\n".join(f"  {name} = f32[64] fusion(a), kind=kLoop, calls=fused" for name in ("b", "c"))
    before = f"fused {{\n  a = f32[64] parameter(0)\n{twice}\n  ROOT d = f32[64] copy(c)\n}}"
    assert reduce_scatters(REDUCE, "f = f32[64] fusion(r), kind=kLoop, calls=fused", before=before) == []


def test_values_in_a_circle() -> None:
    """Operands in a circle, which no valid module has, end the search."""
    lines = ["r2 = f32[64] copy(c2)", "c2 = f32[64] copy(r2)", REDUCE.replace("(q)", "(c2)"), "k = f32[64] copy(r)"]
    assert reduce_scatters(*lines) == []


def test_indices_without_end() -> None:
    """An index that is worked out in thousands of steps is given up."""
    steps = ["x0 = u32[] partition-id()", *(f"x{n} = u32[] add(x{n - 1}, x{n - 1})" for n in range(1, 5000))]
    assert reduce_scatters(REDUCE, *steps, "o = f32[16] dynamic-slice(r, x4999), dynamic_slice_sizes={16}") == []


@pytest.mark.parametrize(
    "module",
    [
        "ENTRY e { ROOT r = f32[8] all-reduce(r), replica_groups={}, to_apply=gone }",
        "ENTRY e { ROOT g = f32[8] all-gather(x), replica_groups={}, dimensions={0} }",
        "f { }\nENTRY e { p = f32[8] parameter(0)\n r = f32[8] all-reduce(p), to_apply=f\n ROOT o = f32[8] fusion(r), calls=f }",
        "ENTRY e { p = f32[8] parameter(0)\n r = f32[8] all-reduce(p), to_apply=f\n ROOT o = f32[8] fusion(r, gone), calls=f }",
        "ENTRY e { ROOT w = (f32[8]) while(w), body=e, condition=e }",
    ],
)
def test_broken_modules_are_checked_as_far_as_they_go(module: str) -> None:
    """Missing computations, operands and ends are no reason to stop."""
    assert all(found.message for found in problems_in(load(f"{module}\n"), target="trn1"))


def test_only_what_is_asked_is_run() -> None:
    """Rules are independent: one alone finds what it finds among all."""
    module = module_of(GATHER, "o = f32[8] slice(g), slice={[0:8]}", header=FOUR)
    [alone] = check(module, [all_gather_slice.RULE])
    assert alone == one_of(problems_in(module), "all-gather-slice")
