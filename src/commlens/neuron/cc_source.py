"""Reading CC info from whatever states it: a NEFF, a def.json, or a module that is yet to be compiled."""

from __future__ import annotations

import io
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal, TypeAlias

from commlens.errors import InputError
from commlens.hlo import MAX_BYTES, compression_of, load_inputs, read_file, read_stream
from commlens.neuron.cc_info import CCInfo
from commlens.neuron.def_json import content_fields, is_json_object
from commlens.neuron.neff import Neff, looks_like_archive, looks_like_neff, read_neff

if TYPE_CHECKING:
    from commlens.hlo import Module

CCKind: TypeAlias = Literal["neff", "def.json", "module"]
"""What CC info was read from."""

STANDARD_INPUT: Final = "-"
_GLANCE: Final = 4096
_NO_MODULE: Final = "expected HLO text or a protobuf"


@dataclass(frozen=True, slots=True, eq=False)
class CCSource:
    """CC info, and what it was read from.

    Attributes:
        path: the input as the user named it.
        kind: what it is.
        info: its CC info.
        neff: the NEFF, where it is one.
        module: the module, where it is one.
    """

    path: str
    kind: CCKind
    info: CCInfo
    neff: Neff | None = None
    module: Module | None = None


def cc_kind(head: bytes) -> CCKind:
    r"""Say what a content holds, as far as its beginning shows; names of files lie.

    An archive alone is a NEFF without its header.

    Example:
        >>> cc_kind(b'\n{"replica_groups": [[[0, 1]]]}'), cc_kind(b"HloModule m\n"), cc_kind(bytes((2, *bytes(7))))
        ('def.json', 'module', 'neff')
    """
    if looks_like_neff(head) or looks_like_archive(head):
        return "neff"
    return "def.json" if is_json_object(head) else "module"


def read_cc_source(
    path: str,
    *,
    stdin: IO[bytes] | None = None,
    max_bytes: int = MAX_BYTES,
    replicas: int | None = None,
    partitions: int | None = None,
    validate_hash: bool = False,
) -> CCSource:
    """Read the CC info of a file.

    Args:
        path: a .neff, a def.json or a module in any form, compressed or not; ``-`` where ``stdin`` is given.
        stdin: what ``-`` stands for.
        max_bytes: the largest content taken, uncompressed.
        replicas: replica count, whatever the module says; asked only about empty groups.
        partitions: partition count likewise.
        validate_hash: refuse a NEFF whose archive differs from the hash in its header.

    Raises:
        InputError: the file cannot be read, is none of these, or says something that cannot be.
    """
    head, content = _glance(path, stdin, max_bytes)
    kind = cc_kind(head)
    if kind == "neff":
        neff = read_neff(
            path if content is None else content, name=path, max_bytes=max_bytes, validate_hash=validate_hash
        )
        return CCSource(path, kind, CCInfo.from_neff(neff), neff=neff)
    if kind == "def.json":
        content = read_file(path, max_bytes=max_bytes) if content is None else content
        return CCSource(path, kind, CCInfo.of(content_fields(content, path)))
    try:
        again = _head(path) is not None  # a regular file is read by its name, which its module then bears
        [module] = _modules(path, None if again else content, max_bytes, replicas, partitions)
    except InputError as error:
        if path.endswith(".neff"):  # nothing in the content speaks for a NEFF; whoever called it so wants its words
            read_neff(path if content is None else content, name=path, max_bytes=max_bytes)
        raise _with_other_kinds(error) from error
    try:
        return CCSource(path, kind, CCInfo.from_module(module), module=module)
    except InputError as error:
        raise InputError(error.reason, path=path, line=error.line) from error


def _with_other_kinds(error: InputError) -> InputError:
    """Say of what is not even a module what else it could have been."""
    if not error.reason.startswith(_NO_MODULE):
        return error
    reason = error.reason.replace("expected ", "expected a .neff, a def.json, ", 1)
    return InputError(reason, path=error.path, line=error.line, column=error.column)


def _glance(path: str, stdin: IO[bytes] | None, max_bytes: int) -> tuple[bytes, bytes | None]:
    """Return the beginning of a content, uncompressed; and all of it, where it had to be read for that.

    Raises:
        InputError: it cannot be read.
    """
    if stdin is not None and path == STANDARD_INPUT:
        content = read_stream(stdin, path, max_bytes=max_bytes)
    else:
        head = _head(path)
        if head is not None and compression_of(head) is None:
            return head, None
        content = read_file(path, max_bytes=max_bytes)
    return content[:_GLANCE], content


def _head(path: str) -> bytes | None:
    """Return the beginning of a regular file, which can be read again; None for every other."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return None
        with Path(path).open("rb") as file:
            return file.read(_GLANCE)
    except (OSError, ValueError):
        return None  # reading it whole says why


def _modules(
    path: str, content: bytes | None, max_bytes: int, replicas: int | None, partitions: int | None
) -> list[Module]:
    """Return the only module of a file, in a list.

    Raises:
        InputError: there is none, or there are several.
    """
    found: list[Module] = []
    name = path if content is None else STANDARD_INPUT
    stdin = None if content is None else io.BytesIO(content)
    for each in load_inputs([name], stdin=stdin, max_bytes=max_bytes, replicas=replicas, partitions=partitions):
        if isinstance(each, InputError):
            raise InputError(each.reason, path=path, line=each.line, column=each.column)
        found.append(each)
    if len(found) != 1:
        reason = f"expected one module, found {len(found)}"
        raise InputError(reason, path=path)
    return found
