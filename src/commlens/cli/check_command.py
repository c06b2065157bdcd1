"""``commlens check``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click

from commlens.cli.check_settings import Settings, find_settings, read_settings
from commlens.cli.messages import warn
from commlens.cli.options import input_options, mesh_option, output_options
from commlens.cli.output import FORMATS, Output
from commlens.errors import CommlensError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commlens.analysis import Judged, Problem
    from commlens.cli.inputs import Inputs
    from commlens.hlo import Deployment, Module, Rule, Target
    from commlens.topology import Mesh
    from commlens.views import View

TARGETS: Final[tuple[Target, ...]] = ("trn1", "trn2", "trn3", "inf2", "gpu", "tpu")

_UNREAD: Final = "unread"
"""The rule that runs whatever rules are asked for."""

_COUNT: Final = click.IntRange(min=1)


def _split(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Take apart what is given with commas between; where there is nothing between them, that is what is given."""
    listed = ([part.strip() for part in value.split(",") if part.strip()] for value in values)
    return tuple(part for parts in listed for part in parts or [""])


@click.command("check", short_help="Find everything that is wrong with a module's communication.")
@partial(input_options, required=False)
@mesh_option
@click.option("--target", type=click.Choice(TARGETS), help="Kind of machine, for the rules that are about one alone.")
@click.option("--lnc", type=_COUNT, metavar="N", help="Physical cores to a logical core of a Neuron device.")
@click.option("--local-world-size", type=_COUNT, metavar="L", help="Devices of the program on one node.")
@click.option(
    "--select",
    multiple=True,
    callback=_split,
    metavar="RULES",
    help="Run these rules alone: ids, beginnings such as stream, or patterns such as group*, with commas between.",
)
@click.option("--ignore", multiple=True, callback=_split, metavar="RULES", help="Leave these rules out.")
@click.option(
    "--baseline",
    metavar="FILE",
    help="Accept the findings in this answer of an earlier run with --format json, and show new ones alone.",
)
@click.option(
    "--explain",
    metavar="RULE",
    help="Tell what a rule is about, with examples, instead of checking; names as --select.",
)
@click.option("--list-rules", is_flag=True, help="Show which rules there are, instead of checking.")
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Take settings from this file. [default: the nearest commlens.toml or pyproject.toml that has any]",
)
@click.option("--isolated", is_flag=True, help="Take no settings from any file.")
@partial(
    output_options,
    forms=(*FORMATS, "sarif", "github"),
    told="How to show the answer; sarif and github are for code scanning and GitHub Actions.",
)
def command(
    *,
    inputs: Inputs,
    mesh: Mesh | None,
    target: Target | None,
    lnc: int | None,
    local_world_size: int | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    baseline: str | None,
    explain: str | None,
    list_rules: bool,
    config: Path | None,
    isolated: bool,
    output: Output,
) -> int:
    """Find everything that is wrong with a module's communication.

    FILE is anything that `commlens report` reads. All faults are listed. The exit code is 1 when an error or a warning
    is left, and 0 when there are notes alone. What cannot be read is named on standard error where the rule unread does
    not run.

    Settings may stand in commlens.toml under [check], or in pyproject.toml under [tool.commlens.check]: select, ignore,
    per-file-ignores, target, lnc, local-world-size, mesh, baseline. What the command line says counts instead.
    """
    if explain is not None or list_rules:
        return _tell(explain, output)
    if not inputs.paths:
        raise click.MissingParameter(ctx=click.get_current_context(), param_type="argument", param_hint="'FILE...'")
    stated = Settings() if isolated else find_settings() if config is None else read_settings(config)
    settings = stated.but(
        Settings(None, select, ignore, target=target, lnc=lnc, local_world_size=local_world_size, baseline=baseline)
    )
    _check_patterns(stated)
    return _check(inputs, settings, mesh or _mesh(settings), output)


def all_rules() -> tuple[Rule, ...]:
    """Return the rules of all areas."""
    from commlens import analysis, neuron

    return (*analysis.RULES, *neuron.RULES)


def _tell(name: str | None, output: Output) -> int:
    """Show one rule, or all of them."""
    from commlens.analysis import rules_of
    from commlens.views import RuleListView, RuleView

    if output.form not in FORMATS:
        _refuse(f"expected the format of a rule, one of {', '.join(FORMATS)}, found {output.form}")
    rules = all_rules()
    try:
        view: View = RuleListView(rules) if name is None else RuleView(rules_of(rules, name))
    except CommlensError as error:
        _refuse(str(error))
    output.show(view)
    return 0


def _check(inputs: Inputs, settings: Settings, mesh: Mesh | None, output: Output) -> int:
    """Check all modules and show what was found."""
    from commlens.analysis import check, matches, read_baseline

    deployment = _deployment(settings)
    rules = _rules(settings, deployment)
    baseline = None if settings.baseline is None else read_baseline(settings.baseline)

    def question(module: Module) -> _Answer:
        left_out = settings.ignored_in(module.path)
        kept = [rule for rule in rules if not any(matches(pattern, rule.id) for pattern in left_out)]
        asked = {rule.id for rule in kept}
        always = [rule for rule in all_rules() if rule.id in asked or rule.id == _UNREAD]
        found = check(module, always, mesh=mesh, deployment=deployment)
        return _Answer(
            module.path,
            [problem for problem in found if problem.rule.id in asked],
            [problem for problem in found if problem.rule.id == _UNREAD],
            told=_UNREAD in asked,
        )

    answers = inputs.answer(question)
    problems = [problem for each in answers.found for problem in each.problems]
    judged = None if baseline is None else baseline.judge(problems, [each.path for each in answers.found])
    left = problems if judged is None else judged.problems
    if answers.found:
        _show(left, rules, settings, answers.found, judged, output)
        warn(_warnings(answers.found))
    return answers.complain() or int(any(problem.severity != "note" for problem in left))


@dataclass(frozen=True, slots=True)
class _Answer:
    """What was found in one module.

    Attributes:
        path: its file.
        problems: the findings of the rules that were asked for.
        unread: what could not be read, whether that was asked for or not.
        told: whether it was.
    """

    path: str
    problems: list[Problem]
    unread: list[Problem]
    told: bool


def _warnings(answers: Sequence[_Answer]) -> Iterator[str]:
    """Name what could not be read where that is no finding: rules that are silent about it say nothing by that."""
    for problem in (problem for each in answers if not each.told for problem in each.unread):
        place = problem.path if problem.line is None else f"{problem.path}:{problem.line}"
        yield ": ".join([place, *problem.instructions, problem.message])


def _show(
    problems: Sequence[Problem],
    rules: Sequence[Rule],
    settings: Settings,
    answers: Sequence[_Answer],
    judged: Judged | None,
    output: Output,
) -> None:
    from commlens import __version__
    from commlens.views import CheckView, github_commands, sarif_log

    match output.form:
        case "sarif":
            output.emit(sarif_log(problems, rules, __version__))
        case "github":
            output.emit(github_commands(problems))
        case _:
            accepted, gone = (None, 0) if judged is None else (judged.accepted, judged.gone)
            path = None if settings.path is None else str(settings.path)
            unread = sum(len(each.unread) for each in answers)
            told = all(each.told or not each.unread for each in answers)
            names = [rule.id for rule in rules]
            output.show(CheckView(problems, len(answers), names, accepted, gone, path, unread, unread_told=told))


def _deployment(settings: Settings) -> Deployment:
    from commlens.hlo import TARGETS, Deployment

    known: dict[str | None, Target | None] = {None: None, **{each: each for each in TARGETS}}
    if settings.target not in known:
        reason = f"expected target to be one of {', '.join(TARGETS)}, found {settings.target!r}"
        raise InputError(reason, path=str(settings.path))
    return Deployment(known[settings.target], settings.lnc, settings.local_world_size)


def _check_patterns(stated: Settings) -> None:
    """Insist that every pattern in a file of settings names a rule."""
    from commlens.analysis import chosen_rules
    from commlens.hlo import Deployment

    patterns = [*stated.select, *stated.ignore, *(each for _, patterns in stated.per_file_ignores for each in patterns)]
    try:
        chosen_rules(all_rules(), Deployment(), ignore=patterns)
    except CommlensError as error:
        raise InputError(str(error), path=str(stated.path)) from error


def _rules(settings: Settings, deployment: Deployment) -> tuple[Rule, ...]:
    """Return the rules to run; every pattern must name one."""
    from commlens.analysis import chosen_rules

    rules = all_rules()
    try:
        return chosen_rules(rules, deployment, select=settings.select, ignore=settings.ignore)
    except CommlensError as error:
        _refuse(str(error))


def _mesh(settings: Settings) -> Mesh | None:
    """Read the mesh of the settings."""
    from commlens.analysis import as_mesh

    try:
        return None if settings.mesh is None else as_mesh(settings.mesh)
    except InputError:
        raise
    except CommlensError as error:
        reason = f"expected mesh to be axes such as data=2,model=4 or a JSON file: {error}"
        raise InputError(reason, path=str(settings.path)) from error


def _refuse(sentence: str) -> NoReturn:
    raise click.UsageError(sentence, click.get_current_context())
