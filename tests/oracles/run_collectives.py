"""Runs all-reduces on JAX's CPU client and prints who took part in them; a process of its own, XLA may end it.

Reads a JSON list of ``{"replicas", "partitions", "attributes"}`` from standard input, writes for each the participants of
every device: device i adds 2**i, so the bits of its sum are the devices it heard from.
"""

from __future__ import annotations

import json
import os
import sys

import numpy as np

TEXT = """HloModule m, replica_count={replicas}, num_partitions={partitions}

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

ENTRY e {{
  p = f32[1] parameter(0), sharding={{manual}}
  ROOT r = f32[1] all-reduce(p), {attributes}, to_apply=add, sharding={{manual}}
}}
"""


def main() -> None:
    """Run every case."""
    cases = json.load(sys.stdin)
    devices = max(case["replicas"] * case["partitions"] for case in cases)
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    json.dump([observed(case) for case in cases], sys.stdout)


def observed(case: dict[str, object]) -> list[list[int]]:
    """Compile and run one case; return for each device who it heard from."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    from jaxlib import _hlo, _jax, xla_client  # pyright: ignore[reportAttributeAccessIssue] - extension modules

    replicas, partitions = int(str(case["replicas"])), int(str(case["partitions"]))
    total = replicas * partitions
    module = _hlo.hlo_module_from_text(TEXT.format(**case))
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    mlir = _jax.mlir.xla_computation_to_mlir_module(computation)
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = replicas, partitions
    order = np.arange(total).reshape(replicas, partitions)
    options.device_assignment = xla_client.DeviceAssignment.create(order)
    options.executable_build_options.use_spmd_partitioning = True
    devices = jax.devices()[:total]
    client = devices[0].client
    executable = client.compile_and_load(mlir, _jax.DeviceList(tuple(devices)), options)
    values = np.array([2.0**device for device in range(total)], dtype=np.float32)
    sharding = NamedSharding(Mesh(np.array(devices), ("d",)), PartitionSpec("d"))
    results = executable.execute_sharded([jax.device_put(values, sharding)])
    (arrays,) = results.disassemble_into_single_device_arrays()
    sums = [int(np.asarray(array)[0]) for array in arrays]
    return [[device for device in range(total) if sums[each] >> device & 1] for each in range(total)]


if __name__ == "__main__":
    main()
