"""Tar archives, read from end to end: wanted members into memory, all others passed over, nothing onto a disk.

Both dialects are read: GNU with its long names, and PAX. The standard library takes the 512 bytes of a header apart;
the walk over the archive is our own, because sizes in it are claims of a stranger. A member that is no file or folder,
a name that leads out of the archive, and a name that comes twice refuse the archive as a whole.
"""

from __future__ import annotations

import tarfile
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from commlens.errors import CommlensError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MOST_KEPT: Final = 256 * 2**20
"""How many bytes of wanted members are held in all."""

MOST_HEADERS: Final = 100_000
"""How many headers are read: those of files, of folders, and those that extend others."""

MOST_EXTENSIONS: Final = 16 * 2**20
"""How many bytes of extended headers are read in all."""

_MOST_NAME: Final = 4096
_MOST_EXTENSION: Final = 2**20
_CHUNK: Final = 2**20
_BLOCK: Final = tarfile.BLOCKSIZE
_MAGIC: Final = slice(257, 262)
_END: Final = bytes(_BLOCK)

_KINDS: Final[Mapping[bytes, str]] = MappingProxyType(
    {
        tarfile.LNKTYPE: "a hard link",
        tarfile.SYMTYPE: "a symbolic link",
        tarfile.CHRTYPE: "a character device",
        tarfile.BLKTYPE: "a block device",
        tarfile.FIFOTYPE: "a pipe",
        tarfile.GNUTYPE_SPARSE: "a sparse file",
    }
)
_LONG_NAMES: Final = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_RECORDS: Final = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.XGLTYPE)
_FILES: Final = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)


def looks_like_archive(head: bytes) -> bool:
    """Whether some content begins like a tar archive of either dialect."""
    return head[_MAGIC] == b"ustar"


class Stream(Protocol):
    """What an archive is read from."""

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes, none only at the end."""
        ...


class Member(NamedTuple):
    """A file in an archive.

    Attributes:
        name: its name, without a leading ``./``.
        size: its size in bytes.
        content: its content, None where it was not wanted.
    """

    name: str
    size: int
    content: bytes | None


def read_members(stream: Stream, wanted: Callable[[str], bool], *, max_bytes: int) -> Iterator[Member]:
    """Walk over an archive to the end of its stream.

    Args:
        stream: the archive, not compressed.
        wanted: tells from a name whether the content is to be kept.
        max_bytes: the largest archive taken. Of wanted members :data:`MOST_KEPT` bytes are kept at most.

    Returns:
        An iterator over the files, folders left out. That the archive is whole is known only when it has ended.

    Raises:
        CommlensError: the archive is damaged, cut, too large, or has a member that it must not have.
    """
    reader = _Reader(stream, max_bytes)
    names: set[str] = set()
    kept = 0
    for kind, name, size in _entries(reader):
        name = _checked_name(name)
        if kind == tarfile.DIRTYPE:
            reader.skip(_padded(size), repr(name))
            continue
        if kind not in _FILES:
            msg = f"expected only files and folders in the archive, found {_KINDS.get(kind, _unknown(kind))}: {name!r}"
            raise CommlensError(msg)
        if name in names:
            msg = f"expected every name once in the archive, found {name!r} twice"
            raise CommlensError(msg)
        names.add(name)
        content: bytes | None = None
        if wanted(name):
            kept += size
            if kept > MOST_KEPT:
                msg = f"expected descriptions of at most {MOST_KEPT:,} bytes in the archive, found {name!r} of {size:,}"
                raise CommlensError(msg)
            content = reader.exactly(size, repr(name))
            reader.skip(_padded(size) - size, repr(name))
        else:
            reader.skip(_padded(size), repr(name))
        yield Member(name, size, content)
    reader.drain()


class _Reader:
    """Reads a stream in known portions and counts what it gives."""

    def __init__(self, stream: Stream, limit: int) -> None:
        self._stream = stream
        self._limit = limit
        self._count = 0

    def exactly(self, size: int, what: str) -> bytes:
        """Return the next bytes; grows only with what really comes. Raises CommlensError where there are fewer."""
        self._expect(size)
        pieces: list[bytes] = []
        missing = size
        while missing:
            piece = self._some(min(missing, _CHUNK))
            if not piece:
                msg = f"the archive is cut off: {what} lacks {missing:,} of {size:,} bytes"
                raise CommlensError(msg)
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def skip(self, size: int, what: str) -> None:
        """Pass over the next bytes. Raises CommlensError where there are fewer."""
        self._expect(size)
        missing = size
        while missing:
            piece = self._some(min(missing, _CHUNK))
            if not piece:
                msg = f"the archive is cut off: {what} lacks {missing:,} bytes"
                raise CommlensError(msg)
            missing -= len(piece)

    def block(self) -> bytes:
        """Return the next block of a header."""
        return self.exactly(_BLOCK, "the next header")

    def drain(self) -> None:
        """Read to the end, so that a compressed stream can check itself."""
        while self._some(_CHUNK):
            pass

    def _some(self, size: int) -> bytes:
        piece = self._stream.read(size)
        self._count += len(piece)
        self._expect(0)
        return piece

    def _expect(self, size: int) -> None:
        """Refuse to read on where that leads beyond the limit; what is claimed need not come first."""
        if self._count + size > self._limit:
            msg = f"holds more than the {self._limit:,} bytes that are taken; --max-bytes sets another limit"
            raise CommlensError(msg)


def _entries(reader: _Reader) -> Iterator[tuple[bytes, str, int]]:
    """Yield kind, name and size of every entry, with the extensions that stand before it applied."""
    name: str | None = None
    size: int | None = None
    number = extensions = 0
    while (block := reader.block()) != _END:
        header = _header(block)
        number += 1
        _check_amounts(number, extensions)
        extensions += header.size if header.type in (*_LONG_NAMES, *_RECORDS) else 0
        if header.type in _LONG_NAMES:
            text = _extension(reader, header.size).split(b"\0", 1)[0]
            if header.type == tarfile.GNUTYPE_LONGNAME:
                name = _decoded(text)
        elif header.type in _RECORDS:
            records = _pax_records(_extension(reader, header.size))
            if header.type != tarfile.XGLTYPE:
                path = records.get("path")
                name = name if path is None else path
                size = _pax_size(records.get("size"), size)
            elif not records.keys().isdisjoint(("path", "size")):
                msg = "expected names and sizes of single members in the archive, found one that is stated for all"
                raise CommlensError(msg)
        else:
            yield header.type, header.name if name is None else name, header.size if size is None else size
            name = size = None
    if name is not None or size is not None:
        msg = "expected a member behind the extension of its header, found the end of the archive"
        raise CommlensError(msg)


def _check_amounts(number: int, extensions: int) -> None:
    """Refuse an archive that takes long only by what it says of its members, which may be compressed to nothing."""
    if number > MOST_HEADERS:
        msg = f"expected at most {MOST_HEADERS:,} files, folders and extended headers in the archive, found more"
        raise CommlensError(msg)
    if extensions > MOST_EXTENSIONS:
        msg = f"expected at most {MOST_EXTENSIONS:,} bytes of extended headers in the archive, found more"
        raise CommlensError(msg)


def _header(block: bytes) -> tarfile.TarInfo:
    """Take a header apart. Raises CommlensError for what is none, or states an impossible size."""
    try:
        header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        msg = f"expected the header of a member in the archive, found something else: {error}"
        raise CommlensError(msg) from error
    if header.size < 0:
        msg = f"expected a size of 0 or more in the archive, found {header.size} for {header.name!r}"
        raise CommlensError(msg)
    return header


def _extension(reader: _Reader, size: int) -> bytes:
    """Read what belongs to the next header."""
    if size > _MOST_EXTENSION:
        msg = f"expected an extended header of at most {_MOST_EXTENSION:,} bytes in the archive, found {size:,}"
        raise CommlensError(msg)
    content = reader.exactly(_padded(size), "an extended header")
    return content[:size]


def _pax_records(content: bytes) -> dict[str, str]:
    """Read the records ``LENGTH KEY=VALUE`` and a line break, of which the length counts all."""
    records: dict[str, str] = {}
    start = 0
    while start < len(content):
        blank = content.find(b" ", start, start + 12)
        digits = content[start:blank] if blank > start else b""
        stop = start + int(digits) if digits.isdigit() else 0
        record = content[blank + 1 : stop]
        key, equals, value = record[:-1].partition(b"=")
        if stop > len(content) or not record.endswith(b"\n") or not equals:
            found = content[start : start + 20]
            msg = f"expected records such as '13 path=sg00\\n' in an extended header, found {found!r}"
            raise CommlensError(msg)
        if key.startswith(b"GNU.sparse"):
            msg = "expected only files and folders in the archive, found a sparse file"
            raise CommlensError(msg)
        records[_decoded(key)] = _decoded(value)
        start = stop
    return records


def _pax_size(text: str | None, size: int | None) -> int | None:
    if text is None:
        return size
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        msg = f"expected a size in an extended header, found {text[:20]!r}"
        raise CommlensError(msg)
    return int(text)


def _checked_name(name: str) -> str:
    """Return a name without a leading ``./``. Raises CommlensError for one that leads out of the archive."""
    if len(name) > _MOST_NAME:
        msg = f"expected names of at most {_MOST_NAME:,} characters in the archive, found one of {len(name):,}"
        raise CommlensError(msg)
    plain = name.removeprefix("./")
    if not plain:
        msg = "expected a name for every member of the archive, found an empty one"
        raise CommlensError(msg)
    if plain.startswith(("/", "\\")) or ".." in plain.replace("\\", "/").split("/"):
        msg = f"expected names that stay inside the archive, found {name!r}"
        raise CommlensError(msg)
    return plain


def _unknown(kind: bytes) -> str:
    return f"an entry of the unknown kind {kind.decode('latin-1')!r}"


def _padded(size: int) -> int:
    return -(-size // _BLOCK) * _BLOCK


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")
