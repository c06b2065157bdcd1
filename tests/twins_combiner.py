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
    pool = [op.name for op in ops if op.key is not None]
    found: list[list[str]] = []
    while pool:
        members = one_set(ops, pool, max_bytes, max_count, skip_reachable=skip_reachable)
        if len(members) > 1:
            found.append(members)
            ops = combine(ops, members, len(found))
    return found


def one_set(ops: list[Op], pool: list[str], max_bytes: int, max_count: int, *, skip_reachable: bool) -> list[str]:
    """Take one set out of the pool, and with it all that can be in none."""
    by_name = {op.name: op for op in ops}
    members: list[str] = []
    for name in [each for each in post_order(ops) if each in pool]:
        op = by_name[name]
        if members and op.key != by_name[members[0]].key:
            continue
        if len(op.operands) != 1 or op.num_bytes > max_bytes:
            pool.remove(name)
            continue
        if op.num_bytes + sum(by_name[member].num_bytes for member in members) > max_bytes:
            break
        if any(leads_to(ops, member, name) for member in members):
            if skip_reachable:
                continue
            break
        members.append(name)
        pool.remove(name)
        if len(members) >= max_count:
            break
    return members
