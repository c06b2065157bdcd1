"""Checks that work out indices: a proto's tables say what those of its text do."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path

import pytest

from checking import FLAG, module_of
from commlens.analysis import check
from commlens.analysis.checks import all_reduce_slice
from commlens.hlo import load

ORACLE = Path(__file__).parents[1] / "oracles" / "read_modules.py"
FUSED = """
fused {
  a = f32[64] parameter(0)
  t = s32[4] parameter(1)
  i = u32[] parameter(2)
  e.1 = s32[1] dynamic-slice(t, i), dynamic_slice_sizes={1}
  at = s32[] reshape(e.1)
  ROOT o = f32[16] dynamic-slice(a, at), dynamic_slice_sizes={16}
}
"""


TABLES = {
    "{0, 16, 32, 48}": [["r", "o"]],
    "{48, 0, 16, 32}": [["r", "o"]],
    "{0, 16, 32, 99}": [["r", "o"]],
    "{0, 0, 16, 16}": [],
    "{0, 8, 16, 24}": [],
}


def protos_of(texts: list[bytes]) -> list[bytes]:
    """Return the protos that XLA makes of texts, in a process of its own."""
    cases = [{"text": text.decode()} for text in texts]
    done = subprocess.run(
        [sys.executable, str(ORACLE)], input=json.dumps(cases), capture_output=True, text=True, check=True
    )
    return [base64.b64decode(each["proto"]) for each in json.loads(done.stdout)]


@pytest.mark.xla
@pytest.mark.parametrize("element_type", ["s8", "s32", "u16", "u64"])
def test_starts_in_a_table(element_type: str) -> None:
    """An all-reduce of which each device slices its own part is found in the text, and in the proto that XLA makes."""
    texts = [
        module_of(
            f"r = f32[64] all-reduce(q), channel_id=1, replica_groups={{{{0,1,2,3}}}}, {FLAG}, to_apply=add",
            f"t = {element_type}[4] constant({table})",
            "id = u32[] partition-id()",
            "ROOT f = f32[16] fusion(r, t, id), kind=kLoop, calls=fused",
            before=FUSED.replace("s32", element_type),
            header="num_partitions=4",
        )
        for table in TABLES
    ]
    protos = protos_of([text.to_bytes() for text in texts])
    for text, data, expected in zip(texts, protos, TABLES.values(), strict=True):
        for module in (text, load(data, partitions=4)):
            assert [each.instructions for each in check(module, [all_reduce_slice.RULE])] == expected
