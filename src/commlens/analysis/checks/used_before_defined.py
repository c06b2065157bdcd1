"""Operands and control predecessors that are not defined before what needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.hlo import Example, Finding, Rule, UnreadableError, module_uses_before_definition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.hlo import Instruction, Subject


def find(subject: Subject) -> Iterator[Finding]:
    """Look at what every instruction needs, whether or not it communicates: XLA refuses the module as a whole.

    What cannot be read for want of an operand, the first that it lacks, is a finding of ``unread`` already.
    """
    unread = {(item.name, item.why) for item in subject.found.unread}
    told: set[Instruction] = set()
    for each in module_uses_before_definition(subject.module):
        user = each.user
        if each.whereabouts == "undefined" and user not in told and (user.name, _missing_operand(user)) in unread:
            told.add(user)
        else:
            yield Finding.about(each.why, user)


def _missing_operand(instruction: Instruction) -> str | None:
    """Return why the operands of an instruction cannot be had; None where they can."""
    try:
        _ = instruction.operands
    except UnreadableError as error:
        return str(error)
    return None


RULE: Final = Rule(
    id="used-before-defined",
    severity="error",
    title="Something is used before it is defined, or never is",
    documentation=(
        "An operand or a control predecessor of an instruction stands behind it, is the instruction itself, or is "
        "defined nowhere in its computation. XLA looks names up while it reads a text, and ids while it reads the list "
        "of a proto, so it refuses the module: what comes later does not exist for it yet, whether or not the module "
        "has a schedule. Figures and orders in an answer about such a module are as if it were sorted. It comes of "
        "edits by hand or by script; move what is needed to the front, or mend its name. Where an instruction of a "
        "computation cannot be taken apart nothing is said there. A collective that cannot be read because an operand "
        "of it is defined nowhere is a finding of the rule unread alone."
    ),
    source="HloParserImpl::ParseOperands, xla/hlo/parser/hlo_parser.cc; HloComputation::CreateFromProto",
    bad=Example("""HloModule example, num_partitions=2
ENTRY e {
  p = f32[8] parameter(0)
  n = f32[8] negate(r)
  r = f32[8] all-to-all(p), channel_id=1, replica_groups={{0,1}}, dimensions={0}
  ROOT s = f32[8] add(n, p)
}
"""),
    good=Example("""HloModule example, num_partitions=2
ENTRY e {
  p = f32[8] parameter(0)
  r = f32[8] all-to-all(p), channel_id=1, replica_groups={{0,1}}, dimensions={0}
  n = f32[8] negate(r)
  ROOT s = f32[8] add(n, p)
}
"""),
    find=find,
)
