"""The mesh axes of a collective by what it does: the order of members that changes no result does not hide them.

Rows name axes in the order of the members, so that groups in no order of the axes have none. An all-reduce over
``{2,1,0}`` does what one over ``{0,1,2}`` does all the same, and claims, goldens and totals of a comparison say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from commlens.analysis.axis_names import NO_AXES, UNKNOWN_AXES, axes_key
from commlens.analysis.limits import FULL_LIMIT
from commlens.analysis.participant_keys import order_of
from commlens.topology import CollectiveDeviceList, Mesh, axes_of

if TYPE_CHECKING:
    from commlens.analysis.axis_names import AxesKey
    from commlens.analysis.figures import Figures
    from commlens.analysis.participant_keys import Order
    from commlens.topology import AxisRef, DeviceList


def effective_axes_key(figures: Figures, mesh: Mesh | None) -> AxesKey:
    """Return under which axes a collective counts: those of its row, or of its groups in another order of members.

    A broadcast counts under the axes of its groups whoever is first in them.

    Args:
        figures: the collective.
        mesh: the module's mesh; None where there is none.

    Example:
        >>> from commlens.analysis import report
        >>> from commlens.hlo import load
        >>> module = load('''HloModule m, num_partitions=4
        ... ENTRY e {
        ...   p = f32[8] parameter(0)
        ...   ROOT r = f32[8] all-reduce(p), channel_id=1, replica_groups={{1,0},{2,3}}, use_global_device_ids=true
        ... }''')
        >>> answer = report(module, "a=2,b=2")
        >>> figures = answer.collectives[0].figures
        >>> figures.axes_key.text, effective_axes_key(figures, answer.mesh).text
        ('?', 'b')
    """
    groups = figures.participation.groups
    hidden = figures.axes_key.text == UNKNOWN_AXES and order_of(figures.signature.opcode) != "all"
    if mesh is None or groups is None or not hidden:
        return figures.axes_key
    return axes_key(axes_up_to_order(groups, mesh, "any"), mesh)


def axes_in_words(figures: Figures, mesh: Mesh | None) -> str | None:
    """Name the axes of a collective for people: those of its row, or those that it means though members are shuffled.

    Args:
        figures: the collective.
        mesh: the module's mesh; None where there is none.

    Returns:
        The axes joined by commas, ``"none"`` for groups of one device; None where they are not known.

    Example:
        >>> from commlens.analysis import report
        >>> from commlens.hlo import load
        >>> text = '''HloModule m, num_partitions=4
        ... ENTRY e {{
        ...   p = f32[8] parameter(0)
        ...   ROOT r = f32[8] all-reduce(p), channel_id=1, replica_groups={}, use_global_device_ids=true
        ... }}'''
        >>> for groups in ("{{0,1},{2,3}}", "{{1,0},{2,3}}", "{{0,3},{1,2}}"):
        ...     answer = report(load(text.format(groups)), "a=2,b=2")
        ...     axes_in_words(answer.collectives[0].figures, answer.mesh)
        'b'
        'b (shuffled)'
    """
    if figures.axes is not None:
        return ",".join(figures.axes) or NO_AXES
    key = effective_axes_key(figures, mesh).text
    return None if key == UNKNOWN_AXES else f"{key} (shuffled)"


def axes_up_to_order(groups: DeviceList, mesh: Mesh, order: Order) -> tuple[AxisRef, ...] | None:
    """Return the mesh axes that vary inside a group, where only some members stand where they do for a reason.

    Args:
        groups: the groups.
        mesh: the mesh that names axes.
        order: which members those are; the others are brought into the order of the mesh where they fit no axes.

    Returns:
        The references as of :func:`commlens.topology.axes_of`; None where the groups fit no axes in any order that is
        allowed, and where they are not written out and too many to look at.

    Example:
        >>> groups, mesh = CollectiveDeviceList([[2, 0], [1, 3]]), Mesh({"a": 2, "b": 2})
        >>> [ref.label for ref in axes_up_to_order(groups, mesh, "any") or ()], axes_up_to_order(groups, mesh, "all")
        (['a'], None)
    """
    refs = axes_of(groups, mesh)
    few = groups.is_written_out or groups.num_devices <= FULL_LIMIT
    if refs is not None or order == "all" or not few or groups.num_devices != mesh.num_devices:
        return refs
    if not mesh.axes or not groups.num_devices_per_group:
        return None
    places = mesh.order.positions_of(groups.to_array())
    if places is None:
        return None
    fixed = 0 if order == "any" else 1
    rows = np.concatenate([places[:, :fixed], np.sort(places[:, fixed:], axis=1)], axis=1)
    return axes_of(CollectiveDeviceList(rows), Mesh(mesh.axes))
