"""Meshes as users state them, as JSON writes them, and the one by which the rows of a module are named."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard

from commlens.analysis.limits import FULL_LIMIT
from commlens.errors import CommlensError, GrammarError, InputError, excerpt
from commlens.topology import IotaTileAssignment, Mesh, MeshAxesReplicaGroupList, parse_mesh

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.topology import DeviceList

MeshLike: TypeAlias = Mesh | Mapping[str, int] | str
"""A mesh, sizes by axis name, or a text as :func:`read_mesh` takes it."""

_KEYS: Final = {"axes", "device_ids"}


def as_mesh(mesh: MeshLike) -> Mesh:
    """Take a mesh in any of the forms in which one is given.

    Raises:
        CommlensError: the sizes make no mesh, or the text is none (see :func:`read_mesh`).

    Example:
        >>> as_mesh({"data": 2, "model": 4}) == as_mesh("data=2,model=4")
        True
    """
    if isinstance(mesh, Mesh):
        return mesh
    return read_mesh(mesh) if isinstance(mesh, str) else Mesh(mesh)


def read_mesh(text: str) -> Mesh:
    """Take what ``--mesh`` takes: axes, or the name of a JSON file.

    Args:
        text: ``data=2,model=4``, the HLO text of a mesh, or a path that ends in ``.json`` (without ``=``, any path).

    Raises:
        GrammarError: the text is no mesh and names no file.
        InputError: the file cannot be read or holds no mesh.

    Example:
        >>> str(read_mesh("data=2,model=4"))
        "mesh['data'=2,'model'=4]"
    """
    if "=" in text and not text.endswith(".json"):
        return parse_mesh(text)
    msg = f"expected axes such as data=2,model=4 or the name of a JSON file, found {excerpt(text)!r}"
    if not text:  # as a path it would be the current folder
        raise GrammarError(msg, position=0)
    try:
        content = Path(text).read_bytes()
    except FileNotFoundError as error:
        raise GrammarError(msg, position=0) from error
    except OSError as error:
        reason = f"the mesh cannot be read: {error.strerror}"
        raise InputError(reason, path=text) from error
    return mesh_from_json(content, path=text)


def mesh_from_json(content: bytes | str, *, path: str) -> Mesh:
    """Read a mesh file: ``{"axes": {"data": 2, "model": 4}, "device_ids": [...] or null}``.

    Args:
        content: the JSON text. ``device_ids`` lists the ids row-major over the axes, nested or flat; null or absent
            means 0..n-1; ``{"reshape_dims": [...], "transpose_perm": [...]}`` states a transposed order without a list.
        path: name of the file, for messages.

    Raises:
        InputError: the text is no JSON, or states no mesh.

    Example:
        >>> str(mesh_from_json('{"axes": {"r": 2, "c": 2}, "device_ids": [[0, 2], [1, 3]]}', path="mesh.json"))
        "mesh['r'=2,'c'=2], device_ids=(0,2,1,3)"
    """
    try:
        stated: object = json.loads(content, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        reason = f"expected a mesh in JSON: {error.msg}"
        raise InputError(reason, path=path, line=error.lineno, column=error.colno) from error
    except (ValueError, RecursionError) as error:
        reason = f"expected a mesh in JSON: {error}"
        raise InputError(reason, path=path) from error
    try:
        return _mesh_of(stated)
    except CommlensError as error:
        raise InputError(str(error), path=path) from error


def mesh_as_json(mesh: Mesh) -> dict[str, object]:
    """Write a mesh in the form that :func:`mesh_from_json` reads.

    Example:
        >>> mesh_as_json(Mesh({"r": 2, "c": 2}, [0, 2, 1, 3]))
        {'axes': {'r': 2, 'c': 2}, 'device_ids': [0, 2, 1, 3]}
    """
    ids = mesh.device_ids
    stated: object = None
    if isinstance(ids, IotaTileAssignment) and mesh.num_devices > FULL_LIMIT:
        stated = {"reshape_dims": list(ids.reshape_dims), "transpose_perm": list(ids.transpose_perm)}
    elif ids is not None:
        stated = mesh.device_array().reshape(-1).tolist()
    return {"axes": dict(mesh.axes), "device_ids": stated}


def module_mesh(header: Mesh | None, groups: Iterable[DeviceList | None]) -> Mesh | None:
    """Choose the mesh that names the axes of a module which nobody has named from outside.

    Args:
        header: the only mesh of the module's header, None where there is none.
        groups: the replica group lists of its collectives.

    Returns:
        The header's mesh; else the only mesh with real names among the groups; else the only one with generated names
        (``axis_0`` ...), counted without axes of size 1 and numbered anew; else None.

    Example:
        >>> lists = [MeshAxesReplicaGroupList(Mesh({"axis_0": 1, "axis_1": 8}), ["axis_1"])]
        >>> str(module_mesh(None, lists))
        "mesh['axis_0'=8]"
    """
    if header is not None:
        return header
    meshes = {each.mesh for each in groups if isinstance(each, MeshAxesReplicaGroupList) and each.mesh.axes}
    named = {mesh for mesh in meshes if not mesh.has_generated_names}
    generated = {mesh.without_trivial_axes(renumber=True) for mesh in meshes - named}
    for found in (named, generated):
        if len(found) == 1:
            return next(iter(found))
    return None


def size_fault(mesh: Mesh | None, devices: int | None) -> str | None:
    """Say that a mesh is for another number of devices than a program; None where it is not, and where nobody knows.

    Args:
        mesh: the mesh; None where there is none.
        devices: devices that the program runs on, replicas times partitions; None where nobody states them.

    Example:
        >>> size_fault(Mesh({"data": 2, "model": 2}), 8)
        "expected a mesh of the program's 8 devices, found mesh['data'=2,'model'=2] of 4"
        >>> size_fault(Mesh({"data": 2, "model": 4}), 8), size_fault(Mesh({"data": 2}), None)
        (None, None)
    """
    if mesh is None or devices is None or mesh.num_devices == devices:
        return None
    return f"expected a mesh of the program's {devices:,} devices, found {mesh} of {mesh.num_devices:,}"


def _mesh_of(stated: object) -> Mesh:
    if not _is_object(stated) or not _is_object(axes := stated.get("axes")):
        msg = 'expected an object such as {"axes": {"data": 2, "model": 4}, "device_ids": null}, found no axes'
        raise CommlensError(msg)
    unknown = sorted(set(stated) - _KEYS)
    if unknown:
        msg = f"expected the keys axes and device_ids, found {', '.join(unknown)}"
        raise CommlensError(msg)
    sizes = {name: _whole(size, f"the size of axis {name!r}") for name, size in axes.items()}
    ids = stated.get("device_ids")
    if ids is None:
        return Mesh(sizes)
    if _is_object(ids):
        order = tuple(_whole_numbers(ids.get(key), key) for key in ("reshape_dims", "transpose_perm"))
        return Mesh(sizes, (order[0], order[1]))
    return Mesh(sizes, _whole_numbers(ids, "device_ids"))


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _whole(value: object, what: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    msg = f"expected {what} to be an integer, found {value!r}"
    raise CommlensError(msg)


def _whole_numbers(value: object, what: str) -> list[int]:
    """Flatten nested lists of integers, row-major."""
    if not _is_list(value):
        msg = f"expected {what} to be a list of integers, found {value!r}"
        raise CommlensError(msg)
    numbers: list[int] = []
    pending: list[object] = list(reversed(value))
    while pending:
        item = pending.pop()
        if _is_list(item):
            pending.extend(reversed(item))
        else:
            numbers.append(_whole(item, f"everything in {what}"))
    return numbers


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    repeated = sorted(key for key, number in Counter(key for key, _ in pairs).items() if number > 1)
    if repeated:
        msg = f"expected every key once, found {', '.join(repeated)} several times"
        raise CommlensError(msg)
    return dict(pairs)
