"""Options that several commands share, and the types of their values."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from commlens.cli.inputs import STAGES, Inputs, Stage
from commlens.cli.output import FORMATS, Output
from commlens.errors import CommlensError, InputError, excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commlens.topology import CollectiveOpGroupMode, Mesh

_Command = TypeVar("_Command", bound="Callable[..., int]")

STANDARD_OUTPUT: Final = Path("-")

_BYTES: Final = re.compile(r"([0-9]{1,18}) ?(?:([KMGT])(?:i?B)?|B)?", re.IGNORECASE)
_POWERS: Final = ("", "K", "M", "G", "T")


class AllMissing(click.Command):
    """A command that names everything that is missing at once, where several options or arguments are required."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line.

        Raises:
            click.UsageError: something is missing, or wrong in another way.
        """
        given = list(args)  # reading them uses them up
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            missing = self._missing(ctx, given)
            if len(missing) < 2:
                raise
            *first, last = [f"{each.param_type_name} {each.get_error_hint(ctx)}" for each in missing]
            msg = f"Missing {', '.join(first)} and {last}"
            raise click.UsageError(msg, ctx) from error

    def _missing(self, ctx: click.Context, args: list[str]) -> list[click.Parameter]:
        values, _, _ = self.make_parser(ctx).parse_args(args=args)
        return [
            each for each in self.params if each.required and each.value_is_missing(each.consume_value(ctx, values)[0])
        ]


def read_mesh(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Mesh | None:
    """Read ``--mesh``; faults of a file name their place in it, others are faults of the command line."""
    if value is None:
        return None
    from commlens.analysis import as_mesh

    try:
        return as_mesh(value)
    except InputError:
        raise
    except CommlensError as error:
        raise click.BadParameter(str(error)) from error


def read_mode(_context: click.Context, _parameter: click.Parameter, value: str | None) -> CollectiveOpGroupMode | None:
    """Read ``--mode``, in any spelling that XLA has used."""
    if value is None:
        return None
    from commlens.topology import CollectiveOpGroupMode

    try:
        return CollectiveOpGroupMode.parse(value)
    except CommlensError as error:
        raise click.BadParameter(str(error)) from error


def read_bytes(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    """Read a number of bytes: ``1000000``, ``512MiB``, ``8G``; units are binary."""
    if value is None:
        return None
    match = _BYTES.fullmatch(value.strip())
    if match is None or not int(match[1]):
        msg = f"expected bytes such as 1000000, 512MiB or 8G, found {excerpt(value)!r}"
        raise click.BadParameter(msg)
    return int(match[1]) << 10 * _POWERS.index((match[2] or "").upper())


def output_options(
    command: Callable[..., int], *, forms: Sequence[str] = FORMATS, told: str = "How to show the answer."
) -> Callable[..., int]:
    """Add ``--format`` and ``-o``; the command gets them as ``output``.

    Args:
        command: the command.
        forms: what ``--format`` may be, where it is more than the usual.
        told: the help of ``--format``.
    """

    @click.option("--format", "form", type=click.Choice(forms), default="table", show_default=True, help=told)
    @click.option(
        "-o",
        "--output",
        "output_path",
        type=click.Path(path_type=Path, dir_okay=False, readable=False),
        help="Write the answer to this file, all of it or nothing; - is standard output.",
    )
    @functools.wraps(command)
    def with_output(*, form: str, output_path: Path | None, **others: Any) -> int:
        return command(output=Output(form, None if output_path == STANDARD_OUTPUT else output_path), **others)

    return with_output


def input_options(command: Callable[..., int], *, required: bool = True) -> Callable[..., int]:
    """Add FILE and the options of reading; the command gets them as ``inputs``.

    Args:
        command: the command.
        required: whether it can do nothing without a file.
    """

    @click.argument("files", metavar="FILE..." if required else "[FILE...]", nargs=-1, required=required)
    @click.option(
        "--stage",
        type=click.Choice(STAGES),
        default="last",
        show_default=True,
        help="Which dumps of a folder to read: those before or after optimisation, all, or the last of each module.",
    )
    @click.option("--max-bytes", callback=read_bytes, metavar="BYTES", help="Largest content to read. [default: 8GiB]")
    @click.option("--keep-going", is_flag=True, help="Go on with the other files when one holds no module.")
    @count_options
    @functools.wraps(command)
    def with_inputs(
        *,
        files: tuple[str, ...],
        stage: Stage,
        max_bytes: int | None,
        keep_going: bool,
        replicas: int | None,
        partitions: int | None,
        **others: Any,
    ) -> int:
        inputs = Inputs(files, stage, max_bytes, replicas, partitions, keep_going=keep_going)
        return command(inputs=inputs, **others)

    return with_inputs


def count_options(command: _Command) -> _Command:
    """Add ``--replicas`` and ``--partitions``."""
    positive = click.IntRange(min=1)
    replicas = click.option("--replicas", type=positive, metavar="R", help="Replica count, whatever the module says.")
    partitions = click.option("--partitions", type=positive, metavar="P", help="Partition count likewise.")
    return replicas(partitions(command))


def mesh_option(command: _Command) -> _Command:
    """Add ``--mesh``."""
    option = click.option(
        "--mesh",
        callback=read_mesh,
        metavar="MESH",
        help="Names of the mesh axes: data=2,model=4 over the logical ids 0..n-1, last axis fastest, or a JSON file "
        'such as {"axes": {"data": 2, "model": 4}, "device_ids": null}.',
    )
    return option(command)


def full_option(command: _Command) -> _Command:
    """Add ``--full``."""
    return click.option("--full", is_flag=True, help="List ids even where a list has more than 4096.")(command)
