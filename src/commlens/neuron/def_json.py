"""The collective part of ``def.json``, the description of one subgraph in a NEFF.

Its keys stand at the top level of the file. One description of the reader has them in an object ``CCInfo`` instead; a
key that is missing at the top is looked for there.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias, TypeGuard

from commlens.errors import CommlensError, InputError
from commlens.hlo import read_file
from commlens.neuron.cc_fields import (
    RANK_WORLD_SIZE,
    REPLICA_GROUPS,
    SRC_TARGET_PAIRS,
    CCFields,
    WrongValueError,
    checked_count,
    checked_groups,
    checked_pairs,
    shown,
)

NESTED: Final = "CCInfo"
MOST_LISTS: Final = 1 << 21
"""A list takes a hundred bytes of memory and two of a file, which may be compressed to nothing."""
MOST_VALUES: Final = 1 << 24

_KEYS: Final = (REPLICA_GROUPS, SRC_TARGET_PAIRS, RANK_WORLD_SIZE, NESTED)
_TEXT_SHOWN: Final = 40

_FAULTS: Final = MappingProxyType(
    {
        "Expecting value": "a number, text, list, object, true, false or null should stand here",
        "Expecting property name enclosed in double quotes": "a key in double quotes should stand here",
        "Expecting ':' delimiter": "a colon should stand here, behind the key",
        "Expecting ',' delimiter": "a comma or the end of the list or object should stand here",
        "Illegal trailing comma before end of object": "the comma here should have a key behind it",
        "Illegal trailing comma before end of array": "the comma here should have a value behind it",
        "Extra data": "nothing should stand here, behind the end of the object",
        "Unterminated string": "the text that begins here should end with a double quote",
        "Invalid control character": "a control character should be written as an escape here",
        "Invalid \\escape": "a backslash should begin a known escape here",
        "Invalid \\uXXXX escape": "four hexadecimal digits should stand here, behind \\u",
    }
)
"""What the standard library calls faults of the grammar of JSON -> what would be right."""

DefJson: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | Mapping[str, object]
"""A def.json: the path of a file, its content (a string that begins with a brace, or bytes), or the parsed object."""


def def_json_fields(source: DefJson) -> CCFields:
    """Read what a def.json says of its workers.

    Args:
        source: a path, a content, or the parsed object.

    Raises:
        InputError: the file cannot be read, is no JSON object, or a key holds something else than it should.

    Example:
        >>> def_json_fields('{"replica_groups": [[[0, 1]]], "#rank_world_size": 2}')[:3]
        ((((0, 1),),), None, 2)
        >>> def_json_fields({"CCInfo": {"src_target_pairs": [[[0, 1]]]}}).src_target_pairs
        (((0, 1),),)
    """
    if isinstance(source, Mapping):
        return fields_of(source, "<def.json>")
    if isinstance(source, (bytes, bytearray, memoryview)):
        return content_fields(bytes(source), "<bytes>")
    if isinstance(source, str) and source.removeprefix("\ufeff").lstrip().startswith("{"):
        return content_fields(source.encode("utf-8", "surrogatepass"), "<text>")
    return content_fields(read_file(source), str(source))


def content_fields(content: bytes, name: str) -> CCFields:
    """Read the content of a def.json; ``name`` is what to call it in messages. Raises InputError."""
    return fields_of(json_object(content, name), name)


def fields_of(definition: Mapping[str, object], name: str) -> CCFields:
    """Take the collective keys from a parsed def.json; ``name`` is what to call it in messages.

    Raises:
        InputError: a key holds something else than it should, or comes twice.
    """
    try:
        _check_keys(definition)
        nested = _nested(definition)
        groups = _value(REPLICA_GROUPS, definition, nested)
        pairs = _value(SRC_TARGET_PAIRS, definition, nested)
        explicit = _value(RANK_WORLD_SIZE, definition, nested)
        return CCFields(
            None if groups is None else checked_groups(groups),
            None if pairs is None else checked_pairs(pairs),
            None if explicit is None else checked_count(explicit, RANK_WORLD_SIZE, "a number of workers"),
        )
    except WrongValueError as error:
        reason = f"{error.expected} found {in_words_of_json(error.found)}"
        raise InputError(reason, path=name) from error
    except CommlensError as error:
        raise InputError(str(error), path=name) from error


def json_object(content: bytes, name: str) -> Mapping[str, object]:
    """Parse a JSON object.

    Args:
        content: JSON in UTF-8 (also with a mark at its beginning), UTF-16 or UTF-32.
        name: what to call it in messages.

    Raises:
        InputError: it is something else.
    """
    if content.count(b"[") + content.count(b"{") > MOST_LISTS or content.count(b",") > MOST_VALUES:
        reason = (
            f"expected at most {MOST_LISTS} lists and objects and {MOST_VALUES} values in a description, found more"
        )
        raise InputError(reason, path=name)
    try:
        value: object = json.loads(content, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        reason = f"expected a JSON object: {_in_words(error.msg)}"
        raise InputError(reason, path=name, line=error.lineno, column=error.colno) from error
    except UnicodeDecodeError as error:
        raise _wrong_characters(error, name) from error
    except RecursionError as error:
        reason = "expected a JSON object, found one that is nested too deep to be read"
        raise InputError(reason, path=name) from error
    except ValueError as error:
        digits = sys.get_int_max_str_digits()
        reason = f"expected a JSON object with numbers of at most {digits:,} digits, found a longer one"
        raise InputError(reason, path=name) from error
    if not is_object(value):
        reason = f"expected a JSON object, found {in_words_of_json(value)}"
        raise InputError(reason, path=name)
    return value


def is_json_object(head: bytes) -> bool:
    r"""Whether a content begins like a JSON object, in any of the encodings that JSON is written in.

    Example:
        >>> is_json_object(b' {"a": 1}'), is_json_object('{"a": 1}'.encode("utf-16")), is_json_object(b"HloModule m")
        (True, True, False)
    """
    text = head.decode(json.detect_encoding(head), "ignore")
    return text.removeprefix("\ufeff").lstrip().startswith("{")


def is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    """Whether a parsed JSON value is an object; the keys of those are strings."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether a parsed JSON value is a list."""
    return isinstance(value, list)


def in_words_of_json(value: object) -> str:
    """Return a short form of a parsed JSON value, as JSON would have it.

    Example:
        >>> [in_words_of_json(value) for value in (None, True, float("nan"), "8", [1, 2], {}, 10**50)]
        ['null', 'true', 'NaN', '"8"', 'a list of 2', 'an object', 'a number of 167 bits']
    """
    if value is None or isinstance(value, (bool, float, str)):
        text = json.dumps(value)
        return text if len(text) <= _TEXT_SHOWN else f"{text[:_TEXT_SHOWN]}..."
    return shown(value)


class _Repeated(dict[str, object]):
    """An object in which some keys come twice, of which it holds the last values."""

    __slots__ = ("repeated",)

    def __init__(self, pairs: Sequence[tuple[str, object]]) -> None:
        super().__init__(pairs)
        counts = Counter(name for name, _ in pairs)
        self.repeated = frozenset(name for name, count in counts.items() if count > 1)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Repeated(pairs)


def _check_keys(definition: Mapping[str, object]) -> None:
    """Refuse an object of which readers would take one or the other value."""
    twice = definition.repeated.intersection(_KEYS) if isinstance(definition, _Repeated) else ()
    for key in sorted(twice):
        msg = f"expected the key {key} once, found it twice"
        raise CommlensError(msg)


def _in_words(fault: str) -> str:
    """Say what the grammar of JSON would have at a place, from the standard library's name of the fault."""
    known = _FAULTS.get(fault.removesuffix(" at").removesuffix(" starting"))
    return f"{fault[0].lower()}{fault[1:].removesuffix(' at')} here" if known is None else known


def _wrong_characters(error: UnicodeDecodeError, name: str) -> InputError:
    before = error.object[: error.start].decode(error.encoding, "replace").removeprefix("\ufeff")
    found = f"found the byte {error.object[error.start]:#04x}, which {error.encoding} does not have there"
    reason = f"expected a JSON object in UTF-8, UTF-16 or UTF-32, {found}"
    column = len(before) - (before.rfind("\n") + 1) + 1
    return InputError(reason, path=name, line=before.count("\n") + 1, column=column)


def _nested(definition: Mapping[str, object]) -> Mapping[str, object]:
    nested = definition.get(NESTED)
    if nested is None:
        return {}
    if not is_object(nested):
        expected = f"expected {NESTED} to be an object,"
        raise WrongValueError(expected, nested)
    _check_keys(nested)
    return nested


def _value(key: str, *objects: Mapping[str, object]) -> object:
    """Return the value of a key in the first object that has one; null says as little as nothing."""
    return next((value for each in objects if (value := each.get(key)) is not None), None)
