"""Runs modules on JAX's CPU client and prints what every device gets; a process of its own, XLA may end it.

Reads a JSON list of ``{"text": ...}`` or ``{"proto": ...}`` from standard input, a proto in base 64. Every module runs on
eight replicas. Replica ``d`` gets as its parameter ``k`` small whole numbers that depend on ``d``, ``k`` and the place in
the array. The results are flattened lists, one per output and replica.

Two things stand between jaxlib 0.10.2 and variadic collectives: StableHLO, through which a module goes to the client, has
no variadic reduce-scatter, and the client's layout assignment leaves a variadic all-reduce with a channel without
layouts. Those are split into one collective per operand, each with a channel of its own, before they run.
"""

from __future__ import annotations

import base64
import json
import os
import re
import sys

import numpy as np

REPLICAS = 8
VARIADIC = re.compile(
    r"^  (?P<name>%[\w.\-]+) = \((?P<shapes>.*)\) "
    r"(?P<opcode>reduce-scatter|all-reduce(?=.*channel_id))\((?P<operands>[^)]*)\), (?P<attributes>.*)$",
    re.MULTILINE,
)


def main() -> None:
    """Run every module."""
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={REPLICAS}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    json.dump([outputs(case) for case in json.load(sys.stdin)], sys.stdout)


def outputs(case: dict[str, str]) -> list[list[list[float]]]:
    """Compile and run one module; return for each output what each replica has."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    from jaxlib import _hlo, _jax, xla_client  # pyright: ignore[reportAttributeAccessIssue] - extension modules

    if "text" in case:
        module = _hlo.hlo_module_from_text(case["text"])
    else:
        module = _hlo.HloModule.from_serialized_hlo_module_proto(base64.b64decode(case["proto"]))
    module = _hlo.hlo_module_from_text(VARIADIC.sub(split, module.to_string()))
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    mlir = _jax.mlir.xla_computation_to_mlir_module(computation)
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = REPLICAS, 1
    options.device_assignment = xla_client.DeviceAssignment.create(np.arange(REPLICAS).reshape(REPLICAS, 1))
    devices = jax.devices()[:REPLICAS]
    executable = devices[0].client.compile_and_load(mlir, _jax.DeviceList(tuple(devices)), options)
    sharding = NamedSharding(Mesh(np.array(devices), ("d",)), PartitionSpec("d"))
    parameters = [
        jax.device_put(np.concatenate([values(shape.dimensions(), d, k) for d in range(REPLICAS)]), sharding)
        for k, shape in enumerate(computation.program_shape().parameter_shapes())
    ]
    results = executable.execute_sharded(parameters).disassemble_into_single_device_arrays()
    return [[np.asarray(array).ravel().tolist() for array in arrays] for arrays in results]


def split(variadic: re.Match[str]) -> str:
    """Return what a variadic collective means: one after the other, and a tuple of them."""
    name, opcode = variadic["name"], variadic["opcode"]
    shapes, operands = variadic["shapes"].split(", "), variadic["operands"].split(", ")
    lines: list[str] = []
    for number, (shape, operand) in enumerate(zip(shapes, operands, strict=True)):
        attributes = re.sub(r"channel_id=(\d+)", rf"channel_id=\g<1>00{number}", variadic["attributes"])
        lines.append(f"  {name}.part{number} = {shape} {opcode}({operand}), {attributes}")
    parts = ", ".join(f"{name}.part{number}" for number in range(len(shapes)))
    return "\n".join([*lines, f"  {name} = ({variadic['shapes']}) tuple({parts})"])


def values(dimensions: tuple[int, ...], device: int, number: int) -> np.ndarray:
    """Return what a device has for a parameter."""
    count = int(np.prod(dimensions))
    return ((np.arange(count) * 7 + device * 11 + number * 5) % 13 - 4).astype(np.float32).reshape(dimensions)


if __name__ == "__main__":
    main()
