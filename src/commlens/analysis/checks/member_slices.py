"""Slices of which each member of a group takes its own part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from commlens.analysis.checks.def_use import Flows
from commlens.analysis.checks.device_values import DeviceValues
from commlens.analysis.checks.queries import range_of
from commlens.errors import CommlensError
from commlens.topology import CollectiveOpGroupMode

if TYPE_CHECKING:
    from commlens.analysis.checks.dataflow import Value
    from commlens.analysis.figures import Figures
    from commlens.hlo import Subject
    from commlens.topology import DeviceList

_MOST_DEVICES: Final = 1 << 20


def parts_of_group(subject: Subject, figures: Figures, cut: Value) -> bool:
    """Whether a dynamic-slice takes another equal part on each member of a group, all parts together the whole.

    Where nobody states the counts, the ids in the groups are taken for those of the replicas of one partition, or of
    the partitions of one replica, as the group mode has it; see :func:`assumption`.

    Args:
        subject: the module.
        figures: the collective whose groups are meant.
        cut: the slice.

    Raises:
        UnreadableError: the slice or its operand cannot be read.
        CommlensError: the devices are more than are looked at one by one.
    """
    groups = figures.participation.groups
    number = None if groups is None else groups.num_devices_per_group
    dimension = _only_cut_dimension(cut)
    if groups is None or not number or dimension is None or cut.instruction.opcode != "dynamic-slice":
        return False
    before, after = (each.shape.dimensions[dimension] for each in (cut.operands[0].instruction, cut.instruction))
    indices, values = cut.operands[1:], _device_values(subject, figures, groups)
    if values is None or after * number != before or len(indices) != len(cut.instruction.shape.dimensions):
        return False
    start = values.of(indices[dimension])
    if start is None:
        return False
    found = np.sort(np.clip(start, 0, before - after)[groups.to_array()], axis=1)
    return bool((found == np.arange(number, dtype=np.int64) * after).all())


def assumption(subject: Subject, figures: Figures) -> str:
    """Say what :func:`parts_of_group` takes for granted: nothing where the counts are known."""
    if subject.num_devices is not None:
        return ""
    counted = "replicas" if figures.mode is CollectiveOpGroupMode.CROSS_REPLICA else "partitions"
    return f", taking the ids for those of {counted}, as nobody states the counts"


def _device_values(subject: Subject, figures: Figures, groups: DeviceList) -> DeviceValues | None:
    """Return what works out scalars on each device that the groups name; None where they name others."""
    flows, partitions = subject.ask(Flows), subject.module.num_partitions
    known = subject.num_devices
    number = groups.num_devices if known is None else known
    smallest, largest = range_of(groups) or (-1, -1)
    if smallest < 0 or largest >= number:
        return None
    if number > _MOST_DEVICES:
        msg = f"the slices of {number:,} devices are more than the {_MOST_DEVICES:,} that are compared"
        raise CommlensError(msg)
    devices = np.arange(number, dtype=np.int64)
    if known is not None and partitions is not None:
        return DeviceValues(flows, devices // partitions, devices % partitions)
    if figures.mode is CollectiveOpGroupMode.CROSS_REPLICA:
        return DeviceValues(flows, devices, np.zeros_like(devices))
    return DeviceValues(flows, np.zeros_like(devices), devices)


def _only_cut_dimension(cut: Value) -> int | None:
    """Return the one dimension along which a slice is smaller than what it is cut from."""
    before, after = cut.operands[0].instruction.shape.dimensions, cut.instruction.shape.dimensions
    if len(before) != len(after):
        return None
    smaller = [d for d, (whole, part) in enumerate(zip(before, after, strict=True)) if whole != part]
    return smaller[0] if len(smaller) == 1 else None
