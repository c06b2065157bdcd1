"""Running all rules on small modules, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commlens import analysis, neuron
from commlens.analysis import check
from commlens.hlo import Deployment, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commlens.analysis import MeshLike, Problem
    from commlens.hlo import Module, Rule, Target

ALL_RULES: tuple[Rule, ...] = (*analysis.RULES, *neuron.RULES)

ADD = """
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
"""
LARGEST = ADD.replace("add", "largest", 1).replace("add(", "maximum(")
INTEGER_ADD = ADD.replace("add {", "count {").replace("f32", "s32")
FLAG = "use_global_device_ids=true"


def module_of(*lines: str, header: str = "", before: str = "") -> Module:
    """Make a module with these lines in its entry; ``p`` (f32[8]) and ``q`` (f32[64]) and some reducers are there."""
    body = "\n".join(f"  {line}" for line in ("p = f32[8] parameter(0)", "q = f32[64] parameter(1)", *lines))
    comma = ", " if header else ""
    return load(f"HloModule m{comma}{header}\n{ADD}{LARGEST}{INTEGER_ADD}\n{before}\nENTRY e {{\n{body}\n}}\n")


def problems_in(
    module: Module,
    *,
    rules: Sequence[Rule] = ALL_RULES,
    mesh: MeshLike | None = None,
    target: Target | None = None,
    lnc: int | None = None,
    ranks_per_node: int | None = None,
) -> list[Problem]:
    """Run rules on a module."""
    return check(module, rules, mesh=mesh, deployment=Deployment(target, lnc, ranks_per_node))


def ids_of(problems: Sequence[Problem]) -> list[str]:
    """Return the ids of the rules that found something, in alphabetical order, each as often as it did."""
    return sorted(problem.rule.id for problem in problems)


def one_of(problems: Sequence[Problem], rule: str) -> Problem:
    """Return the only finding of a rule."""
    [found] = [problem for problem in problems if problem.rule.id == rule]
    return found
