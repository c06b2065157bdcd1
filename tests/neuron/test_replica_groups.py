"""Groups of an instruction, and the tensor-parallel groups: cases, spellings, and a slow walk in post-order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens import load
from commlens.hlo import Computation, UnreadableError
from commlens.neuron import get_replica_groups, get_tp_replica_group, has_matching_replica_groups
from commlens.topology import IotaReplicaGroupList
from neuron_cases import cases
from neuron_modules import BACKENDS, Notation, both, module_of
from proto_twin import load_as, proto_twin

if TYPE_CHECKING:
    from commlens import Module

TP = [[0, 1], [2, 3]]
DP = [[0, 2], [1, 3]]


def text(body: str, before: str = "") -> Module:
    """Wrap the lines of an entry computation."""
    return load(f"{before}ENTRY e {{\n  p = f32[8]{{0}} parameter(0)\n{body}\n}}\n")


# --- get_replica_groups ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("replica_groups={{0,2},{1,3}}, ", DP),
        ("replica_groups=[2,2]<=[2,2]T(1,0), ", DP),
        ("replica_groups=mesh['a'=2,'b'=2] {'a'}, ", DP),
        ("replica_groups={{0,1,2},{3}}, ", [[0, 1, 2], [3]]),
        ("replica_groups={}, ", []),
        ("", []),
    ],
)
def test_groups_in_every_spelling(spelling: str, expected: list[list[int]]) -> None:
    """Lists, written out; absent groups are no groups."""
    module = text(f"  ROOT r = f32[8]{{0}} all-reduce(p), {spelling}to_apply=add")
    assert get_replica_groups(module.instruction("r")) == expected


@both
def test_groups_on_both_backends(backend: str) -> None:
    """The same from text and proto, of every opcode that has groups."""
    opcodes = ["all-gather", "all-gather-start", "all-reduce", "all-reduce-start", "reduce-scatter", "all-to-all"]
    notation = [[{"op": op, "rg": DP} for op in [*opcodes, "collective-broadcast", "ragged-all-to-all"]]]
    module = module_of(notation, backend)
    found = [each for each in module.computations[-1].instructions if each.opcode in opcodes]
    assert [get_replica_groups(each) for each in found] == [DP] * len(found)


def test_a_start_in_short_has_the_groups_of_what_it_wraps() -> None:
    """Its line states them."""
    line = (
        "  s = ((f32[8]{0}), f32[4]{0}) reduce-scatter-start(p), replica_groups={{0,1}}, dimensions={0}, to_apply=add"
    )
    assert get_replica_groups(text(line).instruction("s")) == [[0, 1]]


@pytest.mark.parametrize(
    "line",
    [
        "r = f32[8]{0} negate(p)",
        "r = f32[8]{0} collective-permute(p), source_target_pairs={{0,1}}",
        "r = f32[8]{0} all-gather-done(p), replica_groups={{0,1}}",
        'r = f32[8]{0} custom-call(p), custom_call_target="all-gather-start"',
    ],
)
def test_what_has_no_groups_is_refused(line: str) -> None:
    """No silent empty list for an opcode outside the class."""
    with pytest.raises(ValueError, match="^expected a collective with replica groups .*, found [a-z-]+ r$"):
        get_replica_groups(text(f"  ROOT {line}").instruction("r"))


def test_groups_that_cannot_be_read_are_refused() -> None:
    """An iota that is no bijection is an error, not a guess."""
    module = text("  ROOT r = f32[8]{0} all-reduce(p), replica_groups=[2,2]<=[6], to_apply=add")
    with pytest.raises(UnreadableError, match="replica_groups cannot be read"):
        get_replica_groups(module.instruction("r"))


# --- has_matching_replica_groups ------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("case", cases("has_matching_replica_groups"))
def test_matching_cases(case: dict[str, Any], backend: str) -> None:
    """Number of groups, lengths, ids in order; where the source is undefined the answer is False."""
    module = module_of([[{"op": "all-reduce", "rg": case["inst"], "id": "r"}]], backend)
    expected = case["expected"] if isinstance(case["expected"], bool) else False
    assert has_matching_replica_groups(module.instruction("r"), case["ref"]) is expected


@both
def test_matching_is_about_groups_not_spelling(backend: str) -> None:
    """An iota equals the list it stands for; two empty lists, undefined in the source, do not match."""
    module = module_of(
        [[{"op": "all-reduce", "rg": TP, "id": "r"}, {"op": "all-reduce", "rg": [], "id": "s"}]], backend
    )
    assert has_matching_replica_groups(module.instruction("r"), IotaReplicaGroupList(2, 2))
    assert not has_matching_replica_groups(module.instruction("r"), [[1, 0], [2, 3]])
    assert not has_matching_replica_groups(module.instruction("s"), [])
    assert not has_matching_replica_groups(module.instruction("s"), TP)


# --- get_tp_replica_group -------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("case", cases("get_tp_replica_group"))
def test_tensor_parallel_cases(case: dict[str, Any], backend: str) -> None:
    """Of a module and of its entry computation."""
    module = module_of(case["computations"], backend)
    expected = case["expected"] if case["expected_found"] else None
    assert module.entry is not None
    assert get_tp_replica_group(module) == get_tp_replica_group(module.entry) == expected


@both
@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ([], TP),
        (["reshape"], TP),
        (["reshape", "reshape"], None),
        (["transpose"], None),
        (["bitcast"], None),
        (["convert", "reshape"], None),
    ],
)
def test_only_a_reshape_may_stand_between(between: list[str], expected: list[list[int]] | None, backend: str) -> None:
    """One reshape, whatever a comment in the source promises."""
    names = ["d", *(f"b{i}" for i in range(len(between)))]
    chain = [
        {"op": op, "id": name, "operands": [names[i]]}
        for i, (op, name) in enumerate(zip(between, names[1:], strict=True))
    ]
    scatter = {"op": "reduce-scatter", "operands": [names[-1]], "rg": TP}
    assert get_tp_replica_group(module_of([[{"op": "dot", "id": "d"}, *chain, scatter]], backend)) == expected


@both
def test_first_computation_with_a_hit_counts(backend: str) -> None:
    """A computation without one is passed over; hits are not gathered, and a hit without groups is a hit."""
    bare = [{"op": "reduce-scatter", "rg": DP}]
    hit = [{"op": "dot", "id": "d"}, {"op": "reduce-scatter", "operands": ["d"], "rg": TP}]
    other = [{"op": "dot", "id": "e"}, {"op": "reduce-scatter", "operands": ["e"], "rg": [], "id": "r"}]
    assert get_tp_replica_group(module_of([bare, hit, other], backend)) == TP
    assert get_tp_replica_group(module_of([bare, other, hit], backend)) == []


@both
def test_post_order_decides_not_list_order(backend: str) -> None:
    """The walk starts from what nobody uses: operands of the first such one come first, wherever they are listed."""
    row = [
        {"op": "dot", "id": "d"},
        {"op": "reduce-scatter", "id": "late", "operands": ["d"], "rg": TP},
        {"op": "reduce-scatter", "id": "early", "operands": ["d"], "rg": DP},
        {"op": "negate", "id": "first_without_users", "operands": ["early"]},
        {"op": "negate", "id": "then", "operands": ["late"]},
    ]
    assert get_tp_replica_group(module_of([row], backend)) == DP


@both
def test_an_order_in_which_something_is_needed_too_early_is_refused(backend: str) -> None:
    """XLA reads no such module; where all hits have the same groups nobody asks for the order."""
    source = """add {
  q = f32[]{} parameter(0)
  r = f32[]{} parameter(1)
  ROOT s = f32[]{} add(q, r)
}
ENTRY e {
  p = f32[8]{0} parameter(0)
  d = f32[8]{0} dot(p, p)
  x = f32[8]{0} negate(y)
  y = f32[8]{0} negate(p)
  a = f32[4]{0} reduce-scatter(d), replica_groups={{0,1}}, dimensions={0}, to_apply=add
  ROOT b = f32[4]{0} reduce-scatter(d), replica_groups={{1,0}}, dimensions={0}, to_apply=add
}
"""
    with pytest.raises(UnreadableError, match="^x: expected all that it needs .*, found y behind it$") as caught:
        get_tp_replica_group(load_as(source, backend))
    assert (caught.value.line, caught.value.column) == ((9, 3) if backend == "text" else (None, None))
    assert get_tp_replica_group(load_as(source.replace("{{1,0}}", "{{0,1}}"), backend)) == [[0, 1]]


ASYNC = """side {
  q = f32[8]{0} parameter(0)
  d = f32[8]{0} dot(q, q)
  ROOT r = f32[4]{0} reduce-scatter(d), replica_groups={{0,1}}, dimensions={0}, to_apply=add
}

nested {
  q = f32[8]{0} parameter(0)
  ROOT c = f32[4]{0} call(q), to_apply=side
}

"""


def test_threads_leave_out_computations_on_others() -> None:
    """Names are those of execution threads, of the async-start that leads there, through plain calls too."""
    line = '  s = ((f32[8]{0}), f32[4]{0}, u32[]) async-start(p), calls=nested, async_execution_thread="cc"'
    module = text(line, ASYNC)
    assert get_tp_replica_group(module) == get_tp_replica_group(module, threads=[]) == [[0, 1]]
    assert get_tp_replica_group(module, threads=["cc", "x"]) == get_tp_replica_group(module, "cc") == [[0, 1]]
    assert get_tp_replica_group(module, threads=["main"]) is None
    assert get_tp_replica_group(module, threads=["side"]) is None
    side = module.computation("side")
    assert side is not None
    assert get_tp_replica_group(side, threads=["main"]) is None
    assert get_tp_replica_group(side, threads=["cc"]) == [[0, 1]]


CALLED = (
    "  s = f32[8]{0} negate(p)",
    "  s = f32[4]{0} call(p), to_apply=nested",
    "  s = ((f32[8]{0}), f32[4]{0}, u32[]) async-start(p), calls=nested",
)


@both
@pytest.mark.parametrize("line", CALLED)
@pytest.mark.parametrize("place", ["side", "nested"])
def test_a_computation_may_state_its_thread(place: str, line: str, backend: str) -> None:
    """Behind its closing brace, in a proto in field 8; what it calls runs there too, whether or not anybody calls it."""
    head, brace, tail = ASYNC.partition(f"{place} {{")
    stated = head + brace + tail.replace("\n}\n", '\n}, execution_thread="sparsecore"\n', 1)
    module = text(line, stated)
    if backend == "proto":
        module = _as_proto(f"{ASYNC}ENTRY e {{\n  p = f32[8]{{0}} parameter(0)\n{line}\n}}\n", place)
    assert get_tp_replica_group(module, threads=["sparsecore"]) == get_tp_replica_group(module) == [[0, 1]]
    assert get_tp_replica_group(module, threads=["main"]) is None
    assert get_tp_replica_group(module, threads=["side", "nested"]) is None


def _as_proto(written: str, place: str) -> Module:
    """Return a module as a proto in which a computation states its thread."""
    proto = proto_twin(load(written.replace(", to_apply=add", "")))
    [found] = [each for each in proto.computations if each.name == place.encode()]
    found.MergeFromString(b"\x42\x0asparsecore")
    return load(proto.SerializeToString())


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ('} /* c */ ,\n execution_thread = "sparsecore"', [[0, 1]]),
        ('}, execution_thread="sparse\\143ore"', [[0, 1]]),
        ('}, execution_thread="sparsecores"', None),
        ('} // execution_thread="sparsecore"', None),
        ('}\nfrontend = "}, execution_thread=\\"sparsecore\\""', None),
        ('}, execution_thread=""', None),
    ],
)
def test_only_what_stands_behind_the_brace_is_its_thread(stated: str, expected: list[list[int]] | None) -> None:
    """With blanks and comments between, and in a string of C."""
    module = text("  s = f32[8]{0} negate(p)", ASYNC.replace("\n}\n", f"\n{stated}\n", 1))
    assert get_tp_replica_group(module, threads=["sparsecore"]) == expected
    assert get_tp_replica_group(module) == [[0, 1]]


def test_main_is_the_thread_of_all_others() -> None:
    """A computation that is called plainly, started without a thread, or not called at all."""
    for line in (
        "  s = f32[4]{0} call(p), to_apply=nested",
        "  s = ((f32[8]{0}), f32[4]{0}, u32[]) async-start(p), calls=nested",
        "  s = f32[8]{0} negate(p)",
    ):
        module = text(line, ASYNC)
        assert get_tp_replica_group(module, threads=["main"]) == [[0, 1]]
        assert get_tp_replica_group(module, threads=["cc"]) is None


def test_computations_that_call_each_other_end() -> None:
    """A cycle, which no valid module has, runs on the main thread."""
    loop = ASYNC.replace("ROOT r =", "x = f32[4]{0} call(q), to_apply=nested\n  ROOT r =")
    assert get_tp_replica_group(text("  s = f32[8]{0} negate(p)", loop), threads=["main"]) == [[0, 1]]


def test_a_start_in_short_does_not_match() -> None:
    """In XLA's memory the reduce-scatter stands in a computation of its own, on a parameter."""
    module = text("""  d = f32[8]{0} dot(p, p)
  s = ((f32[8]{0}), f32[4]{0}) reduce-scatter-start(d), replica_groups={{0,1}}, dimensions={0}, to_apply=add""")
    assert get_tp_replica_group(module) is None


def test_order_is_not_made_out_where_it_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal groups need no post-order, which takes long in a large computation; different ones do."""
    calls: list[str] = []
    real = Computation.post_order
    monkeypatch.setattr(Computation, "post_order", lambda self: (calls.append(self.name), real(self))[1])
    row = [{"op": "dot", "id": "d"}, *({"op": "reduce-scatter", "operands": ["d"], "rg": TP} for _ in range(3))]
    assert get_tp_replica_group(module_of([row], "text")) == TP
    assert calls == []
    assert get_tp_replica_group(module_of([[*row, {**row[1], "rg": DP}]], "text")) == TP
    assert calls == ["c0"]


def slow_tp(module: Module) -> list[list[int]] | None:
    """Walk every computation in post-order and look at each instruction."""
    for computation in module.computations:
        for each in computation.post_order():
            if each.opcode == "reduce-scatter":
                operand = each.operands[0]
                if operand.opcode == "dot" or (operand.opcode == "reshape" and operand.operands[0].opcode == "dot"):
                    return each.replica_groups.groups()
    return None


@st.composite
def graphs(draw: st.DrawFn) -> Notation:
    """Computations in which operands are any earlier instructions."""
    rows: Notation = []
    for number in range(draw(st.integers(1, 2))):
        row: list[dict[str, Any]] = []
        for position in range(draw(st.integers(1, 9))):
            opcode = draw(st.sampled_from(["dot", "reshape", "reduce-scatter", "reduce-scatter", "negate"]))
            before = [each["id"] for each in row] or ["p.bf16"]
            operands = draw(st.lists(st.sampled_from(before), min_size=1, max_size=2))
            made = {"op": opcode, "id": f"i{number}.{position}", "operands": operands}
            row.append({**made, "rg": draw(st.sampled_from([TP, DP, []]))} if opcode == "reduce-scatter" else made)
        rows.append(row)
    return rows


@given(graphs(), st.sampled_from(BACKENDS))
def test_groups_are_those_of_the_slow_walk(notation: Notation, backend: str) -> None:
    """Whatever uses whatever."""
    module = module_of(notation, backend)
    assert get_tp_replica_group(module) == slow_tp(module)
