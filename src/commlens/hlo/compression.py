"""Reading a file, standard input or a value whole, one layer of compression taken off, and never too much."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from pathlib import Path
from typing import IO, Final, Protocol, cast

from commlens.errors import InputError

MAX_BYTES: Final = 8 * 2**30
"""How large a content may be, unless the user says otherwise."""

_CHUNK: Final = 2**20
_ZSTD_PIECE: Final = 4096
"""How much zstd data to unpack at once: the format can grow 32,768 times in one step."""
_MAGIC: Final = ((b"\x1f\x8b", "gzip"), (b"\xfd7zXZ\x00", "xz"), (b"BZh", "bzip2"), (b"\x28\xb5\x2f\xfd", "zstd"))


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


def compression_of(data: bytes) -> str | None:
    r"""Return the name of the compression that a content starts like, None for none that is read.

    Example:
        >>> compression_of(b"\x1f\x8b\x08"), compression_of(b"HloModule m")
        ('gzip', None)
    """
    return next((name for magic, name in _MAGIC if data.startswith(magic)), None)


def read_file(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a file, uncompressed.

    Args:
        path: the file.
        max_bytes: the largest size taken, of the file and of what it unpacks to.

    Raises:
        InputError: it cannot be read, its compression is damaged or layered, or it is too large.
    """
    return uncompressed(read_raw_file(path, max_bytes=max_bytes), str(path), max_bytes=max_bytes)


def read_raw_file(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a file as it is.

    Args:
        path: the file.
        max_bytes: the largest size taken.

    Raises:
        InputError: it cannot be read or is too large.
    """
    try:
        with Path(path).open("rb") as file:
            status = os.fstat(file.fileno())
            regular = stat.S_ISREG(status.st_mode) and 0 < status.st_size <= max_bytes
            data = file.read() if regular else _read_at_most(file, max_bytes)  # at once: a copy less
    except (OSError, ValueError) as error:
        raise _unreadable(str(path), error) from error
    if data is None:
        raise _too_large(str(path), max_bytes)
    return data


def read_stream(stream: IO[bytes], path: str, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a stream to its end, uncompressed.

    Args:
        stream: a binary stream, e.g. ``sys.stdin.buffer``.
        path: what to call it in messages.
        max_bytes: the largest size taken.

    Raises:
        InputError: as :func:`read_file`.
    """
    return uncompressed(read_raw_stream(stream, path, max_bytes=max_bytes), path, max_bytes=max_bytes)


def read_raw_stream(stream: IO[bytes], path: str, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a stream to its end, as it is.

    Args:
        stream: a binary stream, e.g. ``sys.stdin.buffer``.
        path: what to call it in messages.
        max_bytes: the largest size taken.

    Raises:
        InputError: as :func:`read_raw_file`.
    """
    try:
        data = _read_at_most(stream, max_bytes)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if data is None:
        raise _too_large(path, max_bytes)
    return data


def uncompressed(data: bytes, path: str, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Take off one layer of compression, told by the content and not by the file's name.

    Args:
        data: any content.
        path: what to call it in messages.
        max_bytes: the largest result taken; nothing larger is ever held.

    Returns:
        The unpacked content; the same bytes where they are not compressed.

    Raises:
        InputError: the data are damaged or cut, compressed twice, or too large.
    """
    name = compression_of(data)
    if name is None:
        return data
    try:
        unpacked = _read_at_most(_stream(name, data, path), max_bytes)
    except InputError:
        raise
    except EOFError as error:
        reason = f"the {name} data are cut off"
        raise InputError(reason, path=path) from error
    except _errors() as error:
        reason = f"the {name} data are damaged: {error}"
        raise InputError(reason, path=path) from error
    if unpacked is None:
        raise _too_large(path, max_bytes)
    if compression_of(unpacked) is not None:
        reason = f"expected one layer of compression, found {name} around {compression_of(unpacked)}"
        raise InputError(reason, path=path)
    return unpacked


def _stream(name: str, data: bytes, path: str) -> _Stream:
    """Return a stream of the unpacked data."""
    match name:
        case "gzip":
            return gzip.GzipFile(fileobj=io.BytesIO(data))
        case "xz":
            return lzma.LZMAFile(io.BytesIO(data))
        case "bzip2":
            return bz2.BZ2File(io.BytesIO(data))
        case _:
            return _ZstdStream(data, path)


class _ZstdStream:
    """Unpacks zstd frames; unlike the library's own reader it notices when the last one is cut."""

    def __init__(self, data: bytes, path: str) -> None:
        try:
            import zstandard
        except ImportError:
            reason = "reading zstd data needs the package zstandard: pip install 'commlens[zstd]'"
            raise InputError(reason, path=path) from None
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._frame = self._new_frame()
        self._data = data
        self._position = 0

    def read(self, _size: int, /) -> bytes:
        """Return the next unpacked bytes, as many as come; none at the end."""
        while self._position < len(self._data):
            piece = self._data[self._position : self._position + _ZSTD_PIECE]
            if self._frame.eof:
                self._frame = self._new_frame()
            unpacked = self._frame.decompress(piece)
            self._position += len(piece) - len(self._frame.unused_data)
            if unpacked:
                return unpacked
        if not self._frame.eof:
            raise EOFError
        return b""


def _errors() -> tuple[type[Exception], ...]:
    """Return what the decompressors raise; zstandard's own error only where it is loaded."""
    zstandard = sys.modules.get("zstandard")
    extra = () if zstandard is None else (cast("type[Exception]", zstandard.ZstdError),)
    return (OSError, ValueError, zlib.error, lzma.LZMAError, *extra)


def _read_at_most(stream: _Stream, limit: int) -> bytes | None:
    """Read a stream to its end; None where it holds more than ``limit`` bytes."""
    gathered = io.BytesIO()
    while chunk := stream.read(_CHUNK):
        gathered.write(chunk)
        if gathered.tell() > limit:
            return None
    return gathered.getvalue()


def _too_large(path: str, limit: int) -> InputError:
    return InputError(f"holds more than the {limit:,} bytes that are taken; --max-bytes sets another limit", path=path)


def _unreadable(path: str, error: OSError | ValueError) -> InputError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return InputError(f"cannot be read: {reason}", path=path)
