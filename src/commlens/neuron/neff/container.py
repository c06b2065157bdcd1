"""A NEFF as a whole: header, archive, and the descriptions of its subgraphs."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple, TypeAlias

from commlens.errors import CommlensError, InputError
from commlens.hlo import MAX_BYTES, read_file, uncompressed
from commlens.neuron.neff.archive import Member, looks_like_archive, read_members
from commlens.neuron.neff.header import GZIPPED, HEADER_SIZE, PLAIN, NeffHeader
from commlens.neuron.neff.kelf import graphs_of, is_description

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

NeffSource: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview
"""A .neff file: its path, or its content."""

_CHUNK: Final = 2**20
_MD5_SIZE: Final = 16
_GZIP_MAGIC: Final = b"\x1f\x8b"


class Subgraph(NamedTuple):
    """The description of one subgraph: as a rule, of one physical core.

    Attributes:
        name: its name, e.g. ``"sg00"``.
        member: the member that describes it.
        definition: the content of that member, JSON.
    """

    name: str
    member: str
    definition: bytes


@dataclass(frozen=True, slots=True)
class Neff:
    """A NEFF that has been read.

    Attributes:
        path: where it came from, for messages.
        header: its header.
        hash_matches: whether the archive has the hash that the header states.
        members: its files, by name and size; contents are not kept here.
        subgraphs: the descriptions of its subgraphs, in the order of their members' names; at least one.
    """

    path: str
    header: NeffHeader
    hash_matches: bool
    members: tuple[Member, ...]
    subgraphs: tuple[Subgraph, ...]


def looks_like_neff(head: bytes) -> bool:
    r"""Whether some content begins like a NEFF: with a small version of eight bytes.

    HLO, JSON and compressed data never do.

    Example:
        >>> looks_like_neff(NeffHeader().to_bytes()), looks_like_neff(b"HloModule m\n")
        (True, False)
    """
    return len(head) >= 8 and head[0] != 0 and not any(head[1:8])


def read_neff(
    source: NeffSource, *, name: str | None = None, max_bytes: int = MAX_BYTES, validate_hash: bool = False
) -> Neff:
    """Read a NEFF: its header, the names of its members, and the descriptions of its subgraphs.

    The file is read as a stream. Weights and machine code are passed over; of the descriptions at most
    :data:`~commlens.neuron.neff.archive.MOST_KEPT` bytes are held, whatever sizes the archive claims.

    Args:
        source: a path, or the content of a file. One layer of compression around the whole is taken off.
        name: what to call it in messages; the path, where it is not given.
        max_bytes: the largest archive taken, uncompressed.
        validate_hash: refuse an archive that differs from the hash in the header.

    Raises:
        InputError: the file cannot be read, the header is not supported, the archive is damaged or hostile, or it has
            no subgraph.

    Source: the checks are those of the runtime's loader, as documented; it compares the hash only where
    ``NEURON_RT_VALIDATE_HASH`` is set.
    """
    content = isinstance(source, (bytes, bytearray, memoryview))
    path = name or ("<bytes>" if content else str(source))
    try:
        with _opened(source, path, max_bytes) as (file, size):
            return _read(file, size, path, max_bytes=max_bytes, validate_hash=validate_hash)
    except InputError:
        raise
    except CommlensError as error:
        raise InputError(str(error), path=path) from error


@contextmanager
def _opened(source: NeffSource, path: str, max_bytes: int) -> Generator[tuple[IO[bytes], int]]:
    """Open a source as a stream that can go back, with its size."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        content = uncompressed(bytes(source), path, max_bytes=max_bytes)
        yield io.BytesIO(content), len(content)
        return
    if _is_plain_neff(Path(source)):
        with Path(source).open("rb") as file:
            yield file, os.fstat(file.fileno()).st_size
        return
    content = read_file(source, max_bytes=max_bytes)
    yield io.BytesIO(content), len(content)


def _is_plain_neff(path: Path) -> bool:
    """Whether a path is a regular file, so that it can be read twice, and begins like a NEFF."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return False
        with path.open("rb") as file:
            return looks_like_neff(file.read(8))
    except (OSError, ValueError):
        return False  # whoever reads it says why


def _read(file: IO[bytes], size: int, path: str, *, max_bytes: int, validate_hash: bool) -> Neff:
    head = file.read(HEADER_SIZE)
    if looks_like_archive(head):
        msg = f"a NEFF begins with a header of {HEADER_SIZE:,} bytes; this archive has none"
        raise CommlensError(msg)
    header = NeffHeader.from_bytes(head)
    header.check(size)
    hash_matches = _hash_matches(file, header)
    if validate_hash and not hash_matches:
        msg = "expected the archive to have the hash that the header states, found another"
        raise CommlensError(msg)
    members = _walk(file, header, is_description, max_bytes)
    contents = {member.name: member.content for member in members if member.content is not None}
    graphs = graphs_of(contents, {member.name: None for member in members})
    if not graphs:
        msg = "expected the description of a subgraph in the archive, such as sg00/def.json, found none"
        raise CommlensError(msg)
    rest = {graph.definition for graph in graphs} - contents.keys()
    if rest:
        again = _walk(file, header, rest.__contains__, max_bytes)
        contents |= {member.name: member.content for member in again if member.content is not None}
    return Neff(
        path,
        header,
        hash_matches,
        tuple(member._replace(content=None) for member in members),
        tuple(Subgraph(graph.name, graph.definition, contents[graph.definition]) for graph in graphs),
    )


def _hash_matches(file: IO[bytes], header: NeffHeader) -> bool:
    """Compare the hash of the archive, as it stands in the file, with the one in the header."""
    zipped = header.pkg_version == GZIPPED
    digest = hashlib.md5(usedforsecurity=False) if zipped else hashlib.sha256()
    data = _Window(file, HEADER_SIZE, header.data_size)
    while piece := data.read(_CHUNK):
        digest.update(piece)
    return digest.digest() == (header.hash[:_MD5_SIZE] if zipped else header.hash)


def _walk(file: IO[bytes], header: NeffHeader, wanted: Callable[[str], bool], max_bytes: int) -> list[Member]:
    """Return the members of the archive, the wanted ones with their contents."""
    if header.pkg_version == PLAIN and _Window(file, HEADER_SIZE, header.data_size).read(2) == _GZIP_MAGIC:
        msg = f"expected a tar archive, as package version {PLAIN} has it, found gzip data, which are version {GZIPPED}"
        raise CommlensError(msg)
    data = _Window(file, HEADER_SIZE, header.data_size)
    stream = gzip.GzipFile(fileobj=data) if header.pkg_version == GZIPPED else data
    try:
        return list(read_members(stream, wanted, max_bytes=max_bytes))
    except EOFError as error:
        msg = "the gzip data of the archive are cut off"
        raise CommlensError(msg) from error
    except (OSError, zlib.error) as error:
        msg = f"the archive cannot be read: {error}"
        raise CommlensError(msg) from error


class _Window(io.RawIOBase):
    """A part of a file, read from its beginning to its end."""

    def __init__(self, file: IO[bytes], start: int, size: int) -> None:
        super().__init__()
        file.seek(start)
        self._file = file
        self._left = size

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return up to ``size`` bytes; none at the end."""
        wanted = self._left if size < 0 else min(size, self._left)
        piece = self._file.read(wanted)
        self._left -= len(piece)
        return piece
