"""A NEFF as a whole: header, hash, archive, subgraphs."""

from __future__ import annotations

import gzip
import io
import json
import re
import struct
import tarfile
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from commlens.errors import InputError
from commlens.neuron import CCInfo, read_neff
from commlens.neuron.neff import NeffHeader, container, looks_like_neff
from commlens.neuron.neff.kelf import graphs_of
from neff_files import KELF, NEFF_JSON, as_json, definition, neff, sealed, tar_member, tar_of
from neuron_cases import cases, section

if TYPE_CHECKING:
    from pathlib import Path

ONE = definition(replica_groups=[[[0, 1, 2, 3], [4, 5, 6, 7]]])
OTHER = definition(replica_groups=[[[0, 1]]])
GROUPS = [[[0, 1, 2, 3], [4, 5, 6, 7]]]


def refusal(data: bytes, **options: Any) -> str:
    """Return why a NEFF is refused, without its name."""
    with pytest.raises(InputError) as caught:
        CCInfo.from_neff(data, **options)
    assert caught.value.path is not None
    return caught.value.reason


@pytest.mark.parametrize("pkg", [1, 2], ids=["plain", "gzip"])
@pytest.mark.parametrize("dialect", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT], ids=["gnu", "pax"])
def test_packages_and_dialects(pkg: int, dialect: int, tmp_path: Path) -> None:
    """Every kind of archive gives its header, members, subgraph and CC info, from a path and from bytes."""
    data = neff(ONE, pkg=pkg, dialect=dialect, lnc_size=2)
    file = tmp_path / "step.neff"
    file.write_bytes(data)
    for source in (data, bytearray(data), memoryview(data), file, str(file)):
        found = read_neff(source)
        assert (found.header.pkg_version, found.header.lnc_size, found.hash_matches) == (pkg, 2, True)
        assert found.header == NeffHeader.from_bytes(data)
        assert [(member.name, member.content) for member in found.members] == [
            ("kelf-0.json", None),
            ("neff.json", None),
            ("sg00/def.json", None),
            ("sg00/weights.npy", None),
        ]
        assert [tuple(graph) for graph in found.subgraphs] == [("sg00", "sg00/def.json", ONE)]
        assert CCInfo.from_neff(source) == CCInfo.from_neff(found) == CCInfo(GROUPS)


def test_miniature() -> None:
    """The miniature definition says the same from inside a NEFF as alone."""
    content = section("miniature_def_json")
    assert CCInfo.from_neff(neff(as_json(content))) == CCInfo.from_def_json(content)


def test_compressed_as_a_whole(tmp_path: Path) -> None:
    """A .neff that somebody compressed once more is read."""
    file = tmp_path / "step.neff.gz"
    file.write_bytes(gzip.compress(neff(ONE), mtime=0))
    assert CCInfo.from_neff(file) == CCInfo.from_neff(file.read_bytes()) == CCInfo(GROUPS)


def test_bytes_behind_the_archive_do_not_matter() -> None:
    """The loader asks only that the archive fits the file."""
    assert CCInfo.from_neff(neff(ONE) + b"more") == CCInfo(GROUPS)


# --- hash -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pkg", [1, 2], ids=["sha256", "md5"])
def test_hash(pkg: int) -> None:
    """A hash that does not match is noted, and refused where that is asked for."""
    good, bad = neff(ONE, pkg=pkg), neff(ONE, pkg=pkg, hash=bytes(32))
    assert CCInfo.from_neff(good, validate_hash=True).notes == ()
    assert (read_neff(good).hash_matches, read_neff(bad).hash_matches) == (True, False)
    info = CCInfo.from_neff(bad)
    assert info == CCInfo(GROUPS)
    assert info.notes == ("the archive does not have the hash that the header states: the file was changed or damaged",)
    assert refusal(bad, validate_hash=True) == (
        "expected the archive to have the hash that the header states, found another"
    )


def test_the_filling_of_a_short_hash_does_not_count() -> None:
    """MD5 takes half of the field; what stands in the other half is not compared."""
    data = neff(ONE)
    header = NeffHeader.from_bytes(data)
    assert read_neff(neff(ONE, hash=header.hash[:16] + bytes(16))).hash_matches
    assert not read_neff(neff(ONE, hash=bytes(16) + header.hash[16:])).hash_matches


# --- what is refused ------------------------------------------------------------------------------------------------


GATES = {
    "file shorter than 1024 bytes": (neff(ONE)[:1000], "Invalid number of NEFF bytes received"),
    "neff_version_major = 3": (neff(ONE, neff_version_major=3), "version not supported"),
    "neff_version_major = 2, feature_bits = 1<<27": (neff(ONE, feature_bits=1 << 27), "newer compiler"),
    "neff_version_major = 1, feature_bits = 1<<27": (neff(ONE, neff_version_major=1, feature_bits=1 << 27), None),
    "data_size > file_size - 1024": (neff(ONE, data_size=10**6), "Invalid NEFF data size"),
    "pkg_version = 2, md5(data) != hash[0:16]": (neff(ONE, hash=bytes(32)), "hash"),
    "pkg_version = 1": (neff(ONE, pkg=1), None),
}


@pytest.mark.parametrize("case", cases("neff_header_gates"))
def test_gates_of_cases(case: dict[str, str]) -> None:
    """Files that the documented loader refuses are refused in its words; the hash only where it is asked for."""
    data, words = GATES[case["case"]]
    if words is None:
        assert CCInfo.from_neff(data, validate_hash=True) == CCInfo(GROUPS)
        return
    assert words in refusal(data, validate_hash=True)
    if words == "hash":
        assert CCInfo.from_neff(data) == CCInfo(GROUPS)
    else:
        assert words in case["expected"]


def resized(data: bytes, size: int) -> bytes:
    """Cut a NEFF, and let its header say so."""
    return data[:16] + struct.pack("<Q", size - 1024) + data[24:size]


def end_of(archive: bytes) -> int:
    """Return where the block of zeros ends that stands behind the last member; more of them only fill up."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        last = opened.getmembers()[-1]
    return last.offset_data - -last.size // 512 * 512 + 512


@pytest.mark.parametrize("pkg", [1, 2], ids=["plain", "gzip"])
def test_cut_at_every_64th_byte(pkg: int) -> None:
    """A file that is cut is refused, whether or not its header admits it."""
    data = neff(ONE, pkg=pkg)
    needed = len(data) if pkg == 2 else 1024 + end_of(data[1024:])
    for cut in range(0, needed, 64):
        said = refusal(data[:cut])
        assert said.startswith("Invalid number of NEFF bytes" if cut < 1024 else "Invalid NEFF "), cut
        if cut > 1024:
            assert re.search("cut off|no subgraph|Compressed file ended", refusal(resized(data, cut))), cut


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(b"", "Invalid number of NEFF bytes received", id="nothing"),
        pytest.param(sealed(b"", pkg=1, data_size=0) + b"x", "the archive is cut off", id="no-archive"),
        pytest.param(sealed(bytes(1024)), "expected the description of a subgraph", id="empty-archive"),
        pytest.param(sealed(tar_of([("info.json", b"{}")])), "such as sg00/def.json, found none", id="no-subgraph"),
        pytest.param(sealed(b"x" * 1024, pkg=1), "the header of a member", id="no-tar"),
        pytest.param(sealed(b"x" * 600, pkg=1, pkg_version=2), "cannot be read", id="no-gzip"),
        pytest.param(neff(ONE, pkg_version=1), "found gzip data, which are version 2", id="gzip-in-version-1"),
        pytest.param(neff(b"{"), "<bytes>: sg00/def.json:1:2: ", id="no-json"),
        pytest.param(neff(b"[]"), "expected a JSON object, found a list of 0", id="list"),
        pytest.param(neff(definition(replica_groups=[[0]])), "expected replica_groups[0][0]", id="2-d"),
        pytest.param(sealed(tar_of([("../sg00/def.json", ONE)])), "names that stay inside", id="upwards"),
        pytest.param(sealed(tar_member("sg00/def.json", kind=tarfile.SYMTYPE) + bytes(1024)), "a symbolic", id="link"),
    ],
)
def test_what_is_no_neff(data: bytes, says: str) -> None:
    """Each fault is named."""
    with pytest.raises(InputError) as caught:
        CCInfo.from_neff(data)
    assert str(caught.value).startswith("<bytes>: ")
    assert says in str(caught.value)


def test_a_damaged_gzip_archive_is_refused() -> None:
    """The checksum of the compressed data is looked at, though the archive in it has ended before."""
    data = bytearray(neff(ONE))
    data[-8] ^= 1
    assert "cannot be read: CRC check failed" in refusal(bytes(data))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """The reason is the system's."""
    with pytest.raises(InputError, match="nothing.neff: cannot be read: No such file"):
        read_neff(tmp_path / "nothing.neff")


def bomb(name: str, size: int) -> bytes:
    """Return a small NEFF whose archive unpacks to a member of zeros."""
    target = io.BytesIO()
    with gzip.GzipFile(fileobj=target, mode="wb", mtime=0, compresslevel=1) as stream:
        stream.write(tar_member(name, size=size))
        for _ in range(size // 2**20):
            stream.write(bytes(2**20))
        stream.write(tar_of([("sg00/def.json", ONE)]))
    zipped = target.getvalue()
    return sealed(zipped, pkg=1, pkg_version=2)


def test_a_bomb_costs_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What unpacks to more than is taken is refused when that much has come; nothing of it is held or written."""
    monkeypatch.chdir(tmp_path)
    data = bomb("sg00/weights.npy", 48 * 2**20)
    assert len(data) < 2**19
    tracemalloc.start()
    try:
        assert refusal(data, max_bytes=32 * 2**20).startswith("holds more than the 33,554,432 bytes that are taken")
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()
    assert list(tmp_path.iterdir()) == []
    assert CCInfo.from_neff(data) == CCInfo(GROUPS)


def test_weights_are_passed_over(tmp_path: Path) -> None:
    """A file is read as a stream: weights of some size are never held."""
    file = tmp_path / "large.neff"
    file.write_bytes(sealed(tar_of([("sg00/def.json", ONE), ("sg00/weights.npy", bytes(24 * 2**20))]), pkg=1))
    tracemalloc.start()
    try:
        assert CCInfo.from_neff(file) == CCInfo(GROUPS)
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


# --- subgraphs ------------------------------------------------------------------------------------------------------


def test_subgraphs_that_agree() -> None:
    """Two cores of one logical core have the same CC info, which is said once."""
    info = CCInfo.from_neff(neff({"sg00/def.json": ONE, "sg01/def.json": ONE}))
    assert (info, info.notes) == (CCInfo(GROUPS), ())


def test_subgraphs_that_differ() -> None:
    """The first one counts, as it does for the documented reader, and the others are named."""
    info = CCInfo.from_neff(neff({"sg01/def.json": OTHER, "sg00/def.json": ONE, "sg02/def.json": definition()}))
    assert info == CCInfo(GROUPS)
    assert info.notes == (
        "the subgraphs say different things of their workers: sg00/def.json counts here, as it does for the "
        "documented reader; different from it: sg01/def.json, sg02/def.json",
    )


@pytest.mark.parametrize("case", cases("neff_member_regex"))
def test_the_first_subgraph_of_cases(case: dict[str, Any]) -> None:
    """Members are found by the documented pattern and taken in the order of what it matches."""
    members = case["members"]
    hits = re.findall(case["pattern"], " ".join(members))
    assert hits == case.get("findall_hits", hits)
    first = graphs_of({}, members)[0].definition
    assert first.endswith(case["first_after_sort"])
    assert sorted(hits)[0] == case["first_after_sort"]
    contents = {name: ONE if name == first else OTHER for name in members}
    assert CCInfo.from_neff(sealed(tar_of(contents.items()))) == CCInfo(GROUPS)


def graph(name: str, member: str) -> dict[str, str]:
    """Return a graph of a kelf."""
    return {"name": name, "definition": member}


def with_kelf(kelf: object, **members: bytes) -> bytes:
    """Return a NEFF with a kelf and some members, whose names are written with two low lines for a slash."""
    files = {name.replace("__", "/") + ".json": content for name, content in members.items()}
    return sealed(tar_of([("kelf-0.json", as_json(kelf)), *files.items()]))


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(
            with_kelf({"graphs": [graph("g", "sg01/def.json")]}, sg00__def=ONE, sg01__def=OTHER),
            [("sg00", "sg00/def.json"), ("g", "sg01/def.json")],
            id="the-kelf-names-it-and-the-first-counts",
        ),
        pytest.param(
            with_kelf({"graphs": [graph("g", "./sg00/def.json")]}, sg00__def=ONE),
            [("g", "sg00/def.json")],
            id="with-a-dot",
        ),
        pytest.param(
            with_kelf({"graphs": [graph("sg00", "def.json")]}, sg00__def=ONE),
            [("sg00", "sg00/def.json")],
            id="beside-it",
        ),
        pytest.param(
            with_kelf({"graphs": [graph("g", "other/core.json")]}, other__core=ONE),
            [("g", "other/core.json")],
            id="another-name",
        ),
        pytest.param(
            with_kelf({"graphs": [graph("g", "sg07/def.json")]}, sg00__def=ONE),
            [("sg00", "sg00/def.json")],
            id="dangling",
        ),
        pytest.param(with_kelf({"graphs": "none"}, sg00__def=ONE), [("sg00", "sg00/def.json")], id="no-graphs"),
        pytest.param(with_kelf({"graphs": [1, {}]}, sg00__def=ONE), [("sg00", "sg00/def.json")], id="strange-graphs"),
        pytest.param(with_kelf([], sg00__def=ONE), [("sg00", "sg00/def.json")], id="no-object"),
        pytest.param(sealed(tar_of([("sg00/def.json", ONE)])), [("sg00", "sg00/def.json")], id="no-kelf"),
        pytest.param(
            sealed(tar_of([("sgLnk/sg00/def.json", ONE)])), [("sg00", "sgLnk/sg00/def.json")], id="linked-folder"
        ),
        pytest.param(
            sealed(
                tar_of(
                    [
                        ("kelf-0.json", as_json({"graphs": [graph("a", "sg00/def.json")]})),
                        ("kelf-1.json", as_json({"graphs": [graph("b", "sg01/def.json")]})),
                        ("neff.json", json.dumps(NEFF_JSON).replace("kelf-0", "kelf-1").encode()),
                        ("sg00/def.json", ONE),
                        ("sg01/def.json", OTHER),
                    ]
                )
            ),
            [("sg00", "sg00/def.json"), ("b", "sg01/def.json")],
            id="neff-json-names-the-kelf",
        ),
        pytest.param(
            sealed(tar_of([("kelf-a.json", as_json(KELF)), ("sg00/def.json", ONE)])),
            [("sg00", "sg00/def.json")],
            id="old-name",
        ),
    ],
)
def test_the_way_to_a_subgraph(data: bytes, found: list[tuple[str, str]]) -> None:
    """neff.json names the kelf, the kelf names the definitions; what leads nowhere is made up for by the names."""
    assert [(each.name, each.member) for each in read_neff(data).subgraphs] == found
    assert CCInfo.from_neff(data) == CCInfo(GROUPS)


# --- what it looks like ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param(neff(ONE)[:8], True, id="gzip"),
        pytest.param(neff(ONE, pkg=1)[:1024], True, id="plain"),
        pytest.param(neff(ONE, pkg_version=77), True, id="unknown-package"),
        pytest.param(neff(ONE)[:7], False, id="too-short-to-say"),
        pytest.param(b"HloModule m\n", False, id="text"),
        pytest.param(b"\x0a\x01m\x12\x04main\x1a", False, id="proto"),
        pytest.param(b'{"a":  1}', False, id="json"),
        pytest.param(bytes(1024), False, id="zeros"),
    ],
)
def test_what_looks_like_a_neff(head: bytes, expected: bool) -> None:
    """Only a small number of eight bytes does, whatever the number."""
    assert looks_like_neff(head) is expected


def test_the_cap_is_that_of_all_inputs() -> None:
    """Without another limit the usual one holds."""
    assert container.MAX_BYTES == 8 * 2**30


@pytest.mark.parametrize(
    "groups",
    [b"[" + b"[]," * (1 << 21) + b"[]]", b"[" + b"[[0]]," * 5000 + b"[[0]]]"],
    ids=["lists", "topologies"],
)
def test_a_small_file_does_not_become_a_large_object(groups: bytes) -> None:
    """Lists that compress to nothing are counted before they are made."""
    data = sealed(tar_of([("sg00/def.json", b'{"replica_groups": ' + groups + b"}")]))
    with pytest.raises(InputError, match="expected at most"):
        CCInfo.from_neff(data)


def test_what_the_kelf_names_alone_comes_last() -> None:
    """A description that the documented reader would not find stands behind those it finds, and is said to differ."""
    data = with_kelf({"graphs": [graph("a", "a/def.json")]}, a__def=OTHER, sg00__def=ONE)
    neff = read_neff(data)
    assert [each.member for each in neff.subgraphs] == ["sg00/def.json", "a/def.json"]
    assert "sg00/def.json counts here, as it does for the documented reader" in CCInfo.from_neff(data).notes[0]
