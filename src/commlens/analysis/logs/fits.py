"""Which rows of a module fit what a message says of devices: asked once for all rows over the same groups."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from commlens.analysis.logs.fitting import Fitting, said_of_devices

if TYPE_CHECKING:
    from commlens.analysis.logs.fitting import Fit
    from commlens.analysis.logs.indexing import Alike, Index, Join
    from commlens.analysis.logs.said import Said


@dataclass(frozen=True)
class Fits:
    """The answers of one module to one set of devices.

    Attributes:
        fitting: what fits the devices.
        index: the rows of the module.
        asked: the joins that can fit; None where the message says nothing of devices, so that all do.
    """

    fitting: Fitting
    index: Index
    asked: list[Join] | None
    _known: dict[Join, Fit | None] = field(default_factory=dict["Join", "Fit | None"], repr=False)

    @classmethod
    def of(cls, said: Said, index: Index, num_devices: int | None, limit: int) -> Fits:
        """Ask the rows of a module.

        Args:
            said: the message.
            index: the rows.
            num_devices: devices of the module; None where nobody states them.
            limit: most ids that an answer lists.
        """
        fitting = Fitting(said, num_devices, limit)
        if said.devices is not None:
            return cls(fitting, index, index.joins_with(said.devices, num_devices))
        return cls(fitting, index, index.joins if said_of_devices(said) else None)

    def of_row(self, position: int) -> Fit | None:
        """Return how the row at a position fits; None where it does not."""
        return self._of(self.index.join_of[position])

    def _of(self, join: Join) -> Fit | None:
        if join not in self._known:
            self._known[join] = self.fitting.fit(join.figures)
        return self._known[join]

    @cached_property
    def _joins(self) -> list[Join]:
        return [join for join in dict.fromkeys(self.asked or ()) if self._of(join) is not None]

    def alike(self, opcode: str | None, *, has_channel: bool | None) -> list[Alike]:
        """Return the rows that fit; to be asked for only where the message says something of devices.

        Args:
            opcode: their operation; None: any.
            has_channel: whether they have a channel; None: whether or not.
        """
        return [
            each
            for join in self._joins
            for each in self.index.alike_of[join]
            if opcode in (None, each.signature.opcode) and has_channel in (None, each.signature.has_channel)
        ]
