"""The stack frame tables that stand between a module's header and its computations since 2025.

Source: ``HloParserImpl::ParseStackFrameIndex``, xla/hlo/parser/hlo_parser.cc; ``StackFrameIndexProto`` in hlo.proto.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.hlo.text.tokens import STRING, TABLES, blank_comments, unquoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.hlo.text.computation import TextComputation

_TABLE: Final = re.compile(STRING + rb"|\".*|(?<![\w.\-])(" + TABLES + rb")", re.DOTALL)
_NAMED: Final = re.compile(rb"(?<!\w)(\d{1,9})\s*+(" + STRING + rb")")
_FIELDS: Final = re.compile(rb"(?<!\w)(\d{1,9})\s*+\{([^{}]*+)\}")
_FRAME_DIGITS: Final = 10
_FIELD: Final = re.compile(rb"(?<!\w)(\w++)=\s*+(\d{1,9})")


@dataclass(frozen=True, slots=True)
class StackFrames:
    r"""Where every stack frame of a module is in the program.

    Attributes:
        locations: number of a frame -> number of its file location.
        lines: number of a file location -> number of its file, and the line.
        files: number of a file -> its name.

    Example:
        >>> frames = read_frames(b'FileNames\n1 "t.py"\n\nFileLocations\n1 {file_name_id=1 line=9}\n\n'
        ...                      b'StackFrames\n1 {file_location_id=1}\n')
        >>> frames.source(1)
        't.py:9'
    """

    locations: Mapping[int, int]
    lines: Mapping[int, tuple[int, int]]
    files: Mapping[int, str]

    def source(self, frame: int) -> str | None:
        """Return ``"file:line"`` of a frame, None where the tables do not lead to one."""
        file, line = self.lines.get(self.locations.get(frame, 0), (0, 0))
        name = self.files.get(file)
        return None if name is None else f"{name}:{line}"


def read_frames(text: bytes) -> StackFrames:
    """Read the tables between a module's header and its first computation; absent tables are empty."""
    if b"/*" in text or b"//" in text:
        text = blank_comments(text)
    tables: dict[bytes, bytes] = {}
    heads = [match for match in _TABLE.finditer(text) if match[1]]
    for number, head in enumerate(heads):
        behind = heads[number + 1].start() if number + 1 < len(heads) else len(text)
        tables[head[1]] = text[head.end() : behind]
    files = {int(number): unquoted(name) or "" for number, name in _NAMED.findall(tables.get(b"FileNames", b""))}
    locations = {
        number: (fields.get("file_name_id", 0), fields.get("line", 0))
        for number, fields in _rows(tables.get(b"FileLocations", b""))
    }
    frames = {number: fields.get("file_location_id", 0) for number, fields in _rows(tables.get(b"StackFrames", b""))}
    return StackFrames(MappingProxyType(frames), MappingProxyType(locations), MappingProxyType(files))


def _rows(table: bytes) -> list[tuple[int, dict[str, int]]]:
    return [
        (int(number), {key.decode(): int(value) for key, value in _FIELD.findall(fields)})
        for number, fields in _FIELDS.findall(table)
    ]


def source_of(metadata: Mapping[str, str], computation: TextComputation) -> str | None:
    """Return ``"file:line"`` of an instruction's metadata, None where it states none."""
    file = metadata.get("source_file")
    if file is not None:
        return f"{file}:{metadata.get('source_line', '0')}"
    frame = metadata.get("stack_frame_id", "")
    return computation.module.frames.source(int(frame)) if frame.isdecimal() and len(frame) < _FRAME_DIGITS else None
