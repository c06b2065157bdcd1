"""Large device lists, against numpy doing only the unavoidable part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlens.topology import CollectiveDeviceList, IotaTileAssignment, Mesh, axes_of, parse_replica_groups
from figures import Table, best, best_of

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

MICROSECOND, MILLISECOND = 1e-6, 1e-3


def test_to_array(benchmark: BenchmarkFixture, table: Table) -> None:
    """An array of 2^24 devices, against numpy's own transposed copy."""
    tile = IotaTileAssignment((4096, 4096), (64, 64, 4096), (2, 0, 1))
    grid = np.arange(1 << 24).reshape(64, 64, 4096)
    theirs = best_of(lambda: grid.transpose(2, 0, 1).copy(), 7)
    benchmark.pedantic(tile.to_array, rounds=7, warmup_rounds=1)
    table.within("to_array of 2^24 devices / numpy's copy", best(benchmark), theirs, at_most=1.3)


def test_group_of(benchmark: BenchmarkFixture, table: Table) -> None:
    """The group of one device among 2^20."""
    groups = parse_replica_groups("[1024,1024]<=[32,32,32,32]T(3,1,0,2)")
    benchmark(groups.group_of, 777_777)
    table.under("group_of, iota list of 2^20 devices", best(benchmark), 50 * MICROSECOND)


def test_axes(benchmark: BenchmarkFixture, table: Table) -> None:
    """The axes of an iota list over 2^20 devices."""
    groups = parse_replica_groups("[1024,1024]<=[32,32,32,32]T(3,1,0,2)")
    mesh = Mesh({"a": 32, "b": 32, "c": 32, "d": 32})
    assert benchmark(axes_of, groups, mesh) is not None
    table.under("axes, iota list of 2^20 devices", best(benchmark), 1 * MILLISECOND)


def test_recognise(benchmark: BenchmarkFixture, table: Table) -> None:
    """An explicit list of 2^20 ids found to be an iota, against making an array of it."""
    ids = np.arange(1 << 20).reshape(32, 32, 1024).transpose(2, 1, 0).reshape(1024, 1024).tolist()
    theirs = best_of(lambda: np.asarray(ids), 5)

    def recognise() -> None:
        assert CollectiveDeviceList(ids).to_iota() is not None

    benchmark.pedantic(recognise, rounds=5, warmup_rounds=1)
    table.within("recognising 2^20 ids / np.asarray", best(benchmark), theirs, at_most=3)
