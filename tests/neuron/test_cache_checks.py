"""Entries of a compile cache whose NEFF, module and flags do not belong together, and modules that are the same one."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from commlens.hlo import load
from commlens.neuron import CCInfo, read_compile_cache
from commlens.neuron.cache_checks import groups_fault, lnc_fault, lnc_of_flags
from commlens.neuron.module_content import content_digest
from neff_files import definition, neff
from proto_modules import all_reduce, containers, module, tagged, varint

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "HloModule step, num_partitions=8\nENTRY e {\n  p = f32[8] parameter(0)\n"
GLOBAL = "channel_id=1, use_global_device_ids=true, to_apply=add"
ROWS = [[0, 1, 2, 3], [4, 5, 6, 7]]
COLUMNS = [[0, 4], [1, 5], [2, 6], [3, 7]]


def step(*lists: str, more: str = "") -> str:
    """Return a module of eight partitions with an all-reduce for each list of groups."""
    body = "".join(f"  r{n} = f32[8] all-reduce(p), replica_groups={one}, {GLOBAL}\n" for n, one in enumerate(lists))
    return f"{HEADER}{body}{more}}}\n"


PERMUTE = "  c = f32[8] collective-permute(p), channel_id=9, source_target_pairs={{0,1}}\n"


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        pytest.param(step("[2,4]<=[8]"), [ROWS], id="same"),
        pytest.param(step("[2,4]<=[8]", "[4,2]<=[2,4]T(1,0)"), [COLUMNS, ROWS], id="other-order-of-topologies"),
        pytest.param(step("{{5,4,7,6},{0,1,2,3}}"), [ROWS], id="other-order-inside"),
        pytest.param(step("[2,4]<=[8]", "[8,1]<=[8]"), [ROWS], id="one-rank-each-in-the-module"),
        pytest.param(step("[2,4]<=[8]"), [ROWS, [[0], [1]]], id="one-rank-each-in-the-neff"),
        pytest.param(step(), [[]], id="none-at-all"),
        pytest.param(step(), None, id="none-said"),
        pytest.param(step("[2,4]<=[8]"), [ROWS[:1]], id="first-group-for-all"),
        pytest.param(step("[2,4]<=[8]", more=PERMUTE), [ROWS, COLUMNS], id="permute-as-all-gather"),
        pytest.param(step("{{0,1}"), [ROWS], id="unread"),
        pytest.param(
            HEADER.replace("num_", "replica_count=2, num_") + "  r = f32[8] all-reduce(p), replica_groups={{0,1}}\n}\n",
            [ROWS],
            id="ids-that-are-no-ranks",
        ),
        pytest.param(
            "ENTRY e {\n  p = f32[8] parameter(0)\n  r = f32[8] all-reduce(p), replica_groups={}, to_apply=add\n}\n",
            [ROWS],
            id="counts-that-nobody-states",
        ),
    ],
)
def test_groups_that_may_be_those_of_the_module(text: str, groups: list[list[list[int]]] | None) -> None:
    """Order says nothing, groups of one rank neither; where the module leaves something open nothing is claimed."""
    assert groups_fault(CCInfo(groups), load(text)) is None


@pytest.mark.parametrize(
    ("text", "groups", "says"),
    [
        pytest.param(step("[2,4]<=[8]"), None, "only in the module: [2,4]<=[8]", id="not-in-the-neff"),
        pytest.param(step(), [ROWS], "only in the NEFF: [2,4]<=[8]", id="not-in-the-module"),
        pytest.param(
            step("[2,4]<=[8]"),
            [COLUMNS],
            "only in the module: [2,4]<=[8]; only in the NEFF: [4,2]<=[2,4]T(1,0)",
            id="others",
        ),
        pytest.param(step("[2,4]<=[8]"), [ROWS[1:]], "only in the NEFF: {{4,5,6,7}}", id="another-group-alone"),
        pytest.param(
            step("[2,4]<=[8]", more=PERMUTE),
            [COLUMNS],
            "another: only in the module: [2,4]<=[8]",
            id="beside-a-permute",
        ),
    ],
)
def test_groups_of_another_module(text: str, groups: list[list[list[int]]] | None, says: str) -> None:
    """What only one of them has is named."""
    fault = groups_fault(CCInfo(groups), load(text))
    assert fault is not None
    assert fault.endswith(says)


@pytest.mark.parametrize(
    ("flags", "lnc"),
    [
        (["--target=trn2", "--lnc=1"], 1),
        (["--lnc", "2"], 2),
        (["--lnc 2"], 2),
        (["--logical-nc-config=2"], 2),
        (["--lnc=1", "--lnc=2"], 2),
        (["--lnc", "--lnc=1"], 1),
        (["2"], None),
        (["--lnc"], None),
        (["--lnc=x"], None),
        (["--lncx=1", "-O1"], None),
        (["--lnc=" + "1" * 5000], None),
        ([], None),
    ],
)
def test_lnc_of_flags(flags: list[str], lnc: int | None) -> None:
    """Both names of the flag count, with a sign or a blank before the number; the last says it."""
    assert lnc_of_flags(flags) == lnc
    assert (lnc_fault(flags, 3) is None) == (lnc is None)
    assert lnc_fault(flags, lnc) is lnc_fault(flags, None) is lnc_fault(None, 1) is None


def cache_entry(root: Path, graph: str, text: bytes, flags: list[str], **header: Any) -> None:
    """Write an entry of a cache."""
    written = json.dumps(flags).encode()
    folder = root / f"MODULE_{graph}+{hashlib.md5(written).hexdigest()[:8]}"
    folder.mkdir()
    contents = {
        "compile_flags.json": written,
        "model.done": b"",
        "model.hlo_module.pb": text,
        "model.neff": neff(definition(replica_groups=[ROWS]), **header),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)


def test_entries_whose_parts_do_not_belong_together(tmp_path: Path) -> None:
    """Both faults become problems of the entry, and only of it."""
    cache_entry(tmp_path, "1", step("[2,4]<=[8]").encode(), ["--lnc=2"], lnc_size=2)
    cache_entry(tmp_path, "2", step("[4,2]<=[8]").encode(), ["--lnc=2", "-O1"], lnc_size=1)
    cache_entry(tmp_path, "3", step("[2,4]<=[8]").encode(), ["--lnc=2", "-O2"], lnc_size=0)
    found = read_compile_cache(tmp_path).entries
    assert [[problem.kind for problem in entry.problems] for entry in found] == [[], ["lnc", "groups-differ"], []]
    assert found[1].problems[0].what.startswith("the flags ask for LNC 2, the header of the NEFF states LNC 1")


# --- the same module ------------------------------------------------------------------------------------------------

PROTO = module(all_reduce()).SerializeToString()


def digest(content: bytes | str) -> str:
    """Return what the content of a module is told by."""
    return content_digest(load(content))


@pytest.mark.parametrize(
    "added",
    [
        pytest.param(tagged(5, 0, varint(77)), id="number"),
        pytest.param(tagged(5, 0, varint(2**40)), id="large-number"),
        pytest.param(tagged(1, 2, b"other"), id="name"),
    ],
)
def test_what_each_process_chooses_does_not_count(added: bytes) -> None:
    """The number of a module in its process, and its name, are not its content, wherever they stand."""
    assert digest(PROTO + added) == digest(added + PROTO) == digest(PROTO)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(PROTO + tagged(7777, 0, varint(5)), id="unknown-field"),
        pytest.param(PROTO + tagged(7777, 1, bytes(8)), id="eight-bytes"),
        pytest.param(PROTO + tagged(7777, 5, bytes(4)), id="four-bytes"),
        pytest.param(module(all_reduce(), all_reduce(9)).SerializeToString(), id="one-more"),
    ],
)
def test_everything_else_counts(content: bytes) -> None:
    """Any other byte makes another module, also where nobody knows its meaning."""
    assert digest(content) != digest(PROTO)
    assert digest(content) == digest(content + tagged(5, 0, varint(3)))


def test_containers_do_not_count() -> None:
    """A module is the same one alone and inside the message that compilers write."""
    assert {digest(content) for content in containers().values()} == {digest(PROTO)}
    assert digest(step("[2,4]<=[8]")) != digest(step("[4,2]<=[8]"))
