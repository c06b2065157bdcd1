"""The row of one collective: the one shape in which everything above asks what a module communicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis.figures import Figures, Wire
    from commlens.analysis.replica_groups import ReplicaGroups
    from commlens.hlo import Site
    from commlens.topology import Mesh

ROW_KEYS: Final = (
    "name",
    "opcode",
    "async",
    "computation",
    "line",
    "operand_shapes",
    "result_shapes",
    "operand_bytes",
    "result_bytes",
    "wire_bytes_per_device",
    "channel_id",
    "use_global_device_ids",
    "constrain_layout",
    "dimensions",
    "group_mode",
    "replica_groups",
    "source_target_pairs",
    "participants",
    "axes",
    "ids",
    "mesh",
    "via",
    "token_operands",
    "host_transfer",
    "frontend_attributes",
    "collective_type",
    "stream_id",
    "trip_count",
    "conditional",
    "op_name",
    "source",
)
"""The keys of a row, in the order in which they are written."""


class Row:
    """One thing that communicates: what it says, who takes part, how much and how often.

    A row keeps its place in the module and shares everything else with the rows that are spelled alike. Attributes
    bear the names of the keys and are worked out when asked for; a keyword such as ``async`` is reached through
    ``row["async"]``, ``getattr`` or :attr:`is_async`. What does not apply to an opcode is None. Lists are made anew
    for each caller.

    Attributes:
        figures: everything that follows from the collective's signature; shared.
        trip_count: how often it runs in one execution of the entry computation; None where that is not known.
    """

    __slots__ = ("_conditional", "_full", "_site", "figures", "trip_count")

    def __init__(
        self, site: Site, figures: Figures, trip_count: int | None, conditional: tuple[str, ...], *, full: bool = False
    ) -> None:
        self._site = site
        self.figures = figures
        self.trip_count = trip_count
        self._conditional = conditional
        self._full = full

    @property
    def name(self) -> str:
        """Name of the instruction, of the start where there is one."""
        return self._site.name

    @property
    def opcode(self) -> str:
        """The operation in today's name, without its asynchronous half."""
        return self.figures.signature.opcode

    @property
    def is_async(self) -> bool:
        """Whether it is written as a start and a done; the key ``async``."""
        return self.figures.signature.is_async

    @property
    def computation(self) -> str:
        """Name of the computation it stands in."""
        return self._site.computation_name

    @property
    def line(self) -> int | None:
        """Line in the text, counted from 1."""
        return self._site.line

    @property
    def operand_shapes(self) -> list[str]:
        """Shapes of the operands without layouts, one per array."""
        return list(self.figures.operand_shapes)

    @property
    def result_shapes(self) -> list[str]:
        """Shapes of the results without layouts, one per array."""
        return list(self.figures.result_shapes)

    @property
    def operand_bytes(self) -> int | None:
        """Bytes of a device's operands, tokens left out."""
        return self.figures.operand_bytes

    @property
    def result_bytes(self) -> int | None:
        """Bytes of a device's results, tokens left out."""
        return self.figures.result_bytes

    @property
    def wire_bytes_per_device(self) -> Wire:
        """Bytes that each device receives on a ring; a list, one per group of the participants, where sizes differ."""
        wire = self.figures.wire_bytes_per_device
        return list(wire) if isinstance(wire, list) else wire

    @property
    def channel_id(self) -> int | None:
        """The channel."""
        return self._site.channel_id

    @property
    def use_global_device_ids(self) -> bool | None:
        """The flag with its opcode's default."""
        return self.figures.signature.use_global_device_ids

    @property
    def constrain_layout(self) -> bool | None:
        """Whether layouts must be kept."""
        return self.figures.constrain_layout

    @property
    def dimensions(self) -> list[int] | None:
        """Gather, scatter or split dimension."""
        dimensions = self.figures.signature.dimensions
        return None if dimensions is None else list(dimensions)

    @property
    def group_mode(self) -> str | None:
        """Name of the group mode such as ``"kFlattenedID"``; None where the flags contradict each other."""
        mode = self.figures.mode
        return None if mode is None else str(mode)

    @property
    def replica_groups(self) -> ReplicaGroups | None:
        """The replica group list as the module spells it."""
        return self.figures.replica_groups(full=self._full)

    @property
    def source_target_pairs(self) -> list[list[int]] | None:
        """The pairs as the module spells them."""
        return self.figures.source_target_pairs()

    @property
    def participants(self) -> list[list[int]] | None:
        """The groups of global device ids that exchange data, or the pairs of them."""
        return self.figures.participants(full=self._full)

    @property
    def axes(self) -> list[str] | None:
        """The mesh axes that vary inside a group, outermost first."""
        return None if self.figures.axes is None else list(self.figures.axes)

    @property
    def ids(self) -> str | None:
        """``"as written"`` where participants are the listed ids because nobody states the counts."""
        return self.figures.participation.ids

    @property
    def mesh(self) -> Mesh | None:
        """The row's own mesh, where the module has none and the groups name one."""
        return self.figures.own_mesh

    @property
    def via(self) -> str | None:
        """In what form it was found, where its own opcode does not say it."""
        return self.figures.signature.via

    @property
    def token_operands(self) -> list[int]:
        """Positions of operands that only order things."""
        return list(self.figures.signature.token_operands)

    @property
    def host_transfer(self) -> bool | None:
        """Whether the peer of a send or recv is the host."""
        return self.figures.signature.is_host_transfer

    @property
    def frontend_attributes(self) -> dict[str, str]:
        """The frontend attributes."""
        return dict(self.figures.signature.frontend_attributes)

    @property
    def collective_type(self) -> str | None:
        """The frontend attribute of that name."""
        return self.figures.signature.frontend_attributes.get("collective_type")

    @property
    def stream_id(self) -> str | None:
        """The frontend attribute of that name."""
        return self.figures.signature.frontend_attributes.get("stream_id")

    @property
    def conditional(self) -> list[str]:
        """Names of the conditionals in whose branches it stands."""
        return list(self._conditional)

    @property
    def op_name(self) -> str | None:
        """``op_name`` of the metadata."""
        return self._site.op_name

    @property
    def source(self) -> str | None:
        """``"file:line"`` of the metadata."""
        return self._site.source

    def __getitem__(self, key: str) -> object:
        """Return the value of a key of :data:`ROW_KEYS`.

        Raises:
            KeyError: a row has no such key.
        """
        if key not in ROW_KEYS:
            raise KeyError(key)
        return getattr(self, key)

    def __getattr__(self, name: str) -> object:
        """Return the value of the one key that Python's grammar keeps from being an attribute."""
        if name == "async":
            return self.is_async
        msg = f"a row has no attribute {name!r}; it has {', '.join(ROW_KEYS)}"
        raise AttributeError(msg)

    def keys(self) -> Iterator[str]:
        """Yield the keys in order, so that ``dict(row)`` works."""
        return iter(ROW_KEYS)

    def as_dict(self, *, full: bool | None = None) -> dict[str, object]:
        """Return the row in its JSON form.

        Args:
            full: whether ids are listed up to the high limit; None: as the report was asked.

        Returns:
            The keys in order with JSON values. Values that rows share are shared between the answers as well: treat
            them as read-only.
        """
        full = self._full if full is None else full
        shared = self.figures.as_json(full=full)
        site = self._site
        own: dict[str, object] = {
            "name": site.name,
            "computation": site.computation_name,
            "line": site.line,
            "channel_id": site.channel_id,
            "trip_count": self.trip_count,
            "conditional": list(self._conditional),
            "op_name": site.op_name,
            "source": site.source,
        }
        return {key: own[key] if key in own else shared[key] for key in ROW_KEYS}

    def __repr__(self) -> str:
        """Return a short form for people."""
        return f"<row {self.opcode} {self.name}>"
