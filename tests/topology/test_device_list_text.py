from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.errors import GrammarError
from commlens.topology import (
    AxisRef,
    CollectiveDeviceList,
    DeviceList,
    IotaReplicaGroupList,
    Mesh,
    MeshAxesReplicaGroupList,
    parse_axes,
    parse_mesh,
    parse_replica_groups,
)
from strategies import explicit_groups, iota_groups, mesh_groups, meshes
from xla_cases import cases

NOT_ABOUT_GROUPS = {"collective-permute", "send"}
"""Opcodes of parse_reject that refuse the attribute, not its text."""

READ_HERE = {
    "@mesh<a=2,b=4> {a}": "mesh['a'=2,'b'=4] {'a'}",
    "mesh['a'=1,'b'=4] {'a'}": "mesh['a'=1,'b'=4] {'a'}",
    "mesh['a'=2,'b'=4], device_ids=(0,1,2,3,4,5,6,7) {'a'}": "mesh['a'=2,'b'=4] {'a'}",
    "{{0,1}}": "{{0,1}}",  # refused upstream for another attribute
}
"""What upstream refuses and is read here on purpose: older spellings, one-device groups, an order written out."""

VALUES = {"{{0,0}}", "{{0,1},{1,2}}", "{{0,1},{}}"}
"""What upstream reads unchecked and is a value here too; the rest of parse_unchecked is refused."""

gaps = st.lists(st.sampled_from([" ", "\t", "\r\n", "/* {{ */", "/***/", "// 1,2 }\n", "// {\r"]), max_size=2).map(
    "".join
)


def group_texts(section: str) -> list[Any]:
    """The replica group texts of a section of cases."""
    found: list[Any] = []
    for case in cases(section):
        given_: Any = case.values[0]
        expect: Any = case.values[1]
        _, attribute, text = given_["attributes"].partition("replica_groups=")
        if attribute and given_["opcode"] not in NOT_ABOUT_GROUPS:
            text = text.partition(", channel_id")[0].partition(", use_global")[0]
            found.append(pytest.param(text, expect, id=case.id))
    return found


@pytest.mark.parametrize(("text", "expect"), group_texts("parse_accept"))
def test_read_as_upstream_reads_it(text: str, expect: dict[str, Any]) -> None:
    """Texts that upstream accepts are read to the same list and print the same canonical text."""
    groups = parse_replica_groups(text)
    structure = expect["structure"]["replica_groups"]
    assert groups.form == (structure["kind"] if structure.get("groups") != [] else "empty")
    printed = expect["printed"].partition("replica_groups=")[2]
    assert printed.startswith(str(groups))
    assert printed[len(str(groups)) :].split(",")[0].strip() == ""
    if "groups" in structure:
        assert groups.groups() == structure["groups"]


@pytest.mark.parametrize(("text", "expect"), group_texts("parse_reject"))
def test_refused_as_upstream_refuses_it(text: str, expect: dict[str, Any]) -> None:
    """Texts that upstream refuses, or dies of, are grammar errors, but for those that are read here on purpose."""
    assert expect["upstream"] in {"error", "abort"}
    if text in READ_HERE:
        assert str(parse_replica_groups(text)) == READ_HERE[text]
    else:
        with pytest.raises(GrammarError):
            parse_replica_groups(text)


@pytest.mark.parametrize(("text", "expect"), group_texts("parse_unchecked"))
def test_values_pass_and_nonsense_does_not(text: str, expect: dict[str, Any]) -> None:
    """Of what upstream does not check, values are read and lists that are no bijection are refused."""
    assert expect["upstream"] == "accept"
    if text in VALUES:
        assert str(parse_replica_groups(text)) == text
    else:
        with pytest.raises(GrammarError):
            parse_replica_groups(text)


# --- laws


@given(st.one_of(iota_groups(), mesh_groups(), explicit_groups.map(CollectiveDeviceList)))
def test_text_leads_back(groups: DeviceList) -> None:
    """What a list prints is read as an equal list."""
    assert parse_replica_groups(str(groups)) == groups


@given(st.one_of(iota_groups(), mesh_groups(), explicit_groups.map(CollectiveDeviceList)), st.data())
def test_gaps_mean_nothing(groups: DeviceList, data: st.DataObject) -> None:
    """White space and comments around marks do not change what is read."""
    text = "".join(
        f"{data.draw(gaps)}{mark}{data.draw(gaps)}" if mark in "{}[](),:=" else mark
        for mark in _without_arrow(str(groups))
    )
    assert parse_replica_groups(text.replace("\0", "<=")) == groups


@given(explicit_groups, st.data())
def test_one_wrong_character_is_found_where_it_stands(groups: list[list[int]], data: st.DataObject) -> None:
    """A character that no list has, put anywhere, is refused at its place, or at the sign it parts from its number."""
    text = str(CollectiveDeviceList(groups))
    place = data.draw(st.integers(1, len(text)))
    with pytest.raises(GrammarError) as caught:
        parse_replica_groups(text[:place] + "?" + text[place:])
    assert caught.value.position == place - (text[place - 1] == "-")


@given(st.text(alphabet="{}[]()<=,:-T0129'\"\\ameshdvic_@/*\n x", max_size=30))
def test_any_text_is_read_or_refused_in_place(text: str) -> None:
    """Whatever the text, the only error is a grammar error with a place inside it, and what is read leads back."""
    position = 0
    try:
        groups = parse_replica_groups(text)
    except GrammarError as error:
        position = error.position
    else:
        assert parse_replica_groups(str(groups)) == groups
    assert 0 <= position <= len(text)


@given(meshes())
def test_mesh_text_leads_back(mesh: Mesh) -> None:
    """What a mesh prints is read as an equal mesh, in the older spellings too."""
    assert parse_mesh(str(mesh)) == mesh
    bare = str(mesh).replace("'", "")
    assert parse_mesh(bare) == mesh
    assert parse_mesh("@" + bare.replace("[", "<", 1).replace("]", ">", 1)) == mesh
    inside = bare.replace("], device_ids=", ",device_ids=")
    assert parse_mesh(inside if inside == bare else inside + "]") == mesh


@given(st.text(alphabet="ab'\"\\\n\té/ ", min_size=1, max_size=6), st.text(min_size=1, max_size=6))
def test_any_name_leads_back(one: str, other: str) -> None:
    """Axis names with quotes, backslashes and line ends survive printing and reading."""
    mesh = Mesh({one: 2} | {other: 4})
    assert parse_replica_groups(str(MeshAxesReplicaGroupList(mesh, [one]))) == MeshAxesReplicaGroupList(mesh, [one])


# --- places and words


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        pytest.param("", 0, "found the end of the text", id="nothing"),
        pytest.param("{{0,1},{2,x}}", 10, "expected an integer, found 'x'", id="letter"),
        pytest.param("{{0,1}{2}}", 6, "expected '}' to end the list, found '{'", id="comma-missing"),
        pytest.param("{{0 1}}", 4, "expected '}' to end the list, found '1'", id="parted-number"),
        pytest.param("{{0,1},}", 7, "expected '{'", id="trailing-comma"),
        pytest.param("{{0,1}", 6, "end of the text", id="cut"),
        pytest.param("{{0,1}} x", 8, "expected the end of the text, found 'x'", id="more"),
        pytest.param("{0,1}", 1, "expected '{'", id="flat"),
        pytest.param("{{5,-}}", 4, "expected an integer, found '-'", id="minus"),
        pytest.param("{{5,+1}}", 4, "expected an integer", id="plus"),
        pytest.param("{{1_0}}", 3, "expected '}'", id="underscore"),
        pytest.param("{{0,1},{9223372036854775808}}", 8, "fits in 64 bits", id="too-large"),
        pytest.param("{{0},{-9223372036854775809}}", 6, "fits in 64 bits", id="too-small"),
        pytest.param("{{" + "9" * 5000 + "}}", 2, "fits in 64 bits", id="far-too-large"),
        pytest.param("{{0,\u0661}}", 4, "expected an integer", id="digit-of-another-script"),
        pytest.param("{{0}, /* {1}}", 6, "to end the comment", id="open-comment"),
        pytest.param("{{0}} /", 6, "end of the text", id="half-comment"),
        pytest.param("[" + "2," * 5000 + "2]<=[8]", 0, "expected 2 sizes", id="many-sizes"),
        pytest.param("[2,4]<=[" + "2," * 5000 + "2]T(0)", 0, "permutation|64 bits", id="many-reshape-sizes"),
        pytest.param("x" * 5000, 0, "found 'x{40}...'$", id="long-token"),
        pytest.param("[2,4]<=[9]", 0, "as many ids as places", id="no-bijection"),
        pytest.param("[2,4]<=[8]T(0)", 10, "expected the end of the text", id="needless-transposition"),
        pytest.param("[2,4]< =[8]", 5, "expected '<='", id="parted-arrow"),
        pytest.param("[2,4]<=[2,99999999999999999999]T(0,1)", 10, "fits in 64 bits", id="large-size"),
        pytest.param("mesh['a'=2] {'a','b'}", 17, "not a valid axis name", id="unknown-axis"),
        pytest.param("mesh['a'=2] {'2'}", 13, "Axis index", id="index-out-of-range"),
        pytest.param("mesh['a'=4] {'a':(1)2,'a':(2)2}", 12, "Adjacent axes", id="mergeable"),
        pytest.param("mesh['a'=2,'a'=2] {}", 0, "duplicate axis names", id="duplicate-name"),
        pytest.param("mesh['a=2] {}", 5, "name of an axis", id="open-string"),
        pytest.param(r"mesh['\xz'=2] {}", 5, "C escapes", id="no-escape"),
        pytest.param(r"mesh['\q'=2] {}", 5, "C escapes", id="no-letter"),
        pytest.param(r"mesh['\777'=2] {}", 5, "C escapes", id="no-byte"),
        pytest.param(r"mesh['\377'=2] {}", 5, "C escapes", id="no-utf-8"),
        pytest.param("mesh['a'=2], device_ids=(1,0", 28, "'\\)' to end the list|end of the text", id="open-ids"),
        pytest.param("mesh['a'=2], device_ids=(1,,0) {}", 27, "expected a device id", id="no-id"),
        pytest.param("mesh['a'=2](1,0) {'a'}", 11, "expected '{'", id="order-of-the-older-spelling"),
        pytest.param("@mesh<a=2] {a}", 9, "'>'", id="mixed-brackets"),
        pytest.param("@grid<a=2> {a}", 1, "'mesh'", id="unknown-sigil"),
        pytest.param("maximal_mesh[device_id=x] {}", 23, "a device id", id="maximal-without-id"),
        pytest.param("maximal_mesh[device_id=-1] {}", 0, "0 or more", id="maximal-negative"),
        pytest.param("mesh[] {}", 7, "mesh with devices", id="empty-mesh"),
    ],
)
def test_the_place_of_a_fault(text: str, position: int, words: str) -> None:
    """An error says what was expected, what was found, and exactly where."""
    with pytest.raises(GrammarError, match=words) as caught:
        parse_replica_groups(text)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        pytest.param("mesh[a=2,b=4] {a}", "mesh['a'=2,'b'=4] {'a'}", id="without-quotes"),
        pytest.param('mesh["a"=2,"b"=4] {"b","a"}', "mesh['a'=2,'b'=4] {'b','a'}", id="double-quotes"),
        pytest.param("@mesh<a=2,b=4> {b}", "mesh['a'=2,'b'=4] {'b'}", id="angles"),
        pytest.param("@mesh<a=8>{a:(2)2}", "mesh['a'=8] {'a':(2)2}", id="angles-sub-axis"),
        pytest.param(
            "@mesh<a=2,b=4>([4,2]T(1,0)) {a}", "mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'a'}", id="angles-order"
        ),
        pytest.param("@mesh<a=2>(1,0) {a}", "mesh['a'=2], device_ids=(1,0) {'a'}", id="angles-ids"),
        pytest.param("mesh['a'=2] device_ids=(1,0) {'a'}", "mesh['a'=2], device_ids=(1,0) {'a'}", id="no-comma"),
        pytest.param("mesh['a'=2], device_ids=(1,0), {'a'}", "mesh['a'=2], device_ids=(1,0) {'a'}", id="two-commas"),
        pytest.param("mesh['a'=2], device_ids=(1/**/,0) {'a'}", "mesh['a'=2], device_ids=(1,0) {'a'}", id="comment"),
        pytest.param("mesh['a'=2,'b'=4] {'1'}", "mesh['a'=2,'b'=4] {'b'}", id="index"),
        pytest.param("mesh['a'=2,'b'=4] {}", "mesh['a'=2,'b'=4] {}", id="one-device-groups"),
        pytest.param("mesh['a'=8], device_ids=([8]) {'a'}", "mesh['a'=8] {'a'}", id="identity-iota"),
        pytest.param("maximal_mesh[device_id=3] {}", "maximal_mesh[device_id=3] {}", id="maximal"),
        pytest.param("@maximal_mesh<device_id=3> {}", "maximal_mesh[device_id=3] {}", id="maximal-angles"),
        pytest.param("mesh[device_ids=2] {device_ids}", "mesh['device_ids'=2] {'device_ids'}", id="odd-name"),
        pytest.param(r"mesh['\303\251\x41\"'=2] {}", "mesh['éA\"'=2] {}", id="escapes"),
        pytest.param("{ }", "{}", id="empty"),
        pytest.param("{{},{ }}", "{{},{}}", id="empty-groups"),
        pytest.param("{{007,-0}}", "{{7,0}}", id="leading-zeros"),
        pytest.param(f"{{{{{-(1 << 63)},{(1 << 63) - 1}}}}}", f"{{{{{-(1 << 63)},{(1 << 63) - 1}}}}}", id="extremes"),
    ],
)
def test_spellings(text: str, printed: str) -> None:
    """Older and looser spellings are read and printed in today's."""
    assert str(parse_replica_groups(text)) == printed


def test_meshes_of_the_command_line() -> None:
    """Axes alone are a mesh; an axis may even be called mesh."""
    assert parse_mesh("data=2,model=4") == Mesh({"data": 2, "model": 4})
    assert parse_mesh(" mesh = 2 , 'x y' = 4 ") == Mesh({"mesh": 2, "x y": 4})
    assert parse_mesh("mesh[]") == Mesh.empty()
    for text, position in (("data", 4), ("data=2,", 7), ("data=2;model=4", 6), ("data=2,data=4", 0), ("", 0)):
        with pytest.raises(GrammarError) as caught:
            parse_mesh(text)
        assert caught.value.position == position


def test_axes_of_the_command_line() -> None:
    """References are listed without braces; numbers are indices."""
    mesh = Mesh({"data": 4, "model": 4})
    assert parse_axes("model,data:(1)2", mesh) == (AxisRef("model"), AxisRef("data", 1, 2))
    assert parse_axes("1, 'data'", mesh) == (AxisRef("model"), AxisRef("data"))
    for text, position in (("modle", 0), ("data,2", 5), ("data,data", 0), ("data model", 5), ("", 0)):
        with pytest.raises(GrammarError) as caught:
            parse_axes(text, mesh)
        assert caught.value.position == position


# --- size


def test_long_lists_are_read_as_arrays() -> None:
    """A list of many ids is read with a few times its text in memory, with and without white space."""
    groups = IotaReplicaGroupList(1 << 14, 4, (4, 1 << 14), (1, 0)).to_list()
    for text in (str(groups), str(groups).replace(",", ", ")):
        tracemalloc.start()
        assert parse_replica_groups(text) == groups
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 16 * len(text)


def test_long_faulty_lists_are_read_token_by_token() -> None:
    """A comment, an empty group or a fault in a long list changes nothing but the time."""
    text = str(IotaReplicaGroupList(1 << 10, 4).to_list())
    assert parse_replica_groups(text.replace("},{", "},/**/{")) == parse_replica_groups(text)
    assert parse_replica_groups(text[:-1] + ",{}}").num_devices_per_group is None
    with pytest.raises(GrammarError) as caught:
        parse_replica_groups(text[:-2] + ".}}")
    assert caught.value.position == len(text) - 2


def _without_arrow(text: str) -> str:
    """The arrow of an iota as one character, so that nothing is put into it."""
    return text.replace("<=", "\0")
