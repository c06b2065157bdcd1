"""What stands in the header of a module: its name and attributes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from commlens.hlo.formatting import as_text
from commlens.hlo.text.line import parse_attributes
from commlens.hlo.text.tokens import blank_comments, unbalanced
from commlens.hlo.text.values import read_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.hlo.text.line import Span

_HEADER: Final = re.compile(rb"\bHloModule\s+(?P<name>\"[^\"]*\"|[^\s,]+)")

_COUNTS: Final = ("replica_count", "num_partitions")


@dataclass(frozen=True, slots=True)
class Header:
    """A module's header.

    Attributes:
        name: the module's name; None where there is no header.
        attributes: the attributes as written, by name.
        fault: where they cannot be read any further, an offset in the header, and why.
    """

    name: str | None = None
    attributes: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    fault: tuple[int, str] | None = None

    def counts(self, replicas: int | None, partitions: int | None) -> tuple[int | None, int | None]:
        """Return replica and partition count: as the user states them, else as written, where one missing is 1.

        Example:
            >>> Header("m", {"num_partitions": b"4"}).counts(None, None), Header("m").counts(None, None)
            ((1, 4), (None, None))
        """
        written = [self.attributes.get(key) for key in _COUNTS]
        stated = [None if value is None else _count(value) for value in written]
        for own, value, count in zip((replicas, partitions), written, stated, strict=True):
            if own is None and value is not None and count is None:
                return replicas, partitions  # what it says is no count, so nobody knows the other one either
        known = any(count is not None for count in (replicas, partitions, *stated))
        return (replicas or stated[0] or 1, partitions or stated[1] or 1) if known else (None, None)


def read_header(text: bytes) -> Header:
    """Take a module's header apart.

    Args:
        text: the header, from ``HloModule`` or before; empty where there is none.

    Example:
        >>> read_header(b"HloModule jit_f, is_scheduled=true, num_partitions=4").attributes["num_partitions"]
        b'4'
        >>> read_header(b"HloModule jit_f, input_output_alias={, num_partitions=4").fault
        (36, "expected brackets and strings that are closed, found '{, num_partitions=4'")
    """
    text = blank_comments(text)
    match = _HEADER.search(text)
    if match is None:
        return Header()
    spans, error = parse_attributes(text, match.end())
    attributes = {key: text[start:end] for key, (start, end) in spans.items()}
    fault = _no_count(text, spans) if error is None else (error.position, str(error))
    return Header(as_text(match["name"].strip(b'"')), attributes, _half(text, match.end()) or fault)


def _count(value: bytes) -> int | None:
    """Return a number of devices; None where the value is no whole number, or none of anything."""
    number = read_integer(value)
    return None if number is None or number < 1 else number


def _no_count(text: bytes, spans: Mapping[str, Span]) -> tuple[int, str] | None:
    """Return the first count that is none, as a fault."""
    for key, (start, end) in spans.items():
        if key in _COUNTS and _count(text[start:end]) is None:
            found = as_text(text[start:end][:20])
            return start, f"expected {key} to be a whole number of at least 1, found {found!r}"
    return None


def _half(text: bytes, start: int) -> tuple[int, str] | None:
    """Return the first bracket or string without its other half, as a fault: all behind it is in doubt."""
    position = unbalanced(text, start, len(text))
    if position is None:
        return None
    return position, f"expected brackets and strings that are closed, found {as_text(text[position : position + 20])!r}"
