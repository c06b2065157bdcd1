"""The groups of an instruction as the Neuron passes take them, and how they find the tensor-parallel ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.errors import CommlensError
from commlens.hlo import (
    Computation,
    Site,
    check_definition_order,
    execution_thread,
    first_operand,
    opcode_in_memory,
    opcode_of,
)
from commlens.neuron.predicates import COLLECTIVE_CLASS
from commlens.topology import replica_groups_equal

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from commlens.hlo import Instruction, Module
    from commlens.topology import DeviceList

_REDUCE_SCATTER: Final = "reduce-scatter"


def get_replica_groups(instruction: Instruction) -> list[list[int]]:
    """Return the replica groups of a collective as lists, whatever their spelling.

    Args:
        instruction: an instruction of the class ``HloCollectiveInstruction``; one that is written as a start in short
            stands for the operation it wraps.

    Returns:
        ``[group][rank]``; no groups at all where the list is empty or absent.

    Raises:
        UnreadableError: the groups cannot be read.
        CommlensError: the instruction is none that has groups, or they are too many to be written out.

    Source: ``GetReplicaGroups`` of neuronx_cc 2.24.5133, which is stock: every spelling is expanded first.

    Example:
        >>> from commlens.hlo import load
        >>> module = load('''ENTRY e {
        ...   p = f32[8] parameter(0)
        ...   ROOT g = f32[16] all-gather(p), dimensions={0}, replica_groups=[2,2]<=[2,2]T(1,0)
        ... }''')
        >>> get_replica_groups(module.instruction("g"))
        [[0, 2], [1, 3]]
    """
    return _groups_of(instruction).groups()


def has_matching_replica_groups(instruction: Instruction, groups: DeviceList | Sequence[Sequence[int]]) -> bool:
    """Whether a collective has just these groups, in this order.

    The published function compares the number of groups and the length of group 0, then id by id, so it reads past the
    end where another group is shorter, and where both lists are empty. Here those answers are False.

    Args:
        instruction: as for :func:`get_replica_groups`.
        groups: the groups to compare with, in any spelling.

    Raises:
        UnreadableError: the instruction's groups cannot be read.
        CommlensError: the instruction is none that has groups.

    Source: ``HasMatchingReplicaGroups``, in AWS's published passes.

    Example:
        >>> from commlens.hlo import load
        >>> module = load('''ENTRY e {
        ...   p = f32[8] parameter(0)
        ...   ROOT g = f32[16] all-gather(p), dimensions={0}, replica_groups={{0,1},{2,3}}
        ... }''')
        >>> gather = module.instruction("g")
        >>> has_matching_replica_groups(gather, [[0, 1], [2, 3]]), has_matching_replica_groups(gather, [[2, 3], [0, 1]])
        (True, False)
    """
    mine = _groups_of(instruction)
    return mine.num_replica_groups > 0 and replica_groups_equal(mine, groups)


def get_tp_replica_group(
    computation_or_module: Computation | Module, threads: Collection[str] | None = None
) -> list[list[int]] | None:
    """Return the groups of tensor parallelism, told by what a reduce-scatter reduces.

    They are those of the first reduce-scatter, in post-order, whose operand 0 is a dot or a reshape of a dot. Nothing
    else may stand between, a convert neither, though a comment in the published source says so. Of a module the first
    computation with a hit counts; hits are not gathered.

    Args:
        computation_or_module: where to look.
        threads: names of execution threads; computations that run on others (:func:`~commlens.hlo.execution_thread`)
            are passed over. None or none: all.

    Returns:
        The groups as lists; None where nothing matches.

    Raises:
        UnreadableError: a reduce-scatter, or what decides which is first, cannot be read.

    Source: ``GetTpReplicaGroup``, two overloads, in AWS's published passes.

    Example:
        >>> from commlens.hlo import load
        >>> module = load('''ENTRY e {
        ...   a = f32[8,8] parameter(0)
        ...   d = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ...   ROOT r = f32[4,8] reduce-scatter(d), dimensions={0}, replica_groups={{0,1},{2,3}}, to_apply=add
        ... }''')
        >>> get_tp_replica_group(module)
        [[0, 1], [2, 3]]
    """
    found = find_tp_groups(computation_or_module, threads)
    return None if found is None else found.groups()


def find_tp_groups(
    computation_or_module: Computation | Module, threads: Collection[str] | None = None
) -> DeviceList | None:
    """Return what :func:`get_tp_replica_group` returns, in the spelling of the module."""
    wanted = frozenset({threads} if isinstance(threads, str) else threads or ())
    if isinstance(computation_or_module, Computation):
        computation = computation_or_module
        places = iter([(computation, computation.communication())])
    else:
        places = computation_or_module.communication()
    for computation, items in places:
        scatters = [item for item in items if _is_reduce_scatter(item)]
        if scatters and (not wanted or execution_thread(computation) in wanted):
            found = _first_groups(computation, scatters)
            if found is not None:
                return found
    return None


def _is_reduce_scatter(item: Site | Instruction) -> bool:
    """Whether something is a reduce-scatter with operands of its computation: what a start wraps has parameters."""
    if isinstance(item, Site):
        return item.signature.opcode == _REDUCE_SCATTER and not item.signature.is_async
    return item.opcode == _REDUCE_SCATTER


def _first_groups(computation: Computation, scatters: Sequence[Site | Instruction]) -> DeviceList | None:
    """Return the groups of the first reduce-scatter of a dot; the order is only made out where they differ."""
    hits: list[DeviceList] = []  # two that differ are enough to know that they do
    settled: dict[int, DeviceList] = {}  # by identity: groups of which one more makes no difference
    for item in scatters:
        groups = _groups_of_item(item)
        if id(groups) in settled:
            continue
        if any(replica_groups_equal(groups, each) for each in hits):
            settled[id(groups)] = groups
        elif _reduces_dot(_instruction(item)):
            settled[id(groups)] = groups
            hits = [*hits, groups][:2]
    if len(hits) < 2:
        return hits[0] if hits else None
    candidates = {_instruction(item) for item in scatters}
    check_definition_order(computation)
    ordered = (each for each in computation.post_order() if each in candidates and _reduces_dot(each))
    return _groups_of(next(ordered))


def _instruction(item: Site | Instruction) -> Instruction:
    return item.instruction if isinstance(item, Site) else item


def _groups_of_item(item: Site | Instruction) -> DeviceList:
    groups = item.signature.groups if isinstance(item, Site) else item.replica_groups
    return _groups_of(_instruction(item)) if groups is None else groups


def _reduces_dot(scatter: Instruction) -> bool:
    """Whether operand 0 is a dot, or a reshape of a dot."""
    operand = first_operand(scatter)
    if operand is not None and opcode_of(operand) == "reshape":
        operand = first_operand(operand)
    return operand is not None and opcode_of(operand) == "dot"


def _groups_of(instruction: Instruction) -> DeviceList:
    if opcode_in_memory(instruction.opcode) not in COLLECTIVE_CLASS:
        known = ", ".join(sorted(COLLECTIVE_CLASS))
        msg = f"expected a collective with replica groups ({known}), found {instruction.opcode} {instruction.name}"
        raise CommlensError(msg)
    return instruction.replica_groups
