"""What stands in the header of a module: its name and attributes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from commlens.hlo.text.lexis import as_text, blank_comments
from commlens.hlo.text.line import parse_attributes
from commlens.hlo.text.values import read_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADER: Final = re.compile(rb"\bHloModule\s+(?P<name>\"[^\"]*\"|[^\s,]+)")


@dataclass(frozen=True, slots=True)
class Header:
    """A module's header.

    Attributes:
        name: the module's name; None where there is no header.
        attributes: the attributes as written, by name.
    """

    name: str | None = None
    attributes: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    def counts(self, replicas: int | None, partitions: int | None) -> tuple[int | None, int | None]:
        """Return replica and partition count: as the user states them, else as written, where one missing is 1.

        Example:
            >>> Header("m", {"num_partitions": b"4"}).counts(None, None), Header("m").counts(None, None)
            ((1, 4), (None, None))
        """
        stated = [read_integer(self.attributes.get(key, b"")) for key in ("replica_count", "num_partitions")]
        known = any(count is not None for count in (replicas, partitions, *stated))
        return (replicas or stated[0] or 1, partitions or stated[1] or 1) if known else (None, None)


def read_header(text: bytes) -> Header:
    """Take a module's header apart.

    Args:
        text: the header, from ``HloModule`` or before; empty where there is none.

    Example:
        >>> read_header(b"HloModule jit_f, is_scheduled=true, num_partitions=4").attributes["num_partitions"]
        b'4'
    """
    text = blank_comments(text)
    match = _HEADER.search(text)
    if match is None:
        return Header()
    spans, _ = parse_attributes(text, match.end())
    return Header(as_text(match["name"].strip(b'"')), {key: text[start:end] for key, (start, end) in spans.items()})
