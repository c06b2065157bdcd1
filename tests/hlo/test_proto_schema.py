"""The schema: its numbers are upstream's, what it does not know survives, and the generated code fits the source."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st

import commlens.hlo.proto.schema
from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.proto.wire import BYTES, FIXED32, FIXED64, VARINT, WireError, read_fields
from commlens.hlo.shapes import ELEMENT_TYPE_NUMBERS
from proto_modules import all_reduce, module, tagged, varint

if TYPE_CHECKING:
    from google.protobuf.message import Message

FOLDER = Path(commlens.hlo.proto.schema.__file__).parent
SOURCE = (FOLDER / "commlens_hlo.proto").read_text()
KINDS: dict[str, type[Message]] = {
    name: kind for name, kind in vars(schema).items() if isinstance(kind, type) and hasattr(kind, "FromString")
}


def unknown_fields(known: set[int]) -> st.SearchStrategy[bytes]:
    """Make encoded fields whose numbers are not among the known ones."""
    numbers = st.integers(1, 2**29 - 1).filter(lambda number: number not in known and not 19000 <= number < 20000)
    values = st.one_of(
        st.tuples(st.just(VARINT), st.integers(0, 2**64 - 1).map(varint)),
        st.tuples(st.just(FIXED64), st.binary(min_size=8, max_size=8)),
        st.tuples(st.just(BYTES), st.binary(max_size=40)),
        st.tuples(st.just(FIXED32), st.binary(min_size=4, max_size=4)),
    )
    return st.lists(st.tuples(numbers, values).map(lambda made: tagged(made[0], *made[1])), max_size=6).map(b"".join)


def by_number(data: bytes) -> dict[int, list[bytes]]:
    """Return the encoded values of a message by field number, in their order."""
    found: dict[int, list[bytes]] = {}
    for field in read_fields(data, 0, len(data)):
        found.setdefault(field.number, []).append(data[field.start : field.end])
    return found


@given(name=st.sampled_from(sorted(KINDS)), data=st.data())
def test_unknown_fields_survive_the_round_trip(name: str, data: st.DataObject) -> None:
    """Reading and writing a message keeps what the schema does not know, whatever it is."""
    kind = KINDS[name]
    known = {field.number for field in kind.DESCRIPTOR.fields}
    encoded = data.draw(unknown_fields(known))
    assert by_number(kind.FromString(encoded).SerializeToString()) == by_number(encoded)


@given(extra=unknown_fields({field.number for field in schema.HloInstructionProto.DESCRIPTOR.fields}))
def test_unknown_fields_survive_an_edit_in_the_middle(extra: bytes) -> None:
    """An instruction is edited, all around it is the same: unknown fields of instruction, computation and module too."""
    outline = schema.HloModuleOutline.FromString(module(all_reduce()).SerializeToString() + tagged(999, BYTES, extra))
    first = outline.computations[1].instructions
    edited = schema.HloInstructionProto.FromString(first[1] + extra)
    edited.channel_id = 5
    first[1] = edited.SerializeToString()
    again = schema.HloModuleProto.FromString(outline.SerializeToString())
    assert again.computations[1].instructions[1].channel_id == 5
    assert by_number(outline.SerializeToString())[999] == [extra]
    kept = by_number(again.computations[1].instructions[1].SerializeToString())
    assert {number: values for number, values in kept.items() if number in by_number(extra)} == by_number(extra)


def test_outlines_and_messages_are_two_views_of_the_same_bytes() -> None:
    """What goes in through one comes out through the other."""
    message = module(all_reduce(), all_reduce(3))
    encoded = message.SerializeToString()
    assert schema.HloModuleOutline.FromString(encoded).SerializeToString() == encoded
    outline = schema.HloInstructionOutline.FromString(message.computations[1].instructions[1].SerializeToString())
    assert outline.shape == message.computations[1].instructions[1].shape.SerializeToString()


def test_the_generated_code_is_that_of_the_source() -> None:
    """Every field of the .proto has its name and number in the generated code, and no more are there."""
    written = re.findall(r"^ *(?:repeated )?(?:[\w.]+|map<\w+, \w+>) (\w+) = (\d+);", SOURCE, re.MULTILINE)
    enums = [(value.name, str(value.number)) for value in schema.PrimitiveType.DESCRIPTOR.values]
    values = re.findall(r"^ +([A-Z]\w+) = (\d+);", SOURCE, re.MULTILINE)
    file = FileDescriptorProto()
    schema.DESCRIPTOR.CopyToProto(file)
    generated = [field for kind in file.message_type for field in _all_fields(kind)]
    assert sorted(generated) == sorted(written)
    assert values == enums


def _all_fields(kind: DescriptorProto) -> list[tuple[str, str]]:
    nested = [field for each in kind.nested_type if not each.options.map_entry for field in _all_fields(each)]
    return [(field.name, str(field.number)) for field in kind.field] + nested


def test_the_generated_code_is_of_the_oldest_generator() -> None:
    """Code of protobuf 5.26 is the last that loads with every later runtime; newer code asks for its own major version."""
    generated = (FOLDER / "commlens_hlo_pb2.py").read_text()
    assert "Protobuf Python Version: 5.26." in generated
    assert "runtime_version" not in generated


def test_element_types_are_those_of_the_table() -> None:
    """The enum of the schema and the table of widths name the same types."""
    spelled = {value.number: value.name.lower() for value in schema.PrimitiveType.DESCRIPTOR.values}
    spelled |= {0: "invalid", 14: "opaque"}
    assert spelled == dict(ELEMENT_TYPE_NUMBERS)


@given(fields=unknown_fields(set()), cut=st.integers(0, 60))
def test_a_cut_message_is_noticed(fields: bytes, cut: int) -> None:
    """The outside of a message says where it ends too early, and never reads past its range."""
    whole = list(read_fields(fields, 0, len(fields)))
    assert [field.end for field in whole[-1:]] == [len(fields)][: len(whole)]
    short = fields[:cut]
    ends = [0, *(field.end for field in whole)]
    if len(short) in ends:
        assert list(read_fields(fields, 0, len(short))) == whole[: ends.index(len(short))]
    else:
        with pytest.raises(WireError, match="end inside"):
            list(read_fields(fields, 0, len(short)))


@pytest.mark.parametrize("data", [b"\x00", b"\x07", b"\x0c\x0e", b"\xff" * 11, b"\x08" + b"\xff" * 11])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    """Field 0, wire types that nobody writes, numbers that never end."""
    with pytest.raises(WireError, match="starts no"):
        list(read_fields(data, 0, len(data)))
