"""Text of replica group lists, meshes and axes, in all spellings old and new.

Source of the semantics: xla/hlo/parser/hlo_parser.cc; the grammar in short, older spellings in brackets:

    groups  list | iota | mesh-groups
    list    {{0,1},{2,3}}   {}   {{},{0}}
    iota    [2,4]<=[8]   [4,2]<=[2,4]T(1,0)
    mesh    mesh['a'=2,'b'=4]   mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0))   maximal_mesh[device_id=5]
            [mesh[a=2,b=4]   @mesh<a=2,b=4>   @mesh<a=2,b=4>([4,2]T(1,0))]
    groups of a mesh: the mesh and the axes inside a group, mesh['a'=2,'b'=4] {'b','a':(1)2}

Values are not judged here: repeated, negative and missing ids, empty and uneven groups are read as they stand. An iota
that is no bijection, and meshes and axis references that are invalid, are faults of the text.
"""

from __future__ import annotations

from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from commlens.errors import CommlensError, GrammarError
from commlens.topology.axes import AxisRef
from commlens.topology.device_lists import CollectiveDeviceList, IotaReplicaGroupList, MeshAxesReplicaGroupList
from commlens.topology.id_lists import parse_id_lists
from commlens.topology.iota import IotaTileAssignment
from commlens.topology.mesh import Mesh
from commlens.topology.tokens import Cursor

if TYPE_CHECKING:
    from collections.abc import Generator

    from commlens.topology.device_lists import DeviceList

_Order: TypeAlias = list[int] | tuple[list[int], list[int]] | None
"""The devices of a mesh: 0..n-1, written out, or an iota."""

_BRACKETS = MappingProxyType({"[": "]", "<": ">"})
_GROUPS_EXPECTED = "a list '{...}', an iota '[groups,members]<=[...]' or a mesh \"mesh['name'=size,...] {'axis',...}\""


def parse_replica_groups(text: str) -> DeviceList:
    """Read a replica group list in any spelling.

    Args:
        text: the list and nothing else; white space and comments may stand between tokens.

    Returns:
        A :class:`CollectiveDeviceList`, :class:`IotaReplicaGroupList` or :class:`MeshAxesReplicaGroupList`, after the
        spelling.

    Raises:
        GrammarError: where the text breaks the grammar, an id does not fit in 64 bits, an iota is no bijection, or a
            mesh or an axis reference is invalid.

    Example:
        >>> str(parse_replica_groups("{ {0,1}, {2,3} }")), str(parse_replica_groups("[2,4]<=[2,1,4]T(2,1,0)"))
        ('{{0,1},{2,3}}', '[2,4]<=[2,4]T(1,0)')
        >>> str(parse_replica_groups("@mesh<a=2,b=4> {b}"))
        "mesh['a'=2,'b'=4] {'b'}"
    """
    cursor = Cursor(text)
    if cursor.at("{"):
        return CollectiveDeviceList.from_flat(*parse_id_lists(text))
    if cursor.at("["):
        tile = read_iota(cursor, dims=2)
        cursor.expect_end()
        return IotaReplicaGroupList.from_tile(tile)
    if not at_mesh(cursor):
        cursor.fail(_GROUPS_EXPECTED)
    mesh = read_mesh(cursor)
    cursor.accept(",")
    start = cursor.token.start
    axes = read_axes(cursor, mesh)
    cursor.expect_end()
    with placed(start):
        return MeshAxesReplicaGroupList(mesh, axes)


def parse_mesh(text: str) -> Mesh:
    """Read a mesh, in any spelling, or only its axes as ``data=2,model=4``.

    Raises:
        GrammarError: where the text breaks the grammar or describes no mesh.

    Example:
        >>> str(parse_mesh("data=2,model=4"))
        "mesh['data'=2,'model'=4]"
        >>> str(parse_mesh("mesh['a'=2,'b'=2], device_ids=(3,1,0,2)"))
        "mesh['a'=2,'b'=2], device_ids=(3,1,0,2)"
    """
    cursor = Cursor(text)
    start = cursor.token.start
    if at_mesh(cursor) and cursor.following().text != "=":
        mesh = read_mesh(cursor)
    else:
        axes = [_read_axis(cursor)]
        while cursor.accept(","):
            axes.append(_read_axis(cursor))
        with placed(start):
            mesh = Mesh(axes)
    cursor.expect_end()
    return mesh


def parse_axes(text: str, mesh: Mesh) -> tuple[AxisRef, ...]:
    """Read references to axes as ``data,a:(1)2``; quotes are optional, and a number is the index of an axis.

    Raises:
        GrammarError: where the text breaks the grammar, or the mesh does not have such axes.

    Example:
        >>> [str(ref) for ref in parse_axes("model,0:(1)2", Mesh({"data": 4, "model": 4}))]
        ["'model'", "'data':(1)2"]
    """
    cursor = Cursor(text)
    refs = [read_ref(cursor, mesh, numbers=True)]
    while cursor.accept(","):
        refs.append(read_ref(cursor, mesh, numbers=True))
    cursor.expect_end()
    with placed(0):
        return mesh.resolve_all(refs)


def read_iota(cursor: Cursor, dims: int | None = None) -> IotaTileAssignment:
    """Take an iota, ``[4,2]<=[2,4]T(1,0)``.

    Args:
        cursor: stands before the iota.
        dims: how many dimensions it must have; None for any number.

    Raises:
        GrammarError: where the text breaks the grammar or the iota is no bijection.
    """
    start = cursor.token.start
    shape = cursor.integers("[", "]", "a size")
    if dims is not None and len(shape) != dims:
        msg = f"expected {dims} sizes before '<=', groups and members, found {len(shape)}"
        raise GrammarError(msg, position=start)
    cursor.expect("<=", "between the two sides of an iota")
    reshape, perm = read_iota_order(cursor)
    with placed(start):
        return IotaTileAssignment(shape, reshape, perm)


def read_iota_order(cursor: Cursor) -> tuple[list[int], list[int]]:
    """Take the right-hand side of an iota: ``[8]``, or ``[2,4]T(1,0)`` where there are several sizes.

    Raises:
        GrammarError: where the text breaks the grammar.
    """
    start = cursor.token.start
    reshape = cursor.integers("[", "]", "a size")
    if not reshape:
        msg = "expected at least one size in the reshape of an iota, found '[]'"
        raise GrammarError(msg, position=start)
    if len(reshape) == 1:
        return reshape, [0]
    if not cursor.accept("T"):
        cursor.fail("'T(' and the transposition of an iota with several reshape sizes")
    return reshape, cursor.integers("(", ")", "an axis of the transposition")


def at_mesh(cursor: Cursor) -> bool:
    """Whether a mesh comes next."""
    return cursor.at("mesh") or cursor.at("maximal_mesh") or cursor.at("@")


def read_mesh(cursor: Cursor) -> Mesh:
    """Take a mesh with its order of devices, if it has one.

    Raises:
        GrammarError: where the text breaks the grammar or describes no mesh.
    """
    start = cursor.token.start
    older = cursor.accept("@")
    maximal = cursor.accept("maximal_mesh")
    if not maximal:
        cursor.expect("mesh", "to start a mesh")
    opening = "<" if older else "["
    if maximal:
        return _read_maximal(cursor, opening, start)
    cursor.expect(opening, "after 'mesh'")
    axes: list[tuple[str, int]] = []
    order: _Order = None
    more = not cursor.at(_BRACKETS[opening])
    while more:
        if cursor.at("device_ids") and order is None and axes:
            order = _read_device_ids(cursor)
        else:
            axes.append(_read_axis(cursor))
        more = cursor.accept(",")
    cursor.expect(_BRACKETS[opening], "to end the axes of the mesh")
    if order is None:
        order = _read_order_after(cursor, older=older)
    if not axes and order is None:
        return Mesh.empty()
    with placed(start):
        return Mesh(axes, order)


def read_axes(cursor: Cursor, mesh: Mesh) -> list[AxisRef]:
    """Take references to axes in braces, ``{'a','b':(1)2}``, each checked against the mesh.

    Raises:
        GrammarError: where the text breaks the grammar, or the mesh does not have such an axis.
    """
    return cursor.items("{", "}", lambda: read_ref(cursor, mesh))


def _read_maximal(cursor: Cursor, opening: str, start: int) -> Mesh:
    cursor.expect(opening, "after 'maximal_mesh'")
    cursor.expect("device_id", "in a maximal mesh")
    cursor.expect("=", "after 'device_id'")
    device = cursor.integer("a device id")
    cursor.expect(_BRACKETS[opening], "to end the maximal mesh")
    with placed(start):
        return Mesh.maximal(device)


def _read_axis(cursor: Cursor) -> tuple[str, int]:
    name = cursor.name("the name of an axis")
    cursor.expect("=", "after the name of an axis")
    return name, cursor.integer("the size of an axis")


def _read_order_after(cursor: Cursor, *, older: bool) -> _Order:
    """The order of devices behind the axes: ``, device_ids=(...)``, and ``(...)`` alone in the oldest spelling."""
    if older and cursor.at("("):
        return _read_order(cursor)
    if cursor.at("device_ids"):
        return _read_device_ids(cursor)
    if cursor.at(",") and cursor.following().text == "device_ids":
        cursor.take()
        return _read_device_ids(cursor)
    return None


def _read_device_ids(cursor: Cursor) -> _Order:
    cursor.expect("device_ids", "to start the order of the devices")
    cursor.expect("=", "after 'device_ids'")
    return _read_order(cursor)


def _read_order(cursor: Cursor) -> _Order:
    if not cursor.at("("):
        cursor.fail("'(' to start the device ids")
    if cursor.following().text != "[":
        return cursor.integers("(", ")", "a device id")
    cursor.take()
    order = read_iota_order(cursor)
    cursor.expect(")", "to end the device ids")
    return order


def read_ref(cursor: Cursor, mesh: Mesh, *, numbers: bool = False) -> AxisRef:
    """Take a reference to an axis, ``'a'`` or ``'a':(1)2``, checked against the mesh.

    Args:
        cursor: stands before the reference.
        mesh: the mesh whose axis it is.
        numbers: whether an index without quotes will do for the name.

    Raises:
        GrammarError: where the text breaks the grammar, or the mesh does not have such an axis.
    """
    start = cursor.token.start
    axis = cursor.take().text if numbers and cursor.at_integer() else cursor.name("the name of an axis, in quotes")
    pre_size = size = None
    if cursor.accept(":"):
        cursor.expect("(", "before the pre-size of a sub-axis")
        pre_size = cursor.integer("the pre-size of a sub-axis")
        cursor.expect(")", "after the pre-size of a sub-axis")
        size = cursor.integer("the size of a sub-axis")
    with placed(start):
        return mesh.resolve(AxisRef(axis, pre_size, size))


@contextmanager
def placed(position: int) -> Generator[None]:
    """Give errors about values the place of the text that has them.

    Raises:
        GrammarError: in place of any other error of the package.
    """
    try:
        yield
    except CommlensError as error:
        raise GrammarError(str(error), position=position) from None
