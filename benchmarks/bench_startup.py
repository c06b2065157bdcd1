"""Whole processes: what a person waits for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from figures import best

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

    from figures import Table

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
COMMAND = Path(sys.executable).with_name("commlens")


def commlens(*arguments: str) -> None:
    """Run the installed command."""
    subprocess.run([COMMAND, *arguments], capture_output=True, check=True)


def test_help(benchmark: BenchmarkFixture, table: Table) -> None:
    """``commlens --help``."""
    benchmark.pedantic(commlens, args=("--help",), rounds=10, warmup_rounds=1)
    table.under("commlens --help", best(benchmark), 0.15)


def test_report(benchmark: BenchmarkFixture, table: Table) -> None:
    """``commlens report`` of a module of 320 kB, compressed."""
    module = str(EXAMPLES / "fsdp_tp_scan_2x4.after.txt.gz")
    benchmark.pedantic(commlens, args=("report", module), rounds=10, warmup_rounds=1)
    table.under("commlens report, 320 kB", best(benchmark), 0.6)
