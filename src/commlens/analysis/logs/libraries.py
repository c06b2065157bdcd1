"""What libraries print of a collective that they run: its operation and how many elements each device holds of it.

Source of the texts: ``WorkNCCL::operator<<`` and ``logPrefix`` in torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp and
``opTypeToString`` in Work.cpp; NCCL's debug lines of the subsystem COLL (``ArgsCheck`` and ``Info`` in
src/enqueue.cc); ``AllReduceParticipantData`` of xla/backends/cpu/collectives.

``NumelIn`` and ``NumelOut`` are the elements of all tensors of one rank, which a module states as the shapes of the
operands and of the results on one device. NCCL's ``count`` is what a device sends in an AllGather and what it receives
in a ReduceScatter. Element types are not compared.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from commlens.analysis.logs.said import Said

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WORDS: Final = ("CCL(",)
"""Pieces of words of which every message of a watchdog holds one."""

_WORK: Final = re.compile(r"\bWork[A-Z]CCL\(")
_RANK: Final = re.compile(r"\[(?:PG [^\[\]\n]{0,200} )?Rank (\d{1,9})\]")
_OP_TYPE: Final = re.compile(r"\bOpType=([A-Z_]{1,40})(?![A-Za-z_])")
_SEQ_NUM: Final = re.compile(r"\bSeqNum=(\d{1,18})(?!\d)")
_NUMEL_IN: Final = re.compile(r"\bNumelIn=(\d{1,18})(?!\d)")
_NUMEL_OUT: Final = re.compile(r"\bNumelOut=(\d{1,18})(?!\d)")
_TENSOR_SHAPE: Final = re.compile(r"\bTensorShape=\[([\d, ]{0,200})\]")
_LONGEST: Final = 400

_OP_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ALLREDUCE": "all-reduce",
        "ALLREDUCE_COALESCED": "all-reduce",
        "ALLGATHER": "all-gather",
        "ALLGATHER_BASE": "all-gather",
        "ALLGATHER_COALESCED": "all-gather",
        "REDUCE_SCATTER": "reduce-scatter",
        "REDUCE_SCATTER_BASE": "reduce-scatter",
        "ALLTOALL": "all-to-all",
        "ALLTOALL_BASE": "all-to-all",
        "BROADCAST": "collective-broadcast",
        "SEND": "send",
        "RECV": "recv",
        "RECVANYSOURCE": "recv",
    }
)
"""What PyTorch calls an operation, without the underscore in front -> the opcode."""

_WITHOUT_COUNTERPART: Final = frozenset({"REDUCE", "GATHER", "SCATTER", "BARRIER", "ALLREDUCE_SPARSE"})
_SAME_SHAPE: Final = frozenset({"all-reduce", "collective-broadcast"})
_COALESCED: Final = "COALESCED is several operations in one; which ones, and of how many elements each, it does not say"
_MAY_BE_A_BARRIER: Final = "an ALLREDUCE of one element may be a barrier of PyTorch, which no module has"

_NCCL: Final = re.compile(r"\b(AllReduce|AllGather|ReduceScatter|Broadcast): opCount [0-9a-fx]{1,18}\b")
_NCCL_COUNT: Final = re.compile(r"\bcount (\d{1,18})\b")
_NCCL_OPCODES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "AllReduce": "all-reduce",
        "AllGather": "all-gather",
        "ReduceScatter": "reduce-scatter",
        "Broadcast": "collective-broadcast",
    }
)
_PARTICIPANT: Final = re.compile(r"\bAllReduceParticipantData\{[^{}\n]{0,100}\belement_count=(\d{1,18})\b")


@dataclass(frozen=True, slots=True)
class Work:
    """What a watchdog says of a collective that it waits for.

    Attributes:
        said: its facts.
        note: why nobody can tell what it is about; None where there is nothing.
        doubt: what it leaves open though the rest says what it is about; None where there is nothing.
    """

    said: Said
    note: str | None = None
    doubt: str | None = None


def works_of(text: str) -> Iterator[Work]:
    """Yield what the watchdog of PyTorch says in a text, a collective each time.

    Example:
        >>> log = "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=_ALLGATHER_BASE, "
        >>> (work,) = works_of(log + "NumelIn=64, NumelOut=256, Timeout(ms)=600000) ran for 600100 milliseconds")
        >>> work.said.rank, work.said.opcode, work.said.elements_in, work.said.elements_out
        (3, 'all-gather', 64, 256)
    """
    rank = None
    before = 0
    for match in _WORK.finditer(text):
        ranks = _RANK.findall(text, before, match.start())
        rank = int(ranks[-1]) if ranks else rank
        before = match.end()
        yield _work(_WORK.split(text[before : before + _LONGEST], maxsplit=1)[0], rank)


def _work(text: str, rank: int | None) -> Work:
    number = _number(_SEQ_NUM, text)
    said = Said(rank=rank, numbers=None if number is None else {"seq_num": number})
    match = _OP_TYPE.search(text)
    if match is None:
        return Work(said, note="its OpType cannot be read: expected one such as ALLREDUCE")
    op_type = match[1].removeprefix("_")
    opcode = _OP_TYPES.get(op_type)
    if op_type == "COALESCED":
        return Work(said, doubt=_COALESCED)
    if opcode is None:
        has_none = op_type in _WITHOUT_COUNTERPART
        why = "has no counterpart in XLA, so no module holds it" if has_none else "is none that is known"
        return Work(said, note=f"OpType {match[1]} {why}")
    sent, received = _number(_NUMEL_IN, text), _number(_NUMEL_OUT, text)
    said = replace(
        said,
        opcode=opcode,
        elements_in=None if opcode == "recv" else sent,
        elements_out=None if opcode == "send" else received,
    )
    work = Work(said) if sent is not None or received is not None else _with_shape(said, text)
    if opcode == "all-reduce" and 1 in (work.said.elements_in, work.said.elements_out):
        return replace(work, doubt=_MAY_BE_A_BARRIER)
    return work


def _with_shape(said: Said, text: str) -> Work:
    """Take the shape that older watchdogs name instead: of the first output."""
    match = _TENSOR_SHAPE.search(text)
    if match is None:
        return Work(said)
    if said.opcode not in _SAME_SHAPE:
        return Work(said, doubt="its TensorShape is that of one tensor; which of them it does not say")
    sizes = [int(size) for size in re.findall(r"\d{1,18}", match[1])]
    return Work(replace(said, elements_out=math.prod(sizes)))


def of_library(text: str) -> Said | None:
    """Return the operation and the elements of a debug line of NCCL or of a participant on CPUs; None for other texts.

    Example:
        >>> said = of_library("h:1 [0] NCCL INFO AllGather: opCount 1a sendbuff 0x7 recvbuff 0x8 count 64 datatype 7")
        >>> said.opcode, said.elements_in, said.elements_out
        ('all-gather', 64, None)
    """
    match = _NCCL.search(text)
    if match is not None:
        count = _number(_NCCL_COUNT, text[match.end() :])
        opcode = _NCCL_OPCODES[match[1]]
        is_received = opcode == "reduce-scatter"
        return Said(
            opcode=opcode, elements_in=None if is_received else count, elements_out=count if is_received else None
        )
    count = _number(_PARTICIPANT, text) if "ParticipantData" in text else None
    return None if count is None else Said(opcode="all-reduce", elements_in=count)


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return None if match is None else int(match[1])
