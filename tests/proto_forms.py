"""Protos in every form in which they can be written, and looking into edited ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from google.protobuf import text_format
from google.protobuf.message import Message

from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
from commlens.hlo.proto.wire import read_fields

if TYPE_CHECKING:
    from commlens import Module
    from commlens.hlo import Edit

MessageT = TypeVar("MessageT", bound=Message)

FORMS = ["binary", "text", "one line", "angle brackets", "separators", "lists"]


def in_form(message: Message, form: str) -> bytes:
    """Write a message, binary or as one of the texts that protobuf's reader takes."""
    text = text_format.MessageToString(message, as_one_line=form == "one line")
    match form:
        case "binary":
            return message.SerializeToString()
        case "angle brackets":
            text = text.replace(" {", ": <").replace("}", ">")
        case "separators":
            text = text.replace("}\n", "},\n").replace('"\n', '"; # a note {\n\t').replace('"x2"', "'x' '2'")
        case "lists":
            lines = [f"{line}]" if line.strip().startswith("operand_ids") else line for line in text.split("\n")]
            text = "\n".join(lines).replace("operand_ids: ", "operand_ids: [ ")
        case _:
            pass
    return text.encode()


def parsed(data: bytes, kind: type[MessageT], form: str) -> MessageT:
    """Read a message with protobuf's own readers."""
    return kind.FromString(data) if form == "binary" else text_format.Parse(data.decode(), kind())


def edited(loaded: Module, *edits: Edit) -> Module:
    """Make edits; the module they are about stays as it is, and making them again gives the same bytes."""
    before = loaded.to_bytes()
    made = loaded.edited(edits)
    assert loaded.to_bytes() == before
    assert loaded.edited(edits).to_bytes() == made.to_bytes()
    assert (made.name, made.path, made.format) == (loaded.name, loaded.path, "proto")
    return made


def encoded(loaded: Module, position: int) -> bytes:
    """Return an encoded instruction of the entry computation."""
    return schema.HloModuleOutline.FromString(loaded.to_bytes()).computations[1].instructions[position]


def by_number(data: bytes) -> dict[int, list[bytes]]:
    """Return the encoded values of a message by field number, in their order."""
    found: dict[int, list[bytes]] = {}
    for field in read_fields(data, 0, len(data)):
        found.setdefault(field.number, []).append(data[field.start : field.end])
    return found
