"""Passes on damaged modules refuse in our own words or give a module that can be read again; NEFF files likewise."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import commlens
from commlens.errors import CommlensError
from commlens.neuron import PASSES, CCInfo, parse_passes, read_neff
from fuzz_inputs import damaged, proto_seeds, text_seeds
from neff_files import neff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Numbers = Callable[[int], Iterator[int]]
    OneInput = Callable[[int], AbstractContextManager[None]]

SPECS = [each.name for each in PASSES]
CONVERSION = "convert-collectives-to-custom-call"
DEFINITIONS = [
    {"replica_groups": [[[0, 1], [2, 3]], [[0, 2], [1, 3]]], "num_streams": 2},
    {"src_target_pairs": [[[0, 1], [1, 0]]], "#rank_world_size": 4},
    {"CCInfo": {"replica_groups": [[[0, 1, 2, 3]]]}},
]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("keep_going", [False, True], ids=["strict", "keep going"])
def test_passes_on_damaged_modules(spec: str, keep_going: bool, numbers: Numbers, one_input: OneInput) -> None:
    """A pass refuses a damaged module as a whole, or what it gives can be loaded and holds nothing newly unread."""
    (chosen,) = parse_passes(spec)
    seeds, done, tried = [*text_seeds(), *proto_seeds()], 0, 0
    for number in numbers(250):
        tried += 1
        with one_input(number):
            try:
                module = commlens.load(damaged(seeds, number))
                result = chosen.run(module, keep_going=keep_going)
            except CommlensError:
                continue
            again = commlens.load(result.module.to_bytes())
            if spec != CONVERSION:  # damaged names of collectives pass; those of custom calls do not
                assert len(again.unread) <= len(module.unread)
            assert result.modified == (result.module.to_bytes() != module.to_bytes())
            done += 1
    assert done > (0.4 if keep_going else 0.2) * tried


def test_damaged_neff_files(numbers: Numbers, one_input: OneInput) -> None:
    """A damaged NEFF is refused in our own words or read."""
    definition = json.dumps(DEFINITIONS[0]).encode()
    seeds, read, tried = [neff(definition), neff(definition, pkg=1)], 0, 0
    for number in numbers(1500):
        tried += 1
        with one_input(number):
            try:
                read_neff(damaged(seeds, number))
                read += 1
            except CommlensError:
                continue
    assert read > 0.1 * tried


def test_damaged_definitions(numbers: Numbers, one_input: OneInput) -> None:
    """A damaged def.json is refused in our own words, or what it says can be written and read back."""
    seeds, read, tried = [json.dumps(each).encode() for each in DEFINITIONS], 0, 0
    for number in numbers(3000):
        tried += 1
        with one_input(number):
            try:
                info = CCInfo.from_def_json(damaged(seeds, number))
            except CommlensError:
                continue
            assert CCInfo.from_def_json(info.to_def_json()).replica_groups == info.replica_groups
            read += 1
    assert read > 0.1 * tried
