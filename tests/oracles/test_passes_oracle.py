"""XLA reads what it read before after every pass, and what runs computes the same: on the modules that come along."""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from commlens.hlo import load, serialized_module
from commlens.neuron import NEURON_PIPELINE, PASSES, parse_passes
from xla_reader import XlaReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens import Module

ROOT = Path(__file__).parents[2]
TEXTS = sorted(
    [*(ROOT / "tests/data/protos").glob("*.txt"), *(path for path in (ROOT / "examples").iterdir() if path.is_file())]
)
PROTOS = sorted((ROOT / "tests/data/protos").glob("*.pb"))
SPECS = [*(each.name for each in PASSES), ",".join(NEURON_PIPELINE)]
SHORT = [*(each.name for each in PASSES), "pipeline"]
LOOSE = [
    "all-gather-combiner{tp_group=off,combine_by_dim=false}",
    "reduce-scatter-combiner{tp_group=off}",
    "neuron_unique_channel_id_enforcer{safe=true}",
]
PAIRED = "send_recv"
"""In the name of the module whose send and recv the enforcer parts, as documented: XLA wants one channel for the two."""

RUNNABLE = """HloModule m, replica_count=8

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  p = f32[4] parameter(0)
  q = f32[8] parameter(1)
  n = s32[4] convert(p)
  g = f32[16] all-gather(p), replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}, frontend_attributes={collective_type="tp_all_gather"}
  r = f32[4] all-reduce(p), channel_id=1, replica_groups={{0,4},{1,5},{2,6},{3,7}}, use_global_device_ids=true, to_apply=add
  s = f32[4] reduce-scatter(q), replica_groups={{0,4},{1,5},{2,6},{3,7}}, dimensions={0}, to_apply=add, frontend_attributes={collective_type="fsdp_reduce_scatter"}
  t = f32[8] all-reduce(q), channel_id=1, replica_groups={{0,4},{1,5},{2,6},{3,7}}, use_global_device_ids=true, to_apply=add, frontend_attributes={stream_id="7"}
  i = s32[8] all-gather(n), channel_id=1, replica_groups={{0,4},{1,5},{2,6},{3,7}}, dimensions={0}, use_global_device_ids=true
  f = f32[8] convert(i)
  ROOT out = (f32[16], f32[4], f32[4], f32[8], f32[8]) tuple(g, r, s, t, f)
}
"""


def run(spec: str, module: Module) -> Module:
    """Run passes and return the module that comes out."""
    for each in parse_passes(spec):
        module = each.run(module).module
    return module


def content(path: Path) -> bytes:
    """Return a file's content without compression."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def ask(script: str, question: object) -> Any:
    """Run a script of this folder in a process of its own."""
    child = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(script))],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout)


@pytest.fixture(scope="module")
def xla() -> Iterator[XlaReader]:
    """Return XLA's own reader."""
    reader = XlaReader()
    yield reader
    reader.close()


@pytest.mark.parametrize("spec", [*SPECS, *LOOSE], ids=[*SHORT, *LOOSE])
def test_xla_reads_every_edited_text(spec: str, xla: XlaReader) -> None:
    """Of the texts that XLA reads, it reads what every pass makes of them, but for a send and a recv that were parted."""
    modified = 0
    for path in TEXTS:
        module = load(content(path))
        after = run(spec, module)
        modified += after is not module
        if after is not module and xla.reads(module.to_bytes()):
            parted = PAIRED in path.name and spec.endswith("enforcer")
            assert xla.reads(after.to_bytes()) != parted, f"{path.name} after {spec}"
    assert modified > 0 or spec.startswith(("collective-stream-id-checker", "all-", "reduce-"))


@pytest.fixture(scope="module")
def printed() -> dict[tuple[str, str], str]:
    """Return what XLA prints of every edited proto, by file and passes."""
    edited = {
        (path.name, spec): serialized_module(run(spec, load(path)))
        for path in PROTOS
        for spec in SPECS
        if "0.12" not in path.name  # newer than the jaxlib at hand
        and not (PAIRED in path.name and spec.endswith("enforcer"))
    }
    answers = ask("read_modules.py", [{"proto": base64.b64encode(data).decode()} for data in edited.values()])
    return {key: answer["text"] for key, answer in zip(edited, answers, strict=True)}


@pytest.mark.parametrize("spec", SPECS, ids=SHORT)
def test_xla_reads_every_edited_proto(spec: str, printed: dict[tuple[str, str], str]) -> None:
    """XLA reads what every pass makes of a proto, and prints the attributes that were given."""
    texts = [text for (_, made_by), text in printed.items() if made_by == spec]
    assert len(texts) > 5
    stamped = "stream_id_injector" in spec
    assert any('stream_id="' in text for text in texts) == stamped


@pytest.mark.parametrize("spec", SPECS[1:], ids=SHORT[1:])  # a custom call of Neuron runs nowhere else
def test_what_runs_computes_the_same(spec: str) -> None:
    """Every pass whose product XLA's CPU client can run leaves the results as they were, to the last bit."""
    before = load(RUNNABLE)
    after = run(spec, before)
    texts = [module.to_bytes().decode() for module in (before, after)]
    assert (texts[0] != texts[1]) == any(word in spec for word in ("injector", "enforcer", "all-reduce"))
    first, second = ask("run_modules.py", [{"text": text} for text in texts])
    assert first == second
    assert len(first) == 5
