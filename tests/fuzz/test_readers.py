"""Readers survive damaged inputs: they answer or refuse in their own words, lose no byte and hide no collective."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import commlens
from commlens.analysis import as_mesh, explain_log
from commlens.errors import CommlensError
from commlens.hlo import discover
from commlens.neuron import LOG_MESSAGES
from commlens.topology import parse_replica_groups, parse_sharding, parse_source_target_pairs
from fuzz_inputs import HAND_WRITTEN, LOGS, SPECS, damaged, proto_seeds, text_seeds
from independent_counter import calls_of_collectives

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from commlens.hlo import Module

    Numbers = Callable[[int], Iterator[int]]
    OneInput = Callable[[int], AbstractContextManager[None]]


def loaded(data: bytes) -> list[Module]:
    """Return the modules of an input, none where it is refused."""
    try:
        return commlens.load_all(data)
    except CommlensError:
        return []


def test_damaged_texts_are_read_whole(numbers: Numbers, one_input: OneInput) -> None:
    """Every call of a collective in a damaged text is a row or an unread item, and the text is kept byte for byte."""
    seeds, read, tried = text_seeds(), 0, 0
    for number in numbers(2500):
        tried += 1
        data = damaged(seeds, number)
        with one_input(number):
            modules = loaded(data)
            if not modules or modules[0].format != "text":
                continue
            read += 1
            found = [discover(module) for module in modules]
            assert b"".join(module.to_bytes() for module in modules) == data
            assert sum(len(each.sites) + len(each.unread) for each in found) >= calls_of_collectives(data)
    assert read > 0.8 * tried


def test_damaged_protos_are_refused_or_reported(numbers: Numbers, one_input: OneInput) -> None:
    """A damaged proto is refused in our own words, or gives a report and its own bytes."""
    seeds, read, tried = proto_seeds(), 0, 0
    for number in numbers(4000):
        tried += 1
        data = damaged(seeds, number)
        with one_input(number):
            for module in loaded(data):
                report = commlens.report(module)
                assert module.to_bytes() == data
                assert sum(each.count for each in report.totals.by_opcode.values()) == len(report.collectives)
                read += 1
    assert read > 0.08 * tried


def test_damaged_specs_are_refused_or_print_as_they_were_read(numbers: Numbers, one_input: OneInput) -> None:
    """A group list, sharding or list of pairs is refused in our own words, or its text reads back as the same."""
    read = tried = 0
    for number in numbers(10_000):
        tried += 1
        text = damaged(SPECS, number).decode("utf-8", "replace")
        for parse in (parse_replica_groups, parse_sharding, parse_source_target_pairs):
            with one_input(number):
                try:
                    value = parse(text)
                except CommlensError:
                    continue
                assert parse(str(value)) == value
                read += 1
    assert read > 0.06 * tried


def test_damaged_meshes_are_refused_or_print_as_they_were_read(numbers: Numbers, one_input: OneInput) -> None:
    """Axes for ``--mesh`` are refused in our own words, or what was read can be written and read again."""
    seeds, read, tried = [b"data=2,model=4", b"x=1,y=8,z=3", b"a=16"], 0, 0
    for number in numbers(3000):
        tried += 1
        text = damaged(seeds, number).decode("utf-8", "replace")
        if "\x00" in text or Path(text).suffix == ".json":
            continue
        with one_input(number):
            try:
                mesh = as_mesh(text)
            except CommlensError:
                continue
            assert mesh is not None
            assert as_mesh(",".join(f"{name}={size}" for name, size in mesh.axes)) == mesh
            read += 1
    assert read > 0.1 * tried


def test_damaged_logs_are_explained(numbers: Numbers, one_input: OneInput) -> None:
    """Whatever a log holds, every message stands on one of its lines and has as many candidates as it says."""
    program = commlens.load(HAND_WRITTEN)
    heard = tried = 0
    for number in numbers(1500):
        tried += 1
        log = damaged(LOGS, number)
        with one_input(number):
            answer = explain_log(log, [program], kinds=LOG_MESSAGES)
            assert all(1 <= each.line <= log.count(b"\n") + 1 for each in answer.messages)
            assert sum(each.candidates for each in answer.messages) == len(answer.candidates)
            heard += bool(answer.messages)
    assert heard > 0.5 * tried
