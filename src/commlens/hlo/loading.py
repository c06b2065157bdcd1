"""Loading modules from files, folders, standard input and values, whatever form they have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TypeAlias

from commlens.errors import CommlensError, GrammarError, InputError
from commlens.hlo.containers import MAX_BYTES, read_file, read_stream, uncompressed
from commlens.hlo.folders import module_files
from commlens.hlo.kinds import excerpt, kind_of, looks_like_hlo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commlens.hlo.folders import Stage
    from commlens.hlo.model import Module

Source: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview
"""Text, a path, or content; see :func:`load`."""

STANDARD_INPUT: Final = "-"
_GLANCE: Final = 4096
_EXPECTED: Final = "expected HLO text or a protobuf with an HLO module"


def load(source: Source, *, replicas: int | None = None, partitions: int | None = None) -> Module:
    """Load one module.

    Args:
        source: HLO text (a string with a line break), the path of a file or folder (every other string), or the content
            of a file (bytes). What a file holds is told from its content: HLO text, a binary HloModuleProto, HloProto,
            HloSnapshot, HloUnoptimizedSnapshot, HloModuleProtoWithConfig or HloModuleGroupProto, or the text form of any
            of these; one layer of gzip, xz, bzip2 or (with the extra ``zstd``) zstd compression is taken off.
        replicas: replica count, where the module does not say it or is to be read otherwise.
        partitions: partition count likewise.

    Returns:
        The module.

    Raises:
        CommlensError: (a ValueError) the source cannot be read, holds no module, or holds several: then use
            :func:`load_all`.

    Example:
        >>> module = load("HloModule m, num_partitions=2\\nENTRY e {\\n  ROOT p = f32[8] parameter(0)\\n}\\n")
        >>> module.name, module.format, module.num_partitions
        ('m', 'text', 2)
    """
    modules = load_all(source, replicas=replicas, partitions=partitions)
    if len(modules) > 1:
        raise InputError(f"holds {len(modules)} modules, expected one: load_all reads them all", path=_name_of(source))
    return modules[0]


def load_all(source: Source, *, replicas: int | None = None, partitions: int | None = None) -> list[Module]:
    """Load all modules of a source.

    Args:
        source: as for :func:`load`. Of a folder that XLA dumped to, the last dump of each module counts.
        replicas: replica count, where the modules do not say it or are to be read otherwise.
        partitions: partition count likewise.

    Returns:
        The modules, at least one, in the order in which they stand.

    Raises:
        CommlensError: (a ValueError) the source cannot be read or holds no module.
    """
    _check_counts(replicas, partitions)
    name = _name_of(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return list(_modules(uncompressed(bytes(source), name), name, replicas, partitions))
    if isinstance(source, str) and _is_text(source):
        return list(_modules(source.encode("utf-8", "surrogateescape"), name, replicas, partitions))
    found: list[Module] = []
    for each in load_inputs([source], replicas=replicas, partitions=partitions):
        if isinstance(each, InputError):
            raise each
        found.append(each)
    return found


def load_inputs(
    paths: Iterable[str | os.PathLike[str]],
    *,
    stdin: IO[bytes] | None = None,
    max_bytes: int = MAX_BYTES,
    stage: Stage = "last",
    replicas: int | None = None,
    partitions: int | None = None,
) -> Iterator[Module | InputError]:
    """Load what a command line names, one file after the other.

    Args:
        paths: files, folders, or ``-`` where ``stdin`` is given.
        stdin: what ``-`` stands for; None makes it a file's name like any other.
        max_bytes: the largest content taken, compressed or not.
        stage: which dumps of a folder are wanted.
        replicas: replica count stated by the user.
        partitions: partition count stated by the user.

    Yields:
        Every module, and in the place of a file or folder that has none the error that says why. Nothing is read before
        it is asked for.
    """
    _check_counts(replicas, partitions)
    for path in paths:
        try:
            if stdin is not None and os.fspath(path) == STANDARD_INPUT:
                data = read_stream(stdin, STANDARD_INPUT, max_bytes=max_bytes)
                yield from _modules(data, STANDARD_INPUT, replicas, partitions)
            elif _is_folder(path):
                yield from _load_folder(Path(path), max_bytes, stage, replicas, partitions)
            else:
                yield from _modules(read_file(path, max_bytes=max_bytes), str(path), replicas, partitions)
        except InputError as error:
            yield error


def _is_folder(path: str | os.PathLike[str]) -> bool:
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False  # reading it as a file says what is wrong


def _load_folder(
    folder: Path, max_bytes: int, stage: Stage, replicas: int | None, partitions: int | None
) -> Iterator[Module | InputError]:
    """Load the modules of a folder."""
    files, certain = module_files(folder, stage)
    empty = True
    for file in files:
        try:
            modules = _modules(read_file(file, max_bytes=max_bytes), str(file), replicas, partitions)
        except InputError as error:
            if certain:
                yield error
                empty = False
            continue
        yield from modules
        empty = False
    if empty:
        reason = "the folder holds no HLO module: expected an XLA dump, a Neuron compile cache or HLO files"
        raise InputError(reason, path=str(folder))


def _modules(data: bytes, path: str, replicas: int | None, partitions: int | None) -> Sequence[Module]:
    """Read the modules in a content.

    Raises:
        InputError: it holds none.
    """
    if not data[:_GLANCE].strip() and not data.strip():  # a large content is not copied
        raise InputError(f"{_EXPECTED}, found {'only blanks' if data else 'nothing: it is empty'}", path=path)
    match kind_of(data):
        case "text":
            return _text_modules(data, path, replicas, partitions)
        case "text form":
            return _text_form_modules(data, path, replicas, partitions)
        case "binary":
            return _binary_modules(data, path, replicas, partitions)
        case "unknown":
            raise InputError(f"{_EXPECTED}, found a text that is neither; it starts with {excerpt(data)}", path=path)


def _text_modules(data: bytes, path: str, replicas: int | None, partitions: int | None) -> Sequence[Module]:
    from commlens.hlo.text import read_modules

    modules = read_modules(data, path, replicas=replicas, partitions=partitions)
    if not modules:
        raise InputError("expected a computation in braces after the HloModule header, found none", path=path)
    return modules


def _text_form_modules(data: bytes, path: str, replicas: int | None, partitions: int | None) -> Sequence[Module]:
    from commlens.hlo.proto import read_text_form

    try:
        return read_text_form(data, path, replicas=replicas, partitions=partitions)
    except GrammarError as error:
        line = data.count(b"\n", 0, error.position) + 1
        column = error.position - data.rfind(b"\n", 0, error.position)
        raise InputError(str(error), path=path, line=line, column=column) from error
    except CommlensError as error:
        raise InputError(str(error), path=path) from error


def _binary_modules(data: bytes, path: str, replicas: int | None, partitions: int | None) -> Sequence[Module]:
    """Read a binary proto, or text with control characters in it."""
    from commlens.hlo.proto import read_binary

    try:
        return read_binary(data, path, replicas=replicas, partitions=partitions)
    except CommlensError as error:
        if looks_like_hlo(data):
            return _text_modules(data, path, replicas, partitions)
        raise InputError(
            f"{_EXPECTED}, found binary data that starts with {excerpt(data)}: {error}", path=path
        ) from error


def _check_counts(replicas: int | None, partitions: int | None) -> None:
    for name, count in (("replica", replicas), ("partition", partitions)):
        if count is not None and count < 1:
            raise InputError(f"expected a {name} count of at least 1, found {count}")


def _is_text(source: str) -> bool:
    """Whether a string is text and not a path: it has a line break."""
    return "\n" in source or "\r" in source


def _name_of(source: Source) -> str:
    """Return what to call a source in messages."""
    if isinstance(source, bytes | bytearray | memoryview):
        return "<bytes>"
    return "<text>" if isinstance(source, str) and _is_text(source) else str(source)
