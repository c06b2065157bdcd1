"""Whether a pass broke a module: what is wrong with it now and was not before.

Modules come as they are, and a pass is not to blame for what was wrong already. So both modules are looked at with the
same eyes, and only what is new counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from commlens.errors import CommlensError
from commlens.hlo.discovery import discover
from commlens.hlo.loading import load_all
from commlens.hlo.model import UnreadableError
from commlens.topology import get_collective_op_group_mode, verify_groups, verify_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from commlens.hlo.discovery import Discovery
    from commlens.hlo.model import Computation, Instruction, Module
    from commlens.hlo.signature import Signature

_Fault: TypeAlias = tuple[tuple[object, ...], str]
"""What makes a fault the same as one before, and the sentence that tells it."""

_Place: TypeAlias = tuple[str, str]
"""Names of a computation and of an instruction in it."""


def new_faults(before: Module, after: Module) -> list[str]:
    """Return what is wrong with a module that was not wrong before.

    Looked at are: names, which must differ within a computation; ids, which must in a proto; operands and control
    predecessors, which must be defined, in a text before they are used; collectives, which must be read; their groups
    and pairs, by upstream's rule; and the source, which must read back as the same module.

    Args:
        before: the module as it was.
        after: the module as it is.

    Returns:
        Full sentences; none where all is well.
    """
    was, now = discover(before), discover(after)
    known = {fault for fault, _ in _faults(before, was)}
    found = dict(fault for fault in _faults(after, now) if fault[0] not in known)
    return [
        *found.values(),
        *_new_group_faults(_group_faults(before, was), _group_faults(after, now)),
        *_unlike_its_source(after),
    ]


def _faults(module: Module, discovery: Discovery) -> Iterator[_Fault]:
    for computation in module.computations:
        yield from _repeated(computation)
        yield from _undefined(computation)
    for item in discovery.unread:
        what = item.name or item.text
        yield ("unread", what, item.opcode, item.why), f"{what} cannot be read: {item.why}"


def _repeated(computation: Computation) -> Iterator[_Fault]:
    names: set[str] = set()
    ids: set[int] = set()
    for instruction in computation.instructions:
        name, number = instruction.name, instruction.list_key
        where = f"computation {computation.name}"
        if name in names:
            yield ("name", computation.name, name), f"{where} has two instructions named {name}"
        if number in ids:
            yield ("id", computation.name, number), f"{where} has two instructions with the id {number}"
        names.add(name)
        ids.add(number)


def _undefined(computation: Computation) -> Iterator[_Fault]:
    """Find operands and control predecessors that are not there, or, in a text, not yet there."""
    try:
        graph = computation.graph()
    except UnreadableError as error:
        yield ("graph", computation.name, str(error)), f"computation {computation.name} cannot be read: {error}"
        return
    instructions = computation.instructions
    in_order = computation.module.format == "text"
    for position, instruction in enumerate(instructions):
        name = instruction.name
        if position in graph.broken:
            yield ("undefined", computation.name, name), f"{name} has an operand that is not defined"
        late = (each for each in graph.predecessors(position) if in_order and each >= position)
        for each in late:
            operand = instructions[each].name
            yield ("late", computation.name, name, operand), f"{name} stands before {operand}, which it needs"


def _new_group_faults(was: Mapping[_Place, Sequence[str]], now: Mapping[_Place, Sequence[str]]) -> Iterator[str]:
    """Compare what upstream's rule says of each collective; a new one may have taken over what was wrong with any."""
    anywhere = [sentence for sentences in was.values() for sentence in sentences]
    for place, sentences in now.items():
        known = was.get(place, anywhere)
        yield from (f"{place[1]}: {sentence}" for sentence in sentences if sentence not in known)


def _group_faults(module: Module, discovery: Discovery) -> dict[_Place, tuple[str, ...]]:
    """Judge the groups or pairs of every collective, those that are spelled alike only once."""
    judged: dict[Signature, tuple[str, ...]] = {}
    found: dict[_Place, tuple[str, ...]] = {}
    for site in discovery.sites:
        signature = site.signature
        if signature not in judged:
            judged[signature] = _judged(signature, module.replica_count, module.num_partitions)
        found[site.computation_name, site.name] = judged[signature]
    return found


def _judged(signature: Signature, replicas: int | None, partitions: int | None) -> tuple[str, ...]:
    try:
        mode = get_collective_op_group_mode(signature.has_channel, signature.use_global_device_ids)
    except CommlensError as error:
        return (str(error),)
    if signature.groups is not None:
        return tuple(map(str, verify_groups(signature.opcode, signature.groups, mode, replicas, partitions)))
    if signature.pairs is not None:
        return tuple(map(str, verify_pairs(signature.pairs, mode, replicas, partitions)))
    return ()


def _unlike_its_source(module: Module) -> Iterator[str]:
    """Find out whether a module's source reads back as the module."""
    try:
        modules = load_all(module.to_bytes(), replicas=module.replica_count, partitions=module.num_partitions)
    except CommlensError as error:
        yield f"its source cannot be read again: {error}"
        return
    wanted = _outline(module)
    if all(_outline(each) != wanted for each in modules if each.name == module.name):
        yield "its source does not read back as the same module"


def _outline(module: Module) -> list[object]:
    return [(each.name, each.is_entry, *map(_instruction_outline, each.instructions)) for each in module.computations]


def _instruction_outline(instruction: Instruction) -> tuple[object, ...]:
    parts: tuple[Callable[[], object], ...] = (
        lambda: instruction.name,
        lambda: instruction.opcode,
        lambda: instruction.operand_names,
        lambda: str(instruction.shape),
        lambda: instruction.is_root,
        lambda: instruction.channel_id,
        lambda: instruction.called,
        lambda: instruction.control_predecessors,
        lambda: dict(instruction.frontend_attributes),
        lambda: dict(instruction.metadata_fields()),
        lambda: dict(instruction.other_attributes()),
    )
    return tuple(map(_read, parts))


def _read(part: Callable[[], object]) -> object:
    try:
        return part()
    except UnreadableError as error:
        return str(error)
