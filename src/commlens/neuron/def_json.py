"""The collective part of ``def.json``, the description of one subgraph in a NEFF.

Its keys stand at the top level of the file. One description of the reader has them in an object ``CCInfo`` instead; a
key that is missing at the top is looked for there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, TypeGuard

from commlens.errors import CommlensError, InputError
from commlens.hlo import read_file
from commlens.neuron.cc_fields import (
    RANK_WORLD_SIZE,
    REPLICA_GROUPS,
    SRC_TARGET_PAIRS,
    CCFields,
    checked_count,
    checked_groups,
    checked_pairs,
)

NESTED: Final = "CCInfo"
MOST_LISTS: Final = 1 << 21
"""A list takes a hundred bytes of memory and two of a file, which may be compressed to nothing."""
MOST_VALUES: Final = 1 << 24

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
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return content_fields(source.encode("utf-8", "surrogatepass"), "<text>")
    return content_fields(read_file(source), str(source))


def content_fields(content: bytes, name: str) -> CCFields:
    """Read the content of a def.json; ``name`` is what to call it in messages. Raises InputError."""
    return fields_of(json_object(content, name), name)


def fields_of(definition: Mapping[str, object], name: str) -> CCFields:
    """Take the collective keys from a parsed def.json; ``name`` is what to call it in messages.

    Raises:
        InputError: a key holds something else than it should.
    """
    try:
        nested = _nested(definition)
        groups = _value(REPLICA_GROUPS, definition, nested)
        pairs = _value(SRC_TARGET_PAIRS, definition, nested)
        explicit = _value(RANK_WORLD_SIZE, definition, nested)
        return CCFields(
            None if groups is None else checked_groups(groups),
            None if pairs is None else checked_pairs(pairs),
            None if explicit is None else checked_count(explicit, RANK_WORLD_SIZE, "a number of workers"),
        )
    except InputError:
        raise
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
        value: object = json.loads(content)
    except json.JSONDecodeError as error:
        reason = f"expected a JSON object: {error.msg[0].lower()}{error.msg[1:]}"
        raise InputError(reason, path=name, line=error.lineno, column=error.colno) from error
    except RecursionError as error:
        reason = "expected a JSON object, found one that is nested too deep to be read"
        raise InputError(reason, path=name) from error
    except ValueError as error:  # no such characters, or a number of thousands of digits
        reason = f"expected a JSON object: {error}"
        raise InputError(reason, path=name) from error
    if not is_object(value):
        reason = f"expected a JSON object, found a JSON {type(value).__name__}"
        raise InputError(reason, path=name)
    return value


def is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    """Whether a parsed JSON value is an object; the keys of those are strings."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether a parsed JSON value is a list."""
    return isinstance(value, list)


def _nested(definition: Mapping[str, object]) -> Mapping[str, object]:
    nested = definition.get(NESTED)
    if nested is None:
        return {}
    if not is_object(nested):
        msg = f"expected {NESTED} to be an object, found {type(nested).__name__}"
        raise CommlensError(msg)
    return nested


def _value(key: str, *objects: Mapping[str, object]) -> object:
    """Return the value of a key in the first object that has one; null says as little as nothing."""
    return next((value for each in objects if (value := each.get(key)) is not None), None)
