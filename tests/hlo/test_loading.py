"""Loading: what the source may be, folders of several kinds, and what each wrong input is told."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commlens.errors import CommlensError, InputError
from commlens.hlo import Module, discover, load, load_all, load_inputs
from commlens.hlo.folders import Stage, module_files
from proto_modules import all_reduce, containers, module

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = "HloModule {name}\n\nENTRY e {{\n  ROOT p = f32[8] parameter(0)\n}}\n"
PROTO = module(all_reduce()).SerializeToString()


def text(name: str = "m") -> str:
    """Return a small module."""
    return TEXT.format(name=name)


def names(found: object) -> list[str]:
    """Return the names of modules, and the reasons of errors."""
    assert not isinstance(found, str)
    return [each.name if isinstance(each, Module) else str(each) for each in found]  # type: ignore[attr-defined]


def fill(folder: Path, files: dict[str, bytes | str]) -> Path:
    """Write files into a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def test_a_string_with_a_line_break_is_text_and_another_one_a_path(tmp_path: Path) -> None:
    """Paths may be strings or path objects, contents anything that holds bytes."""
    file = fill(tmp_path, {"m.txt": text()}) / "m.txt"
    data = text().encode()
    for source in (text(), text().replace("\n", "\r\n"), file, str(file), data, bytearray(data), memoryview(data)):
        assert load(source).name == "m"
    assert load(text()).path == "<text>"
    assert load(data).path == "<bytes>"
    assert load(file).path == load(str(file)).path == str(file)


def test_a_text_may_hold_what_is_no_unicode() -> None:
    """A string read with surrogateescape keeps its odd bytes."""
    odd = text() + "// \udcff\n"
    assert load(odd).to_bytes() == text().encode() + b"// \xff\n"


def test_contents_may_be_compressed() -> None:
    """In memory as in a file."""
    assert load(gzip.compress(text().encode())).name == "m"
    assert load(gzip.compress(PROTO)).format == "proto"


def test_several_modules_are_for_load_all() -> None:
    """Load names the function that reads them."""
    several = text("a") + text("b")
    assert names(load_all(several)) == ["a", "b"]
    with pytest.raises(ValueError, match=r"^<text>: expected one module, found 2: load_all reads them all$"):
        load(several)


@pytest.mark.parametrize("header", ["HloModule c\n\n", "HloModule c, num_partitions=2\n\n// nothing\nHloModule d\n"])
def test_a_header_without_computations_is_part_of_the_module_before(header: str) -> None:
    """The modules of a file are all of its bytes, also where one has lost what it held."""
    several = text("a") + header + text("b") + header
    assert names(load_all(several)) == ["a", "b"]
    assert [each.to_bytes().decode() for each in load_all(several)] == [text("a") + header, text("b") + header]


@pytest.mark.parametrize("source", [text(), PROTO])
def test_counts_that_the_user_states_win(source: str | bytes) -> None:
    """The other count is 1 where nobody states it; counts below 1 are refused."""
    found = load(source, replicas=2, partitions=4)
    assert (found.replica_count, found.num_partitions) == (2, 4)
    found = load(source, partitions=4)
    assert (found.replica_count, found.num_partitions) == (1, 4)
    for options in ({"replicas": 0}, {"partitions": -1}):
        with pytest.raises(CommlensError, match="at least 1"):
            load(source, **options)
    with pytest.raises(CommlensError, match="at least 1"):
        load_inputs([], replicas=0)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "an empty file"),
        (b" \n\t\n", "only blanks"),
        (b" " * 10_000, "only blanks"),
        (b"Dear diary,\n", "another text, which starts with 'Dear diary"),
        (b"HloModule m\n", "expected a computation"),
        (b'instructions { opcode: "add" }\n', "found the text form of a protobuf without one"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "binary data that start with '\\\\x7fELF"),
        (PROTO[:-40], "end inside"),
        (b"\x0a\x03abc", "none with an HLO module"),
        (gzip.compress(b"")[:8], "cut off"),
        (b"\x1f\x8bnot gzip", "gzip data are damaged"),
    ],
)
def test_what_holds_no_module_says_what_was_expected(data: bytes, why: str, tmp_path: Path) -> None:
    """One sentence with the path in front, for a file and for bytes."""
    file = fill(tmp_path, {"odd": data}) / "odd"
    with pytest.raises(InputError, match=why) as caught:
        load(file)
    is_text = data.startswith((b"Dear", b"HloModule"))
    assert str(caught.value).startswith(f"{file}:1:1: " if is_text else f"{file}: ")
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=why):
        load(data)


def test_text_with_control_characters_is_text_all_the_same() -> None:
    """Some producers write them raw into strings."""
    odd = 'HloModule m\nENTRY e {\n  ROOT p = f32[8] parameter(0), metadata={op_name="\x00\x12\x01"}\n}\n'
    assert load(odd).format == "text"
    assert load("\n" + odd).name == "m"


def test_text_about_protos_is_text() -> None:
    """A module whose strings look like a text form."""
    odd = 'e {\n  ROOT p = f32[8] parameter(0), metadata={op_name="computations { instructions { opcode: "}\n}\n'
    assert load(odd).format == "text"


def test_inputs_come_one_by_one_with_errors_in_their_places(tmp_path: Path) -> None:
    """What is wrong with one file does not end the others; nothing is read before it is asked for."""
    fill(tmp_path, {"a.txt": text("a"), "two.txt": text("b") + text("c"), "odd.txt": b"\x00"})
    paths = [tmp_path / name for name in ("a.txt", "missing.txt", "two.txt", "odd.txt")]
    found = load_inputs(paths)
    (tmp_path / "a.txt").write_text(text("late"))
    loaded = list(found)
    assert [isinstance(each, InputError) for each in loaded] == [False, True, False, False, True]
    assert names(loaded)[:1] == ["late"]
    assert "No such file" in names(loaded)[1]


def test_a_dash_is_standard_input_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it a dash is a file's name."""
    (found,) = load_inputs(["-"], stdin=io.BytesIO(gzip.compress(text().encode())))
    assert (names([found]), isinstance(found, Module) and found.path) == (["m"], "-")
    fill(tmp_path, {"-": text("file")})
    monkeypatch.chdir(tmp_path)
    assert names(load_inputs(["-"])) == ["file"]


def test_the_limit_holds_for_every_input(tmp_path: Path) -> None:
    """Files, folders and standard input."""
    fill(tmp_path, {"module_0001.a.after_optimizations.txt": text()})
    (error,) = load_inputs([tmp_path], max_bytes=10)
    assert "more than the 10 bytes" in str(error)
    (error,) = load_inputs(["-"], stdin=io.BytesIO(text().encode()), max_bytes=10)
    assert "more than the 10 bytes" in str(error)


DUMP: dict[str, bytes | str] = {
    "module_0001.jit_f.before_optimizations.txt": text("f.before"),
    "module_0001.jit_f.before_optimizations.hlo.pb": PROTO,
    "module_0001.jit_f.cpu_after_optimizations.txt": text("f.after"),
    "module_0001.jit_f.cpu_after_optimizations.hlo.pb": PROTO,
    "module_0001.jit_f.cpu_after_optimizations-buffer-assignment.txt": "BufferAssignment:\n",
    "module_0001.jit_f.cpu_after_optimizations-memory-usage-report.pb": b"\x0a\x02\x08\x01",
    "module_0001.jit_f.thunk_sequence.txt": "thunks\n",
    "module_0001.jit_f.ir-no-opt.ll": "define void @f()\n",
    "module_0001.jit_f/module.mlir": "module {}\n",
    "module_0002.jit_g.before_optimizations.txt.gz": gzip.compress(text("g.before").encode()),
    "module_0003.jit_h.x.sm_8.0_gpu_after_optimizations.hlo.pb": PROTO,
    "module_0003.jit_h.x.before_optimizations.txt": text("h.before"),
    "compile_options.pb": b"\x00",
}


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ("last", ["f.after", "g.before", "hand_made"]),
        ("after", ["f.after", "hand_made"]),
        ("before", ["f.before", "g.before", "h.before"]),
        ("all", ["f.before", "f.after", "g.before", "h.before", "hand_made"]),
    ],
)
def test_an_xla_dump_gives_one_module_per_stage(stage: Stage, expected: list[str], tmp_path: Path) -> None:
    """Per module the last stage, as text where both are there; files that are no modules are passed over."""
    folder = fill(tmp_path, DUMP)
    assert names(load_inputs([folder], stage=stage)) == expected
    if stage == "last":
        assert names(load_all(folder)) == expected


def test_a_module_compiled_for_several_platforms_is_read_for_each(tmp_path: Path) -> None:
    """The name of the file says for which."""
    files: dict[str, bytes | str] = {
        f"module_0001.f.{each}_after_optimizations.txt": text(each)
        for each in ("cpu", "gfx90a:xnack-_gpu", "sm_8.0_gpu")
    }
    files["module_0001.f.before_optimizations.txt"] = text("before")
    assert names(load_inputs([fill(tmp_path, files)])) == ["cpu", "gfx90a:xnack-_gpu", "sm_8.0_gpu"]


def test_a_dump_that_cannot_be_read_is_an_error_in_its_place(tmp_path: Path) -> None:
    """Its name says that it is a module: passing over it would hide one."""
    files: dict[str, bytes | str] = {
        "module_0001.a.after_optimizations.txt": "",
        "module_0002.b.after_optimizations.txt": text("b"),
    }
    found = names(load_inputs([fill(tmp_path, files)]))
    assert "module_0001.a.after_optimizations.txt: expected" in found[0]
    assert found[1:] == ["b"]


def test_a_stage_that_is_not_there_is_said(tmp_path: Path) -> None:
    """A folder with dumps from before only."""
    folder = fill(tmp_path, {"module_0001.a.before_optimizations.txt": text()})
    (error,) = load_inputs([folder], stage="after")
    assert str(error) == f"{folder}: the folder has no dump from after optimisation"


CACHE: dict[str, bytes | str] = {
    "neuronxcc-2.1+ab/MODULE_2+d41d/model.hlo_module.pb": PROTO,
    "neuronxcc-2.1+ab/MODULE_2+d41d/model.hlo.pb": b"older",
    "neuronxcc-2.1+ab/MODULE_2+d41d/model.neff": b"\x00",
    "neuronxcc-2.1+ab/MODULE_1+d41d/model.hlo.pb": containers()["HloProto"],
    "neuronxcc-2.1+ab/MODULE_3+d41d/compile_flags.json": "[]",
}


def test_a_neuron_compile_cache_gives_the_module_of_every_entry(tmp_path: Path) -> None:
    """Under its new name, else under the old one; from the root, a compiler's folder or one entry."""
    root = fill(tmp_path, CACHE)
    (compiler,) = root.iterdir()
    for folder in (root, compiler):
        found = list(load_inputs([folder]))
        assert names(found) == ["hand_made"] * 2
        assert [each.path.split("MODULE_")[1] for each in found if isinstance(each, Module)] == [
            "1+d41d/model.hlo.pb",
            "2+d41d/model.hlo_module.pb",
        ]
    assert names(load_inputs([compiler / "MODULE_2+d41d"])) == ["hand_made"]
    (error,) = load_inputs([compiler / "MODULE_3+d41d"])
    assert "holds no HLO module" in str(error)


def test_a_folder_of_hlo_files_gives_those_that_are_modules(tmp_path: Path) -> None:
    """Other files are passed over without a word."""
    files: dict[str, bytes | str] = {
        "b.hlo": text("b"),
        "a.txt": text("a"),
        "c.pb": PROTO,
        "notes.txt": "Dear diary,\n",
        "empty.hlo": "",
        "image.png": text("not looked at"),
        "below/d.hlo": text("d"),
    }
    assert names(load_inputs([fill(tmp_path, files)])) == ["a", "b", "hand_made"]


def test_a_folder_without_modules_says_what_was_expected(tmp_path: Path) -> None:
    """Empty, or full of other things."""
    (error,) = load_inputs([tmp_path])
    assert str(error).startswith(f"{tmp_path}: the folder holds no HLO module: expected an XLA dump")
    with pytest.raises(InputError, match="holds no HLO module"):
        load(fill(tmp_path, {"notes.txt": "Dear diary,\n"}))


def test_a_folder_of_folders_says_which_ones_to_name(tmp_path: Path) -> None:
    """What holds no module itself may be the parent of what does; a few of those are named, other folders are not."""
    files = {f"host{number}/m.hlo": text("m") for number in range(5)}
    fill(tmp_path, {"README": "Dear diary,\n", "empty/notes": "", **files})
    (error,) = load_inputs([tmp_path])
    assert str(error) == (
        f"{tmp_path}: the folder holds no HLO module itself, the folders in it seem to (host0, host1, host2, 2 more): "
        f"name them as {tmp_path}/*/"
    )


def test_a_folder_that_cannot_be_listed_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No permission."""

    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.iterdir", refuse)
    (error,) = load_inputs([tmp_path])
    assert str(error) == f"{tmp_path}: the folder cannot be listed: Permission denied"
    with pytest.raises(InputError, match="Permission denied"):
        module_files(tmp_path)


def test_a_path_that_no_file_can_have_is_an_error_like_others() -> None:
    """A null byte, and a name that is too long."""
    for path in ("a\0b", "x" * 5000):
        (error,) = load_inputs([path])
        assert "cannot be read" in str(error)


def test_reading_text_loads_no_protobuf() -> None:
    """Nor the other way round: starting must stay quick."""
    script = (
        "import sys\nfrom commlens.hlo import load\n"
        f"assert load({text()!r}).name == 'm'\nassert not any(name.startswith('google') for name in sys.modules)\n"
        f"text = [name for name in sys.modules if name.startswith('commlens.hlo.text')]\n"
        f"assert load({PROTO!r}).format == 'proto'\nassert text\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": ":".join(sys.path)})


@pytest.mark.corpus
def test_the_dump_of_the_collection_is_read(corpus: Path) -> None:
    """A folder as XLA 0.10.2 leaves it: two modules, each in both stages and forms."""
    assert names(load_inputs([corpus / "dump_dir"])) == ["jit_train_step", "jit_scatter"]
    assert len(list(load_inputs([corpus / "dump_dir"], stage="all"))) == 4


@pytest.mark.corpus("public/*")
def test_every_public_file_holds_a_module(corpus_file: Path) -> None:
    """Sixty files of twenty producers, by content and not by name."""
    if corpus_file.name != "README.md":
        assert load_all(corpus_file)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data,
        lambda data: data.replace(b"\n  ", b"\n   "),
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data[: len(data) * 2 // 3],
        lambda data: data + data,
    ],
    ids=["printed", "laid out", "crlf", "cut", "twice"],
)
def test_mapped_files_read_like_others(
    change: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large texts are mapped, not copied: nothing else about them differs."""
    examples = Path(__file__).parents[2] / "examples"
    data = change((examples / "tagged_2x4.before.txt").read_bytes() + b"\n")
    file = fill(tmp_path, {"large.txt": data}) / "large.txt"
    copied = load_all(file)
    monkeypatch.setattr("commlens.hlo.memory_mapping._LARGE", 1)
    mapped = load_all(file)
    assert type(mapped[0].text) is not bytes  # pyright: ignore[reportAttributeAccessIssue]
    assert b"".join(module.to_bytes() for module in mapped) == b"".join(module.to_bytes() for module in copied)
    for ours, theirs in zip(mapped, copied, strict=True):
        described = [
            [(site.name, site.line, str(site.signature.groups), site.op_name) for site in discover(each).sites]
            for each in (ours, theirs)
        ]
        assert described[0] == described[1]
        assert ours.unread == theirs.unread
