"""Messages as they are written, binary and as text: edited alike, and as protobuf's own classes would have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from commlens.errors import GrammarError
from commlens.hlo import SetChannelId, SetFrontendAttribute, load
from commlens.hlo.model import UnreadableError
from commlens.hlo.proto import descriptors
from commlens.hlo.proto.binary_message import BinaryMessage
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.proto.text_message import TextMessage
from commlens.hlo.proto.wire import BYTES, VARINT, WireError, read_fields, read_spans, varint
from proto_forms import FORMS, edited, encoded, in_form
from proto_modules import all_reduce, attributes, module, shape, tagged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from commlens.hlo.proto.descriptors import FieldDescriptor

TEXTS = [form for form in FORMS if form != "binary"]
NUMBERS = st.integers(-(2**63), 2**63 - 1)
VALUES: Mapping[FieldDescriptor, st.SearchStrategy[list[int] | list[bytes]]] = {
    descriptors.NAME: st.lists(st.binary(min_size=1, max_size=6), max_size=1),
    descriptors.BACKEND_CONFIG: st.lists(st.binary(min_size=1, max_size=6), max_size=1),
    descriptors.CHANNEL_ID: st.lists(NUMBERS.filter(bool), max_size=1),
    descriptors.TUPLE_INDEX: st.lists(NUMBERS.filter(bool), max_size=1),
    descriptors.OPERAND_IDS: st.lists(NUMBERS, max_size=4),
    descriptors.DIMENSIONS: st.lists(NUMBERS, max_size=3),
}
"""Fields of an instruction and values for them; 0 in a single one is not written, as protobuf has it."""


@st.composite
def messages(draw: st.DrawFn) -> schema.HloInstructionProto:
    """Instructions with all, some or none of the fields."""
    made = all_reduce() if draw(st.booleans()) else schema.HloInstructionProto(name=b"x2")
    for tag, values in VALUES.items():
        assign(made, tag, draw(values))
    return made


def assign(message: schema.HloInstructionProto, tag: FieldDescriptor, values: list[int] | list[bytes]) -> None:
    """Set a field of a decoded message."""
    message.ClearField(tag.name)  # pyright: ignore[reportArgumentType] - one of its fields
    if tag.packed:
        getattr(message, tag.name).extend(values)
    elif values:
        setattr(message, tag.name, values[0])


@given(before=messages(), changes=st.fixed_dictionaries({}, optional=dict(VALUES)), form=st.sampled_from(FORMS))
def test_fields_are_replaced_added_and_removed(
    before: schema.HloInstructionProto, changes: dict[FieldDescriptor, list[int] | list[bytes]], form: str
) -> None:
    """As protobuf would do it to the decoded message, whatever the notation."""
    data = in_form(before, form)
    kind = BinaryMessage if form == "binary" else TextMessage
    made = kind(data, descriptors.INSTRUCTION).with_fields(changes)
    for tag, values in changes.items():
        assign(before, tag, values)
    assert made.decoded(schema.HloInstructionProto) == before
    assert kind(data, descriptors.INSTRUCTION).with_fields({}).data == data


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", " channel_id: 5 ", id="empty"),
        pytest.param("\n    ", "\n      channel_id: 5\n    ", id="empty, on lines of its own"),
        pytest.param(' name: "x" ', ' name: "x" channel_id: 5 ', id="in one line"),
        pytest.param('name:"x",id:7', 'name:"x", channel_id: 5 id:7', id="narrow"),
        pytest.param("id:7", " channel_id: 5 id:7", id="before a field without white space"),
        pytest.param("\n\tid: 7 # seven\n", "\n\tchannel_id: 5\n\tid: 7 # seven\n", id="indentation of its neighbours"),
        pytest.param("\n  # about id\n  id: 7\n", "\n  channel_id: 5\n  # about id\n  id: 7\n", id="before a comment"),
        pytest.param("\n  news { a: 1 }\n", "\n  news { a: 1 }\n  channel_id: 5\n", id="behind what nobody knows"),
        pytest.param("\n  channel_id: 0x4; # four\n", "\n  channel_id: 5; # four\n", id="replaced, with its separator"),
        pytest.param(" channel_id: 4 channel_id: 3 ", " channel_id: 5 ", id="of several one is left"),
        pytest.param(" channel_id :4 ", " channel_id :5 ", id="only the value"),
    ],
)
def test_the_place_and_manner_of_a_field_in_a_text(text: str, expected: str) -> None:
    """A new field is written as its neighbours are; an old one keeps all but its value."""
    made = TextMessage(text.encode(), descriptors.INSTRUCTION).with_fields({descriptors.CHANNEL_ID: [5]})
    assert made.data.decode() == expected


def test_messages_are_indented_for_their_place() -> None:
    """Wherever they come from: another depth, one line, nothing; comments and texts stay as they are."""
    deep = TextMessage(
        b'\n        op_name: "a\\n  b"\n        # note\n        source_line: 3\n      ', descriptors.METADATA.kind
    )
    outer = TextMessage(b'\n  name: "x"\n', descriptors.INSTRUCTION)
    assert outer.with_fields({descriptors.METADATA: [deep]}).data == (
        b'\n  name: "x"\n  metadata {\n    op_name: "a\\n  b"\n    # note\n    source_line: 3\n  }\n'
    )
    inline = TextMessage(b' name: "x" ', descriptors.INSTRUCTION)
    assert (
        inline.with_fields({descriptors.METADATA: [outer.empty(descriptors.METADATA.kind)]}).data
        == b' name: "x" metadata { } '
    )
    flat = TextMessage(b' op_name: "a" ', descriptors.METADATA.kind)
    assert outer.with_fields({descriptors.METADATA: [flat]}).data == b'\n  name: "x"\n  metadata { op_name: "a" }\n'
    commented = inline.with_fields({descriptors.METADATA: [deep]})
    assert commented.decoded(schema.HloInstructionProto).metadata.source_line == 3


@pytest.mark.parametrize("text", ["name", 'name: "x', "name: {", "name: ]", ": 5", 'name: "x" id'])
def test_what_is_no_text_form_is_refused(text: str) -> None:
    """With the place; nothing is guessed."""
    message = TextMessage(text.encode(), descriptors.INSTRUCTION)
    with pytest.raises(GrammarError, match="^expected "):
        message.with_fields({descriptors.CHANNEL_ID: [5]})
    with pytest.raises(UnreadableError, match="^the text form of a HloInstructionProto cannot be read near "):
        message.decoded(schema.HloInstructionProto)


def test_names_of_fields() -> None:
    """Those of the schema, those it leaves out, the number where there is no name; a text has the names it has."""
    message = schema.HloInstructionProto(name=b"x", metadata=schema.OpMetadata(op_name=b"f"))
    data = message.SerializeToString() + tagged(82, BYTES, b"s") + tagged(5000, VARINT, b"\x05")
    assert BinaryMessage(data, descriptors.INSTRUCTION).fields() == {
        "name": b"x",
        "metadata": b"\x12\x01f",
        "statistics_viz": b"s",
        "field 5000": b"\x05",
    }
    text = TextMessage(
        b'name: "x" metadata { op_name: "f" } 5000: 5 [a.b]: 7 dimensions: [1, 2]', descriptors.INSTRUCTION
    )
    assert text.fields() == {
        "name": b'"x"',
        "metadata": b' op_name: "f" ',
        "5000": b"5",
        "[a.b]": b"7",
        "dimensions": b"1, 2",
    }
    assert text.without({"5000", "metadata", "[a.b]"}).data == b'name: "x" dimensions: [1, 2]'


@given(NUMBERS)
def test_numbers_are_written_as_protobuf_writes_them(number: int) -> None:
    """Negative ones in ten bytes."""
    message = schema.HloInstructionProto(operand_ids=[number])
    assert (
        BinaryMessage(b"", descriptors.INSTRUCTION).with_fields({descriptors.OPERAND_IDS: [number]}).data
        == message.SerializeToString()
    )
    assert len(varint(number)) == len(message.SerializeToString()) - 3


@given(st.binary(max_size=12))
def test_the_quick_way_through_a_message_is_the_slow_one(data: bytes) -> None:
    """Any bytes: the same fields or the same fault."""
    assert answer(read_spans, data) == answer(slow_spans, data)


def slow_spans(data: bytes) -> list[tuple[int, int, int, int, int]]:
    """Return where fields stand, found by the generator."""
    return [(number, begin, start, end, end) for number, _, begin, start, end in read_fields(data, 0, len(data))]


def answer(
    function: Callable[[bytes], list[tuple[int, int, int, int, int]]], data: bytes
) -> list[tuple[int, int, int, int, int]] | str:
    """Return what a function gives, or the fault it finds."""
    try:
        return function(data)
    except WireError as error:
        return str(error)


def test_a_number_in_the_place_of_a_message_is_no_instruction() -> None:
    """Protobuf passes over it, and so does whoever counts instructions; it stays where it is."""
    stray = tagged(2, VARINT, b"\x05")
    outline = schema.HloModuleOutline.FromString(module(all_reduce()).SerializeToString())
    main = outline.computations[1].SerializeToString()
    name_behind = 2 + main[1]
    whole = outline.computations[0].SerializeToString(), main[:name_behind] + stray + main[name_behind:]
    loaded = load(
        tagged(1, BYTES, b"m") + b"".join(tagged(3, BYTES, each) for each in whole) + tagged(6, VARINT, b"\x07")
    )
    made = edited(
        loaded, SetChannelId(loaded.instruction("x2"), 5), SetFrontendAttribute(loaded.instruction("x1"), "k", "v")
    )
    assert made.instruction("x2").channel_id == 5
    assert made.instruction("x1").frontend_attributes == {"k": "v"}
    assert stray in made.to_bytes()
    assert b"x2" in encoded(made, 1)


def test_a_number_in_the_place_of_attributes_is_none() -> None:
    """Likewise inside of an instruction."""
    stray = tagged(68, VARINT, b"\x05")
    written = BinaryMessage(
        stray + tagged(68, BYTES, attributes({"a": "1"}).SerializeToString()), descriptors.INSTRUCTION
    )
    found = written.message(descriptors.FRONTEND_ATTRIBUTES)
    assert found is not None
    assert found.decoded(schema.FrontendAttributes) == attributes({"a": "1"})
    assert written.with_fields({descriptors.FRONTEND_ATTRIBUTES: []}).data == stray


@pytest.mark.parametrize("form", TEXTS)
def test_a_shape_in_any_text_is_read(form: str) -> None:
    """What the notations share reads the same: fields, messages, repeated numbers."""
    message = schema.HloInstructionProto(shape=shape(2, 3), frontend_attributes=attributes({"a": "1", "b": "2"}))
    written = TextMessage(in_form(message, form), descriptors.INSTRUCTION)
    inner = written.message(descriptors.SHAPE)
    assert inner is not None
    assert inner.decoded(schema.ShapeProto) == message.shape
    found = written.message(descriptors.FRONTEND_ATTRIBUTES)
    assert found is not None
    entries = [entry.decoded(schema.FrontendAttributes.MapEntry) for entry in found.messages(descriptors.ATTRIBUTES)]
    assert entries == list(message.frontend_attributes.map)
    assert text_format.Parse(written.data.decode(), schema.HloInstructionProto()) == message
