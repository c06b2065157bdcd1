"""Participants as the JAX CPU runtime has them: the table of group modes, seen on running programs.

Meshes with a device order of their own are not among the cases: on the way to the runtime jaxlib 0.10.2 turns HLO into
MLIR and loses the order there (``sdy.mesh @mesh = <["a"=2, "b"=4]>`` without ``device_ids``), so it runs other groups
than the HLO says.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from commlens.topology import CollectiveOpGroupMode as Mode
from commlens.topology import parse_replica_groups, participant_list

FLAG = ", use_global_device_ids=true"
CASES: list[tuple[int, int, Mode, str]] = [
    (2, 4, Mode.CROSS_REPLICA, "{{0,1}}"),
    (2, 4, Mode.CROSS_REPLICA, "{}"),
    (4, 2, Mode.CROSS_REPLICA, "{{0,2},{1,3}}"),
    (4, 2, Mode.CROSS_REPLICA, "[2,2]<=[2,2]T(1,0)"),
    (8, 1, Mode.CROSS_REPLICA, "{{0,3,5},{1},{2,4,6,7}}"),
    (2, 4, Mode.CROSS_REPLICA_AND_PARTITION, "{{0},{1}}"),
    (2, 4, Mode.CROSS_REPLICA_AND_PARTITION, "{{0,1}}"),
    (2, 4, Mode.CROSS_REPLICA_AND_PARTITION, "{}"),
    (4, 2, Mode.CROSS_REPLICA_AND_PARTITION, "[2,2]<=[2,2]T(1,0)"),
    (2, 4, Mode.FLATTENED_ID, "{{0,1},{2,3},{4,5},{6,7}}"),
    (2, 4, Mode.FLATTENED_ID, "[2,4]<=[4,2]T(1,0)"),
    (1, 8, Mode.FLATTENED_ID, "[4,2]<=[2,2,2]T(1,0,2)"),
    (1, 8, Mode.FLATTENED_ID, "mesh['a'=2,'b'=4] {'a'}"),
    (1, 8, Mode.FLATTENED_ID, "mesh['a'=2,'b'=4] {'b':(1)2,'a'}"),
    (8, 1, Mode.FLATTENED_ID, "{{7,0,3},{1,2},{4,5,6}}"),
]


def attributes(mode: Mode, groups: str) -> str:
    """Spell the attributes of an all-reduce in a mode."""
    channel = "" if mode is Mode.CROSS_REPLICA else "channel_id=1, "
    return f"{channel}replica_groups={groups}{FLAG if mode is Mode.FLATTENED_ID else ''}"


@pytest.fixture(scope="module")
def observed() -> list[list[list[int]]]:
    """Run all cases in one child process."""
    cases = [{"replicas": r, "partitions": p, "attributes": attributes(mode, groups)} for r, p, mode, groups in CASES]
    script = Path(__file__).with_name("run_collectives.py")
    child = subprocess.run(
        [sys.executable, str(script)], input=json.dumps(cases), capture_output=True, text=True, timeout=300, check=False
    )
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{mode.snake} {groups}" for _, _, mode, groups in CASES])
def test_participants_are_those_of_the_runtime(number: int, observed: list[list[list[int]]]) -> None:
    """Every device hears from the members of its group; one in no group keeps to itself or hears from nobody."""
    replicas, partitions, mode, groups = CASES[number]
    predicted = participant_list(mode, parse_replica_groups(groups), replicas, partitions)
    for device, heard in enumerate(observed[number]):
        found = predicted.group_of(device)
        assert found is not None
        assert heard == sorted(predicted.group(found[0]))
