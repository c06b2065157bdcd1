"""Reading the values of attributes: numbers, lists, maps, metadata, the names of called computations."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.hlo.formatting import as_text
from commlens.hlo.text.tokens import NAME, STRING, closing, split_list, unquoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.hlo.model import Role

_INTEGER: Final = re.compile(rb"\s*-?\d{1,19}\s*", re.ASCII)
_KEY: Final = re.compile(rb"\s*(?P<key>[A-Za-z_][\w.\-]*)\s*=\s*")
_METADATA: Final = re.compile(
    rb"(?<!\w)(?P<key>\w++)=\s*+(?:(?P<string>" + STRING + rb')|(?P<cut>".*)|(?P<bare>[^\s}",]+))', re.DOTALL
)
_FIELD: Final = re.compile(rb"(?<!\w)(?P<key>\w++)\s*+=\s*+")
_FIELD_VALUE: Final = re.compile(STRING + rb"|[^\s{}\",]+")
_CALLEE: Final = re.compile(rb"%?(" + NAME + rb")")
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

BEFORE_OPERANDS: Final = rb"\s*+(?:\(|/[*/])"
"""What stands behind an opcode: its parenthesis, or a comment, behind which one may stand."""
COMMUNICATES: Final = re.compile(
    rb"\b(?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast"
    rb"|cross-replica-sum)(?:-start)?"
    + BEFORE_OPERANDS
    + rb"|\b(?:send|recv|async-start|custom-call(?:-start)?)"
    + BEFORE_OPERANDS
)
"""Whether an instruction may communicate; the opcode decides."""

OF_INTEREST: Final = re.compile(
    COMMUNICATES.pattern + rb"|\b(?:while|conditional|call|fusion)(?:-start)?" + BEFORE_OPERANDS
)
"""Whether an instruction must be looked at at all: it may communicate, or call what does."""

CALL_ATTRIBUTES: Final = (
    "condition",
    "body",
    "branch_computations",
    "true_computation",
    "false_computation",
    "to_apply",
    "calls",
    "called_computations",
)
"""Attributes that name computations, in the order in which their callees are listed."""

MODELED_ATTRIBUTES: Final = frozenset(CALL_ATTRIBUTES) | {
    *("all_reduce_id", "channel_id", "constrain_layout", "control-predecessors", "custom_call_target", "dimensions"),
    *("direction", "frontend_attributes", "index", "is_host_transfer", "kind", "metadata", "replica_group_ids"),
    *("replica_groups", "sharding", "source_target_pairs", "use_global_device_ids"),
}
"""Attributes that a member of an instruction or the meaning of a collective speaks of."""

_ROLES: Final[Mapping[str, Role]] = MappingProxyType(
    {"call": "call", "fusion": "fusion", "async-start": "async", "custom-call": "custom-call"}
)


def read_integer(value: bytes) -> int | None:
    """Return a whole number of 64 bits, None where the value is none.

    Example:
        >>> read_integer(b" 7 "), read_integer(b"9223372036854775808"), read_integer(b"x")
        (7, None, None)
    """
    if _INTEGER.fullmatch(value) is None:
        return None
    number = int(value)
    return number if INT64_MIN <= number <= INT64_MAX else None


def read_integers(value: bytes) -> tuple[int, ...] | None:
    """Return the numbers of ``{1,2}``, None where the value is no such list.

    Example:
        >>> read_integers(b"{0, 1}"), read_integers(b"{}"), read_integers(b"{0,}")
        ((0, 1), (), None)
    """
    value = value.strip()
    if value[:1] != b"{" or value[-1:] != b"}":
        return None
    inner = value[1:-1]
    if not inner.strip():
        return ()
    numbers = [read_integer(part) for part in inner.split(b",")]
    return None if None in numbers else tuple(number for number in numbers if number is not None)


def read_map(value: bytes) -> dict[str, str]:
    """Return a map ``{k="v",k2={...}}``: strings unquoted, brace blocks and bare words as raw text, last key wins.

    Example:
        >>> read_map(b'{a="x,y",p={{0,1},{1,2}},c={"n":[1]}}')
        {'a': 'x,y', 'p': '{{0,1},{1,2}}', 'c': '{"n":[1]}'}
    """
    opened = value.find(b"{")
    if opened < 0:
        return {}
    end = closing(value, opened)
    found: dict[str, str] = {}
    for start, stop in split_list(value, opened + 1, len(value) if end is None else end):
        key = _KEY.match(value, start, stop)
        if key is not None:
            raw = value[key.end() : stop].strip()
            text = unquoted(raw)
            found[as_text(key["key"])] = as_text(raw) if text is None else text
    return found


def read_metadata(value: bytes) -> dict[str, str]:
    """Return the fields of ``{op_name="a/b" source_line=9}``; a cut string is kept as far as it goes.

    Example:
        >>> read_metadata(b'{op_name="f/psum" source_line=9}')
        {'op_name': 'f/psum', 'source_line': '9'}
    """
    fields: dict[str, str] = {}
    for match in _METADATA.finditer(value, 1):
        raw = match["string"] or match["cut"] or match["bare"]
        text = unquoted(raw + b'"' if match["cut"] else raw)
        fields.setdefault(as_text(match["key"]), as_text(raw) if text is None else text)
    return fields


def metadata_spans(value: bytes) -> dict[str, tuple[int, int]]:
    """Return where the fields of ``{op_name="a/b" source_line=9}`` stand, ``key=value``, by key.

    Example:
        >>> metadata_spans(b'{op_name="a b" profile_type={1,2}}')
        {'op_name': (1, 14), 'profile_type': (15, 33)}
    """
    spans: dict[str, tuple[int, int]] = {}
    position = 1
    while (field := _FIELD.search(value, position)) is not None:
        position = field.end()
        if value[position : position + 1] == b"{":
            closed = closing(value, position)
            position = len(value) if closed is None else closed + 1
        elif (match := _FIELD_VALUE.match(value, position)) is not None:
            position = match.end()
        spans.setdefault(as_text(field["key"]), (field.start(), position))
    return spans


def callees(opcode: str, attribute: str, value: bytes) -> list[tuple[Role, str]]:
    """Return the roles and names of the computations that one attribute names.

    Example:
        >>> callees("while", "body", b"%b.1"), callees("conditional", "branch_computations", b"{%x, %y}")
        ([('body', 'b.1')], [('branch', 'x'), ('branch', 'y')])
    """
    role: Role
    match attribute:
        case "condition" | "body":
            role = "condition" if attribute == "condition" else "body"
        case "branch_computations" | "true_computation" | "false_computation":
            role = "branch"
        case _:
            role = _ROLES.get(opcode if opcode == "async-start" else opcode.removesuffix("-start"), "apply")
    return [(role, as_text(match[1])) for match in _CALLEE.finditer(value)]
