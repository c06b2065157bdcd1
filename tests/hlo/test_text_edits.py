"""Setting attributes in a text: exactly which bytes change, on printed lines and on spellings that only people write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.errors import CommlensError
from commlens.hlo import EditError, SetChannelId, SetFrontendAttribute, Site, load, load_all
from commlens.hlo.agreement import AttributeChange
from commlens.hlo.text import TextModule, read_modules
from commlens.hlo.text.attribute_edits import attribute_splices
from commlens.hlo.text.editing import splices_of
from commlens.hlo.text.quick_edits import QuickEditor
from commlens.hlo.text.splices import Splice, spliced
from xla_reader import XlaReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commlens.hlo import Edit
    from commlens.hlo.text.instruction import TextInstruction

HEAD = """HloModule m, replica_count=4

add {
  u = f32[] parameter(0)
  v = f32[] parameter(1)
  ROOT w = f32[] add(u, v)
}

"""


@pytest.fixture(scope="module")
def xla() -> Iterator[XlaReader]:
    """Return XLA's reader."""
    reader = XlaReader()
    yield reader
    reader.close()


def source(line: str) -> bytes:
    """Return a module whose entry holds a parameter ``a`` and one more instruction."""
    return f"{HEAD}ENTRY main {{\n  a = f32[8]{{0}} parameter(0)\n{line}\n}}\n".encode()


def module_of(data: bytes) -> TextModule:
    """Read one module."""
    (module,) = read_modules(data)
    return module


def edited(line: str, *, stream: str | None = None, channel: int | None = None, name: str = "x") -> str:
    """Return the lines with attributes of ``x`` set."""
    before = source(line)
    module = module_of(before)
    instruction = module.instruction(name)
    edits: list[Edit] = []
    if stream is not None:
        edits.append(SetFrontendAttribute(instruction, "stream_id", stream))
    if channel is not None:
        edits.append(SetChannelId(instruction, channel))
    after = module.edited(edits).to_bytes()
    head, tail = before.partition(line.encode())[::2]
    assert after.startswith(head)
    assert after.endswith(tail)
    assert module.to_bytes() == before
    return after[len(head) : len(after) - len(tail)].decode()


STREAM = [
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add",
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"}',
        id="none yet: last",
    ),
    pytest.param(
        "  ROOT %x = f32[8]{0} all-reduce(f32[8]{0} %a), to_apply=%add, sharding={replicated}",
        '  ROOT %x = f32[8]{0} all-reduce(f32[8]{0} %a), to_apply=%add, sharding={replicated}, frontend_attributes={stream_id="0"}',
        id="behind the sharding",
    ),
    pytest.param(
        "  x = f32[32]{0} all-gather(a)",
        '  x = f32[32]{0} all-gather(a), frontend_attributes={stream_id="0"}',
        id="no attributes",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, metadata={op_name="f, metadata={"}, backend_config={"a":[1]}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"}, metadata={op_name="f, metadata={"}, backend_config={"a":[1]}',
        id="before the metadata",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, backend_config="c"',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"}, backend_config="c"',
        id="before the configuration",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), control-predecessors={a}, to_apply=add, metadata={op_name="f"}',
        '  x = f32[8]{0} all-reduce(a), frontend_attributes={stream_id="0"}, control-predecessors={a}, to_apply=add, metadata={op_name="f"}',
        id="before the first of them in the line as written",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), metadata={op_name="f"}, to_apply=add',
        '  x = f32[8]{0} all-reduce(a), frontend_attributes={stream_id="0"}, metadata={op_name="f"}, to_apply=add',
        id="metadata before others",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1",z="2"}, metadata={op_name="f"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1",stream_id="0",z="2"}, metadata={op_name="f"}',
        id="into a map in key order",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1",b="2"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1",b="2",stream_id="0"}',
        id="at the end of a map",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={z="1"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0",z="1"}',
        id="first in a map",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={z="1",a="2"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0",z="1",a="2"}',
        id="before the first greater key of a map without order",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={Z="1",stream="2",stream_idx="3"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={Z="1",stream="2",stream_id="0",stream_idx="3"}',
        id="keys are compared by bytes",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={}",
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"}',
        id="into an empty map",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={ /* none */ }",
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0" /* none */ }',
        id="into an empty map with a comment",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="x,}\\"{", c={"n":[1,2]}, z="1"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="x,}\\"{", c={"n":[1,2]}, stream_id="0", z="1"}',
        id="braces, quotes and blanks in a map",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={\n    a="1",\n    b="2"\n  }',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={\n    a="1",\n    b="2",\n    stream_id="0"\n  }',
        id="a map over several lines",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1", /* b */ b="2"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1", /* b */ b="2", stream_id="0"}',
        id="a comment in a map",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1",stream_id="7",z="2"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="1",stream_id="0",z="2"}',
        id="replaced",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={z=1,stream_id = 0 ,a=2}",
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={z=1,stream_id = "0" ,a=2}',
        id="a bare word is replaced in its place",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id={"a":[0,1]}}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"}',
        id="a block is replaced",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="1",stream_id="2"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="1",stream_id="0"}',
        id="of two, the one that counts",
    ),
    pytest.param(
        '  x =\n    f32[8]{0} // the sum\n    all-reduce(a),\n    to_apply=add // add\n    , metadata={op_name="f"}',
        '  x =\n    f32[8]{0} // the sum\n    all-reduce(a),\n    to_apply=add // add\n    , frontend_attributes={stream_id="0"}, metadata={op_name="f"}',
        id="over several lines",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add // last\n  ROOT y = f32[8]{0} copy(x)",
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"} // last\n  ROOT y = f32[8]{0} copy(x)',
        id="a comment behind the line",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a),\r\n   to_apply=add  \r\n  ROOT y = f32[8]{0} copy(x)",
        '  x = f32[8]{0} all-reduce(a),\r\n   to_apply=add, frontend_attributes={stream_id="0"}  \r\n  ROOT y = f32[8]{0} copy(x)',
        id="carriage returns",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add y = f32[8]{0} copy(x) }",
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={stream_id="0"} y = f32[8]{0} copy(x) }',
        id="two on a line",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(negate(a)), to_apply=add",
        '  x = f32[8]{0} all-reduce(negate(a)), to_apply=add, frontend_attributes={stream_id="0"}',
        id="an instruction as operand",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="x, metadata={b="},c={"}"}',
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={a="x, metadata={b=",stream_id="0"},c={"}"}',
        id="what looks like metadata in a string",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), replica_groups=mesh['a'=4], device_ids=(3,2,1,0) {'a'}, to_apply=add",
        "  x = f32[8]{0} all-reduce(a), replica_groups=mesh['a'=4], device_ids=(3,2,1,0) {'a'}, to_apply=add, frontend_attributes={stream_id=\"0\"}",
        id="groups with commas of their own",
    ),
    pytest.param(
        '  x = ((f32[8]{0:T(8)}), f32[2]{0:T(2)}, u32[]{:S(2)}) reduce-scatter-start(a), to_apply=add, dimensions={0}, metadata={op_name="f"}',
        '  x = ((f32[8]{0:T(8)}), f32[2]{0:T(2)}, u32[]{:S(2)}) reduce-scatter-start(a), to_apply=add, dimensions={0}, frontend_attributes={stream_id="0"}, metadata={op_name="f"}',
        id="a start in short",
    ),
]

CHANNEL = [
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add",
        "  x = f32[8]{0} all-reduce(a), channel_id=12, to_apply=add",
        id="none yet",
    ),
    pytest.param("  x = f32[32]{0} all-gather(a)", "  x = f32[32]{0} all-gather(a), channel_id=12", id="no attributes"),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), channel_id=1, to_apply=add",
        "  x = f32[8]{0} all-reduce(a), channel_id=12, to_apply=add",
        id="replaced",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add, channel_id=-7",
        "  x = f32[8]{0} all-reduce(a), to_apply=add, channel_id=12",
        id="replaced with its sign, where it stands",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce(a), to_apply=add, channel_id= /* one */ 1 // two",
        "  x = f32[8]{0} all-reduce(a), to_apply=add, channel_id= /* one */ 12 // two",
        id="comments",
    ),
    pytest.param(
        "  x = f32[8]{0} cross-replica-sum(a), all_reduce_id=3, to_apply=add",
        "  x = f32[8]{0} cross-replica-sum(a), all_reduce_id=12, to_apply=add",
        id="the old spelling",
    ),
    pytest.param(
        "  x = f32[32]{0} all-gather(a), all_reduce_id=3",
        "  x = f32[32]{0} all-gather(a), channel_id=12, all_reduce_id=3",
        id="the old spelling means nothing elsewhere",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, metadata={op_name=", channel_id=3"}',
        '  x = f32[8]{0} all-reduce(a), channel_id=12, to_apply=add, metadata={op_name=", channel_id=3"}',
        id="not what strings say",
    ),
    pytest.param(
        '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={channel_id="3"}',
        '  x = f32[8]{0} all-reduce(a), channel_id=12, to_apply=add, frontend_attributes={channel_id="3"}',
        id="not what maps say",
    ),
    pytest.param(
        "  x = f32[8]{0} all-reduce( /* ) */ a\n  )\n  , to_apply=add",
        "  x = f32[8]{0} all-reduce( /* ) */ a\n  ), channel_id=12\n  , to_apply=add",
        id="directly behind the operands",
    ),
]


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
            "x = f32[8]{0} all-reduce(a), channel_id=+012, to_apply=add", None, 12, id="channel in another spelling"
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
            'expected the frontend attributes of x to be a map such as {a="1"}, found word',
            id="no map",
        ),
        pytest.param(
            '  x = f32[8]{0} all-reduce(a), to_apply=add, frontend_attributes={"a"="1"}',
            'expected the frontend attributes of x to be a map such as {a="1"}, found {"a"="1"}',
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


# --- generated lines --------------------------------------------------------------------------------------------------

KEYS = ("a", "stream_id", "stream", "zz", "B")
VALUES = ('"1"', '"a, b={\\"}"', "word", '{"n":[1,{}]}', '""')
ATTRIBUTES = {
    "channel_id": ("3", "-1"),
    "replica_groups": ("{{0,1},{2,3}}", "[2,2]<=[4]", "mesh['a'=2,'b'=2] {'a'}", "{}"),
    "to_apply": ("%add", "add", "%add.7"),
    "use_global_device_ids": ("true",),
    "sharding": ("{replicated}", "{devices=[4]<=[4]}"),
    "control-predecessors": ("{%a}",),
    "metadata": ('{op_name="f/g" source_line=3}', '{op_name="}, metadata={ channel_id=9"}'),
    "backend_config": ('{"a":{"b":"}"}}', '"raw"'),
}
PRINTED_SEPARATORS = (", ",)
SEPARATORS = (", ", ",", " ,  ", ",\n    ", " /* c, */ , ", ", // c\n   ")


@st.composite
def maps(draw: st.DrawFn, separators: tuple[str, ...]) -> list[str]:
    """Pieces of a map: keys and values, and what stands between them."""
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=4))
    pieces = [f"{key}={draw(st.sampled_from(VALUES))}" for key in keys]
    between = draw(st.sampled_from(separators))
    return [each for piece in pieces for each in (piece, between)][:-1]


@st.composite
def lines(draw: st.DrawFn, separators: tuple[str, ...]) -> str:
    """Instructions named ``x`` with attributes in any order."""
    names = draw(st.lists(st.sampled_from([*ATTRIBUTES, "frontend_attributes"]), unique=True))
    head = draw(
        st.sampled_from(["x = f32[8]{0} all-reduce(a)", "ROOT %x = (f32[8]{0:T(8)}) all-reduce(f32[8]{0:T(8)} %a)"])
    )
    text = head
    for name in names:
        if name == "frontend_attributes":
            value = "{" + "".join(draw(maps(separators))) + "}"
        else:
            value = draw(st.sampled_from(ATTRIBUTES[name]))
        text += f"{draw(st.sampled_from(separators))}{name}={value}"
    return text


def changes() -> st.SearchStrategy[AttributeChange]:
    """What is to become of an instruction."""
    values = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["0", "1", "a, b", 'x"}{', ""]), max_size=3)
    return st.builds(AttributeChange, st.none() | st.sampled_from([3, 77]), values)


def edits_for(instruction: TextInstruction, change: AttributeChange) -> list[Edit]:
    """Return the edits that say so."""
    found: list[Edit] = [SetFrontendAttribute(instruction, *pair) for pair in change.frontend_attributes.items()]
    return found if change.channel_id is None else [SetChannelId(instruction, change.channel_id), *found]


@given(lines(SEPARATORS), changes())
def test_any_spelling(line: str, change: AttributeChange) -> None:
    """Reading an edited text again gives the new values, the other attributes as they were, and the same bytes outside."""
    module = module_of(source(f" {line}"))
    instruction = next(each for each in module.computations[1].instructions if each.name == "x")
    splices = sorted(splices_of(module, edits_for(instruction, change)))
    after = module.edited(edits_for(instruction, change))
    again = after.computations[1].instruction("x")
    assert again is not None
    assert again.frontend_attributes == {**instruction.frontend_attributes, **change.frontend_attributes}
    assert again.channel_id == (instruction.channel_id if change.channel_id is None else change.channel_id)
    others = [key for key in instruction.parts.attributes if key not in ("channel_id", "frontend_attributes")]
    assert others == [key for key in again.parts.attributes if key not in ("channel_id", "frontend_attributes")]
    assert all(again.parts.value(key) == instruction.parts.value(key) for key in others)
    assert (after is module) == (not splices)
    assert outside_is_equal(module, after, edits_for(instruction, change))


def outside_is_equal(module: TextModule, after: TextModule, edits: list[Edit]) -> bool:
    """Whether nothing changed but what the splices of the edits replace."""
    splices = sorted(splices_of(module, edits))
    start = module.part[0]
    before, now, shift = module.to_bytes(), after.to_bytes(), 0
    borders = [(start, start), *[(splice.start, splice.end) for splice in splices]]
    borders.append((start + len(before), start + len(before)))
    for (_, begin), (stop, _), splice in zip(borders, borders[1:], [*splices, None], strict=False):
        if before[begin - start : stop - start] != now[begin - start + shift : stop - start + shift]:
            return False
        if splice is not None:
            shift += len(splice.replacement) - (splice.end - splice.start)
    return len(now) == len(before) + shift


@given(lines(SEPARATORS), changes())
def test_twice_is_once(line: str, change: AttributeChange) -> None:
    """Making the same edits again changes nothing."""
    module = module_of(source(f" {line}"))
    after = module.edited(edits_for(module.computations[1].instructions[1], change))
    assert after.edited(edits_for(after.computations[1].instructions[1], change)) is after


@given(st.lists(lines(PRINTED_SEPARATORS), min_size=1, max_size=4), changes())
def test_the_quick_road_gives_what_the_careful_one_does(found: list[str], change: AttributeChange) -> None:
    """Printed lines that are looked up among others give the splices that taking them apart gives."""
    body = "\n".join(f"  {line.replace('x', f'x.{number}', 1)}" for number, line in enumerate(found))
    module = module_of(source(body))
    assert module.computations[1].starts is None
    editor = QuickEditor()
    for instruction in module.computations[1].instructions[1:]:
        quick = editor.splices(instruction, change)
        if quick is not None:
            assert quick == careful(instruction, change)


def careful(instruction: TextInstruction, change: AttributeChange) -> list[Splice]:
    """Return what the careful road gives: one blank less before a line is enough to lead there."""
    text = instruction.computation.text
    alone = text[: instruction.start - 1] + text[instruction.start :]
    module = module_of(bytes(alone))
    assert module.computations[1].starts is not None
    again = module.computations[1].instruction(instruction.name)
    assert again is not None
    return [Splice(start + 1, end + 1, put) for start, end, put in sorted(splices_of(module, edits_for(again, change)))]


def test_the_quick_road_takes_what_is_printed() -> None:
    """Of the lines above it takes most of those that compilers print, and agrees on each of them."""
    change = AttributeChange(12, {"stream_id": "0"})
    taken = 0
    for case in (*STREAM, *CHANNEL):
        module = module_of(source(str(case.values[0])))
        instruction = module.computations[1].instructions[1]
        quick = QuickEditor().splices(instruction, change) if module.computations[1].starts is None else None
        if quick is not None:
            assert quick == careful(instruction, change)
            taken += 1
    assert taken >= 17


# --- real modules -----------------------------------------------------------------------------------------------------


def communicating(module: TextModule) -> list[TextInstruction]:
    """Return the instructions that may communicate."""
    return [
        each.instruction if isinstance(each, Site) else each  # pyright: ignore[reportReturnType]
        for _, items in module.communication()
        for each in items
    ]


@pytest.mark.corpus("public/*.hlo*", "public/*.txt*", "jax-*/*.txt*", "torch_xla-*/*.txt*")
def test_real_modules(corpus_file: Path) -> None:
    """Every communicating instruction of a real module is edited, and only it changes."""
    for module in load_all(corpus_file):
        if not isinstance(module, TextModule):
            continue
        assert module.edited([]) is module
        instructions = communicating(module)
        change = AttributeChange(987654321, {"stream_id": "0"})
        after = module.edited([edit for each in instructions for edit in edits_for(each, change)])
        again = communicating(after)
        assert [each.name for each in again] == [each.name for each in instructions]
        for each in again:
            assert (each.channel_id, each.frontend_attributes["stream_id"]) == (987654321, "0")
        assert outside_is_equal(module, after, [edit for each in instructions for edit in edits_for(each, change)])
        editor = QuickEditor()
        for each in instructions[:50]:
            quick = editor.splices(each, change) if each.computation.starts is None else None
            if quick is not None:
                line, offset = each.parts, each.end - len(each.parts.text)
                found = attribute_splices(line, module.text[offset : each.end], change)
                assert quick == [Splice(start + offset, end + offset, put) for start, end, put in found]


def test_xla_reads_what_it_read_before(xla: XlaReader) -> None:
    """XLA takes every edited line that it took before, and sees the new values."""
    read = 0
    for case in (*STREAM, *CHANNEL):
        line = str(case.values[0])
        if not xla.reads(source(line)):
            continue
        read += 1
        printed = xla.printed(source(edited(line, stream="0", channel=12)))
        assert printed is not None, line
        assert 'stream_id="0"' in printed
        assert "channel_id=12" in printed
    assert read > 10


@pytest.mark.corpus
def test_xla_reads_edited_real_modules(corpus: Path, xla: XlaReader) -> None:
    """XLA takes every edited real module of a sample that it took before."""
    paths = sorted(path for path in corpus.glob("*/*.txt*") if path.stat().st_size < 20_000)[::12]
    read = 0
    for path in paths:
        try:
            modules = [module for module in load_all(path) if isinstance(module, TextModule)]
        except CommlensError:
            continue
        for module in modules[:2]:
            if not xla.reads(module.to_bytes()):
                continue
            change = AttributeChange(99, {"stream_id": "0"})
            edits = [edit for each in communicating(module) for edit in edits_for(each, change)]
            assert xla.reads(module.edited(edits).to_bytes()), path
            read += 1
    assert read > 10


# --- splices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "splices",
    [
        pytest.param([Splice(1, 4, b"x"), Splice(3, 5, b"y")], id="overlapping"),
        pytest.param([Splice(2, 2, b"x"), Splice(2, 2, b"y")], id="at the same place"),
        pytest.param([Splice(1, 4, b"x"), Splice(2, 2, b"y")], id="inside another"),
        pytest.param([Splice(1, 3, b"x"), Splice(1, 3, b"x")], id="the same twice"),
        pytest.param([Splice(8, 11, b"x")], id="behind the end"),
        pytest.param([Splice(0, 1, b"x")], id="before the start"),
    ],
)
def test_splices_that_contradict(splices: list[Splice]) -> None:
    """No byte is changed twice, and none outside the part."""
    with pytest.raises(EditError, match=r"^expected "):
        spliced(b"0123456789", splices, 1)


def test_splices_side_by_side() -> None:
    """Neighbouring splices are made in the order of the text, whatever their own."""
    splices = [Splice(4, 6, b""), Splice(3, 4, b"C"), Splice(4, 4, b"+"), Splice(9, 9, b"!")]
    assert spliced(b"0123456789", splices) == b"012C+678!9"
    assert spliced(b"0123456789", [], 2, 5) == b"234"
    assert load(source("  x = f32[8]{0} copy(a)").decode()).edited([]).name == "m"
