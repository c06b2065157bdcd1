"""Frontend attributes of a text: XLA's grammar and no other, since an edit of a map that was not understood loses data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.errors import GrammarError, InputError
from commlens.hlo import BecomeCustomCall, EditError, SetFrontendAttribute, UnreadableError, discover, load
from commlens.hlo.text.attribute_maps import read_entries
from commlens.hlo.text.tokens import quoted
from commlens.neuron import NeuronCollectiveStreamIdInjector, NeuronUniqueChannelIdEnforcer
from text_edits import source
from xla_reader import XlaReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Module

GOOD: dict[str, dict[str, str]] = {
    "{}": {},
    "{ }": {},
    '{a="1"}': {"a": "1"},
    '{ zz="4" , a= "3"}': {"zz": "4", "a": "3"},
    '{a=\n"3"}': {"a": "3"},
    "{a='x'}": {"a": "x"},
    "{a={}}": {"a": "{}"},
    "{a={{0,1},{1,2}}}": {"a": "{{0,1},{1,2}}"},
    '{a={"n":[1]},b={x y z}}': {"a": '{"n":[1]}', "b": "{x y z}"},
    '{a={"}"}}': {"a": '{"}"}'},
    '{a.b-c="1",_a="2",ROOT="3",f32="4"}': {"a.b-c": "1", "_a": "2", "ROOT": "3", "f32": "4"},
    '{a="x",a="y"}': {"a": "y"},
    '{a="l\\nm\\x41\\"}{"}': {"a": 'l\nmA"}{'},
    '{a="\\X41\\x00042",b="\\u0043\\U00000044\\u00e9",c="\\377\\47\\1018"}': {
        "a": "AB",
        "b": "CD\u00e9",
        "c": "\ufffd'A8",
    },
}
BAD = {
    '{stream_id="5" zz="1"}': (16, "a comma or '}' behind the value of stream_id, found 'zz=\"1\"}'"),
    '{collective_type="fsdp_all_gather" a="1"}': (36, "a comma or '}' behind the value of collective_type, found 'a="),
    "{collective_type=fsdp_all_gather}": (18, "a quoted string or a block in braces as the value of collective_type"),
    "{a=b}": (4, "a quoted string or a block in braces as the value of a, found 'b}'"),
    "{a=1}": (4, "a quoted string or a block"),
    "{a=true}": (4, "a quoted string or a block"),
    "{a=[1]}": (4, "a quoted string or a block"),
    "{stream_id=}": (12, "a quoted string or a block in braces as the value of stream_id, found '}'"),
    '{stream_id="4",}': (16, "a key and its value such as a=\"1\", found '}'"),
    '{ zz="4" , a = "3"}': (12, "a key and its value"),
    '{a="1",, zz="2"}': (8, "a key and its value such as a=\"1\", found ', zz"),
    '{,a="1"}': (2, "a key and its value"),
    '{"a"="1"}': (2, "a key and its value"),
    '{1a="1"}': (2, "a key and its value"),
    '{%a="1"}': (2, "a key and its value"),
    '{a:"1"}': (2, "a key and its value"),
    '{a="x" "y"}': (8, "a comma or '}'"),
    "{a={1}{2}}": (7, "a comma or '}'"),
    '{a="1"}{b="2"}': (8, "nothing behind the map"),
    '{a="\\q"}': (4, "a quoted string"),
    '{a="\\x411"}': (4, "a quoted string"),
    '{a="\\477"}': (4, "a quoted string"),
    "": (1, "a map such as {a=\"1\"}, found nothing"),
    "word": (1, "a map such as {a=\"1\"}, found 'word'"),
}  # fmt: skip
LINE = "  x = f32[8]{0} all-reduce(a), channel_id=1, to_apply=add, frontend_attributes="


@pytest.fixture(scope="module")
def xla() -> Iterator[XlaReader]:
    """Return XLA's reader."""
    reader = XlaReader()
    yield reader
    reader.close()


def module_of(value: str) -> Module:
    """Return a module with a map in its collective ``x``, line 11, beside another collective."""
    other = '  y = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={b="1"}'
    return load(source(f"{LINE}{value}\n{other}"))


@pytest.mark.parametrize("value", GOOD)
def test_maps_are_read(value: str) -> None:
    """Strings are unquoted, blocks are raw text, and the collective has a row."""
    found = discover(module_of(value))
    assert found.unread == ()
    assert found.sites[0].signature.frontend_attributes == GOOD[value]


@pytest.mark.parametrize("value", BAD)
def test_a_damaged_map_makes_its_collective_unread(value: str) -> None:
    """The item says what was expected; the other collective keeps its row."""
    found = discover(module_of(value))
    assert [site.name for site in found.sites] == ["y"]
    (item,) = found.unread
    assert (item.name, item.opcode, item.where) == ("x", "all-reduce", "11")
    assert item.why.startswith(f"frontend_attributes cannot be read: expected {BAD[value][1]}")


@pytest.mark.parametrize("value", BAD)
def test_nothing_of_a_damaged_map_is_lost(value: str) -> None:
    """No edit is made on its line, the error has line and column, and who goes on leaves it as it is."""
    module = module_of(value)
    x = module.instruction("x")
    place = (11, len(LINE) + BAD[value][0])
    with pytest.raises(UnreadableError) as unread:
        _ = x.frontend_attributes
    assert (unread.value.line, unread.value.column) == place
    for edit in (SetFrontendAttribute(x, "stream_id", "0"), BecomeCustomCall(x, "T", "{}")):
        with pytest.raises(
            EditError, match=r"^the attributes of x cannot be edited: frontend_attributes cannot be read: "
        ) as refused:
            module.edited([edit])
        assert (refused.value.line, refused.value.column) == place
    with pytest.raises(InputError, match=rf"^<bytes>:11:{place[1]}: x: frontend_attributes cannot be read: "):
        NeuronCollectiveStreamIdInjector().run(module)
    result = NeuronCollectiveStreamIdInjector().run(module, keep_going=True)
    assert f"{LINE}{value}\n".encode() in result.module.to_bytes()
    assert b'frontend_attributes={b="1",stream_id="0"}' in result.module.to_bytes()
    assert [left.instruction for left in result.left_alone] == ["x"]


@pytest.mark.parametrize("value", BAD)
def test_passes_that_need_no_map_refuse_it_too(value: str) -> None:
    """A collective of which anything cannot be read is not touched."""
    with pytest.raises(InputError, match=r": x: frontend_attributes cannot be read: "):
        NeuronUniqueChannelIdEnforcer().run(module_of(value))


def test_maps_that_are_read_are_edited() -> None:
    """Each of them takes one more key, and keeps what it says."""
    for value, expected in GOOD.items():
        made = module_of(value)
        after = made.edited([SetFrontendAttribute(made.instruction("x"), "stream_id", "0")])
        assert after.instruction("x").frontend_attributes == {**expected, "stream_id": "0"}


def test_instructions_that_do_not_communicate_are_not_looked_at() -> None:
    """What no row is made of spoils none."""
    found = discover(
        load(
            source(
                f"  x = f32[8]{{0}} copy(a), frontend_attributes={{b=1}}\n{LINE}{{}}".replace(
                    "  x = f32[8]{0} all", "  y = f32[8]{0} all"
                )
            )
        )
    )
    assert ([site.name for site in found.sites], found.unread) == (["y"], ())


def test_xla_draws_the_same_line(xla: XlaReader) -> None:
    """It takes every map that is read, and none of the others."""
    for value in GOOD:
        assert xla.reads(source(LINE + value)), value
    for value in BAD:
        assert not xla.reads(source(LINE + value)), value


KEYS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.\-]{0,4}", fullmatch=True)
VALUES = st.text(max_size=5).map(quoted) | st.sampled_from([b"{}", b'{"a":[1,{}]}', b"{{0,1}}", b'{"}"}'])


@given(st.lists(st.tuples(KEYS, VALUES), max_size=4), st.sampled_from([b",", b" , ", b",\n"]))
def test_what_is_written_is_read(pairs: list[tuple[str, bytes]], separator: bytes) -> None:
    """Keys, values and where they stand come back, whatever stands between them; what is cut is refused."""
    text = b"{" + separator.join(key.encode() + b"=" + value for key, value in pairs) + b"}"
    entries = read_entries(text, 0, len(text))
    assert [(entry.key.decode(), text[slice(*entry.value)]) for entry in entries] == pairs
    for end in range(len(text)):
        with pytest.raises(GrammarError) as caught:
            read_entries(text[:end], 0, end)
        assert 0 <= caught.value.position <= end
