"""The header of a NEFF: every byte read and written, and what a loader refuses."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.errors import CommlensError
from commlens.neuron import NeffHeader
from commlens.neuron.neff import FEATURES, HEADER_SIZE
from neff_files import LAYOUT
from neuron_cases import section

if TYPE_CHECKING:
    from collections.abc import Callable

GOOD = NeffHeader(data_size=512)
"""A header that is accepted in a file of 2,048 bytes."""


def known_instance() -> bytes:
    """Return the header of the one published file, from its non-zero bytes."""
    data = bytearray(HEADER_SIZE)
    for offset, run in section("neff_header_known_instance")["hex_nonzero_runs"].items():
        content = bytes.fromhex(run)
        data[int(offset) : int(offset) + len(content)] = content
    return bytes(data)


def test_the_published_header() -> None:
    """The bytes are those that were published, and every field is what it was said to be."""
    case = section("neff_header_known_instance")
    data = known_instance()
    assert hashlib.sha256(data).hexdigest() == case["sha256_of_1024_bytes"]
    header = NeffHeader.from_bytes(data)
    decoded = dict(case["decoded"])
    assert header.hash == bytes.fromhex(decoded.pop("hash16")) + b"0" * 16
    assert decoded.pop("hash_tail") == "ASCII 0 x16"
    assert {name: getattr(header, name) for name in decoded} == {**decoded, "uuid": UUID(decoded["uuid"])}
    assert (header.tpb_per_node, header.pad, header.features) == (bytes(64), bytes(468), ())
    assert header.to_bytes() == data


def test_layout() -> None:
    """Fields stand at the documented places, one behind the other."""
    layout = section("neff_header_layout")
    assert (layout["struct_format"], struct.calcsize(LAYOUT), layout["size"]) == (LAYOUT, HEADER_SIZE, HEADER_SIZE)
    names = [field["name"] for field in layout["fields"]]
    assert [field.name for field in fields(NeffHeader)] == names[:-1]
    for field in layout["fields"][:-1]:
        lone = bytearray(HEADER_SIZE)
        lone[field["off"]] = 1
        changed = NeffHeader.from_bytes(bytes(lone))
        blank = NeffHeader.from_bytes(bytes(HEADER_SIZE))
        assert [name for name in names[:-1] if getattr(changed, name) != getattr(blank, name)] == [field["name"]]


@given(st.binary(min_size=HEADER_SIZE, max_size=HEADER_SIZE))
def test_bytes_to_header_to_bytes(data: bytes) -> None:
    """Whatever stands in a header, also in names that are no text, comes out unchanged."""
    assert NeffHeader.from_bytes(data).to_bytes() == data


def encodable(size: int) -> Callable[[str], bool]:
    """Return whether a text fits a field and ends before the zeros that fill it."""
    return lambda text: len(text.encode()) <= size and not text.endswith("\0")


words = {64: st.integers(0, 2**64 - 1), 32: st.integers(0, 2**32 - 1)}


@given(
    st.builds(
        NeffHeader,
        pkg_version=words[64],
        header_size=words[64],
        data_size=words[64],
        neff_version_major=words[64],
        neff_version_minor=words[64],
        neff_build_version=st.text(max_size=40).filter(encodable(128)),
        num_tpb=words[32],
        hash=st.binary(min_size=32, max_size=32),
        uuid=st.uuids(),
        name=st.text(max_size=80).filter(encodable(256)),
        requested_tpb_count=words[32],
        tpb_per_node=st.binary(min_size=64, max_size=64),
        feature_bits=words[64],
        lnc_size=words[32],
        pad=st.binary(min_size=468, max_size=468),
    )
)
def test_header_to_bytes_to_header(header: NeffHeader) -> None:
    """A header that is written and read is the same one, and its bytes are those of the documented layout."""
    data = header.to_bytes()
    assert NeffHeader.from_bytes(data) == header
    values = [getattr(header, field.name) for field in fields(header)]
    raw = [value.encode() if isinstance(value, str) else value for value in values]
    assert data == struct.pack(LAYOUT, *(value.bytes if isinstance(value, UUID) else value for value in raw))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        pytest.param({"pkg_version": -1}, "pkg_version of a NEFF header to fit 64 bits", id="negative"),
        pytest.param({"lnc_size": 2**32}, "lnc_size of a NEFF header to fit 32 bits", id="wide"),
        pytest.param({"hash": b"x"}, "hash of a NEFF header to have 32 bytes, found 1", id="short-hash"),
        pytest.param({"name": "x" * 257}, "name of a NEFF header to fit 256 bytes, found 257", id="long-name"),
        pytest.param({"name": "x\0"}, "name of a NEFF header to end before its first filling zero", id="filling"),
        pytest.param({"name": "\ud800"}, "name of a NEFF header to be text that UTF-8 can write", id="no-text"),
        pytest.param({"name": "\udcc3\udca9"}, "name of a NEFF header to end before", id="text-in-pieces"),
    ],
)
def test_values_that_do_not_fit(values: dict[str, Any], says: str) -> None:
    """What could not be written and read back is refused when the header is made."""
    with pytest.raises(CommlensError) as caught:
        NeffHeader(**values)
    assert says in str(caught.value)


@pytest.mark.parametrize("bit", FEATURES)
def test_names_of_features(bit: int) -> None:
    """Every bit with a known meaning has its name, each alone and all together."""
    names = {int(bit, 16): name for bit, name in section("neff_feature_bits_names").items()}
    assert NeffHeader(feature_bits=bit).features == (names[bit],)
    assert NeffHeader(feature_bits=sum(names)).features == tuple(names[bit] for bit in sorted(names))


# --- what a loader refuses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "size", "says"),
    [
        pytest.param({}, 1023, "Invalid number of NEFF bytes received: ", id="short-file"),
        pytest.param(
            {"data_size": 0},
            1024,
            "Invalid NEFF header size: expected an archive behind the header of 1024 bytes, found",
            id="no-archive",
        ),
        pytest.param({"header_size": 2048}, 2048, "Invalid NEFF header size: ", id="header-over-all"),
        pytest.param(
            {"header_size": 512},
            2048,
            "Invalid NEFF header size: expected one that states 1024 bytes, found 512",
            id="small",
        ),
        pytest.param({"neff_version_major": 3}, 2048, "NEFF version not supported: ", id="version"),
        pytest.param({"feature_bits": 1 << 27}, 2048, "features of a newer compiler", id="feature"),
        pytest.param({"feature_bits": 1 << 62 | 2}, 2048, "feature bits 0x4000000000000000", id="highest-feature"),
        pytest.param({"data_size": 1025}, 2048, "Invalid NEFF data size: ", id="data-beyond-the-end"),
        pytest.param({"data_size": 2**64 - 1}, 2048, "Invalid NEFF data size: ", id="data-far-beyond"),
        pytest.param({"pkg_version": 3}, 2048, "NEFF package version not supported: ", id="package"),
        pytest.param({"pkg_version": 0}, 2048, "NEFF package version not supported: ", id="no-package"),
    ],
)
def test_what_is_refused(values: dict[str, Any], size: int, says: str) -> None:
    """The words are those of the documented loader."""
    header = replace(GOOD, **values)
    with pytest.raises(CommlensError) as caught:
        header.check(size)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("values", "size"),
    [
        pytest.param({}, 2048, id="more-bytes-than-stated"),
        pytest.param({"data_size": 1024}, 2048, id="exactly"),
        pytest.param({"pkg_version": 1}, 2048, id="plain"),
        pytest.param({"neff_version_major": 1, "feature_bits": 1 << 27}, 2048, id="features-of-an-old-version"),
        pytest.param({"feature_bits": (1 << 27) - 1}, 2048, id="known-features"),
        pytest.param({"feature_bits": 1 << 63}, 2048, id="bit-that-is-not-asked"),
        pytest.param({"num_tpb": 0, "lnc_size": 0, "hash": bytes(32)}, 2048, id="no-gates"),
    ],
)
def test_what_is_accepted(values: dict[str, Any], size: int) -> None:
    """Only the documented checks are made."""
    header = replace(GOOD, **values)
    header.check(size)
    assert header.data_size <= size - HEADER_SIZE


def test_fewer_bytes_than_a_header() -> None:
    """There is nothing to be read."""
    with pytest.raises(CommlensError, match="Invalid number of NEFF bytes received: .*, found 1023 bytes in all"):
        NeffHeader.from_bytes(GOOD.to_bytes()[:-1])
