"""Texts of protos that no printer makes: the same modules, and edits of the same instructions or of none."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from google.protobuf import text_format

from combiner_modules import entry, line
from commlens.errors import InputError
from commlens.hlo import EditError, SetChannelId, discover, load, load_all
from commlens.hlo.proto import descriptors
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.proto.text_message import TextMessage
from commlens.neuron import (
    ConvertCollectivesToCustomCall,
    NeuronAllGatherCombiner,
    NeuronAllReduceCombiner,
    NeuronCollectiveStreamIdInjector,
    NeuronUniqueChannelIdEnforcer,
)
from proto_modules import all_reduce, module_of, reducer
from proto_modules import entry as entry_of
from proto_spacing import spaced
from proto_twin import proto_twin

if TYPE_CHECKING:
    from commlens.hlo import Pass

PROGRAM = proto_twin(
    load(
        entry(
            f"a = {line('all-reduce', channel_id='3')}",
            f"b = {line('all-reduce', 'q', channel_id='3')}",
            "g = " + line("all-gather", frontend_attributes='{x="1",y="\\n{\\"2"}', metadata='{op_name="f#"}'),
            f"h = {line('all-gather', 'q')}",
            f"i = {line('all-gather', 'a', control_predecessors='{g}')}",
            f"j = {line('all-gather', 'b', shape='f32[8,2]', dimensions='{1}')}",
        )
    )
)
PASSES: tuple[Pass, ...] = (
    NeuronCollectiveStreamIdInjector(),
    NeuronUniqueChannelIdEnforcer(),
    NeuronAllGatherCombiner(tp_group="off"),
    NeuronAllReduceCombiner(),
    ConvertCollectivesToCustomCall(),
)
HEADS = [
    "computations\n{",
    "computations: {",
    "computations :\r\n{",
    "computations # of it {\n {",
    "computations\t\f\v{",
]


def three() -> schema.HloModuleProto:
    """Return a module whose entry is the second of three computations."""
    last = reducer()
    last.name, last.id = b"last", 9
    for each in last.instructions:
        each.name += b".last"
    return module_of(reducer(), entry_of(all_reduce()), last)


def read(text: bytes) -> schema.HloModuleProto:
    """Read a text with protobuf's own reader."""
    return text_format.Parse(text.decode(), schema.HloModuleProto(), allow_unknown_field=True)


def with_channel(message: schema.HloModuleProto, number: int) -> schema.HloModuleProto:
    """Return a module whose entry, the second computation, has a channel in its collective."""
    made = schema.HloModuleProto.FromString(message.SerializeToString())
    made.computations[1].instructions[1].channel_id = number
    return made


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("place", range(3))
def test_a_computation_whose_bracket_stands_apart_from_its_name(head: str, place: int) -> None:
    """It counts like the others: an edit is made in the computation that the edited instruction stands in."""
    pieces = text_format.MessageToString(three()).split("computations {")
    text = pieces[0] + "".join(
        (head if number == place else "computations {") + piece for number, piece in enumerate(pieces[1:])
    )
    loaded = load(text)
    assert [site.name for site in discover(loaded).sites] == ["x2"]
    made = loaded.edited([SetChannelId(loaded.instruction("x2"), 5)])
    assert read(made.to_bytes()) == with_channel(three(), 5)


@pytest.mark.parametrize("head", HEADS)
def test_an_instruction_whose_bracket_stands_apart_from_its_name(head: str) -> None:
    """Likewise."""
    printed = text_format.MessageToString(three())
    for place in range(printed.count("instructions {")):
        pieces = printed.split("instructions {")
        text = "instructions {".join(pieces[: place + 1])
        text += head.replace("computations", "instructions") + "instructions {".join(pieces[place + 1 :])
        loaded = load(text)
        made = loaded.edited([SetChannelId(loaded.instruction("x2"), 5)])
        assert read(made.to_bytes()) == with_channel(three(), 5)


@pytest.mark.parametrize("head", ["computations: [", "computations [", "computations\n:\n# [\n["])
def test_a_list_of_computations(head: str) -> None:
    """It is read as the module that it is, and edited like fields of their own."""
    bodies = [spaced(each, random.Random(place)) for place, each in enumerate(three().computations)]
    rest = three()
    rest.ClearField("computations")
    text = f"{text_format.MessageToString(rest)} {head} {{{bodies[0]}}}, <{bodies[1]}> ] computations {{{bodies[2]}}}"
    loaded = load(text)
    assert [each.name for each in loaded.computations] == ["add", "main", "last"]
    assert [site.name for site in discover(loaded).sites] == ["x2"]
    made = loaded.edited([SetChannelId(loaded.instruction("x2"), 5)])
    assert read(made.to_bytes()) == with_channel(three(), 5)
    assert loaded.to_bytes() == text.encode()


@pytest.mark.parametrize(
    "around", ["hlo_module {MODULE}", "hlo: < hlo_module\n:\n<MODULE> >", "hlo_modules: [ {MODULE} ]"]
)
@pytest.mark.parametrize("seed", range(12))
def test_every_spelling_is_the_same_module(around: str, seed: int) -> None:
    """Whatever blanks, comments, brackets and separators stand in it, and however strings and numbers are written."""
    text = around.replace("MODULE", f"{spaced(three(), random.Random(seed), listed=True)}\n")
    (loaded,) = load_all(text.encode())
    assert loaded.to_bytes() == text.encode()
    (expected,) = load_all(three().SerializeToString())
    assert [(each.name, [repr(one) for one in each.instructions]) for each in loaded.computations] == [
        (each.name, [repr(one) for one in each.instructions]) for each in expected.computations
    ]
    assert [site.name for site in discover(loaded).sites] == ["x2"]


def wanted_of(chosen: Pass) -> schema.HloModuleProto:
    """Return what a pass makes of the binary message, as far as the schema knows it."""
    made = schema.HloModuleProto.FromString(chosen.run(load(PROGRAM.SerializeToString())).module.to_bytes())
    made.DiscardUnknownFields()
    return made


@pytest.mark.parametrize("chosen", PASSES, ids=str)
@pytest.mark.parametrize("listed", [False, True])
def test_passes_edit_every_spelling_as_they_edit_the_binary_message(chosen: Pass, *, listed: bool) -> None:
    """Protobuf reads the same message from both products, whether or not messages stand in lists."""
    for seed in range(12):
        result = chosen.run(load(spaced(PROGRAM, random.Random(seed), listed=listed).encode() + b"\n"))
        assert result.modified
        assert read(result.module.to_bytes()) == wanted_of(chosen)


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        pytest.param("operand_ids:[1]id:7", [5, 6], "operand_ids:[5] operand_ids: 6 id:7", id="several for a list"),
        pytest.param("operand_ids:1 operand_ids:[2]id:7", [5], "operand_ids:5 id:7", id="one for two"),
        pytest.param("channel_id:3 operand_ids:[2]id:7", [], "channel_id:3 id:7", id="none for one"),
        pytest.param("operand_ids:1,operand_ids:2,id:7", [5], "operand_ids:5, id:7", id="separators"),
    ],
)
def test_fields_that_nothing_stood_between_stay_apart(text: str, values: list[int], expected: str) -> None:
    """A bracket ends a value without white space; a number that takes its place does not."""
    made = TextMessage(text.encode(), descriptors.INSTRUCTION).with_fields({descriptors.OPERAND_IDS: values})
    assert made.data.decode() == expected


@pytest.mark.parametrize("blank", ["\u00a0", "\u2028", "\u3000"])
def test_blanks_that_are_none(blank: str) -> None:
    """Protobuf's reader in Python passes over them, the one in C++ does not: nothing is edited beside one."""
    text = text_format.MessageToString(three()).replace("called_computation_ids:", f"called_computation_ids{blank}:")
    loaded = load(text.encode())
    with pytest.raises(EditError, match="x2 = all-reduce cannot be edited: "):
        loaded.edited([SetChannelId(loaded.instruction("x2"), 5)])


@pytest.mark.parametrize("spelling", ["element_type: F99", "element_type\n:F99", "element_type :# F32\n F99"])
def test_a_type_that_nobody_knows_spoils_only_its_instruction(spelling: str) -> None:
    """However it is spaced; a text that looks like one stays what it is, and all else can be edited."""
    message = three()
    message.computations[1].instructions[1].metadata.op_name = b"element_type: F99 { # }"
    printed = text_format.MessageToString(message).replace("element_type: F32", spelling, 1)
    loaded = load(printed)
    found = loaded.instruction("x2")
    assert found.op_name == "element_type: F99 { # }"
    made = loaded.edited([SetChannelId(found, 5), SetChannelId(loaded.instruction("x11"), 6)])
    assert made.instruction("x2").channel_id == 5
    expected = with_channel(message, 5)
    expected.computations[0].instructions[0].channel_id = 6
    assert read(made.to_bytes().replace(spelling.encode(), b"element_type: F32", 1)) == expected


def test_brackets_that_do_not_match() -> None:
    """Protobuf says so, and where."""
    text = text_format.MessageToString(three())
    for change in ("computations: " + "[" * 5000 + "{", "computations [", "computations [[{", "computations: [{]"):
        with pytest.raises(InputError):
            load_all(text.replace("computations {", change, 1).encode())


@pytest.mark.parametrize("escape", ["\\k", "\\?", "\\u0041", "\\U00000041", "\\N{DASH}", "\\400", "\\777", "\\8"])
def test_escapes_that_are_not_of_one_byte(escape: str) -> None:
    """Protobuf's reader in Python leaves the backslash of those: they are refused, with their place, not read wrong."""
    text = text_format.MessageToString(three())
    with pytest.raises(InputError, match=r"stands for one byte, found \\.*") as caught:
        load(text.replace('"all-reduce"', f'"all-reduce{escape}"'))
    assert caught.value.line == text[: text.index('"all-reduce"')].count("\n") + 1
    commented = text.replace('"all-reduce"', f'"all-reduce" # {escape}')
    assert load(commented).instruction("x2").opcode == "all-reduce"


def test_escapes_of_one_byte() -> None:
    """All of them, behind a backslash that is escaped itself too."""
    escapes = r"\a\b\f\n\r\t\v\\\'\"\x4\x41\0\17\377\\k\\400"
    text = text_format.MessageToString(three()).replace('name: "x2"', f'name: "{escapes}" "\'"')
    expected = b"\a\b\f\n\r\t\v\\'\"\x04A\0\x0f\xff\\k\\400'"
    entered = load(text).entry
    assert entered is not None
    assert [each.name for each in entered.instructions][-1] == expected.decode("utf-8", "replace")
