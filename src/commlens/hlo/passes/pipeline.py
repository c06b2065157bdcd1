"""Running passes one after the other."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlens.errors import CommlensError, InputError
from commlens.hlo.passes.refusals import place_of
from commlens.hlo.passes.spec import specs_of
from commlens.hlo.passes.verification import ambiguity, definition_order_faults, examine, new_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from commlens.hlo.model import Module
    from commlens.hlo.passes.base import Pass, PassResult
    from commlens.hlo.passes.verification import Examination, Fault


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Passes in the order in which they run; ``str()`` is the text that names them.

    Attributes:
        passes: the passes.
        verify: whether to check after each pass that it broke nothing, see
            :func:`commlens.hlo.passes.verification.new_faults`, and before the first that instructions can be told
            apart and stand behind all that they need.
        after_each: called with every result as soon as it is there, to show or keep the module in between.
    """

    passes: tuple[Pass, ...]
    verify: bool = False
    after_each: Callable[[PassResult], None] | None = None

    def run(self, module: Module, *, keep_going: bool = False) -> list[PassResult]:
        """Run the passes.

        Args:
            module: the module, which stays as it is.
            keep_going: whether passes leave alone what they cannot understand, and name it.

        Returns:
            One result per pass. The last one's ``module`` is the product; without passes there is none.

        Raises:
            InputError: a pass cannot understand the module, its edits contradict each other, or, where that is checked,
                it broke the module. The pass is named, and the module's place where there is one: in the module on
                which it ran, which a pass before it may have made.
        """
        return list(self.steps(module, keep_going=keep_going))

    def steps(self, module: Module, *, keep_going: bool = False) -> Iterator[PassResult]:
        """Yield the results of :meth:`run`, each before the next pass starts."""
        known: Examination | None = None
        made_by: str | None = None
        if self.verify and not keep_going:
            _check_whole(module)
        for each in self.passes:
            result = _run(each, module, made_by, keep_going=keep_going)
            if self.verify and result.modified:
                known = _verified(each, module, known, result.module)
            if self.after_each is not None:
                self.after_each(result)
            yield result
            module, made_by = result.module, each.name if result.modified else made_by

    def __str__(self) -> str:
        """Return the passes as text."""
        return specs_of(self.passes)


def pass_in_words(name: str, made_by: str | None) -> str:
    """Name a pass in messages that have places in them.

    Args:
        name: its name.
        made_by: the last pass before it that changed the module: lines are those of the module it made.
    """
    return name if made_by is None else f"{name}, on what {made_by} made"


def _run(one: Pass, module: Module, made_by: str | None, *, keep_going: bool) -> PassResult:
    """Run a pass; what goes wrong bears its name, and that of the pass whose product it ran on."""
    name = pass_in_words(one.name, made_by)
    try:
        return one.run(module, keep_going=keep_going)
    except InputError as error:
        reason = f"{name}: {error.reason}"
        raise InputError(reason, path=error.path, line=error.line, column=error.column) from error
    except CommlensError as error:
        reason = f"{name}: {error}"
        line, column = place_of(error)
        raise InputError(reason, path=module.path, line=line, column=column) from error
    except Exception as error:
        error.add_note(f"in the pass {one.name} on {module.path}")
        raise


def _verified(one: Pass, before: Module, known: Examination | None, after: Module) -> Examination:
    """Return what is wrong with a module without having been so before; refuse what a pass broke.

    Args:
        one: the pass.
        before: the module on which it ran.
        known: what is wrong with that, where it is known already.
        after: the module that it made.

    Raises:
        InputError: it broke something; the first fault is told, at its place in the module before, and the others are
            counted. Or one of the two modules cannot be looked at.
    """
    if known is None:
        with _named(f"{one.name}: the module on which it ran cannot be verified, and was so before", before):
            known = examine(before)
    with _named(f"{one.name} broke the module, which cannot be verified", before):
        found = examine(after)
        faults = new_faults(known, found, after)
    if faults:
        raise _first_of(faults, f"{one.name} broke the module", before)
    return found


def _check_whole(module: Module) -> None:
    """Refuse a module in which an operand means one of two instructions, or none that stands before it.

    Raises:
        InputError: it is such a one; the first fault is told at its place, and the others of its kind are counted.
    """
    ambiguous = ambiguity(module)
    faults = definition_order_faults(module) if ambiguous is None else [ambiguous]
    if faults:
        raise _first_of(faults, "the module cannot be verified", module)


def _first_of(faults: Sequence[Fault], what: str, module: Module) -> InputError:
    """Return the error that tells the first of some faults at its place in a module, and counts the others."""
    first, *others = faults
    more = f" ({len(others)} more)" if others else ""
    line, column = first.place_in(module)
    return InputError(f"{what}: {first.sentence}{more}", path=module.path, line=line, column=column)


@contextmanager
def _named(what: str, module: Module) -> Generator[None]:
    """Say in the error of what comes up within what that means, and in which file."""
    try:
        yield
    except CommlensError as error:
        reason = f"{what}: {error}"
        raise InputError(reason, path=module.path) from error
