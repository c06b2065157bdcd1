"""The two paths through a text find the same, and neither misses what a slow reader sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commlens.hlo.discovery import discover
from commlens.hlo.text import index as index_module
from commlens.hlo.text import read_modules
from commlens.hlo.text.scanner import Scanner
from counted_calls import calls_in
from twins_hlo import communicating

if TYPE_CHECKING:
    from collections.abc import Callable

REDUCER = "%add (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n  ROOT %c = f32[] add(%a, %b)\n}\n\n"
LINES = [
    "%{n} = f32[8]{{0}} all-reduce(%p), channel_id={i}, replica_groups={{{{0,1}},{{2,3}}}}, use_global_device_ids=true, to_apply=%add",
    "%{n} = f32[32]{{0}} all-gather(%p), channel_id={i}, replica_groups=[2,4]<=[8], dimensions={{0}}, use_global_device_ids=true",
    '%{n} = f32[32]{{0}} all-gather(%p), replica_groups=[2,4]<=[8], dimensions={{0}}, metadata={{op_name="a/all-reduce(x)" source_line={i}}}',
    "%{n} = f32[8]{{0}} collective-permute(%p), source_target_pairs={{{{0,1}},{{1,0}}}}",
    "%{n} = f32[8]{{0}} negate(%p)",
    '%{n} = f32[8]{{0}} custom-call(%p), custom_call_target="f(all-reduce(x) = all-gather(y)"',
    "%{n} = f32[8]{{0}} broadcast(%p), dimensions={{0}}",
    "%{n} = f32[8]{{0}} collective-broadcast(%p), channel_id={i}, replica_groups={{{{0,1}}}}",
    "%all-reduce.{i} = f32[8]{{0}} add(%p, %p)",
    "%{n} = (f32[8]{{0}}, f32[8]{{0}}) all-reduce(%p, /*index=1*/%p), replica_groups={{}}, to_apply=%add",
    '%{n} = f32[8]{{0}} all-reduce(f32[8]{{0}} %p), replica_groups={{}}, to_apply=%add, backend_config={{"x":{{"y":"}}"}}}}',
    '%{n} = f32[8]{{0}} all-reduce(%p), metadata={{op_name="q\\"}}{{"}}, replica_groups={{{{0,1}}}}, to_apply=%add',
]


def module_text(kinds: list[list[int]]) -> str:
    """Return a module with one computation per list, as a compiler prints it."""
    parts = ["HloModule m, num_partitions=8\n\n", REDUCER]
    for number, lines in enumerate(kinds):
        entry = "ENTRY " if number == len(kinds) - 1 else ""
        parts.append(f"{entry}%comp.{number} (p: f32[8]) -> f32[8] {{\n  %p = f32[8]{{0}} parameter(0)\n")
        parts += [f"  {LINES[kind].format(n=f'x.{number}.{i}', i=i)}\n" for i, kind in enumerate(lines)]
        parts.append("  ROOT %r = f32[8]{0} copy(%p)\n}\n\n")
    return "".join(parts)


MODULES = st.lists(st.lists(st.integers(0, len(LINES) - 1), max_size=6), min_size=1, max_size=5).map(module_text)


def sites_of(text: str) -> list[tuple[object, ...]]:
    """Return what was found, line numbers left out."""
    (module,) = read_modules(text.encode())
    found = discover(module)
    assert not found.unread
    return [
        (
            site.name,
            site.computation_name,
            site.channel_id,
            site.op_name,
            site.signature.opcode,
            str(site.signature.groups),
            tuple(map(str, site.signature.operand_shapes)),
            tuple(map(str, site.signature.result_shapes)),
        )
        for site in found.sites
    ]


@given(MODULES)
def test_nothing_is_missed_and_nothing_invented(text: str) -> None:
    """The names found are those that a reader with loops over characters finds."""
    assert [site[0] for site in sites_of(text)] == [name for name, _ in communicating(text)]


DISTURBANCES: dict[str, Callable[[str], str]] = {
    "deeper": lambda text: text.replace("\n  ", "\n     "),
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "comment": lambda text: text.replace("%p = ", "/* one\n two */ %p = "),
    "broken after comma": lambda text: text.replace(", replica_groups", ",\n     replica_groups"),
    "broken before opcode": lambda text: text.replace("} all-", "}\n   all-"),
    "broken at two blanks": lambda text: text.replace("} all-", "}\n  all-"),
    "blank before parenthesis": lambda text: text.replace("all-reduce(%p)", "all-reduce (%p)"),
    "no line end": lambda text: text.rstrip("\n"),
    "blank lines": lambda text: text.replace("\n  ", "\n\n  "),
    "line comment": lambda text: text.replace("\n  %p", "\n  // all-reduce(x) }\n  %p"),
    "string over lines": lambda text: text.replace('op_name="a/', 'op_name="a\n  ROOT %z = f32[8] all-gather(x)\n}/'),
    "junk around": lambda text: f"[log] it's {{ here\n  f (x.py:3)\n\n{text}\n```\nmodule @foo {{\n",
}


@pytest.mark.parametrize("disturb", DISTURBANCES.values(), ids=DISTURBANCES.keys())
@given(text=MODULES)
def test_layout_does_not_matter(disturb: Callable[[str], str], text: str) -> None:
    """However a text is laid out, the same is found; only a name that holds a line break differs."""

    def comparable(found: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
        return [(*site[:3], *site[4:]) for site in found]

    assert comparable(sites_of(disturb(text))) == comparable(sites_of(text))


@given(MODULES, st.integers(200, 900))
def test_the_cut_of_blocks_does_not_matter(text: str, size: int) -> None:
    """Blocks of any size give the same index."""
    whole = sites_of(text)
    original = index_module.BLOCK
    index_module.BLOCK = size  # pyright: ignore[reportConstantRedefinition]
    try:
        assert sites_of(text) == whole
    finally:
        index_module.BLOCK = original  # pyright: ignore[reportConstantRedefinition]


@given(MODULES, st.data())
def test_one_odd_place_does_not_spoil_the_rest(text: str, data: st.DataObject) -> None:
    """A blank line anywhere between instructions sends one computation down the slow path, with the same result."""
    breaks = [position for position, letter in enumerate(text) if letter == "\n"]
    place = data.draw(st.sampled_from(breaks))
    assert sites_of(text[:place] + "\n" + text[place:]) == sites_of(text)


def test_printed_text_takes_the_fast_path() -> None:
    """A regular module is never read token by token."""
    text = module_text([[0, 1, 2, 3, 5, 6, 7, 8, 9, 10]] * 3).encode()
    assert Scanner(text).scan(0, len(text), inside=False) is not None
    assert not index_module.make_index(text).irregular


@pytest.mark.parametrize("name", ["main", "all-reduce", "comp.1"])
def test_headers_are_not_taken_for_instructions(name: str) -> None:
    """However a computation is called, its header is no line of interest: all it holds is read by marks."""
    text = module_text([[0, 1, 4]]).replace("comp.0", name)
    index = index_module.make_index(text.encode())
    assert [text[position - 10 : position] for position in index.hits.tolist()] == ["all-reduce", "all-gather"]


def test_lines_are_numbered_on_both_paths() -> None:
    """Line numbers are those of an editor."""
    text = module_text([[4, 0], [1]])
    for disturbed in (text, text.replace("\n  ", "\n   ")):
        (module,) = read_modules(disturbed.encode())
        lines = disturbed.split("\n")
        for site in discover(module).sites:
            assert site.line is not None
            assert f"%{site.name} = " in lines[site.line - 1]


def test_text_is_given_back_unchanged() -> None:
    """Loading and writing is the identity on bytes, whatever they are."""
    text = module_text([[0, 1]]).encode() + b"\xff\xfe odd \r\n tail"
    (module,) = read_modules(text)
    assert module.to_bytes() == text


def test_several_modules_in_one_file() -> None:
    """Every module has its own computations, and nothing of its neighbours'."""
    one = module_text([[0]])
    text = f"## BEGIN_GRAPH\n{one}## END_GRAPH\n[Next]\n  f (x.py:1)\n## BEGIN_GRAPH\n{one.replace('HloModule m', 'HloModule k')}"
    modules = read_modules(text.encode())
    assert [(module.name, len(discover(module).sites)) for module in modules] == [("m", 1), ("k", 1)]
    assert b"".join(module.to_bytes() for module in modules).count(b"HloModule") == 2


def cost(text: str) -> int:
    """Return how many calls it takes to read a text and to find what communicates in it."""
    return calls_in(lambda: [discover(module) for module in read_modules(text.encode())])


@pytest.mark.parametrize(
    "make",
    [
        lambda n: module_text([[0, 4, 1] * n]),
        lambda n: module_text([[0, 4, 1] * n]).replace("\n  ", "\n   "),
        lambda n: module_text([[0]] * n),
        lambda n: (
            module_text([[0, 4] * n]).replace("%p)", "%far)").replace("  ROOT", "  %far = f32[8]{0} copy(%p)\n  ROOT")
        ),
        lambda n: "a(\n" * n + module_text([[0]]),
        lambda n: module_text([[0]]) + "/*\n" * n,
        lambda n: module_text([[0]]).replace("ROOT", '"\\"\n' * n + "ROOT"),
    ],
    ids=["regular", "irregular", "many computations", "far operands", "unclosed prose", "open comments", "odd quotes"],
)
def test_twice_the_text_is_twice_the_work(make: Callable[[int], str]) -> None:
    """The number of calls grows in proportion to the text, on both paths."""
    assert cost(make(240)) <= 4 * cost(make(60)) + 400


@pytest.mark.corpus("public/*.hlo*", "public/*.txt*", "jax-*/*.txt*", "torch_xla-*/*.txt*")
def test_nothing_is_missed_in_real_modules(corpus_file: object) -> None:
    """Every collective that the slow reader sees in a real module is a row, part of a row, or an unread item."""
    import gzip
    from pathlib import Path

    path = Path(str(corpus_file))
    if ".pb" in path.name:
        return
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    seen = communicating(data.decode("utf-8", "replace"))
    found: list[str] = []
    wrapped = 0
    for module in read_modules(data):
        result = discover(module)
        found += [site.name for site in result.sites] + [item.name or "" for item in result.unread]
        wrapped += sum(site.signature.is_async or site.signature.via is not None for site in result.sites)
    missing = [name for name, _ in seen if name not in found]
    assert len(missing) <= wrapped, missing
