"""A writer of protobuf's text form that uses the freedoms of its grammar, for texts that no printer makes.

Source: protobuf.dev, "Text Format Language Specification".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

_BLANKS: Final = (" ", "\n", "\t", "\r\n", "  \n   ", ' # a note: { [ " computations <\n', "\n#\n\t# ] } '\n")
_PUNCTUATION: Final = frozenset("{}<>[]:,;")
_NEWS: Final = (
    "news { instructions : 1 }",
    "news < [a.b.d] { computations : 2 } >",
    "news : [ 1 , 2 ]",
    "news : -1.5e3",
    "news : instructions",
)
"""Fields that the schema does not have."""


def spaced(message: Message, draw: random.Random, *, listed: bool = False) -> str:
    """Write a message.

    Args:
        message: the message.
        draw: gives the numbers from which everything is drawn.
        listed: whether messages in repeated fields may come as lists too.
    """
    written: list[str] = []
    before = ";"
    for token in (*_fields(message, draw, listed=listed), ";"):
        free = ("",) if before in _PUNCTUATION or token in _PUNCTUATION else ()
        written += [draw.choice((*free * 3, *_BLANKS)), token]
        before = token
    return "".join(written[:-1])


def _fields(message: Message, draw: random.Random, *, listed: bool) -> Iterator[str]:
    """Yield the tokens of the fields of a message, which come in any order."""
    fields = list(message.ListFields())
    draw.shuffle(fields)
    for field, value in fields:
        is_message = field.type == FieldDescriptor.TYPE_MESSAGE
        is_single = isinstance(value, (str, bytes, int, float, Message))
        values: list[object] = [value] if is_single else list(value)
        while values:
            may_be_list = not is_single and (listed or not is_message) and draw.random() < 0.3
            number = draw.randint(1, len(values)) if may_be_list else 1
            piece, values = values[:number], values[number:]
            yield field.name
            if not is_message or draw.random() < 0.5:
                yield ":"
            yield from (
                _listed(field, piece, draw, listed=listed)
                if may_be_list
                else _value(field, piece[0], draw, listed=listed)
            )
            if draw.random() < 0.3:
                yield draw.choice(",;")
        if draw.random() < 0.05:
            yield from draw.choice(_NEWS).split()


def _listed(field: FieldDescriptor, values: Sequence[object], draw: random.Random, *, listed: bool) -> Iterator[str]:
    for number, value in enumerate(values):
        yield "," if number else "["
        yield from _value(field, value, draw, listed=listed)
    yield "]"


def _value(field: FieldDescriptor, value: object, draw: random.Random, *, listed: bool) -> Iterator[str]:
    match value:
        case Message():
            opening, closing = draw.choice(("{}", "<>"))
            yield from (opening, *_fields(value, draw, listed=listed), closing)
        case bool():
            yield draw.choice(("true", "True", "t", "1") if value else ("false", "False", "f", "0"))
        case bytes() | str():
            data = value.encode() if isinstance(value, str) else value
            cut = draw.randint(0, len(data))
            yield from (_quoted(piece, draw) for piece in (data[:cut], data[cut:]) if piece or not data)
        case int() if field.enum_type is not None:
            yield draw.choice((field.enum_type.values_by_number[value].name, str(value)))
        case int():
            yield draw.choice((str(value), hex(value), f"0{value:o}") if value > 0 else (str(value),))
        case _:
            yield str(value)


def _quoted(data: bytes, draw: random.Random) -> str:
    mark = draw.choice("\"'")
    escapes = (lambda byte: f"\\{byte:03o}", lambda byte: f"\\x{byte:02x}")
    written = (
        chr(byte) if chr(byte).isalnum() and byte < 128 and draw.random() < 0.9 else draw.choice(escapes)(byte)
        for byte in data
    )
    return f"{mark}{''.join(written)}{mark}"
