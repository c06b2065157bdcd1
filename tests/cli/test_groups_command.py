"""``commlens groups``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from commlens.topology import parse_replica_groups

if TYPE_CHECKING:
    from command_line import Run

HERE = Path(__file__).parent
MESH = ("--mesh", "data=2,model=4")
SHARDING = ("--sharding", "{devices=[4,2]<=[8]}")


def test_the_answer_as_it_looks(run: Run) -> None:
    """The attributes to paste stand on the first line; below is the explanation."""
    outcome = run("groups", *MESH, "--over", "data")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == (HERE / "golden" / "groups.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "groups"),
    [
        pytest.param([*MESH, "--over", "data"], [[0, 4], [1, 5], [2, 6], [3, 7]], id="one-axis"),
        pytest.param([*MESH, "--over", "model,data"], [[0, 4, 1, 5, 2, 6, 3, 7]], id="order-is-the-order-inside"),
        pytest.param([*MESH, "--over", "model:(1)2"], [[0, 2], [1, 3], [4, 6], [5, 7]], id="sub-axis"),
        pytest.param([*SHARDING, "--dims", "0"], [[0, 2, 4, 6], [1, 3, 5, 7]], id="sharding"),
        pytest.param([*SHARDING, "--dims", "1,0"], [[0, 1, 2, 3, 4, 5, 6, 7]], id="dims-are-sorted"),
    ],
)
def test_groups(run: Run, arguments: list[str], groups: list[list[int]]) -> None:
    """The groups are those of the axes or dimensions, and the attributes spell them."""
    answer = json.loads(run("groups", *arguments, "--channel-id", "7", "--format", "json").out)
    assert answer["schema"] == "commlens.groups/1"
    assert answer["groups"] == groups
    channel, spelled, flag = answer["attributes"].split(", ")
    assert (channel, flag) == ("channel_id=7", "use_global_device_ids=true")
    assert parse_replica_groups(spelled.removeprefix("replica_groups=")).groups() == groups


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param([], "expected --mesh and --over, or --sharding and --dims", id="nothing"),
        pytest.param(["--over", "data"], "expected --mesh and --over", id="no-mesh"),
        pytest.param([*MESH, "--over", "data", "--dims", "0"], "expected --mesh and --over", id="both"),
        pytest.param([*SHARDING, "--dims", "x"], "expected dimensions such as 0 or 0,2, found 'x'", id="no-dims"),
        pytest.param([*SHARDING, "--dims", "5"], "5", id="no-such-dimension"),
        pytest.param(["--sharding", "{devices=[4,2", "--dims", "0"], "SPEC:1:", id="broken-sharding"),
        pytest.param(["--sharding", "{replicated}", "--dims", "0"], "replicated", id="nothing-is-sharded"),
        pytest.param([*MESH, "--over", "pipeline"], "'pipeline'", id="unknown-axis"),
        pytest.param([*MESH, "--over", "data", "--channel-id", "0"], "--channel-id", id="no-channel"),
    ],
)
def test_unusable_questions(run: Run, arguments: list[str], says: str) -> None:
    """A question that has no answer is one line that says what is missing or wrong."""
    assert says in run("groups", *arguments).error


def test_a_huge_mesh(run: Run) -> None:
    """The attributes of 2^40 devices are as short as those of 8."""
    out = run("groups", "--mesh", "a=1048576,b=1048576", "--over", "a").out
    assert out.startswith("channel_id=1, replica_groups=[1048576,1048576]<=[1048576,1048576]T(1,0), use_global")
