"""The passes by name: what a text of passes, a pipeline's name and a list of passes are made from.

Numbers, names and order are those of the registry of neuronx_cc 2.24.5133, as far as it concerns this package. In what
order the compiler itself runs them is not known; the order of the registry stands in for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from commlens.errors import CommlensError, excerpt
from commlens.hlo import nearest, options_of, parse_specs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Option, Pass


@dataclass(frozen=True, slots=True)
class RegisteredPass:
    """One pass of the registry.

    Attributes:
        number: its number there.
        name: its name, as texts of passes spell it.
        home: ``module:class`` within ``commlens.neuron.passes``; imported when it is asked for.
        summary: what it does, in one line.
    """

    number: int
    name: str
    home: str
    summary: str

    @property
    def pass_class(self) -> type[Pass]:
        """The class."""
        module, _, name = self.home.partition(":")
        return cast("type[Pass]", getattr(import_module(f"commlens.neuron.passes.{module}"), name))

    @property
    def options(self) -> tuple[Option, ...]:
        """Its options with their defaults."""
        return options_of(self.pass_class)


PASSES: Final = (
    RegisteredPass(
        11,
        "convert-collectives-to-custom-call",
        "convert_collectives_to_custom_call:ConvertCollectivesToCustomCall",
        "turn all-gather, all-reduce and reduce-scatter of the entry computation into AwsNeuron custom calls",
    ),
    RegisteredPass(
        58,
        "collective-stream-id-checker",
        "collective_stream_id_checker:CollectiveStreamIdChecker",
        "find out whether a collective carries a stream_id; change nothing",
    ),
    RegisteredPass(
        77,
        "all-gather-combiner",
        "all_gather_combiner:NeuronAllGatherCombiner",
        "make one variadic all-gather of several that have the same groups",
    ),
    RegisteredPass(
        78,
        "reduce-scatter-combiner",
        "reduce_scatter_combiner:NeuronReduceScatterCombiner",
        "make one variadic reduce-scatter of several that have the same groups and reduction",
    ),
    RegisteredPass(
        79,
        "all-reduce-combiner",
        "all_reduce_combiner:NeuronAllReduceCombiner",
        "make one variadic all-reduce of several that have the same groups and reduction",
    ),
    RegisteredPass(
        81,
        "aws_neuron_collective_stream_id_injector",
        "collective_stream_id_injector:NeuronCollectiveStreamIdInjector",
        "stamp stream_id on every collective: 1 where the groups are those of FSDP, else 0",
    ),
    RegisteredPass(
        82,
        "neuron_unique_channel_id_enforcer",
        "unique_channel_id_enforcer:NeuronUniqueChannelIdEnforcer",
        "give a collective whose channel id another one had before a fresh one",
    ),
)
"""Every pass, by number."""

NEURON_PIPELINE: Final = tuple(each.name for each in PASSES if each.number != 11)
"""What ``--pipeline neuron`` runs, in this order: all but the conversion to custom calls, behind which no pass knows a
collective any more."""

PIPELINES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({"neuron": NEURON_PIPELINE})
"""Names of the passes by name of the pipeline; every one runs with its defaults."""


class _Classes(Mapping[str, "type[Pass]"]):
    """The classes by name, each imported when it is looked up."""

    def __getitem__(self, name: str) -> type[Pass]:
        for each in PASSES:
            if each.name == name:
                return each.pass_class
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (each.name for each in PASSES)

    def __len__(self) -> int:
        return len(PASSES)


def parse_passes(spec: str) -> tuple[Pass, ...]:
    """Read ``name{option=value,...},name2``.

    Raises:
        GrammarError: the text breaks the grammar or names a pass, option or value that does not exist.

    Example:
        >>> [str(each) for each in parse_passes("neuron_unique_channel_id_enforcer{safe=true}")]
        ['neuron_unique_channel_id_enforcer{safe=true}']
    """
    return parse_specs(spec, _Classes())


def pipeline_passes(name: str) -> tuple[Pass, ...]:
    """Return the passes of a pipeline.

    Raises:
        CommlensError: there is none of that name.
    """
    names = PIPELINES.get(name)
    if names is None:
        msg = f"expected the name of a pipeline, found {excerpt(name)!r}; the nearest is {nearest(name, PIPELINES)!r}"
        raise CommlensError(msg)
    return parse_passes(",".join(names))
