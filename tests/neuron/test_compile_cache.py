"""Neuron compile caches: what is in an entry, and what does not fit together."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commlens.errors import InputError
from commlens.neuron import CCInfo, CompileCache, flags_hash_of, flags_of, read_compile_cache
from commlens.neuron.cache_entry import NO_FLAGS, read_entry, split_id
from neff_files import definition, neff
from neuron_cases import cases, section
from proto_modules import all_reduce, module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commlens.neuron import CacheEntry

COMPILER = "neuronxcc-2.14.213.0+013d129b"
GRAPHS = ("07c6ee519ad94eb45d54", "0b06e363914569010515", "10479010230249837840")
NEFF = neff(definition(replica_groups=[[[0, 1], [2, 3]]]), lnc_size=2)
TEXT = """HloModule {name}, num_partitions=4
ENTRY e {{
  p = f32[{size}] parameter(0)
  ROOT r = f32[{size}] all-reduce(p), channel_id=1, replica_groups={groups}, use_global_device_ids=true, to_apply=add
}}
"""


def text(groups: str = "{{0,1},{2,3}}", name: str = "step", size: int = 8) -> bytes:
    """Return a module with one collective."""
    return TEXT.format(name=name, size=size, groups=groups).encode()


def write_entry(
    root: Path,
    graph: str = GRAPHS[0],
    *,
    compiler: str = COMPILER,
    flags: list[str] | None = None,
    flags_hash: str | None = None,
    files: dict[str, bytes | None] | None = None,
) -> Path:
    """Write an entry in which everything fits; ``files`` replaces files, None leaves one out."""
    flags_file = json.dumps(["--lnc=2"] if flags is None else flags).encode()
    folder = root / compiler / f"MODULE_{graph}+{flags_hash or hashlib.md5(flags_file).hexdigest()[:8]}"
    folder.mkdir(parents=True)
    contents = {
        "compile_flags.json": flags_file,
        "model.done": b"",
        "model.hlo_module.pb": text(),
        "model.neff": NEFF,
        **(files or {}),
    }
    for name, content in contents.items():
        if content is not None:
            (folder / name).write_bytes(content)
    return folder


def kinds(entry: CacheEntry) -> list[str]:
    """Return what is wrong with an entry, in words for programs."""
    return [problem.kind for problem in entry.problems]


def by_graph(cache: CompileCache) -> dict[str, list[str]]:
    """Return what is wrong with each entry."""
    return {str(entry.module_hash): kinds(entry) for entry in cache.entries}


@pytest.mark.parametrize("case", cases("compile_cache"))
def test_entries_of_cases(case: dict[str, Any], tmp_path: Path) -> None:
    """The flags of public entries have the hash in the name; other flags do not."""
    folder = tmp_path / case["dir"]
    folder.mkdir()
    flags = folder / case["flags_file"]
    flags.write_bytes(case["flags_bytes"].encode())
    assert flags_hash_of(flags.read_bytes()) == case["flags_hash"]
    entry = read_entry(folder)
    assert (entry.module_hash, entry.flags_hash, entry.flags_match) == (case["model_hash"], case["flags_hash"], True)
    assert entry.flags == flags_of(case["flags_bytes"].encode())
    flags.write_bytes(case["flags_bytes"].encode() + b" ")
    changed = read_entry(folder)
    assert (changed.flags_match, kinds(changed)) == (False, [*kinds(entry), "flags-hash"])


def test_the_rule_of_the_hash() -> None:
    """The rule is the one that was found on public entries, and nothing has the hash of nothing."""
    assert section("compile_cache_rule").startswith("flags_hash = first 8 hex digits of md5")
    assert flags_hash_of(b"") == NO_FLAGS == "d41d8cd9"


def test_flags_in_both_spellings() -> None:
    """A JSON list, or words; what is another JSON value is words."""
    assert flags_of(b'["--a=1", "--b c"]') == ("--a=1", "--b c")
    assert flags_of(b"--a=1  --b") == ("--a=1", "--b")
    assert flags_of(b"3") == ("3",)
    assert flags_of(b"") == ()


def test_an_entry_in_which_everything_fits(tmp_path: Path) -> None:
    """It has no problems, and is told with its flags, module and CC info."""
    folder = write_entry(tmp_path)
    cache = read_compile_cache(tmp_path)
    [entry] = cache.entries
    assert (cache.path, cache.num_problems, entry.problems) == (str(tmp_path), 0, ())
    assert (entry.path, entry.compiler, entry.module_hash) == (folder, COMPILER, GRAPHS[0])
    assert (entry.done, entry.neff_size, entry.lnc, entry.flags) == (True, len(NEFF), 2, ("--lnc=2",))
    assert (entry.module_name, entry.info, entry.info_from) == ("step", CCInfo([[[0, 1], [2, 3]]]), "neff")
    assert (entry.world_size_documented, entry.world_size_total) == (2, 4)
    assert json.loads(json.dumps(cache.as_dict()))["entries"][0]["replica_groups"] == [[[0, 1], [2, 3]]]


def test_old_names_of_files(tmp_path: Path) -> None:
    """Older compilers wrote other names; the module's new name comes first."""
    flags = b"--lnc=2"
    files = {
        "compile_flags.json": None,
        "compile_flags.txt": flags,
        "model.hlo_module.pb": None,
        "model.hlo.pb": text(),
    }
    write_entry(tmp_path, flags_hash=flags_hash_of(flags), files=files)
    [entry] = read_compile_cache(tmp_path).entries
    assert (entry.problems, entry.module_name, entry.flags) == ((), "step", ("--lnc=2",))
    write_entry(tmp_path, GRAPHS[1], files={"model.hlo.pb": text(name="old")})
    assert read_compile_cache(tmp_path).entries[1].module_name == "step"


CUT = NEFF[:1500]
WIDE = module(all_reduce()).SerializeToString()

PROBLEMS: dict[str, tuple[dict[str, bytes | None], list[str], str]] = {
    "no-neff": ({"model.neff": None}, ["no-neff"], "marked as done, and there is no model.neff"),
    "not-done": ({"model.done": None}, ["not-done"], "failed, was stopped, or still runs"),
    "still-running": ({"model.done": None, "model.neff": None}, ["not-done"], "there is no model.done"),
    "cut-neff": ({"model.neff": CUT}, ["neff"], "Invalid NEFF data size"),
    "changed-neff": ({"model.neff": NEFF[:172] + bytes(32) + NEFF[204:]}, ["neff"], "does not have the hash"),
    "subgraphs": (
        {
            "model.neff": neff(
                {"sg00/def.json": definition(replica_groups=[[[0, 1], [2, 3]]]), "sg01/def.json": definition()},
                lnc_size=2,
            )
        },
        ["neff"],
        "different from it: sg01/def.json",
    ),
    "bad-definition": (
        {"model.neff": neff(definition(replica_groups=3), lnc_size=2)},
        ["neff"],
        "expected replica_groups to be",
    ),
    "no-module": ({"model.hlo_module.pb": None}, ["no-module"], "there is no model.hlo_module.pb"),
    "cut-module": ({"model.hlo_module.pb": WIDE[:50]}, ["module"], "model.hlo_module.pb: "),
    "no-flags": ({"compile_flags.json": None}, ["no-flags"], "there is no compile_flags.json"),
    "empty-flags": ({"compile_flags.json": b""}, ["flags-hash"], "compile_flags.json has the hash d41d8cd9"),
    "wide-ids": (
        {"model.hlo_module.pb": WIDE, "model.neff": None},
        ["no-neff", "wide-ids"],
        "(instruction 13 of computation 1), more than 31 bits hold",
    ),
    "wide-ids-that-were-no-problem": ({"model.hlo_module.pb": WIDE}, [], ""),
}


@pytest.mark.parametrize(("files", "expected", "says"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_problems_of_one_entry(files: dict[str, bytes | None], expected: list[str], says: str, tmp_path: Path) -> None:
    """Each is found, and only it."""
    write_entry(tmp_path, files=files)
    [entry] = read_compile_cache(tmp_path).entries
    assert kinds(entry) == expected
    assert says in (entry.problems[-1].what if entry.problems else "")


def test_without_a_neff_the_module_is_asked(tmp_path: Path) -> None:
    """An entry that was not compiled yet has the CC info of its module."""
    write_entry(tmp_path, files={"model.neff": None, "model.done": None, "model.hlo_module.pb": text("{{0,2},{1,3}}")})
    [entry] = read_compile_cache(tmp_path).entries
    assert (entry.info, entry.info_from) == (CCInfo([[[0, 2], [1, 3]]]), "module")


def test_no_flags_need_no_file(tmp_path: Path) -> None:
    """A name with the hash of nothing speaks of no flags."""
    write_entry(tmp_path, flags_hash=NO_FLAGS, files={"compile_flags.json": None})
    [entry] = read_compile_cache(tmp_path).entries
    assert (entry.problems, entry.flags, entry.flags_match) == ((), None, None)


def test_a_name_without_hashes(tmp_path: Path) -> None:
    """The entry is read, and its name is a problem."""
    write_entry(tmp_path).rename(tmp_path / "MODULE_copy")
    [entry] = read_compile_cache(tmp_path).entries
    assert (kinds(entry), entry.module_hash, entry.compiler, entry.info_from) == (["name"], None, None, "neff")


def test_wide_ids_of_cases() -> None:
    """An id has its computation's part and its own."""
    for case in section("hlo_proto_ids"):
        assert split_id(case["id"]) == (case["computation_part"], case["local_part"])
        assert case["over_int32"] == (case["id"] > 2**31 - 1)


OTHER = text().replace(b"ROOT r =", b"n = f32[8] negate(p)\n  ROOT r =")
"""A module that communicates as the usual one does, and computes something else."""


# --- several entries ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("second", "differs"),
    [
        pytest.param({"model.hlo_module.pb": text("{{0,2},{1,3}}")}, True, id="other-groups"),
        pytest.param({"model.hlo_module.pb": OTHER}, True, id="alike-in-communication"),
        pytest.param({}, False, id="the-same-module"),
        pytest.param({"model.hlo_module.pb": text(name="other")}, False, id="other-name"),
        pytest.param({"model.hlo_module.pb": text(size=9)}, False, id="other-arguments"),
        pytest.param({"model.hlo_module.pb": b"x"}, False, id="unreadable"),
    ],
)
def test_modules_that_ranks_must_not_mix(second: dict[str, bytes | None], differs: bool, tmp_path: Path) -> None:
    """Another program with the same name, arguments, result and flags is named at the later entry."""
    write_entry(tmp_path, GRAPHS[0])
    write_entry(tmp_path, GRAPHS[1], files=second)
    found = by_graph(read_compile_cache(tmp_path))
    assert found[GRAPHS[0]] == []
    assert ("modules-differ" in found[GRAPHS[1]]) == differs


def test_modules_of_other_flags_are_not_compared(tmp_path: Path) -> None:
    """They are what somebody compiled otherwise."""
    write_entry(tmp_path, GRAPHS[0])
    write_entry(tmp_path, GRAPHS[1], flags=["--lnc=2", "-O1"])
    write_entry(tmp_path, GRAPHS[2], compiler="neuronxcc-2.15.0.0+x")
    assert list(by_graph(read_compile_cache(tmp_path)).values()) == [[], [], []]


def test_how_modules_differ(tmp_path: Path) -> None:
    """The first collective that is another one is named, or that they communicate alike."""
    write_entry(tmp_path, GRAPHS[0])
    write_entry(tmp_path, GRAPHS[1], files={"model.hlo_module.pb": text("{{0,2},{1,3}}")})
    write_entry(tmp_path, GRAPHS[2], files={"model.hlo_module.pb": OTHER})
    _, second, third = read_compile_cache(tmp_path).entries
    assert (second.problems[-1].kind, third.problems[-1].kind) == ("modules-differ", "modules-differ")
    assert (
        "collective 1 is all-reduce {{0,2},{1,3}} here and all-reduce {{0,1},{2,3}} there" in second.problems[-1].what
    )
    assert "they communicate alike" in third.problems[-1].what


def test_caches_of_several_hosts(tmp_path: Path) -> None:
    """An entry that one of several caches lacks is a problem where it is."""
    for host in ("host0", "host1"):
        write_entry(tmp_path / host, GRAPHS[0])
    write_entry(tmp_path / "host1", GRAPHS[1], files={"model.hlo_module.pb": text(name="other")})
    cache = read_compile_cache(tmp_path)
    assert [kinds(entry) for entry in cache.entries] == [[], [], ["not-everywhere"]]
    assert cache.entries[2].problems[0].what.startswith(f"not in {tmp_path / 'host0'}: ")


@pytest.mark.parametrize(
    ("files", "expected", "says"),
    [
        pytest.param({}, [], "", id="the-same"),
        pytest.param(
            {"model.hlo_module.pb": text(name="other")}, ["modules-differ"], "step there and other", id="name"
        ),
        pytest.param({"model.hlo_module.pb": text(size=9)}, ["modules-differ"], "other arguments", id="arguments"),
        pytest.param({"model.hlo_module.pb": OTHER}, ["modules-differ"], "they communicate alike", id="content"),
        pytest.param(
            {
                "model.hlo_module.pb": None,
                "model.neff": neff(definition(replica_groups=[[[0, 2], [1, 3]]]), lnc_size=2),
            },
            ["no-module", "neffs-differ"],
            "has a NEFF with other groups",
            id="neff",
        ),
        pytest.param({"model.neff": None, "model.done": None}, ["not-done"], "", id="no-neff"),
    ],
)
def test_entries_of_one_name(files: dict[str, bytes | None], expected: list[str], says: str, tmp_path: Path) -> None:
    """An entry that holds something else than the one of the same name in another cache is named, once."""
    write_entry(tmp_path / "host0")
    write_entry(tmp_path / "host1", files=files)
    first, second = read_compile_cache(tmp_path).entries
    assert (kinds(first), kinds(second)) == ([], expected)
    assert says in " ".join(problem.what for problem in second.problems)


def test_what_folders_are_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root, the compiler's folder and the entry itself give the entry; the entry also as the current folder."""
    folder = write_entry(tmp_path)
    monkeypatch.chdir(folder)
    for place in (tmp_path, tmp_path / COMPILER, folder):
        assert [entry.path for entry in read_compile_cache(place).entries] == [folder]
    assert [entry.module_name for entry in read_compile_cache(".").entries] == ["step"]


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda _: None], ids=["empty", "missing"])
def test_no_cache(make: Callable[[Path], object], tmp_path: Path) -> None:
    """A folder without entries is refused."""
    make(tmp_path / "x")
    with pytest.raises(InputError, match="x: expected a Neuron compile cache, with folders MODULE_"):
        read_compile_cache(tmp_path / "x")


def test_a_folder_that_cannot_be_listed_is_a_problem_of_its_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One entry that nobody may read does not hide the others."""
    for name in ("MODULE_1+d41d8cd9", "MODULE_2+d41d8cd9"):
        (tmp_path / name).mkdir()
    listed = Path.iterdir

    def refuse(folder: Path) -> Iterator[Path]:
        if folder.name.startswith("MODULE_1"):
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", refuse)
    first, second = read_compile_cache(tmp_path).entries
    assert [problem.kind for problem in first.problems] == ["unreadable"]
    assert "unreadable" not in [problem.kind for problem in second.problems]
