"""Everything that follows from a collective's signature, worked out once for all rows that share it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from commlens.analysis.axis_names import axes_along, axes_key
from commlens.analysis.limits import id_limit
from commlens.analysis.meshes import mesh_as_json
from commlens.analysis.participation import participation_of
from commlens.analysis.replica_groups import ReplicaGroups
from commlens.analysis.wire import NEEDS_GROUP_SIZE, Number, largest, point_to_point_bytes, ring_bytes, shown
from commlens.topology import MeshAxesReplicaGroupList

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from commlens.analysis.axis_names import AxesKey
    from commlens.analysis.participation import Counts, Participation
    from commlens.hlo import Shape, Signature
    from commlens.topology import CollectiveOpGroupMode, Mesh, SourceTargetPairs

Wire: TypeAlias = Number | list[Number | None] | None
"""Bytes received per device: one figure, one per group where sizes differ, None where it is not known."""

_HAS_CONSTRAIN_LAYOUT: Final = frozenset({"all-gather", "all-reduce", "reduce-scatter", "all-to-all"})


class Figures:
    """A signature and what follows from it on one module and mesh. Compared by identity.

    Attributes:
        signature: the collective.
        participation: who takes part.
        axes: the axes it runs along, as rows spell them; None where they are not known.
        axes_key: under which axes totals count it.
        own_mesh: the mesh that ``axes`` are named on where the module has none.
        operand_bytes: bytes of a device's operands, tokens left out; None where a dimension has no bound.
        result_bytes: bytes of a device's results likewise.
        wire: exact bytes that a device receives: one figure, or one per group where sizes differ.
    """

    def __init__(self, signature: Signature, named: NamedParticipation) -> None:
        self.signature = signature
        self.participation = named.participation
        self.axes = named.axes
        self.axes_key = named.key
        self.own_mesh = named.own_mesh
        self.operand_bytes, self.result_bytes = payload_bytes(signature)
        self.wire = self._wire()

    def _wire(self) -> Fraction | tuple[Fraction | None, ...] | None:
        opcode = self.signature.opcode
        if opcode not in NEEDS_GROUP_SIZE:
            return self._point_to_point()
        groups = self.participation.groups
        if groups is None:
            return None
        size = groups.num_devices_per_group
        if size is not None:
            return self._ring(size)
        sizes: list[int] = groups.group_sizes().tolist()
        figure_of = {size: self._ring(size) for size in set(sizes)}
        return tuple(figure_of[size] for size in sizes)

    def _ring(self, size: int) -> Fraction | None:
        return ring_bytes(self.signature.opcode, size, operand_bytes=self.operand_bytes, result_bytes=self.result_bytes)

    def _point_to_point(self) -> Fraction | None:
        signature = self.signature
        if signature.opcode == "ragged-all-to-all":
            return None
        return point_to_point_bytes(
            signature.opcode,
            operand_bytes=self.operand_bytes,
            result_bytes=self.result_bytes,
            all_self_pairs=signature.pairs is not None and _all_self_pairs(signature.pairs),
        )

    @property
    def mode(self) -> CollectiveOpGroupMode | None:
        """The group mode; None where the flags contradict each other."""
        return self.participation.mode

    @property
    def largest_wire(self) -> Fraction | None:
        """Exact bytes that a device of the largest group receives."""
        return largest(self.wire) if isinstance(self.wire, tuple) else self.wire

    @cached_property
    def wire_bytes_per_device(self) -> Wire:
        """``wire`` as rows show it."""
        if isinstance(self.wire, tuple):
            return [None if figure is None else shown(figure) for figure in self.wire]
        return None if self.wire is None else shown(self.wire)

    @property
    def constrain_layout(self) -> bool | None:
        """Whether layouts must be kept; None for opcodes that cannot say so."""
        return self.signature.constrain_layout if self.signature.opcode in _HAS_CONSTRAIN_LAYOUT else None

    @cached_property
    def operand_shapes(self) -> tuple[str, ...]:
        """Spellings of the operands' shapes."""
        return tuple(map(str, self.signature.operand_shapes))

    @cached_property
    def result_shapes(self) -> tuple[str, ...]:
        """Spellings of the results' shapes."""
        return tuple(map(str, self.signature.result_shapes))

    def replica_groups(self, *, full: bool = False) -> ReplicaGroups | None:
        """Return the replica group list as the module spells it; None for opcodes without one."""
        groups = self.signature.groups
        return None if groups is None else ReplicaGroups.of(groups, id_limit(full=full))

    def source_target_pairs(self) -> list[list[int]] | None:
        """Return the pairs as the module spells them; None where there are none."""
        return None if self.signature.pairs is None else self.signature.pairs.groups()

    def participants(self, *, full: bool = False) -> list[list[int]] | None:
        """Return the groups or pairs of global ids; None where they cannot be told or are too many to list."""
        return self.participation.listed(id_limit(full=full))

    @cached_property
    def _json(self) -> dict[bool, dict[str, object]]:
        return {}

    def as_json(self, *, full: bool = False) -> dict[str, object]:
        """Return the keys of a row that follow from the signature, as JSON values; made once, to be read only."""
        if full not in self._json:
            self._json[full] = self._as_json(full=full)
        return self._json[full]

    def _as_json(self, *, full: bool) -> dict[str, object]:
        signature = self.signature
        groups = self.replica_groups(full=full)
        attributes = dict(signature.frontend_attributes)
        return {
            "opcode": signature.opcode,
            "async": signature.is_async,
            "operand_shapes": list(self.operand_shapes),
            "result_shapes": list(self.result_shapes),
            "operand_bytes": self.operand_bytes,
            "result_bytes": self.result_bytes,
            "wire_bytes_per_device": self.wire_bytes_per_device,
            "use_global_device_ids": signature.use_global_device_ids,
            "constrain_layout": self.constrain_layout,
            "dimensions": None if signature.dimensions is None else list(signature.dimensions),
            "group_mode": None if self.mode is None else str(self.mode),
            "replica_groups": None if groups is None else dict(groups),
            "source_target_pairs": self.source_target_pairs(),
            "participants": self.participants(full=full),
            "axes": None if self.axes is None else list(self.axes),
            "ids": self.participation.ids,
            "mesh": None if self.own_mesh is None else mesh_as_json(self.own_mesh),
            "via": signature.via,
            "token_operands": list(signature.token_operands),
            "host_transfer": signature.is_host_transfer,
            "frontend_attributes": attributes,
            "collective_type": attributes.get("collective_type"),
            "stream_id": attributes.get("stream_id"),
        }


@dataclass(frozen=True, slots=True)
class NamedParticipation:
    """Who takes part, and along which axes: the part of figures that shapes do not touch."""

    participation: Participation
    axes: tuple[str, ...] | None
    key: AxesKey
    own_mesh: Mesh | None


@dataclass(frozen=True, slots=True)
class FiguresContext:
    """What figures depend on beside the signature, and those made so far: a signature is worked out once.

    Attributes:
        counts: the module's replicas and partitions; None where nobody states them.
        mesh: the module's mesh; None where there is none.
    """

    counts: Counts | None
    mesh: Mesh | None
    _figures: dict[Signature, Figures] = field(default_factory=dict["Signature", "Figures"], init=False, repr=False)
    _named: dict[tuple[object, ...], NamedParticipation] = field(
        default_factory=dict[tuple[object, ...], "NamedParticipation"], init=False, repr=False
    )

    def figures_of(self, signature: Signature) -> Figures:
        """Return the figures of a signature: the same object each time it is asked for."""
        figures = self._figures.get(signature)
        if figures is None:
            figures = self._figures[signature] = Figures(signature, self._named_of(signature))
        return figures

    def _named_of(self, signature: Signature) -> NamedParticipation:
        """Share the answer among signatures whose groups are one object: ids stay valid, the signatures keep them."""
        key = (
            id(signature.groups),
            id(signature.pairs),
            signature.has_channel,
            signature.use_global_device_ids,
            signature.is_host_transfer,
        )
        named = self._named.get(key)
        if named is None:
            named = self._named[key] = self._name(signature)
        return named

    def _name(self, signature: Signature) -> NamedParticipation:
        participation = participation_of(signature, self.counts)
        groups = signature.groups
        own = groups.mesh if self.mesh is None and isinstance(groups, MeshAxesReplicaGroupList) else None
        mesh = self.mesh or own
        refs = None if mesh is None else axes_along(participation, mesh)
        labels = None if refs is None else tuple(ref.label for ref in refs)
        return NamedParticipation(participation, labels, axes_key(refs, self.mesh), own)


def payload_bytes(signature: Signature) -> tuple[int | None, int | None]:
    """Return the bytes of a device's operands and of its results, without the tokens among them.

    A token operand has its own result where operands and results go in pairs, and that counts nothing either.
    """
    operands, results = signature.operand_shapes, signature.result_shapes
    tokens = frozenset(signature.token_operands)
    tokens_out = tokens if len(operands) == len(results) else frozenset[int]()
    return _sum_bytes(operands, tokens), _sum_bytes(results, tokens_out)


def _all_self_pairs(pairs: SourceTargetPairs) -> bool:
    sources, targets = pairs.to_array().T
    return bool((sources == targets).all())


def _sum_bytes(shapes: Sequence[Shape], left_out: frozenset[int]) -> int | None:
    total = 0
    for position, shape in enumerate(shapes):
        if position not in left_out:
            size = shape.num_bytes
            if size is None:
                return None
            total += size
    return total
