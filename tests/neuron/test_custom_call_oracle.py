"""What the conversion to custom calls writes, before XLA's own readers and printer, as jaxlib has them.

XLA ends the whole process on some texts, so it works in a process of its own.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys

from commlens import load
from commlens.neuron import ConvertCollectivesToCustomCall

_ORACLE = """
import base64, json, sys
from jaxlib._hlo import HloModule, hlo_module_from_text
given = json.load(sys.stdin)
if "text" in given:
    module = hlo_module_from_text(given["text"])
else:
    module = HloModule.from_serialized_hlo_module_proto(base64.b64decode(given["proto"]))
proto = base64.b64encode(module.as_serialized_hlo_module_proto()).decode()
json.dump({"printed": module.to_string(), "proto": proto}, sys.stdout)
"""

TEXT = """HloModule m, replica_count=4

%sum (a: bf16[], b: bf16[]) -> bf16[] {
  %a = bf16[] parameter(0)
  %b = bf16[] parameter(1)
  ROOT %c = bf16[] maximum(bf16[] %a, bf16[] %b)
}

ENTRY %e (p: bf16[8]) -> (bf16[8], bf16[8]) {
  %p = bf16[8]{0} parameter(0)
  %g = bf16[16]{0} all-gather(bf16[8]{0} %p), replica_groups=[2,2]<=[2,2]T(1,0), dimensions={0}, metadata={op_name="gather {all}" source_file="a.py" source_line=3}
  %s = bf16[8]{0} reduce-scatter(bf16[16]{0} %g), channel_id=5, replica_groups={{0,2},{1,3}}, use_global_device_ids=true, dimensions={0}, to_apply=%sum, frontend_attributes={collective_type="tp_reduce_scatter",note="a \\"quoted\\" {word}"}
  ROOT %r = (bf16[8]{0}, bf16[8]{0}) all-reduce(bf16[8]{0} %s, bf16[8]{0} %p), replica_groups={}, to_apply=%sum, control-predecessors={%g}, sharding={{replicated}, {replicated}}
}
"""


def ask(given: dict[str, str]) -> dict[str, str]:
    """Let XLA read a text or a proto."""
    done = subprocess.run(
        [sys.executable, "-c", _ORACLE], input=json.dumps(given), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def calls(printed: str) -> dict[str, tuple[str, str]]:
    """Return target and configuration of each custom call that XLA printed."""
    found = re.findall(r'%(\w) = .* custom-call\(.*custom_call_target="(\w+)".*backend_config=(\{.*\})', printed)
    return {name: (target, config) for name, target, config in found}


def test_xla_reads_what_the_conversion_writes() -> None:
    """Text and proto alike are the custom calls we mean, with all that the collectives had besides."""
    result = ConvertCollectivesToCustomCall().run(load(TEXT))
    from_text = ask({"text": result.module.to_bytes().decode()})
    assert calls(from_text["printed"]) == {
        "g": (
            "AwsNeuronAllGather_bf16",
            '{"replica_groups":[[0,2],[1,3]],"use_global_device_ids":false,"dimensions":[0],"constrain_layout":false}',
        ),
        "s": (
            "AwsNeuronReduceScatterMax_bf16",
            '{"replica_groups":[[0,2],[1,3]],"channel_id":5,"use_global_device_ids":true,"dimensions":[0],"constrain_layout":false}',
        ),
        "r": (
            "AwsNeuronAllReduceMax_UNKNOWNDTYPE",
            '{"replica_groups":[],"use_global_device_ids":false,"constrain_layout":false}',
        ),
    }
    for kept in (
        'op_name="gather {all}"',
        'note="a \\"quoted\\" {word}"',
        "control-predecessors={%g}",
        "sharding={{replicated}, {replicated}}",
    ):
        assert kept in from_text["printed"]

    proto = base64.b64decode(ask({"text": TEXT})["proto"])
    converted = ConvertCollectivesToCustomCall().run(load(proto)).module.to_bytes()
    from_proto = ask({"proto": base64.b64encode(converted).decode()})
    header = re.compile(r"^HloModule.*$", re.MULTILINE)
    assert header.sub("", from_proto["printed"]) == header.sub("", from_text["printed"])
