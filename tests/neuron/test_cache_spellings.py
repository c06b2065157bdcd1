"""Cache entries whose modules spell the same groups otherwise, and files of flags that are none."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from commlens.neuron import read_compile_cache
from neff_files import definition, neff
from proto_modules import all_reduce, device_list, module

if TYPE_CHECKING:
    from pathlib import Path

    from commlens.hlo.proto.schema import commlens_hlo_pb2 as schema
    from commlens.neuron import CacheProblem

NEFF = neff(definition(replica_groups=[[[0, 1], [2, 3]]]), lnc_size=2)
TEXT = """HloModule step, num_partitions=4
ENTRY e {{
  p = f32[8] parameter(0)
{more}  r = f32[8] all-reduce(p), channel_id=1, replica_groups={groups}, use_global_device_ids=true, to_apply=add
}}
"""


def problems(folder: Path, *modules: bytes, flags: bytes = b'["--lnc=2"]', name: str = "json") -> list[CacheProblem]:
    """Return what is wrong with the last of some entries that have the same flags."""
    for number, content in enumerate(modules):
        entry = folder / f"MODULE_{number}+{hashlib.md5(flags).hexdigest()[:8]}"
        entry.mkdir()
        (entry / f"compile_flags.{name}").write_bytes(flags)
        (entry / "model.done").touch()
        (entry / "model.hlo_module.pb").write_bytes(content)
        (entry / "model.neff").write_bytes(NEFF)
    return list(read_compile_cache(folder).entries[-1].problems)


def text(groups: str, more: str = "") -> bytes:
    """Return a module with one all-reduce."""
    return TEXT.format(groups=groups, more=more).encode()


def proto(spelling: str, number: int = 2) -> bytes:
    """Return a module with one all-reduce whose groups stand in one of the fields that hold some."""
    reduce = all_reduce(number)
    reduce.ClearField("collective_device_list")
    lists: schema.CollectiveDeviceListProto = reduce.collective_device_list
    if spelling == "listed":
        lists.CopyFrom(device_list([0, 1], [2, 3]))
    elif spelling == "old":
        reduce.ClearField("collective_device_list")
        reduce.replica_groups.extend(device_list([0, 1], [2, 3]).replica_groups)
    else:
        iota = lists.iota_replica_group_list if spelling == "iota" else reduce.iota_collective_device_list
        iota.num_replica_groups = iota.num_devices_per_group = 2
        iota.iota_reshape_dims.append(4)
        iota.iota_transpose_perm.append(0)
    return module(reduce).SerializeToString()


@pytest.mark.parametrize("spelling", ["old", "iota", "new-iota"])
def test_protos_that_spell_the_same_groups_otherwise(spelling: str, tmp_path: Path) -> None:
    """They are the same program, in whichever field the groups stand."""
    assert problems(tmp_path, proto("listed"), proto(spelling)) == []


@pytest.mark.parametrize("groups", ["{{0,1},{2,3}}", "{ {0, 1}, {2,3} }", "[2,2]<=[4]", "[2,2]<=[2,2]T(0,1)"])
def test_texts_that_spell_the_same_groups_otherwise(groups: str, tmp_path: Path) -> None:
    """They are the same program."""
    assert problems(tmp_path, text("[2,2]<=[4]"), text(groups)) == []


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        pytest.param(
            text("[2,2]<=[4]"),
            text("{{2,3},{0,1}}"),
            "is all-reduce {{2,3},{0,1}} here and all-reduce [2,2]<=[4]",
            id="order",
        ),
        pytest.param(
            text("[2,2]<=[4]"),
            text("{{1,0},{3,2}}"),
            "collective 1 is all-reduce {{1,0},{3,2}} here",
            id="order-inside",
        ),
        pytest.param(
            text("[2,2]<=[4]"),
            text("{{0,1},{2,3}}", "  n = f32[8] negate(p)\n"),
            "the module is another: they communicate alike; ",
            id="text-with-more",
        ),
        pytest.param(proto("listed"), proto("iota", 3), "they communicate alike; ", id="proto-with-another-name"),
        pytest.param(proto("listed"), proto("listed", 3), "they communicate alike; ", id="spelled-alike"),
    ],
)
def test_modules_that_differ_in_more_than_spelling(first: bytes, second: bytes, says: str, tmp_path: Path) -> None:
    """The order of groups and of their members counts, and every other byte."""
    [problem] = [each for each in problems(tmp_path, first, second) if each.kind == "modules-differ"]
    assert says in problem.what


@pytest.mark.parametrize(
    "flags", [b'"--lnc=2"', b'{"flags": ["--lnc=2"]}', b"--lnc=2", b'["--lnc=2"', b'["--lnc", 2]', b"\xff"]
)
def test_flags_that_are_no_list(flags: bytes, tmp_path: Path) -> None:
    """The hash may be right; what the flags are is not known."""
    [problem] = problems(tmp_path, text("[2,2]<=[4]"), flags=flags)
    assert problem.kind == "flags"
    assert problem.what == "compile_flags.json: expected a JSON list of texts, one for each flag, found something else"
    [entry] = read_compile_cache(tmp_path).entries
    assert (entry.flags, entry.flags_match) == (None, True)


@pytest.mark.parametrize(("flags", "name"), [(b"[]", "json"), (b'["-O1"]', "json"), (b"", "json"), (b"-O1", "txt")])
def test_flags_that_are_some(flags: bytes, name: str, tmp_path: Path) -> None:
    """A list, also of nothing; a file without a byte; and the words of old caches."""
    assert problems(tmp_path, text("[2,2]<=[4]"), flags=flags, name=name) == []


def test_flags_without_lone_surrogates(tmp_path: Path) -> None:
    """What JSON writes as half a character is an escape."""
    assert problems(tmp_path, text("[2,2]<=[4]"), flags=b'["--a=\\udcff\\ud800"]') == []
    [entry] = read_compile_cache(tmp_path).entries
    assert entry.flags == ("--a=\\xff\\ud800",)
    assert "\\\\ud800" in json.dumps(entry.as_dict())
