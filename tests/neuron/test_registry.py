"""The registry of passes: numbers, names, order, options, and reading passes from text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import commlens.neuron
from commlens.errors import CommlensError, GrammarError
from commlens.hlo import options_of, parse_specs, spec_of
from commlens.neuron import NEURON_PIPELINE, PASSES, PIPELINES, parse_passes, pipeline_passes

if TYPE_CHECKING:
    from commlens.hlo import Pass

NUMBERS = {
    11: "convert-collectives-to-custom-call",
    58: "collective-stream-id-checker",
    77: "all-gather-combiner",
    78: "reduce-scatter-combiner",
    79: "all-reduce-combiner",
    81: "aws_neuron_collective_stream_id_injector",
    82: "neuron_unique_channel_id_enforcer",
}
CLASSES = {
    "convert-collectives-to-custom-call": "ConvertCollectivesToCustomCall",
    "collective-stream-id-checker": "CollectiveStreamIdChecker",
    "all-gather-combiner": "NeuronAllGatherCombiner",
    "reduce-scatter-combiner": "NeuronReduceScatterCombiner",
    "all-reduce-combiner": "NeuronAllReduceCombiner",
    "aws_neuron_collective_stream_id_injector": "NeuronCollectiveStreamIdInjector",
    "neuron_unique_channel_id_enforcer": "NeuronUniqueChannelIdEnforcer",
}
COMBINING = "threshold_bytes=1073741824 threshold_count=256 skip_while_bodies=false mixed_dtypes=false"
OPTIONS = {
    "all-gather-combiner": f"{COMBINING} combine_by_dim=true tp_group=auto",
    "reduce-scatter-combiner": f"{COMBINING} combine_by_dim=true tp_group=auto",
    "all-reduce-combiner": COMBINING,
    "neuron_unique_channel_id_enforcer": "safe=false",
}


def test_numbers_and_names() -> None:
    """Seven passes with the registry's numbers and exact names, in the order of the numbers."""
    assert {each.number: each.name for each in PASSES} == NUMBERS
    assert [each.number for each in PASSES] == sorted(NUMBERS)


def test_the_neuron_pipeline() -> None:
    """Six of them in the registry's order; the conversion to custom calls runs only when named."""
    assert list(NEURON_PIPELINE) == [NUMBERS[number] for number in (58, 77, 78, 79, 81, 82)]
    assert [each.name for each in pipeline_passes("neuron")] == list(NEURON_PIPELINE)
    assert dict(PIPELINES) == {"neuron": NEURON_PIPELINE}


@pytest.mark.parametrize("registered", PASSES, ids=lambda each: each.name)
def test_every_entry_leads_to_its_class(registered: commlens.neuron.RegisteredPass) -> None:
    """The class bears the name it is registered under, is public, and is made without arguments."""
    pass_class = registered.pass_class
    assert pass_class.name == registered.name
    assert getattr(commlens.neuron, CLASSES[registered.name]) is pass_class
    assert str(pass_class()) == registered.name
    assert registered.summary.isprintable()
    assert len(registered.summary) <= 100


@pytest.mark.parametrize("registered", PASSES, ids=lambda each: each.name)
def test_options_and_their_defaults(registered: commlens.neuron.RegisteredPass) -> None:
    """The options are those of the outside contract."""
    found = {f"{each.name}={str(each.default).lower()}" for each in registered.options}
    assert found == set(OPTIONS.get(registered.name, "").split())


@st.composite
def known_passes(draw: st.DrawFn) -> Pass:
    """Make any pass with any options."""
    pass_class = draw(st.sampled_from(PASSES)).pass_class
    kinds = {"int": st.integers(-(2**63), 2**63 - 1), "bool": st.booleans()}
    values = {
        each.name: draw(kinds.get(each.kind, st.sampled_from(each.words or ("",)))) for each in options_of(pass_class)
    }
    text = ",".join(f"{name}={str(value).lower()}" for name, value in values.items())
    [made] = parse_specs(f"{pass_class.name}{{{text}}}", {pass_class.name: pass_class})
    assert {name: getattr(made, name) for name in values} == values
    return made


@given(one=known_passes())
def test_text_and_constructor_say_the_same(one: Pass) -> None:
    """Every pass reads back from its text, whatever its options are."""
    assert parse_passes(spec_of(one)) == (one,)


@pytest.mark.parametrize(
    ("spec", "position", "says"),
    [
        pytest.param("all-gather-combine", 0, "the nearest is 'all-gather-combiner'", id="pass"),
        pytest.param("neuron_unique_channel_id_enforcer{save=true}", 34, "the nearest is 'safe'", id="option"),
        pytest.param("collective-stream-id-checker,neuron-unique-channel-id-enforcer", 29, "'neuron_unique_channel_id_enforcer'", id="exact-names"),
        pytest.param("neuron", 0, "expected the name of a pass, found 'neuron'", id="a-pipeline-is-no-pass"),
    ],
)  # fmt: skip
def test_unknown_names(spec: str, position: int, says: str) -> None:
    """The nearest name is told, and the place."""
    with pytest.raises(GrammarError) as caught:
        parse_passes(spec)
    assert says in str(caught.value)
    assert caught.value.position == position


def test_unknown_pipelines() -> None:
    """So it is for pipelines."""
    with pytest.raises(
        CommlensError, match="^expected the name of a pipeline, found 'neurons'; the nearest is 'neuron'$"
    ):
        pipeline_passes("neurons")
