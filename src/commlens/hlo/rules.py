"""What a rule is: something that a module is held against, and what it finds there.

Two areas have rules, the analysis of stock XLA and the part about Neuron, and neither knows the other; so what a rule
is made of stands here. Nothing registers itself: the rules of an area are a tuple, and whoever runs rules joins tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self, TypeAlias, TypeVar, cast

from commlens.errors import CommlensError
from commlens.hlo.discovery import discover
from commlens.hlo.formatting import shortened
from commlens.hlo.model import Instruction, UnreadableError
from commlens.hlo.signature import Site

if TYPE_CHECKING:
    from collections.abc import Iterable

    from commlens.hlo.discovery import Discovery
    from commlens.hlo.model import Module
    from commlens.topology import DeviceList, Mesh

Severity: TypeAlias = Literal["error", "warning", "note"]
"""How bad a finding is: an error cannot work, a warning should not be, a note is good to know."""

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
"""The severities, the worst first."""

Target: TypeAlias = Literal["trn1", "trn2", "trn3", "inf2", "gpu", "tpu"]
"""A kind of machine that a program is meant for."""

TARGETS: Final[tuple[Target, ...]] = ("trn1", "trn2", "trn3", "inf2", "gpu", "tpu")
"""The kinds of machine that can be named."""

MOST_LISTED: Final = 1 << 20
"""Most ids of a list that a rule looks at one by one, where the module does not write them out itself."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a program is to run on, as far as somebody says.

    Attributes:
        target: the kind of machine.
        lnc: physical cores that make one logical core of a Neuron device.
        ranks_per_node: devices of the program on one node.
    """

    target: Target | None = None
    lnc: int | None = None
    ranks_per_node: int | None = None


class Place(NamedTuple):
    """Where an instruction stands.

    Attributes:
        name: its name; empty where it has none that can be read.
        computation: name of its computation.
        line: line in a text, counted from 1; None in a proto.
    """

    name: str
    computation: str
    line: int | None

    @classmethod
    def of(cls, item: Site | Instruction) -> Self:
        """Return the place of an instruction, or of something that communicates."""
        if isinstance(item, Site):
            return cls(item.name, item.computation_name, item.line)
        try:
            name = item.name
        except UnreadableError:
            name = ""
        return cls(name, item.computation.name, item.line)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule found.

    Attributes:
        message: a full sentence: what was expected, what was found, what would be right. It states no lines, which
            other changes to a module move.
        places: the instructions that it is about, the first of them the one to show; none where it is the module.
        severity: how bad it is; None for as bad as the rule says.
    """

    message: str
    places: tuple[Place, ...] = ()
    severity: Severity | None = None

    @classmethod
    def about(cls, message: str, *items: Site | Instruction, severity: Severity | None = None) -> Self:
        """Make a finding about some instructions."""
        return cls(message, tuple(map(Place.of, items)), severity)


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A module that is looked at by rules, with what they need of it.

    Attributes:
        module: the module.
        mesh: the mesh that somebody named from outside; None: the module's own is taken.
        deployment: what it is to run on.
        found: everything in it that communicates, what could not be read, and the call graph.
    """

    module: Module
    mesh: Mesh | None
    deployment: Deployment
    found: Discovery
    _answers: dict[object, object] = field(default_factory=dict[object, object], init=False, repr=False)

    @classmethod
    def of(cls, module: Module, mesh: Mesh | None = None, deployment: Deployment | None = None) -> Subject:
        """Prepare a module."""
        return cls(module, mesh, Deployment() if deployment is None else deployment, discover(module))

    @property
    def sites(self) -> tuple[Site, ...]:
        """Everything that communicates, in row order."""
        return self.found.sites

    @property
    def num_devices(self) -> int | None:
        """Devices that the program runs on: replicas times partitions; None where nobody states them."""
        replicas, partitions = self.module.replica_count, self.module.num_partitions
        return None if replicas is None or partitions is None else replicas * partitions

    def ask(self, question: Callable[[Subject], Answer]) -> Answer:
        """Return the answer to a question about this module; several rules may ask, it is worked out once.

        Args:
            question: a function of the module, not a new one each time.
        """
        if question not in self._answers:
            self._answers[question] = question(self)
        return cast("Answer", self._answers[question])


@dataclass(frozen=True, slots=True)
class Example:
    """A small module that shows what a rule says.

    Attributes:
        text: the module, as HLO text.
        deployment: what it is to run on, where the rule asks for that.
    """

    text: str
    deployment: Deployment = Deployment()


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. It is data: running it is a call of :attr:`find`.

    Attributes:
        id: what it is called, e.g. ``"groups-uneven"``.
        severity: how bad its findings are, where a finding does not say otherwise.
        title: what is wrong, in a few words.
        documentation: one paragraph: when it fires, why that is wrong, what to do. Plain text.
        source: where the knowledge comes from.
        bad: a module in which it finds something.
        good: the same module as it should be, in which it finds nothing.
        find: yields everything that it finds in a module, in time in proportion to the module's size.
        targets: the kinds of machine that it is about; None: all, also where none is named.
    """

    id: str
    severity: Severity
    title: str
    documentation: str
    source: str
    bad: Example
    good: Example
    find: Callable[[Subject], Iterator[Finding]]
    targets: frozenset[Target] | None = None

    def applies_to(self, deployment: Deployment) -> bool:
        """Whether the rule has anything to say of a program that runs there."""
        return self.targets is None or deployment.target in self.targets


def find_all(subject: Subject, rules: Iterable[Rule]) -> Iterator[tuple[Rule, Finding]]:
    """Yield everything that some rules find in a module, rule by rule; those for other machines are passed over.

    A rule that cannot go on says so in a note of its own, and the others are not touched.
    """
    for rule in rules:
        if rule.applies_to(subject.deployment):
            try:
                yield from ((rule, finding) for finding in rule.find(subject))
            except CommlensError as error:
                yield rule, Finding(f"not checked, or not to the end: {error}", severity="note")


def check_listable(groups: DeviceList) -> None:
    """Insist that a rule may look at the ids of a list one by one.

    Raises:
        CommlensError: they are more than :data:`MOST_LISTED`, and the module does not write them out.

    Example:
        >>> from commlens.topology import IotaReplicaGroupList
        >>> check_listable(IotaReplicaGroupList(2, 1 << 20))
        Traceback (most recent call last):
        ...
        commlens.errors.CommlensError: the ids of [2,1048576]<=[2097152] are more than the 1,048,576 that are listed
    """
    if not groups.is_written_out and groups.num_devices > MOST_LISTED:
        msg = f"the ids of {shortened(groups)} are more than the {MOST_LISTED:,} that are listed"
        raise CommlensError(msg)
