"""Archives of strangers: both dialects are read, what leads out of the archive or lies about itself is refused."""

from __future__ import annotations

import io
import tarfile
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.errors import CommlensError
from commlens.neuron.neff import archive
from commlens.neuron.neff.archive import Member, read_members
from neff_files import tar_member, tar_of
from neuron_cases import cases

if TYPE_CHECKING:
    from collections.abc import Callable

END = bytes(1024)
MAX_BYTES = 2**24


def everything(_name: str) -> bool:
    """Want every member."""
    return True


def members(data: bytes, wanted: Callable[[str], bool] = everything, max_bytes: int = MAX_BYTES) -> list[Member]:
    """Read an archive to its end."""
    return list(read_members(io.BytesIO(data), wanted, max_bytes=max_bytes))


def refusal(data: bytes, wanted: Callable[[str], bool] = everything, max_bytes: int = MAX_BYTES) -> str:
    """Return why an archive is refused."""
    with pytest.raises(CommlensError) as caught:
        members(data, wanted, max_bytes)
    return str(caught.value)


DIALECTS = {"gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
LONG = "sg00/" + "x" * 300 + "/def.json"
FILES = [("sg00/", b""), ("sg00/def.json", b"{}"), ("é.json", b"x" * 1000), (LONG, b"long"), ("empty", b"")]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS.keys())
def test_dialects(dialect: int) -> None:
    """Folders are left out; names of any length and script come with their contents."""
    found = members(tar_of(FILES, dialect))
    assert found == [Member(name, len(content), content) for name, content in FILES[1:]]


names = st.text(st.characters(exclude_characters="/\\\0", exclude_categories=("Cs",)), min_size=1, max_size=120)
files = st.lists(st.tuples(names.filter(lambda name: set(name) != {"."}), st.binary(max_size=1500)), max_size=5)


@given(files, st.sampled_from(sorted(DIALECTS.values())))
def test_what_is_packed_comes_out(files: list[tuple[str, bytes]], dialect: int) -> None:
    """The standard library's packing is read back: names, sizes, contents, order."""
    unique = list(dict(files).items())
    assert [(name, content) for name, _, content in members(tar_of(unique, dialect))] == unique


def test_only_wanted_members_are_kept() -> None:
    """The others are named with their sizes."""
    found = members(tar_of(FILES), lambda name: name == "sg00/def.json")
    assert [(member.name, member.content) for member in found if member.content is not None] == [
        ("sg00/def.json", b"{}")
    ]
    assert [member.size for member in found] == [2, 1000, 4, 0]


def test_a_leading_dot_is_dropped() -> None:
    """``./kelf-0.json`` is ``kelf-0.json``."""
    assert [member.name for member in members(tar_of([("./", b""), ("./kelf-0.json", b"")]))] == ["kelf-0.json"]


@pytest.mark.parametrize("case", cases("neff_tar_walk"))
def test_walk_of_cases(case: dict[str, str]) -> None:
    """Folders are passed over; a name that leads out of the archive is refused though the loader keeps it."""
    data = tar_of([(case["member"], b""), ("kelf-0.json", b"")])
    if "refuse" in case["expected"]:
        assert "expected names that stay inside the archive, found '../x'" in refusal(data)
    else:
        assert members(data)[-1].name == "kelf-0.json"


# --- hostile --------------------------------------------------------------------------------------------------------


HOSTILE = {
    "absolute": (tar_member("/etc/passwd"), "names that stay inside the archive, found '/etc/passwd'"),
    "upwards": (tar_member("sg00/../../x"), "names that stay inside"),
    "upwards-at-the-end": (tar_member("sg00/.."), "names that stay inside"),
    "upwards-behind-a-dot": (tar_member("./../x"), "names that stay inside"),
    "upwards-elsewhere": (tar_member("sg00\\..\\x"), "names that stay inside"),
    "absolute-elsewhere": (tar_member("\\\\host\\x"), "names that stay inside"),
    "absolute-folder": (tar_member("/sg00", kind=tarfile.DIRTYPE), "names that stay inside"),
    "no-name": (tar_member(""), "a name for every member"),
    "symbolic-link": (tar_member("x", kind=tarfile.SYMTYPE, linkname="/etc/passwd"), "found a symbolic link: 'x'"),
    "hard-link": (tar_member("x", kind=tarfile.LNKTYPE, linkname="y"), "found a hard link: 'x'"),
    "character-device": (tar_member("x", kind=tarfile.CHRTYPE), "found a character device"),
    "block-device": (tar_member("x", kind=tarfile.BLKTYPE), "found a block device"),
    "pipe": (tar_member("x", kind=tarfile.FIFOTYPE), "found a pipe"),
    "sparse": (tar_member("x", kind=tarfile.GNUTYPE_SPARSE), "found a sparse file"),
    "unknown-kind": (tar_member("x", kind=b"Q"), "an entry of the unknown kind 'Q'"),
    "twice": (tar_member("x", b"1") + tar_member("x", b"2"), "every name once in the archive, found 'x' twice"),
    "twice-with-a-dot": (tar_member("x") + tar_member("./x"), "found 'x' twice"),
    "long-name-upwards": (
        tar_member("@", b"../" * 100 + b"x\0", tarfile.GNUTYPE_LONGNAME) + tar_member("x"),
        "names that stay inside",
    ),
    "very-long-name": (tar_member("@", b"x" * 5000, tarfile.GNUTYPE_LONGNAME) + tar_member("x"), "at most 4,096"),
    "size-beyond-the-end": (
        tar_member("x", b"1")[:512].replace(b"00000000001\0", b"77777777777\0"),
        "header of a member",
    ),
    "negative-size": (tar_member("x", size=-1), "a size of 0 or more"),
    "huge-extension": (tar_member("x", kind=tarfile.XHDTYPE, size=2**40), "an extended header of at most"),
    "no-header": (b"\x01" * 512, "the header of a member"),
}


@pytest.mark.parametrize(("data", "says"), HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_archives_are_refused(data: bytes, says: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is refused for what it is, wanted or not, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    assert says in refusal(data + END)
    assert says in refusal(data + END, lambda _: False)
    assert list(tmp_path.iterdir()) == []


def pax(*records: bytes, kind: bytes = tarfile.XHDTYPE) -> bytes:
    """Return an extended header with some records, their lengths put before them."""
    content = b""
    for record in records:
        length = next(n for n in range(200) if len(b"%d %s\n" % (n, record)) == n)
        content += b"%d %s\n" % (length, record)
    return tar_member("extended", content, kind)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(pax(b"path=/etc/passwd") + tar_member("x"), "names that stay inside", id="absolute"),
        pytest.param(pax(b"GNU.sparse.major=1") + tar_member("x"), "found a sparse file", id="sparse"),
        pytest.param(pax(b"size=99999999999") + tar_member("x", b"1"), "cut off", id="size-that-lies"),
        pytest.param(pax(b"size=-512") + tar_member("x"), "expected a size in an extended header", id="negative"),
        pytest.param(pax(b"size=" + b"9" * 50) + tar_member("x"), "expected a size in an extended header", id="huge"),
        pytest.param(pax(b"path=y", kind=tarfile.XGLTYPE) + tar_member("x"), "stated for all", id="one-name-for-all"),
        pytest.param(pax(b"path=y"), "expected a member behind the extension", id="nothing-behind-it"),
        pytest.param(tar_member("e", b"path=x\n", tarfile.XHDTYPE), "expected records such as", id="no-length"),
        pytest.param(tar_member("e", b"99 path=x\n", tarfile.XHDTYPE), "expected records such as", id="long-length"),
        pytest.param(tar_member("e", b"0 path=x\n", tarfile.XHDTYPE), "expected records such as", id="no-progress"),
    ],
)
def test_extended_headers_are_not_trusted(data: bytes, says: str) -> None:
    """What they say of names and sizes is checked like what headers say."""
    assert says in refusal(data + END, lambda _: False, 2**40)


def test_extended_headers_of_libarchive() -> None:
    """Times and owners in them are passed over, names and sizes count, a comment for all does not matter."""
    data = pax(b"comment=x", kind=tarfile.XGLTYPE) + pax(b"mtime=1.5", b"path=sg00/def.json", b"uname=nobody")
    assert members(data + tar_member("short", b"{}") + END) == [Member("sg00/def.json", 2, b"{}")]


def test_every_cut_is_refused() -> None:
    """An archive that ends before its end does is refused, wherever it is cut."""
    data = tar_of(FILES, tarfile.PAX_FORMAT)
    whole = members(data)
    last = data.rstrip(b"\0")
    end = -(-len(last) // 512) * 512 + 512  # the last header is that of an empty file; one block of zeros ends it
    assert members(data[:end]) == whole
    for cut in range(0, end, 64):
        said = refusal(data[:cut])
        assert said.startswith("the archive is cut off: "), cut
        assert "'the next header'" not in said


def test_sizes_that_lie_cost_no_memory() -> None:
    """A member that claims a quarter of a gigabyte is refused without that being held, wanted or not."""
    lying = tar_member("x", size=archive.MOST_KEPT) + END
    tracemalloc.start()
    try:
        assert "'x' lacks" in refusal(lying, max_bytes=2**40)
        assert "'x' lacks" in refusal(lying, lambda _: False, max_bytes=2**40)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_descriptions_are_limited() -> None:
    """More wanted bytes than are held in all are refused before they are read."""
    data = tar_member("x", size=archive.MOST_KEPT + 1) + END
    assert "expected descriptions of at most 268,435,456 bytes" in refusal(data, max_bytes=2**40)


def test_the_whole_is_limited() -> None:
    """Members that are passed over count too, and so does what stands behind the end; claims suffice."""
    assert "holds more than the 16,777,216 bytes" in refusal(tar_member("x", size=2**40), lambda _: False)
    data = tar_of([("x", bytes(4000))])
    assert members(data, lambda _: False, len(data))
    for limit in (len(data) - 1, 4000, 10):
        expected = f"holds more than the {limit:,} bytes that are taken; --max-bytes sets another limit"
        assert refusal(data, lambda _: False, limit) == expected


ENDLESS = {
    "files": b"".join(tar_member(str(number)) for number in range(11)),
    "folders": tar_member("sg00/", kind=tarfile.DIRTYPE) * 11,
    "names": tar_member("@", b"x\0", tarfile.GNUTYPE_LONGNAME) * 11,
    "links": tar_member("@", b"x\0", tarfile.GNUTYPE_LONGLINK) * 11,
    "records": pax(b"mtime=1") * 11,
    "records-for-all": pax(b"comment=x", kind=tarfile.XGLTYPE) * 11,
    "each-with-a-record": (pax(b"mtime=1") + tar_member("sg00", kind=tarfile.DIRTYPE)) * 6,
}


@pytest.mark.parametrize("data", ENDLESS.values(), ids=ENDLESS.keys())
def test_headers_are_limited(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive of countless empty files, folders or extended headers is refused; every header counts."""
    monkeypatch.setattr(archive, "MOST_HEADERS", 10)
    assert "at most 10 files, folders and extended headers" in refusal(data + tar_member("y") + END)
    monkeypatch.setattr(archive, "MOST_HEADERS", 13)
    assert members(data + tar_member("y") + END)[-1].size == 0


def test_extended_headers_are_limited_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many of them, each of a size that is taken, are too large in all."""
    one = pax(b"comment=" + b"x" * 100, kind=tarfile.XGLTYPE)
    monkeypatch.setattr(archive, "MOST_EXTENSIONS", 500)
    assert members(one * 4 + tar_member("x") + END)
    assert "at most 500 bytes of extended headers" in refusal(one * 5 + tar_member("x") + END)


def test_headers_beyond_those_that_are_taken_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What compresses to nothing is refused after the headers that are taken, whatever comes behind them."""
    assert archive.MOST_HEADERS == 100_000
    monkeypatch.setattr(archive, "MOST_HEADERS", 100)
    stream = io.BytesIO(tar_member("sg00", kind=tarfile.DIRTYPE) * 1000)
    with pytest.raises(CommlensError, match="at most 100 files"):
        list(read_members(stream, everything, max_bytes=2**40))
    assert stream.tell() == 101 * 512
