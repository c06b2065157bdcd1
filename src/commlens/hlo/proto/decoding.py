"""Decoding messages of the schema, and the values in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from google.protobuf.message import DecodeError, Message

from commlens.hlo.formatting import as_text
from commlens.hlo.model import UnreadableError
from commlens.hlo.shapes import ELEMENT_TYPE_NUMBERS, UNBOUNDED, Shape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.hlo.proto.schema.commlens_hlo_pb2 import FrontendAttributes, ShapeProto

MessageT = TypeVar("MessageT", bound=Message)

_NO_BOUND: Final = -(2**63)
"""How a proto writes the size of a dimension without a bound: ``Shape::kUnboundedSize``, xla/shape.h."""


def decode(kind: type[MessageT], data: bytes) -> MessageT:
    """Decode a message.

    Args:
        kind: its class.
        data: its bytes.

    Raises:
        UnreadableError: the bytes are no message of that kind.
    """
    try:
        return kind.FromString(data)
    except DecodeError as error:
        msg = f"expected a {kind.__name__}, found {len(data)} bytes that are none"
        raise UnreadableError(msg) from error


def decode_or_empty(kind: type[MessageT], data: bytes) -> MessageT:
    """Decode a message that only adds something; an empty one where it cannot be decoded."""
    try:
        return decode(kind, data)
    except UnreadableError:
        return kind()


def shape_of(message: ShapeProto) -> Shape:
    """Turn a ShapeProto into a shape. Its depth is bounded, because the decoder takes at most 100 levels.

    Raises:
        UnreadableError: its element type is missing or unknown, or a size is negative.
    """
    element_type = ELEMENT_TYPE_NUMBERS.get(message.element_type)
    if element_type is None:
        msg = f"expected the number of an element type of XLA, found {message.element_type}"
        raise UnreadableError(msg)
    if element_type == "invalid":
        msg = "expected a shape with an element type, found one without"
        raise UnreadableError(msg)
    sizes = tuple(UNBOUNDED if size == _NO_BOUND else size for size in message.dimensions)
    if any(size < 0 and size != UNBOUNDED for size in sizes) or -1 in message.dimensions:
        msg = f"expected sizes of at least 0, found {list(message.dimensions)}"
        raise UnreadableError(msg)
    marked = tuple(message.is_dynamic_dimension)[: len(sizes)]
    dynamic = marked + (False,) * (len(sizes) - len(marked)) if any(marked) else ()
    return Shape(element_type, sizes, dynamic, tuple(shape_of(part) for part in message.tuple_shapes))


def attributes_of(message: FrontendAttributes) -> dict[str, str]:
    """Return frontend attributes by key; of a repeated key the last value counts."""
    return {as_text(entry.key): as_text(entry.value) for entry in message.map}


def braced(numbers: Iterable[int]) -> str:
    """Write numbers as the text does: ``{0,0,1,1}``."""
    return f"{{{','.join(map(str, numbers))}}}"
