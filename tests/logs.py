"""Small modules and messages for the tests of ``explain-log``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens.analysis import LogExplanation
from commlens.hlo import load

if TYPE_CHECKING:
    from commlens.hlo import Module

ADD = """
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
"""


def module(*lines: str, header: str = "num_partitions=8", before: str = "", name: str = "m") -> Module:
    """Return a module; the operand ``p`` and the reducer ``add`` are there."""
    body = "\n".join(f"  {line}" for line in ("p = f32[16] parameter(0)", *lines))
    return load(f"HloModule {name}{', ' if header else ''}{header}\n{ADD}\n{before}\nENTRY e {{\n{body}\n}}\n")


def collective(name: str, opcode: str, groups: str, channel: int | None = None, metadata: str = "") -> str:
    """Return the line of a collective: of global ids where it has a channel, of replica ids else."""
    flag = opcode in ("all-reduce", "all-gather", "reduce-scatter") and channel is not None
    attributes = (
        "" if channel is None else f", channel_id={channel}",
        f", {'source_target_pairs' if opcode == 'collective-permute' else 'replica_groups'}={groups}",
        ", use_global_device_ids=true" if flag else "",
        ", dimensions={0}" if opcode in ("all-gather", "reduce-scatter") else "",
        ", to_apply=add" if opcode in ("all-reduce", "reduce-scatter") else "",
        metadata and f", metadata={{{metadata}}}",
    )
    shape = {"all-gather": "f32[32]", "reduce-scatter": "f32[8]"}.get(opcode, "f32[16]")
    return f"{name} = {shape} {opcode}(p){''.join(attributes)}"


STEP = (
    collective("ar.1", "all-reduce", "[2,4]<=[8]", 1),
    collective("ag.2", "all-gather", "[4,2]<=[2,4]T(1,0)", 2),
    collective("ar.3", "all-reduce", "[4,2]<=[8]", 3),
)


def key(devices: str, kind: str = "cross_module", op_id: int = 0, run: int = 1) -> str:
    """Return the key of a rendezvous as XLA prints it."""
    return (
        f"RendezvousKey{{run_id=RunId: {run}, global_devices=[{devices}], num_local_participants=2, "
        f"collective_op_kind={kind}, op_id={op_id}}}"
    )


def clique(devices: str, rest: str = "; is_p2p=0; groups=[]; root_device=-1; num_local_participants=2") -> str:
    """Return the key of a clique as XLA prints it."""
    return f"Termination timeout for `acquire clique for rank 0; clique=devices=[{devices}]{rest}; run_id=7` exceeded"


def names(answer: LogExplanation, match: str | None = None) -> list[str]:
    """Return the names of the candidates."""
    return [each.name for each in answer.candidates if match in (None, each.match)]


def notes(answer: LogExplanation) -> str:
    """Return all notes on messages."""
    return "\n".join(note for message in answer.messages for note in message.notes)
