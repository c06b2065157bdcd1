"""What views ask of the answers about ranks, which come from an area that views do not know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlens.analysis import LayoutMatch
    from commlens.topology import DeviceList


class Degrees(Protocol):
    """How a job is split."""

    @property
    def tp(self) -> int:
        """Tensor parallel degree."""
        ...

    @property
    def pp(self) -> int:
        """Pipeline stages."""
        ...

    @property
    def dp(self) -> int:
        """Data parallel degree."""
        ...

    @property
    def ep(self) -> int:
        """Expert parallel degree."""
        ...


class Layout(Protocol):
    """The groups of a job."""

    @property
    def world(self) -> int:
        """Ranks in all."""
        ...

    @property
    def degrees(self) -> Degrees:
        """How the job is split."""
        ...

    @property
    def logic(self) -> str:
        """Name of the rule by which ranks are laid out."""
        ...

    @property
    def meaning(self) -> str:
        """The rule in words."""
        ...

    @property
    def hardware(self) -> str:
        """The hardware."""
        ...

    @property
    def cores_per_lnc(self) -> int:
        """Physical cores to a rank."""
        ...

    @property
    def local_world_size(self) -> int:
        """Ranks on one node."""
        ...

    @property
    def groups(self) -> Mapping[str, DeviceList]:
        """Family -> its groups, all of one size."""
        ...

    @property
    def iota(self) -> Mapping[str, str | None]:
        """Family -> its groups in iota spelling, None where there is none."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What to know about this layout, in sentences."""
        ...


class Peers(Protocol):
    """Whom one rank meets in one collective."""

    @property
    def peers(self) -> Sequence[int]:
        """The other ranks."""
        ...

    @property
    def position(self) -> int | None:
        """Its place in its group; None for pairs."""
        ...

    @property
    def sends_to(self) -> Sequence[int]:
        """For pairs the ranks it sends to."""
        ...

    @property
    def receives_from(self) -> Sequence[int]:
        """For pairs the ranks it receives from."""
        ...


class CollectiveOnCores(Protocol):
    """One collective of a module."""

    @property
    def name(self) -> str:
        """The instruction's name."""
        ...

    @property
    def opcode(self) -> str:
        """The operation."""
        ...

    @property
    def unknown_because(self) -> str | None:
        """Why nobody's peers can be told; None where they can."""
        ...

    @property
    def refusal(self) -> str | None:
        """Why the simulator would not run it; None where it would."""
        ...


class Core(Protocol):
    """One physical core."""

    @property
    def core(self) -> int:
        """Its number."""
        ...

    @property
    def rank(self) -> int:
        """The rank it works for."""
        ...

    @property
    def peers(self) -> Sequence[Peers | None]:
        """Whom it meets in each collective; None where it does not take part."""
        ...


class Cores(Protocol):
    """A module on the cores of a machine."""

    @property
    def num_cores(self) -> int:
        """How many physical cores there are."""
        ...

    @property
    def collectives(self) -> Sequence[CollectiveOnCores]:
        """The collectives in row order."""
        ...

    def core(self, core: int) -> Core:
        """Return one core."""
        ...

    def cores(self) -> Iterator[Core]:
        """Yield all cores, ascending."""
        ...


@dataclass(frozen=True, slots=True)
class ModuleOnRanks:
    """A module that was compared with a layout.

    Attributes:
        path: where it came from.
        name: its name.
        matches: what each of its collectives is in the layout.
        cores: the module on the cores of a machine; None where that was not asked for.
    """

    path: str
    name: str
    matches: Sequence[LayoutMatch]
    cores: Cores | None = None
