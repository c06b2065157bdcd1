"""``commlens neff``."""

from __future__ import annotations

import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

import click

from commlens.cli.inputs import STANDARD_INPUT, standard_input
from commlens.cli.messages import warn
from commlens.cli.options import count_options, output_options, read_bytes
from commlens.cli.progress import Progress
from commlens.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commlens.cli.output import Output
    from commlens.neuron import CCSource, CCSummary

READINGS: Final = ("documented", "total")
_LARGEST_LNC: Final = 64
_KINDS: Final = MappingProxyType({"neff": "a NEFF", "def.json": "a def.json", "module": "a module"})


@click.command("neff", short_help="Show the groups of workers that a Neuron program needs.")
@click.argument("file", metavar="FILE")
@click.option(
    "--cores-per-lnc",
    type=click.IntRange(1, _LARGEST_LNC),
    metavar="N",
    help="Physical cores per rank, whatever the NEFF says; lists the cores of every rank.",
)
@click.option(
    "--reading",
    type=click.Choice(READINGS),
    default="documented",
    show_default=True,
    help="What counts as the workers of a topology: its largest group, as documented, or all its groups.",
)
@click.option("--validate-hash", is_flag=True, help="Refuse a NEFF whose archive differs from the hash in its header.")
@click.option("--max-bytes", callback=read_bytes, metavar="BYTES", help="Largest content to read. [default: 8GiB]")
@count_options
@output_options
def command(
    *,
    file: str,
    cores_per_lnc: int | None,
    reading: Literal["documented", "total"],
    validate_hash: bool,
    max_bytes: int | None,
    replicas: int | None,
    partitions: int | None,
    output: Output,
) -> int:
    """Show the groups of workers that a Neuron program needs, and how many workers that makes.

    FILE is a .neff, a def.json, a module in any form, or - for standard input; what it holds is found out from its
    content. A folder is a Neuron compile cache, whose entries are listed with what is wrong with them.
    """
    if _is_folder(file):
        given = (cores_per_lnc, max_bytes, replicas, partitions, validate_hash or None, reading != READINGS[0] or None)
        if any(each is not None for each in given):
            msg = f"{file} is a folder, a compile cache: of the options only --format and -o go with it"
            raise click.UsageError(msg)
        return _show_cache(file, output)
    if cores_per_lnc is not None and output.form == "csv":
        msg = "expected --format table, json or markdown with --cores-per-lnc, for the CSV form lists no ranks"
        raise click.UsageError(msg, click.get_current_context())
    from commlens.hlo import MAX_BYTES
    from commlens.neuron import read_cc_source, summarise
    from commlens.views import CCInfoView

    source = read_cc_source(
        file,
        stdin=standard_input() if file == STANDARD_INPUT else None,
        max_bytes=MAX_BYTES if max_bytes is None else max_bytes,
        replicas=replicas,
        partitions=partitions,
        validate_hash=validate_hash,
    )
    about = {
        "a module": {"--replicas": replicas, "--partitions": partitions},
        "a NEFF": {"--validate-hash": validate_hash},
    }
    _refuse_idle(source, about)
    summary = summarise(source, reading=reading, cores_per_lnc=cores_per_lnc)
    warn(f"{file}: {note}" for note in source.info.notes)
    _refuse(summary)
    output.show(CCInfoView(summary))
    return 0


def _refuse_idle(source: CCSource, options: Mapping[str, Mapping[str, object]]) -> None:
    """Refuse options that are about another kind of input.

    Raises:
        InputError: there are some; ``options`` holds them by the kind that they are about.
    """
    kind = _KINDS[source.kind]
    for about, values in options.items():
        given = [name for name, value in values.items() if value]
        if given and kind != about:
            is_of = "is" if len(given) == 1 else "are"
            reason = f"expected {about} with {', '.join(given)}, which {is_of} about {about}; found {kind}"
            raise InputError(reason, path=source.path)


def _refuse(summary: CCSummary) -> None:
    """Refuse what the reading refuses that was asked for, and say what the other one gives.

    Raises:
        InputError: it has no world size.
    """
    if summary.world_size is not None:
        return
    if summary.reading == "documented":
        reasons, other, number = summary.refusals, "total", summary.world_size_total
    else:
        reasons, other, number = summary.refusals_total, "documented", summary.world_size_documented
    least = "" if summary.complete else "at least "
    reason = f"{'; '.join(reasons)} (--reading {other} gives {'none either' if number is None else f'{least}{number}'})"
    raise InputError(reason, path=summary.path)


def _show_cache(folder: str, output: Output) -> int:
    from commlens.neuron import read_compile_cache
    from commlens.views import CompileCacheView

    with Progress(sys.stderr, 1) as progress:
        progress.begin(folder)
        cache = read_compile_cache(folder)
        progress.end()
    output.show(CompileCacheView(cache))
    return 0


def _is_folder(path: str) -> bool:
    try:
        return path not in ("", STANDARD_INPUT) and Path(path).is_dir()
    except (OSError, ValueError):
        return False  # reading it as a file says what is wrong
