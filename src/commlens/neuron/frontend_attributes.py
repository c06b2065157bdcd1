"""The frontend attributes by which the Neuron compiler tells collectives apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from commlens.hlo import Instruction

STREAM_ID: Final = "stream_id"
"""Key of the attribute that says on which stream a collective is issued."""

COLLECTIVE_TYPE: Final = "collective_type"
"""Key of the attribute that says what a collective is for."""

TP_TYPES: Final = ("tp_all_gather", "tp_reduce_scatter")
"""What marks a collective of tensor parallelism."""

FSDP_TYPES: Final = ("fsdp_all_gather", "fsdp_reduce_scatter")
"""What marks a collective of fully sharded data parallelism."""

COLLECTIVE_TYPES: Final = (*TP_TYPES, *FSDP_TYPES)
"""The four values of ``collective_type`` that the stream id injector knows. Who writes them is not documented."""


def has_frontend_attribute(instruction: Instruction, key: str, value: str) -> bool:
    """Whether an instruction has a frontend attribute with this very value.

    The documented listing of the helper contradicts its own text: it would end the process on a missing key and take
    a different value for an equal one. Here a missing key is false, an equal value true, and nothing ends.

    Args:
        instruction: any instruction. Of an asynchronous one that is written in short (``reduce-scatter-start``) the
            attributes are those of the operation it wraps; an ``async-start`` has its own.
        key: the attribute's key.
        value: the value to compare with; the whole of it, and upper case is not lower case.

    Source: ``HasFrontendAttributesKeyValue`` of neuronx_cc 2.24.5133, read as its text says.

    Example:
        >>> from commlens.hlo import load
        >>> module = load('''ENTRY e {
        ...   p = f32[8] parameter(0)
        ...   ROOT g = f32[16] all-gather(p), dimensions={0}, frontend_attributes={collective_type="tp_all_gather"}
        ... }''')
        >>> has_frontend_attribute(module.instruction("g"), "collective_type", "tp_all_gather")
        True
        >>> has_frontend_attribute(module.instruction("p"), "collective_type", "tp_all_gather")
        False
    """
    return instruction.frontend_attributes.get(key) == value
