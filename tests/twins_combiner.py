"""The combiners' grouping once more: a computation that is really rewritten in every round, with nothing but loops."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Op:
    """An instruction, by the names of what it needs.

    ``key`` is None for what is not combined, ``number`` what it is called in the answer.
    """

    name: str
    operands: list[str]
    control: list[str] = field(default_factory=list)
    key: object = None
    num_bytes: int = 0


def post_order(ops: list[Op]) -> list[str]:
    """List names behind what they need: from every instruction without users, control predecessors first."""
    by_name = {op.name: op for op in ops}
    listed: list[str] = []

    def visit(name: str) -> None:
        if name in listed:
            return
        op = by_name[name]
        for needed in [*reversed(op.control), *op.operands]:
            visit(needed)
        listed.append(name)

    for op in ops:
        if not any(op.name in other.operands for other in ops):
            visit(op.name)
    return listed


def leads_to(ops: list[Op], source: str, target: str) -> bool:
    """Whether one instruction must come before another."""
    by_name = {op.name: op for op in ops}

    def needs_source(name: str) -> bool:
        op = by_name[name]
        return name == source or any(needs_source(needed) for needed in [*op.operands, *op.control])

    return needs_source(target)


def combine(ops: list[Op], members: list[str], number: int) -> list[Op]:
    """Rewrite the computation: the new instruction and what takes from it are added at the end of the list."""
    by_name = {op.name: op for op in ops}
    new = Op(f"combined {number}", [], [])
    for member in members:
        new.operands += by_name[member].operands
        new.control += [each for each in by_name[member].control if each not in new.control]
    names = {member: f"{member} of {new.name}" for member in members}
    added = [new, *[Op(names[member], [new.name]) for member in members]]
    kept = [op for op in ops if op.name not in members]
    for op in [*kept, new]:
        op.operands = [names.get(each, each) for each in op.operands]
        op.control = [names.get(each, each) for each in op.control]
    return [*kept, *added]


def sets(ops: list[Op], max_bytes: int, max_count: int, *, skip_reachable: bool = False) -> list[list[str]]:
    """Return the names of what is combined, set by set.

    With ``skip_reachable`` as the newest upstream does it: an instruction that depends on a member is passed over.
    """
    if max_bytes <= 0 or max_count <= 0:
        return []
    ops = [Op(op.name, list(op.operands), list(op.control), op.key, op.num_bytes) for op in ops]
    pool = {op.name: op for op in ops if op.key is not None}
    found: list[list[str]] = []
    while pool:
        members: list[str] = []
        total = 0
        key: object = None
        for name in post_order(ops):
            if name not in pool:
                continue
            op = pool[name]
            if not members:
                key = op.key
            if op.key != key:
                continue
            if len(op.operands) != 1 or op.num_bytes > max_bytes:
                del pool[name]
                continue
            if total + op.num_bytes > max_bytes:
                break
            if any(leads_to(ops, member, name) for member in members):
                if skip_reachable:
                    continue
                break
            members.append(name)
            total += op.num_bytes
            del pool[name]
            if len(members) >= max_count:
                break
        if len(members) > 1:
            found.append(members)
            ops = combine(ops, members, len(found))
    return found
