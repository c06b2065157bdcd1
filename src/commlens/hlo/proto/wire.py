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
GROUP: Final = 3
FIXED32: Final = 5
_GROUP_END: Final = 4
_DEEPEST: Final = 100
"""As many groups inside each other as protobuf's own readers take."""

_MAX_VARINT: Final = 10
_LONG: Final = 0x80
"""From here on a byte says that the number goes on."""
_ALL_BITS: Final = 2**64 - 1
_FIRST_TAG: Final = 1 << 3
_SHORT: Final = tuple(bytes((number,)) for number in range(_LONG))


class WireError(CommlensError):
    """Bytes are no protobuf message, or one that was cut."""


class Field(NamedTuple):
    """One field of a message.

    Attributes:
        number: the field's number.
        wire_type: how its value is written.
        outset: offset of the field itself.
        start: offset of the value; of :data:`BYTES`, behind the length.
        end: offset behind the value; of :data:`GROUP`, behind the field that closes it.
    """

    number: int
    wire_type: int
    outset: int
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
        tag, value = (data[position], position + 1) if data[position] < _LONG else _varint(data, position, end)
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
        elif wire_type == GROUP:
            behind = _behind_group(data, number, value, end)
        else:
            msg = f"byte {position} starts no field of a protobuf message"
            raise WireError(msg)
        if behind > end:
            msg = (
                f"the data end inside field {number}, which starts at byte {position}: {behind - end} bytes are missing"
            )
            raise WireError(msg)
        yield Field(number, wire_type, position, value, behind)
        position = behind


def _behind_group(data: bytes, number: int, start: int, end: int) -> int:
    """Return the offset behind the field that closes a group; nobody writes groups any more, but they are read over.

    Args:
        data: the message.
        number: the group's field number.
        start: where its content starts.
        end: where the message ends.

    Raises:
        WireError: nothing closes it, or too many stand inside each other.
    """
    opened, position = [number], start
    while position < end and len(opened) <= _DEEPEST:
        tag, value = _varint(data, position, end)
        if tag & 7 == _GROUP_END:
            if opened.pop() != tag >> 3:
                break
            if not opened:
                return value
            position = value
        elif tag & 7 == GROUP:
            opened.append(tag >> 3)
            position = value
        else:
            position = next(read_fields(data, position, end)).end
    msg = f"the group of protobuf fields that starts before byte {start} is not closed"
    raise WireError(msg)


def read_spans(data: bytes) -> list[tuple[int, int, int, int, int]]:
    """Return where the fields of a message stand; a quick :func:`read_fields` of the whole.

    Args:
        data: the message.

    Returns:
        For each field its number and offsets: where it begins, where its value starts and ends, where the field ends.

    Raises:
        WireError: the bytes are no message.

    Example:
        >>> read_spans(bytes([0x28, 7, 0x0A, 2, 104, 105]))
        [(5, 0, 1, 2, 2), (1, 2, 4, 6, 6)]
    """
    spans: list[tuple[int, int, int, int, int]] = []
    position, end = 0, len(data)
    while position < end:
        begin = position
        tag, start = (data[begin], begin + 1) if data[begin] < _LONG else _varint(data, begin, end)
        wire_type, byte = tag & 7, data[start] if start < end else _LONG
        if tag < _FIRST_TAG:
            next(read_fields(data, begin, end))  # says what is wrong
        if wire_type == BYTES:
            length, start = (byte, start + 1) if byte < _LONG else _varint(data, start, end)
            position = start + length
        elif wire_type == VARINT:
            position = start + 1 if byte < _LONG else _varint(data, start, end)[1]
        else:
            position = next(read_fields(data, begin, end)).end
        if position > end:
            next(read_fields(data, begin, end))
        spans.append((tag >> 3, begin, start, position, position))
    return spans


def read_messages(data: bytes, number: int) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield what :func:`read_spans` returns, of one field that has messages or texts in it, without keeping the rest.

    Args:
        data: the message.
        number: the field's number.

    Raises:
        WireError: the bytes are no message.

    Example:
        >>> list(read_messages(bytes([0x28, 7, 0x0A, 2, 104, 105]), 1))
        [(1, 2, 4, 6, 6)]
    """
    wanted = number << 3 | BYTES
    position, end = 0, len(data)
    while position < end:
        begin = position
        tag, start = (data[begin], begin + 1) if data[begin] < _LONG else _varint(data, begin, end)
        if tag & 7 != BYTES or tag < _FIRST_TAG:
            position = next(read_fields(data, begin, end)).end
            continue
        length, start = _varint(data, start, end)
        position = start + length
        if position > end:
            next(read_fields(data, begin, end))  # says what is wrong
        if tag == wanted:
            yield number, begin, start, position, position


def varint(number: int) -> bytes:
    """Write a number; a negative one as its two's complement of 64 bits.

    Example:
        >>> varint(300).hex(), len(varint(-1))
        ('ac02', 10)
    """
    if 0 <= number < _LONG:
        return _SHORT[number]
    number &= _ALL_BITS
    written = bytearray()
    while number >= _LONG:
        written.append(number & 0x7F | _LONG)
        number >>= 7
    written.append(number)
    return bytes(written)


def number_field(number: int, value: int) -> bytes:
    """Write a field with a number in it."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    """Write a field with a text, a message or packed numbers in it."""
    return b"".join((varint(number << 3 | BYTES), varint(len(value)), value))


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Read a number; return it and the offset behind it."""
    if position < end and data[position] < _LONG:
        return data[position], position + 1
    number = shift = 0
    for place in range(position, min(end, position + _MAX_VARINT)):
        byte = data[place]
        if byte < _LONG:
            return number | byte << shift, place + 1
        number |= (byte & 0x7F) << shift
        shift += 7
    msg = (
        f"the data end inside a number at byte {position}"
        if end - position < _MAX_VARINT
        else f"byte {position} starts no number"
    )
    raise WireError(msg)
