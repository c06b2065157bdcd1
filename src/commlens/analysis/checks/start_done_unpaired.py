"""Starts without a done, dones without a start, and halves that do not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from commlens.analysis.checks.dataflow import value_of
from commlens.analysis.checks.def_use import Flows
from commlens.hlo import Example, Finding, Rule, UnreadableError, base_opcode, some_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis.checks.dataflow import Value
    from commlens.hlo import Instruction, Site, Subject

_COLLECTIVES: Final = (
    *("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast"),
    "ragged-all-to-all",
)
_DONES: Final = frozenset({f"{each}-done" for each in (*_COLLECTIVES, "send", "recv")} | {"async-done"})
_TRANSFERS: Final = frozenset({"send", "recv"})
_HANDS_ON: Final = frozenset({"get-tuple-element", "opt-barrier", "copy", "bitcast", "domain"})
_FROM_ELSEWHERE: Final = frozenset({"while", "conditional", "call", "tuple", "fusion", "add-dependency", "custom-call"})
_DEEPEST: Final = 40


def find(subject: Subject) -> Iterator[Finding]:
    """Look at every start from its own side, and at every done from its."""
    flows = subject.ask(Flows)
    for site in subject.sites:
        if site.signature.is_async or site.signature.opcode in _TRANSFERS:
            value = value_of(flows, site.instruction)
            try:
                found = [] if value is None else [*_start(site, value)]
            except UnreadableError:  # a user has no opcode: where the value goes cannot be told
                continue
            yield from found
    for done in subject.module.instructions_of(_DONES):
        try:
            yield from _done(done)
        except UnreadableError as error:
            message = f"expected {done.opcode} to take what its start gives, found an operand of which {error}"
            yield Finding.about(message, done)


def _start(site: Site, value: Value) -> Iterator[Finding]:
    """Look for the one done of a start."""
    start = site.instruction
    dones, elsewhere = ends_of(value)
    kind = start.opcode
    if len(dones) > 1:
        names = some_of([done.name for done in dones])
        yield Finding.about(
            f"expected one done of this {kind}, found {len(dones)}: {names}; drop all but one", site, *dones
        )
    elif not dones and not elsewhere:
        yield Finding.about(f"expected a done of this {kind}, found none; the collective is never waited for", site)
    for done in dones:
        if not go_together(start, done):
            message = f"expected the done of {kind} to be of its kind, found {_kind(done)}"
            yield Finding.about(message, site, done)
        stated = _channel(done)
        if stated is not None and stated != site.channel_id:
            own = "no channel id" if site.channel_id is None else f"channel id {site.channel_id}"
            message = (
                f"expected the done to have its start's channel, found {own} on {kind} and {stated} on {_kind(done)}"
            )
            yield Finding.about(message, site, done)


def ends_of(start: Value) -> tuple[list[Instruction], bool]:
    """Return the dones that a start leads to, and whether its value goes where they cannot be seen.

    Raises:
        UnreadableError: a user has no opcode that can be read.
    """
    uses = start.frame.uses
    dones: list[Instruction] = []
    pending, seen, elsewhere = [start.position], {start.position}, False
    while pending:
        current = pending.pop()
        elsewhere = elsewhere or current == uses.root
        for user in uses.users(current):
            instruction = uses.instructions[user]
            half = base_opcode(_kind(instruction))[1]
            if half == "done":
                dones.append(instruction)
            elif half == "update" and user not in seen:
                seen.add(user)
                pending.append(user)
            else:
                elsewhere = elsewhere or half != "update"
    return dones, elsewhere


def _kind(instruction: Instruction) -> str:
    """Return the opcode; of a custom call its target, which JAX names after one."""
    if instruction.opcode != "custom-call":
        return instruction.opcode
    return instruction.raw_attribute("custom_call_target") or instruction.opcode


def go_together(start: Instruction, done: Instruction) -> bool:
    """Whether a done is that of a start: of one operation, or both of the general form."""
    operations = {base_opcode(_kind(each))[0] for each in (start, done)}
    return len(operations) == 1 or "async" in operations


def _channel(done: Instruction) -> int | None:
    try:
        return done.channel_id
    except UnreadableError:
        return None


def _done(done: Instruction) -> Iterator[Finding]:
    """Look for the start of a done.

    Raises:
        UnreadableError: an operand on the way is not defined.
    """
    value = done
    for _ in range(_DEEPEST):
        operands = value.operands
        value = operands[0] if operands else value
        opcode = _kind(value)
        if base_opcode(opcode)[1] in ("start", "update") or opcode in _TRANSFERS or opcode in _FROM_ELSEWHERE:
            return
        if opcode == "parameter" and not value.computation.is_entry:
            return
        if opcode not in _HANDS_ON:
            found = f"{value.opcode} {value.name}"
            yield Finding.about(f"expected {done.opcode} to take what a start gives, found {found}", done)
            return


RULE: Final = Rule(
    id="start-done-unpaired",
    severity="error",
    title="An asynchronous collective that is not started and awaited once",
    documentation=(
        "A start (all-reduce-start, async-start, send, recv ...) has no done or several, a done has no start or that "
        "of another operation, or a done states another channel id than its start. What was started must be waited "
        "for once. A value that goes into a tuple, a loop or another computation, as pipelined loops have it, is not "
        "followed and nothing is said. Channel ids come to differ when they are renumbered on one half alone: the "
        "pass neuron_unique_channel_id_enforcer does so to send and recv unless it is given safe=true."
    ),
    source="VerifyAsynchronousInstructionPairs, xla/service/hlo_verifier.cc",
    bad=Example("""HloModule example, replica_count=2
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  r = f32[8] all-reduce-start(p), replica_groups={{0,1}}, to_apply=add
  ROOT o = f32[8] negate(p)
}
"""),
    good=Example("""HloModule example, replica_count=2
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  p = f32[8] parameter(0)
  r = f32[8] all-reduce-start(p), replica_groups={{0,1}}, to_apply=add
  d = f32[8] all-reduce-done(r)
  ROOT o = f32[8] negate(d)
}
"""),
    find=find,
)
