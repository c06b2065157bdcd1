"""Files that are rewritten: the modules of one, what becomes of them, and the file that is made of that.

Nothing is converted: HLO text stays text and a proto stays the proto it was, in its container. What no pass touched
comes out as the bytes that came in.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Final, Literal, TypeAlias

from commlens.errors import InputError
from commlens.hlo.compression import MAX_BYTES, compression_of, read_raw_file, read_raw_stream, uncompressed
from commlens.hlo.content_kinds import content_kind
from commlens.hlo.files import real_path
from commlens.hlo.loading import STANDARD_INPUT, read_modules

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from commlens.hlo.model import Module

Form: TypeAlias = Literal["HLO text", "a binary proto", "the text form of a proto"]

_COMPRESSIONS: Final = MappingProxyType({".gz": "gzip", ".xz": "xz", ".bz2": "bzip2", ".zst": "zstd"})
_ENDINGS: Final[Mapping[Form, tuple[str, ...]]] = MappingProxyType(
    {
        "HLO text": (".txt", ".hlo"),
        "a binary proto": (".pb", ".binpb", ".hlopb"),
        "the text form of a proto": (".pbtxt", ".textproto", ".prototxt", ".textpb", ".txtpb"),
    }
)
"""Endings that promise a form, the usual one first; all others promise nothing."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that is to be rewritten.

    Attributes:
        path: as the user named it.
        raw: its bytes.
        content: the same without compression.
        modules: its modules, at least one.
        replicas: replica count stated by the user.
        partitions: partition count stated by the user.
    """

    path: str
    raw: bytes
    content: bytes
    modules: Sequence[Module]
    replicas: int | None = None
    partitions: int | None = None

    @property
    def form(self) -> Form:
        """What the file holds."""
        if self.modules[0].format == "text":
            return "HLO text"
        return "the text form of a proto" if content_kind(self.content) == "text form" else "a binary proto"

    @property
    def ending(self) -> str:
        """The usual ending of a file that holds such a thing."""
        return _ENDINGS[self.form][0]

    def check_target(self, target: str | os.PathLike[str]) -> None:
        """Refuse a name that promises what the product will not be; the file's own name is always right.

        Args:
            target: the file to write.

        Raises:
            InputError: the name ends like another form, or in a compression that cannot be written here.
        """
        path = PurePath(target)
        if _compression(path) == "zstd":
            _zstd(b"", str(path))
        inner = path.with_suffix("") if path.suffix.lower() in _COMPRESSIONS else path
        promised = _promised(inner.suffix.lower())
        if promised not in (None, self.form) and real_path(target) != real_path(self.path):
            reason = (
                f"expected a name such as {inner.stem}{self.ending}, for {self.path} holds {self.form} and nothing is "
                f"converted, found the ending {inner.suffix}, which stands for {promised}"
            )
            raise InputError(reason, path=str(target))

    def rewritten(self, change: Callable[[Module], Module]) -> bytes:
        """Return the content with each module replaced by what becomes of it.

        Args:
            change: returns the new module, or the same one. Called once per module, in order.
        """
        return self._rewritten_text(change) if self.modules[0].format == "text" else self._rewritten_proto(change)

    def _rewritten_text(self, change: Callable[[Module], Module]) -> bytes:
        """Put the parts of a text together again, and what stands between them."""
        pieces: list[bytes] = []
        position = 0
        for module in self.modules:
            part = module.to_bytes()
            start = self.content.index(part, position)
            pieces += [self.content[position:start], change(module).to_bytes()]
            position = start + len(part)
        return b"".join([*pieces, self.content[position:]])

    def _rewritten_proto(self, change: Callable[[Module], Module]) -> bytes:
        """Change one module of the message after the other; each has the whole message as its source."""
        content, modules = self.content, self.modules
        for number in range(len(modules)):
            changed = change(modules[number])
            if changed is not modules[number]:
                content = changed.to_bytes()
                modules = read_modules(content, self.path, replicas=self.replicas, partitions=self.partitions)
        return content

    def packed(self, content: bytes, target: str | os.PathLike[str] | None) -> bytes:
        """Return the bytes of the product: the original's where nothing differs, else compressed as its name says.

        Args:
            content: what :meth:`rewritten` returned.
            target: the file to write, None for standard output.

        Raises:
            InputError: the compression cannot be written here.
        """
        compression = None if target is None else _compression(PurePath(target))
        if content == self.content and compression == compression_of(self.raw):
            return self.raw
        return content if compression is None else _compressed(content, compression, str(target))


def read_source_file(
    path: str,
    *,
    stdin: IO[bytes] | None = None,
    max_bytes: int = MAX_BYTES,
    replicas: int | None = None,
    partitions: int | None = None,
) -> SourceFile:
    """Read a file that is to be rewritten.

    Args:
        path: the file; ``-`` where ``stdin`` is given.
        stdin: what ``-`` stands for.
        max_bytes: the largest content taken, compressed or not.
        replicas: replica count stated by the user.
        partitions: partition count stated by the user.

    Raises:
        InputError: it is a folder, cannot be read, or holds no module.
    """
    if stdin is not None and path == STANDARD_INPUT:
        raw = read_raw_stream(stdin, path, max_bytes=max_bytes)
    else:
        if Path(path).is_dir():
            reason = "expected one file with one or more modules, found a folder; name a file in it"
            raise InputError(reason, path=path)
        raw = read_raw_file(path, max_bytes=max_bytes)
    content = uncompressed(raw, path, max_bytes=max_bytes)
    modules = read_modules(content, path, replicas=replicas, partitions=partitions)
    return SourceFile(path, raw, content, modules, replicas, partitions)


def _promised(ending: str) -> Form | None:
    return next((form for form, endings in _ENDINGS.items() if ending in endings), None)


def _compression(path: PurePath) -> str | None:
    return _COMPRESSIONS.get(path.suffix.lower())


def _compressed(content: bytes, compression: str, path: str) -> bytes:
    """Compress a content, the same content always to the same bytes."""
    match compression:
        case "gzip":
            return gzip.compress(content, mtime=0)
        case "xz":
            return lzma.compress(content)
        case "bzip2":
            return bz2.compress(content)
        case _:
            return _zstd(content, path)


def _zstd(content: bytes, path: str) -> bytes:
    try:
        import zstandard
    except ImportError:
        reason = "writing zstd data needs the package zstandard: pip install 'commlens[zstd]'"
        raise InputError(reason, path=path) from None
    return zstandard.ZstdCompressor().compress(content)
