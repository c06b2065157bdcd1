"""Raw messages in protobuf's text form: comments, separators and indentation included.

Source: protobuf.dev, "Text Format Language Specification".
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

from google.protobuf import text_format

from commlens.errors import GrammarError
from commlens.hlo.model import UnreadableError
from commlens.hlo.proto.descriptors import NO_MESSAGE
from commlens.hlo.proto.raw_message import RawMessage, Word
from commlens.hlo.proto.text_fields import BLANKS, blanks_before, for_parser, parser_fault, read_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.hlo.proto.decoding import MessageT
    from commlens.hlo.proto.descriptors import FieldDescriptor, MessageDescriptor
    from commlens.hlo.proto.raw_message import Span, Value

_SPECIAL: Final = re.compile(rb"[^\x20-\x7e]|[\\\"]")
_ESCAPES: Final = MappingProxyType({b"\n": rb"\n", b"\t": rb"\t", b"\r": rb"\r", b"\\": rb"\\", b'"': rb"\""})
_NOTHING: Final = re.compile(BLANKS)
_OPENING: Final = (b"{", b"<", b"[")
_STEP: Final = b"  "
"""How much further the fields of a message are indented than the message."""


@final
class TextMessage(RawMessage):
    r"""A message in the text form.

    A field begins with the white space and the comments before it.

    Args:
        data: the text of the message, without brackets around it.
        kind: what it is.

    Example:
        >>> from commlens.hlo.proto import descriptors
        >>> message = TextMessage(b'\n  name: "x"\n  id: 7\n', descriptors.INSTRUCTION)
        >>> print(message.with_fields({descriptors.CHANNEL_ID: [5]}).data.decode())
        <BLANKLINE>
          name: "x"
          channel_id: 5
          id: 7
        <BLANKLINE>
    """

    __slots__ = ()

    def empty(self, kind: MessageDescriptor) -> TextMessage:
        """Return a message without fields, written as if nothing stood around it."""
        return TextMessage(b"\n", kind)

    def decoded(self, message: type[MessageT]) -> MessageT:
        """Decode the message.

        Raises:
            UnreadableError: it is none of that class.
        """
        text = for_parser(self.data)
        try:
            return text_format.Parse(text, message(), allow_unknown_field=True)
        except text_format.ParseError as error:
            msg = f"the text form of a {message.__name__} cannot be read {parser_fault(text, error)}"
            raise UnreadableError(msg) from error

    def _with_data(self, data: bytes, kind: MessageDescriptor) -> TextMessage:
        return TextMessage(data, kind)

    def _read_spans(self) -> list[Span]:
        return list(_spans(self.data, self.kind))

    def _name(self, span: Span) -> str:
        known = self.kind.names.get(span[0])
        return known or next(read_fields(self.data[span[1] : span[4]])).name.decode("utf-8", "replace")

    def _occurrences(self, field: FieldDescriptor) -> list[Span]:
        """Return the spans of a field; an empty list is none.

        Raises:
            GrammarError: one of them is a list of messages: :func:`separate_fields` was not asked.
        """
        found = [span for span in self.spans if span[0] == field.number]
        if field.kind is NO_MESSAGE:
            return found
        messages: list[Span] = []
        for span in found:
            start, stop = span[2:4]
            if self.data[start - 1 : start] != b"[":
                messages.append(span)
            elif not _NOTHING.fullmatch(self.data, start, stop):
                msg = f"expected each of the messages {field.name} to have a field of its own, found a list"
                raise GrammarError(msg, position=start)
        return messages

    def _messages(self, field: FieldDescriptor) -> list[Span]:
        return self._occurrences(field)

    def _merged(self, values: Sequence[bytes]) -> bytes:
        return b" ".join(values)

    def _written(self, field: FieldDescriptor, values: Sequence[Value]) -> bytes:
        lead = self._lead()
        return b"".join([_field(lead, field, value) for value in values])

    def _rewritten(self, span: Span, field: FieldDescriptor, values: Sequence[Value]) -> bytes:
        """Write occurrences in the place of one, the first of them between what stands around its value."""
        data, (_, begin, start, end, behind) = self.data, span
        if isinstance(values[0], RawMessage):
            value = _moved(values[0].data, _lead_of(data[begin:behind]))
        else:
            value = _scalar(values[0])
        rest = self._written(field, values[1:])
        return b"".join((data[begin:start], value, data[end:behind], rest, self._gap(behind) if rest else b""))

    def _gap(self, place: int) -> bytes:
        return b"" if self.data[place : place + 1].isspace() else b" "

    def _lead(self) -> bytes:
        """Return what to write before a new field."""
        if self.spans:
            _, begin, _, _, end = self.spans[-1]
            return _lead_of(self.data[begin:end]) or b" "
        _, line_break, indentation = self.data.rpartition(b"\n")
        return line_break + indentation + _STEP if line_break else b" "


def _field(lead: bytes, field: FieldDescriptor, value: Value) -> bytes:
    """Write a field behind some white space."""
    if isinstance(value, RawMessage):
        return b"".join((lead, field.name.encode(), b" {", _moved(value.data, lead), b"}"))
    return b"".join((lead, field.name.encode(), b": ", _scalar(value)))


def _scalar(value: int | bytes | Word) -> bytes:
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, Word):
        return value.name.encode()
    return b'"' + _SPECIAL.sub(lambda match: _ESCAPES.get(match[0]) or b"\\%03o" % match[0][0], value) + b'"'


def _moved(content: bytes, lead: bytes) -> bytes:
    """Indent the content of a message for a place.

    Args:
        content: the content, whose last line ends right before the closing bracket.
        lead: the white space before the field it goes into; without a line break the content goes into one line.
    """
    before, line_break, closing = content.rpartition(b"\n")
    if not line_break or closing.strip():
        return content
    if b"\n" in lead:
        return content.replace(b"\n" + closing, b"\n" + lead.rpartition(b"\n")[2])
    return content if b"#" in before else b" ".join(map(bytes.strip, content.split(b"\n")))


def _lead_of(field: bytes) -> bytes:
    """Return the white space right before a field, from its last line break on."""
    _, line_break, indentation = field[: blanks_before(field)].rpartition(b"\n")
    return line_break + indentation if not indentation.strip() else b" "


def _spans(data: bytes, kind: MessageDescriptor) -> Iterator[Span]:
    """Yield where the fields of a message stand; the value of a message or a list is what stands in its brackets."""
    begin = 0
    for name, start, stop, end in read_fields(data):
        bracketed = data[start : start + 1] in _OPENING
        yield kind.numbers.get(name.decode("latin-1"), 0), begin, start + bracketed, stop - bracketed, end
        begin = end
