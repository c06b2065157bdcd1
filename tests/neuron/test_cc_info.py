"""CC info: from modules and def.json, back to def.json, and the number of workers in both readings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.errors import CommlensError, InputError
from commlens.neuron import READINGS, CCInfo, WorldSizeError, cc_kind, pair_components, pair_group_of
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


@pytest.mark.parametrize(
    ("info", "documented", "total"),
    [
        pytest.param(CCInfo([[[0, 1], [2, 3]]]), "groups", "groups", id="groups"),
        pytest.param(CCInfo([[[0, 1], [2, 3]]], [[[0, 2]]]), "pairs", "groups", id="pairs-then-groups"),
        pytest.param(CCInfo([[[0, 1], [2, 3]]], [[[0, 2]]], 3), "pairs", "groups", id="pairs-before-stated"),
        pytest.param(CCInfo([[[0, 1], [2, 3]]], None, 3), "stated", "groups", id="stated-then-groups"),
        pytest.param(CCInfo([[[0, 1]]], [[[0, 1]]], 2), "groups", "groups", id="all-agree"),
        pytest.param(CCInfo(None, None, 0), None, None, id="nobody"),
    ],
)
def test_what_the_world_size_comes_from(info: CCInfo, documented: str | None, total: str | None) -> None:
    """It is the first of groups, pairs and stated number that says as much."""
    assert (info.source_of(), info.source_of("total")) == (documented, total)


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


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_encodings(encoding: str) -> None:
    """A def.json in any encoding of JSON is one, with and without a mark at its beginning."""
    content = '{"replica_groups": [[[0, 1]]], "name": "é"}'.encode(encoding)
    assert cc_kind(content) == "def.json"
    assert CCInfo.from_def_json(content) == CCInfo.from_def_json("\ufeff" + '{"replica_groups": [[[0, 1]]]}')


def test_flat_keys_come_first() -> None:
    """A key at the top counts; one that is missing there, or null, is looked for in CCInfo."""
    nested = {"replica_groups": [[[0, 1]]], "src_target_pairs": [[[0, 1]]], "#rank_world_size": 3}
    info = CCInfo.from_def_json({"replica_groups": [[[0]]], "#rank_world_size": None, "CCInfo": nested})
    assert info == CCInfo([[[0]]], [[[0, 1]]], 3)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param("{", "<text>:1:2: expected a JSON object: a key in double quotes should stand here", id="cut"),
        pytest.param(b"[]", "<bytes>: expected a JSON object, found a list of 0", id="list"),
        pytest.param(
            b"\xff\xfe{", "<bytes>:1:1: expected a JSON object in UTF-8, UTF-16 or UTF-32, found", id="no-text"
        ),
        pytest.param(b'{"a":\n "\xc3\xa9\xff"}', "<bytes>:2:4: expected a JSON object in UTF-8", id="byte-in-a-text"),
        pytest.param('{"a": 1', ":1:8: expected a JSON object: a comma or the end of the list or object", id="no-end"),
        pytest.param('{"a": 1}\n{', ":2:1: expected a JSON object: nothing should stand here", id="two-objects"),
        pytest.param('{"a": nul}', ":1:7: expected a JSON object: a number, text, list, object, true,", id="no-value"),
        pytest.param('{"a" 1}', ":1:6: expected a JSON object: a colon should stand here", id="no-colon"),
        pytest.param('{"a": "x', ":1:7: expected a JSON object: the text that begins here", id="open-text"),
        pytest.param('{"a": "x\n"}', ":1:9: expected a JSON object: a control character should", id="break-in-a-text"),
        pytest.param('{"a": "\\q"}', ":1:8: expected a JSON object: a backslash should begin a known", id="escape"),
        pytest.param(f'{{"a": {"1" * 5000}}}', "numbers of at most 4,300 digits, found a longer one", id="digits"),
        pytest.param(b'{"a": ' + b"[" * 100_000, "<bytes>: expected a JSON object, ", id="deep"),
        pytest.param({"replica_groups": [[0, 1]]}, "expected replica_groups[0][0] to be a group of ranks", id="2-d"),
        pytest.param({"replica_groups": {"0": []}}, "expected replica_groups to be a list of topologies", id="object"),
        pytest.param(
            {"replica_groups": [[["0"]]]}, "expected replica_groups[0][0][0] to be a rank, a whole number", id="text"
        ),
        pytest.param({"replica_groups": [[[True]]]}, "found true", id="flag"),
        pytest.param({"replica_groups": [[[1.0]]]}, "found 1.0", id="fraction"),
        pytest.param({"replica_groups": [[[-1]]]}, "a whole number from 0 to 4294967295, found -1", id="negative"),
        pytest.param({"replica_groups": [[[2**32]]]}, "found 4294967296", id="wide"),
        pytest.param({"replica_groups": [[[10**5000]]]}, "found a number of 16610 bits", id="huge"),
        pytest.param({"src_target_pairs": [[[0, 1, 2]]]}, "expected src_target_pairs[0][0] to be a pair", id="triple"),
        pytest.param({"src_target_pairs": [[0, 1]]}, "expected src_target_pairs[0][0] to be a pair", id="one-set"),
        pytest.param({"#rank_world_size": "8"}, "expected #rank_world_size to be a number of workers", id="number"),
        pytest.param({"CCInfo": [1]}, "expected CCInfo to be an object, found a list of 1", id="nested"),
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


def test_numbers_of_numpy() -> None:
    """Arrays, sequences of arrays and numpy's integers are taken, and come back as plain numbers."""
    expected = CCInfo([[[0, 1], [2, 3]]], [[[0, 1]]], 4)
    for groups in (
        np.arange(4).reshape(1, 2, 2),
        [np.arange(4, dtype=np.uint8).reshape(2, 2)],
        [[[0, 1], np.array([2, 3])]],
    ):
        info = CCInfo(groups, np.array([[[0, 1]]]), np.int64(4))
        assert info == expected
        assert json.loads(json.dumps(info.to_def_json())) == expected.to_def_json()
    assert CCInfo([[range(2), [np.int32(2), 3]]]).replica_groups == [[[0, 1], [2, 3]]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param((np.array([[[0.0]]]),), "replica_groups[0][0][0] to be a rank, a whole number", id="fractions"),
        pytest.param(
            (np.array([[[True]]]),), "replica_groups[0][0][0] to be a rank, a whole number", id="array-of-flags"
        ),
        pytest.param((np.array(1),), "expected replica_groups to be a list of topologies", id="no-dimension"),
        pytest.param((np.arange(4).reshape(2, 2),), "expected replica_groups[0][0] to be a group", id="2-d"),
        pytest.param((np.array([[[-1]]]),), "found -1", id="negative"),
        pytest.param((True,), "expected replica_groups to be a list of topologies", id="flag"),
        pytest.param((0.5,), "expected replica_groups to be a list of topologies", id="fraction"),
        pytest.param((["01"],), "expected replica_groups[0] to be a list of groups", id="text"),
        pytest.param(([[b"01"]],), "expected replica_groups[0][0] to be a group of ranks", id="bytes"),
        pytest.param(
            ([[[0, 1.0]]],), "replica_groups[0][0][1] to be a rank, a whole number from 0 to", id="one-fraction"
        ),
        pytest.param((None, [[[0, True]]]), "from 0 to 4294967295, found True", id="flag-in-a-pair"),
        pytest.param((None, None, True), "#rank_world_size to be a number of workers", id="stated-flag"),
        pytest.param((None, None, 8.0), "found 8.0", id="stated-fraction"),
        pytest.param((None, None, np.arange(2)), "#rank_world_size to be a number of workers", id="stated-array"),
    ],
)
def test_values_that_are_no_ranks(arguments: tuple[Any, ...], says: str) -> None:
    """Flags, fractions and texts are refused in a sentence, however they are packed."""
    with pytest.raises(CommlensError) as caught:
        CCInfo(*arguments)
    assert says in str(caught.value)


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
