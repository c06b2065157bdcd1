"""Collectives that are written as custom calls, with what they need to say in JSON.

Two forms are known: JAX 0.12 before optimisation (``custom_call_target="all-gather-start"`` with
``async_collective_config`` among the frontend attributes), and what our own ``convert-collectives-to-custom-call``
writes (``AwsNeuronAllGather_f32`` with a JSON ``backend_config``).
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from commlens.hlo.collectives import checked_dimensions, token_operands
from commlens.hlo.model import UnreadableError
from commlens.hlo.opcodes import COLLECTIVES, FLAG_CARRIERS, base_opcode
from commlens.hlo.shapes import array_leaves
from commlens.hlo.signature import Signature
from commlens.topology import CollectiveDeviceList, SourceTargetPairs

if TYPE_CHECKING:
    from commlens.hlo.model import Instruction

JAX_CONFIG: Final = "async_collective_config"
_NEURON_OPCODES: Final = MappingProxyType(
    {
        "AllReduce": "all-reduce",
        "AllGather": "all-gather",
        "ReduceScatter": "reduce-scatter",
        "AllToAll": "all-to-all",
        "CollectivePermute": "collective-permute",
    }
)
_NEURON: Final = re.compile(rf"AwsNeuron({'|'.join(_NEURON_OPCODES)})[A-Za-z0-9_]*")
_DIMENSION_KEYS: Final = ("all_gather_dimension", "scatter_dimension", "split_dimension", "dimension")


def custom_call_opcode(target: str) -> tuple[str, bool] | None:
    """Return what a custom call's target stands for: the operation, and whether it is a start.

    Returns:
        None for targets that are no collectives; done halves are none.

    Example:
        >>> custom_call_opcode("all-gather-start"), custom_call_opcode("AwsNeuronAllReduce_f32")
        (('all-gather', True), ('all-reduce', False))
        >>> custom_call_opcode("all-gather-done"), custom_call_opcode("cublas$gemm")
        (None, None)
    """
    base, half = base_opcode(target)
    if base in COLLECTIVES and half == "start":
        return base, True
    match = _NEURON.fullmatch(target)
    return None if match is None else (_NEURON_OPCODES[match[1]], False)


def custom_call_signature(instruction: Instruction, opcode: str, *, start: bool) -> tuple[Signature, int | None]:
    """Read a collective written as a custom call.

    Args:
        instruction: the custom call.
        opcode: the operation that its target names.
        start: whether the target names a start.

    Returns:
        Its signature and its channel id.

    Raises:
        UnreadableError: it has no JSON that says its groups, or that JSON cannot be read.
    """
    attributes = instruction.frontend_attributes
    config = _config(attributes.get(JAX_CONFIG) if start else instruction.raw_attribute("backend_config"))
    channel = _optional_int(config, "channel_id")
    operands = array_leaves(instruction.operand_shapes())
    results = instruction.shape.arrays()
    signature = Signature(
        opcode=opcode,
        is_async=start,
        operand_shapes=operands,
        result_shapes=results,
        has_channel=channel is not None,
        use_global_device_ids=_flag(config, "use_global_device_ids") if opcode in FLAG_CARRIERS else None,
        constrain_layout=_flag(config, "constrain_layout"),
        dimensions=checked_dimensions(opcode, _dimensions(opcode, config)),
        frontend_attributes=attributes,
    )
    if opcode == "collective-permute":
        return replace(signature, pairs=_pairs(config)), channel
    groups = _groups(config)
    tokens = token_operands(opcode, operands, results, groups, attributes)
    return replace(signature, groups=groups, token_operands=tokens), channel


def _config(text: str | None) -> dict[str, object]:
    if text is None:
        msg = "expected JSON that states the replica groups of this custom call, found none"
        raise UnreadableError(msg)
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"expected JSON that states the replica groups, found {text[:40]!r}"
        raise UnreadableError(msg) from error
    if not isinstance(parsed, dict):
        msg = f"expected a JSON object that states the replica groups, found {text[:40]!r}"
        raise UnreadableError(msg)
    return cast("dict[str, object]", parsed)


def _optional_int(config: dict[str, object], key: str) -> int | None:
    value = config.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        msg = f"expected {key} to be an integer, found {value!r}"
        raise UnreadableError(msg)
    return value


def _flag(config: dict[str, object], key: str) -> bool:
    value = config.get(key, False)
    if not isinstance(value, bool):
        msg = f"expected {key} to be true or false, found {value!r}"
        raise UnreadableError(msg)
    return value


def _dimensions(opcode: str, config: dict[str, object]) -> tuple[int, ...] | None:
    listed = config.get("dimensions")
    if listed is not None:
        return tuple(_integers(listed, "dimensions"))
    for key in _DIMENSION_KEYS:
        number = _optional_int(config, key)
        if number is not None:
            return (number,)
    return None


def _integers(value: object, key: str) -> list[int]:
    listed = _list(value, key)
    numbers = [each for each in listed if isinstance(each, int) and not isinstance(each, bool)]
    if len(numbers) != len(listed):
        msg = f"expected {key} to hold integers only, found {str(listed)[:40]!r}"
        raise UnreadableError(msg)
    return numbers


def _list(value: object, key: str) -> list[object]:
    if not isinstance(value, list):
        msg = f"expected {key} to be a list, found {str(value)[:40]!r}"
        raise UnreadableError(msg)
    return cast("list[object]", value)


def _lists(value: object, key: str) -> list[list[int]]:
    return [_integers(each, key) for each in _list(value, key)]


def _groups(config: dict[str, object]) -> CollectiveDeviceList:
    if "replica_groups" not in config:
        msg = "expected replica_groups in the JSON of this custom call, found none"
        raise UnreadableError(msg)
    try:
        return CollectiveDeviceList(_lists(config["replica_groups"], "replica_groups") or None)
    except ValueError as error:
        msg = f"replica_groups cannot be read: {error}"
        raise UnreadableError(msg) from error


def _pairs(config: dict[str, object]) -> SourceTargetPairs:
    for key in ("source_target_pairs", "permutation"):
        if key in config:
            pairs = _lists(config[key], key)
            if all(len(pair) == 2 for pair in pairs):
                return SourceTargetPairs([(source, target) for source, target in pairs])
    msg = "expected source_target_pairs in the JSON of this custom call, found none"
    raise UnreadableError(msg)
