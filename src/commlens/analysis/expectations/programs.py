"""What assertions are made about: modules, files, texts, and the programs and meshes of JAX without importing it.

Programs are known by what they can do (``lower``, ``compile``, ``as_text``), meshes by their devices. The ids of a
compiled program are positions in its device assignment, which need not be the numbers of the devices: JAX assigns in
the order of the mesh that the arguments are sharded on. Tried with JAX 0.10.2 over permuted device orders.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

from commlens.analysis.expectations.claims import UnknownQuestionError
from commlens.hlo import Module, load
from commlens.topology import Mesh

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from commlens.analysis.meshes import MeshLike


@runtime_checkable
class DeviceMesh(Protocol):
    """A mesh of real devices, such as ``jax.sharding.Mesh``."""

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Names of the axes."""
        ...

    @property
    def shape(self) -> Mapping[str, int]:
        """Sizes by name."""
        ...


AnyMesh: TypeAlias = "MeshLike | DeviceMesh"
"""A mesh as :func:`commlens.report` takes it, or one of devices."""


@runtime_checkable
class _Lowerable(Protocol):
    """A jitted function, or what is traced of one."""

    def lower(self, *args: object, **kwargs: object) -> object: ...


@runtime_checkable
class _Compilable(Protocol):
    """A lowered program."""

    def compile(self) -> object: ...


@runtime_checkable
class _Text(Protocol):
    """A compiled program that can print its HLO."""

    def as_text(self) -> str: ...


@runtime_checkable
class _Running(Protocol):
    """A compiled program that gives its executable."""

    def runtime_executable(self) -> object: ...


@runtime_checkable
class _Placed(Protocol):
    """An executable that knows the devices of this process that it runs on, in the order of its ids."""

    def local_devices(self) -> Iterable[_Device]: ...


@runtime_checkable
class _OnMesh(Protocol):
    """A sharding on a mesh."""

    @property
    def mesh(self) -> object: ...


@runtime_checkable
class _Device(Protocol):
    @property
    def id(self) -> int: ...


def compiled_of(about: object, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    """Compile what can be compiled; everything else is returned as it is.

    Args:
        about: a jitted function, a traced or lowered program, or anything else.
        args: the arguments to compile a function for.
        kwargs: its keyword arguments.

    Raises:
        UnknownQuestionError: a function is not jitted, or arguments are given to what takes none.
    """
    if isinstance(about, _Lowerable) and not _is_source(about):
        return compiled_of(about.lower(*args, **kwargs), (), {})
    if callable(about) and not isinstance(about, _Text):
        msg = "expected a jitted function, found one that is not: wrap it in jax.jit(...) and give args=(...)"
        raise UnknownQuestionError(msg)
    if (args or kwargs) and not (isinstance(about, Module | _Text | _Compilable) or _is_source(about)):
        msg = f"expected a function to compile for the arguments, found {type(about).__name__}"
        raise UnknownQuestionError(msg)
    if args or kwargs:
        msg = f"expected arguments for a jitted function alone, found some for {type(about).__name__}"
        raise UnknownQuestionError(msg)
    return about.compile() if isinstance(about, _Compilable) and isinstance(about, _Text) else about


def module_of(about: object) -> Module:
    """Return the module of what was compiled, of a file or of a text.

    Raises:
        UnknownQuestionError: this is nothing with a module in it.
        CommlensError: it cannot be read, or holds several modules.
    """
    if isinstance(about, Module):
        return about
    if _is_source(about):
        return load(about)
    if isinstance(about, _Text):
        return load(about.as_text().encode("utf-8", "surrogateescape"))
    msg = (
        "expected a module, a file, an HLO text, a jitted function, a lowered or compiled program or a report, "
        f"found {type(about).__name__}"
    )
    raise UnknownQuestionError(msg)


def mesh_for(mesh: AnyMesh | None, program: object, module: Module) -> MeshLike | None:
    """Return the mesh that names the ids of a module.

    Args:
        mesh: the mesh as the user gave it.
        program: what was compiled; its devices say which id each of them has. Of anything else ids are taken to be
            positions in the mesh, which is the order in which JAX assigns devices.
        module: its module.

    Raises:
        UnknownQuestionError: the mesh and the module are not of the same devices.
    """
    if mesh is None or isinstance(mesh, Mesh | Mapping | str):
        return mesh
    axes = dict(_of_devices(mesh).shape)
    named = Mesh(axes)
    compiled = isinstance(program, _Text)
    _check_size(named, module, unstated=1 if compiled else None)
    ids = _ids_of(mesh)
    if not ids or not compiled:
        return named
    assigned = _assigned_ids(program, len(ids))
    if sorted(assigned) != sorted(ids):
        strange = sorted(set(assigned) - set(ids))
        msg = (
            f"expected a mesh of the devices that the program was compiled for, found device {strange[0]} outside it: "
            "name its axes on the mesh that its arguments are sharded on"
        )
        raise UnknownQuestionError(msg)
    place = {device: position for position, device in enumerate(assigned)}
    return Mesh(axes, [place[device] for device in ids])


def _is_source(about: object) -> TypeGuard[str | bytes | os.PathLike[str]]:
    return isinstance(about, str | bytes | os.PathLike)


def _of_devices(mesh: object) -> DeviceMesh:
    if isinstance(mesh, DeviceMesh):
        return mesh
    msg = f"expected a mesh: sizes by axis name, a text such as data=2,model=4 or a mesh of devices, found {mesh!r}"
    raise UnknownQuestionError(msg)


def _check_size(mesh: Mesh, module: Module, *, unstated: int | None) -> None:
    """Refuse a mesh of more or fewer devices than a module runs on.

    Args:
        mesh: the mesh.
        module: the module.
        unstated: what a count is that the module does not state: a compiled program leaves out a count of 1; of a file
            nobody knows.
    """
    replicas, partitions = module.replica_count or unstated, module.num_partitions or unstated
    if replicas is None or partitions is None or replicas * partitions == mesh.num_devices:
        return
    number = replicas * partitions
    hint = "; give arguments that are sharded on the mesh: arrays, or jax.ShapeDtypeStruct(..., sharding=...)"
    msg = (
        f"expected a program for the {mesh.num_devices} devices of the mesh, found {module.name} compiled for "
        f"{number}{hint if number == 1 else ''}"
    )
    raise UnknownQuestionError(msg)


def _ids_of(mesh: object) -> list[int]:
    """Return the numbers of a mesh's devices, row-major; none for a mesh of names alone."""
    try:
        flat: Iterable[object] = getattr(getattr(mesh, "devices", None), "flat", ())
    except ValueError:  # an abstract mesh refuses to name devices
        return []
    return [device.id for device in flat if isinstance(device, _Device)]


def _assigned_ids(program: _Text, number: int) -> list[int]:
    """Return the numbers of the devices in the order of the program's ids.

    Where other processes have some of the devices, the meshes of its arguments and results tell.

    Raises:
        UnknownQuestionError: nothing tells.
    """
    executable = program.runtime_executable() if isinstance(program, _Running) else None
    if isinstance(executable, _Placed):
        ids = [device.id for device in executable.local_devices()]
        if len(ids) == number:
            return ids
    found = {tuple(_ids_of(mesh)) for mesh in _meshes_of(program)}
    orders = [order for order in found if len(order) == number]
    if len(orders) == 1:
        return list(orders[0])
    msg = (
        f"expected a program that says in which order it uses the {number} devices of the mesh, found none or several; "
        'name the axes over its own ids instead, as in mesh={"data": 2, "model": 4}'
    )
    raise UnknownQuestionError(msg)


def _meshes_of(program: _Text) -> Iterator[object]:
    """Yield the meshes of a program's arguments and results, whatever they are nested in."""
    pending: list[object] = [getattr(program, key, None) for key in ("input_shardings", "output_shardings")]
    while pending:
        each = pending.pop()
        if isinstance(each, Mapping):
            pending.extend(cast("Mapping[object, object]", each).values())
        elif isinstance(each, Sequence) and not isinstance(each, str):
            pending.extend(cast("Sequence[object]", each))
        elif isinstance(each, _OnMesh):
            yield each.mesh
