"""What the Neuron compiler adds to stock XLA: identity passes, CC info, ranks, NEFF files."""

from commlens.hlo import PassResult
from commlens.neuron.cache_entry import CacheEntry, CacheProblem, flags_hash_of, flags_of
from commlens.neuron.cc_info import CCInfo, TopologySize
from commlens.neuron.cc_source import CCSource, cc_kind, read_cc_source
from commlens.neuron.cc_summary import CCSummary, summarise
from commlens.neuron.channel_ids import next_channel_id
from commlens.neuron.checks import RULES
from commlens.neuron.compile_cache import CompileCache, read_compile_cache
from commlens.neuron.core_peers import CoreMap, core_map
from commlens.neuron.frontend_attributes import COLLECTIVE_TYPES, has_frontend_attribute
from commlens.neuron.log_messages import LOG_MESSAGES
from commlens.neuron.neff import Neff, NeffHeader, read_neff
from commlens.neuron.opcodes import OPCODES_2_24
from commlens.neuron.pair_components import pair_components, pair_group_of
from commlens.neuron.passes import (
    CollectiveStreamIdChecker,
    ConvertCollectivesToCustomCall,
    NeuronAllGatherCombiner,
    NeuronAllReduceCombiner,
    NeuronCollectiveStreamIdInjector,
    NeuronReduceScatterCombiner,
    NeuronUniqueChannelIdEnforcer,
)
from commlens.neuron.permute_sources import source_table
from commlens.neuron.predicates import has_channel, is_collective, is_collective_stream_checked
from commlens.neuron.rank_families import (
    compressed_groups,
    cp_groups,
    kv_groups,
    partition_op_groups,
    pp_send_recv_groups,
    token_shuffle_groups,
)
from commlens.neuron.rank_grids import Degrees
from commlens.neuron.rank_layouts import RankLayout, rank_layout
from commlens.neuron.rank_model import RankModel, cores_per_lnc, ring_table, simulator_refusal
from commlens.neuron.registry import NEURON_PIPELINE, PASSES, PIPELINES, RegisteredPass, parse_passes, pipeline_passes
from commlens.neuron.replica_groups import get_replica_groups, get_tp_replica_group, has_matching_replica_groups
from commlens.neuron.world_size import READINGS, WorldSizeError

__all__ = [
    "COLLECTIVE_TYPES",
    "LOG_MESSAGES",
    "NEURON_PIPELINE",
    "OPCODES_2_24",
    "PASSES",
    "PIPELINES",
    "READINGS",
    "RULES",
    "CCInfo",
    "CCSource",
    "CCSummary",
    "CacheEntry",
    "CacheProblem",
    "CollectiveStreamIdChecker",
    "CompileCache",
    "ConvertCollectivesToCustomCall",
    "CoreMap",
    "Degrees",
    "Neff",
    "NeffHeader",
    "NeuronAllGatherCombiner",
    "NeuronAllReduceCombiner",
    "NeuronCollectiveStreamIdInjector",
    "NeuronReduceScatterCombiner",
    "NeuronUniqueChannelIdEnforcer",
    "PassResult",
    "RankLayout",
    "RankModel",
    "RegisteredPass",
    "TopologySize",
    "WorldSizeError",
    "cc_kind",
    "compressed_groups",
    "core_map",
    "cores_per_lnc",
    "cp_groups",
    "flags_hash_of",
    "flags_of",
    "get_replica_groups",
    "get_tp_replica_group",
    "has_channel",
    "has_frontend_attribute",
    "has_matching_replica_groups",
    "is_collective",
    "is_collective_stream_checked",
    "kv_groups",
    "next_channel_id",
    "pair_components",
    "pair_group_of",
    "parse_passes",
    "partition_op_groups",
    "pipeline_passes",
    "pp_send_recv_groups",
    "rank_layout",
    "read_cc_source",
    "read_compile_cache",
    "read_neff",
    "ring_table",
    "simulator_refusal",
    "source_table",
    "summarise",
    "token_shuffle_groups",
]
