"""Setting attributes in a text: exactly which bytes change, on printed lines and on spellings that only people write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commlens.hlo import EditError, SetChannelId, SetFrontendAttribute, load_all
from text_edits import CHANNEL, HEAD, STREAM, edited, module_of, source

if TYPE_CHECKING:
    from pathlib import Path

    from commlens.hlo import Edit


@pytest.mark.parametrize(("before", "after"), STREAM)
def test_frontend_attributes(before: str, after: str) -> None:
    """A frontend attribute goes to its one place; everything else stays, and reading it again gives the value."""
    assert edited(before, stream="0") == after
    module = module_of(source(after))
    assert module.instruction("x").frontend_attributes["stream_id"] == "0"
    assert module.instruction("x").channel_id == module_of(source(before)).instruction("x").channel_id


@pytest.mark.parametrize(("before", "after"), CHANNEL)
def test_channel_ids(before: str, after: str) -> None:
    """A channel id replaces the old one or stands behind the operands, and reading it again gives the number."""
    assert edited(before, channel=12) == after
    assert module_of(source(after)).instruction("x").channel_id == 12


@pytest.mark.parametrize(
    ("line", "stream", "channel"),
    [
        pytest.param(
            'x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"}', "0", None, id="value"
        ),
        pytest.param(
            'x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="\\060"}',
            "0",
            None,
            id="escaped",
        ),
        pytest.param("x = f32[8]{0} all-reduce(a), channel_id=12, to_apply=add", None, 12, id="channel"),
        pytest.param(
            "x = f32[8]{0} all-reduce(a), channel_id=012, to_apply=add", None, 12, id="channel in another spelling"
        ),
        pytest.param(
            'x = f32[8]{0} all-reduce(a), channel_id=9, frontend_attributes={stream_id="1"}', "1", 9, id="both"
        ),
        pytest.param("x = f32[8]{0} all-reduce(a), to_apply=add", None, None, id="no edits"),
    ],
)
def test_what_is_so_already(line: str, stream: str | None, channel: int | None) -> None:
    """Edits that change nothing give the module itself."""
    for data in (source(f"  {line}"), source(f" {line}")):
        module = module_of(data)
        instruction = module.instruction("x")
        edits: list[Edit] = [] if stream is None else [SetFrontendAttribute(instruction, "stream_id", stream)]
        edits += [] if channel is None else [SetChannelId(instruction, channel)]
        assert module.edited(edits) is module


def test_all_at_once() -> None:
    """Several keys and a channel of one instruction are set together, whatever the order of the edits."""
    before = source('  x = f32[8]{0} all-reduce(a)\n  y = f32[8]{0} all-reduce(a), frontend_attributes={d="",m=""}')
    module = module_of(before)
    edits: list[Edit] = [
        edit
        for name in ("x", "y")
        for edit in (
            SetFrontendAttribute(module.instruction(name), "n", 'a "quote"\n'),
            SetFrontendAttribute(module.instruction(name), "z", "\N{GREEK SMALL LETTER ALPHA}"),
            SetChannelId(module.instruction(name), 3),
            SetFrontendAttribute(module.instruction(name), "c", "1"),
            SetFrontendAttribute(module.instruction(name), "b", "2"),
        )
    ]
    after = module.edited(edits)
    assert after.to_bytes() == module.edited(edits[::-1]).to_bytes()
    added = rb'n="a \"quote\"\n",z="\316\261"'
    assert (
        b'  x = f32[8]{0} all-reduce(a), channel_id=3, frontend_attributes={b="2",c="1",' + added + b"}\n"
        in after.to_bytes()
    )
    assert b'channel_id=3, frontend_attributes={b="2",c="1",d="",m="",' + added + b"}\n" in after.to_bytes()
    assert after.instruction("y").frontend_attributes == {
        "b": "2", "c": "1", "d": "", "m": "", "n": 'a "quote"\n', "z": "\N{GREEK SMALL LETTER ALPHA}"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param(
            "  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes=word",
            "the attributes of x cannot be edited: frontend_attributes cannot be read: "
            "expected a map such as {a=\"1\"}, found 'word'",
            id="no map",
        ),
        pytest.param(
            '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={"a"="1"}',
            "the attributes of x cannot be edited: frontend_attributes cannot be read: "
            'expected a key and its value such as a="1", found \'"a"="1"}\'',
            id="no keys",
        ),
        pytest.param(
            "  x = f32[8]{0} all-reduce(a), to_apply=add, to_apply=add",
            "the attributes of x cannot be edited: the attribute to_apply is given twice",
            id="given twice",
        ),
        pytest.param(
            "  x = f32[8]{0} all-reduce(a), to_apply=add, what?",
            "the attributes of x cannot be edited: expected attribute=value behind the comma, found 'what?'",
            id="no attribute",
        ),
        pytest.param(
            "  y = f32[8]{0} negate(collective-broadcast(a))",
            "collective-broadcast.anon cannot be edited where it stands as an operand of another: give it a line of its own",
            id="an operand itself",
        ),
    ],
)
def test_refused(line: str, why: str) -> None:
    """What cannot be edited is refused with a sentence that names it."""
    name = "collective-broadcast.anon" if "broadcast" in line else "x"
    with pytest.raises(EditError) as caught:
        edited(f" {line}", stream="0", name=name)
    assert str(caught.value) == why


def test_cut_texts() -> None:
    """An instruction that the text may end in is not edited: nobody knows its attributes."""
    data = source("  x = f32[8]{0} all-reduce(a), to_apply=add").removesuffix(b"\n}\n")
    module = module_of(data)
    with pytest.raises(
        EditError, match=r"^the attributes of x cannot be edited: the text ends inside this instruction$"
    ):
        module.edited([SetChannelId(module.instruction("x"), 1)])


def test_contradictions() -> None:
    """The same part of an instruction is set once; keys are words, ids are positive numbers of 64 bits."""
    module = module_of(source("  x = f32[8]{0} all-reduce(a), to_apply=add"))
    x = module.instruction("x")
    refused: list[tuple[list[Edit], str]] = [
        ([SetChannelId(x, 1), SetChannelId(x, 1)], "expected one new channel id for x, found two"),
        (
            [SetFrontendAttribute(x, "a", "1"), SetFrontendAttribute(x, "a", "1")],
            "expected one new value for the frontend attribute a of x, found two",
        ),
        ([SetChannelId(x, 0)], "expected a channel id from 1 to 9223372036854775807 for x, found 0"),
        (
            [SetChannelId(x, 2**63)],
            "expected a channel id from 1 to 9223372036854775807 for x, found 9223372036854775808",
        ),
        ([SetFrontendAttribute(x, "a b", "1")], "expected a word as the key of a frontend attribute of x, found 'a b'"),
        (
            [SetChannelId(module_of(module.to_bytes() + b" ").instruction("x"), 1)],
            "expected an instruction of the module m, found x of another",
        ),
    ]
    for edits, why in refused:
        with pytest.raises(EditError) as caught:
            module.edited(edits)
        assert str(caught.value) == why


def test_lines_that_only_seem_printed() -> None:
    """An instruction that goes on below a line with two blanks before it is edited as a whole, whoever asks first."""
    line = '  x = f32[8]{0} all-reduce(a),\n  to_apply=add,\n  frontend_attributes={stream_id="4"}\n  y = f32[8]{0} add(a,\n  x)'
    module = module_of(source(line))
    x = next(each for each in module.computations[1].instructions if each.name == "x")
    changes: list[Edit] = [SetFrontendAttribute(x, "stream_id", "0"), SetChannelId(x, 5)]
    after = module.edited(changes).to_bytes().decode()
    assert (
        '  x = f32[8]{0} all-reduce(a), channel_id=5,\n  to_apply=add,\n  frontend_attributes={stream_id="0"}\n  y'
        in after
    )


def test_several_modules_in_a_file(tmp_path: Path) -> None:
    """Each module of a file is edited and written for itself; path, name and counts stay."""
    one = source("  x = f32[8]{0} all-reduce(a), to_apply=add")
    path = tmp_path / "three.hlo"
    path.write_bytes(one + b"some log line\n" + one.replace(b"HloModule m", b"HloModule n") + one)
    modules = load_all(path, partitions=2)
    for module in modules:
        after = module.edited([SetChannelId(module.instruction("x"), 9)])
        assert after.to_bytes() == module.to_bytes().replace(b"(a), to", b"(a), channel_id=9, to")
        assert (after.name, after.path, after.replica_count, after.num_partitions) == (module.name, str(path), 4, 2)
        assert [each.name for each in after.computations] == ["add", "main"]
    assert b"".join(module.to_bytes() for module in modules) == path.read_bytes()


def test_text_without_a_header() -> None:
    """A module without a header keeps the name that its entry gives it."""
    data = source("  x = f32[8]{0} all-reduce(a), to_apply=add").removeprefix(HEAD.encode())
    module = module_of(data)
    after = module.edited([SetChannelId(module.instruction("x"), 9)])
    assert (module.name, after.name, after.replica_count) == ("module_main", "module_main", None)
    assert after.entry is not None
