"""A module of a proto."""

from __future__ import annotations

import gc
import re
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from commlens.hlo.formatting import as_text
from commlens.hlo.model import Call, Module, Unread, UnreadableError
from commlens.hlo.proto import descriptors
from commlens.hlo.proto.computation import ProtoComputation
from commlens.hlo.proto.decoding import attributes_of, decode, decode_or_empty
from commlens.hlo.proto.editing import edited
from commlens.hlo.proto.instruction import ProtoInstruction
from commlens.hlo.proto.opcode_scan import (
    COMMUNICATING_OPCODES,
    Candidates,
    EncodedInstruction,
    encoded_names,
    find_candidates,
    find_opcodes,
)
from commlens.hlo.proto.schema.commlens_hlo_pb2 import (
    DeviceAssignmentProto,
    HloInstructionOutline,
    HloScheduleProto,
    StackFrameIndexProto,
)
from commlens.hlo.proto.sites import SiteReader

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence

    from commlens.hlo.edits import Edit
    from commlens.hlo.model import Computation, Instruction
    from commlens.hlo.proto.locations import FoundModule
    from commlens.hlo.proto.schema.commlens_hlo_pb2 import HloModuleConfigProto, HloModuleOutline
    from commlens.hlo.signature import Site


class _Calls(NamedTuple):
    """Who calls what in a module.

    Attributes:
        by_callee: by id of the called computation: number of the caller's computation, the caller's id and position.
        damaged: number of the computation, what may call something and cannot be decoded, and why.
    """

    by_callee: dict[int, list[tuple[int, int, int]]]
    damaged: list[tuple[int, EncodedInstruction, str]]

    def add(self, number: int, encoded: EncodedInstruction) -> None:
        """Add the calls of an instruction."""
        try:
            outline = decode(HloInstructionOutline, encoded.data)
        except UnreadableError as error:
            self.damaged.append((number, encoded, str(error)))
            return
        for callee in outline.called_computation_ids:
            self.by_callee.setdefault(callee, []).append((number, outline.id, encoded.position))


class ProtoModule(Module):
    """One module of a binary proto or of a proto's text form.

    Args:
        found: the module in the content it was found in.
        path: what to call the file in messages.
        replicas: replica count stated by the user.
        partitions: partition count stated by the user.

    Raises:
        UnreadableError: the device assignment is damaged.
    """

    format = "proto"

    def __init__(self, found: FoundModule, path: str, replicas: int | None, partitions: int | None) -> None:
        self.found = found
        self.outline = outline = found.outline
        self._outlines = list(outline.computations)
        self.name = as_text(outline.name)
        self.path = path
        self._made: dict[int, ProtoComputation] = {}
        self._stated = (replicas, partitions)
        self.replica_count, self.num_partitions = _counts(outline, found.config, replicas, partitions)

    @property
    def frontend_attributes(self) -> Mapping[str, str]:
        """The module's own frontend attributes."""
        return attributes_of(self.outline.frontend_attributes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the computations in file order; a repeated one gets a number, as XLA gives one in texts."""
        found: dict[str, int] = {}
        for computation in self._outlines:
            name = unique = as_text(computation.name)
            while unique in found:
                found[name] += 1
                unique = f"{name}.{found[name]}"
            found[unique] = 0
        return tuple(found)

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def _by_id(self) -> dict[int, int]:
        """Positions of the computations by id, the first of several."""
        last = len(self._outlines) - 1
        return {each.id: last - number for number, each in enumerate(reversed(self._outlines))}

    def _computation(self, number: int) -> ProtoComputation:
        made = self._made.get(number)
        if made is None:
            made = self._made[number] = ProtoComputation(self, number, self._outlines[number])
        return made

    @property
    def computations(self) -> tuple[ProtoComputation, ...]:
        """All computations in file order."""
        return self._computations

    @cached_property
    def _computations(self) -> tuple[ProtoComputation, ...]:
        return tuple(self._computation(number) for number in range(len(self._outlines)))

    def computation(self, name: str) -> ProtoComputation | None:
        """Return the computation of that name, None if there is none."""
        number = self._by_name.get(name)
        return None if number is None else self._computation(number)

    def computation_names(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the names of computations; one that does not exist is called by its id."""
        numbers = ((each, self._by_id.get(each)) for each in ids)
        return tuple(f"id {each}" if number is None else self.names[number] for each, number in numbers)

    @property
    def entry(self) -> ProtoComputation | None:
        """The computation with the entry's id, else the one with its name, else None.

        An id of 0 may also be none at all: then the name must agree, where one is stated.
        """
        stated, name = self.outline.entry_computation_id, self.outline.entry_computation_name
        number = self._by_id.get(stated)
        if number is not None and (stated or not name or self._outlines[number].name == name):
            return self._computation(number)
        return self.computation(as_text(name))

    @cached_property
    def _candidates(self) -> list[Candidates]:
        with _collector_paused():
            return find_candidates(self._outlines)

    @cached_property
    def communicating(self) -> dict[int, list[Site | Instruction]]:
        """What may communicate, by number of its computation, in row order."""
        reader = SiteReader()
        found: dict[int, list[Site | Instruction]] = {}
        candidates = self._candidates
        with _collector_paused():
            for number, instructions in candidates:
                items = reader.read(self._computation(number), instructions)
                if items:
                    found[number] = items
        return found

    def communication(self) -> Iterator[tuple[Computation, Iterable[Site | Instruction]]]:
        """Yield the computations in which something may communicate, in file order, with what that is."""
        for number, items in self.communicating.items():
            yield self._computation(number), items

    @cached_property
    def _calls(self) -> _Calls:
        """The call sites of all computations."""
        calls = _Calls({}, [])
        candidates = self._candidates
        with _collector_paused():
            for number, instructions in candidates:
                for each in instructions:
                    if each.opcode not in COMMUNICATING_OPCODES:  # those only call their reducer
                        calls.add(number, each)
        return calls

    def callers(self, names: Collection[str]) -> list[Call]:
        """Return every call of the named computations, in file order; reducers and the like are not called so."""
        numbers = (self._by_name.get(name) for name in names)
        ids = [self._outlines[number].id for number in numbers if number is not None]
        callees: dict[tuple[int, int, int], dict[int, None]] = {}
        for callee in ids:
            for place in self._calls.by_callee.get(callee, ()):
                callees.setdefault(place, {})[callee] = None
        calls: list[Call] = []
        for place in sorted(callees):
            caller = ProtoInstruction(self._computation(place[0]), place[2])
            try:
                calls += [Call(caller, role, callee) for role, callee in caller.called if callee in names]
            except UnreadableError:
                calls += [Call(caller, "unreadable", name) for name in self.computation_names(callees[place])]
        return calls

    @property
    def structure_faults(self) -> tuple[Unread, ...]:
        """What cannot be decoded and may call something; computations that share an id; an entry that is not there."""
        return (*self._damaged(), *self._indistinct(), *self._without_entry())

    def _damaged(self) -> Iterator[Unread]:
        for number, encoded, why in self._calls.damaged:
            instruction = ProtoInstruction(self._computation(number), encoded.position)
            yield Unread(f"computation {self.names[number]}", instruction.excerpt, why, opcode=encoded.opcode)

    def _indistinct(self) -> Iterator[Unread]:
        if len(self._by_id) < len(self._outlines):
            for number, (name, outline) in enumerate(zip(self.names, self._outlines, strict=True)):
                if self._by_id[outline.id] != number:
                    yield Unread(f"computation {name}", name, f"another computation has its id, {outline.id}")

    def _without_entry(self) -> Iterator[Unread]:
        if self.entry is None:
            name, number = as_text(self.outline.entry_computation_name), self.outline.entry_computation_id
            called = " ".join(([name] if name else []) + ([f"(id {number})"] if number else [])) or "that has no name"
            yield Unread("module", called, f"the entry computation {called} is not there; the file may be cut")

    @cached_property
    def _schedule(self) -> HloScheduleProto:
        return decode_or_empty(HloScheduleProto, self.outline.schedule)

    def schedule_of(self, computation_id: int) -> Sequence[int]:
        """Return the ids of a computation's instructions as scheduled, none where the module has no schedule."""
        sequences = self._schedule.sequences
        return sequences[computation_id].instruction_ids if computation_id in sequences else ()

    @cached_property
    def execution_threads(self) -> tuple[bytes, ...]:
        """What each computation states as its execution thread, as written; empty where it states none."""
        computations = self.found.raw.messages(descriptors.COMPUTATIONS)
        return tuple(each.value(descriptors.EXECUTION_THREAD) or b"" for each in computations)

    def payload(self, number: int) -> bytes:
        """Return one of the module's payloads, nothing where there is no such one."""
        payloads = self.outline.payloads
        return payloads[number] if 0 <= number < len(payloads) else b""

    @cached_property
    def _frames(self) -> StackFrameIndexProto:
        return decode_or_empty(StackFrameIndexProto, self.outline.stack_frame_index)

    def source_of_frame(self, frame: int) -> str | None:
        """Return ``"file:line"`` of a stack frame, None where the tables do not lead to one. Ids count from 1."""
        tables = self._frames
        if not 0 < frame <= len(tables.stack_frames):
            return None
        location = tables.stack_frames[frame - 1].file_location_id
        if not 0 < location <= len(tables.file_locations):
            return None
        file = tables.file_locations[location - 1]
        if not 0 < file.file_name_id <= len(tables.file_names):
            return None
        return f"{as_text(tables.file_names[file.file_name_id - 1])}:{file.line}"

    def instructions_of(self, opcodes: Collection[str]) -> Iterator[Instruction]:
        """Yield the instructions that have one of these opcodes."""
        for number, outline in enumerate(self._outlines):
            positions = find_opcodes(outline, opcodes)
            if positions:
                yield from self._computation(number).in_list_order(positions)

    @cached_property
    def _instruction_names(self) -> frozenset[bytes]:
        return frozenset(name for outline in self._outlines for name in encoded_names(outline))

    def has_instruction_named(self, name: bytes) -> bool:
        """Whether an instruction of the module has a name."""
        return name in self._instruction_names

    def fresh_names(self, base: str) -> Iterator[str]:
        """Yield names that no instruction of the module has: behind the largest number that one has."""
        numbered = re.compile(re.escape(base.encode()) + rb"\.([0-9]{1,18})")
        matches = map(numbered.fullmatch, self._instruction_names)
        largest = max((int(match[1]) for match in matches if match is not None), default=0)
        for number in count(largest + 1):
            yield f"{base}.{number}"

    def edited(self, edits: Iterable[Edit]) -> ProtoModule:
        """Return the module with edits made."""
        with _collector_paused():
            written = edited(self, edits)
        return self if written is None else ProtoModule(self.found.with_raw(written), self.path, *self._stated)

    def to_bytes(self) -> bytes:
        """Return the content the module was found in, with its edits."""
        return self.found.source


def _counts(
    outline: HloModuleOutline, config: HloModuleConfigProto | None, replicas: int | None, partitions: int | None
) -> tuple[int | None, int | None]:
    """Return the counts: as the user states them, else as a configuration or device assignment does.

    Where one of the two is stated anywhere, the other is 1.
    """
    assignments = [decode(DeviceAssignmentProto, outline.device_assignment)]
    stated = [(replicas, partitions)]
    if config is not None:
        stated.append((config.replica_count, config.num_partitions))
        assignments.insert(0, config.static_device_assignment)
    stated += [(assignment.replica_count, assignment.computation_count) for assignment in assignments]
    first, second = (
        [count for count in counts if count is not None and count > 0] for counts in zip(*stated, strict=True)
    )
    if not first and not second:
        return None, None
    return (first or [1])[0], (second or [1])[0]


@contextmanager
def _collector_paused() -> Generator[None]:
    """Pause the garbage collector, which would go through all that is built again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
