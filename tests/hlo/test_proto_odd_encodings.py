"""Messages that are valid but that no writer makes: fields given twice, wide numbers, groups, values of another kind.

What protobuf's own classes read from an edited one is what they make of the edit, and all that it is not about stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.hlo import SetChannelId, SetFrontendAttribute, discover, load
from commlens.hlo.proto import descriptors
from commlens.hlo.proto.binary_message import BinaryMessage
from commlens.hlo.proto.instruction import ProtoInstruction
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.proto.wire import BYTES, FIXED32, FIXED64, VARINT, WireError, read_fields, read_messages, read_spans
from proto_forms import edited, encoded
from proto_modules import all_reduce, attributes, module, varint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.hlo.proto.descriptors import FieldDescriptor

START, END = 3, 4
"""Wire types of the brackets of a group."""


def wide(number: int, more: int) -> bytes:
    """Encode a number in more bytes than it needs."""
    plain = varint(number)
    return plain if not more else bytes((*plain[:-1], plain[-1] | 128, *[128] * (more - 1), 0))


def written(number: int, wire_type: int, value: bytes, more: int = 0) -> bytes:
    """Encode a field, its tag and length in more bytes than they need."""
    length = wide(len(value), more) if wire_type == BYTES else b""
    return wide(number << 3 | wire_type, min(more, 2)) + length + value


def group(number: int, content: bytes) -> bytes:
    """Encode a group."""
    return written(number, START, content) + written(number, END, b"")


NUMBERS = st.sampled_from([1, 2, 3, 7, 14, 26, 35, 36, 37, 43, 56, 68, 1000, 5000])
VALUES = st.one_of(
    st.tuples(st.just(FIXED64), st.binary(min_size=8, max_size=8)),
    st.tuples(st.just(FIXED32), st.binary(min_size=4, max_size=4)),
)
STRANGE = st.recursive(
    st.builds(
        lambda number, value, more: written(number, value[0], value[1], more), NUMBERS, VALUES, st.integers(0, 2)
    ),
    lambda inner: st.builds(
        lambda number, pieces: group(number, b"".join(pieces)), NUMBERS, st.lists(inner, max_size=3)
    ),
    max_leaves=4,
)
"""Fields that are unknown, or known with a value of another kind, which protobuf takes for unknown as well."""

OF_ANOTHER_KIND = st.one_of(
    st.builds(lambda number: written(number, VARINT, b"\x05"), st.sampled_from([1, 3, 7, 43, 68, 1000])),
    st.builds(lambda number: written(number, BYTES, b"\x05\x06"), st.sampled_from([26, 35, 56, 1000])),
)
"""Likewise; lists of numbers are left out, of which both kinds are known."""


@st.composite
def instructions(draw: st.DrawFn) -> bytes:
    """All-reduces with frontend attributes in several pieces and some fields more than once."""
    pieces: list[bytes] = []
    for _ in range(draw(st.integers(1, 3))):
        message = all_reduce()
        message.channel_id = draw(st.integers(-2, 300))
        message.metadata.source_line = draw(st.integers(0, 3))
        message.frontend_attributes.CopyFrom(
            attributes(draw(st.dictionaries(st.sampled_from("abkz"), st.text(max_size=2))))
        )
        data = message.SerializeToString()
        fields = list(read_fields(data, 0, len(data)))
        keep = (
            fields if not pieces else [each for each in fields if draw(st.booleans()) and each.number not in (36, 38)]
        )
        pieces += [
            written(each.number, each.wire_type, data[each.start : each.end], draw(st.integers(0, 3))) for each in keep
        ]
    pieces += draw(st.lists(STRANGE | OF_ANOTHER_KIND, max_size=4))
    return b"".join(draw(st.permutations(pieces)))


def expected_of(data: bytes, key: bytes, value: bytes, channel: int) -> bytes:
    """Make both edits with protobuf's own classes."""
    message = schema.HloInstructionProto.FromString(data)
    message.channel_id = channel
    entries = message.frontend_attributes.map
    same = [place for place, each in enumerate(entries) if each.key == key]
    if same:
        entries[same[-1]].value = value
        return message.SerializeToString()
    place = next((place for place, each in enumerate(entries) if each.key > key), len(entries))
    rest = [each.SerializeToString() for each in entries[place:]]
    del entries[place:]
    entries.add(key=key, value=value)
    for each in rest:
        entries.add().MergeFromString(each)
    return message.SerializeToString()


@given(data=instructions(), key=st.sampled_from("abk"), value=st.text(max_size=3), channel=st.integers(1, 2**63 - 1))
def test_edits_of_odd_encodings_are_what_protobuf_makes_of_them(
    data: bytes, key: str, value: str, channel: int
) -> None:
    """The last of a field that is given twice counts, the pieces of a message are one, all else keeps value and order."""
    outline = schema.HloModuleOutline.FromString(module(all_reduce()).SerializeToString())
    outline.computations[1].instructions[1] = data
    loaded = load(outline.SerializeToString())
    entered = loaded.entry
    assert entered is not None
    (found,) = (each for each in entered.instructions if isinstance(each, ProtoInstruction) and each.position == 1)
    made = edited(loaded, SetFrontendAttribute(found, key, value), SetChannelId(found, channel))
    again = schema.HloInstructionProto.FromString(encoded(made, 1))
    assert again.SerializeToString() == expected_of(data, key.encode(), value.encode(), channel)
    assert [site.channel_id for site in discover(made).sites] == [channel]


CHANGES: Mapping[FieldDescriptor, st.SearchStrategy[list[int] | list[bytes]]] = {
    descriptors.NAME: st.lists(st.binary(min_size=1, max_size=6), max_size=1),
    descriptors.BACKEND_CONFIG: st.lists(st.binary(min_size=1, max_size=6), max_size=1),
    descriptors.CHANNEL_ID: st.lists(st.integers(1, 2**63 - 1), max_size=1),
    descriptors.OPERAND_IDS: st.lists(st.integers(0, 2**40), max_size=4),
}


@given(data=instructions(), changes=st.fixed_dictionaries({}, optional=dict(CHANGES)))
def test_fields_of_odd_encodings(data: bytes, changes: dict[FieldDescriptor, list[int] | list[bytes]]) -> None:
    """Replaced, added and removed as protobuf would; without a change no byte differs."""
    message = schema.HloInstructionProto.FromString(data)
    for tag, values in changes.items():
        message.ClearField(tag.name)  # pyright: ignore[reportArgumentType] - one of its fields
        if tag.packed:
            getattr(message, tag.name).extend(values)
        elif values:
            setattr(message, tag.name, values[0])
    made = BinaryMessage(data, descriptors.INSTRUCTION).with_fields(changes)
    assert schema.HloInstructionProto.FromString(made.data).SerializeToString() == message.SerializeToString()
    assert BinaryMessage(data, descriptors.INSTRUCTION).with_fields({}).data == data


@given(content=st.lists(STRANGE, max_size=3).map(b"".join), number=NUMBERS)
def test_a_group_is_one_field(content: bytes, number: int) -> None:
    """Whatever stands in it, groups included."""
    whole = written(1, BYTES, b"x") + group(number, content) + written(2, BYTES, b"y")
    assert [each.number for each in read_fields(whole, 0, len(whole))] == [1, number, 2]
    assert [span[0] for span in read_spans(whole)] == [1, number, 2]
    assert [whole[span[2] : span[3]] for span in read_messages(whole, 2)] == [b"y"]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(written(5, START, b""), id="open"),
        pytest.param(written(5, START, b"") + written(6, END, b""), id="closed as another"),
        pytest.param(written(5, END, b""), id="closed only"),
        pytest.param(group(5, written(6, START, b"")), id="crossed"),
        pytest.param(group(5, written(1, BYTES, b"xyz")[:-1]), id="a field that reaches out"),
        pytest.param(written(5, START, b"") * 5000, id="deep and open"),
        pytest.param(written(5, START, b"") * 200 + written(5, END, b"") * 200, id="deep"),
    ],
)
def test_groups_that_do_not_close(data: bytes) -> None:
    """Neither protobuf nor this package takes them."""
    with pytest.raises(WireError):
        list(read_fields(data, 0, len(data)))
    with pytest.raises(WireError):
        read_spans(data)
    if len(data) < 10:
        with pytest.raises(Exception, match="parsing message"):
            schema.HloInstructionProto.FromString(data)
