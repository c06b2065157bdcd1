"""Where a module stands in a content, and that content with another module there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from commlens.hlo.proto import descriptors
from commlens.hlo.proto.binary_message import BinaryMessage
from commlens.hlo.proto.decoding import decode
from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloModuleOutline
from commlens.hlo.proto.wire import Field, bytes_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.hlo.proto.raw_message import RawMessage
    from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloModuleConfigProto


class FoundModule(NamedTuple):
    """A module in a content.

    Attributes:
        source: the content.
        outline: the module's outline.
        config: the configuration beside it, where there is one.
        location: where it stands.
    """

    source: bytes
    outline: HloModuleOutline
    config: HloModuleConfigProto | None
    location: ModuleLocation

    @property
    def raw(self) -> RawMessage:
        """The module as it is written."""
        return self.location.module(self.source)

    def with_raw(self, module: RawMessage) -> FoundModule:
        """Return what is found when another module stands in the place of this one; all around it stays.

        Args:
            module: what stands there then.
        """
        return self.location.with_module(self, module)


class ModuleLocation(Protocol):
    """Where a module stands in a content: a notation's answers to what :class:`FoundModule` asks."""

    __slots__ = ()

    def module(self, source: bytes) -> RawMessage:
        """Return the module as it is written."""
        ...

    def instruction(self, source: bytes, encoded: Sequence[bytes], number: int, position: int) -> RawMessage:
        """Return an instruction as it is written.

        Args:
            source: the content.
            encoded: the instructions of its computation, encoded.
            number: position of its computation in the file.
            position: its position in the computation.
        """
        ...

    def with_module(self, found: FoundModule, module: RawMessage) -> FoundModule:
        """Return what is found when another module stands here."""
        ...


@dataclass(frozen=True, slots=True)
class BinaryLocation:
    """Where a module stands in a binary content.

    Attributes:
        fields: the fields around it, the outermost first, with offsets in the content; none where it is the whole.
    """

    fields: tuple[Field, ...] = ()

    def outline(self, source: bytes) -> HloModuleOutline:
        """Decode the module's outline.

        Raises:
            UnreadableError: what stands here is no module.
        """
        return decode(HloModuleOutline, self._data(source))

    def module(self, source: bytes) -> BinaryMessage:
        """Return the module as it is written."""
        return BinaryMessage(self._data(source), descriptors.MODULE)

    def _data(self, source: bytes) -> bytes:
        return source[self.fields[-1].start : self.fields[-1].end] if self.fields else source

    def instruction(self, source: bytes, encoded: Sequence[bytes], number: int, position: int) -> BinaryMessage:
        """Return an instruction as it is written."""
        return BinaryMessage(encoded[position], descriptors.INSTRUCTION)

    def with_module(self, found: FoundModule, module: RawMessage) -> FoundModule:
        """Return what is found when another module stands here; the lengths around it are written anew."""
        source, content = found.source, module.data
        outline = decode(HloModuleOutline, content)
        inner: list[Field] = []
        around = [(0, len(source)), *((field.start, field.end) for field in self.fields)]
        for field, (start, end) in reversed(list(zip(self.fields, around, strict=False))):
            written, outset = bytes_field(field.number, content), field.outset - start
            value = outset + len(written) - len(content)
            inner = [
                Field(field.number, field.wire_type, outset, value, outset + len(written)),
                *(_moved(each, value) for each in inner),
            ]
            content = b"".join((source[start : field.outset], written, source[field.end : end]))
        return FoundModule(content, outline, found.config, BinaryLocation(tuple(inner)))


def _moved(field: Field, by: int) -> Field:
    return Field(field.number, field.wire_type, field.outset + by, field.start + by, field.end + by)
