"""``commlens opt``."""

from __future__ import annotations

import sys
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click

from commlens.cli.inputs import STANDARD_INPUT, standard_input
from commlens.cli.messages import warn
from commlens.cli.options import STANDARD_OUTPUT, count_options, read_bytes
from commlens.cli.output import FORMATS, Output, print_bytes, standard_output, write
from commlens.cli.progress import Progress
from commlens.cli.specs import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from commlens.hlo import Module, Pass, PassResult, SourceFile
    from commlens.views import RunModule


_STANDARD_OUTPUT_NUMBER: Final = 1


def _joined(_context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> str | None:
    """Take ``--passes`` that is given several times as one list."""
    return ",".join(value) if value else None


def _target(_context: click.Context, _parameter: click.Parameter, values: tuple[Path, ...]) -> Path | None:
    """Return the file to write. Other names of standard output are ``-``: no answer may stand behind the module there.

    Raises:
        click.BadParameter: there are several.
    """
    from commlens.hlo import descriptor_named

    if len(values) > 1:
        msg = f"expected one file to write, found {len(values)}: {', '.join(map(str, values))}"
        raise click.BadParameter(msg)
    target = next(iter(values), None)
    return STANDARD_OUTPUT if target is not None and descriptor_named(target) == _STANDARD_OUTPUT_NUMBER else target


@click.command("opt", short_help="Rewrite a module by passes.")
@click.argument("file", metavar="FILE", required=False)
@click.option(
    "--passes",
    multiple=True,
    callback=_joined,
    metavar="NAME[{KEY=VALUE,...}],...",
    help="The passes to run, in this order.",
)
@click.option("--pipeline", metavar="NAME", help="Run the passes of a pipeline; there is neuron.")
@click.option("--list-passes", is_flag=True, help="Show which passes and pipelines there are, instead of running any.")
@click.option(
    "-o",
    "--output",
    "target",
    multiple=True,
    metavar="OUT",
    type=click.Path(path_type=Path, dir_okay=False, readable=False),
    callback=_target,
    help="The file to write, which may be FILE itself; compressed if its name ends in .gz, .xz, .bz2 or .zst. "
    "- is standard output, on which no answer is shown then.",
)
@click.option("--verify", is_flag=True, help="Check after each pass that it broke nothing.")
@click.option(
    "--dump-after-each",
    "folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the module into this folder after each pass, as NUMBER.PASS with the usual ending of its form: .txt, "
    ".pb or .pbtxt. Where FILE holds several modules, the number of the module comes first: NUMBER.NUMBER.PASS.",
)
@click.option("--keep-going", is_flag=True, help="Leave alone what a pass cannot understand, and say so.")
@click.option("--max-bytes", callback=read_bytes, metavar="BYTES", help="Largest content to read. [default: 8GiB]")
@count_options
@click.option(
    "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="How to show the answer."
)
def command(
    *,
    file: str | None,
    passes: str | None,
    pipeline: str | None,
    list_passes: bool,
    target: Path | None,
    verify: bool,
    folder: Path | None,
    keep_going: bool,
    max_bytes: int | None,
    replicas: int | None,
    partitions: int | None,
    form: str,
) -> int:
    """Rewrite a module by passes and write it to OUT.

    FILE is HLO text or a proto, and OUT is the same. Outside of what the passes edit every byte of a text and every
    field of a proto stays as it is. The answer says what each pass did.
    """
    from commlens.views import OptView

    if list_passes:
        if file is not None:
            _refuse("expected no FILE beside --list-passes, which reads none")
        if passes is not None or pipeline is not None:
            _refuse("expected no --passes and no --pipeline beside --list-passes, which runs none")
        _show_passes(Output(form, None if target == STANDARD_OUTPUT else target))
        return 0
    if file is None or target is None or (passes is None) == (pipeline is None):
        _refuse_incomplete(file, target, passes, pipeline)
    chosen = _chosen(passes, pipeline)
    if target == STANDARD_OUTPUT and form != "table":
        _refuse(
            f"expected -o with the name of a file beside --format {form}, for standard output takes only one of both"
        )
    standard_output()  # before anything is written: the answer or the module goes there
    with Progress(sys.stderr, 1) as progress:
        progress.begin(file)
        original = _read(file, max_bytes, replicas, partitions)
        original.check_target(target)
        content, modules = _rewritten(original, chosen, folder, verify=verify, keep_going=keep_going)
        product = original.packed(content, None if target == STANDARD_OUTPUT else target)
    if target == STANDARD_OUTPUT:
        print_bytes(product)
    else:
        write(target, product, "the module")
        Output(form, None).show(OptView(file, str(target), modules))
    warn(_warnings(file, modules))
    return 0


def _refuse_incomplete(file: str | None, target: Path | None, passes: str | None, pipeline: str | None) -> NoReturn:
    """Name everything at once that is not there."""
    parts = (
        "FILE (the module to rewrite)" if file is None else "",
        "-o OUT (the file to write; - is standard output)" if target is None else "",
        "one of --passes, --pipeline and --list-passes" if (passes is None) == (pipeline is None) else "",
    )
    *first, last = filter(None, parts)
    _refuse(f"expected {', '.join(first)} and {last}" if first else f"expected {last}")


def _show_passes(output: Output) -> None:
    from commlens.neuron import PASSES, PIPELINES
    from commlens.views import PassListView

    output.show(PassListView(PASSES, PIPELINES))


def _chosen(passes: str | None, pipeline: str | None) -> tuple[Pass, ...]:
    """Return the passes to run."""
    from commlens.neuron import parse_passes, pipeline_passes

    if pipeline is not None:
        return pipeline_passes(pipeline)
    with placed("SPEC"):
        return parse_passes(passes or "")


def _read(file: str, max_bytes: int | None, replicas: int | None, partitions: int | None) -> SourceFile:
    from commlens.hlo import read_source_file

    read = read_source_file if max_bytes is None else partial(read_source_file, max_bytes=max_bytes)
    stdin = standard_input() if file == STANDARD_INPUT else None
    return read(file, stdin=stdin, replicas=replicas, partitions=partitions)


def _rewritten(
    original: SourceFile, passes: Sequence[Pass], folder: Path | None, *, verify: bool, keep_going: bool
) -> tuple[bytes, list[RunModule]]:
    """Run the passes on every module; return the new content, and what was done."""
    from commlens.hlo import Pipeline
    from commlens.views import RunModule, RunPass

    done: list[RunModule] = []

    def change(module: Module) -> Module:
        stem = f"{len(done) + 1:02}." if len(original.modules) > 1 else ""
        keep = None if folder is None else _keeper(folder, stem, original.ending)
        steps = Pipeline(tuple(passes), verify=verify, after_each=keep).steps(module, keep_going=keep_going)
        runs: list[RunPass] = []
        for one, result in zip(passes, steps, strict=True):
            runs.append(RunPass.of(str(one), result))
            module = result.module
        done.append(RunModule(module.name, runs))
        return module

    return original.rewritten(change), done


def _keeper(folder: Path, stem: str, ending: str) -> Callable[[PassResult], None]:
    """Return a function that writes the module of each result into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = count(1)

    def keep(result: PassResult) -> None:
        write(folder / f"{stem}{next(numbers):02}.{result.name}{ending}", result.module.to_bytes(), "the module")

    return keep


def _warnings(file: str, modules: Sequence[RunModule]) -> Iterator[str]:
    from commlens.hlo import pass_in_words

    for module in modules:
        made_by: str | None = None
        for run in module.runs:
            name = pass_in_words(run.name, made_by)
            yield from (f"{file}: {name}: {sentence}" for sentence in run.warnings)
            for left in run.left_alone:
                place = ":".join(str(part) for part in (file, left.line, left.column) if part is not None)
                yield f"{place}: {name}: {left.sentence()}"
            made_by = run.name if run.modified else made_by


def _refuse(sentence: str) -> NoReturn:
    raise click.UsageError(sentence, click.get_current_context())
