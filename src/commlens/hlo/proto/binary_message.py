"""Raw messages in the binary wire format."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from commlens.hlo.proto.decoding import decode
from commlens.hlo.proto.raw_message import RawMessage, Word
from commlens.hlo.proto.wire import bytes_field, number_field, read_messages, read_spans, varint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.hlo.proto.decoding import MessageT
    from commlens.hlo.proto.descriptors import FieldDescriptor, MessageDescriptor
    from commlens.hlo.proto.raw_message import Span, Value


@final
class BinaryMessage(RawMessage):
    """A binary message.

    Args:
        data: the message.
        kind: what it is.

    Example:
        >>> from commlens.hlo.proto import descriptors
        >>> message = BinaryMessage(bytes.fromhex("0a0178 c205016b"), descriptors.INSTRUCTION)
        >>> message.with_fields({descriptors.CHANNEL_ID: [5]}).data.hex(" ")
        '0a 01 78 d0 01 05 c2 05 01 6b'
    """

    __slots__ = ()

    def empty(self, kind: MessageDescriptor) -> BinaryMessage:
        """Return a message without fields."""
        return BinaryMessage(b"", kind)

    def decoded(self, message: type[MessageT]) -> MessageT:
        """Decode the message.

        Raises:
            UnreadableError: it is none of that class.
        """
        return decode(message, self.data)

    def _with_data(self, data: bytes, kind: MessageDescriptor) -> BinaryMessage:
        return BinaryMessage(data, kind)

    def _read_spans(self) -> list[Span]:
        return read_spans(self.data)

    def _name(self, span: Span) -> str:
        return self.kind.names.get(span[0]) or f"field {span[0]}"

    def _occurrences(self, field: FieldDescriptor) -> list[Span]:
        """Return where a field stands; a value of another kind in its place is none, as protobuf sees it."""
        data, wire_types = self.data, field.wire_types
        return [span for span in self.spans if span[0] == field.number and data[span[1]] & 7 in wire_types]

    def _messages(self, field: FieldDescriptor) -> Iterator[Span]:
        return read_messages(self.data, field.number)

    def _merged(self, values: Sequence[bytes]) -> bytes:
        return b"".join(values)

    def _written(self, field: FieldDescriptor, values: Sequence[Value]) -> bytes:
        if field.packed:
            return bytes_field(field.number, b"".join([varint(value) for value in values if isinstance(value, int)]))
        return b"".join([_occurrence(field.number, value) for value in values])

    def _rewritten(self, span: Span, field: FieldDescriptor, values: Sequence[Value]) -> bytes:
        return self._written(field, values)

    def _gap(self, place: int) -> bytes:
        return b""


def _occurrence(number: int, value: Value) -> bytes:
    if isinstance(value, int):
        return number_field(number, value)
    if isinstance(value, Word):
        return number_field(number, value.number)
    return bytes_field(number, value if isinstance(value, bytes) else value.data)
