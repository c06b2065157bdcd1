"""What XLA would refuse of an instruction that can be taken apart: values and layouts that break their grammar.

A line that is edited must be one that was understood, so it is held against this before. Attributes that nobody knows
must have a value, no more. Groups, pairs, dimensions and flags have readers of their own, which say what is wrong.
Source: ``HloParserImpl::ParseAttributeHelper``, ``ParseMetadata`` and ``ParseLayout``, xla/hlo/parser/hlo_parser.cc.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from commlens.errors import GrammarError
from commlens.hlo.formatting import as_text
from commlens.hlo.opcodes import WITHOUT_OPERANDS
from commlens.hlo.text.attribute_maps import WHOLE_STRING, read_entries
from commlens.hlo.text.damage import text_behind_value
from commlens.hlo.text.tokens import NAME, closing
from commlens.hlo.text.values import CALL_ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commlens.hlo.text.line import Line


class _Form(NamedTuple):
    """What the value of an attribute looks like.

    Attributes:
        pattern: all of the value.
        what: what to call it.
    """

    pattern: re.Pattern[bytes]
    what: str


_NAMED: Final = rb"%?" + NAME
_NAMES: Final = rb"\{\s*+" + _NAMED + rb"(?>\s*+,\s*+" + _NAMED + rb")*+\s*+\}"
_BLOCK: Final = rb"\{.*\}"
_INTEGER: Final = rb"-?\d++"
_STRING_FIELDS: Final = ("op_type", "op_name", "source_file", "deduplicated_name", "scheduling_name")
_NUMBER_FIELDS: Final = (
    *("source_line", "source_end_line", "source_column", "source_end_column", "stack_frame_id"),
    *("size_of_generated_code_in_bytes", "size_of_memory_working_set_in_bytes"),
)
_PRINTED_FIELDS: Final = (
    *("op_type", "op_name", "source_file", "source_line", "source_end_line", "source_column", "source_end_column"),
    *("deduplicated_name", "scheduling_name", "stack_frame_id"),
)
_PRINTED_STRING: Final = WHOLE_STRING.partition(b"|'")[0]


_STRING: Final = _Form(re.compile(WHOLE_STRING, re.DOTALL), "a quoted string")
_NUMBER: Final = _Form(re.compile(_INTEGER, re.DOTALL), "an integer")
_COMPUTATION: Final = _Form(re.compile(_NAMED, re.DOTALL), "the name of a computation")
_COMPUTATIONS: Final = _Form(re.compile(_NAMED + rb"|" + _NAMES, re.DOTALL), "names of computations")
_FLAG: Final = _Form(re.compile(rb"true|false", re.DOTALL), "true or false")
_SOMETHING: Final = _Form(re.compile(rb".+", re.DOTALL), "a value")

_FORMS: Final[Mapping[str, _Form]] = MappingProxyType(
    {
        **dict.fromkeys(CALL_ATTRIBUTES, _COMPUTATION),
        **dict.fromkeys(("branch_computations", "called_computations", "calls"), _COMPUTATIONS),
        **dict.fromkeys(("channel_id", "all_reduce_id"), _NUMBER),
        **dict.fromkeys(("constrain_layout", "is_host_transfer", "use_global_device_ids"), _FLAG),
        "control-predecessors": _Form(re.compile(_NAMES, re.DOTALL), "names of instructions such as {a,b}"),
        "custom_call_target": _STRING,
        "backend_config": _Form(
            re.compile(_BLOCK + rb"|" + WHOLE_STRING, re.DOTALL), "a quoted string or a block in braces"
        ),
        "metadata": _Form(re.compile(_BLOCK, re.DOTALL), 'fields such as {op_name="f"}'),
        "sharding": _Form(re.compile(_BLOCK, re.DOTALL), "a sharding such as {replicated}"),
    }
)
_FIELD_FORMS: Final[Mapping[str, _Form]] = MappingProxyType(
    {
        **dict.fromkeys(_STRING_FIELDS, _STRING),
        **dict.fromkeys(_NUMBER_FIELDS, _NUMBER),
        "profile_type": _Form(re.compile(_BLOCK, re.DOTALL), "numbers in braces"),
    }
)
_FIELDS: Final = _Form(re.compile(b"", re.DOTALL), 'fields such as op_name="f"')
_FIELD: Final = re.compile(
    rb"\s*+(?P<key>\w++)=\s*+(?P<value>"
    + WHOLE_STRING
    + rb"|"
    + _INTEGER
    + rb"|true|false|\{[^{}]*+\})\s*+(?P<comma>,?)"
)

METADATA: Final = rb"\{%s\}" % b"".join(
    rb"(?>%s=%s(?: |(?=\})))?+" % (field.encode(), rb"\d++" if field in _NUMBER_FIELDS else _PRINTED_STRING)
    for field in _PRINTED_FIELDS
)
"""Metadata as XLA prints them, without fields that are rare."""

_LIST: Final = rb"(?>-?\d++\s*+(?>,\s*+-?\d++\s*+)*+)?+"
_TILE: Final = rb"(?>(?:-?\d++|\*)\s*+(?>,\s*+(?:-?\d++|\*)\s*+)*+)?+"
_LEVELS: Final = rb"[DCS+~,\s]*+"
_NUMBERED: Final = rb"-?\d++\s*+"
_TYPED: Final = rb"(?>\w++\s*+)?+"
_SPLIT: Final = rb"-?\d++\s*+:\s*+" + _LIST


def _part(sign: bytes, inside: bytes, *, times: bytes = b"?+") -> bytes:
    """Return the pattern of a part of a layout: a sign and, perhaps, something in parentheses."""
    word = rb"(?!\w)" if sign.isalpha() else b""
    return rb"(?>" + sign + word + rb"\s*+(?>\(\s*+" + inside + rb"\)\s*+)" + times + rb")?+"


LAYOUT: Final = b"".join(
    (
        *(rb"\{\s*+", _LIST, rb"(?>:\s*+", _part(b"D", _LEVELS), _part(b"T", _TILE, times=b"*+")),
        *(_part(b"L", _NUMBERED), _part(rb"\#", _TYPED), _part(rb"\*", _TYPED)),
        *(_part(b"E", _NUMBERED), _part(b"S", _NUMBERED), _part(b"SC", _SPLIT, times=b"*+")),
        *(_part(b"P", rb"[^{}()]*+"), _part(b"M", _NUMBERED), rb")?+\}"),
    )
)
"""The layout of an array as XLA reads it: order of the dimensions, then tiles, memory space and the like.

What is named by a letter alone has the value that it has where the letter is missing.
"""
_LAYOUT: Final = re.compile(LAYOUT)
_ARRAY: Final = re.compile(rb"\b[a-z]\w*+\s*+\[(?P<dims>[^\]\[]*+)\]\s*+(?>(?P<layout>\{[^{}]*+\}))?+")
_BRACE: Final = ord("{")
_EXCERPT: Final = 20


def grammar_fault(line: Line) -> GrammarError | None:
    """Return the first fault of an instruction's values and layouts, None where XLA would read them all.

    Args:
        line: the instruction, taken apart without fault.

    Example:
        >>> from commlens.hlo.text.line import parse_line
        >>> str(grammar_fault(parse_line(b"x = f32[8]{0} all-reduce(a), to_apply=")))
        'expected the name of a computation as the value of to_apply, found nothing'
        >>> str(grammar_fault(parse_line(b"x = f32[8]{zz} all-reduce(a)")))
        "expected a layout such as {1,0} or {1,0:T(8,128)}, found '{zz}'"
    """
    fault = text_behind_value(line) or layout_fault(line.text, *line.shape_span)
    if fault is None and line.opcode not in WITHOUT_OPERANDS:
        fault = layout_fault(line.text, *line.operand_span, of_result=False)
    return fault or next(_value_faults(line), None)


def layout_fault(text: bytes, start: int, end: int, *, of_result: bool = True) -> GrammarError | None:
    """Return the first fault of the layouts in a part of a text, None where there is none.

    Args:
        text: the text.
        start: where the part starts.
        end: where it ends.
        of_result: whether each must have an entry for every dimension: beside an operand, nobody asks.
    """
    for array in _ARRAY.finditer(text, start, end):
        layout = array["layout"]
        if layout is None:
            continue
        rank = array["dims"].count(b",") + 1 if array["dims"].strip() else 0
        entries = layout.partition(b":")[0].strip(b"{} \t\r\n")
        if _LAYOUT.fullmatch(layout) is None:
            what = "a layout such as {1,0} or {1,0:T(8,128)}"
        elif of_result and (entries.count(b",") + 1 if entries else 0) != rank:
            what = f"a layout that orders {rank} dimension{'s' if rank != 1 else ''}"
        else:
            continue
        return GrammarError(f"expected {what}, found {as_text(layout)!r}", position=array.start("layout"))
    return None


def _value_faults(line: Line) -> Iterator[GrammarError]:
    text = line.text
    for key, (start, end) in line.attributes.items():
        if key == "frontend_attributes":
            try:
                read_entries(text, start, end)
            except GrammarError as error:
                why = f"frontend_attributes cannot be read: {error}"
                yield GrammarError(why, position=error.position)
            continue
        form = _FORMS.get(key, _SOMETHING)
        if form.pattern.fullmatch(text, start, end) is None or (
            text[start] == _BRACE and closing(text, start) != end - 1
        ):
            yield _unlike(form, key, text, start, end)
        elif key == "metadata":
            yield from _metadata_faults(text, start + 1, end - 1)


def _metadata_faults(text: bytes, position: int, end: int) -> Iterator[GrammarError]:
    """Yield the faults of what stands in the braces of metadata, until one after which nothing can be said."""
    known: set[bytes] = set()
    comma = b""
    while text[position:end].strip() or comma:
        field = _FIELD.match(text, position, end)
        if field is None:
            yield _unlike(_FIELDS, "metadata", text, position, end)
            return
        form = _FIELD_FORMS.get(as_text(field["key"]), _SOMETHING)
        if form.pattern.fullmatch(text, *field.span("value")) is None:
            yield _unlike(form, f"{as_text(field['key'])} of metadata", text, *field.span("value"))
        if field["key"] in known:
            why = f"expected the field {as_text(field['key'])} of metadata once, found it again"
            yield GrammarError(why, position=field.start("key"))
        known.add(field["key"])
        position, comma = field.end(), field["comma"]


def _unlike(form: _Form, what: str, text: bytes, start: int, end: int) -> GrammarError:
    found = text[start:end].strip()
    position = start + (text[start:end].find(found) if found else 0)
    excerpt = repr(as_text(found[:_EXCERPT])) if found else "nothing"
    why = f"expected {form.what} as the value of {what}, found {excerpt}"
    return GrammarError(why, position=position)
