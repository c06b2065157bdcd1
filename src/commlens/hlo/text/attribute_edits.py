"""Setting attributes of an instruction in place: which bytes change, on any spelling that the reader takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from commlens.errors import GrammarError
from commlens.hlo.edits import EditError
from commlens.hlo.formatting import as_text
from commlens.hlo.opcodes import base_opcode
from commlens.hlo.text.attribute_maps import read_entries
from commlens.hlo.text.splices import Splice
from commlens.hlo.text.tokens import quoted, unquoted
from commlens.hlo.text.values import read_integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlens.hlo.edit_plan import AttributeChange
    from commlens.hlo.text.attribute_maps import MapEntry
    from commlens.hlo.text.line import Line, Span

LAST_ATTRIBUTES: Final = ("control-predecessors", "metadata", "backend_config")
"""Attributes that XLA prints behind the frontend attributes."""

_SEPARATOR: Final = re.compile(rb"\s*,\s*")


def attribute_splices(line: Line, source: bytes, change: AttributeChange) -> list[Splice]:
    r"""Find which bytes change when attributes of an instruction do.

    Args:
        line: the instruction, taken apart without fault.
        source: the bytes it was taken apart from, comments included.
        change: what changes.

    Returns:
        Splices with offsets in ``source``, in ascending order, at most one at a place; none where all is so already.

    Raises:
        EditError: the frontend attributes are no map that can be added to.

    Example:
        >>> from commlens.hlo.edit_plan import AttributeChange
        >>> from commlens.hlo.text.line import parse_line
        >>> text = b'x = f32[8] all-reduce(a), to_apply=add, metadata={op_name="f"}'
        >>> attribute_splices(parse_line(text), text, AttributeChange(3, {"stream_id": "0"}))[1]
        Splice(start=38, end=38, replacement=b', frontend_attributes={stream_id="0"}')
    """
    splices: dict[tuple[int, int], bytes] = {}
    found = [*_channel(line, change.channel_id), *_frontend_attributes(line, source, change.frontend_attributes)]
    for start, end, replacement in found:
        splices[start, end] = splices.get((start, end), b"") + replacement
    return [Splice(start, end, replacement) for (start, end), replacement in sorted(splices.items())]


def _channel(line: Line, channel_id: int | None) -> Iterator[Splice]:
    if channel_id is None:
        return
    span = line.attributes.get("channel_id")
    if span is None and base_opcode(line.opcode)[0] == "all-reduce":
        span = line.attributes.get("all_reduce_id")
    if span is None:
        behind = line.operand_span.end + 1
        yield Splice(behind, behind, b", channel_id=%d" % channel_id)
    elif read_integer(line.text[slice(*span)]) != channel_id:
        yield Splice(*span, b"%d" % channel_id)


def _frontend_attributes(line: Line, source: bytes, values: Mapping[str, str]) -> Iterator[Splice]:
    if not values:
        return
    pairs = {key: _pair(key, value) for key, value in sorted((key.encode(), value) for key, value in values.items())}
    span = line.attributes.get("frontend_attributes")
    if span is None:
        place = _place_of_map(line)
        yield Splice(place, place, b", frontend_attributes={%s}" % b",".join(pairs.values()))
        return
    entries = map_entries(line, span)
    known = {entry.key: entry.value for entry in entries}  # of a key that stands there twice, the last counts
    missing = {key: pair for key, pair in pairs.items() if key not in known}
    for key in pairs.keys() & known.keys():
        if _in_double_quotes(line.text[slice(*known[key])]) != values[as_text(key)]:
            yield Splice(*known[key], quoted(values[as_text(key)]))
    if entries:
        yield from _additions(entries, missing, _manner(source, entries))
    elif missing:
        yield Splice(span.start + 1, span.start + 1, b",".join(missing.values()))


def _pair(key: bytes, value: str) -> bytes:
    return key + b"=" + quoted(value)


def _additions(entries: list[MapEntry], missing: Mapping[bytes, bytes], separator: bytes) -> Iterator[Splice]:
    """Put pairs into a map that is not empty: each before the first greater key, else at the end."""
    for key, pair in missing.items():
        greater = next((entry.start for entry in entries if entry.key > key), None)
        if greater is None:
            yield Splice(entries[-1].value[1], entries[-1].value[1], separator + pair)
        else:
            yield Splice(greater, greater, pair + separator)


def _in_double_quotes(value: bytes) -> str | None:
    """Return what a string in double quotes says; None for every other value."""
    return unquoted(value) if value[:1] == b'"' else None


def _place_of_map(line: Line) -> int:
    """Return where frontend attributes go that an instruction lacks: before what XLA prints behind them, else last."""
    followers = [comma_before(line, key) for key in LAST_ATTRIBUTES if key in line.attributes]
    return min(followers) if followers else last_end(line)


def comma_before(line: Line, key: str) -> int:
    """Return where the comma stands before an attribute."""
    key_and_sign = line.text[: line.attributes[key].start].rstrip()
    return len(key_and_sign[: -len(key) - 1].rstrip()) - 1


def last_end(line: Line) -> int:
    """Return where the last attribute ends, or the operand list where there are no attributes."""
    return max((span.end for span in line.attributes.values()), default=line.operand_span.end + 1)


def map_entries(line: Line, span: Span) -> list[MapEntry]:
    """Return the entries of a map in the order in which they stand.

    Raises:
        EditError: what stands there is no map.
    """
    try:
        return read_entries(line.text, *span)
    except GrammarError as error:
        msg = f"the frontend attributes of {line.name} cannot be edited: {error}"
        raise EditError(msg) from error


def _manner(source: bytes, entries: list[MapEntry]) -> bytes:
    """Return how a map writes its commas: as between its first two entries, comments left out."""
    if len(entries) < 2:
        return b","
    between = source[entries[0].value[1] : entries[1].start]
    if _SEPARATOR.fullmatch(between):
        return between
    return b", " if b", " in between else b","
