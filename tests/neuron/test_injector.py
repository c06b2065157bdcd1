"""The stream id injector: documented cases, every quirk, and a twin that follows the three scans with loops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens import load
from commlens.neuron import COLLECTIVE_TYPES, CollectiveStreamIdChecker
from commlens.neuron.predicates import CHANNEL_CLASS, COLLECTIVE_CLASS
from neuron_cases import cases
from neuron_modules import BACKENDS, Notation, both, computation_name, module_of, name_of, stats_of, stream_ids
from stamping import ALL, DP, INJECTOR, TP, gather, stamped


@both
@pytest.mark.parametrize("case", cases("stream_id_injector"))
def test_documented_cases(case: dict[str, Any], backend: str) -> None:
    """Stream ids and `changed` as documented; a second run changes nothing and says what the first said."""
    result, found = stamped(case["computations"], backend)
    assert (found, result.changed) == (case["expected_stream_ids"], case["expected_changed"])
    again = INJECTOR.run(result.module)
    assert (again.changed, again.modified, again.edits) == (case["expected_changed"], False, ())
    assert again.module is result.module


@both
def test_the_module_that_was_given_stays_as_it_was(backend: str) -> None:
    """The new module is another one, and reading its source again gives the same stream ids."""
    notation = [[gather(TP, ct="tp_all_gather"), gather(DP, ct="fsdp_all_gather")]]
    module = module_of(notation, backend)
    before = module.to_bytes()
    result = INJECTOR.run(module)
    assert result.module is not module
    assert module.to_bytes() == before
    assert stream_ids(load(result.module.to_bytes()), notation) == [["0", "1"]]


def test_nothing_but_the_attribute_changes_in_a_text() -> None:
    """It joins a map in the order of keys, stands before the metadata, or last."""
    body = """  g = f32[16]{0} all-gather(p), dimensions={0}, frontend_attributes={collective_type="tp_all_gather",zz="1"}
  h = f32[16]{0} all-gather( p ),dimensions={0},  metadata={op_name="x"} // stream_id="9"
  ROOT i = f32[16]{0} all-gather(p), dimensions={0}
"""
    result = INJECTOR.run(load(f"ENTRY e {{\n  p = f32[8]{{0}} parameter(0)\n{body}}}\n"))
    expected = (
        body.replace('gather",zz', 'gather",stream_id="0",zz')
        .replace(',  metadata={op_name="x"}', ', frontend_attributes={stream_id="0"},  metadata={op_name="x"}')
        .replace(
            "i = f32[16]{0} all-gather(p), dimensions={0}",
            'i = f32[16]{0} all-gather(p), dimensions={0}, frontend_attributes={stream_id="0"}',
        )
    )
    assert result.module.to_bytes().decode() == f"ENTRY e {{\n  p = f32[8]{{0}} parameter(0)\n{expected}}}\n"


# --- what is stamped ------------------------------------------------------------------------------------------------


@both
def test_only_the_class_is_stamped(backend: str) -> None:
    """Every opcode with a channel: eight are stamped, the others stay without and are named with the reason."""
    notation = [[{"op": op} for op in sorted(CHANNEL_CLASS)]]
    result, found = stamped(notation, backend)
    assert found == [["0" if op in COLLECTIVE_CLASS else None for op in sorted(CHANNEL_CLASS)]]
    assert stats_of(result)["stamped"] == len(COLLECTIVE_CLASS)
    untouched = {each["opcode"]: each["why"] for each in stats_of(result)["untouched"]}
    assert sorted(untouched) == ["collective-permute", "collective-permute-start", "recv", "send"]
    assert all("no HloCollectiveInstruction" in why for why in untouched.values())


@both
def test_without_exemplar_all_get_0_and_changed_is_false(backend: str) -> None:
    """What is documented as unchanged differs all the same; the result says both, and warns."""
    result, found = stamped([[gather(TP), gather(DP, ct="ep_all_gather"), gather([])]], backend)
    assert found == [["0", "0", "0"]]
    assert (result.changed, result.modified) == (False, True)
    assert (stats_of(result)["tp_exemplar"], stats_of(result)["fsdp_exemplar"]) == (None, None)
    assert 'all 3 get stream_id "0", and `changed` is false' in result.warnings[0]


@both
def test_a_module_without_collectives_is_left_alone(backend: str) -> None:
    """Nothing to stamp: nothing said, nothing changed."""
    result, _ = stamped([[{"op": "negate"}], [{"op": "negate"}]], backend)
    assert (result.changed, result.modified, result.warnings, stats_of(result)["stamped"]) == (False, False, (), 0)


@both
def test_a_marked_permute_is_no_exemplar(backend: str) -> None:
    """Neither is a send or recv: they are outside the class."""
    notation = [[{"op": op, "ct": "tp_all_gather"} for op in ("collective-permute", "send", "recv")]]
    result, found = stamped(notation, backend)
    assert (found, result.changed, result.modified) == ([[None] * 3], False, False)


@both
def test_an_existing_value_is_overwritten_and_reported(backend: str) -> None:
    """Old and new value per instruction; a value that is right already is counted, and left."""
    notation = [[gather(DP, ct="fsdp_all_gather", sid="3", id="a"), gather(TP, sid="0"), gather(TP, id="b")]]
    result, found = stamped(notation, backend)
    assert found == [["1", "0", "0"]]
    overwritten = stats_of(result)["overwritten"]
    assert [(each["instruction"], each["old"], each["new"]) for each in overwritten] == [("a", "3", "1")]
    assert stats_of(result)["as_before"] == 1
    assert len(result.edits) == 2


# --- the exemplars --------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(("kind", "digit"), list(zip(COLLECTIVE_TYPES, "0011", strict=True)))
def test_each_type_makes_an_exemplar(kind: str, digit: str, backend: str) -> None:
    """Two values mean TP, two FSDP, whatever the opcode is."""
    result, found = stamped([[{"op": "all-to-all", "rg": DP, "ct": kind}, gather(TP)]], backend)
    assert (found, result.changed) == ([[digit, "0"]], True)


@both
@pytest.mark.parametrize("kind", ["TP_all_gather", "tp_all_gathers", "fsdp", "", "tp_all_reduce"])
def test_other_types_make_none(kind: str, backend: str) -> None:
    """The whole value counts, and upper case is not lower case."""
    result, found = stamped([[gather(DP, ct=kind), gather(TP)]], backend)
    assert (found, result.changed) == ([["0", "0"]], False)


@both
@pytest.mark.parametrize(
    ("dtype", "is_exemplar"),
    [("s1", False), ("s8", False), ("u64", False), ("s32", False), ("pred", True), ("f32", True), ("f8e4m3fn", True)],
)
def test_integer_shapes_make_no_exemplar(dtype: str, is_exemplar: bool, backend: str) -> None:
    """Signed and unsigned integers of any width are passed over, pred is not; both are stamped."""
    result, found = stamped([[gather(DP, ct="fsdp_all_gather", dtype=dtype), gather(DP)]], backend)
    assert result.changed is is_exemplar
    assert found == [["1", "1"] if is_exemplar else ["0", "0"]]


@both
def test_integer_collectives_are_stamped_by_their_groups(backend: str) -> None:
    """They are left out of the search alone."""
    notation = [[gather(DP, ct="fsdp_all_gather"), gather(DP, dtype="s32", ct="tp_all_gather")]]
    assert stamped(notation, backend)[1] == [["1", "1"]]


@pytest.mark.parametrize(
    ("shape", "operands", "is_exemplar"),
    [
        ("(s32[8], u8[8])", "p, q", False),
        ("(s32[8], f32[8])", "p, f", True),
        ("(s32[8], token[])", "p, t", True),
        ("()", "", False),
    ],
)
def test_every_leaf_of_the_result_counts(shape: str, operands: str, is_exemplar: bool) -> None:
    """One leaf that is no integer makes an exemplar, a token too; an empty tuple has no such leaf."""
    result = INJECTOR.run(
        load(f"""ENTRY e {{
  p = s32[8] parameter(0)
  q = u8[8] parameter(1)
  f = f32[8] parameter(2)
  t = token[] after-all()
  r = {shape} all-to-all({operands}), replica_groups={{{{0,1}}}}, frontend_attributes={{collective_type="fsdp_all_gather"}}
}}
""")
    )
    assert result.changed is is_exemplar
    assert result.module.instruction("r").frontend_attributes["stream_id"] == ("1" if is_exemplar else "0")


def test_contexts_of_a_start_are_integers_and_do_not_matter() -> None:
    """Its result is operands, results and contexts: floats among them make an exemplar, integers alone none."""
    for dtype, is_exemplar in (("f32", True), ("s32", False)):
        result = INJECTOR.run(
            load(f"""ENTRY e {{
  p = {dtype}[8] parameter(0)
  s = ({dtype}[8], {dtype}[16], u32[], u32[]) all-gather-start(p), dimensions={{0}}, frontend_attributes={{collective_type="tp_all_gather"}}
}}
""")
        )
        assert result.changed is is_exemplar


@both
def test_first_match_of_a_computation_counts_and_the_last_computation_overwrites(backend: str) -> None:
    """Within one the first, among several the last that has one; a computation with integers alone has none."""
    two = [gather(TP, ct="tp_all_gather", id="a"), gather(DP, ct="tp_all_gather", id="b")]
    one = [gather(ALL, ct="tp_reduce_scatter", id="c")]
    none = [gather(DP, ct="tp_all_gather", dtype="u8"), gather(DP)]
    for notation, name, groups in (([one, two, none], "a", "{{0,1},{2,3}}"), ([two, one, none], "c", "{{0,1,2,3}}")):
        exemplar = stats_of(stamped(notation, backend)[0])["tp_exemplar"]
        assert (exemplar["instruction"], exemplar["groups"]) == (name, groups)


@both
def test_post_order_decides_within_a_computation(backend: str) -> None:
    """Not list order: the operands of what is first without users come first."""
    notation = [
        [
            gather(TP, ct="fsdp_all_gather", id="late"),
            gather(DP, ct="fsdp_all_gather", id="early"),
            {"op": "negate", "operands": ["early"]},
            {"op": "negate", "operands": ["late"]},
        ]
    ]
    result, found = stamped(notation, backend)
    assert found == [["0", "1", None, None]]
    assert stats_of(result)["fsdp_exemplar"]["instruction"] == "early"


@both
def test_the_third_geometry_gets_0(backend: str) -> None:
    """What equals neither exemplar goes with tensor parallelism."""
    notation = [
        [gather(TP, ct="tp_all_gather"), gather(DP, ct="fsdp_all_gather"), gather(ALL), gather([[0], [1, 2, 3]])]
    ]
    assert stamped(notation, backend)[1] == [["0", "1", "0", "0"]]


@both
def test_order_counts_and_spelling_does_not(backend: str) -> None:
    """Groups or members in another order are another geometry."""
    notation = [[gather(DP, ct="fsdp_all_gather"), gather([[2, 0], [1, 3]]), gather([[1, 3], [0, 2]]), gather(DP)]]
    assert stamped(notation, backend)[1] == [["1", "0", "0", "1"]]


def test_an_iota_equals_the_list_it_stands_for() -> None:
    """Iota, mesh axes and lists are compared by the groups they hold."""
    spellings = ["{{0,2},{1,3}}", "[2,2]<=[2,2]T(1,0)", "mesh['a'=2,'b'=2] {'a'}", "mesh['a'=2,'b'=2] {'b'}"]
    lines = [
        f"  g{i} = f32[16] all-gather(p), replica_groups={each}, dimensions={{0}}" for i, each in enumerate(spellings)
    ]
    lines[1] += ', frontend_attributes={collective_type="fsdp_reduce_scatter"}'
    module = INJECTOR.run(load("ENTRY e {\n  p = f32[8] parameter(0)\n" + "\n".join(lines) + "\n}\n")).module
    assert [module.instruction(f"g{i}").frontend_attributes["stream_id"] for i in range(4)] == ["1", "1", "1", "0"]


@both
def test_equal_exemplars_leave_0_for_everybody(backend: str) -> None:
    """TP is compared first; a warning says so."""
    result, found = stamped([[gather(TP, ct="tp_all_gather"), gather(TP, ct="fsdp_all_gather"), gather(DP)]], backend)
    assert found == [["0", "0", "0"]]
    assert any(
        'have the same groups {{0,1},{2,3}}: every collective gets stream_id "0"' in each for each in result.warnings
    )


@both
def test_empty_groups_equal_an_exemplar_that_was_not_found(backend: str) -> None:
    """With TP alone they get "1", with FSDP alone "0"; a warning names the instruction either way."""
    for kind, groups, digit in (("tp_all_gather", TP, "1"), ("fsdp_all_gather", DP, "0")):
        result, found = stamped([[gather(groups, ct=kind), {"op": "all-reduce", "id": "lonely"}]], backend)
        assert found[0][1] == digit
        [warning] = [each for each in result.warnings if each.startswith("no replica groups are stated by lonely")]
        assert warning.endswith(f'was not found, and so get stream_id "{digit}"')


@both
def test_empty_groups_of_an_exemplar_that_was_found_are_groups(backend: str) -> None:
    """A marked collective without groups is an exemplar as any; nothing is said of it. One empty group is another."""
    notation = [[gather([], ct="fsdp_all_gather"), gather(TP, ct="tp_all_gather"), {"op": "all-reduce"}]]
    result, found = stamped(notation, backend)
    assert (found, result.warnings) == ([["1", "0", "1"]], ())


@both
def test_own_type_does_not_decide_and_that_is_said(backend: str) -> None:
    """A collective marked FSDP with the groups of TP goes to stream 0."""
    notation = [
        [gather(TP, ct="tp_all_gather"), gather(DP, ct="fsdp_all_gather"), gather(TP, ct="fsdp_all_gather", id="odd")]
    ]
    result, found = stamped(notation, backend)
    assert found == [["0", "1", "0"]]
    [warning] = result.warnings
    assert warning.startswith("by their groups, not as their own collective_type says, the stream was chosen for odd")


# --- the loops ------------------------------------------------------------------------------------------------------

ENTRIES = st.builds(
    lambda op, rg, ct, sid, dtype: {"op": op, "rg": rg, "ct": ct, "sid": sid, "dtype": dtype},
    st.sampled_from(["all-gather", "all-reduce", "all-gather-start", "all-to-all", "collective-permute", "send"]),
    st.sampled_from([TP, DP, ALL, [], [[1, 0], [3, 2]]]),
    st.none() | st.sampled_from([*COLLECTIVE_TYPES, "other"]),
    st.none() | st.sampled_from(["0", "1", "7", ""]),
    st.sampled_from(["bf16", "bf16", "s32", "pred"]),
)


def slow_streams(notation: Notation) -> tuple[list[list[str | None]], bool]:
    """Follow the three documented scans; list order is post-order in these modules."""
    changed = False
    exemplars: dict[str, list[list[int]]] = {"tp": [], "fsdp": []}
    for kind in exemplars:
        for row in notation:
            for each in row:
                if each["op"] in ("collective-permute", "send") or each["dtype"] == "s32" or each["ct"] is None:
                    continue
                if each["ct"] in (f"{kind}_all_gather", f"{kind}_reduce_scatter"):
                    exemplars[kind] = each["rg"]
                    changed = True
                    break
    found: list[list[str | None]] = []
    for row in notation:
        found.append([])
        for each in row:
            if each["op"] in ("collective-permute", "send"):
                found[-1].append(each["sid"])
            elif each["rg"] == exemplars["tp"] or each["rg"] != exemplars["fsdp"]:
                found[-1].append("0")
            else:
                found[-1].append("1")
    return found, changed


@given(st.lists(st.lists(ENTRIES, max_size=5), min_size=1, max_size=3), st.sampled_from(BACKENDS))
def test_streams_are_those_of_the_loops(notation: Notation, backend: str) -> None:
    """Any mixture; what `modified` says is whether a value differs; the checker finds what the injector writes."""
    result, found = stamped(notation, backend)
    assert (found, result.changed) == slow_streams(notation)
    before = [[each["sid"] for each in row] for row in notation]
    assert result.modified is (found != before)
    collectives = [
        name_of(number, position, each)
        for number, row in enumerate(notation)
        for position, each in enumerate(row)
        if each["op"] in COLLECTIVE_CLASS
    ]
    assert CollectiveStreamIdChecker().run(result.module).found is bool(collectives)
    assert stats_of(result)["stamped"] == len(collectives)
    assert computation_name(0) in [each.name for each in result.module.computations]
