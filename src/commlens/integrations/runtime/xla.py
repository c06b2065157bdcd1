"""XLA through jaxlib, whichever of its names a release has: from HLO to results per device. For child processes.

The way from HLO to the client leads through StableHLO, as there is no other; what it does not carry is refused by XLA
or put in another form before (:mod:`~commlens.integrations.runtime.plain_hlo`).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Arrays = dict[int, np.ndarray[Any, Any]]

PARTITIONING: Final = "sharding-propagation,spmd-partitioning"
"""XLA's passes that would partition a program which is already written as each device runs it."""


@dataclass(frozen=True, slots=True)
class Xla:
    """XLA's CPU client.

    Attributes:
        version: what runs, e.g. ``"jax 0.10.2"``.
        devices: all devices, by the number of their process.
    """

    version: str
    devices: tuple[tuple[Any, ...], ...]

    @classmethod
    def start(cls, distributed: Mapping[str, Any] | None) -> Xla:
        """Start the client.

        Args:
            distributed: ``address``, ``processes`` and ``process`` where several processes make one client.
        """
        jax = _module("jax")
        if distributed is not None:
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
            jax.distributed.initialize(
                distributed["address"], distributed["processes"], distributed["process"], initialization_timeout=60
            )
        by_process: dict[int, list[Any]] = {}
        for device in jax.devices():
            by_process.setdefault(device.process_index, []).append(device)
        return cls(f"jax {jax.__version__}", tuple(tuple(by_process[process]) for process in sorted(by_process)))

    def chosen(self, number: int) -> tuple[Any, ...]:
        """Return the devices of a program in the order of global ids, as many from each process.

        Raises:
            ValueError: the processes cannot have equal shares.
        """
        share, rest = divmod(number, len(self.devices))
        if rest:
            msg = f"expected devices that {len(self.devices)} processes share equally, found {number}"
            raise ValueError(msg)
        return tuple(device for devices in self.devices for device in devices[:share])

    def module(self, source: str | bytes) -> Any:
        """Read HLO text or a binary HloModuleProto."""
        hlo = _hlo()
        if isinstance(source, str):
            return hlo.hlo_module_from_text(source)
        return hlo.HloModule.from_serialized_hlo_module_proto(source)

    def text(self, module: Any) -> str:
        """Print a module with everything that its meaning depends on: layouts, operand shapes, all constants."""
        options = _hlo().HloPrintOptions()
        options.print_large_constants = True
        options.print_metadata = False
        options.print_operand_shape = True
        return module.to_string(options)

    def parameters(self, module: Any) -> tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]:
        """Return shape and type of each parameter of a module.

        Raises:
            ValueError: a parameter is no array.
        """
        computation = _hlo().XlaComputation(module.as_serialized_hlo_module_proto())
        shapes = computation.program_shape().parameter_shapes()
        if not all(shape.is_array() for shape in shapes):
            msg = f"expected arrays as parameters, found {', '.join(map(str, shapes))}"
            raise ValueError(msg)
        return tuple((tuple(shape.dimensions()), np.dtype(shape.numpy_dtype())) for shape in shapes)

    def cuts(self, sharding: Any, shape: Sequence[int], partitions: int) -> list[tuple[slice, ...]]:
        """Return the part of an array that each partition has.

        Args:
            sharding: an ``OpSharding`` of XLA.
            shape: the whole array's shape.
            partitions: how many partitions there are.
        """
        devices = [device for devices in self.devices for device in devices][:partitions]
        sharding = _module("jax._src.sharding_impls").GSPMDSharding(devices, sharding)
        parts = sharding.devices_indices_map(tuple(shape))
        return [parts[device] for device in devices]

    def compile(self, module: Any, replicas: int, partitions: int, *, partitioner: str | None = None) -> Any:
        """Compile a module.

        Args:
            module: the module.
            replicas: replicas to compile for.
            partitions: partitions to compile for.
            partitioner: ``"gspmd"`` or ``"shardy"`` where the module is written for all partitions together; None:
                it is written as each of them runs it.
        """
        xla_client = _module("jaxlib.xla_client")
        xla = xla_client._xla
        hlo = _hlo().XlaComputation(module.as_serialized_hlo_module_proto())
        program = xla.mlir.xla_computation_to_mlir_module(hlo)
        options = xla_client.CompileOptions()
        options.num_replicas, options.num_partitions = replicas, partitions
        devices = self.chosen(replicas * partitions)
        order = np.array([device.id for device in devices]).reshape(replicas, partitions)
        options.device_assignment = xla_client.DeviceAssignment.create(order)
        build = options.executable_build_options
        build.use_spmd_partitioning = True
        if partitioner is None:
            build.debug_options.xla_disable_hlo_passes = PARTITIONING
        elif partitioner == "shardy":
            build.use_shardy_partitioner = True
        else:
            build.allow_spmd_sharding_propagation_to_output = [True]  # as jax has it where nobody asks otherwise
        client = devices[0].client
        if not hasattr(client, "compile_and_load"):  # before jaxlib 0.5
            return client.compile(program, options)
        try:
            return client.compile_and_load(program, xla.DeviceList(devices), options)
        except TypeError:  # before jaxlib 0.7
            return client.compile_and_load(program, devices, options)

    def execute(
        self, executable: Any, arguments: Sequence[Sequence[np.ndarray[Any, Any]]], replicas: int, partitions: int
    ) -> list[Arrays]:
        """Run an executable once.

        Args:
            executable: what :meth:`compile` returned.
            arguments: per parameter, the array of each device by global id.
            replicas: replicas it was compiled for.
            partitions: partitions it was compiled for.

        Returns:
            Per result, the array of each device of this process by global id.
        """
        jax = _module("jax")
        devices = self.chosen(replicas * partitions)
        # Replicated in name, as every device has the whole shape; what stands in it differs.
        sharding = jax.sharding.NamedSharding(
            jax.sharding.Mesh(np.array(devices), ("device",)), jax.sharding.PartitionSpec()
        )
        mine = [(number, each) for number, each in enumerate(devices) if each.process_index == jax.process_index()]
        inputs = [
            jax.make_array_from_single_device_arrays(
                parameter[0].shape, sharding, [jax.device_put(parameter[number], device) for number, device in mine]
            )
            for parameter in arguments
        ]
        outputs = executable.execute_sharded(inputs).disassemble_into_single_device_arrays()
        return [
            {number: np.asarray(array) for (number, _), array in zip(mine, output, strict=True)} for output in outputs
        ]


def _hlo() -> Any:
    """Return the home of HLO classes: a module of its own in newer releases."""
    try:
        return _module("jaxlib._hlo")
    except ImportError:
        return _module("jaxlib.xla_client")._xla


def _module(name: str) -> Any:
    """Import a module of jax without its types: no two releases have the same ones."""
    return import_module(name)
