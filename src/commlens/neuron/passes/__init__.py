"""The passes of the Neuron compiler that concern communication, one file each."""

from commlens.neuron.passes.all_gather_combiner import NeuronAllGatherCombiner
from commlens.neuron.passes.all_reduce_combiner import NeuronAllReduceCombiner
from commlens.neuron.passes.collective_stream_id_checker import CollectiveStreamIdChecker
from commlens.neuron.passes.collective_stream_id_injector import NeuronCollectiveStreamIdInjector
from commlens.neuron.passes.convert_collectives_to_custom_call import ConvertCollectivesToCustomCall
from commlens.neuron.passes.reduce_scatter_combiner import NeuronReduceScatterCombiner
from commlens.neuron.passes.unique_channel_id_enforcer import NeuronUniqueChannelIdEnforcer

__all__ = [
    "CollectiveStreamIdChecker",
    "ConvertCollectivesToCustomCall",
    "NeuronAllGatherCombiner",
    "NeuronAllReduceCombiner",
    "NeuronCollectiveStreamIdInjector",
    "NeuronReduceScatterCombiner",
    "NeuronUniqueChannelIdEnforcer",
]
