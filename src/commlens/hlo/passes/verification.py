"""Whether a pass broke a module: what is wrong with it now and was not before.

Modules come as they are, and a pass is not to blame for what was wrong already. So both modules are looked at with the
same eyes, and only what is new counts.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from commlens.errors import CommlensError
from commlens.hlo.definition_order import module_uses_before_definition, uses_before_definition
from commlens.hlo.discovery import discover
from commlens.hlo.loading import load_all
from commlens.hlo.model import UnreadableError
from commlens.hlo.passes.refusals import place_of_name
from commlens.topology import get_collective_op_group_mode, verify_groups, verify_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from commlens.hlo.discovery import Discovery
    from commlens.hlo.model import Computation, Instruction, Module
    from commlens.hlo.signature import Signature

_Key: TypeAlias = tuple[object, ...]
"""What makes a fault the same as one before."""

_Place: TypeAlias = tuple[str, str]
"""Names of a computation and of an instruction in it."""


class Fault(NamedTuple):
    """Something wrong with a module.

    Attributes:
        sentence: what.
        computation: the computation it concerns; None for the whole module, or where nobody says.
        instruction: the instruction; None where it is not one that can be named.
    """

    sentence: str
    computation: str | None = None
    instruction: str | None = None

    def place_in(self, module: Module) -> tuple[int | None, int | None]:
        """Return line and column of what it concerns; neither where the module has no lines or no such instruction."""
        if self.instruction is None:
            return None, None
        homes = module.computations if self.computation is None else (module.computation(self.computation),)
        try:
            found = (home.instruction(self.instruction) for home in homes if home is not None)
            return next((place_of_name(each) for each in found if each is not None), (None, None))
        except UnreadableError:
            return None, None


class Examination(NamedTuple):
    """What is wrong with a module.

    Attributes:
        faults: the faults, by what makes them the same as others.
        groups: what upstream's rule says of the groups or pairs of every collective.
    """

    faults: Mapping[_Key, Fault]
    groups: Mapping[_Place, Sequence[str]]


def examine(module: Module) -> Examination:
    """Find out what is wrong with a module.

    Looked at are: names, which must differ within a computation; ids, which must in a proto; operands and control
    predecessors, which must be defined and stand before what needs them; collectives, which must be read; and their
    groups and pairs, by upstream's rule.
    """
    discovery = discover(module)
    return Examination(dict(_faults(module, discovery)), _group_faults(module, discovery))


def ambiguity(module: Module) -> Fault | None:
    """Return the first two instructions of a module that cannot be told apart; None where all can.

    In a text they have one name, in a proto one id: no operand says which of them it means. XLA refuses such a text.
    """
    kind = "name" if module.format == "text" else "id"
    found = chain.from_iterable(map(_repeated, module.computations))
    return next((fault for key, fault in found if key[0] == kind), None)


def definition_order_faults(module: Module) -> Sequence[Fault]:
    """Return every operand and control predecessor that is not defined before what needs it, in file order.

    XLA refuses such a module. Nothing is said of what cannot be taken apart, which passes refuse where they look at it.
    """
    return [
        Fault(f"{each.user.name}: {each.why}", each.user.computation.name, each.user.name)
        for each in module_uses_before_definition(module)
    ]


def new_faults(before: Examination, after: Examination, module: Module) -> list[Fault]:
    """Return what is wrong with a module that was not wrong before.

    Args:
        before: what was wrong with the module as it was.
        after: what is wrong with it now.
        module: the module as it is now; its source must read back as the same module.

    Returns:
        The faults, none where all is well.
    """
    return [
        *(fault for key, fault in after.faults.items() if key not in before.faults),
        *_new_group_faults(before.groups, after.groups),
        *map(Fault, _unlike_its_source(module)),
    ]


def _faults(module: Module, discovery: Discovery) -> Iterator[tuple[_Key, Fault]]:
    for computation in module.computations:
        yield from _repeated(computation)
        yield from _definition_order_faults(computation)
    for item in discovery.unread:
        what = item.name or item.text
        yield ("unread", what, item.opcode, item.why), Fault(f"{what} cannot be read: {item.why}", None, item.name)


def _repeated(computation: Computation) -> Iterator[tuple[_Key, Fault]]:
    names: set[str] = set()
    ids: set[int] = set()
    home = computation.name
    for instruction in computation.instructions:
        try:
            name, number = instruction.name, instruction.list_key
        except UnreadableError as error:
            excerpt = instruction.excerpt
            yield ("unreadable", home, excerpt, str(error)), Fault(f"{excerpt} cannot be read: {error}", home)
            continue
        if name in names:
            sentence = f"computation {home} has two instructions named {name}"
            yield ("name", home, name), Fault(sentence, home, name)
        if number in ids:
            sentence = f"computation {home} has two instructions with the id {number}"
            yield ("id", home, number), Fault(sentence, home, name)
        names.add(name)
        ids.add(number)


def _definition_order_faults(computation: Computation) -> Iterator[tuple[_Key, Fault]]:
    """Find operands and control predecessors that are not there, or not yet there."""
    home = computation.name
    try:
        for each in uses_before_definition(computation):
            user = each.user.name
            yield (each.whereabouts, home, user, each.needed), Fault(f"{user}: {each.why}", home, user)
    except UnreadableError as error:
        yield ("graph", home, str(error)), Fault(f"computation {home} cannot be read: {error}", home)


def _new_group_faults(was: Mapping[_Place, Sequence[str]], now: Mapping[_Place, Sequence[str]]) -> Iterator[Fault]:
    """Compare what upstream's rule says of each collective; a new one may have taken over what was wrong with any."""
    anywhere = [sentence for sentences in was.values() for sentence in sentences]
    for place, sentences in now.items():
        known = was.get(place, anywhere)
        yield from (Fault(f"{place[1]}: {sentence}", *place) for sentence in sentences if sentence not in known)


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
