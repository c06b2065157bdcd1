"""Sets of HLO opcodes that the rest of the package talks about.

Source: xla/hlo/ir/hlo_opcode.h and the instruction classes of xla/hlo/ir/hlo_instructions.h.
"""

from __future__ import annotations

COLLECTIVES = frozenset(
    {
        "all-gather",
        "all-reduce",
        "reduce-scatter",
        "all-to-all",
        "collective-permute",
        "collective-broadcast",
        "ragged-all-to-all",
    }
)
"""Opcodes of synchronous collectives, collective-permute included."""

LEGACY_ALL_REDUCE = "cross-replica-sum"
"""What all-reduce was called until 2019."""

DEDICATED_START = frozenset({"all-gather", "all-reduce", "collective-permute"})
"""Collectives with a start and a done opcode of their own; all others go through async-start."""

POINT_TO_POINT = frozenset({"send", "recv"})
"""The two opcodes that talk to another device through a channel pair."""

FLAG_CARRIERS = frozenset({"all-gather", "all-reduce", "reduce-scatter"})
"""Collectives for which ``use_global_device_ids`` always has a value; absent means false."""

DIMENSION_REQUIRED = frozenset({"all-gather", "reduce-scatter"})
"""Collectives that cannot be read without ``dimensions``."""

CALLERS = frozenset({"while", "conditional", "call", "fusion", "async-start", "custom-call"})
"""Opcodes that run other computations as a whole, among them those that can hold collectives."""

APPLIERS = frozenset({"map", "reduce", "reduce-window", "scatter", "select-and-scatter", "sort"})
"""Opcodes that apply a scalar computation to elements: no collective can stand in there."""

WITHOUT_OPERANDS = frozenset({"constant", "parameter", "iota"})
"""Opcodes behind which a text has something else than operands in parentheses: a literal, a number, nothing."""


def base_opcode(opcode: str) -> tuple[str, str]:
    """Split an opcode into its operation and its asynchronous half.

    Args:
        opcode: an HLO opcode in dashed spelling.

    Returns:
        The opcode without its half, in today's name, and ``"start"``, ``"update"``, ``"done"`` or ``""``.
        Opcodes that merely end that way, such as ``send-done``, are split alike.

    Example:
        >>> base_opcode("reduce-scatter-start"), base_opcode("cross-replica-sum"), base_opcode("all-gather")
        (('reduce-scatter', 'start'), ('all-reduce', ''), ('all-gather', ''))
    """
    name, _, half = opcode.rpartition("-")
    if half not in ("start", "update", "done"):
        name, half = opcode, ""
    return ("all-reduce" if name == LEGACY_ALL_REDUCE else name), half
