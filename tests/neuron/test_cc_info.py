"""CC info: from modules and def.json, back to def.json, and the number of workers in both readings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.errors import CommlensError, InputError
from commlens.hlo import discover, load, load_all
from commlens.neuron import READINGS, CCInfo, WorldSizeError, pair_components, pair_group_of
from neuron_cases import cases, section

if TYPE_CHECKING:
    from pathlib import Path

WORDS = {
    "inconsistent": "Inconsistent worker count across topologies: ",
    "empty_topology 0": "Empty topology found at index 0, possible MPMD neff file",
    "empty_topology 1": "Empty topology found at index 1, possible MPMD neff file",
}


def sizes(info: CCInfo) -> dict[str, int | str]:
    """Return the world size in both readings, or the refusal."""
    answers: dict[str, int | str] = {}
    for reading in READINGS:
        try:
            answers[reading] = info.world_size(reading)
        except WorldSizeError as error:
            answers[reading] = str(error)
    return answers


def agrees(answer: int | str, expected: int | str) -> bool:
    """Whether an answer is the number, or the refusal, that a case names."""
    if isinstance(expected, int):
        return answer == expected
    return isinstance(answer, str) and answer.startswith(WORDS[expected.removeprefix("error:")])


# --- world size -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", cases("cc_rank_world_size"))
def test_world_size_of_cases(case: dict[str, Any]) -> None:
    """Both readings give the number, or refuse in the words of the document."""
    answers = sizes(CCInfo.from_def_json(case["def_json"]))
    assert agrees(answers["documented"], case["inner_reading"])
    assert agrees(answers["total"], case["total_reading"])


def test_world_size_of_the_miniature_with_two_topologies() -> None:
    """Tensor and data parallel groups in one program: the documented reading refuses, the other one counts workers."""
    case = section("miniature_def_json_tp_dp")
    answers = sizes(CCInfo.from_def_json(case["def_json"]))
    assert agrees(answers["documented"], case["documented"])
    assert answers["total"] == case["total"]


def test_world_size_of_the_miniature() -> None:
    """The miniature definition has one topology of two groups."""
    info = CCInfo.from_def_json(section("miniature_def_json"))
    assert info.topologies == [{"num_groups": 2, "group_size": 4}]
    assert sizes(info) == {"documented": 4, "total": 8}


@pytest.mark.parametrize("case", cases("cc_rank_world_size_pairs"))
def test_world_size_of_pairs(case: dict[str, Any]) -> None:
    """Pairs say one more than their largest id; keys that hold nothing are refused."""
    info = CCInfo.from_def_json({key: case[key] for key in ("src_target_pairs", "replica_groups") if key in case})
    if "expected" in case:
        refusal = case["expected"].removeprefix("error: ")
        assert sizes(info) == {"documented": refusal, "total": refusal}
    else:
        assert sizes(info) == {"documented": case["span_max_plus_1"], "total": case["span_max_plus_1"]}


def test_a_program_without_collectives_is_refused_by_the_documented_reading_alone() -> None:
    """Nothing said at all: the documented reader has words for it; in all such a program needs one worker."""
    info = CCInfo.from_def_json("{}")
    assert not info.has_cc
    assert sizes(info) == {"documented": "NEFF does not have CC op", "total": 1}


@pytest.mark.parametrize(
    ("info", "refusal"),
    [
        pytest.param(CCInfo([[[]]]), WORDS["empty_topology 0"], id="one-empty-group"),
        pytest.param(CCInfo([[[0, 1]]], []), "Empty src_target_pairs found", id="groups-and-no-pairs"),
        pytest.param(CCInfo([[[0, 1]]], [[], []]), "Empty src_target_pairs found", id="sets-without-pairs"),
        pytest.param(CCInfo([], [[[0, 1]]]), "Empty replica_groups found", id="pairs-and-no-groups"),
        pytest.param(CCInfo([[]], None, 8), WORDS["empty_topology 0"], id="stated-number-mends-nothing"),
        pytest.param(CCInfo([[[0]], [[0, 1]], []]), f"{WORDS['inconsistent']}1 vs 2. Possible MPMD", id="by-index"),
    ],
)
def test_what_is_refused(info: CCInfo, refusal: str) -> None:
    """A list that is there and empty is refused, whatever else is said."""
    assert all(isinstance(answer, str) and answer.startswith(refusal) for answer in sizes(info).values())


@pytest.mark.parametrize(
    ("info", "documented", "total"),
    [
        pytest.param(CCInfo([[[0, 1], [2]]]), 2, 3, id="uneven-groups"),
        pytest.param(CCInfo([[[0, 1], []]]), 2, 2, id="one-group-of-nobody"),
        pytest.param(CCInfo([[[0, 1]]], [[[0, 9]]], 4), 10, 10, id="pairs-say-most"),
        pytest.param(CCInfo([[[0, 1]]], [[[0, 1]], []], 4), 4, 4, id="stated-number-says-most"),
        pytest.param(CCInfo(None, None, 0), 1, 1, id="nobody-is-somebody"),
        pytest.param(CCInfo([[[4, 5], [6, 7]], [[0, 1]]]), 2, "error:inconsistent", id="totals-differ"),
    ],
)
def test_the_largest_number_counts(info: CCInfo, documented: int, total: int | str) -> None:
    """Groups, pairs and the stated number are asked, and 1 is the least."""
    answers = sizes(info)
    assert answers["documented"] == documented
    assert agrees(answers["total"], total)


def test_readings_have_names() -> None:
    """Another name is an error that lists them."""
    with pytest.raises(CommlensError, match="expected a reading, one of documented, total, found 'inner'"):
        CCInfo([[[0]]]).world_size("inner")  # pyright: ignore[reportArgumentType]


ranks = st.integers(0, 40)
groups = st.lists(st.lists(st.lists(ranks, max_size=4), max_size=4), max_size=4)
pairs = st.lists(st.lists(st.tuples(ranks, ranks).map(list), max_size=4), max_size=3)


def slow_world_size(
    groups: list[list[list[int]]] | None, pairs: list[list[list[int]]] | None, stated: int | None, whole: bool
) -> int | None:
    """Compute the world size with loops; None where it is refused."""
    best = 1
    if groups is None and pairs is None and stated is None:
        return 1 if whole else None
    if groups is not None:
        counts: list[int] = []
        for topology in groups:
            count = 0
            for group in topology:
                count = count + len(group) if whole else max(count, len(group))
            counts.append(count)
        if not counts or 0 in counts or len(set(counts)) > 1:
            return None
        best = max(best, counts[0])
    if pairs is not None:
        ids = [rank for each in pairs for pair in each for rank in pair]
        if not ids:
            return None
        best = max(best, *[rank + 1 for rank in ids])
    return max(best, stated or 0)


@given(st.none() | groups, st.none() | pairs, st.none() | ranks)
def test_world_size_is_that_of_the_loops(
    groups: list[list[list[int]]] | None, pairs: list[list[list[int]]] | None, stated: int | None
) -> None:
    """Whatever is said, both readings are those of a twin written with loops."""
    info = CCInfo(groups, pairs, stated)
    for reading in READINGS:
        found, refusal = info.size_or_refusal(reading)
        assert found == slow_world_size(groups, pairs, stated, reading == "total")
        assert (found is None) == (refusal is not None)


# --- def.json -------------------------------------------------------------------------------------------------------


@given(st.none() | groups, st.none() | pairs, st.none() | ranks)
def test_def_json_and_back(
    groups: list[list[list[int]]] | None, pairs: list[list[list[int]]] | None, stated: int | None
) -> None:
    """What is written as def.json is read as the same value; lists come back as they went in."""
    info = CCInfo(groups, pairs, stated)
    written = info.to_def_json()
    assert (info.replica_groups, info.src_target_pairs, info.rank_world_size) == (groups, pairs, stated)
    for source in (written, json.dumps(written), json.dumps(written).encode(), {"CCInfo": written}):
        read = CCInfo.from_def_json(source)
        assert (read, hash(read), read.to_def_json()) == (info, hash(info), written)
    assert info.has_cc == bool(written)


def test_def_json_from_a_file(tmp_path: Path) -> None:
    """A path is read, as a string and as a path, compressed or not; a mark at the beginning does not matter."""
    file = tmp_path / "def.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(section("miniature_def_json")).encode())
    expected = [[[0, 1, 2, 3], [4, 5, 6, 7]]]
    assert CCInfo.from_def_json(file).replica_groups == CCInfo.from_def_json(str(file)).replica_groups == expected


def test_flat_keys_come_first() -> None:
    """A key at the top counts; one that is missing there, or null, is looked for in CCInfo."""
    nested = {"replica_groups": [[[0, 1]]], "src_target_pairs": [[[0, 1]]], "#rank_world_size": 3}
    info = CCInfo.from_def_json({"replica_groups": [[[0]]], "#rank_world_size": None, "CCInfo": nested})
    assert info == CCInfo([[[0]]], [[[0, 1]]], 3)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param("{", "<text>:1:2: expected a JSON object: expecting property name", id="cut"),
        pytest.param(b"[]", "<bytes>: expected a JSON object, found a JSON list", id="list"),
        pytest.param(b"\xff\xfe{", "<bytes>: expected a JSON object: ", id="no-text"),
        pytest.param(b'{"a": ' + b"[" * 100_000, "<bytes>: expected a JSON object, ", id="deep"),
        pytest.param({"replica_groups": [[0, 1]]}, "expected replica_groups[0][0] to be a group of ranks", id="2-d"),
        pytest.param({"replica_groups": {"0": []}}, "expected replica_groups to be a list of topologies", id="object"),
        pytest.param({"replica_groups": [[["0"]]]}, "expected replica_groups[0][0][0] to be a rank, an int", id="text"),
        pytest.param({"replica_groups": [[[True]]]}, "found True", id="flag"),
        pytest.param({"replica_groups": [[[1.0]]]}, "found 1.0", id="fraction"),
        pytest.param({"replica_groups": [[[-1]]]}, "an int from 0 to 4294967295, found -1", id="negative"),
        pytest.param({"replica_groups": [[[2**32]]]}, "found 4294967296", id="wide"),
        pytest.param({"replica_groups": [[[10**5000]]]}, "found a number of 16610 bits", id="huge"),
        pytest.param({"src_target_pairs": [[[0, 1, 2]]]}, "expected src_target_pairs[0][0] to be a pair", id="triple"),
        pytest.param({"src_target_pairs": [[0, 1]]}, "expected src_target_pairs[0][0] to be a pair", id="one-set"),
        pytest.param({"#rank_world_size": "8"}, "expected #rank_world_size to be a number of workers", id="number"),
        pytest.param({"CCInfo": [1]}, "expected CCInfo to be an object, found list", id="nested"),
    ],
)
def test_what_is_no_def_json(content: Any, says: str) -> None:
    """What cannot be read is refused with its place and what would be right."""
    with pytest.raises(InputError) as caught:
        CCInfo.from_def_json(content)
    assert says in str(caught.value)


def test_a_missing_file_is_refused() -> None:
    """A string without a brace is a path."""
    with pytest.raises(InputError, match="no-such/def.json: cannot be read"):
        CCInfo.from_def_json("no-such/def.json")


# --- values ---------------------------------------------------------------------------------------------------------


def test_topologies_read_as_attributes_and_as_mappings() -> None:
    """The size of groups that differ in size is not known."""
    [even, uneven] = CCInfo([[[0, 1], [2, 3]], [[0, 1], [2]]]).topologies
    assert (even.num_groups, even.group_size, even["group_size"]) == (2, 2, 2)
    assert dict(uneven) == {"num_groups": 2, "group_size": None}
    with pytest.raises(KeyError):
        even["ranks"]


def test_the_value_is_frozen() -> None:
    """Changing a list that was given, or given out, changes nothing."""
    given_groups = [[[0, 1]]]
    info = CCInfo(given_groups)
    given_groups[0][0].append(2)
    out = info.replica_groups
    assert out is not None
    out[0].clear()
    assert info.replica_groups == [[[0, 1]]]


@pytest.mark.parametrize("case", cases("src_target_components"))
def test_pairs_connect_ranks(case: dict[str, Any]) -> None:
    """The runtime's group of a rank is the connected one; a rank that no pair names has none."""
    if isinstance(case["expected"], str):
        with pytest.raises(CommlensError, match=case["expected"].removeprefix("error: ")):
            pair_group_of(case["me"], case["pairs"])
    else:
        assert pair_group_of(case["me"], case["pairs"]) == case["expected"]
        assert case["expected"] in pair_components(case["pairs"])


@given(st.lists(st.tuples(ranks, ranks)))
def test_connected_groups_are_those_of_the_loops(pairs: list[tuple[int, int]]) -> None:
    """Merging sets until nothing changes gives the same groups."""
    sets = [set(pair) for pair in pairs]
    merged = True
    while merged:
        merged = False
        for first in sets:
            for second in sets:
                if first is not second and first & second:
                    first |= second
                    sets.remove(second)
                    merged = True
                    break
            if merged:
                break
    assert pair_components(pairs) == sorted(sorted(each) for each in sets)


# --- modules --------------------------------------------------------------------------------------------------------


def module_text(*lines: str, header: str = "") -> str:
    """Return a module whose entry has some instructions behind the parameter ``p``."""
    body = "".join(f"  {line}\n" for line in lines)
    return f"HloModule m{header}\nENTRY e {{\n  p = f32[8] parameter(0)\n{body}}}\n"


def all_reduce(name: str, groups: str, more: str = "") -> str:
    """Return an all-reduce over some groups."""
    return f"{name} = f32[8] all-reduce(p), replica_groups={groups}{more}, to_apply=add"


def info_of(*lines: str, header: str = "", **counts: int) -> CCInfo:
    """Return the CC info of a module of such instructions."""
    return CCInfo.from_module(load(module_text(*lines, header=header), **counts))


def test_distinct_geometries_in_the_order_of_their_first_appearance() -> None:
    """Equal lists count once, however spelled and by whichever opcode; another order is another list."""
    info = info_of(
        all_reduce("a", "{{0,1},{2,3}}"),
        all_reduce("b", "{{0,2},{1,3}}"),
        all_reduce("c", "[2,2]<=[4]"),
        "d = f32[16] all-gather(p), replica_groups={{0,1},{2,3}}, dimensions={0}",
        all_reduce("e", "{{2,3},{0,1}}"),
        all_reduce("f", "{{1,0},{2,3}}"),
    )
    assert info.replica_groups == [
        [[0, 1], [2, 3]],
        [[0, 2], [1, 3]],
        [[2, 3], [0, 1]],
        [[1, 0], [2, 3]],
    ]
    assert (info.src_target_pairs, info.rank_world_size, info.notes) == (None, None, ())


def test_starts_and_broadcasts_count() -> None:
    """The start of a collective counts once, its done never; a broadcast counts like all others."""
    info = info_of(
        "a = f32[8] all-reduce-start(p), replica_groups={{0,1}}, to_apply=add",
        "b = f32[8] all-reduce-done(a)",
        "c = f32[8] collective-broadcast(p), replica_groups={{0,2}}",
        "d = (f32[8], f32[16]) all-gather-start(p), replica_groups={{0,3}}, dimensions={0}",
        "e = f32[16] all-gather-done(d)",
    )
    assert info.replica_groups == [[[0, 1]], [[0, 2]], [[0, 3]]]


def test_permutes_add_pairs_only() -> None:
    """Permutes, and sends and receives that state pairs, add one set per distinct list; transfers to the host none."""
    attribute = ', frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}'
    info = info_of(
        "a = f32[8] collective-permute(p), source_target_pairs={{0,1},{1,0}}",
        "b = f32[8] collective-permute(p), source_target_pairs={{1,0},{0,1}}",
        "c = f32[8] collective-permute(p), source_target_pairs={{0,1},{1,0}}",
        "t = token[] after-all()",
        f"d = (f32[8], u32[], token[]) send(p, t), channel_id=1{attribute}",
        f"e = (f32[8], u32[], token[]) recv(t), channel_id=1{attribute}",
        "f = (f32[8], u32[], token[]) send(p, t), channel_id=2, is_host_transfer=true",
    )
    assert info.replica_groups is None
    assert info.src_target_pairs == [[[0, 1], [1, 0]], [[1, 0], [0, 1]], [[0, 1]]]
    assert info.world_size() == 2


def test_a_module_without_collectives_says_nothing() -> None:
    """There is no CC info in it."""
    info = info_of("r = f32[8] negate(p)")
    assert (info.has_cc, info.to_def_json()) == (False, {})


@pytest.mark.parametrize(
    ("header", "more", "expected"),
    [
        pytest.param(", replica_count=4", "", [[0, 1, 2, 3]], id="replicas"),
        pytest.param(", num_partitions=4", ", channel_id=1", [[0, 1, 2, 3]], id="both-kinds-of-one-replica"),
        pytest.param(", replica_count=2, num_partitions=2", ", channel_id=1", [[0, 1, 2, 3]], id="both-kinds"),
        pytest.param(", replica_count=2, num_partitions=2", "", [[0, 2], [1, 3]], id="replicas-of-each-partition"),
    ],
)
def test_empty_groups_mean_everybody(header: str, more: str, expected: list[list[int]]) -> None:
    """They stand for all devices as the group mode has it, and are the same geometry as the list written out."""
    written = "{" + ",".join("{" + ",".join(map(str, group)) + "}" for group in expected) + "}"
    info = info_of(all_reduce("a", "{}", more), all_reduce("b", written, ", channel_id=7"), header=header)
    assert info.replica_groups == [expected]


def test_counts_may_be_given_beside_the_module() -> None:
    """What the module does not state can be stated when it is loaded."""
    assert info_of(all_reduce("a", "{}"), replicas=3).replica_groups == [[[0, 1, 2]]]
    assert info_of("a = f32[8] all-to-all(p), replica_groups={}, channel_id=1, dimensions={0}", partitions=2)
    with pytest.raises(InputError, match=r"all-reduce a: empty replica_groups mean all devices, and nobody states"):
        info_of(all_reduce("a", "{}"))


def test_written_groups_ask_for_no_counts() -> None:
    """Ids are copied as they are, whatever the counts say of them."""
    assert info_of(all_reduce("a", "{{0,9}}")).replica_groups == [[[0, 9]]]
    assert info_of(all_reduce("a", "{{0,9}}"), header=", replica_count=2").replica_groups == [[[0, 9]]]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        pytest.param(all_reduce("a", "{}", ", channel_id=1, use_global_device_ids=true"), "a: ", id="flattened-empty"),
        pytest.param(
            all_reduce("a", "{{0,-1}}"), "all-reduce a: expected replica_groups[0][0][1] to be", id="negative"
        ),
        pytest.param(all_reduce("a", "[2,8388609]<=[16777218]"), "at most 16,777,216 ranks, found more", id="large"),
        pytest.param(all_reduce("a", "[99999,99999]<=[9999800001]"), "found more", id="far-too-large"),
    ],
)
def test_modules_that_are_refused(line: str, says: str) -> None:
    """Groups that are no groups of ranks are refused under the name and line of the collective."""
    with pytest.raises(InputError) as caught:
        info_of(line, header=", replica_count=4")
    assert "<text>:4: all-reduce a: " in str(caught.value)
    assert says in str(caught.value)


def test_what_could_not_be_read_is_noted() -> None:
    """The rest is answered, and a note says what may be missing."""
    info = info_of(all_reduce("a", "{{0,1}}"), all_reduce("b", "{{0,1}"))
    assert info.replica_groups == [[[0, 1]]]
    [note] = info.notes
    assert note.startswith("line 5: all-reduce b: ")
    assert note.endswith("its groups or pairs may be missing here")


@pytest.mark.parametrize(
    ("header", "lines", "noted"),
    [
        pytest.param(", replica_count=2, num_partitions=2", [all_reduce("a", "{{0,1}}")], True, id="replicas"),
        pytest.param(
            ", replica_count=2, num_partitions=2",
            [all_reduce("a", "{{0,1}}", ", channel_id=1, use_global_device_ids=true")],
            False,
            id="global",
        ),
        pytest.param(", replica_count=2, num_partitions=1", [all_reduce("a", "{{0,1}}")], False, id="one-partition"),
        pytest.param(
            ", replica_count=2, num_partitions=2",
            ["a = f32[8] collective-permute(p), source_target_pairs={{0,1}}"],
            True,
            id="pairs",
        ),
    ],
)
def test_ids_that_are_no_ranks_are_noted(header: str, lines: list[str], noted: bool) -> None:
    """With several replicas and several partitions, ids of either are not those of devices."""
    notes = info_of(*lines, header=header).notes
    assert [note.startswith("the ids of a are those of replicas or partitions") for note in notes] == [True] * noted


@pytest.mark.corpus("public/*neuron*", "torch_xla-2.9.0/*.txt")
def test_real_modules(corpus_file: Path) -> None:
    """The topologies of real modules are the distinct lists of their collectives, found by comparing each with each."""
    for module in load_all(corpus_file, replicas=64):
        distinct: list[list[list[int]]] = []
        for site in discover(module).sites:
            listed = site.signature.groups
            if listed is not None and listed.num_replica_groups and listed.groups() not in distinct:
                distinct.append(listed.groups())
        found = CCInfo.from_module(module).replica_groups or []
        assert [topology for topology in found if topology in distinct] == distinct
