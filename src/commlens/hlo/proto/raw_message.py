"""A raw message: its source cut into fields and not decoded, so that an edit keeps all that it is not about.

A binary message and one in the text form are edited by the same code: it names fields, and each notation knows how to
find and write them. What a field says is read by protobuf's own classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Self

    from commlens.hlo.proto.decoding import MessageT
    from commlens.hlo.proto.descriptors import FieldDescriptor, MessageDescriptor


class Word(NamedTuple):
    """A value of an enumeration.

    Attributes:
        number: how a binary message says it.
        name: how a text says it.
    """

    number: int
    name: str


Value: TypeAlias = "int | bytes | Word | RawMessage"
"""What can be written into a field: a number or truth value, a text, a word, a message of the same notation."""


Span: TypeAlias = tuple[int, int, int, int, int]
"""Where a field stands in a message: its number (0: a name that is not known), then offsets: where it begins, where its
value starts and ends, where the field ends. A bare tuple, because a file has as many as it has fields.
"""

_Splice: TypeAlias = tuple[int, int, bytes]
"""Where something goes and what comes instead; what is only put in begins where it ends."""


class RawMessage(ABC):
    """A message in its source form: a value, so every method that changes something returns a new one.

    Args:
        data: the message without what encloses it.
        kind: what it is.
    """

    __slots__ = ("_spans", "data", "kind")

    def __init__(self, data: bytes, kind: MessageDescriptor) -> None:
        self.data = data
        self.kind = kind
        self._spans: list[Span] | None = None

    @property
    def spans(self) -> list[Span]:
        """Where the fields stand, in order.

        Raises:
            CommlensError: the bytes are no message.
        """
        if self._spans is None:
            self._spans = self._read_spans()
        return self._spans

    @abstractmethod
    def empty(self, kind: MessageDescriptor) -> Self:
        """Return a message without fields, in the same notation."""

    @abstractmethod
    def decoded(self, message: type[MessageT]) -> MessageT:
        """Decode the message.

        Raises:
            UnreadableError: it is none of that class.
        """

    @abstractmethod
    def _with_data(self, data: bytes, kind: MessageDescriptor) -> Self:
        """Return another message in the same notation."""

    @abstractmethod
    def _read_spans(self) -> list[Span]:
        """Find the fields."""

    @abstractmethod
    def _name(self, span: Span) -> str:
        """Return the name of a field."""

    @abstractmethod
    def _occurrences(self, field: FieldDescriptor) -> list[Span]:
        """Return where a field stands, in order."""

    @abstractmethod
    def _messages(self, field: FieldDescriptor) -> Iterable[Span]:
        """Return where a field stands that has messages in it, of which there may be very many."""

    @abstractmethod
    def _merged(self, values: Sequence[bytes]) -> bytes:
        """Put messages together as protobuf does: the fields of one behind those of the other."""

    @abstractmethod
    def _written(self, field: FieldDescriptor, values: Sequence[Value]) -> bytes:
        """Write occurrences of a field."""

    @abstractmethod
    def _rewritten(self, span: Span, field: FieldDescriptor, values: Sequence[Value]) -> bytes:
        """Write occurrences of a field, at least one, in the place of another."""

    @abstractmethod
    def _gap(self, place: int) -> bytes:
        """Return what must stand between a new field, or one before a removed one, and what stands at a place."""

    def messages(self, field: FieldDescriptor) -> list[Self]:
        """Return the messages in the occurrences of a field, in order."""
        return [self._with_data(self.data[span[2] : span[3]], field.kind) for span in self._occurrences(field)]

    def messages_at(self, field: FieldDescriptor, indexes: Collection[int]) -> dict[int, Self]:
        """Return the messages in some occurrences of a field, by index."""
        return {
            index: self._with_data(self.data[span[2] : span[3]], field.kind)
            for index, span in enumerate(self._messages(field))
            if index in indexes
        }

    def message(self, field: FieldDescriptor) -> Self | None:
        """Return the message in a field that should occur once, its occurrences put together; None without any."""
        values = [self.data[span[2] : span[3]] for span in self._occurrences(field)]
        return self._with_data(self._merged(values), field.kind) if values else None

    def value(self, field: FieldDescriptor) -> bytes | None:
        """Return the last value of a field that should occur once, as it is written; None without any."""
        spans = self._occurrences(field)
        return self.data[spans[-1][2] : spans[-1][3]] if spans else None

    def fields(self) -> dict[str, bytes]:
        """Return the values as they are written, by name of the field; one without a name is called by its number."""
        found: dict[str, list[bytes]] = {}
        for span in self.spans:
            found.setdefault(self._name(span), []).append(self.data[span[2] : span[3]])
        return {name: b"".join(values) for name, values in found.items()}

    def with_fields(self, changes: Mapping[FieldDescriptor, Sequence[Value]]) -> Self:
        """Return the message with new occurrences of some fields in the place of all old ones.

        Args:
            changes: by field, what to write; nothing removes the field. Where there was none, it comes before the first
                field with a higher number, else last.
        """
        spans = self.spans
        splices: list[_Splice] = []
        for field in sorted(changes, key=_number):
            values, own = changes[field], self._occurrences(field)
            if own:
                splices.append(self._replacement(own[0], field, values))
                splices += [self._replacement(span, field, ()) for span in own[1:]]
            elif values:
                place = next((span[1] for span in spans if span[0] > field.number), spans[-1][4] if spans else 0)
                splices.append(self._insertion(place, field, values))
        splices.sort(key=_place)
        return self._spliced(splices)

    def with_replaced(self, field: FieldDescriptor, values: Mapping[int, Sequence[Value]]) -> Self:
        """Return the message with some of the messages in a field replaced.

        Args:
            field: the field.
            values: by index of the occurrence, what to write in its place: one, several, none.
        """
        return self._spliced(
            self._replacement(span, field, values[index])
            for index, span in enumerate(self._messages(field))
            if index in values
        )

    def with_inserted(self, field: FieldDescriptor, index: int, value: Value) -> Self:
        """Return the message with one more occurrence of a field.

        Args:
            field: the field.
            index: which occurrence it becomes.
            value: what to write.
        """
        own = self._occurrences(field)
        if not own:
            return self.with_fields({field: [value]})
        return self._spliced([self._insertion(own[index][1] if index < len(own) else own[-1][4], field, [value])])

    def without(self, names: Collection[str]) -> Self:
        """Return the message without fields of these names, as :meth:`fields` has them."""
        gone = (span for span in self.spans if self._name(span) in names)
        return self._spliced((span[1], span[4], self._gap(span[4])) for span in gone)

    def _replacement(self, span: Span, field: FieldDescriptor, values: Sequence[Value]) -> _Splice:
        written = self._rewritten(span, field, values) if values else self._gap(span[4])
        return span[1], span[4], written

    def _insertion(self, place: int, field: FieldDescriptor, values: Sequence[Value]) -> _Splice:
        return place, place, self._written(field, values) + self._gap(place)

    def _spliced(self, splices: Iterable[_Splice]) -> Self:
        """Return the message with other bytes in some places, in order."""
        data, pieces, done = self.data, list[bytes](), 0
        for begin, end, written in splices:
            pieces += (data[done:begin], written)
            done = end
        pieces.append(data[done:])
        return self._with_data(b"".join(pieces), self.kind)


def _number(field: FieldDescriptor) -> int:
    return field.number


def _place(splice: _Splice) -> tuple[int, int]:
    return splice[:2]
