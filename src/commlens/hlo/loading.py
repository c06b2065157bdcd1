"""Loading modules from files, folders, standard input and values, whatever form they have."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TypeAlias

from commlens.errors import CommlensError, GrammarError, InputError
from commlens.hlo.compression import MAX_BYTES, read_file, read_stream, uncompressed
from commlens.hlo.content_kinds import content_kind, excerpt, looks_like_hlo
from commlens.hlo.folders import module_files
from commlens.hlo.memory_mapping import mapped_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from mmap import mmap

    from commlens.hlo.folders import Stage
    from commlens.hlo.model import Module

Source: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview
"""Text, a path, or content; see :func:`load`."""

STANDARD_INPUT: Final = "-"
_HEAD: Final = 4096
_EXPECTED: Final = "expected HLO text or a protobuf with an HLO module"
_NO_MODULE: Final = "the folder holds no HLO module: expected an XLA dump, a Neuron compile cache or HLO files"
_SHOWN_FOLDERS: Final = 3
_NO_COMPUTATION: Final = "expected a computation, such as ENTRY main { ... }, found none"


def load(source: Source, *, replicas: int | None = None, partitions: int | None = None) -> Module:
    r"""Load one module.

    What a file holds is told from its content: HLO text, a binary HloModuleProto, HloProto, HloSnapshot,
    HloUnoptimizedSnapshot, HloModuleProtoWithConfig or HloModuleGroupProto, or the text form of any of these. One layer
    of gzip, xz, bzip2 or (with the extra ``zstd``) zstd compression is taken off.

    Args:
        source: HLO text (a string with a line break), the path of a file or folder (every other string), or the content
            of a file (bytes).
        replicas: replica count, where the module does not say it or is to be read otherwise.
        partitions: partition count likewise.

    Returns:
        The module.

    Raises:
        CommlensError: (a ValueError) the source cannot be read, holds no module, or holds several: then use
            :func:`load_all`.

    Example:
        >>> module = load("HloModule m, num_partitions=2\nENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n")
        >>> module.name, module.format, module.num_partitions
        ('m', 'text', 2)
    """
    modules = load_all(source, replicas=replicas, partitions=partitions)
    if len(modules) > 1:
        reason = f"expected one module, found {len(modules)}: load_all reads them all"
        raise InputError(reason, path=_name_of(source))
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
    loader = _Loader(replicas, partitions)
    name = _name_of(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return list(loader.modules(uncompressed(bytes(source), name), name))
    if isinstance(source, str) and _is_text(source):
        return list(loader.modules(source.encode("utf-8", "surrogateescape"), name))
    found: list[Module] = []
    for each in loader.load(source):
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

    Returns:
        An iterator over every module, and in the place of a file or folder that has none the error that says why.
        Nothing is read before it is asked for.

    Raises:
        InputError: a count is below 1.
    """
    loader = _Loader(replicas, partitions, stdin, max_bytes, stage)
    return (each for path in paths for each in loader.load(path))


def read_modules(
    data: bytes, path: str, *, replicas: int | None = None, partitions: int | None = None
) -> Sequence[Module]:
    """Read the modules of an uncompressed content.

    Args:
        data: the whole content.
        path: what to call it in messages.
        replicas: replica count stated by the user.
        partitions: partition count stated by the user.

    Returns:
        The modules, at least one.

    Raises:
        InputError: it holds none.
    """
    return _Loader(replicas, partitions).modules(data, path)


@dataclass(frozen=True, slots=True)
class _Loader:
    """What holds for all inputs of one run; see :func:`load_inputs`."""

    replicas: int | None
    partitions: int | None
    stdin: IO[bytes] | None = None
    max_bytes: int = MAX_BYTES
    stage: Stage = "last"

    def __post_init__(self) -> None:
        for name, count in (("replica", self.replicas), ("partition", self.partitions)):
            if count is not None and count < 1:
                reason = f"expected a {name} count of at least 1, found {count}"
                raise InputError(reason)

    def load(self, path: str | os.PathLike[str]) -> Iterator[Module | InputError]:
        """Load a file, a folder or standard input; what cannot be read is yielded as an error."""
        if not os.fspath(path):
            yield InputError("expected the name of a file or folder, found an empty one", path="''")
            return
        try:
            if self.stdin is not None and os.fspath(path) == STANDARD_INPUT:
                yield from self.modules(
                    read_stream(self.stdin, STANDARD_INPUT, max_bytes=self.max_bytes), STANDARD_INPUT
                )
            elif _is_folder(path):
                yield from self._load_folder(Path(path))
            else:
                yield from self._load_file(path)
        except InputError as error:
            yield error

    def _load_file(self, path: str | os.PathLike[str]) -> Sequence[Module]:
        mapped = mapped_text(path, max_bytes=self.max_bytes)
        if mapped is not None:
            return self._text(mapped, str(path))
        return self.modules(read_file(path, max_bytes=self.max_bytes), str(path))

    def _load_folder(self, folder: Path) -> Iterator[Module | InputError]:
        files, certain = module_files(folder, self.stage)
        empty = True
        for file in files:
            try:
                yield from self._load_file(file)
            except InputError as error:
                if not certain:
                    continue
                yield error
            empty = False
        if empty:
            raise InputError(_no_module_in(folder), path=str(folder))

    def modules(self, data: bytes, path: str) -> Sequence[Module]:
        """Read the modules in a content.

        Raises:
            InputError: it holds none.
        """
        if not data[:_HEAD].strip() and not data.strip():  # a look at its head spares a copy of a large content
            reason = f"{_EXPECTED}, found {'only blanks' if data else 'an empty file'}"
            raise InputError(reason, path=path)
        match content_kind(data):
            case "text":
                return self._text(data, path)
            case "text form":
                return self._text_form(data, path)
            case "binary":
                return self._binary(data, path)
            case "unknown":
                reason = f"{_EXPECTED}, found another text, which starts with {excerpt(data)}"
                raise InputError(reason, path=path, line=1, column=1)

    def _text(self, data: bytes | mmap, path: str) -> Sequence[Module]:
        from commlens.hlo.text import read_modules

        modules = read_modules(data, path, replicas=self.replicas, partitions=self.partitions)
        if not modules:
            raise InputError(_NO_COMPUTATION, path=path, line=1, column=1)
        return modules

    def _text_form(self, data: bytes, path: str) -> Sequence[Module]:
        from commlens.hlo.proto import read_text_form

        try:
            modules = read_text_form(data, path, replicas=self.replicas, partitions=self.partitions)
        except GrammarError as error:
            line = data.count(b"\n", 0, error.position) + 1
            column = error.position - data.rfind(b"\n", 0, error.position)
            raise InputError(str(error), path=path, line=line, column=column) from error
        except CommlensError as error:
            raise InputError(str(error), path=path) from error
        if modules:
            return modules
        if looks_like_hlo(data):  # text that only looked like a text form
            return self._text(data, path)
        reason = f"{_EXPECTED}, found the text form of a protobuf without one"
        raise InputError(reason, path=path)

    def _binary(self, data: bytes, path: str) -> Sequence[Module]:
        """Read a binary proto, or text with control characters in it."""
        from commlens.hlo.proto import read_binary

        try:
            return read_binary(data, path, replicas=self.replicas, partitions=self.partitions)
        except CommlensError as error:
            if looks_like_hlo(data):
                return self._text(data, path)
            reason = f"{_EXPECTED}, found binary data that start with {excerpt(data)}: {error}"
            raise InputError(reason, path=path) from error


def _is_folder(path: str | os.PathLike[str]) -> bool:
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False  # reading it as a file says what is wrong


def _is_text(source: str) -> bool:
    """Whether a string is text and not a path: it has a line break."""
    return "\n" in source


def _name_of(source: Source) -> str:
    """Return what to call a source in messages."""
    if isinstance(source, bytes | bytearray | memoryview):
        return "<bytes>"
    return "<text>" if isinstance(source, str) and _is_text(source) else str(source)


def _no_module_in(folder: Path) -> str:
    """Say that a folder holds no module, and which folders in it seem to."""
    inner = [each for each in sorted(folder.iterdir()) if each.is_dir() and _seems_to_hold_modules(each)]
    if not inner:
        return _NO_MODULE
    names = [each.name for each in inner[:_SHOWN_FOLDERS]]
    names += [f"{len(inner) - _SHOWN_FOLDERS:,} more"] if len(inner) > _SHOWN_FOLDERS else []
    every = f"{folder / '*'}{os.sep}"
    return (
        f"the folder holds no HLO module itself, the folders in it seem to ({', '.join(names)}): name them as {every}"
    )


def _seems_to_hold_modules(folder: Path) -> bool:
    try:
        return bool(module_files(folder)[0])
    except InputError:
        return False
