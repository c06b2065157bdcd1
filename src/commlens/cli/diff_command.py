"""``commlens diff``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from commlens.cli.inputs import Inputs
from commlens.cli.messages import warn
from commlens.cli.options import AllMissing, count_options, full_option, mesh_option, output_options, read_bytes
from commlens.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commlens.analysis import ModuleDiff
    from commlens.cli.output import Output
    from commlens.hlo import Module
    from commlens.topology import Mesh


@click.command("diff", cls=AllMissing, short_help="Show what changed in communication between two modules.")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@mesh_option
@count_options
@full_option
@click.option("--max-bytes", callback=read_bytes, metavar="BYTES", help="Largest content to read. [default: 8GiB]")
@output_options
def command(
    *,
    before: str,
    after: str,
    mesh: Mesh | None,
    replicas: int | None,
    partitions: int | None,
    full: bool,
    max_bytes: int | None,
    output: Output,
) -> int:
    """Show what changed in the communication of a program from module A to module B.

    Collectives are added, removed, changed or run in another order; that they are merely spelled in another way is said
    apart. A and B are anything that `commlens report` reads, with one module each. Exit code 1: the communication is
    not the same, or something could not be read.
    """
    from commlens.analysis import diff
    from commlens.views import DiffView

    inputs = Inputs((before, after), "last", max_bytes, replicas, partitions, keep_going=False)
    first, second = (_only_module(inputs, path) for path in inputs.paths)
    answer = diff(first, second, mesh, full=full)
    output.show(DiffView(answer))
    warn(_warnings(answer))
    return 0 if answer.same_communication else 1


def _only_module(inputs: Inputs, path: str) -> Module:
    modules = replace(inputs, paths=(path,)).answer(lambda module: module).found
    if len(modules) != 1:
        reason = f"expected one module to compare, found {len(modules)}; name one file of a folder"
        raise InputError(reason, path=path)
    return modules[0]


def _warnings(answer: ModuleDiff) -> Iterator[str]:
    """Say what is strange about the mesh, and name what could not be read, with its place."""
    for report in (answer.before, answer.after):
        module = report.module
        yield from (f"{module.path}: {note}" for note in report.notes)
        for item in report.unread:
            place = f"{module.path}:{item.where}" if module.format == "text" else f"{module.path}: {item.where}"
            what = " ".join(word for word in (item.opcode, item.name) if word)
            yield f"{place}: {what}: {item.why}" if what else f"{place}: {item.why}"
