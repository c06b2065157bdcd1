"""``commlens prove``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict, Unpack

import click

from commlens.cli.inputs import Inputs
from commlens.cli.messages import warn
from commlens.cli.options import count_options, output_options, read_bytes, read_mode
from commlens.cli.specs import placed
from commlens.errors import InputError

if TYPE_CHECKING:
    from commlens.analysis import Claim, Report
    from commlens.cli.output import Output
    from commlens.hlo import Module
    from commlens.integrations.runtime import Runtime
    from commlens.topology import CollectiveOpGroupMode

_MOST_DEVICES: Final = 1024


class Settings(TypedDict):
    """How to run what is proved; see the options of the same names."""

    max_devices: int
    max_rounds: int
    max_ulp: int
    seed: int


@click.command("prove", short_help="Run collectives on XLA and compare who takes part.")
@click.argument("files", metavar="[FILE | A B]", nargs=-1)
@click.option("--spec", metavar="SPEC", help="Prove one replica group list instead of a module.")
@count_options
@click.option("--mode", callback=read_mode, metavar="MODE", help="Group mode of SPEC, such as kFlattenedID.")
@click.option(
    "--opcode",
    metavar="OP",
    help="Operation for SPEC; for collective-permute SPEC is a list of pairs.  [default: one that shows the order]",
)
@click.option(
    "--max-devices",
    type=click.IntRange(1, _MOST_DEVICES),
    default=64,
    show_default=True,
    metavar="N",
    help="Devices to run on; larger layouts are scaled down.",
)
@click.option(
    "--max-rounds",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    metavar="N",
    help="A and B: rounds that a loop may make.",
)
@click.option(
    "--max-ulp",
    type=click.IntRange(min=0),
    default=16,
    show_default=True,
    metavar="N",
    help="A and B: units in the last place that floats may be apart; of 16 bits an eighth, of fewer one.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="A and B: which inputs to run on.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="Time that one program may take.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 8),
    default=1,
    show_default=True,
    metavar="N",
    help="Processes that share the devices and meet on this machine's loopback.",
)
@click.option("--max-bytes", callback=read_bytes, metavar="BYTES", help="Largest content to read. [default: 8GiB]")
@output_options
def command(
    *,
    files: tuple[str, ...],
    spec: str | None,
    replicas: int | None,
    partitions: int | None,
    mode: CollectiveOpGroupMode | None,
    opcode: str | None,
    timeout_s: float,
    processes: int,
    max_bytes: int | None,
    output: Output,
    **settings: Unpack[Settings],
) -> int:
    """Run collectives on XLA and compare who takes part with what commlens says.

    FILE: a tiny program for each distinct collective of a module, on devices that XLA's CPU client pretends to have.
    A B: both modules run on the same inputs, their results compared device by device. SPEC: one replica group list.
    Needs the extra commlens[jax]. Exit code 1: something differs.
    """
    _check_usage(files, spec, mode, opcode, replicas, partitions)
    from commlens.integrations.runtime import Runtime

    runtime = Runtime(timeout_s, processes)
    if spec is not None and mode is not None:
        from commlens.analysis import claim_of

        with placed("SPEC"):
            claim = claim_of(spec, mode, replicas=replicas or 1, partitions=partitions or 1, opcode=opcode)
        return _prove([claim], runtime, settings, output)
    inputs = Inputs(files, "last", max_bytes, replicas, partitions, keep_going=False)
    if len(files) == 1:
        return _prove(_claims(inputs), runtime, settings, output)
    return _compare(*_two_modules(inputs), runtime, settings, output)


def _check_usage(
    files: tuple[str, ...],
    spec: str | None,
    mode: CollectiveOpGroupMode | None,
    opcode: str | None,
    replicas: int | None,
    partitions: int | None,
) -> None:
    """Insist on one of the three forms of the command line."""
    msg = None
    if spec is None:
        if not 1 <= len(files) <= 2:
            msg = f"expected FILE, or A and B, or --spec SPEC, found {len(files)} files and no --spec"
        elif mode is not None or opcode is not None:
            msg = "expected --mode and --opcode only with --spec; a module states its own"
    elif files:
        msg = "expected files or --spec, found both"
    else:
        missing = {
            "--mode (what the ids of the groups are)": mode,
            "--replicas or --partitions (how many devices to run on)": replicas or partitions,
        }
        lacking = [name for name, value in missing.items() if value is None]
        msg = f"expected {' and '.join(lacking)} with --spec" if lacking else None
    if msg is not None:
        raise click.UsageError(msg, click.get_current_context())


def _claims(inputs: Inputs) -> list[Claim]:
    from commlens.analysis import claims_of, report

    reports = inputs.answer(report).found
    warn(_unread(reports))
    return [claim for each in reports for claim in claims_of(each)]


def _unread(reports: list[Report]) -> list[str]:
    return [
        f"{each.module.path}: {len(each.unread)} that may communicate could not be read, and nothing is proved of them"
        for each in reports
        if each.unread
    ]


def _prove(claims: list[Claim], runtime: Runtime, settings: Settings, output: Output) -> int:
    from commlens.analysis import Proofs, prove
    from commlens.views import ProofsView

    proofs = Proofs(prove(claims, runtime.run, most_devices=settings["max_devices"]), runtime.version)
    output.show(ProofsView(proofs))
    return 1 if proofs.agree is False else 0


def _two_modules(inputs: Inputs) -> tuple[Module, Module]:
    found = [_only_module(inputs, path) for path in inputs.paths]
    return found[0], found[1]


def _only_module(inputs: Inputs, path: str) -> Module:
    from dataclasses import replace

    modules = replace(inputs, paths=(path,)).answer(lambda module: module).found
    if len(modules) != 1:
        reason = f"expected one module to compare, found {len(modules)}"
        raise InputError(reason, path=path)
    return modules[0]


def _compare(first: Module, second: Module, runtime: Runtime, settings: Settings, output: Output) -> int:
    from commlens.analysis import counts_of_both
    from commlens.views import ComparisonView

    counts = counts_of_both(first, second, most_devices=settings["max_devices"], most_rounds=settings["max_rounds"])
    comparison = runtime.compare(first, second, counts, max_ulp=settings["max_ulp"], seed=settings["seed"])
    if comparison.agree is None:
        reason = "expected a finite number in some result to compare, found none on these inputs (--seed draws others)"
        raise InputError(reason, path=f"{first.path} and {second.path}")
    output.show(ComparisonView(comparison))
    return 0 if comparison.agree else 1
