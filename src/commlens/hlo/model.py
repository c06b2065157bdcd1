"""The interface of a module, whatever its source: modules, computations, instructions.

The text backend and the proto backend subclass these; everything above ``hlo`` sees only what stands here.
Instructions are views: an attribute is read from the source when somebody asks for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from commlens.errors import PlacedError
from commlens.hlo.files import write_atomically
from commlens.hlo.graphs import Graph, graph_of
from commlens.hlo.opcodes import FLAG_CARRIERS, base_opcode

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from commlens.hlo.edits import Edit
    from commlens.hlo.shapes import Shape
    from commlens.hlo.signature import Site
    from commlens.topology import DeviceList, Mesh, SourceTargetPairs

Format = Literal["text", "proto"]

Role = Literal["body", "condition", "branch", "call", "fusion", "async", "custom-call", "apply", "unreadable"]
"""What a called computation is to its caller; the last where the caller names it but cannot be read."""


class UnreadableError(PlacedError):
    """Something that looks like a collective cannot be read; the text says what and why."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that may communicate and could not be read.

    Attributes:
        where: ``"LINE"`` or ``"LINE:COLUMN"`` in a text, the computation's name in a proto.
        text: the beginning of what stands there.
        why: what was expected and what was found.
        name: the instruction's name, where it is known.
        opcode: its opcode, where it is known.
    """

    where: str
    text: str
    why: str
    name: str | None = None
    opcode: str | None = None


class Call(NamedTuple):
    """One call site: an instruction that runs another computation.

    Attributes:
        caller: the instruction.
        role: what the called computation is to it.
        callee: name of the called computation.
    """

    caller: Instruction
    role: Role
    callee: str


class Instruction(ABC):
    """One HLO instruction. Two views of the same instruction of one module compare equal."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The name without ``%``."""

    @property
    @abstractmethod
    def opcode(self) -> str:
        """The opcode as the module spells it, e.g. ``"all-gather-start"``."""

    @property
    @abstractmethod
    def computation(self) -> Computation:
        """The computation it stands in."""

    @property
    @abstractmethod
    def line(self) -> int | None:
        """Line in the text counted from 1; None in a proto."""

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """The result's shape. Raises UnreadableError where it cannot be read."""

    @property
    @abstractmethod
    def operands(self) -> tuple[Instruction, ...]:
        """The operands in order. Raises UnreadableError when one is not defined in the computation."""

    @property
    @abstractmethod
    def operand_names(self) -> tuple[str, ...]:
        """The names of the operands in order, defined or not."""

    @abstractmethod
    def operand_shapes(self) -> tuple[Shape, ...]:
        """Return the shapes of the operands, as stated beside them or as defined. Raises UnreadableError."""

    @property
    @abstractmethod
    def is_root(self) -> bool:
        """Whether this is its computation's root."""

    @property
    @abstractmethod
    def control_predecessors(self) -> tuple[str, ...]:
        """Names of the instructions that must run before this one for other reasons than data."""

    @property
    @abstractmethod
    def channel_id(self) -> int | None:
        """The channel id; None means there is none. A text keeps 0 and negative ids, a proto cannot state them."""

    @property
    @abstractmethod
    def replica_groups(self) -> DeviceList:
        """The replica group list, the empty list where none is stated. Raises UnreadableError."""

    @property
    @abstractmethod
    def source_target_pairs(self) -> SourceTargetPairs | None:
        """The pairs of a collective-permute, None where none are stated. Raises UnreadableError."""

    @property
    @abstractmethod
    def dimensions(self) -> tuple[int, ...] | None:
        """The attribute ``dimensions``; None where it is absent."""

    @property
    @abstractmethod
    def frontend_attributes(self) -> Mapping[str, str]:
        """The frontend attributes, by key; brace blocks are kept as raw text."""

    @abstractmethod
    def flag(self, name: str) -> bool | None:
        """Return a boolean attribute (``constrain_layout``, ``is_host_transfer`` ...), None where it is absent."""

    @abstractmethod
    def raw_attribute(self, name: str) -> str | None:
        """Return another attribute as the text spells it (strings unquoted), None where it is absent.

        Known to both backends: ``async_execution_thread``, ``backend_config``, ``custom_call_target``, ``direction``
        (of a comparison), ``index`` (of a get-tuple-element), ``kind`` (of a fusion), ``literal`` (of a constant; in a
        proto of no or one dimension), ``parameter_number``, ``replica_group_ids``, ``slice``.
        """

    @property
    @abstractmethod
    def called(self) -> tuple[tuple[Role, str], ...]:
        """Roles and names of the computations this instruction calls."""

    @property
    @abstractmethod
    def op_name(self) -> str | None:
        """``op_name`` of the metadata."""

    @property
    @abstractmethod
    def source(self) -> str | None:
        """``"file:line"`` of the metadata, through the stack frame tables where the module has those."""

    @property
    @abstractmethod
    def list_key(self) -> int:
        """What orders the instruction list of a module of this format: the offset in a text, the id in a proto."""

    @abstractmethod
    def metadata_fields(self) -> Mapping[str, bytes]:
        """Return the fields of the metadata as they are written, by name, to be compared."""

    @abstractmethod
    def other_attributes(self) -> Mapping[str, bytes]:
        """Return, as they are written, the attributes of which no other member and no collective's meaning speaks.

        What names, places or wires an instruction, its sharding, its frontend attributes and its metadata are no part
        of them; ``backend_config`` is.
        """

    @property
    def excerpt(self) -> str:
        """What to show of the instruction to people."""
        return f"{self.name} = {self.opcode}"

    @property
    def use_global_device_ids(self) -> bool | None:
        """The flag with the default of its opcode; None for opcodes that never have one."""
        return bool(self.flag("use_global_device_ids")) if base_opcode(self.opcode)[0] in FLAG_CARRIERS else None

    @property
    def constrain_layout(self) -> bool:
        """Whether the layouts of this collective must be kept."""
        return bool(self.flag("constrain_layout"))

    def __repr__(self) -> str:
        """Return a short form for people."""
        return f"<{self.opcode} {self.name}>"


class Computation(ABC):
    """One computation of a module."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """The name without ``%``; empty for loose instructions that stand in no computation."""

    @property
    @abstractmethod
    def is_entry(self) -> bool:
        """Whether it is the module's entry."""

    @property
    @abstractmethod
    def module(self) -> Module:
        """The module it belongs to."""

    @property
    @abstractmethod
    def instructions(self) -> Sequence[Instruction]:
        """All instructions in list order (a text: as written; a proto: by id)."""

    @property
    @abstractmethod
    def root(self) -> Instruction:
        """The root instruction: the one marked so, else the last."""

    @abstractmethod
    def instruction(self, name: str) -> Instruction | None:
        """Return the instruction of that name, None if there is none."""

    @abstractmethod
    def communication(self) -> Iterable[Site | Instruction]:
        """Return what may communicate, in row order (schedule order where there is one).

        A plain collective comes as a :class:`~commlens.hlo.signature.Site`, already read. What must be looked into
        (asynchronous wrappers, custom calls) or could not be read comes as an instruction.
        """

    def graph(self) -> Graph:
        """Return who uses whom, by positions in :attr:`instructions`.

        Raises:
            UnreadableError: an instruction cannot be taken apart.
        """
        return graph_of(self.instructions)

    def post_order(self) -> list[Instruction]:
        """Return the instructions as XLA's ``MakeInstructionPostOrder`` lists them: operands before users.

        Source: xla/hlo/ir/hlo_computation.cc. Takes time in proportion to the computation.
        """
        instructions, order = self.instructions, self.graph().post_order()
        return [instructions[position] for position in order]

    def __repr__(self) -> str:
        """Return a short form for people."""
        return f"<computation {self.name}>"


class Module(ABC):
    """One HLO module, from text or proto.

    Attributes:
        name: the module's name.
        format: ``"text"`` or ``"proto"``.
        path: where it came from, for messages and rows; ``"<text>"`` where there is no file.
        replica_count: replicas the module is compiled for; None where nobody says.
        num_partitions: partitions likewise.
    """

    name: str
    format: Format
    path: str
    replica_count: int | None
    num_partitions: int | None

    @property
    @abstractmethod
    def computations(self) -> Sequence[Computation]:
        """All computations in file order."""

    @property
    @abstractmethod
    def entry(self) -> Computation | None:
        """The entry computation; None where the text was cut before it."""

    @abstractmethod
    def computation(self, name: str) -> Computation | None:
        """Return the computation of that name, None if there is none."""

    @property
    def overridden_attributes(self) -> Mapping[Instruction, Mapping[str, str]]:
        """Frontend attributes, by instruction, that XLA puts in the place of its own when it reads the module."""
        return {}

    def communication(self) -> Iterator[tuple[Computation, Iterable[Site | Instruction]]]:
        """Yield the computations in which something may communicate, in file order, with what that is."""
        for computation in self.computations:
            yield computation, computation.communication()

    @abstractmethod
    def callers(self, names: Collection[str]) -> list[Call]:
        """Return every call of the named computations, in file order."""

    @property
    @abstractmethod
    def frontend_attributes(self) -> Mapping[str, str]:
        """The module's own frontend attributes."""

    @property
    def is_cut(self) -> bool:
        """Whether the source ends inside the entry computation, so that calls of others may be missing."""
        return False

    @property
    @abstractmethod
    def structure_faults(self) -> Sequence[Unread]:
        """What could not be read of the module's structure: cut or unclosed text, wild bytes."""

    @abstractmethod
    def instructions_of(self, opcodes: Collection[str]) -> Iterator[Instruction]:
        """Yield the instructions that have one of these opcodes, as spelled: in file order, then in list order."""

    @abstractmethod
    def fresh_names(self, base: str) -> Iterator[str]:
        """Yield names ``base.N``, with N rising, that no instruction of the module has."""

    @abstractmethod
    def edited(self, edits: Iterable[Edit]) -> Module:
        """Return the module with edits made; this one stays as it is.

        Args:
            edits: what to change, about instructions of this module. One instruction may be edited several times, but
                not the same part of it.

        Returns:
            A new module of the same format; this one where the edits change nothing.

        Raises:
            EditError: two edits contradict each other, or one cannot be made.
        """

    @abstractmethod
    def to_bytes(self) -> bytes:
        """Return the module's source: the identical bytes where nothing was edited."""

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the module to a file, atomically: a failed write leaves an older file untouched."""
        write_atomically(Path(path), self.to_bytes())

    @property
    def mesh(self) -> Mesh | None:
        """The mesh that the module's header names (``xla.sdy.meshes``), None unless it is the only one there."""
        from commlens.hlo.header_mesh import only_header_mesh

        return only_header_mesh(self.frontend_attributes)

    @property
    def unread(self) -> tuple[Unread, ...]:
        """Everything that may communicate and could not be read, in file order."""
        from commlens.hlo.discovery import discover

        return discover(self).unread

    def instruction(self, name: str) -> Instruction:
        """Return the instruction of a name (``%`` may stand before it).

        Raises:
            KeyError: no computation has one. Where several have, the entry's comes first, then file order.
        """
        wanted = name.removeprefix("%")
        entry = self.entry
        first = [] if entry is None else [entry]
        for computation in [*first, *self.computations]:
            found = computation.instruction(wanted)
            if found is not None:
                return found
        raise KeyError(name)

    def __repr__(self) -> str:
        """Return a short form for people."""
        return f"<{self.format} module {self.name}>"
