"""Contents of files: compression by content, sizes, and the kinds of content that are told apart."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.errors import InputError
from commlens.hlo.compression import compression_of, read_file, read_stream, uncompressed
from commlens.hlo.content_kinds import content_kind
from proto_modules import containers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = b"HloModule m\nENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n"


def zstd(data: bytes) -> bytes:
    """Compress with zstd."""
    return import_module("zstandard").ZstdCompressor().compress(data)


COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zstd": zstd,
}


@pytest.mark.parametrize("name", COMPRESSIONS)
@given(data=st.binary(max_size=2000).filter(lambda data: compression_of(data) is None))
def test_one_layer_is_taken_off(name: str, data: bytes) -> None:
    """Whatever stands inside comes out."""
    assert uncompressed(COMPRESSIONS[name](data), "x") == data


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_several_members_are_one_content(name: str) -> None:
    """Compressed files may be joined end to end."""
    joined = COMPRESSIONS[name](TEXT) + COMPRESSIONS[name](b"") + COMPRESSIONS[name](TEXT)
    assert uncompressed(joined, "x") == TEXT + TEXT


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_the_name_of_a_file_means_nothing(name: str, tmp_path: Path) -> None:
    """Compressed data in a .txt and plain data in a .gz are both read."""
    packed, plain = tmp_path / "module.txt", tmp_path / "module.gz"
    packed.write_bytes(COMPRESSIONS[name](TEXT))
    plain.write_bytes(TEXT)
    assert read_file(packed) == read_file(plain) == TEXT


@pytest.mark.parametrize("name", COMPRESSIONS)
@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9])
def test_cut_data_are_refused(name: str, kept: float) -> None:
    """Half a file is no file."""
    packed = COMPRESSIONS[name](bytes(range(256)) * 64)
    with pytest.raises(InputError, match=f"^x: the {name} data are cut off$"):
        uncompressed(packed[: max(12, int(len(packed) * kept))], "x")


@pytest.mark.parametrize("name", ["gzip", "xz", "bzip2"])
def test_damaged_data_are_refused(name: str) -> None:
    """Each of these has a checksum."""
    packed = bytearray(COMPRESSIONS[name](bytes(range(256)) * 64))
    packed[len(packed) // 2] ^= 0xFF
    with pytest.raises(InputError, match=f"^x: the {name} data are (damaged|cut off)"):
        uncompressed(bytes(packed), "x")


@given(name=st.sampled_from(sorted(COMPRESSIONS)), place=st.integers(0, 10_000), value=st.integers(0, 255))
def test_one_wrong_byte_makes_no_other_error(name: str, place: int, value: int) -> None:
    """An error of ours or some content, never another error."""
    packed = bytearray(COMPRESSIONS[name](TEXT * 3))
    packed[place % len(packed)] = value
    with suppress(InputError):
        uncompressed(bytes(packed), "x")


def test_two_layers_are_refused() -> None:
    """Nobody compresses twice on purpose."""
    with pytest.raises(InputError, match="one layer of compression, found gzip around bzip2"):
        uncompressed(gzip.compress(bz2.compress(TEXT)), "x")


@pytest.mark.parametrize("name", COMPRESSIONS)
def test_a_small_file_cannot_become_a_large_content(name: str) -> None:
    """The limit holds while unpacking; what it allows is taken to the last byte."""
    packed = COMPRESSIONS[name](bytes(3_000_000))
    assert len(packed) < 10_000
    with pytest.raises(InputError, match="more than the 2,999,999 bytes"):
        uncompressed(packed, "x", max_bytes=2_999_999)
    assert len(uncompressed(packed, "x", max_bytes=3_000_000)) == 3_000_000


def test_files_and_streams_have_the_same_limit(tmp_path: Path) -> None:
    """A plain file is measured as well."""
    file = tmp_path / "m.txt"
    file.write_bytes(TEXT)
    for limit, fits in ((len(TEXT), True), (len(TEXT) - 1, False)):
        for read in (
            lambda: read_file(file, max_bytes=limit),  # noqa: B023 - called at once
            lambda: read_stream(io.BytesIO(TEXT), "-", max_bytes=limit),  # noqa: B023
        ):
            if fits:
                assert read() == TEXT
            else:
                with pytest.raises(InputError, match="--max-bytes"):
                    read()


def test_zstd_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is an extra."""
    packed = zstd(TEXT)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(InputError, match=r"pip install 'commlens\[zstd\]'"):
        uncompressed(packed, "x")


def test_a_file_that_cannot_be_opened_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No such file, a folder, a name that no file can have, no permission."""
    for path, why in ((tmp_path / "none", "No such file"), (tmp_path, "directory"), ("a\0b", "null")):
        with pytest.raises(InputError, match=why) as caught:
            read_file(path)
        assert caught.value.path == str(path)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(InputError, match=r"^x: cannot be read: Permission denied$"):
        read_file("x")


def test_a_stream_that_breaks_says_why() -> None:
    """Standard input may be closed."""
    stream = io.BytesIO()
    stream.close()
    with pytest.raises(InputError, match="^-: cannot be read"):
        read_stream(stream, "-")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (TEXT, "text"),
        (b"\xef\xbb\xbf" + TEXT, "text"),
        (b"\x1b[1m[INFO 12:00]\x1b[0m HloModule m\n", "text"),
        (b"\n\n%x = (f32[8], token[]) foo(%y)\n", "text"),
        (b"x =\r\n  f32[8] foo(y)\r\n", "text"),
        (b'ENTRY e {\n  x = f32[] foo(y), metadata={op_name="\xff\xfe"}\n}', "text"),
        (b"instructions {\n  x = f32[] parameter(0)\n}", "text"),
        (b'# c\nhlo < computations: { instructions { opcode: "add" } } >', "text form"),
        (b'HloModule m\nx = f32[] foo(y), metadata={op_name="instructions { opcode: "}', "text"),
        (b"Dear diary, x = 5\n", "unknown"),
        (b"define void @f() {\n  %x = load float, ptr %p\n}", "unknown"),
        (b'name: "a" count: 3\n', "unknown"),
        (b"\x7fELF\x02\x01\x01\x00", "binary"),
        ("HloModule m".encode("utf-16"), "binary"),
    ],
)
def test_kinds_are_told_from_content(data: bytes, kind: str) -> None:
    """Marks of HLO, fields of a text form, control characters."""
    assert content_kind(data) == kind


@pytest.mark.parametrize("name", containers())
def test_binary_protos_are_never_taken_for_text(name: str) -> None:
    """Not even from a later start, as they stand inside each other."""
    data = containers()[name]
    assert content_kind(data) == "binary"
    assert content_kind(b"\n" + data) == "binary"


@pytest.mark.parametrize(
    "data", [b"a" * 10**6, b"=" * 10**6, b"= " * 10**6, b"#" * 10**6, b"#\n" * 10**6, b"= (((" * 10**6]
)
def test_long_contents_without_a_module_take_no_time(data: bytes) -> None:
    """Every pattern is linear; a quadratic one would not come back."""
    assert content_kind(data) == "unknown"
