"""The header of a NEFF: 1,024 bytes, little endian, every byte of them accounted for.

Source: AWS's published description of the container and the bytes of a real file. There is no magic number.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from uuid import UUID

from commlens.errors import CommlensError
from commlens.neuron.rank_numbers import as_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

HEADER_SIZE: Final = 1024

PLAIN: Final = 1
"""``pkg_version`` of a plain tar archive; its hash is SHA-256."""

GZIPPED: Final = 2
"""``pkg_version`` of a gzipped tar archive; its hash is MD5 of the compressed bytes."""

FEATURES: Final[Mapping[int, str]] = MappingProxyType(
    {
        0x2: "collective_has_offset",
        0x4: "custom_ops",
        0x8: "coalesced_ccops",
        0x10: "queue_set_instances",
        0x20: "has_functions",
        0x40: "dynamic_pwp",
        0x80: "indirect_memcpy_32b_sem_wait",
        0x100: "indirect_memcpy_bound_check",
        0x200: "DMA_desc_higher_dim",
        0x400: "vnc (lnc > 1)",
        0x800: "dve perf mode",
        0x4000: "remote_sem",
        0x1000000: "unnamed (arch level > 39)",
        0x2000000: "large_tensor_support",
    }
)
"""The bits of ``feature_bits`` that have a known meaning."""

_NEWER: Final = 0x7FFFFFFFF8000000
"""Bits that the known loader takes for features of a compiler that is newer than itself."""

_NEWEST_MAJOR: Final = 2
_LAYOUT: Final = struct.Struct("<5Q128sI32s16s256sI64sQI468s")
_BUILD_SIZE: Final = 128
_NAME_SIZE: Final = 256
_HASH_SIZE: Final = 32
_TPB_SIZE: Final = 64
_PAD_SIZE: Final = 468
_NO_UUID: Final = UUID(int=0)


@dataclass(frozen=True, slots=True)
class NeffHeader:
    r"""The header of a NEFF, field by field in the order of the file.

    Texts are held without the zeros that fill them up; bytes that are no UTF-8 are kept as lone surrogates, so that
    every 1,024 bytes can be read and written back unchanged.

    Attributes:
        pkg_version: form of the archive: 1 plain tar, 2 gzipped tar.
        header_size: size of this header, in bytes.
        data_size: size of the archive behind it, as it stands in the file, in bytes.
        neff_version_major: version of the format.
        neff_version_minor: its minor part.
        neff_build_version: what built the file.
        num_tpb: said to be the number of cores needed; no reader is known to depend on it.
        hash: SHA-256 (32 bytes), or MD5 (16 bytes) and a filling.
        uuid: identity of the file.
        name: name of the program.
        requested_tpb_count: number of cores that were asked for.
        tpb_per_node: cores per node, a byte each.
        feature_bits: what a loader must be able to do, see :data:`FEATURES`.
        lnc_size: physical cores per logical core; 0 in files that do not say it.
        pad: what fills the header up.

    Raises:
        CommlensError: a number or text does not fit its field.

    Example:
        >>> header = NeffHeader(pkg_version=2, data_size=1709, name="x", lnc_size=1)
        >>> len(header.to_bytes()), NeffHeader.from_bytes(header.to_bytes()) == header
        (1024, True)
    """

    pkg_version: int = GZIPPED
    header_size: int = HEADER_SIZE
    data_size: int = 0
    neff_version_major: int = 2
    neff_version_minor: int = 0
    neff_build_version: str = ""
    num_tpb: int = 1
    hash: bytes = bytes(_HASH_SIZE)
    uuid: UUID = _NO_UUID
    name: str = ""
    requested_tpb_count: int = 1
    tpb_per_node: bytes = bytes(_TPB_SIZE)
    feature_bits: int = 0
    lnc_size: int = 0
    pad: bytes = bytes(_PAD_SIZE)

    def __post_init__(self) -> None:
        for name in ("pkg_version", "header_size", "data_size", "neff_version_major", "neff_version_minor"):
            _check_number(name, getattr(self, name), 64)
        _check_number("feature_bits", self.feature_bits, 64)
        for name in ("num_tpb", "requested_tpb_count", "lnc_size"):
            _check_number(name, getattr(self, name), 32)
        for name, size in (("hash", _HASH_SIZE), ("tpb_per_node", _TPB_SIZE), ("pad", _PAD_SIZE)):
            _check_length(name, getattr(self, name), size)
        _check_kind("uuid", self.uuid, UUID, "a uuid.UUID")
        _check_text("neff_build_version", self.neff_build_version, _BUILD_SIZE)
        _check_text("name", self.name, _NAME_SIZE)

    @classmethod
    def from_bytes(cls, data: bytes) -> NeffHeader:
        """Read the header at the beginning of some bytes; what its values mean is not judged.

        Raises:
            CommlensError: there are fewer than 1,024 bytes.
        """
        if len(data) < HEADER_SIZE:
            raise _too_short(len(data))
        (pkg, size, data_size, major, minor, build, tpb, digest, uuid, name, requested, per_node, bits, lnc, pad) = (
            _LAYOUT.unpack_from(data)
        )
        return cls(
            pkg_version=pkg,
            header_size=size,
            data_size=data_size,
            neff_version_major=major,
            neff_version_minor=minor,
            neff_build_version=_text(build),
            num_tpb=tpb,
            hash=digest,
            uuid=UUID(bytes=uuid),
            name=_text(name),
            requested_tpb_count=requested,
            tpb_per_node=per_node,
            feature_bits=bits,
            lnc_size=lnc,
            pad=pad,
        )

    def to_bytes(self) -> bytes:
        """Return the 1,024 bytes of the header."""
        return _LAYOUT.pack(
            self.pkg_version,
            self.header_size,
            self.data_size,
            self.neff_version_major,
            self.neff_version_minor,
            _encoded(self.neff_build_version),
            self.num_tpb,
            self.hash,
            self.uuid.bytes,
            _encoded(self.name),
            self.requested_tpb_count,
            self.tpb_per_node,
            self.feature_bits,
            self.lnc_size,
            self.pad,
        )

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features, lowest bit first; bits without a known meaning in hexadecimal.

        Example:
            >>> NeffHeader(feature_bits=0x409).features
            ('0x1', 'coalesced_ccops', 'vnc (lnc > 1)')
        """
        bits = (1 << place for place in range(self.feature_bits.bit_length()) if self.feature_bits >> place & 1)
        return tuple(FEATURES.get(bit, hex(bit)) for bit in bits)

    def check(self, file_size: int) -> None:
        """Refuse a header that the known loader refuses.

        Args:
            file_size: size of the whole file, header included, in bytes.

        Raises:
            CommlensError: the file is too short, the version or a feature is not supported, or sizes do not agree.

        Source: the checks of the loader, in their order, as documented. It asks only that the stated size of the header
        is less than that of the file; that any other than 1,024 bytes is refused is ours, for the archive is known to
        stand there, and no file is known that states another.
        """
        if file_size < HEADER_SIZE:
            raise _too_short(file_size)
        if self.header_size != HEADER_SIZE:
            found = f"found {self.header_size}"
            msg = f"Invalid NEFF header size: expected one that states {HEADER_SIZE} bytes, {found}"
            raise CommlensError(msg)
        if file_size == HEADER_SIZE:
            found = "found the end of the file"
            msg = f"Invalid NEFF header size: expected an archive behind the header of {HEADER_SIZE} bytes, {found}"
            raise CommlensError(msg)
        if self.neff_version_major > _NEWEST_MAJOR:
            found = f"{self.neff_version_major}.{self.neff_version_minor}"
            msg = f"NEFF version not supported: expected at most version {_NEWEST_MAJOR}, found {found}"
            raise CommlensError(msg)
        newer = self.feature_bits & _NEWER
        if self.neff_version_major == _NEWEST_MAJOR and newer:
            msg = f"this NEFF needs features of a newer compiler than is known: feature bits {newer:#x}"
            raise CommlensError(msg)
        if self.data_size > file_size - HEADER_SIZE:
            msg = (
                f"Invalid NEFF data size: expected at most the {file_size - HEADER_SIZE} bytes behind the header, "
                f"found {self.data_size}"
            )
            raise CommlensError(msg)
        if self.pkg_version not in (PLAIN, GZIPPED):
            known = f"{PLAIN} (tar) or {GZIPPED} (gzip)"
            msg = f"NEFF package version not supported: expected {known}, found {self.pkg_version}"
            raise CommlensError(msg)


def _too_short(size: int) -> CommlensError:
    msg = f"Invalid number of NEFF bytes received: expected a header of {HEADER_SIZE} bytes, found {size} bytes in all"
    return CommlensError(msg)


def _text(field: bytes) -> str:
    return field.rstrip(b"\0").decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _check_number(name: str, value: int, bits: int) -> None:
    number = as_integer(value)
    if number is None or not 0 <= number < 1 << bits:
        msg = f"expected {name} of a NEFF header to fit {bits} bits without a sign, found {value!r}"
        raise CommlensError(msg)


def _check_kind(name: str, value: object, kind: type, what: str) -> None:
    if not isinstance(value, kind):
        msg = f"expected {name} of a NEFF header to be {what}, found {value!r}"
        raise CommlensError(msg)


def _check_length(name: str, value: bytes, size: int) -> None:
    _check_kind(name, value, bytes, "bytes")
    if len(value) != size:
        msg = f"expected {name} of a NEFF header to have {size} bytes, found {len(value)}"
        raise CommlensError(msg)


def _check_text(name: str, value: str, size: int) -> None:
    """Refuse a text that would be another one after writing and reading it."""
    _check_kind(name, value, str, "text")
    try:
        field = _encoded(value)
    except UnicodeEncodeError as error:
        msg = f"expected {name} of a NEFF header to be text that UTF-8 can write, found {value!r}"
        raise CommlensError(msg) from error
    if len(field) > size:
        msg = f"expected {name} of a NEFF header to fit {size} bytes, found {len(field)}"
        raise CommlensError(msg)
    if _text(field) != value:
        msg = f"expected {name} of a NEFF header to end before its first filling zero, found {value!r}"
        raise CommlensError(msg)
