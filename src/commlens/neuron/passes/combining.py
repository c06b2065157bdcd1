"""What the three combiners share: from options to a result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from commlens.hlo import Refusals, UnreadableError, figures, pass_result
from commlens.neuron.combiner_keys import KeyReader
from commlens.neuron.passes.combined_sets import left_out, warnings_of
from commlens.neuron.passes.combiner_survey import collectives_of
from commlens.neuron.passes.combiner_work import Work
from commlens.neuron.places import listed, place_of
from commlens.neuron.replica_groups import find_tp_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from commlens.hlo import Json, Module, PassResult
    from commlens.neuron.combiner_engine import Limits
    from commlens.neuron.combiner_keys import KeyRules
    from commlens.neuron.passes.combined_sets import CombinedSet
    from commlens.neuron.passes.combiner_survey import Collectives

TpGroup: TypeAlias = Literal["auto", "off"]
"""Whether the groups of tensor parallelism are looked for, so that collectives with others are left alone."""


@dataclass(frozen=True, slots=True)
class Combiner:
    """A combiner with its options; the passes say what those are.

    Attributes:
        name: the pass's name.
        rules: what counts as a difference; the groups of tensor parallelism are added when they are known.
        limits: how large a set may become.
        tp_group: whether those groups are looked for.
        skip_while_bodies: whether bodies of while loops are passed over.
    """

    name: str
    rules: KeyRules
    limits: Limits
    tp_group: TpGroup = "off"
    skip_while_bodies: bool = False

    def run(self, module: Module, *, keep_going: bool) -> PassResult:
        """Combine what can be combined, as :meth:`commlens.hlo.Pass.run` says."""
        refusals = Refusals(module, keep_going)
        refusals.check_structure()
        found = collectives_of(module, self.rules.opcode, refusals)
        rules, disabled = self._rules_for(found, refusals)
        work = Work(found, KeyReader(rules, module), self.limits, refusals)
        sets = [] if disabled else list(work.combined(skip_while_bodies=self.skip_while_bodies))
        sets, made = work.made(sets)
        warnings = list(warnings_of(sets))
        constrained, tp_groups = work.found.constrained, work.keys.rules.tp_groups
        if disabled is not None and constrained is not None:
            warnings.append(f"nothing was combined, because {listed([constrained])} is layout-constrained")
        stats: dict[str, Json] = {
            "combined": [each.as_json() for each in sets],
            "disabled": disabled,
            "tp_group": None if tp_groups is None else str(tp_groups),
            **work.account(sets),
            "custom_calls": [place_of(each) for each in found.custom_calls],
        }
        return pass_result(
            self.name,
            refusals,
            made,
            changed=bool(sets),
            stats=stats,
            facts=_facts(work, sets, disabled),
            warnings=warnings,
        )

    def _rules_for(self, found: Collectives, refusals: Refusals) -> tuple[KeyRules, Mapping[str, Json] | None]:
        """Return the rules, completed for a module, and what disables the pass there, if something does."""
        options = {"threshold_bytes": self.limits.num_bytes, "threshold_count": self.limits.count}
        for option, value in options.items():
            if value <= 0:
                return self.rules, {"why": f"{option} is {value}"}
        if found.constrained is not None:
            why = f"a layout-constrained {self.rules.opcode} disables the pass for the whole module"
            return self.rules, {"why": why, **place_of(found.constrained)}
        if self.tp_group == "off" or not found.sites:
            return self.rules, None
        try:
            return replace(self.rules, tp_groups=find_tp_groups(found.module)), None
        except UnreadableError as error:
            refusals.refuse_module(f"the groups of tensor parallelism cannot be looked for: {error}")
            return self.rules, {"why": "the groups of tensor parallelism cannot be looked for, see left_alone"}


def _facts(work: Work, sets: Sequence[CombinedSet], disabled: Mapping[str, Json] | None) -> Iterator[str]:
    """Say in a few words what became of how many."""
    counts, tp_groups = work.counts(sets), work.keys.rules.tp_groups
    if disabled is not None:
        yield f"disabled: {disabled['why']}"
    yield from figures(tp_group=None if tp_groups is None else str(tp_groups), candidates=counts["candidates"])
    if sets:
        yield f"combined {counts['combined']} into {counts['sets']}"
    yield from figures(excluded=counts["excluded"], alone=counts["alone"])
    yield from left_out(sets)
