"""Reading large modules, against XLA's own reader on the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import commlens
from figures import Table, best

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_benchmark.fixture import BenchmarkFixture

MEGABYTE = 1_000_000
XLA = """
import sys, time
from jaxlib import _hlo

path, kind = sys.argv[1:]
data = open(path, "rb").read()
data = data.decode() if kind == "text" else data
reader = _hlo.hlo_module_from_text if kind == "text" else _hlo.HloModule.from_serialized_hlo_module_proto
best = float("inf")
for _ in range(4):
    start = time.perf_counter()
    module = reader(data)
    best = min(best, time.perf_counter() - start)
    del module
print(best)
"""
PEAK = """
import re, sys, commlens

report = commlens.report(commlens.load(sys.argv[1]))
assert report.collectives and report.totals is not None
print(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
"""


@cache
def xla(path: Path, kind: str) -> float:
    """Return the best time of XLA's own reader, in a process of its own so that its memory is not in our way."""
    done = subprocess.run([sys.executable, "-c", XLA, str(path), kind], capture_output=True, text=True, check=True)
    return float(done.stdout)


def read(path: Path) -> commlens.Report:
    """Return the report of a file, rows and totals made."""
    report = commlens.report(commlens.load(path))
    assert len(report.collectives) > 0
    assert report.totals is not None
    return report


def ours(benchmark: BenchmarkFixture, path: Path) -> float:
    """Return our best time for a file."""
    benchmark.pedantic(read, args=(path,), rounds=5, warmup_rounds=1)
    return best(benchmark)


def peak_bytes(path: Path) -> int:
    """Return the peak memory of a process that reports on a file (Linux; ``ru_maxrss`` would count its parent's)."""
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024


def test_dense_text(benchmark: BenchmarkFixture, table: Table, dense_text: Path) -> None:
    """A text with a collective every 3 kB."""
    table.faster(
        "report of a dense text / XLA's text reader", ours(benchmark, dense_text), xla(dense_text, "text"), at_least=12
    )


def test_sparse_text(benchmark: BenchmarkFixture, table: Table, sparse_text: Path) -> None:
    """A text with a collective every 100 kB."""
    table.faster(
        "report of a sparse text / XLA's text reader",
        ours(benchmark, sparse_text),
        xla(sparse_text, "text"),
        at_least=25,
    )


def test_dense_proto(benchmark: BenchmarkFixture, table: Table, dense_proto: Path) -> None:
    """The dense module as a proto."""
    table.faster(
        "report of a dense proto / XLA's proto reader",
        ours(benchmark, dense_proto),
        xla(dense_proto, "proto"),
        at_least=4,
    )


def test_dense_json(benchmark: BenchmarkFixture, table: Table, dense_text: Path) -> None:
    """The whole command, JSON of every row included."""
    command = [sys.executable, "-c", "import sys; from commlens.cli import main; sys.exit(main())", "report"]
    arguments = [*command, str(dense_text), "--format", "json"]

    def run() -> None:
        done = subprocess.run(arguments, capture_output=True, check=True)
        assert json.loads(done.stdout)["schema"] == "commlens.report/1"

    benchmark.pedantic(run, rounds=3)
    table.under("commlens report --format json, dense text", best(benchmark), 4.0)


def test_peak_memory_text(benchmark: BenchmarkFixture, table: Table, dense_text: Path) -> None:
    """Peak memory of a process that reads the dense text."""
    limit = int(1.5 * dense_text.stat().st_size) + 100 * MEGABYTE
    table.memory("peak memory, dense text", benchmark.pedantic(peak_bytes, args=(dense_text,), rounds=1), limit)


def test_peak_memory_proto(benchmark: BenchmarkFixture, table: Table, dense_proto: Path) -> None:
    """Peak memory of a process that reads the dense proto."""
    limit = 6 * dense_proto.stat().st_size + 100 * MEGABYTE
    table.memory("peak memory, dense proto", benchmark.pedantic(peak_bytes, args=(dense_proto,), rounds=1), limit)
