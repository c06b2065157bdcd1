"""The outside of protobuf messages: which fields there are and where, without decoding any.

Source: the wire format that protobuf.dev documents under "Encoding".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.errors import CommlensError

if TYPE_CHECKING:
    from collections.abc import Iterator

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5
_MAX_VARINT: Final = 10


class WireError(CommlensError):
    """Bytes are no protobuf message, or one that was cut."""


class Field(NamedTuple):
    """One field of a message.

    Attributes:
        number: the field's number.
        wire_type: how its value is written.
        start: offset of the value; of :data:`BYTES`, behind the length.
        end: offset behind the value.
    """

    number: int
    wire_type: int
    start: int
    end: int


def read_fields(data: bytes, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message that fills a range of bytes, in order.

    Args:
        data: any bytes.
        start: where the message starts.
        end: where it ends.

    Raises:
        WireError: what stands there is no field, or the range ends inside one.

    Example:
        >>> [field.number for field in read_fields(bytes([0x0A, 2, 104, 105, 0x28, 7]), 0, 6)]
        [1, 5]
    """
    position = start
    while position < end:
        tag, value = _varint(data, position, end)
        number, wire_type = tag >> 3, tag & 7
        if number == 0:
            msg = f"byte {position} starts no field of a protobuf message"
            raise WireError(msg)
        if wire_type == BYTES:
            length, value = _varint(data, value, end)
            behind = value + length
        elif wire_type == VARINT:
            _, behind = _varint(data, value, end)
        elif wire_type in (FIXED64, FIXED32):
            behind = value + (8 if wire_type == FIXED64 else 4)
        else:
            msg = f"byte {position} starts no field of a protobuf message"
            raise WireError(msg)
        if behind > end:
            msg = (
                f"the data end inside field {number}, which starts at byte {position}: {behind - end} bytes are missing"
            )
            raise WireError(msg)
        yield Field(number, wire_type, value, behind)
        position = behind


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Read a number; return it and the offset behind it."""
    number = 0
    for count, byte in enumerate(data[position : min(end, position + _MAX_VARINT)]):
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return number, position + count + 1
    msg = (
        f"the data end inside a number at byte {position}"
        if end - position < _MAX_VARINT
        else f"byte {position} starts no number"
    )
    raise WireError(msg)
