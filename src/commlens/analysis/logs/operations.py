"""The operations that a message of a log names, in whichever spelling.

Source of the spellings: opcodes of HLO and their asynchronous halves, ``HloOpcode`` and thunk kinds (``kAllReduce``,
``AllReduceStart``), and the participants of a rendezvous on CPUs in xla/backends/cpu/collectives
(``AllReduceParticipantData{..}``, ``all reduce RendezvousKey{..}``).
"""

from __future__ import annotations

import re
from typing import Final

from commlens.hlo import base_opcode, is_collective

OPCODES: Final = "|".join(
    (
        r"all[-_]gather",
        r"all[-_]reduce",
        r"reduce[-_]scatter",
        r"(?:ragged[-_])?all[-_]to[-_]all",
        r"collective[-_](?:permute|broadcast)",
    )
)
"""A pattern of the opcodes of collectives, with either dash."""

_OPERATION: Final = re.compile(
    r"\b(?:op_kind|opcode|op|kind|collective)\s{0,2}[=:]\s{0,2}[`'\"]?(k?[A-Za-z][A-Za-z_\-]{2,40})\b"
)
_BARE_OPERATION: Final = re.compile(
    rf"\b(?:k?(?:All|Reduce|RaggedAll|Collective)[A-Z][A-Za-z]{{2,30}}|(?:{OPCODES})(?:[-_]start)?)(?![\w(]|[-_.]\w)"
)
_OF_PARTICIPANT: Final = re.compile(
    r"\b((?:All|Reduce|RaggedAll|Collective)[A-Z][A-Za-z]{2,30})ParticipantData\{"
    r"|\b((?:ragged[ _-])?(?:all|reduce|collective)[ _-][a-z]{2,9}(?:[ _-]all)?)\s{1,2}(?:key=)?RendezvousKey\{"
)
_PARTICIPANT: Final = "ParticipantData"


def operation(text: str) -> str | None:
    """Return the opcode that a text names in any spelling: ``all_reduce``, ``kAllReduce``, ``AllReduceStart``.

    It stands behind a word such as ``op=``, or is that of the participant of a rendezvous.

    Example:
        >>> operation("op=AllReduceStart"), operation("all reduce RendezvousKey{x=1}"), operation("all-reduce is it")
        ('all-reduce', 'all-reduce', None)
    """
    for match in _OPERATION.finditer(text):
        opcode = opcode_of(match[1])
        if opcode is not None:
            return opcode
    if "RendezvousKey{" not in text and _PARTICIPANT not in text:
        return None
    of_participants = {opcode_of(match[1] or match[2]) for match in _OF_PARTICIPANT.finditer(text)} - {None}
    return of_participants.pop() if len(of_participants) == 1 else None


def bare_operation(text: str) -> str | None:
    """Return the only opcode that a text speaks of, in any spelling; a call with operands is a line of HLO.

    Example:
        >>> bare_operation("AllReduce failed"), bare_operation("ar = f32[4] all-reduce(p)")
        ('all-reduce', None)
    """
    found = {opcode_of(match.group()) for match in _BARE_OPERATION.finditer(text)} - {None}
    return found.pop() if len(found) == 1 else None


def opcode_of(word: str) -> str | None:
    """Return the opcode of a collective in today's spelling, None for other words.

    Example:
        >>> opcode_of("kAllReduceStart"), opcode_of("reduce_scatter"), opcode_of("cross_module")
        ('all-reduce', 'reduce-scatter', None)
    """
    bare = word[1:] if word[:1] == "k" and word[1:2].isupper() else word
    dashed = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", bare).replace("_", "-").replace(" ", "-").lower()
    opcode, _ = base_opcode(dashed)
    return opcode if is_collective(opcode) else None
