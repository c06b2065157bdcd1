"""A slow twin of XLA's client for the tiny programs of ``prove``: reads their text and moves numbers device by device."""

from __future__ import annotations

import json
import re
from math import prod
from typing import TYPE_CHECKING

import twins
import twins_participants
from commlens.analysis import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlens.analysis import Program

Groups = list[list[int]]
HLO_TO_JSON = str.maketrans("{}", "[]")


def run(programs: Sequence[Program]) -> list[Outcome]:
    """Run programs as the documents say that XLA does."""
    return [run_one(program) for program in programs]


def run_otherwise(change: Callable[[Groups], Groups]) -> Callable[[Sequence[Program]], list[Outcome]]:
    """Return a runtime that joins other groups than it should."""
    return lambda programs: [run_one(program, change) for program in programs]


def run_one(program: Program, change: Callable[[Groups], Groups] = lambda groups: groups) -> Outcome:
    """Run one program; a list by mesh axes is refused, as an old XLA would, and so is a shape that does not fit."""
    refused = "no such spelling"
    for number, text in enumerate(program.texts):
        if "mesh[" in text:
            continue
        results = _results(text, program, change)
        if _fits(text, results):
            return Outcome(results, number)
        refused = "shard_count == subgroup_size"
    return Outcome(None, refused=refused)


def _fits(text: str, results: Sequence[Sequence[int]]) -> bool:
    """Tell whether the shapes in a text are those of the results, as XLA's verifier insists."""
    [width] = re.findall(r"ROOT heard = s32\[(\d+)\]", text)
    return all(len(vector) == int(width) for vector in results)


def _results(text: str, program: Program, change: Callable[[Groups], Groups]) -> tuple[tuple[int, ...], ...]:
    opcode, given, attributes = re.findall(r"= (?:\([^)]*\)|\S+) ([a-z\-]+)\(([^)]*)\), (.*(?:groups|pairs)=.*)", text)[
        0
    ]
    operands = given.count(",") + 1
    mode = _mode(opcode, attributes)
    arguments = program.arguments
    if opcode == "collective-permute":
        listed = json.loads(attributes.split("source_target_pairs=")[1].split("}}")[0].translate(HLO_TO_JSON) + "]]")
        moves = change([list(pair) for pair in twins_participants.pairs(mode, listed, *_counts(text))])
        return tuple(tuple(next((arguments[s] for s, t in moves if t == device), (0,))) for device in _devices(program))
    groups = change(twins_participants.participants(mode, _groups(attributes), *_counts(text)))
    by_device = {device: (group, rank) for group in groups for rank, device in enumerate(group)}
    return tuple(
        _got(opcode, arguments, operands, *by_device.get(device, ([device], 0))) for device in _devices(program)
    )


def _devices(program: Program) -> range:
    return range(len(program.arguments))


def _got(
    opcode: str, arguments: Sequence[Sequence[int]], operands: int, group: list[int], rank: int
) -> tuple[int, ...]:
    """Return what one device gets."""
    given = [arguments[device] for device in group]
    if opcode == "collective-broadcast":
        return tuple(given[0])
    if opcode == "all-to-all" and operands not in (1, len(group)):
        return ()
    if opcode == "all-gather":
        return tuple(number for vector in given for number in vector)
    width = len(given[0]) // (1 if opcode == "all-reduce" else len(group))
    own = [vector[:width] if opcode == "all-reduce" else vector[rank * width : (rank + 1) * width] for vector in given]
    if opcode == "all-to-all":
        return tuple(number for part in own for number in part)
    return tuple(sum(numbers) for numbers in zip(*own, strict=True))


def _counts(text: str) -> tuple[int, int]:
    found = dict(re.findall(r"(replica_count|num_partitions)=(\d+)", text))
    return int(found.get("replica_count", 1)), int(found.get("num_partitions", 1))


def _mode(opcode: str, attributes: str) -> str:
    """Read the table of modes."""
    if "channel_id=" not in attributes:
        return "cross_replica"
    if opcode not in ("all-gather", "all-reduce", "reduce-scatter"):
        return "cross_partition"
    return "flattened_id" if "use_global_device_ids=true" in attributes else "cross_replica_and_partition"


def _groups(attributes: str) -> Groups:
    value = attributes.split("replica_groups=")[1]
    if value.startswith("{}"):
        return []
    if value.startswith("{{"):
        return json.loads(value.split("}}")[0].translate(HLO_TO_JSON) + "]]")
    [(number, size, reshape, perm)] = re.findall(r"^\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", value)
    sizes = [int(each) for each in reshape.split(",")]
    order = [int(each) for each in perm.split(",")] if perm else list(range(len(sizes)))
    assert int(number) * int(size) == prod(sizes)
    return twins.rows(twins.iota(sizes, order), int(size))
