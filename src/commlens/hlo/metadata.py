"""Metadata for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from commlens.hlo.model import Format

_NUMBERS: Final = ("_line", "_column", "_id")
"""How the names of those fields end that hold numbers, which a proto encodes."""


def metadata_in_words(form: Format, name: str, value: bytes) -> str:
    r"""Return a field of metadata for people, alike for text and proto.

    Args:
        form: format of the module.
        name: name of the field.
        value: the field as :meth:`Instruction.metadata_fields <commlens.hlo.Instruction.metadata_fields>` has it.

    Example:
        >>> metadata_in_words("text", "source_line", b"source_line=300")
        '300'
        >>> metadata_in_words("proto", "source_line", b"\xac\x02")
        '300'
    """
    if form == "text":
        written = value.removeprefix(f"{name}=".encode()).strip(b'"')
    elif name.endswith(_NUMBERS):
        return str(sum((byte & 127) << 7 * place for place, byte in enumerate(value)))
    else:
        written = value
    return written.decode(errors="backslashreplace")
