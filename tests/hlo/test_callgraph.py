"""How often computations run: loops, calls, branches, and what cannot be known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.hlo.callgraph import CallGraph
from commlens.hlo.discovery import discover
from commlens.hlo.text import TextModule, read_modules
from commlens.hlo.trip_counts import trip_count


def load(text: str) -> TextModule:
    """Return the one module of a text."""
    (module,) = read_modules(text.encode())
    return module


LOOP = """HloModule m

body {{
  s = (s32[], f32[8], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant({step})
  j = s32[] {op}(i, one)
  x = f32[8] get-tuple-element(s), index=1
  n = s32[] get-tuple-element(s), index=2
  r = f32[8] all-reduce(x), replica_groups={{}}, to_apply=add
  ROOT t = (s32[], f32[8], s32[]) tuple(j, r, n)
}}

cond {{
  s = (s32[], f32[8], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=2
  k = s32[] constant({limit})
  ROOT c = pred[] compare({sides}), direction={direction}
}}

ENTRY e {{
  x = f32[8] parameter(0)
  z = s32[] constant({start})
  n = s32[] constant({limit})
  t = (s32[], f32[8], s32[]) tuple(z, x, n)
  w = (s32[], f32[8], s32[]) while(t), condition=cond, body=body{config}
  ROOT g = f32[8] get-tuple-element(w), index=1
}}
"""


def loop(**values: object) -> str:
    """Return a counted loop."""
    defaults = {"step": 1, "op": "add", "limit": 5, "sides": "i, k", "direction": "LT", "start": 0, "config": ""}
    return LOOP.format(**{**defaults, **values})


def run(start: int, limit: int, step: int, direction: str) -> int | None:
    """Run the loop; None where it does not end soon."""
    tests = {"LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__, "GE": int.__ge__, "NE": int.__ne__}
    count = 0
    while tests[direction](start, limit):
        start += step
        count += 1
        if count > 200:
            return None
    return count


@given(
    st.integers(-20, 20),
    st.integers(-20, 20),
    st.integers(-4, 4),
    st.sampled_from(["LT", "LE", "GT", "GE", "NE"]),
    st.sampled_from(["i, k", "i, n"]),
)
def test_counted_loops_are_counted(start: int, limit: int, step: int, direction: str, sides: str) -> None:
    """The count is that of running the loop; the bound may be a constant or an element that never changes."""
    module = load(loop(start=start, limit=limit, step=step, direction=direction, sides=sides))
    expected = run(start, limit, step, direction)
    found = trip_count(module.instruction("w"))
    assert found == expected


def test_sides_may_be_swapped_and_subtraction_counts() -> None:
    """``5 > i`` is ``i < 5``, and counting down by subtraction is counting."""
    assert trip_count(load(loop(sides="k, i", direction="GT")).instruction("w")) == 5
    assert trip_count(load(loop(start=9, limit=1, op="subtract", step=2, direction="GT")).instruction("w")) == 4


@pytest.mark.parametrize(
    "config",
    [
        ', backend_config={"known_trip_count":{"n":"32"},"known_init_step":{"init":"0","step":"1"}}',
        ', backend_config="{\\"known_trip_count\\":{\\"n\\":\\"32\\"}}"',
        ', backend_config={"x":"}","known_trip_count":{"n":32}}',
    ],
)
def test_what_the_module_states_is_believed(config: str) -> None:
    """known_trip_count wins over what the instructions say, in every spelling."""
    assert trip_count(load(loop(config=config)).instruction("w")) == 32


@pytest.mark.parametrize("values", [{"op": "multiply"}, {"sides": "i, i"}, {"direction": "EQ"}, {"step": 0}])
def test_other_loops_are_unknown(values: dict[str, object]) -> None:
    """A loop that does not count, or never ends, has no count: not one, not zero."""
    assert trip_count(load(loop(**values)).instruction("w")) is None


NESTED = """HloModule m

leaf {
  p = f32[8] parameter(0)
  ROOT r = f32[8] all-reduce(p), replica_groups={}, to_apply=add
}

other {
  ROOT p = f32[8] parameter(0)
}

inner_cond {
  p = f32[8] parameter(0)
  q = f32[8] all-reduce(p), replica_groups={}, to_apply=add
  ROOT c = pred[] custom-call(q), custom_call_target="f"
}

inner {
  p = f32[8] parameter(0)
  a = f32[8] call(p), to_apply=leaf
  ROOT b = f32[8] call(a), to_apply=leaf
}

outer_cond {
  p = f32[8] parameter(0)
  ROOT c = pred[] custom-call(p), custom_call_target="f"
}

outer {
  p = f32[8] parameter(0)
  w = f32[8] while(p), condition=inner_cond, body=inner, backend_config={"known_trip_count":{"n":"3"}}
  k = pred[] constant(true)
  ROOT d = f32[8] conditional(k, w, w), true_computation=leaf, false_computation=other
}

unused {
  p = f32[8] parameter(0)
  ROOT a = f32[8] call(p), to_apply=lonely
}

lonely {
  p = f32[8] parameter(0)
  ROOT s = f32[8] all-reduce(p), replica_groups={}, to_apply=add
}

ENTRY e {
  p = f32[8] parameter(0)
  w = f32[8] while(p), condition=outer_cond, body=outer, backend_config={"known_trip_count":{"n":"5"}}
  ROOT l = f32[8] fusion(w), kind=kLoop, calls=leaf
}
"""


def test_call_sites_multiply_along_paths_and_add_up() -> None:
    """The leaf runs 5*(3*2 + 1 branch) times in the loops and once in the entry."""
    graph = discover(load(NESTED)).call_graph
    assert graph.executions("leaf") == 5 * (3 * 2 + 1) + 1
    assert graph.conditionals("leaf") == ("d",)


def test_a_condition_runs_once_more_than_its_body() -> None:
    """Each of the five rounds tests four times."""
    assert discover(load(NESTED)).call_graph.executions("inner_cond") == 5 * 4


def test_what_no_path_leads_to_never_runs() -> None:
    """Not reachable is zero, not unknown."""
    found = discover(load(NESTED))
    assert found.call_graph.executions("lonely") == 0
    assert [site.name for site in found.sites] == ["r", "q", "s"]


def test_an_unknown_factor_makes_the_count_unknown() -> None:
    """One loop without a count spoils the sum, but not what it does not run."""
    graph = discover(load(NESTED.replace(', backend_config={"known_trip_count":{"n":"3"}}', ""))).call_graph
    assert graph.executions("leaf") is None
    assert graph.executions("lonely") == 0


def test_conditionals_that_never_run_are_not_named() -> None:
    """Only the conditionals on paths from the entry say that a count is an upper bound."""
    dead = """dead {
  p = f32[8] parameter(0)
  q = pred[] parameter(1)
  ROOT never = f32[8] conditional(q, p, p), true_computation=leaf, false_computation=leaf
}

"""
    text = NESTED.replace("ENTRY", dead + "ENTRY", 1)
    assert discover(load(text)).call_graph.conditionals("leaf") == ("d",)
    cut = text[: text.index("ENTRY")] + "cut {\n  p = f32[8] parameter(0)\n"
    assert "never" in discover(load(cut)).call_graph.conditionals("leaf")


def test_without_entry_nothing_is_known() -> None:
    """A text cut before its entry has no counts."""
    text = NESTED[: NESTED.index("ENTRY")] + "cut {\n  p = f32[8] parameter(0)\n"
    graph = discover(load(text)).call_graph
    assert graph.executions("leaf") is None


def test_cycles_end() -> None:
    """Computations that call each other, which no valid module has, are unknown and do not hang."""
    text = """HloModule m
a {
  p = f32[8] parameter(0)
  r = f32[8] all-reduce(p), replica_groups={}, to_apply=add
  ROOT x = f32[8] call(r), to_apply=b
}
b {
  p = f32[8] parameter(0)
  ROOT x = f32[8] call(p), to_apply=a
}
ENTRY e {
  p = f32[8] parameter(0)
  ROOT x = f32[8] call(p), to_apply=a
}
"""
    assert discover(load(text)).call_graph.executions("a") is None


def test_call_chains_of_any_length() -> None:
    """Ten thousand nested calls need no recursion, and looking up callers stays linear."""
    depth = 10_000
    parts = ["HloModule m\n\nc.0 {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] all-reduce(p), to_apply=add\n}\n"]
    parts += [
        f"c.{i} {{\n  p = f32[8] parameter(0)\n  ROOT x = f32[8] call(p), to_apply=c.{i - 1}\n}}\n"
        for i in range(1, depth)
    ]
    parts.append(f"ENTRY e {{\n  p = f32[8] parameter(0)\n  ROOT x = f32[8] call(p), to_apply=c.{depth - 1}\n}}\n")
    assert discover(load("".join(parts))).call_graph.executions("c.0") == 1


def test_a_graph_can_leave_call_sites_out() -> None:
    """Call sites with rows of their own do not count."""
    module = load(NESTED)
    graph = CallGraph(module, ["leaf"], lambda call: call.role == "fusion")
    assert graph.executions("leaf") == 35


def test_absurd_counts_are_unknown() -> None:
    """Counts that do not fit 64 bits, which only a broken module has, are not written out."""
    loop_of = 'backend_config={"known_trip_count":{"n":"999999999999999999"}}'
    parts = ["HloModule m\n\nc.0 {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] all-reduce(p), to_apply=add\n}\n"]
    parts += [
        f"c.{i} {{\n  p = f32[8] parameter(0)\n  ROOT x = f32[8] while(p), condition=k, body=c.{i - 1}, {loop_of}\n}}\n"
        for i in range(1, 4)
    ]
    parts.append("ENTRY e {\n  p = f32[8] parameter(0)\n  ROOT x = f32[8] call(p), to_apply=c.1\n}\n")
    text = "".join(parts)
    assert discover(load(text)).call_graph.executions("c.0") == 999_999_999_999_999_999
    assert discover(load(text.replace("to_apply=c.1\n", "to_apply=c.3\n"))).call_graph.executions("c.0") is None


@pytest.mark.parametrize("count", ['"99999999999999999999"', '"12abc"', "12abc", '""'])
def test_counts_that_are_none_are_not_believed(count: str) -> None:
    """A stated count that is no number of 64 bits is unknown, not its first digits."""
    text = loop(op="multiply", config=f', backend_config={{"known_trip_count":{{"n":{count}}}}}')
    assert trip_count(load(text).instruction("w")) is None


def test_counting_ends_soon() -> None:
    """Sums of sums, chains of tuples and cycles cost no more than a fixed number of steps."""
    chain = "\n".join(f"  k{i + 1} = s32[] add(k{i}, k{i})" for i in range(60))
    sums = loop(sides="i, k60").replace("  k = s32[]", f"  k0 = s32[] constant(1)\n{chain}\n  k = s32[]")
    assert trip_count(load(sums).instruction("w")) is None
    links = "\n".join(
        f"  g{i} = s32[] get-tuple-element(t{i}), index=0\n  t{i + 1} = (s32[], f32[8], s32[]) tuple(g{i}, x, n)"
        for i in range(900)
    )
    tuples = loop().replace(
        "  t = (s32[], f32[8], s32[]) tuple(z, x, n)\n  w",
        "  t0 = (s32[], f32[8], s32[]) tuple(z, x, n)\n" + links + "\n  w",
    )
    assert trip_count(load(tuples.replace("while(t)", "while(t900)")).instruction("w")) is None
    cycle = loop().replace("tuple(z, x, n)", "tuple(h, x, n)\n  h = s32[] get-tuple-element(t), index=0")
    assert trip_count(load(cycle).instruction("w")) is None


def test_narrowing_conversions_are_not_seen_through() -> None:
    """A counter that passes through two bits is not the counter any more."""
    text = (
        loop()
        .replace("  k = s32[]", "  i2 = s2[] convert(i)\n  i3 = s32[] convert(i2)\n  k = s32[]")
        .replace("compare(i,", "compare(i3,")
    )
    assert trip_count(load(text).instruction("w")) is None


def turns(start: int, limit: int, step: int, direction: str, low: int, high: int) -> int | None:
    """Run a loop whose counter wraps around; None where it comes back to a value it had."""
    tests = {"LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__, "GE": int.__ge__, "NE": int.__ne__}
    seen: set[int] = set()
    while tests[direction](start, limit):
        if start in seen:
            return None
        seen.add(start)
        start = (start + step - low) % (high - low + 1) + low
    return len(seen)


@given(st.data(), st.sampled_from([("s8", -128, 127), ("u8", 0, 255)]))
def test_counters_are_numbers_of_their_type(data: st.DataObject, kind: tuple[str, int, int]) -> None:
    """A loop whose counter wraps around is unknown or has the true count, never another one."""
    name, low, high = kind
    direction = data.draw(st.sampled_from(["LT", "LE", "GT", "GE", "NE"]))
    start, limit, step = (data.draw(st.integers(low, high)) for _ in range(3))
    text = loop(start=start, limit=limit, step=step, direction=direction).replace("s32[]", f"{name}[]")
    assert trip_count(load(text).instruction("w")) in (None, turns(start, limit, step, direction, low, high))


@pytest.mark.parametrize(
    ("element_type", "values", "expected"),
    [
        ("u8", {"start": 5, "step": 254, "limit": 6, "direction": "LE"}, None),
        ("u8", {"start": 5, "step": 254, "limit": 1, "direction": "GT"}, 2),
        ("u32", {"start": 10, "step": 4294967295, "limit": 0, "direction": "NE"}, 10),
        ("s32", {"limit": 2147483647, "direction": "LT"}, 2147483647),
        ("s32", {"limit": 2147483647, "direction": "LE"}, None),
        ("s8", {"start": 100, "step": 20, "limit": 127}, None),
        ("u64", {"limit": 7}, 7),
        ("u64", {"start": 2**64 - 3, "limit": 2**64 - 1}, 2),
        ("s64", {"start": 4, "limit": -(2**63), "direction": "LT"}, 0),
        ("f32", {"limit": 16777216}, 16777216),
        ("f32", {"limit": 16777218}, None),
        ("bf16", {"limit": 300}, None),
        ("pred", {"limit": 1}, None),
        ("s4", {"limit": 5}, None),
    ],
)
def test_counters_wrap_around(element_type: str, values: dict[str, object], expected: int | None) -> None:
    """Adding the largest unsigned number counts down; a counter that leaves its type before the end counts nothing."""
    text = loop(**values).replace("s32[]", f"{element_type}[]")
    assert trip_count(load(text).instruction("w")) == expected


@pytest.mark.parametrize(
    ("kinds", "limit", "expected"),
    [(("u8", "s32"), 200, 200), (("u8", "s32"), 300, None), (("s32", "u32"), 5, None), (("s32", "f64"), 5, 5)],
)
def test_conversions_that_hold_every_value_are_seen_through(
    kinds: tuple[str, str], limit: int, expected: int | None
) -> None:
    """A counter may be compared in a wider type, and still wraps around in its own."""
    own, wide = kinds
    text = (
        loop(limit=limit)
        .replace("s32[]", f"{own}[]")
        .replace(f"  k = {own}[]", f"  v = {wide}[] convert(i)\n  k = {wide}[]")
        .replace("compare(i,", "compare(v,")
        .replace(f"  n = {own}[] constant({limit})", f"  n = {own}[] constant(0)")
    )
    assert trip_count(load(text).instruction("w")) == expected


def test_constants_are_folded_in_their_type() -> None:
    """200 + 100 is no number of eight bits, and no bound."""
    text = loop(sides="i, k2", limit=200).replace("s32[]", "u8[]")
    text = text.replace("  k = u8[]", "  h = u8[] constant(100)\n  k = u8[]")
    text = text.replace("  ROOT c", "  k2 = u8[] add(k, h)\n  ROOT c")
    assert trip_count(load(text).instruction("w")) is None
