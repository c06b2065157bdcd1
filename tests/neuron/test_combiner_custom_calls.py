"""The combiners and collectives that are written as custom calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from commlens import load
from commlens.neuron import NeuronAllGatherCombiner, NeuronAllReduceCombiner, NeuronReduceScatterCombiner
from neuron_modules import stats_of


@pytest.mark.parametrize("ending", ["txt", "pb"])
def test_collectives_that_are_custom_calls_are_named(ending: str) -> None:
    """They are none to XLA, so nothing is combined, and whoever wonders finds their names."""
    folder = Path(__file__).parents[1] / "data" / "protos"
    module = load(folder / f"jax-0.12.0.1.async_start_2x4.before.{ending}")
    for combiner, name in (
        (NeuronAllGatherCombiner(), "all_gather_start.1"),
        (NeuronReduceScatterCombiner(), "reduce_scatter_start.5"),
        (NeuronAllReduceCombiner(), "psum_invariant_start.5"),
    ):
        stats = stats_of(combiner.run(module))
        assert [each["instruction"] for each in stats["custom_calls"]] == [name]
        assert stats["counts"]["candidates"] == 0
