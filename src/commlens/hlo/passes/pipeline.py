"""Running passes one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from commlens.errors import CommlensError, InputError
from commlens.hlo.passes.spec import specs_of
from commlens.hlo.passes.verification import new_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from commlens.hlo.model import Module
    from commlens.hlo.passes.base import Pass, PassResult


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Passes in the order in which they run; ``str()`` is the text that names them.

    Attributes:
        passes: the passes.
        verify: whether to check after each pass that it broke nothing, see
            :func:`commlens.hlo.passes.verification.new_faults`.
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
                it broke the module. The pass is named, and the module's place where there is one.
        """
        return list(self.steps(module, keep_going=keep_going))

    def steps(self, module: Module, *, keep_going: bool = False) -> Iterator[PassResult]:
        """Yield the results of :meth:`run`, each before the next pass starts."""
        for each in self.passes:
            result = _run(each, module, keep_going=keep_going)
            if self.verify and result.modified:
                _verify(each, module, result.module)
            if self.after_each is not None:
                self.after_each(result)
            yield result
            module = result.module

    def __str__(self) -> str:
        """Return the passes as text."""
        return specs_of(self.passes)


def _run(one: Pass, module: Module, *, keep_going: bool) -> PassResult:
    """Run a pass; what goes wrong bears its name."""
    try:
        return one.run(module, keep_going=keep_going)
    except InputError as error:
        reason = f"{one.name}: {error.reason}"
        raise InputError(reason, path=error.path, line=error.line, column=error.column) from error
    except CommlensError as error:
        reason = f"{one.name}: {error}"
        raise InputError(reason, path=module.path) from error
    except Exception as error:
        error.add_note(f"in the pass {one.name} on {module.path}")
        raise


def _verify(one: Pass, before: Module, after: Module) -> None:
    """Refuse what a pass broke.

    Raises:
        InputError: it did; the first fault is told and the others are counted.
    """
    faults = new_faults(before, after)
    if faults:
        more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
        reason = f"{one.name} broke the module: {faults[0]}{more}"
        raise InputError(reason, path=before.path)
