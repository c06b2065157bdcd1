"""Reports held against what real programs say about themselves: recorded while tracing them, never read from HLO."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import twins_participants
from commlens.analysis import report
from commlens.hlo import load
from commlens.topology import Mesh, MeshAxesReplicaGroupList

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commlens.analysis import Report, Row

PROGRAMS = ("jax-*/*.txt*", "jax-*/*.pb*", "torch_xla-*/*.txt*", "torch_xla-*/*.pb*")
TEXTS = ("jax-*/*.txt*", "torch_xla-*/*.txt*")

Groups = tuple[tuple[int, ...], ...]


class Kind(NamedTuple):
    """What is compared: an operation over some groups or pairs."""

    opcode: str
    groups: Groups


@cache
def truth_of(program: Path) -> dict[str, Any]:
    """Read what a program says of itself, from any of its files."""
    stem = program.name.split(".")[0]
    (file,) = program.parent.glob(f"{stem}.truth.json*")
    content = file.read_bytes()
    return json.loads(gzip.decompress(content) if file.suffix == ".gz" else content)


@cache
def report_of_file(file: Path) -> Report:
    """Report a module with the counts and the mesh that its program states."""
    truth = truth_of(file)
    module = load(file, replicas=truth["num_replicas"], partitions=truth["num_partitions"])
    return report(module, mesh_of(truth))


def mesh_of(truth: dict[str, Any]) -> Mesh | None:
    """Return the mesh of a program over logical ids."""
    mesh = truth["mesh"]
    return Mesh(list(zip(mesh["axis_names"], mesh["shape"], strict=True))) if mesh else None


def is_after(file: Path) -> bool:
    """Whether a file was written after optimisation."""
    return ".after." in file.name


def expected(file: Path) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """Yield the collectives that the program says a file holds."""
    truth = truth_of(file)
    for entry in truth["explicit_collectives"]:
        if entry.get("derived") == "sharded contraction" and not is_after(file):
            continue  # only the partitioner makes it
        groups = entry["groups"] if "groups" in entry else entry["pairs"]
        if entry.get("ids", "").startswith("replica id"):
            groups = twins_participants.participants(
                "cross_replica", groups, truth["num_replicas"], truth["num_partitions"]
            )
        yield Kind(entry["opcode"], sorted_groups(groups)), entry


def kind_of(row: Row) -> Kind:
    """Return what a row is; jax up to 0.5 gives a broadcast no channel, and so ids that no replica has: as written."""
    groups = row.participants
    if groups is None and row.replica_groups is not None:
        assert (row.opcode, row.group_mode) == ("collective-broadcast", "kCrossReplica")
        groups = row.replica_groups.groups
    return Kind(row.opcode, sorted_groups(groups or []))


def sorted_groups(groups: list[list[int]]) -> Groups:
    """Forget the order of groups, keep that of members."""
    return tuple(sorted(tuple(group) for group in groups))


def bytes_of(entry: dict[str, Any], *, after: bool) -> int:
    """Return the bytes of a call on one device; CPU widens an all-reduce of bf16 to f32."""
    widened = after and entry["opcode"] == "all-reduce"
    return sum(each["bytes"] * (2 if widened and each["dtype"] == "bf16" else 1) for each in entry["operands"])


def payload_of(row: Row) -> int:
    """Return the bytes of a row; torch_xla adds a scalar to its all-reduces that the program does not know of."""
    assert row.operand_bytes is not None
    extra = row.opcode == "all-reduce" and row.operand_shapes[1:] == ["f32[]"] and row.operand_shapes[0] != "f32[]"
    return row.operand_bytes - (4 if extra and row.constrain_layout else 0)


@pytest.mark.corpus(*PROGRAMS)
def test_everything_is_read(corpus_file: Path) -> None:
    """No collective of a real program is left unread."""
    if ".truth." not in corpus_file.name:
        assert report_of_file(corpus_file).unread == ()


@pytest.mark.corpus(*PROGRAMS)
def test_bytes_and_executions_are_those_of_the_program(corpus_file: Path) -> None:
    """Per operation and groups, bytes times executions are what the program moves, nothing else where it says so."""
    truth, rows = truth_of(corpus_file), report_of_file(corpus_file).collectives
    stated: Counter[Kind] = Counter()
    unknown: set[Kind] = set()
    for kind, entry in expected(corpus_file):
        executions = entry.get("executions_per_step", 1)
        stated[kind] += bytes_of(entry, after=is_after(corpus_file)) * (executions or 0)
        if executions is None:
            unknown.add(kind)
    found: Counter[Kind] = Counter()
    for row in rows:
        found[kind_of(row)] += payload_of(row) * (row.trip_count or 0)
    assert all(found[kind] >= number for kind, number in stated.items())
    kinds = {kind_of(row) for row in rows}
    assert kinds >= stated.keys()
    assert {kind_of(row) for row in rows if row.trip_count is None} >= unknown
    if truth["only_explicit"]:
        assert found == stated
        assert kinds == stated.keys()
        assert {kind_of(row) for row in rows if row.trip_count is None} == unknown


@pytest.mark.corpus(*PROGRAMS)
def test_axes_are_those_of_the_program(corpus_file: Path) -> None:
    """Where a call runs over whole axes, its rows name them in the order of the call."""
    mesh = mesh_of(truth_of(corpus_file))
    rows = {kind_of(row): row for row in report_of_file(corpus_file).collectives}
    for kind, entry in expected(corpus_file):
        if mesh is None or "axes" not in entry or rows[kind].participants is None:
            continue
        whole = MeshAxesReplicaGroupList(mesh, entry["axes"]).groups()
        if "pairs" in entry or sorted_groups(whole) == kind.groups:
            assert rows[kind].axes == entry["axes"]


@pytest.mark.corpus(*PROGRAMS)
def test_branches_are_said(corpus_file: Path) -> None:
    """A collective that runs in one branch only names a conditional, and one outside of branches names none."""
    entries = list(expected(corpus_file))
    sometimes = {kind for kind, entry in entries if "conditional" in entry}
    always = {kind for kind, entry in entries if "conditional" not in entry}
    for row in report_of_file(corpus_file).collectives:
        kind = kind_of(row)
        assert bool(row.conditional) or kind not in sometimes - always
        assert not row.conditional or kind not in always - sometimes


@pytest.mark.corpus(*PROGRAMS)
def test_tags_reach_the_rows(corpus_file: Path) -> None:
    """Every collective_type that the program sets is on a row with these groups, as often as it is set."""
    stated = Counter(
        (kind, entry["collective_type"]) for kind, entry in expected(corpus_file) if "collective_type" in entry
    )
    found = Counter((kind_of(row), row.collective_type) for row in report_of_file(corpus_file).collectives)
    assert stated <= found


@pytest.mark.corpus(*TEXTS)
def test_text_and_proto_give_the_same_rows(corpus_file: Path) -> None:
    """The two files of one module differ in lines alone; text of jax before optimisation has no metadata."""
    left_out = {"line"} | (set() if is_after(corpus_file) else {"op_name", "source"})
    (proto,) = corpus_file.parent.glob(f"{corpus_file.name.split('.txt')[0]}.pb*")
    as_text, as_proto = (
        Counter(
            json.dumps({key: value for key, value in row.as_dict().items() if key not in left_out})
            for row in report_of_file(file).collectives
        )
        for file in (corpus_file, proto)
    )
    assert as_text == as_proto
