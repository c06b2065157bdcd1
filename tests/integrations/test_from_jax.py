"""Programs straight from JAX, in a process of its own: XLA is told how many devices to pretend before it starts."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from commlens import CommlensError, from_jax

SCRIPT = """
import json, os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
import commlens, jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"))
step = jax.jit(
    jax.shard_map(lambda x: jax.lax.psum(x, "model"), mesh=mesh, in_specs=P("data", "model"), out_specs=P("data", None))
)
lowered = step.lower(jax.ShapeDtypeStruct((8, 16), jnp.float32, sharding=NamedSharding(mesh, P("data", "model"))))
found = {}
for stage, program in (("lowered", lowered), ("compiled", lowered.compile())):
    (row,) = commlens.report(commlens.from_jax(program), "data=2,model=4").collectives
    found[stage] = [row.opcode, row.axes, row.operand_bytes, row.participants]
commlens.expect(lowered.compile(), "data=2,model=4").count("all-reduce", axes="model", exactly=1).none("all-gather")
print(json.dumps(found))
"""


@pytest.mark.xla
def test_lowered_and_compiled_programs_are_read() -> None:
    """Both stages of a program show its psum over ``model``, with who takes part."""
    child = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, check=False)
    assert child.returncode == 0, child.stderr[-2000:]
    row = ["all-reduce", ["model"], 64, [[0, 1, 2, 3], [4, 5, 6, 7]]]
    assert json.loads(child.stdout.splitlines()[-1]) == {"lowered": row, "compiled": row}


def test_other_things_are_refused() -> None:
    """What is no program of JAX is named."""
    with pytest.raises(CommlensError, match="int"):
        from_jax(3)
