"""Modules of hosts, and what ``hosts`` finds in them, for its tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from commlens.analysis import Hosts, HostSurvey, compare_hosts
from commlens.hlo import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.analysis import HostModule, ModuleOnHosts

TEXT = """HloModule {name}, num_partitions={partitions}

add {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}}
{before}
ENTRY e {{
  p = f32[4] parameter(0)
{lines}
}}
"""
FLAT = "use_global_device_ids=true"
REDUCE = f"ar = f32[4] all-reduce(p), channel_id=1, replica_groups={{{{0,1}}}}, {FLAT}, to_apply=add"
GATHER = f"ag = f32[8] all-gather(p), channel_id=2, replica_groups={{{{0,1}}}}, {FLAT}, dimensions={{0}}"


def text_of(*lines: str, name: str = "step", before: str = "", partitions: int = 2) -> str:
    """Return a module with an operand ``p``, f32[4]."""
    body = "\n".join(f"  {line}" for line in lines)
    return TEXT.format(name=name, lines=body, before=before, partitions=partitions)


def members_of(texts: Mapping[str, str | Path], survey: HostSurvey | None = None) -> list[HostModule]:
    """Look at the modules of some hosts."""
    survey = HostSurvey() if survey is None else survey
    found: list[HostModule] = []
    for path, text in texts.items():
        module = load(text)
        module.path = path
        found.append(survey.look_at(module))
    return found


def hosts(texts: Mapping[str, str | Path]) -> Hosts:
    """Compare hosts with a module each."""
    survey = HostSurvey()
    return compare_hosts(members_of(texts, survey), list(texts), survey)


def only(answer: Hosts) -> ModuleOnHosts:
    """Return the only module of an answer."""
    (module,) = answer.modules
    return module
