"""What several rules want to know of a module's collectives; each answer is worked out once per module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from commlens.analysis.figures import FiguresContext
from commlens.analysis.meshes import module_mesh
from commlens.analysis.participation import Counts
from commlens.hlo import Finding, canonical_groups, check_listable
from commlens.topology import CollectiveOpGroupMode, Fault, SourceTargetPairs, verify_groups, verify_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from commlens.analysis.figures import Figures
    from commlens.hlo import Signature, Site, Subject
    from commlens.topology import DeviceList

_MAY_LEAVE_OUT: Final = frozenset({"collective-broadcast"})
"""Collectives whose groups need not hold every device: the others get zeros."""

_LIKE_ALL_REDUCE: Final = "all-reduce"
_INDEX_TYPES: Final = frozenset({"s32", "s64", "u32", "u64"})
_SHOWN: Final = 8


def context_of(subject: Subject) -> FiguresContext:
    """Return what works out figures, on the counts and the mesh by which ``report`` names axes."""
    module = subject.module
    mesh = subject.mesh or module_mesh(module.mesh, (each.groups for each in signatures_of(subject)))
    return FiguresContext(Counts.of(module.replica_count, module.num_partitions), mesh)


def figures_of(subject: Subject, site: Site) -> Figures:
    """Return the figures of something that communicates."""
    return subject.ask(context_of).figures_of(site.signature)


def signatures_of(subject: Subject) -> tuple[Signature, ...]:
    """Return the different signatures of a module, in the order in which they first appear."""
    return tuple(dict.fromkeys(site.signature for site in subject.sites))


def faults_of(subject: Subject) -> Mapping[Signature, tuple[Fault, ...]]:
    """Return what is wrong with the groups or pairs of each signature, as far as the counts are known.

    This is XLA's own rule with two differences: counts of 1 are taken at their word where they are known, and the ids
    of a collective-broadcast are looked at as well.
    """
    counts = subject.ask(context_of).counts
    return {signature: _faults(signature, counts, subject) for signature in signatures_of(subject)}


class Spellings:
    """Group lists in one spelling, so that they can be compared; many collectives share a list, which is read once."""

    def __init__(self, _: Subject) -> None:
        self._known: dict[int, tuple[DeviceList, DeviceList]] = {}

    def of(self, groups: DeviceList) -> DeviceList:
        """Return a list in the one spelling.

        Raises:
            CommlensError: the groups lie unevenly, and are too many to look at.
        """
        known = self._known.get(id(groups))
        if known is None or known[0] is not groups:
            if groups.layout() is None:
                check_listable(groups)
            known = self._known[id(groups)] = (groups, canonical_groups(groups))
        return known[1]


def sites_with(subject: Subject, rule: str, message: Callable[[Site, Fault], str] | None = None) -> Iterator[Finding]:
    """Yield a finding for each collective whose groups or pairs have a fault of one rule.

    Args:
        subject: the module.
        rule: the fault's rule.
        message: what to say; None: what the fault says.
    """
    faults = subject.ask(faults_of)
    for site in subject.sites:
        for fault in faults[site.signature]:
            if fault.rule == rule:
                yield Finding.about(fault.message if message is None else message(site, fault), site)


def range_of(joined: DeviceList | SourceTargetPairs) -> tuple[int, int] | None:
    """Return the smallest and the largest id of groups or pairs; None where there are none.

    Groups that are not written out hold each of ``0..n-1``, and nothing is listed.

    Example:
        >>> from commlens.topology import IotaReplicaGroupList
        >>> range_of(IotaReplicaGroupList(1 << 20, 1 << 20))
        (0, 1099511627775)
    """
    if not isinstance(joined, SourceTargetPairs) and not joined.is_written_out:
        return 0, joined.num_devices - 1
    ids = joined.to_array() if isinstance(joined, SourceTargetPairs) else joined.flattened_replica_groups()
    return (int(ids.min()), int(ids.max())) if ids.size else None


def _faults(signature: Signature, counts: Counts | None, subject: Subject) -> tuple[Fault, ...]:
    replicas, partitions = (None, None) if counts is None else (counts.replicas, counts.partitions)
    mode = subject.ask(context_of).figures_of(signature).mode
    if signature.pairs is not None and mode is not None:
        found = verify_pairs(signature.pairs, mode, replicas, partitions, check_single=True)
        return tuple(fault for fault in found if fault.rule != "pair-repeated") if _is_in_place(signature) else found
    if signature.groups is None or (mode is None and not signature.groups.num_replica_groups):
        return ()
    if mode is None:  # the flags contradict each other: what the ids are is unknown, that one stands twice is not
        mode, replicas, partitions = CollectiveOpGroupMode.FLATTENED_ID, None, None
    loose = signature.opcode in _MAY_LEAVE_OUT
    opcode = _LIKE_ALL_REDUCE if loose else signature.opcode
    found = verify_groups(opcode, signature.groups, mode, replicas, partitions, check_single=True)
    kept = [fault for fault in found if not (loose and fault.rule == "groups-incomplete")]
    return (*kept, *_negative(signature, kept))


def _negative(signature: Signature, found: list[Fault]) -> Iterator[Fault]:
    """Name negative ids, which are out of range whatever the counts are."""
    groups = signature.groups
    if groups is None or not groups.is_written_out or any(fault.rule == "id-out-of-range" for fault in found):
        return
    ids = groups.flattened_replica_groups()
    if ids.size and int(ids.min()) < 0:
        negative = ", ".join(map(str, np.unique(ids[ids < 0]).tolist()[:_SHOWN]))
        yield Fault(
            "id-out-of-range", f"expected ids of 0 or more in the groups, found {negative}; no device has those"
        )


def _is_in_place(signature: Signature) -> bool:
    """Whether a collective-permute writes slices into an operand: then a device may be in several pairs.

    Its operands are inputs, as many outputs, and where to read and to write: whole numbers.
    """
    shapes = signature.operand_shapes
    is_place = [each.element_type in _INDEX_TYPES and not each.dimensions for each in shapes]
    arrays = is_place.index(True) if True in is_place else len(shapes)
    return all(is_place[arrays:]) and len(shapes) - arrays > 1 and arrays > 0 and arrays % 2 == 0
